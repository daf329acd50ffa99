#ifndef MUSTER_AGENT_TEE_STREAM_H_
#define MUSTER_AGENT_TEE_STREAM_H_

#include <string>
#include <string_view>
#include <vector>

#include "agent/console_writer.h"
#include "agent/line_prefix.h"
#include "agent/line_splitter.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace muster {

// Where one tee'd stream of one worker goes.
struct TeeTargets {
  UniqueFd file;                     // raw bytes; none: no file
  std::string file_path;             // for messages
  ConsoleWriter* console = nullptr;  // prefixed lines; null: not shown
  int filtered_fd = -1;              // prefixed lines that match `filters`; -1: none
  const std::vector<std::string>* filters = nullptr;
  Duration long_line_hold{};
};

// One pipe and what is made of its bytes (agent/log_pump.h says the rules). Everything happens on
// the loop's thread; the console, the filters and the prefix must outlive it.
class TeeStream {
 public:
  // Reads nothing before Start. `pipe` does not block.
  TeeStream(EventLoop& loop, UniqueFd pipe, TeeTargets targets, const LinePrefix& prefix,
            PrefixValues values);
  ~TeeStream();
  TeeStream(const TeeStream&) = delete;
  TeeStream& operator=(const TeeStream&) = delete;

  void SetPid(int pid);

  // From here on the loop reads the pipe; with ${pid} in the prefix, once that is known.
  void Start();

  // Takes what is in the pipe at this moment, whether the console takes it or not.
  void TakeReadable();

  // TakeReadable, then ends the stream as its end of file would.
  void Close();

  // The last lines of the stream.
  std::string Tail(int lines) const;

 private:
  void Watch();
  void Pause();
  void OnReadable();
  void OnHoldOver();
  // Reads once, at most `bytes_max`; returns how many, 0 at the end of file, -1 when there is
  // nothing.
  long ReadOnce(size_t bytes_max);
  void Pass(std::string_view data);
  void WriteFile(int fd, std::string_view data, bool* failed, const std::string& path);
  void Show(const std::string& text);
  void End();
  void RememberTail(std::string_view data);
  void UpdatePrefix();
  void WaitForConsole();

  EventLoop& loop_;
  UniqueFd pipe_;
  TeeTargets targets_;
  const LinePrefix& prefix_;
  PrefixValues values_;
  std::string prefix_text_;
  LineSplitter splitter_;
  UniqueFd hold_timer_;
  std::string tail_;
  bool started_ = false;
  bool watching_ = false;
  bool file_failed_ = false;
  bool filtered_failed_ = false;
};

}  // namespace muster

#endif  // MUSTER_AGENT_TEE_STREAM_H_
