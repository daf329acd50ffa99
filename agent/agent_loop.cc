#include "agent/agent_loop.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/descriptor_need.h"
#include "agent/generation_shell.h"
#include "agent/node_report.h"
#include "agent/node_status.h"
#include "agent/port_reservation.h"
#include "agent/signal_source.h"
#include "agent/status_socket.h"
#include "agent/supervisor_machine.h"
#include "agent/warden.h"
#include "agent/warden_host.h"
#include "base/endpoint_list.h"
#include "base/env.h"
#include "base/host_port.h"
#include "base/log.h"

namespace muster {
namespace {

constexpr int kExitNoProcess = 71;  // EX_OSERR
constexpr int kExitNoFile = 73;     // EX_CANTCREAT
// How long the last lines of the workers may wait for a slow console.
constexpr Duration kConsolePatience = std::chrono::seconds(10);

uint64_t RandomNumber() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) number = getpid();
  return number;
}

// A closed standard descriptor would be handed out to the next thing that is opened, and workers
// would write into it.
void EnsureStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);
  }
}

std::string OwnPath() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  return length > 0 ? std::string(path, length) : "";
}

SupervisorOptions MachineOptions(const AgentOptions& options) {
  SupervisorOptions result;
  Hello& hello = result.hello;
  hello.job_id = options.job_id;
  hello.settings = options.settings;
  hello.node_id = options.node_id;
  hello.incarnation = RandomNumber();
  hello.slots = options.slots;
  hello.role = options.role;
  hello.fixed_group_rank = options.fixed_group_rank;
  hello.local_addr = options.local_addr;
  hello.fixed_master_addr = options.fixed_master_addr;
  hello.fixed_master_port = options.fixed_master_port;
  hello.topology_key = options.topology_key;
  if (!options.endpoint_host.empty()) {
    result.endpoint = ToString(options.endpoints());
    result.endpoint_option = options.endpoint_option;
  }
  result.stop_grace = options.stop_grace;
  result.orphan_grace = options.orphan_grace;
  result.has_remote_master = !options.single_node();
  result.seed = hello.incarnation;
  return result;
}

LogLevel LevelOf(NoteLevel level) {
  switch (level) {
    case NoteLevel::kDebug:
      return LogLevel::kDebug;
    case NoteLevel::kInfo:
      return LogLevel::kInfo;
    case NoteLevel::kWarning:
      return LogLevel::kWarning;
    case NoteLevel::kError:
      return LogLevel::kError;
  }
  return LogLevel::kError;
}

class AgentLoop {
 public:
  AgentLoop(const AgentOptions& options, WardenProcess warden, const RendezvousFactory& factory)
      : options_(options),
        machine_options_(MachineOptions(options)),
        machine_(machine_options_),
        host_(
            loop_, std::move(warden), [this](const WardenAnswer& a) { generation_.Answered(a); },
            [this] { Dispatch(WardenLost{}); }),
        signals_(
            loop_, options.signals_to_handle, options.signals_to_forward,
            [this](const SignalReceived& s) { Dispatch(s); }, [this] { Dispatch(SuspendAsked{}); }),
        generation_(loop_, options, EnvMapFrom(environ), host_,
                    [this](SupervisorEvent e) { Dispatch(std::move(e)); }),
        report_(options, generation_),
        status_(loop_, [this](std::string_view question) { return Answer(question); }),
        client_(factory(options)) {
    loop_.Watch(client_->fd(), EPOLLIN, [this](uint32_t) { HearMaster(); });
  }

  ~AgentLoop() { loop_.Unwatch(client_->fd()); }

  int Run() {
    absl::Status status = report_.Prepare();
    if (status.ok()) status = generation_.Prepare();
    if (!status.ok()) {
      Log(LogLevel::kError, std::string(status.message()));
      return kExitNoFile;
    }
    if (!generation_.log_root().empty()) {
      Log(LogLevel::kInfo, "the workers' output goes to " + generation_.log_root());
    }
    Dispatch(Begin{});
    while (!exit_code_) {
      loop_.RunOnce(machine_.NextDeadline());
      if (!exit_code_ && EventLoop::Now() >= machine_.NextDeadline()) Dispatch(TimeCame{});
    }
    // The end was orderly: there is nothing to be told on behalf of this agent any more.
    host_.SetLastWill({});
    report_.Finish(machine_.outcome(), *exit_code_);
    generation_.End(*exit_code_ == 0, EventLoop::Now() + kConsolePatience, signals_.fd());
    return *exit_code_;
  }

 private:
  // Effects may bring further events at once (a port, a worker that cannot be started): they wait
  // for their turn.
  void Dispatch(SupervisorEvent event) {
    events_.push_back(std::move(event));
    if (is_dispatching_) return;
    is_dispatching_ = true;
    while (!events_.empty()) {
      const SupervisorEvent next = std::move(events_.front());
      events_.pop_front();
      for (SupervisorEffect& effect : machine_.Step(EventLoop::Now(), next)) {
        std::visit([this](auto& e) { Perform(e); }, effect);
      }
      // The warden keeps it for the time when this process is frozen.
      if (const Time fence = machine_.Fence(); fence != std::exchange(fence_, fence)) {
        host_.SetFence({fence.time_since_epoch().count()});
      }
    }
    is_dispatching_ = false;
  }

  void HearMaster() {
    while (std::optional<ClientEvent> event = client_->Receive()) {
      if (auto* message = std::get_if<MasterMessage>(&*event)) {
        Dispatch(FromMaster{std::move(*message)});
      } else if (auto* ended = std::get_if<StreamEnded>(&*event)) {
        Dispatch(MasterLost{ended->unreachable, std::move(ended->detail), ended->obstacle});
      } else {
        Dispatch(RendezvousDone{});
      }
    }
  }

  void Perform(const ReservePort&) {
    // On the loopback address alone for a single node: nobody else has to reach it.
    auto port = ReservedPort::Reserve(options_.single_node() ? "127.0.0.1" : "");
    PortReserved answer;
    if (port.ok()) {
      port_ = *std::move(port);
      answer.port = port_.port();
    } else {
      answer.problem = std::string(port.status().message());
    }
    Dispatch(std::move(answer));
  }

  void Perform(const OpenStream&) { client_->Open(); }
  void Perform(SendToMaster& effect) { client_->Send(std::move(effect.message)); }
  void Perform(const FinishRendezvous&) { client_->Finish(); }

  void Perform(const StartWorkers& effect) {
    report_.Starting(effect.assignment);
    generation_.Start(effect.assignment);
    if (!generation_.private_root().empty()) OpenStatus();
    host_.SetLastWill({LastWillCommand(effect.assignment), generation_.private_root()});
  }

  void Perform(const SignalTree& effect) { host_.Signal({effect.signal, true}); }
  void Perform(const SignalWorkers& effect) { host_.Signal({effect.signal, false}); }
  void Perform(const Suspend&) { SignalSource::Suspend(); }
  void Perform(const InspectWorker& effect) { generation_.Inspect(effect.local_rank, effect.pid); }
  void Perform(const KillWorker& effect) { host_.Signal({SIGKILL, false, effect.local_rank}); }
  void Perform(const TellWorkers& effect) { generation_.Tell(effect.text); }

  void OpenStatus() {
    const absl::Status opened = status_.Open(generation_.StatusSocketPath());
    if (!opened.ok()) Log(LogLevel::kDebug, std::string(opened.message()));
  }

  // "table" or "json", a line break, and the job that is asked for, if it is one.
  std::string Answer(std::string_view question) const {
    const size_t end = question.find('\n');
    const std::string_view job = end == question.npos ? "" : question.substr(end + 1);
    if (!job.empty() && job != options_.job_id) return "";
    const NodeIdentity node{options_.job_id, options_.node_id, getpid(),
                            options_.settings.max_restarts};
    const bool is_json = question.substr(0, end) == "json";
    return (is_json ? NodeStatusJson : NodeStatusTable)(node, machine_, EventLoop::Now());
  }

  void Perform(const CloseGeneration&) {
    report_.Closing(machine_.outcome());
    generation_.Close();
  }

  void Perform(const Note& note) { Log(LevelOf(note.level), note.text); }
  void Perform(const End& end) { exit_code_ = end.exit_code; }

  // Tells the master of the workers' end. Nobody else is concerned in a job of one node.
  std::vector<std::string> LastWillCommand(const Assignment& assignment) const {
    if (options_.single_node()) return {};
    const Hello& hello = machine_options_.hello;
    std::vector<std::string> words = {OwnPath(),       "last-will",
                                      "--endpoint",    ToString(options_.endpoints()),
                                      "--job",         hello.job_id,
                                      "--node",        hello.node_id,
                                      "--incarnation", absl::StrCat(hello.incarnation),
                                      "--generation",  absl::StrCat(assignment.generation)};
    // Names of files, not what is in them.
    const ClientSecurity& security = options_.security;
    const std::pair<const char*, const std::string&> files[] = {
        {"--tls-ca", security.tls.ca},
        {"--tls-cert", security.tls.cert},
        {"--tls-key", security.tls.key},
        {"--tls-server-name", security.server_name},
        {"--token-file", security.token_file}};
    for (const auto& [option, value] : files) {
      if (!value.empty()) words.insert(words.end(), {option, value});
    }
    if (!options_.election.has_value()) return words;
    const EtcdOptions& etcd = options_.election->etcd;
    const std::vector<std::string> election = {"--etcd-prefix",
                                               options_.election->prefix,
                                               "--etcd-tls",
                                               etcd.tls ? "1" : "0",
                                               "--etcd-ca",
                                               etcd.ca_file,
                                               "--etcd-cert",
                                               etcd.cert_file,
                                               "--etcd-key",
                                               etcd.key_file,
                                               "--etcd-user",
                                               etcd.user,
                                               "--etcd-password-file",
                                               etcd.password_file};
    words.insert(words.end(), election.begin(), election.end());
    return words;
  }

  const AgentOptions& options_;
  SupervisorOptions machine_options_;
  SupervisorMachine machine_;
  EventLoop loop_;
  WardenHost host_;
  SignalSource signals_;
  GenerationShell generation_;
  NodeReport report_;
  StatusSocket status_;
  std::unique_ptr<RendezvousClient> client_;
  ReservedPort port_;  // for the next generation, and while it runs
  std::deque<SupervisorEvent> events_;
  bool is_dispatching_ = false;
  Time fence_ = kNever;  // what the warden knows
  std::optional<int> exit_code_;
};

}  // namespace

int RunAgent(const AgentOptions& options, const RendezvousFactory& factory) {
  EnsureStandardDescriptors();
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  if (const absl::Status s = CheckDescriptorLimit(options, descriptors.rlim_max); !s.ok()) {
    Log(LogLevel::kError, std::string(s.message()));
    return kExitNoProcess;
  }
  WardenOptions warden_options{options.orphan_grace, {}};
  if (options.node_lock_fd >= 0) warden_options.keep_fds.push_back(options.node_lock_fd);
  absl::StatusOr<WardenProcess> warden = ForkWarden(warden_options);
  if (!warden.ok()) {
    Log(LogLevel::kError, std::string(warden.status().message()));
    return kExitNoProcess;
  }
  // A reader that is gone and a file that may not grow are errors of a write, not of the job.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  return AgentLoop(options, *std::move(warden), factory).Run();
}

}  // namespace muster
