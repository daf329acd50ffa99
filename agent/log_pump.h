#ifndef MUSTER_AGENT_LOG_PUMP_H_
#define MUSTER_AGENT_LOG_PUMP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/agent_options.h"
#include "agent/console_writer.h"
#include "agent/line_prefix.h"
#include "agent/run_directory.h"
#include "agent/tee_stream.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "rendezvous/messages.h"

namespace muster {

// What one worker gets as stdout and stderr; -1: the launcher's own.
struct WorkerStreams {
  int out = -1;
  int err = -1;
};

// Where the workers' output goes (docs/LOGS.md). A stream without an option is inherited; a
// redirected one is a file that the worker writes by itself; a tee'd one is a pipe that the pump
// copies to the file, byte for byte, and to the launcher's own stream, in whole lines with a
// prefix. Everything happens on the loop's thread; nothing blocks but Flush.
//
// Lines: several writes make one line until '\n' comes; no other worker's text stands inside it. A
// line over 64 KiB is passed on in pieces; the others wait for its end, for kLongLineHold at most,
// then it is broken (on the console only). At the end of a stream a line without '\n' gets one (on
// the console only). A slow console stops the reading of tee'd pipes, hence the workers that write
// to them, and nothing else. A full disk costs the file its rest: one warning, the console goes on.
class LogPump {
 public:
  static constexpr Duration kLongLineHold = std::chrono::seconds(1);

  struct Context {
    int slots = 1;
    std::string role;
    std::string node_id;
    std::string host_name;  // up to its first dot
    int console_out = 1;    // the launcher's own streams
    int console_err = 2;
    Duration long_line_hold = kLongLineHold;
  };

  LogPump(EventLoop& loop, const LogOptions& options, Context context);
  ~LogPump();

  // True when `options` send some stream to a file or a pipe: RunDirectory::Options::logs_asked.
  static bool LogsAsked(const LogOptions& options);

  // Opens files and pipes for the workers of `assignment`; `directory` has opened that generation.
  // Fails with one line when a file cannot be opened or there are no descriptors left; nothing
  // stays open then.
  absl::Status OpenGeneration(const Assignment& assignment, const RunDirectory& directory);

  // Descriptors to hand to the worker; valid until CloseWorkerEnds.
  WorkerStreams StreamsFor(int local_rank) const;

  // All workers have been started (or never will be): closes the agent's copies of their ends.
  void CloseWorkerEnds();

  // For ${pid}. With that macro in the template a worker's lines wait until it is known.
  void SetPid(int local_rank, int pid);

  // Last lines of the worker's stderr, including what it has just written; "" where the stream was
  // inherited. Works until the next OpenGeneration.
  std::string Tail(int local_rank, int lines);

  // The workers have ended: takes what can be read at this moment (a descendant that still holds a
  // pipe is not waited for) and closes everything but the consoles.
  void CloseGeneration();

  // What log files did not take, in all generations. Files that workers write by themselves are not
  // counted.
  int64_t file_bytes_lost() const { return buffers_.file_bytes_lost; }

  // Blocks until the consoles have taken all that waits, `deadline`, or `interrupt_fd` is readable.
  // False: something is lost.
  bool Flush(Time deadline, int interrupt_fd = -1);

 private:
  // One stream of one worker. Neither a file nor a tee: inherited. With LogOptions::bytes_max a
  // stream that is redirected is a tee without a console.
  struct Stream {
    UniqueFd worker_end;
    std::string file_path;  // that the worker writes by itself
    std::unique_ptr<TeeStream> tee;
  };

  absl::Status OpenStream(int local_rank, bool err, const Assignment& assignment,
                          const RunDirectory& directory);
  absl::Status OpenTee(int local_rank, bool err, const Assignment& assignment,
                       const RunDirectory& directory);
  bool Shown(int local_rank) const;
  void WarnOfLostBytes();
  ConsoleWriter& Console(bool err);

  EventLoop& loop_;
  LogOptions options_;
  Context context_;
  LinePrefix prefix_;
  TeeBuffers buffers_;
  int64_t lost_bytes_told_ = 0;
  std::unique_ptr<ConsoleWriter> console_out_;
  std::unique_ptr<ConsoleWriter> console_err_;  // null: the same place as stdout, or not needed yet
  std::vector<Stream> streams_;                 // 2 * local rank + (stderr ? 1 : 0)
  UniqueFd filtered_out_;
  UniqueFd filtered_err_;
};

}  // namespace muster

#endif  // MUSTER_AGENT_LOG_PUMP_H_
