#include "agent/generation_shell.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/error_file.h"
#include "agent/line_splitter.h"
#include "agent/thread_stacks.h"
#include "agent/worker_env.h"
#include "base/local_addresses.h"
#include "base/log.h"
#include "base/one_line.h"

namespace muster {
namespace {

constexpr int kExitNoProcess = 71;   // EX_OSERR
constexpr int kExitNoFile = 73;      // EX_CANTCREAT
constexpr int kExitBadSetting = 78;  // EX_CONFIG
constexpr int kTailLines = 30;
constexpr int kThreadsMax = 32;  // shown of one worker

std::string FullHostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string HostName() {
  const std::string name = FullHostName();
  return name.substr(0, name.find('.'));
}

RunDirectory::Options DirectoryOptions(const AgentOptions& options, const EnvMap& env) {
  const std::string* tmp = FindVariable(env, "TMPDIR");
  return {options.log.log_dir, LogPump::LogsAsked(options.log), options.job_id,
          tmp == nullptr ? "" : *tmp};
}

LogPump::Context PumpContext(const AgentOptions& options) {
  LogPump::Context context;
  context.slots = options.slots;
  context.role = options.role;
  context.node_id = options.node_id;
  context.host_name = HostName();
  return context;
}

int ExitCodeOfSpawn(const NotStartedAnswer& answer) {
  if (!answer.forked) return kExitNoProcess;
  return answer.error == ENOENT || answer.error == ENOTDIR ? 127 : 126;
}

// Where the kernel's word alone does not say what is wrong. The program itself was there a moment
// ago: the launcher has looked.
const char* AdviceOn(int error) {
  if (error == ENOENT) return ": the interpreter in its first line (#!) is not there";
  if (error == ENOEXEC) return ": a script needs a first line like #!/bin/sh";
  if (error == EAGAIN) return ": raise the limit of processes (ulimit -u)";
  return error == EMFILE ? ": raise the limit of open files (ulimit -n)" : "";
}

int ExitCodeOf(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? kExitBadSetting : kExitNoFile;
}

}  // namespace

std::string WorkerAddress(const AgentOptions& options, const Assignment& assignment) {
  if (!options.local_addr.empty()) return options.local_addr;
  if (options.single_node()) return "127.0.0.1";
  return RouteAddress(assignment.master_addr);
}

GenerationShell::GenerationShell(EventLoop& loop, const AgentOptions& options, EnvMap env,
                                 ProcessHost& host, OnEvent on_event)
    : options_(options),
      env_(std::move(env)),
      host_(host),
      on_event_(std::move(on_event)),
      directory_(DirectoryOptions(options, env_)),
      sockets_(loop,
               [this](int local_rank, std::string_view key, std::string_view value) {
                 on_event_(WorkerSaid{local_rank, std::string(key), std::string(value)});
               }),
      pump_(loop, options.log, PumpContext(options)) {}

absl::Status GenerationShell::Open(const Assignment& assignment) {
  absl::Status status =
      directory_.OpenGeneration(assignment.generation, assignment.restart_count, options_.slots);
  if (!status.ok()) return status;
  std::vector<std::string> paths;
  for (int i = 0; i < options_.slots; ++i) paths.push_back(directory_.SocketPath(i));
  status = sockets_.Open(paths);
  if (!status.ok()) return status;
  if (options_.stdin_mode != StdinMode::kInherit && !null_input_.valid()) {
    null_input_.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  return pump_.OpenGeneration(assignment, directory_);
}

absl::Status GenerationShell::Spawn(const Assignment& assignment, int local_rank) {
  WorkerIdentity worker;
  worker.local_rank = local_rank;
  worker.slots = options_.slots;
  worker.role = options_.role;
  worker.job_id = options_.job_id;
  worker.node_id = options_.node_id;
  worker.max_restarts = options_.settings.max_restarts;
  worker.local_addr = WorkerAddress(options_, assignment);
  worker.socket_path = directory_.SocketPath(local_rank);
  worker.error_file = directory_.ErrorFile(local_rank);
  worker.signals_to_handle = options_.signals_to_handle;
  worker.virtual_local_rank = options_.virtual_local_rank;
  worker.extra_env = options_.extra_env;
  absl::StatusOr<std::vector<std::string>> env = WorkerEnvironment(worker, assignment, env_);
  if (!env.ok()) return env.status();

  const WorkerStreams streams = pump_.StreamsFor(local_rank);
  std::vector<int> fds = {streams.out < 0 ? STDOUT_FILENO : streams.out,
                          streams.err < 0 ? STDERR_FILENO : streams.err};
  const bool reads_stdin =
      options_.stdin_mode == StdinMode::kInherit ||
      (options_.stdin_mode == StdinMode::kOneRank && options_.stdin_local_rank == local_rank);
  if (!reads_stdin) fds.insert(fds.begin(), null_input_.get());
  SpawnRequest request{static_cast<uint32_t>(local_rank), options_.argv, *std::move(env)};
  if (!options_.cpus.empty()) request.cpus = options_.cpus[local_rank];
  host_.Spawn(std::move(request), fds);
  return absl::OkStatus();
}

void GenerationShell::Start(const Assignment& assignment) {
  probe_.Begin();
  pids_.assign(options_.slots, 0);
  evidence_taken_ = false;
  threads_.clear();
  absl::Status status = Open(assignment);
  for (int i = 0; status.ok() && i < options_.slots; ++i) status = Spawn(assignment, i);
  pump_.CloseWorkerEnds();
  if (!status.ok()) FailToStart(status);
}

void GenerationShell::FailToStart(const absl::Status& status) {
  for (int i = 0; i < options_.slots; ++i) {
    on_event_(SpawnFailed{i, ExitCodeOf(status), std::string(status.message())});
  }
}

void GenerationShell::Answered(const WardenAnswer& answer) {
  if (const auto* started = std::get_if<StartedAnswer>(&answer)) {
    if (started->id < pids_.size()) pids_[started->id] = started->pid;
    pump_.SetPid(static_cast<int>(started->id), started->pid);
    on_event_(WorkerSpawned{static_cast<int>(started->id), started->pid});
  } else if (const auto* failed = std::get_if<NotStartedAnswer>(&answer)) {
    on_event_(SpawnFailed{static_cast<int>(failed->id), ExitCodeOfSpawn(*failed),
                          absl::StrCat("cannot start ", options_.argv[0], ": ",
                                       strerror(failed->error), AdviceOn(failed->error))});
  } else if (const auto* exited = std::get_if<ExitedAnswer>(&answer)) {
    Exited(static_cast<int>(exited->id), ExitStatus::FromWait(exited->wait_status),
           exited->tree_empty);
  } else {
    on_event_(TreeEmptied{});
  }
}

void GenerationShell::Exited(int local_rank, const ExitStatus& status, bool tree_empty) {
  // What it said last counts, although its end was noticed first.
  sockets_.Drain(local_rank);
  WorkerExited event{local_rank, status, tree_empty};
  if (!status.ok()) {
    WorkerError error = ReadErrorFile(directory_.ErrorFile(local_rank));
    if (!error.message.empty()) {
      on_event_(WorkerSaid{local_rank, "ERROR", OneLine(error.message)});
    }
    // Those that follow are stopped by this node and not the cause of anything.
    if (!std::exchange(evidence_taken_, true)) {
      event.evidence = EvidenceOf(local_rank, status, error.message);
    }
  }
  on_event_(std::move(event));
}

FailureEvidence GenerationShell::EvidenceOf(int local_rank, const ExitStatus& status,
                                            const std::string& message) {
  FailureEvidence evidence;
  evidence.host = FullHostName();
  evidence.unix_ms =
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
  evidence.message = message.substr(0, FailureEvidence::kBytesMax);
  const size_t slot = static_cast<size_t>(local_rank);
  FailureProbe::Finding finding =
      probe_.Explain(status, slot < pids_.size() ? pids_[slot] : 0, options_.argv.front());
  evidence.hint = std::move(finding.text);
  evidence.out_of_memory = finding.out_of_memory;
  if (threads_.count(local_rank) > 0) {
    evidence.hint = "muster killed it for its silence (--stall-timeout)";
    evidence.out_of_memory = false;
  }
  std::string tail = pump_.Tail(local_rank, kTailLines);
  if (tail.size() > FailureEvidence::kBytesMax) {
    tail = LastLines(std::string_view(tail).substr(tail.size() - FailureEvidence::kBytesMax),
                     kTailLines, true);
  }
  evidence.stderr_tail = std::move(tail);
  const std::string log = directory_.LogFile(local_rank, true);
  if (access(log.c_str(), F_OK) == 0) evidence.log_path = log;
  return evidence;
}

void GenerationShell::Inspect(int local_rank, int pid) {
  threads_[local_rank] = ThreadStacks(pid, kThreadsMax);
  for (const std::string& line : threads_[local_rank]) {
    Log(LogLevel::kError, absl::StrCat("local rank ", local_rank, ": ", line));
  }
}

void GenerationShell::Close() {
  sockets_.Close();
  pump_.CloseGeneration();
}

void GenerationShell::End(bool succeeded, Time deadline, int signal_fd) {
  pump_.Flush(deadline, signal_fd);
  directory_.Remove(succeeded);
}

}  // namespace muster
