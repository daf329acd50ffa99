#ifndef MUSTER_RENDEZVOUS_FILE_STORE_H_
#define MUSTER_RENDEZVOUS_FILE_STORE_H_

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "rendezvous/state_store.h"

namespace muster {

// A folder of its own on a local disk: one file for each key, replaced as a whole and synced, so
// that a loss of power at any moment leaves the old value or the new one. Files:
//   format    the folder's version
//   lock      held (flock) as long as the store lives; the right to write is lost when it is gone
//   N.state   one value (rendezvous/state_file.h)
//   N.tmp     a value that was being written; removed by Load()
// Other names are left alone. Why one file for each key: docs/decisions/004-one-file-per-job.md.
class FileStore final : public StateStore {
 public:
  // Makes the folder when it is not there (its parent must be) and locks it. Errors, each one line
  // with what to do:
  //   FailedPrecondition  another master works on it; which process
  //   NotFound            the parent is not there, or the path is no folder
  //   PermissionDenied    the folder or its file system may not be written
  //   InvalidArgument     it is in use for something else: not empty, and not a master's
  //   Unimplemented       written by a newer version
  //   DataLoss            the file `format` is damaged
  //   ResourceExhausted   the disk or the quota is full
  //   Unavailable         everything else, with the system's words
  static absl::StatusOr<std::unique_ptr<FileStore>> Open(const std::string& folder);

  absl::StatusOr<std::vector<StoredValue>> Load() override;
  absl::Status Write(const std::vector<StoreWrite>& changes) override;

  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

 private:
  FileStore(std::string path, UniqueFd folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  absl::Status Lock();
  absl::Status CheckFormat();
  absl::StatusOr<std::vector<std::string>> List() const;
  absl::StatusOr<std::string> Read(const std::string& name) const;
  absl::Status Replace(const std::string& stem, const std::string& name, const std::string& text);
  absl::Status Sync();
  absl::Status Failed(const std::string& what, const std::string& name, int error) const;

  const std::string path_;
  UniqueFd folder_;
  UniqueFd lock_;
  std::map<std::string, uint64_t> numbers_;  // of files, by key
  uint64_t last_number_ = 0;
};

// The exit code of a program that cannot start for an error of Open() or Load() (the table in
// docs/EXIT_CODES.md): 65 for state that is damaged or of a newer version, 73 for a folder that
// cannot be used, 75 for what may pass: a full disk, another master, an input or output error.
int ExitCodeOfStateError(const absl::Status& error);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_FILE_STORE_H_
