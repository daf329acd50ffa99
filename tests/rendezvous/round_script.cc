#include "tests/rendezvous/round_script.h"

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <variant>

#include "rendezvous/job_status.h"
#include "tests/fakes/message_text.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

Duration ReadDuration(const std::string& text) {
  char* unit = nullptr;
  const long long number = std::strtoll(text.c_str(), &unit, 10);
  const std::string name = unit;
  if (name == "ms") return std::chrono::milliseconds(number);
  if (name == "m") return std::chrono::minutes(number);
  if (name == "h") return std::chrono::hours(number);
  return std::chrono::seconds(number);
}

WorkersPhase ReadPhase(const std::string& text) {
  if (text == "running") return WorkersPhase::kRunning;
  if (text == "stopping") return WorkersPhase::kStopping;
  if (text == "stopped") return WorkersPhase::kStopped;
  if (text == "succeeded") return WorkersPhase::kSucceeded;
  return WorkersPhase::kNone;
}

}  // namespace

std::string RoundScript::Command::Named(const std::string& key, const std::string& other) const {
  const auto found = named.find(key);
  return found == named.end() ? other : found->second;
}

int RoundScript::Command::Number(const std::string& key, int otherwise) const {
  const auto found = named.find(key);
  return found == named.end() ? otherwise : std::atoi(found->second.c_str());
}

RoundScript::RoundScript() { Job({}); }

std::string RoundScript::Run(const std::string& commands) {
  output_.clear();
  std::istringstream parts(commands);
  for (std::string part; std::getline(parts, part, ';');) RunOne(Parse(part));
  if (!job_->broken().empty()) Line("INVARIANT BROKEN: " + job_->broken());
  return std::exchange(output_, "");
}

RoundScript::Command RoundScript::Parse(const std::string& text) {
  Command command;
  std::istringstream words(text);
  words >> command.verb;
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      command.words.push_back(word);
    } else {
      command.named[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  return command;
}

void RoundScript::RunOne(const Command& command) {
  const std::string& verb = command.verb;
  const std::string name = command.Word(0);
  shown_time_ = job_->now();
  if (verb == "job") return Job(command);
  if (verb == "join") return Join(command);
  if (verb == "will") return Will(command, name);
  if (verb == "advance") return job_->Advance(ReadDuration(name));
  if (verb == "freeze") return job_->Freeze(ReadDuration(name));
  if (verb == "show") return Show();
  if (verb == "stop") {
    job_->Step(StopRequested{name});
    return;
  }
  if (verb == "drain") {
    const std::string node = name == "job" ? "" : name;
    job_->Step(DrainRequested{node, "alice", ReadDuration(command.Named("within", "0"))});
    return;
  }
  if (hellos_.count(name) == 0 || !RunReport(command, name)) Line("error: cannot run " + verb);
}

// What the agent of a node does.
bool RoundScript::RunReport(const Command& command, const std::string& name) {
  const std::string& verb = command.verb;
  const int64_t generation =
      command.Number("generation", static_cast<int>(job_->machine().generation()));
  const int port = command.Number("port", hellos_[name].next_port);
  if (verb == "fail") {
    Fail(command, name);
  } else if (verb == "leave") {
    Leave(command, name);
  } else if (verb == "started") {
    job_->Say(name, WorkersStarted{generation});
  } else if (verb == "ready") {
    job_->Say(name, WorkersReady{generation});
  } else if (verb == "stopped") {
    job_->Say(name, WorkersStopped{generation, port, command.Named("fenced", "no") == "yes"});
  } else if (verb == "succeeded") {
    job_->Say(name, WorkersSucceeded{generation, port, command.Named("drained", "no") == "yes"});
  } else if (verb == "commit") {
    job_->Say(name, CommitPoint{generation});
  } else if (verb == "break") {
    job_->Break(name);
  } else if (verb == "ack") {
    job_->Break(name, true);
  } else if (verb == "mute") {
    job_->Mute(name);
  } else if (verb == "rejoin") {
    job_->Rejoin(name, ReadPhase(command.Word(1)), command.Named("fenced", "no") == "yes");
  } else {
    return false;
  }
  return true;
}

void RoundScript::Job(const Command& command) {
  JobSettings settings;
  const std::string nodes = command.Named("nodes", "1");
  const size_t colon = nodes.find(':');
  settings.nodes_min = std::atoi(nodes.c_str());
  settings.nodes_max =
      colon == std::string::npos ? settings.nodes_min : std::atoi(nodes.c_str() + colon + 1);
  settings.max_restarts = command.Number("restarts", 0);
  settings.max_start_failures = command.Number("start_failures", 0);
  settings.max_restart_delay = std::chrono::seconds(command.Number("restart_delay", 30));
  settings.node_unit = command.Number("unit", 1);
  settings.max_node_failures = command.Number("node_failures", 0);
  settings.node_failure_window = ReadDuration(command.Named("window", "1h"));
  if (command.Named("fencing", "token") == "strict") {
    settings.fencing = Fencing::kStrict;
    settings.master_loss_timeout = 30s;
  }
  if (command.Named("policy", "now") == "restart") settings.join_policy = JoinPolicy::kRestart;
  if (command.Named("policy", "now") == "checkpoint") {
    settings.join_policy = JoinPolicy::kCheckpoint;
  }
  settings_ = settings;
  hellos_.clear();
  job_ = std::make_unique<TestJob>(settings);
  job_->Watch([this](const RoundEffects& effects) { Print(effects); });
}

void RoundScript::Join(const Command& command) {
  const std::string name = command.Word(0);
  Hello hello = job_->HelloOf(name);
  hello.incarnation = command.Number("incarnation", static_cast<int>(hello.incarnation));
  hello.attempt = command.Number("attempt", static_cast<int>(hello.attempt));
  hello.slots = command.Number("slots", 1);
  hello.role = command.Named("role", "default");
  hello.topology_key = command.Named("topology", "");
  hello.fixed_group_rank = command.Number("rank", -1);
  hello.local_addr = command.Named("local_addr", "");
  hello.dialled_host = command.Named("dialled", hello.dialled_host);
  hello.fixed_master_addr = command.Named("master_addr", "");
  hello.fixed_master_port = command.Number("master_port", 0);
  hello.next_port = command.Number("port", hello.next_port);
  hello.settings.max_restarts = command.Number("restarts", settings_.max_restarts);
  hello.settings.join_timeout = std::chrono::seconds(command.Number("join_timeout", 600));
  hello.attached_before = command.Named("before", "no") == "yes";
  if (command.named.count("running") > 0) {
    Assignment& place = hello.running.assignment;
    hello.running.phase = ReadPhase(command.Named("running", ""));
    place.instance = command.Number("instance", 1);
    place.generation = command.Number("generation", 1);
    place.group_rank = command.Number("node", 0);
    place.group_world_size = command.Number("nodes", settings_.nodes_max);
    place.rank_base = place.group_rank;
    place.world_size = place.group_world_size;
    place.role_rank_base = place.rank_base;
    place.role_world_size = place.world_size;
    place.restart_count = command.Number("used", 0);
    hello.running.drained = command.Named("drained", "no") == "yes";
    hello.running.fenced = command.Named("fenced", "no") == "yes";
    // One letter a member.
    for (char member : command.Named("members", "")) place.members.emplace_back(1, member);
    place.master_addr = "10.0.0.1";
    place.master_port = 29999;
    if (command.named.count("failed") > 0) {
      WorkerFailed failed;
      failed.generation = place.generation;
      failed.rank = place.rank_base;
      failed.status = ExitStatus::Exited(command.Number("failed", 1));
      failed.uptime = ReadDuration(command.Named("uptime", "60s"));
      failed.can_restart = command.Named("fatal", "no") == "no";
      hello.running.failure = failed;
    }
  }
  hellos_[name] = hello;
  job_->Join(hello, command.Named("from", ""));
}

void RoundScript::Fail(const Command& command, const std::string& name) {
  WorkerFailed failed;
  failed.generation = command.Number("generation", static_cast<int>(job_->machine().generation()));
  failed.rank = command.Number("rank", 0);
  failed.pid = 100;
  const int signal = command.Number("signal", 0);
  failed.status =
      signal > 0 ? ExitStatus::Signalled(signal) : ExitStatus::Exited(command.Number("exit", 1));
  failed.uptime = ReadDuration(command.Named("uptime", "60s"));
  failed.message = command.Named("message", "");
  failed.can_restart = command.Named("fatal", "no") == "no";
  job_->Say(name, failed);
}

void RoundScript::Leave(const Command& command, const std::string& name) {
  Leaving leaving;
  leaving.generation = job_->machine().generation();
  const std::string cause = command.Named("cause", "signal");
  if (cause == "drained") leaving.cause = LeaveCause::kDrained;
  if (cause == "operator") leaving.cause = LeaveCause::kOperator;
  if (cause == "signal") leaving.detail = "SIGTERM";
  job_->Say(name, leaving);
}

void RoundScript::Will(const Command& command, const std::string& name) {
  LastWill will{"job", name, 0, 0};
  will.incarnation = command.Number("incarnation", static_cast<int>(hellos_[name].incarnation));
  will.generation = command.Number("generation", static_cast<int>(job_->machine().generation()));
  job_->Will(will);
}

void RoundScript::Show() {
  const RoundMachine& machine = job_->machine();
  std::ostringstream text;
  text << Label(machine.phase()) << " generation=" << machine.generation()
       << " restarts=" << machine.restarts_used() << (machine.finished() ? " finished" : "") << ": "
       << Sentence(machine.reason());
  Line(text.str());
  for (const auto& [id, node] : machine.nodes()) {
    std::ostringstream line;
    line << "  " << id << ": " << (node.attached() ? "here" : "lost") << " rank=" << node.group_rank
         << " workers=" << Text(node.phase) << (node.started ? " started" : "")
         << (node.ready ? " ready" : "") << (node.leaving ? " leaving" : "")
         << (node.draining ? " draining" : "") << (node.excluded ? " excluded" : "")
         << (node.acknowledged ? " acknowledged" : "");
    if (node.stale_generation != 0) line << " stale=" << node.stale_generation;
    Line(line.str());
  }
}

void RoundScript::Print(const RoundEffects& effects) {
  if (effects.empty()) return;
  if (job_->now() != shown_time_) {
    shown_time_ = job_->now();
    Line("[" + DurationText(shown_time_.time_since_epoch() - 1h) + "]");
  }
  for (const RoundEffect& effect : effects) {
    if (const auto* send = std::get_if<SendTo>(&effect)) {
      Line(job_->NameOf(send->stream) + " < " + Text(send->message));
    } else if (const auto* close = std::get_if<CloseStreamTo>(&effect)) {
      Line(job_->NameOf(close->stream) + " < end of stream");
    } else if (const auto* decided = std::get_if<Decided>(&effect)) {
      Line("* " + Sentence(decided->reason));
    }
  }
}

void RoundScript::Line(const std::string& text) { output_ += text + "\n"; }

}  // namespace muster
