#include "rendezvous/admission_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Hello HelloOf(int nodes_max) {
  Hello hello;
  hello.job_id = "digits";
  hello.node_id = "a";
  hello.settings.nodes_max = nodes_max;
  return hello;
}

struct Case {
  const char* name;
  MasterLimits limits;
  MasterLoad load;
  int nodes_max;  // of the agent's settings
  int exit_code;  // 0: let in
  const char* why = "";
};

TEST(AdmissionLimits, EachRefusalHasItsCodeAndSaysWhichLimit) {
  const MasterLoad new_job{.jobs = 2, .opens_job = true};
  const MasterLoad old_job{.jobs = 2, .nodes = 4};
  const MasterLoad member{.jobs = 2, .nodes = 4, .is_of_them = true};
  const MasterLimits two_jobs{.jobs_max = 2};
  const std::vector<Case> cases = {
      {"no limits", {}, {.jobs = 1000000, .opens_job = true}, 1000000, 0},
      {"room for a job", {.jobs_max = 3}, new_job, 1, 0},
      {"no room for a job", two_jobs, new_job, 1, 75, "has 2 jobs and takes no more (--max-jobs)"},
      {"one job is enough", {.jobs_max = 1}, {.jobs = 1, .opens_job = true}, 1, 75, "has 1 job "},
      {"a job that is there", two_jobs, old_job, 1, 0},
      {"a job that fits exactly", {.nodes_max = 8}, new_job, 8, 0},
      {"a job that never fits",
       {.nodes_max = 8},
       new_job,
       9,
       78,
       "up to 9 nodes, and this master "
       "takes 8 in a job (--max-nodes)"},
      {"one node more", {.nodes_max = 4}, old_job, 4, 75, "the job has 4 nodes and gets no more"},
      {"a node of the job again", {.nodes_max = 4}, member, 4, 0},
      {"never beats later", {.jobs_max = 2, .nodes_max = 8}, new_job, 9, 78, "--max-nodes"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Hello hello = HelloOf(each.nodes_max);
    const std::optional<NoRoom> no_room = NoRoomFor(each.limits, each.load, hello);
    EXPECT_EQ(no_room.has_value() ? no_room->exit_code : 0, each.exit_code);
    if (no_room.has_value()) {
      EXPECT_THAT(Sentence(no_room->reason), StartsWith("node a is refused: "));
      EXPECT_THAT(no_room->reason.detail, HasSubstr(each.why));
    }
    // Who was in already is let in, whatever the limits are by now.
    Hello back = hello;
    back.attached_before = true;
    EXPECT_FALSE(NoRoomFor(each.limits, each.load, back).has_value());
    hello.running.phase = WorkersPhase::kRunning;
    EXPECT_FALSE(NoRoomFor(each.limits, each.load, hello).has_value());
  }
}

TEST(StreamGate, WithoutLimitsEverythingEnters) {
  StreamGate gate({});
  for (size_t open = 0; open < 100; ++open) EXPECT_EQ(gate.Enter(Time{}, open), std::nullopt);
}

TEST(StreamGate, OnlySoManyAreOpenAtOnce) {
  StreamGate gate({.streams_max = 2});
  EXPECT_EQ(gate.Enter(Time{}, 1), std::nullopt);
  EXPECT_THAT(gate.Enter(Time{}, 2).value_or(""), HasSubstr("--max-agents"));
  EXPECT_EQ(gate.Enter(Time{}, 1), std::nullopt);
}

TEST(StreamGate, ASecondsWorthComesAtOnceAndThenAsTimeAllows) {
  StreamGate gate({.streams_per_second = 4});
  const Time start{};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(gate.Enter(start, 0), std::nullopt) << i;
  EXPECT_THAT(gate.Enter(start, 0).value_or(""), HasSubstr("--joins-per-second"));
  EXPECT_NE(gate.Enter(start + milliseconds(200), 0), std::nullopt);
  EXPECT_EQ(gate.Enter(start + milliseconds(250), 0), std::nullopt);
  EXPECT_NE(gate.Enter(start + milliseconds(250), 0), std::nullopt);
}

TEST(StreamGate, ALongPauseSavesUpNoMoreThanASecondsWorth) {
  StreamGate gate({.streams_per_second = 2});
  const Time start{};
  EXPECT_EQ(gate.Enter(start, 0), std::nullopt);
  const Time later = start + seconds(3600);
  EXPECT_EQ(gate.Enter(later, 0), std::nullopt);
  EXPECT_EQ(gate.Enter(later, 0), std::nullopt);
  EXPECT_NE(gate.Enter(later, 0), std::nullopt);
}

TEST(StreamGate, AFullMasterUsesUpNoTurn) {
  StreamGate gate({.streams_max = 1, .streams_per_second = 1});
  EXPECT_NE(gate.Enter(Time{}, 1), std::nullopt);
  EXPECT_EQ(gate.Enter(Time{}, 0), std::nullopt);
}

}  // namespace
}  // namespace muster
