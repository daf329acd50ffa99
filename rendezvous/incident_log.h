#ifndef MUSTER_RENDEZVOUS_INCIDENT_LOG_H_
#define MUSTER_RENDEZVOUS_INCIDENT_LOG_H_

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/unique_fd.h"

namespace muster {

// A file of lines that only grows, written by a thread of its own: a slow disk holds nobody up.
// When the file is full it becomes FILE.1, FILE.1 becomes FILE.2, and so on. A line is in the file
// whole or not at all. Thread-safe.
class IncidentLog {
 public:
  struct Options {
    std::string path;
    int64_t bytes_max = 16 * 1024 * 1024;
    int files_max = 5;  // FILE and those behind it
    // Lines that wait for a disk that does not take them; more are lost.
    size_t waiting_max = 1024;
    // One line when the file can no longer be written, and again when it can. Called by the log's
    // thread; must not block. May be empty.
    std::function<void(const std::string& text)> on_problem = {};
  };

  // PermissionDenied: the file cannot be opened; one line that names it.
  static absl::StatusOr<std::unique_ptr<IncidentLog>> Open(Options options);

  // Writes what waits, unless the disk does not take it.
  ~IncidentLog();

  // `line` ends with a line break. Never blocks.
  void Add(std::string line);

 private:
  IncidentLog(Options options, UniqueFd fd, int64_t size);

  void Run();
  int Write(const std::string& line);
  void Rotate();
  void Report(int error, uint64_t lost);

  const Options options_;
  UniqueFd fd_;              // of the thread
  int64_t size_;             // likewise
  bool is_failing_ = false;  // likewise
  uint64_t lost_told_ = 0;   // likewise

  Mutex mutex_;
  Condition changed_;
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  bool is_stirred_ ABSL_GUARDED_BY(mutex_) = false;  // something was added since the last try
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_INCIDENT_LOG_H_
