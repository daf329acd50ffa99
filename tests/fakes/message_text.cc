#include "tests/fakes/message_text.h"

#include <cstdint>
#include <sstream>
#include <variant>

#include "rendezvous/settings.h"

namespace muster {
namespace {

std::string Number(int64_t number) { return std::to_string(number); }
std::string Port(int port) { return ", port " + Number(port); }

struct AgentText {
  std::string operator()(const Hello& m) const {
    const auto& failure = m.running.failure;
    const bool has_place = m.running.phase != WorkersPhase::kNone;
    return "Hello{" + std::string(Text(m.running.phase)) +
           (has_place ? " " + Number(m.running.assignment.generation) : "") +
           (m.running.fenced ? " fenced" : "") + Port(m.next_port) +
           (failure ? ", " + (*this)(*failure) : "") + "}";
  }
  std::string operator()(const Heartbeat& m) const {
    const auto& progress = m.progress;
    return "Heartbeat{" + Number(m.sequence) +
           (progress ? ", step " + Number(progress->step) + " of generation " +
                           Number(progress->generation) + " since " + DurationText(progress->since)
                     : "") +
           "}";
  }
  std::string operator()(const WorkersStarted& m) const {
    return "WorkersStarted{" + Number(m.generation) + "}";
  }
  std::string operator()(const WorkersReady& m) const {
    return "WorkersReady{" + Number(m.generation) + "}";
  }
  std::string operator()(const WorkersStopped& m) const {
    return "WorkersStopped{" + Number(m.generation) + Port(m.next_port) +
           (m.fenced ? ", fenced}" : "}");
  }
  std::string operator()(const WorkerFailed& m) const {
    return "WorkerFailed{" + Number(m.generation) + ", rank " + Number(m.rank) + ", " +
           m.status.ToString() + (m.can_restart ? "" : ", cannot restart") + "}";
  }
  std::string operator()(const WorkersSucceeded& m) const {
    return "WorkersSucceeded{" + Number(m.generation) + Port(m.next_port) + "}";
  }
  std::string operator()(const Leaving& m) const {
    return "Leaving{" + Number(m.generation) + ", " + m.detail + "}";
  }
  std::string operator()(const LastWill& m) const {
    return "LastWill{" + m.node_id + ", " + Number(m.generation) + "}";
  }
  std::string operator()(const CommitPoint& m) const {
    return "CommitPoint{" + Number(m.generation) + "}";
  }
};

struct MasterText {
  std::string operator()(const HeartbeatAck&) const { return "ack"; }
  std::string operator()(const Assignment& place) const {
    std::ostringstream text;
    text << "assignment generation=" << place.generation << " node=" << place.group_rank << "/"
         << place.group_world_size << " rank_base=" << place.rank_base << "/" << place.world_size
         << " role=" << place.role_rank_base << "/" << place.role_world_size
         << " master=" << place.master_addr << ":" << place.master_port
         << " restarts=" << place.restart_count;
    return text.str();
  }
  std::string operator()(const StopWorkers& stop) const {
    return "stop generation=" + std::to_string(stop.generation) + ": " + stop.reason;
  }
  std::string operator()(const Wait& wait) const {
    return "wait " + DurationText(wait.at_most) + ": " + wait.reason;
  }
  std::string operator()(const Drain& drain) const { return "drain: " + drain.reason; }
  std::string operator()(const Verdict& verdict) const {
    if (verdict.succeeded) {
      return "verdict succeeded" + (verdict.cause.empty() ? "" : ": " + verdict.cause);
    }
    return "verdict failed, exit code " + std::to_string(verdict.exit_code) + ": " + verdict.cause;
  }
  std::string operator()(const Drained& drained) const { return "drained: " + drained.reason; }
  std::string operator()(const Rejected& rejected) const {
    return "rejected, exit code " + std::to_string(rejected.exit_code) + ": " + rejected.reason;
  }
};

}  // namespace

std::string Text(const AgentMessage& message) { return std::visit(AgentText(), message); }

std::string Text(const MasterMessage& message) { return std::visit(MasterText(), message); }

const char* Text(WorkersPhase phase) {
  switch (phase) {
    case WorkersPhase::kNone:
      return "none";
    case WorkersPhase::kRunning:
      return "running";
    case WorkersPhase::kStopping:
      return "stopping";
    case WorkersPhase::kStopped:
      return "stopped";
    case WorkersPhase::kSucceeded:
      return "succeeded";
  }
  return "?";
}

}  // namespace muster
