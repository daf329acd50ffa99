#ifndef MUSTER_AGENT_TEE_STREAM_H_
#define MUSTER_AGENT_TEE_STREAM_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/console_writer.h"
#include "agent/line_prefix.h"
#include "agent/line_splitter.h"
#include "agent/log_file.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace muster {

// Where one tee'd stream of one worker goes.
struct TeeTargets {
  LogFile file;                      // raw bytes; not valid: no file
  ConsoleWriter* console = nullptr;  // prefixed lines; null: not shown
  int filtered_fd = -1;              // prefixed lines that contain one of `filters`; -1: none
  std::vector<std::string> filters;
  bool keep_tail = false;  // for Tail
};

// What all streams of one loop share.
struct TeeBuffers {
  std::string input;
  std::string lines;
  std::string matches;
  int64_t file_bytes_lost = 0;  // that log files did not take; the first are warned of
};

// One pipe and what is made of its bytes (agent/log_pump.h says the rules). Everything happens on
// the loop's thread. The loop, the buffers, the console, and the prefix must outlive it.
class TeeStream {
 public:
  // Reads nothing before Start. `pipe` does not block.
  TeeStream(EventLoop& loop, TeeBuffers& buffers, UniqueFd pipe, TeeTargets targets,
            const LinePrefix& prefix, PrefixValues values);
  ~TeeStream();
  TeeStream(const TeeStream&) = delete;
  TeeStream& operator=(const TeeStream&) = delete;

  // From here on the loop reads the pipe; with ${pid} in the prefix, once that is known.
  void Start();
  void SetPid(int pid);

  // Takes what is in the pipe at this moment, whether the console takes it or not.
  void TakeReadable();

  // TakeReadable, then ends the stream as its end of file would.
  void Close();

  // It has shown a part of a line.
  bool in_long_line() const { return splitter_.in_long_line(); }

  // What its log file did not take.
  int64_t file_bytes_lost() const { return file_bytes_lost_; }
  const std::string& file_path() const { return targets_.file.path(); }

  // The last lines of the stream, of its last 16 KiB; needs TeeTargets::keep_tail.
  std::string Tail(int lines) const;

 private:
  void Watch();
  void Pause();
  void OnReadable();
  // Reads once; returns how many bytes, 0 at the end of the stream, -1 when there is nothing now.
  ssize_t ReadOnce(size_t bytes_max);
  void Pass(std::string_view data, bool is_end);
  void WriteFile(std::string_view data);
  void WriteFiltered(std::string_view data);
  void Show(std::string_view text);
  void GiveUpLine();
  void End();
  void RememberTail(std::string_view data);
  void ExpandPrefix();

  EventLoop& loop_;
  TeeBuffers& buffers_;
  UniqueFd pipe_;  // none: ended
  TeeTargets targets_;
  const LinePrefix& prefix_;
  PrefixValues values_;
  std::string prefix_text_;
  LineSplitter splitter_;
  std::string tail_;
  bool started_ = false;
  bool tail_cut_ = false;
  int64_t file_bytes_lost_ = 0;
  bool filtered_failed_ = false;
};

}  // namespace muster

#endif  // MUSTER_AGENT_TEE_STREAM_H_
