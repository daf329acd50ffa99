#ifndef MUSTER_AGENT_GENERATION_SHELL_H_
#define MUSTER_AGENT_GENERATION_SHELL_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/agent_options.h"
#include "agent/events.h"
#include "agent/failure_probe.h"
#include "agent/log_pump.h"
#include "agent/process_host.h"
#include "agent/run_directory.h"
#include "agent/worker_socket.h"
#include "base/env.h"
#include "base/event_loop.h"

namespace muster {

// What surrounds the workers of one generation: environment, files, pipes, sockets. Performs the
// supervisor machine's orders about workers and turns the warden's answers into its events. No
// policy. Loop thread only.
class GenerationShell {
 public:
  using OnEvent = std::function<void(SupervisorEvent)>;

  // `host` may be called from within any call here. `on_event` is called from the loop and from
  // within Start.
  GenerationShell(EventLoop& loop, const AgentOptions& options, EnvMap env, ProcessHost& host,
                  OnEvent on_event);

  // Makes and checks the log directory, before anything is started. One line, as
  // RunDirectory::Prepare.
  absl::Status Prepare() { return directory_.Prepare(); }

  // Starts every local rank; what cannot be started is answered by SpawnFailed for each.
  void Start(const Assignment& assignment);
  void Tell(const std::string& text) { sockets_.Tell(text); }
  void Answered(const WardenAnswer& answer);
  void Close();
  // Looks at the threads of a worker and logs what they do.
  void Inspect(int local_rank, int pid);

  // For the report, valid until the next Start.
  const std::vector<std::string>& Threads(int local_rank) { return threads_[local_rank]; }
  std::string LogPath(int local_rank) const { return directory_.LogFile(local_rank, true); }
  std::string ErrorFile(int local_rank) const { return directory_.ErrorFile(local_rank); }
  const std::string& log_root() const { return directory_.log_root(); }
  int64_t log_bytes_lost() const { return pump_.file_bytes_lost(); }
  // What the run leaves on the machine while it lasts: RunDirectory::private_root.
  const std::string& private_root() const { return directory_.private_root(); }
  std::string StatusSocketPath() const { return directory_.StatusSocketPath(); }

  // Ends the run: writes what the consoles have not taken, until `deadline` or a signal on
  // `signal_fd`, and removes the private directory.
  void End(bool succeeded, Time deadline, int signal_fd);

 private:
  void Exited(int local_rank, const ExitStatus& status, bool tree_empty);
  FailureEvidence EvidenceOf(int local_rank, const ExitStatus& status, const std::string& message);
  absl::Status Open(const Assignment& assignment);
  absl::Status Spawn(const Assignment& assignment, int local_rank);
  void FailToStart(const absl::Status& status);

  const AgentOptions& options_;
  EnvMap env_;
  ProcessHost& host_;
  OnEvent on_event_;
  RunDirectory directory_;
  WorkerSockets sockets_;
  LogPump pump_;
  UniqueFd null_input_;
  FailureProbe probe_;
  std::vector<int> pids_;        // of this generation, by local rank; 0: not started
  bool evidence_taken_ = false;  // the first bad end of this generation has been looked into
  std::map<int, std::vector<std::string>> threads_;  // of inspected workers, by local rank
};

// The address that the workers of this node shall use for their own sockets (MUSTER_LOCAL_ADDR);
// empty when unknown.
std::string WorkerAddress(const AgentOptions& options, const Assignment& assignment);

}  // namespace muster

#endif  // MUSTER_AGENT_GENERATION_SHELL_H_
