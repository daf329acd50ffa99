#ifndef MUSTER_AGENT_ERROR_FILE_H_
#define MUSTER_AGENT_ERROR_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

// What a worker left in TORCHELASTIC_ERROR_FILE.
struct WorkerError {
  std::string message;    // "ValueError: bad shape"; may have several lines; empty: there is none
  std::string traceback;  // the worker's own, or empty
  int64_t timestamp = 0;  // seconds since 1970 on the worker's clock; 0: not given

  bool operator==(const WorkerError&) const = default;
};

// Both forms that torchrun accepts:
//   {"message": {"message": "…", "extraInfo": {"py_callstack": "…", "timestamp": "…"}}}
//   {"message": "…", "timestamp": 1}
// A truncated file gives what is complete in it; a text without a message in it gives its first
// line as the message. Pure.
WorkerError ParseErrorFile(std::string_view text);

// The same from a file, of which the first MiB counts. A missing, unreadable or empty file, or no
// path, gives an empty error.
WorkerError ReadErrorFile(const std::string& path);

}  // namespace muster

#endif  // MUSTER_AGENT_ERROR_FILE_H_
