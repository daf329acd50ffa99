#ifndef MUSTER_AGENT_LOG_FILE_H_
#define MUSTER_AGENT_LOG_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace muster {

// When a log file is full, and how many of a stream are kept.
struct LogRotation {
  int64_t bytes_max = 0;  // 0: never rotated
  int files_max = 5;      // at least 1, the current one included
};

// A log file that the agent writes. When it is full it becomes PATH.1, PATH.1 becomes PATH.2, the
// oldest is removed, and PATH begins anew. Files end at the end of a line: a line that does not fit
// any more begins the next file; only one that is longer than a whole file, by 64 KiB, is cut.
class LogFile {
 public:
  LogFile() = default;
  // Empties the file or makes it; invalid, with errno, when that fails.
  LogFile(std::string path, LogRotation rotation);

  bool valid() const { return fd_.valid(); }
  const std::string& path() const { return path_; }

  // 0, or the errno; *written says how much was.
  int Write(std::string_view data, size_t* written);

  void Close() { fd_.reset(); }

 private:
  // How many bytes of `data` belong into this file; 0: it is full.
  size_t Fitting(std::string_view data) const;
  void Rotate();

  std::string path_;
  LogRotation rotation_;
  UniqueFd fd_;
  int64_t size_ = 0;
  bool in_line_ = false;  // the last byte was not a line break
};

}  // namespace muster

#endif  // MUSTER_AGENT_LOG_FILE_H_
