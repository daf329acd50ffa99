#ifndef MUSTER_BASE_LOG_H_
#define MUSTER_BASE_LOG_H_

#include <string_view>

namespace muster {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Writes one line to stderr, unless `level` is below the set one:
//   warning, error:  "muster: text"
//   info, debug:     "2026-11-29T18:53:36.123Z info muster: text"
// Line breaks and other control bytes in `text` become blanks, so that a message is always one
// line. Never throws. A stderr that takes nothing (a full pipe) delays the caller by
// kLogPatienceMilliseconds at most, then the line is dropped; as long as the pipe stays full, later
// lines are dropped at once, and the next one that gets through is preceded by a count of the lost.
// A closed stderr drops all. Any thread may call.
void Log(LogLevel level, std::string_view text);

inline constexpr int kLogPatienceMilliseconds = 100;

enum class LogFormat {
  kPlain,  // as above
  kDated,  // every line as info and debug above: for a program that runs for long
  kJson,   // {"ts":"2026-11-29T18:53:36.123Z","level":"info","component":"muster","msg":"text"}
};

// How lines look from now on, and what the program calls itself in them ("muster" at first).
void SetLogStyle(LogFormat format, std::string_view name);

// Messages below `level` are dropped. Initially kWarning, as torchrun's.
void SetLogLevel(LogLevel level);

// Whether a message of `level` would be written: ask before composing an expensive one.
bool LogEnabled(LogLevel level);

// Log to `fd` instead of stderr; it stays the caller's. For tests.
void SetLogFd(int fd);

}  // namespace muster

#endif  // MUSTER_BASE_LOG_H_
