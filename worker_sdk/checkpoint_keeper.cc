#include "worker_sdk/checkpoint_keeper.h"

#include <utility>

namespace muster {

CheckpointKeeper::CheckpointKeeper(Author author, std::filesystem::path own, int keep,
                                   std::function<void(const std::filesystem::path&)> written)
    : own_(std::move(own)), keep_(keep), written_(std::move(written)), author_(author) {}

void CheckpointKeeper::GoOnFrom(const std::filesystem::path& file, const Author& author,
                                Remembered state) {
  const std::lock_guard lock(mutex_);
  author_ = Successor(author, author_);
  last_written_.reset();
  if (file == own_) last_written_ = state.commit;
  remembered_ = std::move(state);
}

void CheckpointKeeper::RolledBack() {
  const std::lock_guard lock(mutex_);
  last_written_.reset();
}

void CheckpointKeeper::Remember(Remembered state) {
  const std::lock_guard lock(mutex_);
  remembered_ = std::move(state);
}

Remembered CheckpointKeeper::remembered() const {
  const std::lock_guard lock(mutex_);
  return remembered_;
}

std::optional<int64_t> CheckpointKeeper::last_written() const {
  const std::lock_guard lock(mutex_);
  return last_written_;
}

void CheckpointKeeper::WriteNow(const std::filesystem::path& path, const Remembered& state) {
  const std::lock_guard disk(disk_mutex_);
  WriteLocked(path, state);
}

void CheckpointKeeper::WriteLocked(const std::filesystem::path& path, const Remembered& state) {
  Author author;
  {
    const std::lock_guard lock(mutex_);
    author = author_;
  }
  try {
    WriteCheckpoint(path, author, *state.payload, keep_);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (path == own_) last_written_.reset();
    throw;
  }
  if (path == own_) {
    const std::lock_guard lock(mutex_);
    last_written_ = state.commit;
  }
  if (written_) written_(path);
}

void CheckpointKeeper::Write(const std::filesystem::path& path, const Remembered& state,
                             bool background) {
  writer_.Wait();
  if (!background) return WriteNow(path, state);
  writer_.Start([this, path, state] { WriteNow(path, state); });
}

std::string CheckpointKeeper::SaveRemembered() {
  try {
    writer_.Wait();
  } catch (const std::exception&) {
    // What is remembered is newer, and tried now.
  }
  const std::lock_guard disk(disk_mutex_);
  const Remembered state = remembered();
  const auto written = last_written();
  if (!state.payload || (written && *written >= state.commit)) return "";
  try {
    WriteLocked(own_, state);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace muster
