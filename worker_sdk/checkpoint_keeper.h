#ifndef MUSTER_WORKER_SDK_CHECKPOINT_KEEPER_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_KEEPER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "worker_sdk/background_writer.h"
#include "worker_sdk/checkpoint_file.h"

namespace muster {

// A state as bytes, and of which commit it is.
struct Remembered {
  std::shared_ptr<const std::string> payload;  // null: none
  int64_t commit = 0;
};

// What State keeps in memory and on disk. One thread calls it, and SaveRemembered() may be called
// by any. No LibTorch here.
class CheckpointKeeper {
 public:
  // `own`: the run's file; what is written elsewhere is a copy and does not keep the run. `written`
  // is called after each write, from the thread that wrote.
  CheckpointKeeper(Author author, std::filesystem::path own, int keep,
                   std::function<void(const std::filesystem::path&)> written);

  // `state` was read from `file`, of `author`'s, and is what the run goes on from. Not while
  // something is being written.
  void GoOnFrom(const std::filesystem::path& file, const Author& author, Remembered state);
  void Remember(Remembered state);
  void RolledBack();  // commits count from an earlier one again
  Remembered remembered() const;

  // WriteCheckpoint, at once or in the background. Both wait for what is being written before, and
  // throw if that failed; then nothing is written.
  void Write(const std::filesystem::path& path, const Remembered& state, bool background);
  void Wait() { writer_.Wait(); }
  bool failed() const { return writer_.failed(); }
  // The commit that is in the run's own file; nullopt: none, or the last write of it failed.
  std::optional<int64_t> last_written() const;

  // Writes what is remembered to the run's own file if it is newer than what is there. For the end
  // of a process: an error is returned and not thrown. Empty: it is done, or there was nothing to
  // do.
  std::string SaveRemembered();

 private:
  void WriteNow(const std::filesystem::path& path, const Remembered& state);
  void WriteLocked(const std::filesystem::path& path, const Remembered& state);

  const std::filesystem::path own_;
  const int keep_;
  const std::function<void(const std::filesystem::path&)> written_;
  mutable std::mutex mutex_;  // of the next three
  Author author_;
  Remembered remembered_;
  std::optional<int64_t> last_written_;
  std::mutex disk_mutex_;  // one write at a time
  BackgroundWriter writer_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_KEEPER_H_
