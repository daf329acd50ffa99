// The state × event table of docs/RENDEZVOUS.md is what the machine does.
//   bazel run //tests/rendezvous:round_table_test -- --rewrite    writes the table as it is now
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "tests/rendezvous/test_job.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr char kDocument[] = "docs/RENDEZVOUS.md";
constexpr char kBegin[] = "<!-- table: begin -->\n";
constexpr char kEnd[] = "<!-- table: end -->\n";

// Every kind of event and message has a row. Whoever adds one adds a row below and counts it here.
static_assert(std::variant_size_v<RoundEvent> == 7);
static_assert(std::variant_size_v<AgentMessage> == 10);

struct Column {
  const char* name;
  std::function<void(TestJob&)> prepare;
};

struct Row {
  const char* name;
  std::function<void(TestJob&)> happen;
};

void StartTwo(TestJob& job) {
  job.Join("a");
  job.Join("b");
}

void JoinRunning(TestJob& job, const std::string& name, int group_rank) {
  Hello hello = job.HelloOf(name);
  hello.running.phase = WorkersPhase::kRunning;
  Assignment& place = hello.running.assignment;
  place.instance = 1;
  place.generation = 4;
  place.group_rank = group_rank;
  place.group_world_size = 2;
  place.rank_base = group_rank * 2;
  place.world_size = place.role_world_size = 4;
  place.role_rank_base = place.rank_base;
  job.Join(hello);
}

// The job is one of two nodes and one restart. The event comes from a, which is here in every
// state.
const std::vector<Column>& Columns() {
  static const auto* columns = new std::vector<Column>{
      {"forming",
       [](TestJob& job) {
         StartTwo(job);
         job.Break("b");
         job.Stopped("a");
       }},
      {"recovering", [](TestJob& job) { JoinRunning(job, "a", 0); }},
      {"running", StartTwo},
      {"stopping",
       [](TestJob& job) {
         StartTwo(job);
         job.Failed("b", 3, 1min);
         job.Stopped("b");
       }},
      {"closed",
       [](TestJob& job) {
         StartTwo(job);
         job.Succeeded("a");
         job.Succeeded("b");
       }},
  };
  return *columns;
}

WorkerFailed FailureOf(const TestJob& job, bool can_restart) {
  WorkerFailed failed;
  failed.generation = job.machine().generation();
  failed.status = ExitStatus::Exited(3);
  failed.uptime = 1min;
  failed.can_restart = can_restart;
  return failed;
}

const std::vector<Row>& Rows() {
  static const auto* rows = new std::vector<Row>{
      {"`Hello` of a newcomer c", [](TestJob& job) { job.Join("c"); }},
      {"`Hello` of a again, workers as before",
       [](TestJob& job) { job.Rejoin("a", job.node("a").phase); }},
      {"`Hello` of a newer process of a",
       [](TestJob& job) {
         Hello hello = job.HelloOf("a");
         ++hello.incarnation;
         job.Join(hello);
       }},
      {"`Hello` of c with other settings",
       [](TestJob& job) {
         Hello hello = job.HelloOf("c");
         hello.settings.max_restarts += 1;
         job.Join(hello);
       }},
      {"`Heartbeat`", [](TestJob& job) { job.Say("a", Heartbeat{7}); }},
      {"`WorkersStarted`",
       [](TestJob& job) { job.Say("a", WorkersStarted{job.machine().generation()}); }},
      {"`WorkersReady`",
       [](TestJob& job) { job.Say("a", WorkersReady{job.machine().generation()}); }},
      {"`WorkersStopped`", [](TestJob& job) { job.Stopped("a"); }},
      {"`WorkersStopped`, older generation",
       [](TestJob& job) {
         job.Say("a", WorkersStopped{job.machine().generation() - 1, 1});
       }},
      {"`WorkersReady`, older generation",
       [](TestJob& job) { job.Say("a", WorkersReady{job.machine().generation() - 1}); }},
      {"`WorkerFailed`", [](TestJob& job) { job.Say("a", FailureOf(job, true)); }},
      {"`WorkerFailed`, cannot restart", [](TestJob& job) { job.Say("a", FailureOf(job, false)); }},
      {"`WorkersSucceeded`", [](TestJob& job) { job.Succeeded("a"); }},
      {"`CommitPoint`",
       [](TestJob& job) { job.Say("a", CommitPoint{job.machine().generation()}); }},
      {"`CommitPoint`, older generation",
       [](TestJob& job) { job.Say("a", CommitPoint{job.machine().generation() - 1}); }},
      {"`Leaving`, a signal",
       [](TestJob& job) {
         job.Say("a", Leaving{job.machine().generation(), LeaveCause::kSignal, "SIGTERM"});
       }},
      {"`LastWill` of a's warden",
       [](TestJob& job) {
         job.Will({"job", "a", job.HelloOf("a").incarnation, job.machine().generation()});
       }},
      {"stream of a broke", [](TestJob& job) { job.Break("a"); }},
      {"stream of a half-closed", [](TestJob& job) { job.Break("a", true); }},
      {"a silent for the lease",
       [](TestJob& job) {
         job.Mute("a");
         job.Advance(job.settings().lease());
       }},
      {"a deadline before its time", [](TestJob& job) { job.Step(DeadlinePassed{}); }},
      {"`WokeUp`", [](TestJob& job) { job.Step(WokeUp{10s}); }},
      {"`StopRequested`", [](TestJob& job) { job.Step(StopRequested{"alice"}); }},
      {"`DrainRequested`, a",
       [](TestJob& job) {
         job.Step(DrainRequested{"a", "alice"});
       }},
      {"`DrainRequested`, the job",
       [](TestJob& job) {
         job.Step(DrainRequested{"", "alice"});
       }},
      {"`LeftAlone` though a is here", [](TestJob& job) { job.Step(LeftAlone{1h}); }},
  };
  return *rows;
}

const char* NameOf(RoundPhase phase) { return Columns()[static_cast<size_t>(phase)].name; }

const char* NameOf(const MasterMessage& message) {
  static constexpr const char* kNames[] = {"ack",   "assignment", "stop",     "wait",
                                           "drain", "verdict",    "rejected", "drained"};
  static_assert(std::variant_size_v<MasterMessage> == std::size(kNames));
  return kNames[message.index()];
}

// "→ stopping; b: stop". One entry for each agent: what it is told in all.
std::string Cell(const Column& column, const Row& row) {
  JobSettings settings = NodesFrom(2, 2, 1);
  settings.keep_alive_interval = 3s;
  TestJob job(settings);
  column.prepare(job);
  const RoundPhase before = job.machine().phase();
  std::map<std::string, std::string> told;
  job.Watch([&](const RoundEffects& effects) {
    for (const RoundEffect& effect : effects) {
      std::string name;
      std::string what;
      if (const auto* send = std::get_if<SendTo>(&effect)) {
        name = job.NameOf(send->stream);
        what = NameOf(send->message);
      } else if (const auto* close = std::get_if<CloseStreamTo>(&effect)) {
        name = job.NameOf(close->stream);
        what = "end";
      } else {
        continue;
      }
      told[name] += (told[name].empty() ? "" : ", ") + what;
    }
  });
  row.happen(job);
  EXPECT_EQ(job.broken(), "");
  std::string cell;
  if (job.machine().phase() != before) cell = std::string("→ ") + NameOf(job.machine().phase());
  if (job.machine().generation() > 1 && job.machine().phase() == RoundPhase::kRunning &&
      before == RoundPhase::kStopping) {
    cell += " (next)";
  }
  for (const auto& [name, what] : told) {
    cell += (cell.empty() ? "" : "; ") + name + ": " + what;
  }
  return cell.empty() ? "·" : cell;
}

std::string Table() {
  std::string table = "| event |";
  std::string line = "| --- |";
  for (const Column& column : Columns()) {
    table += std::string(" ") + column.name + " |";
    line += " --- |";
  }
  table += "\n" + line + "\n";
  for (const Row& row : Rows()) {
    table += std::string("| ") + row.name + " |";
    for (const Column& column : Columns()) table += " " + Cell(column, row) + " |";
    table += "\n";
  }
  return table;
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(RoundTable, ColumnsAreTheStates) {
  for (const Column& column : Columns()) {
    TestJob job(NodesFrom(2, 2, 1));
    column.prepare(job);
    EXPECT_STREQ(NameOf(job.machine().phase()), column.name);
  }
}

TEST(RoundTable, DocumentSaysWhatTheMachineDoes) {
  const std::string document = Read(kDocument);
  const size_t begin = document.find(kBegin);
  const size_t end = document.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const size_t from = begin + sizeof(kBegin) - 1;
  EXPECT_EQ(document.substr(from, end - from), Table())
      << "if that is right: bazel run //tests/rendezvous:round_table_test -- --rewrite";
}

int Rewrite() {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  const std::string path = std::string(workspace != nullptr ? workspace : ".") + "/" + kDocument;
  const std::string document = Read(path);
  const size_t begin = document.find(kBegin);
  const size_t end = document.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos) return 1;
  std::ofstream(path) << document.substr(0, begin) << kBegin << Table() << document.substr(end);
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::string(argv[1]) == "--rewrite") return muster::Rewrite();
  return RUN_ALL_TESTS();
}
