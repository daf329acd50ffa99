#include "tests/fakes/supervised_node.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "tests/fakes/message_text.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

std::string Number(int64_t number) { return std::to_string(number); }

std::string ShortSignal(int signal) { return SignalName(signal).substr(3); }

struct OrderText {
  std::string operator()(const ReservePort&) const { return "ReservePort"; }
  std::string operator()(const OpenStream&) const { return "OpenStream"; }
  std::string operator()(const SendToMaster& e) const { return "send " + Text(e.message); }
  std::string operator()(const FinishRendezvous&) const { return "FinishRendezvous"; }
  std::string operator()(const StartWorkers& e) const {
    return "StartWorkers{" + Number(e.assignment.generation) + "}";
  }
  std::string operator()(const SignalTree& e) const {
    return "SignalTree " + ShortSignal(e.signal);
  }
  std::string operator()(const SignalWorkers& e) const {
    return "SignalWorkers " + ShortSignal(e.signal);
  }
  std::string operator()(const Suspend&) const { return "Suspend"; }
  std::string operator()(const InspectWorker& e) const {
    return "InspectWorker{" + Number(e.local_rank) + "}";
  }
  std::string operator()(const KillWorker& e) const {
    return "KillWorker{" + Number(e.local_rank) + "}";
  }
  std::string operator()(const TellWorkers& e) const { return "TellWorkers " + e.text; }
  std::string operator()(const CloseGeneration&) const { return "CloseGeneration"; }
  std::string operator()(const Note& e) const { return "note: " + e.text; }
  std::string operator()(const End& e) const { return "End " + Number(e.exit_code); }
};

std::string Joined(const std::string& first, const std::string& second) {
  if (first == "-") return second;
  return second == "-" ? first : first + ", " + second;
}

}  // namespace

std::string EffectText(const SupervisorEffect& effect) { return std::visit(OrderText(), effect); }

std::string EffectsText(const SupervisorEffects& effects) {
  std::string text = "-";
  for (const SupervisorEffect& effect : effects) {
    if (!std::holds_alternative<Note>(effect)) text = Joined(text, EffectText(effect));
  }
  return text;
}

std::string PhaseText(SupervisorPhase phase) {
  switch (phase) {
    case SupervisorPhase::kJoining:
      return "joining";
    case SupervisorPhase::kRunning:
      return "running";
    case SupervisorPhase::kStopping:
      return "stopping";
    case SupervisorPhase::kSucceeded:
      return "succeeded";
    case SupervisorPhase::kFinishing:
      return "finishing";
    case SupervisorPhase::kEnded:
      return "ended";
  }
  return "?";
}

SupervisorOptions NodeOfMany() {
  SupervisorOptions options;
  options.hello.job_id = "job";
  options.hello.node_id = "node";
  options.hello.slots = 2;
  options.hello.settings.nodes_max = 2;
  options.stop_grace = 30s;
  options.orphan_grace = 500ms;
  options.has_remote_master = true;
  options.endpoint = "10.0.0.1:29400";
  options.seed = 7;
  return options;
}

SupervisorOptions NodeAlone() {
  SupervisorOptions options = NodeOfMany();
  options.hello.settings.nodes_max = 1;
  options.has_remote_master = false;
  return options;
}

Assignment SecondNode(int64_t generation) {
  Assignment assignment;
  assignment.generation = generation;
  assignment.group_rank = 1;
  assignment.group_world_size = 2;
  assignment.rank_base = 2;
  assignment.world_size = 4;
  assignment.master_addr = "10.0.0.1";
  assignment.master_port = 4000;
  return assignment;
}

std::string SupervisedNode::Step(const SupervisorEvent& event) {
  effects = machine.Step(now, event);
  for (const SupervisorEffect& effect : effects) {
    if (const auto* note = std::get_if<Note>(&effect)) notes_.push_back(note->text);
  }
  return EffectsText(effects);
}

std::string SupervisedNode::Pass(Duration span) {
  const Time end = now + span;
  std::string text = "-";
  while (machine.NextDeadline() <= end) {
    now = std::max(now, machine.NextDeadline());
    text = Joined(text, Step(TimeCame{}));
  }
  now = end;
  return text;
}

SupervisedNode& SupervisedNode::Join() {
  Step(Begin{});
  return ReservedPort();
}

SupervisedNode& SupervisedNode::RunGeneration(int64_t generation) {
  if (machine.assignment().generation == 0) Join();
  Hear(SecondNode(generation));
  for (int i = 0; i < machine.workers().size(); ++i) Step(WorkerSpawned{i, 100 + i});
  return *this;
}

}  // namespace muster
