#include "tests/sim/sim_text.h"

#include <cstdio>
#include <variant>

#include "tests/fakes/message_text.h"

namespace muster::sim {
namespace {

template <class... Ts>
struct Overload : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overload(Ts...) -> Overload<Ts...>;

std::string Number(int64_t number) { return std::to_string(number); }

std::string Place(const Assignment& a) {
  return "i" + Number(static_cast<int64_t>(a.instance)) + " g" + Number(a.generation) + " node " +
         Number(a.group_rank) + "/" + Number(a.group_world_size) + " ranks from " +
         Number(a.rank_base) + " of " + Number(a.world_size) + " at " + a.master_addr + ":" +
         Number(a.master_port) + " restarts " + Number(a.restart_count);
}

}  // namespace

std::string Text(Duration duration) {
  char text[32];
  snprintf(text, sizeof(text), "%.3fs", std::chrono::duration<double>(duration).count());
  return text;
}

std::string Text(const SupervisorEvent& event) {
  return std::visit(
      Overload{
          [](const Begin&) { return std::string("Begin"); },
          [](const PortReserved& e) { return "PortReserved " + Number(e.port); },
          [](const FromMaster& e) { return "<- " + Text(e.message); },
          [](const MasterLost& e) {
            return std::string("MasterLost") + (e.unreachable ? " unreachable" : "");
          },
          [](const RendezvousDone&) { return std::string("RendezvousDone"); },
          [](const WorkerSpawned& e) { return "WorkerSpawned " + Number(e.local_rank); },
          [](const SpawnFailed& e) {
            return "SpawnFailed " + Number(e.local_rank) + " " + Number(e.exit_code);
          },
          [](const WorkerExited& e) {
            return "WorkerExited " + Number(e.local_rank) + " " + e.status.ToString() +
                   (e.tree_empty ? ", tree empty" : "");
          },
          [](const TreeEmptied&) { return std::string("TreeEmptied"); },
          [](const WorkerSaid& e) {
            return "WorkerSaid " + Number(e.local_rank) + " " + e.key + "=" + e.value;
          },
          [](const SignalReceived& e) { return "SignalReceived " + Number(e.signal); },
          [](const SuspendAsked&) { return std::string("SuspendAsked"); },
          [](const WardenLost&) { return std::string("WardenLost"); },
          [](const TimeCame&) { return std::string("TimeCame"); },
      },
      event);
}

std::string Text(const SupervisorEffect& effect) {
  return std::visit(
      Overload{
          [](const ReservePort&) { return std::string("ReservePort"); },
          [](const OpenStream&) { return std::string("OpenStream"); },
          [](const SendToMaster& e) { return "-> " + Text(e.message); },
          [](const FinishRendezvous&) { return std::string("FinishRendezvous"); },
          [](const StartWorkers& e) { return "StartWorkers " + Place(e.assignment); },
          [](const SignalTree& e) { return "SignalTree " + Number(e.signal); },
          [](const SignalWorkers& e) { return "SignalWorkers " + Number(e.signal); },
          [](const Suspend&) { return std::string("Suspend"); },
          [](const InspectWorker& e) { return "InspectWorker " + Number(e.local_rank); },
          [](const KillWorker& e) { return "KillWorker " + Number(e.local_rank); },
          [](const TellWorkers& e) { return "TellWorkers " + e.text; },
          [](const CloseGeneration&) { return std::string("CloseGeneration"); },
          [](const Note& e) { return "\"" + e.text + "\""; },
          [](const End& e) { return "End " + Number(e.exit_code); },
      },
      effect);
}

std::string Text(const RoundEvent& event) {
  return std::visit(
      Overload{
          [](const MessageArrived& e) {
            return "s" + Number(static_cast<int64_t>(e.stream)) + " <- " + Text(e.message);
          },
          [](const StreamBroken& e) {
            return "s" + Number(static_cast<int64_t>(e.stream)) +
                   (e.half_closed ? " half-closed" : " broken");
          },
          [](const DeadlinePassed&) { return std::string("DeadlinePassed"); },
          [](const WokeUp& e) { return "WokeUp " + Text(e.missed); },
          [](const StopRequested& e) { return "StopRequested " + e.who; },
          [](const DrainRequested& e) { return "DrainRequested " + e.node_id + " by " + e.who; },
          [](const LeftAlone& e) { return "LeftAlone for " + Text(e.idle); },
      },
      event);
}

std::string Text(const RoundEffect& effect) {
  return std::visit(Overload{
                        [](const Persist&) { return std::string("persist"); },
                        [](const SendTo& e) {
                          return "s" + Number(static_cast<int64_t>(e.stream)) + " -> " +
                                 Text(e.message);
                        },
                        [](const CloseStreamTo& e) {
                          return "s" + Number(static_cast<int64_t>(e.stream)) + " closed";
                        },
                        [](const Decided& e) { return "\"" + Sentence(e.reason) + "\""; },
                    },
                    effect);
}

}  // namespace muster::sim
