#include <gtest/gtest.h>

#include <csignal>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "tests/fakes/supervised_node.h"

// A node in a random world: its workers, its warden, its master and its user do whatever they may
// do at any moment. After every step the promises of the machine must hold. A failure names the
// seed, and the last steps with their effects.

namespace muster {
namespace {

using namespace std::chrono_literals;
using Phase = SupervisorPhase;

class World {
 public:
  World(uint64_t seed, SupervisorOptions options)
      : random_(seed), can_lose_master_(options.has_remote_master), node_(std::move(options)) {}

  // True when the node came to its end.
  bool Run(int steps) {
    Tell(Begin{});
    for (int i = 0; i < steps && !has_ended_; ++i) Something();
    // Whatever state that left: two signals a second apart must end it, if only the kernel obeys.
    is_obedient_ = true;
    for (int i = 0; i < 2 && !has_ended_; ++i) {
      Tell(SignalReceived{SIGTERM, 1, false});
      Pass(1s);
    }
    for (int i = 0; i < 50 && !has_ended_; ++i) {
      KillSome();
      Pass(1s);
    }
    return has_ended_;
  }

  std::string Story() const {
    std::string text;
    for (const std::string& line : story_) text += line + "\n";
    return text;
  }

 private:
  enum class Life { kNone, kOrdered, kAlive, kReaped };
  struct Process {
    Life life = Life::kNone;
    bool got_kill = false;
  };

  int Chance(int n) { return static_cast<int>(random_() % n); }

  // Performs the event and what follows from it at once, as the shell does.
  void Tell(SupervisorEvent event) {
    events_.push_back(std::move(event));
    while (!events_.empty()) {
      const SupervisorEvent next = std::move(events_.front());
      events_.pop_front();
      const Phase before = node_.machine.phase();
      const std::string text = node_.Step(next);
      story_.push_back("event " + std::to_string(next.index()) + " in " + PhaseText(before) +
                       " ⇒ " + PhaseText(node_.machine.phase()) + ": " + text);
      if (story_.size() > 20) story_.pop_front();
      Check(std::holds_alternative<TimeCame>(next));
    }
  }

  void Check(bool time_was_served) {
    ASSERT_TRUE(!has_ended_ || node_.effects.empty()) << "an effect after the end";
    for (const SupervisorEffect& effect : SupervisorEffects(node_.effects)) {
      ASSERT_FALSE(has_ended_) << "End is not the last effect";
      std::visit([this](const auto& e) { Perform(e); }, effect);
    }
    ASSERT_EQ(has_ended_, node_.machine.phase() == Phase::kEnded);
    if (time_was_served) {
      ASSERT_GT(node_.machine.NextDeadline(), node_.now) << "a busy loop";
    }
    const bool has_workers =
        node_.machine.phase() == Phase::kRunning || node_.machine.phase() == Phase::kStopping;
    ASSERT_EQ(has_workers, is_open_) << "a generation is open in exactly two phases";
  }

  void Perform(const ReservePort&) {
    PortReserved port{Chance(20) == 0 ? 0 : 4000 + Chance(1000), ""};
    if (port.port == 0) port.problem = "no port to be had";
    events_.push_back(port);
  }
  void Perform(const OpenStream&) { stream_is_open_ = true; }
  void Perform(const SendToMaster& effect) {
    if (const auto* heartbeat = std::get_if<Heartbeat>(&effect.message)) {
      sequence_ = heartbeat->sequence;
    } else if (const auto* started = std::get_if<WorkersStarted>(&effect.message)) {
      EXPECT_EQ(started->generation, generation_);
    } else if (const auto* stopped = std::get_if<WorkersStopped>(&effect.message)) {
      EXPECT_EQ(stopped->generation, generation_);
      ExpectNothingAlive("WorkersStopped");
    } else if (const auto* succeeded = std::get_if<WorkersSucceeded>(&effect.message)) {
      EXPECT_EQ(succeeded->generation, generation_);
      ExpectNothingAlive("WorkersSucceeded");
    }
  }
  void Perform(const FinishRendezvous&) {
    EXPECT_FALSE(is_finishing_) << "finished twice";
    is_finishing_ = true;
  }
  void Perform(const StartWorkers& effect) {
    ExpectNothingAlive("StartWorkers");
    EXPECT_FALSE(is_open_);
    EXPECT_FALSE(is_finishing_);
    EXPECT_GT(effect.assignment.generation, generation_);
    generation_ = effect.assignment.generation;
    is_open_ = true;
    workers_.assign(node_.machine.workers().size(), {Life::kOrdered, false});
  }
  void Perform(const SignalTree& effect) {
    EXPECT_TRUE(is_open_);
    EXPECT_GT(AliveCount() + OrderedCount() + descendants_, 0) << "a signal to nobody";
    if (effect.signal != SIGKILL) return;
    for (Process& worker : workers_) worker.got_kill = true;
    kill_was_sent_ = true;
  }
  void Perform(const SignalWorkers&) { EXPECT_TRUE(is_open_); }
  void Perform(const Suspend&) {}
  void Perform(const InspectWorker&) { EXPECT_TRUE(is_open_); }
  void Perform(const KillWorker&) { EXPECT_TRUE(is_open_); }
  void Perform(const TellWorkers&) { EXPECT_TRUE(is_open_); }
  void Perform(const CloseGeneration&) {
    EXPECT_TRUE(is_open_) << "closed twice";
    is_open_ = false;
    kill_was_sent_ = false;
  }
  void Perform(const Note& note) { EXPECT_FALSE(note.text.empty()); }
  void Perform(const End& end) {
    has_ended_ = true;
    EXPECT_FALSE(is_open_);
    if (end.exit_code != 70) ExpectNothingAlive("End");
  }

  void ExpectNothingAlive(const char* effect) {
    EXPECT_EQ(AliveCount() + OrderedCount() + descendants_, 0) << "alive at " << effect;
  }
  int Count(Life life) const {
    int count = 0;
    for (const Process& worker : workers_) count += worker.life == life ? 1 : 0;
    return count;
  }
  int AliveCount() const { return Count(Life::kAlive); }
  int OrderedCount() const { return Count(Life::kOrdered); }

  // The workers that were ordered start, in order, before anything else becomes of them.
  bool StartOne() {
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i].life != Life::kOrdered) continue;
      const int local_rank = static_cast<int>(i);
      if (Chance(15) == 0) {
        workers_[i].life = Life::kReaped;
        const int codes[] = {126, 127, 71};
        Tell(SpawnFailed{local_rank, codes[Chance(3)], "cannot start"});
      } else {
        workers_[i].life = Life::kAlive;
        if (Chance(4) == 0) ++descendants_;
        Tell(WorkerSpawned{local_rank, 100 + local_rank});
      }
      return true;
    }
    return false;
  }

  void End(size_t i, ExitStatus status) {
    workers_[i].life = Life::kReaped;  // once, for only the living are ended here
    const bool tree_empty = AliveCount() + descendants_ == 0;
    Tell(WorkerExited{static_cast<int>(i), status, tree_empty});
  }

  bool EndOne() {
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i].life != Life::kAlive || Chance(2) == 0) continue;
      ExitStatus status;
      if (workers_[i].got_kill) {
        status = ExitStatus::Signalled(SIGKILL);
      } else if (Chance(3) == 0) {
        status = Chance(2) == 0 ? ExitStatus::Exited(1) : ExitStatus::Signalled(SIGTERM);
      }
      End(i, status);
      return true;
    }
    return false;
  }

  void KillSome() {
    while (!has_ended_ && StartOne()) {
    }
    for (size_t i = 0; i < workers_.size() && !has_ended_; ++i) {
      if (workers_[i].life == Life::kAlive && workers_[i].got_kill) {
        End(i, ExitStatus::Signalled(SIGKILL));
      }
    }
    if (kill_was_sent_) EndDescendants();
  }

  void EndDescendants() {
    if (descendants_ == 0) return;
    descendants_ = 0;
    if (AliveCount() + OrderedCount() == 0) Tell(TreeEmptied{});
  }

  void Pass(Duration span) {
    const Time end = node_.now + span;
    while (!has_ended_ && node_.machine.NextDeadline() <= end) {
      node_.now = std::max(node_.now, node_.machine.NextDeadline());
      Tell(TimeCame{});
      if (is_obedient_) KillSome();
    }
    node_.now = end;
  }

  void HearMaster() {
    if (!stream_is_open_ || is_finishing_) return;
    const int64_t generation = std::max<int64_t>(0, generation_ - Chance(2));
    switch (Chance(14)) {
      case 0:
        return Tell(FromMaster{StopWorkers{generation, "a node left"}});
      case 1:
        return Tell(FromMaster{Wait{"waiting " + std::to_string(Chance(3)), 1min}});
      case 2:
        return Tell(FromMaster{Drain{generation, "the operator asked"}});
      case 3:
        if (Chance(10) == 0) Tell(FromMaster{Verdict{false, 3, "rank 0 failed", "other", 0}});
        return;
      case 4:
        if (Chance(10) == 0) Tell(FromMaster{Rejected{77, "max_restarts differs"}});
        if (Chance(10) == 0) Tell(FromMaster{Drained{"node is drained by alice"}});
        return;
      case 5:
      case 6:
      case 7:
        return Tell(FromMaster{SecondNode(generation + 1)});
      default:
        return Tell(FromMaster{HeartbeatAck{sequence_}});
    }
  }

  void Something() {
    switch (Chance(10)) {
      case 0:
      case 1:
        return HearMaster();
      case 2:
        if (!StartOne()) HearMaster();
        return;
      case 3:
        if (OrderedCount() == 0) EndOne();
        return;
      case 4:
        if (Chance(3) == 0) EndDescendants();
        return;
      case 5:
        if (Chance(6) == 0 && stream_is_open_ && can_lose_master_) {
          stream_is_open_ = false;
          Tell(MasterLost{Chance(2) == 0, "connection reset"});
        }
        return;
      case 6:
        return Chatter();
      case 7:
        if (is_finishing_ && Chance(4) == 0) Tell(RendezvousDone{});
        return;
      default:
        return Pass(std::chrono::milliseconds(Chance(Chance(10) == 0 ? 100'000 : 2'000)));
    }
  }

  // What changes little, and what changes all.
  void Chatter() {
    const int local_rank = Chance(4) - 1;
    switch (Chance(60)) {
      case 0:
        return Tell(SignalReceived{SIGTERM, 1, false});
      case 1:
        // The kernel and the shell have cleared everything away.
        for (Process& worker : workers_) worker.life = Life::kReaped;
        descendants_ = 0;
        return Tell(WardenLost{});
      case 2:
      case 3:
        return Tell(SignalReceived{SIGUSR1, 1, true});
      default:
        return Tell(WorkerSaid{local_rank, Chance(2) == 0 ? "READY" : "STEP", "1"});
    }
  }

  std::mt19937_64 random_;
  bool can_lose_master_;
  SupervisedNode node_;
  std::deque<SupervisorEvent> events_;
  std::deque<std::string> story_;
  std::vector<Process> workers_;
  int descendants_ = 0;
  int64_t generation_ = 0;
  uint64_t sequence_ = 0;
  bool stream_is_open_ = false;
  bool is_open_ = false;
  bool is_finishing_ = false;
  bool is_obedient_ = false;
  bool kill_was_sent_ = false;
  bool has_ended_ = false;
};

void RunSeeds(uint64_t first, const SupervisorOptions& options) {
  for (uint64_t seed = first; seed < first + 2000; ++seed) {
    World world(seed, options);
    const bool has_ended = world.Run(200);
    ASSERT_TRUE(has_ended && !testing::Test::HasFailure())
        << "seed " << seed << ", the last steps:\n"
        << world.Story();
  }
}

TEST(SupervisorProperty, HoldsForANodeOfMany) { RunSeeds(1, NodeOfMany()); }

TEST(SupervisorProperty, HoldsForANodeAlone) { RunSeeds(1'000'000, NodeAlone()); }

TEST(SupervisorProperty, HoldsWhenTheMasterLossTimeoutIsShorterThanTheGrace) {
  SupervisorOptions options = NodeOfMany();
  options.hello.settings.master_loss_timeout = 12s;
  RunSeeds(2'000'000, options);
}

}  // namespace
}  // namespace muster
