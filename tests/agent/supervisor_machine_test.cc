#include "agent/supervisor_machine.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/fakes/supervised_node.h"

// Every phase with every event, against the table in docs/SUPERVISION.md: document and machine
// agree cell by cell. MUSTER_PRINT_TABLE=1 prints the table as the machine has it.

namespace muster {
namespace {

using namespace std::chrono_literals;
using Phase = SupervisorPhase;
using Node = SupervisedNode;

constexpr std::array<Phase, 5> kColumns = {Phase::kJoining, Phase::kRunning, Phase::kStopping,
                                           Phase::kSucceeded, Phase::kFinishing};
constexpr int64_t kGeneration = 3;
const char* const kCannotCome = "✗";

Verdict Failed() { return {false, 3, "rank 0 failed", "other", 0}; }

// A node that has got into `phase` the usual way: generation 3, nothing left to be said.
Node In(Phase phase) {
  Node node;
  node.RunGeneration(kGeneration);
  switch (phase) {
    case Phase::kRunning:
      break;
    case Phase::kStopping:
      node.Hear(StopWorkers{kGeneration, "a node left"});
      break;
    case Phase::kJoining:
      node.Hear(StopWorkers{kGeneration, "a node left"});
      node.Die(0, SIGTERM, false);
      node.Die(1, SIGTERM, true);
      node.ReservedPort();
      break;
    case Phase::kSucceeded:
      node.Exit(0, 0, false);
      node.Exit(1, 0, true);
      node.ReservedPort();
      break;
    case Phase::kFinishing:
    case Phase::kEnded:
      node = In(Phase::kJoining);
      node.Hear(Failed());
      if (phase == Phase::kEnded) node.Step(RendezvousDone{});
      break;
  }
  return node;
}

// The same, but the workers of a running or stopping node have not been started yet.
Node Starting(Phase phase) {
  if (phase != Phase::kRunning && phase != Phase::kStopping) return In(phase);
  Node node;
  node.Join();
  node.Hear(SecondNode(kGeneration));
  if (phase == Phase::kStopping) node.Hear(StopWorkers{kGeneration, "a node left"});
  return node;
}

// Workers may be silent for 2 s.
Node Impatient(Phase) {
  SupervisorOptions options = NodeOfMany();
  options.hello.settings.stall_timeout = 2s;
  Node node(options);
  node.RunGeneration(kGeneration);
  return node;
}

// A node that was told to leave by a signal.
Node Signalled(Phase phase) {
  Node node = In(phase == Phase::kStopping ? Phase::kRunning : Phase::kJoining);
  node.Signal(SIGTERM);
  return node;
}

// One row: an event as the table names it.
struct Row {
  std::string name;
  std::function<std::string(Node&)> act;
  std::function<Node(Phase)> in = In;
  std::vector<Phase> cannot_come = {};
};

std::vector<Phase> AllBut(std::initializer_list<Phase> can_come) {
  std::vector<Phase> others;
  for (Phase phase : kColumns) {
    if (std::count(can_come.begin(), can_come.end(), phase) == 0) others.push_back(phase);
  }
  return others;
}

Row Heard(const std::string& name, const MasterMessage& message) {
  return {name, [message](Node& node) { return node.Hear(message); }};
}

Row Happened(const std::string& name, const SupervisorEvent& event) {
  return {name, [event](Node& node) { return node.Step(event); }};
}

std::vector<Row> BeginningRows() {
  const auto fresh = [](Phase) { return Node(); };
  const auto begun = [](Phase) {
    Node node;
    node.Step(Begin{});
    return node;
  };
  const auto reporting = [](Phase phase) {
    if (phase != Phase::kJoining && phase != Phase::kSucceeded) return In(phase);
    Node node = In(Phase::kRunning);
    if (phase == Phase::kJoining) node.Hear(StopWorkers{kGeneration, "a node left"});
    node.Exit(0, 0, false);
    node.Exit(1, 0, true);
    return node;
  };
  const auto port = [](Node& node) { return node.Step(PortReserved{4009, ""}); };
  return {
      {"Begin", [](Node& n) { return n.Step(Begin{}); }, fresh, AllBut({Phase::kJoining})},
      {"PortReserved, the first", port, begun, AllBut({Phase::kJoining})},
      {"PortReserved, for a report", port, reporting,
       AllBut({Phase::kJoining, Phase::kSucceeded, Phase::kFinishing})},
  };
}

std::vector<Row> MasterRows() {
  return {
      Heard("Assignment, newer", SecondNode(kGeneration + 1)),
      Heard("Assignment, this generation or older", SecondNode(kGeneration)),
      Heard("StopWorkers", StopWorkers{kGeneration, "a node left"}),
      Heard("StopWorkers, older generation", StopWorkers{kGeneration - 1, "a node left"}),
      Heard("Wait", Wait{"waiting for nodes: 1 of 2 are here", 10min}),
      Heard("HeartbeatAck", HeartbeatAck{0}),
      Heard("Drain", Drain{kGeneration, "the operator asked"}),
      Heard("Drain, older generation", Drain{kGeneration - 1, "the operator asked"}),
      Heard("Verdict", Failed()),
      Heard("Rejected", Rejected{77, "max_restarts differs"}),
      Heard("Drained", Drained{"node is drained by alice"}),
      Happened("MasterLost", MasterLost{false, "connection reset"}),
      Happened("RendezvousDone", RendezvousDone{}),
  };
}

std::vector<Row> WorkerRows() {
  const auto last = [](int code, bool tree_empty) {
    return [=](Node& node) {
      node.Exit(0, 0, false);
      return node.Exit(1, code, tree_empty);
    };
  };
  const auto others_run = [](int code) {
    return [=](Node& node) { return node.Exit(0, code, false); };
  };
  const auto left_alone = AllBut({Phase::kRunning, Phase::kStopping});
  return {
      {"WorkerSpawned, not the last",
       [](Node& n) {
         return n.Step(WorkerSpawned{0, 100});
       },
       Starting, left_alone},
      {"WorkerSpawned, the last",
       [](Node& n) {
         n.Step(WorkerSpawned{0, 100});
         return n.Step(WorkerSpawned{1, 101});
       },
       Starting, left_alone},
      {"SpawnFailed, the other one runs",
       [](Node& n) {
         n.Step(WorkerSpawned{0, 100});
         return n.Step(SpawnFailed{1, 127, "no such file"});
       },
       Starting, left_alone},
      {"WorkerExited 0, others run", others_run(0), In, left_alone},
      {"WorkerExited 0, the last, nothing left", last(0, true), In, left_alone},
      {"WorkerExited 0, the last, descendants left", last(0, false), In, left_alone},
      {"WorkerExited 1, others run", others_run(1), In, left_alone},
      {"WorkerExited 1, the last, nothing left", last(1, true), In, left_alone},
      {"WorkerExited 1, the last, descendants left", last(1, false), In, left_alone},
      {"TreeEmptied, after the last worker",
       [](Node& n) {
         n.Exit(0, 0, false);
         n.Exit(1, 0, false);
         return n.Step(TreeEmptied{});
       },
       In, AllBut({Phase::kStopping})},
      {"WorkerSaid READY=1, the last to do so",
       [](Node& n) {
         n.Step(WorkerSaid{0, "READY", "1"});
         return n.Step(WorkerSaid{1, "READY", "1"});
       },
       In, left_alone},
      {"WorkerSaid, anything else",
       [](Node& n) {
         return n.Step(WorkerSaid{0, "STEP", "7"});
       },
       In, left_alone},
  };
}

std::vector<Row> SignalRows() {
  const auto again_after = [](Duration span) {
    return [span](Node& node) {
      node.now += span;
      return node.Signal(SIGTERM);
    };
  };
  const auto were_signalled = AllBut({Phase::kStopping, Phase::kFinishing});
  return {
      Happened("SignalReceived", SignalReceived{SIGTERM, 812, false}),
      {"SignalReceived, again within 1 s", again_after(999ms), Signalled, were_signalled},
      {"SignalReceived, again after 1 s", again_after(1s), Signalled, were_signalled},
      Happened("SignalReceived, to be forwarded", SignalReceived{SIGUSR1, 812, true}),
      Happened("SuspendAsked", SuspendAsked{}),
      Happened("WardenLost", WardenLost{}),
  };
}

// How long a node of `phase` gets along without a master; where it does not count, any time at
// which nothing else is due.
Duration PatienceWithoutMaster(Phase phase) {
  if (phase == Phase::kJoining) return 10min;
  if (phase == Phase::kRunning) return 1h - 30s;
  return phase == Phase::kSucceeded ? Duration(5min) : Duration(20s);
}

std::vector<Row> TimeRows() {
  return {
      {"TimeCame, nothing is due", [](Node& n) { return n.Step(TimeCame{}); }},
      {"TimeCame, heartbeat", [](Node& n) { return n.Pass(5s); }},
      {"TimeCame, a heartbeat unanswered for a lease",
       [](Node& n) {
         n.Pass(20s - 1ns);
         return n.Pass(1ns);
       }},
      {"TimeCame, back-off after MasterLost",
       [](Node& n) {
         n.Step(MasterLost{false, "connection reset"});
         return n.Pass(100ms);
       }},
      {"TimeCame, too long without a master",
       [](Node& n) {
         const Duration patience = PatienceWithoutMaster(n.machine.phase());
         n.Step(MasterLost{false, "connection reset"});
         n.now += patience - 1ns;
         n.Step(TimeCame{});
         n.Step(MasterLost{true, "connection refused"});
         n.now += 1ns;
         return n.Step(TimeCame{});
       }},
      {"TimeCame, a worker stalls",
       [](Node& n) {
         n.Step(WorkerSaid{0, "STEP", "7"});
         n.now += 2s;
         return n.Step(TimeCame{});
       },
       Impatient, AllBut({Phase::kRunning})},
      {"TimeCame, grace is over",
       [](Node& n) {
         n.Pass(30s - 1ns);
         n.Hear(HeartbeatAck{5});
         n.Step(MasterLost{});  // no heartbeat in the same moment
         return n.Pass(1ns);
       },
       In, AllBut({Phase::kStopping})},
      {"TimeCame, KILL without effect for 10 s",
       [](Node& n) {
         n.now += 30s;
         n.Step(TimeCame{});
         n.now += 10s;
         return n.Step(TimeCame{});
       },
       In, AllBut({Phase::kStopping})},
      {"TimeCame, exit barrier or farewell is over", [](Node& n) { return n.Pass(5min); }, In,
       AllBut({Phase::kFinishing})},
  };
}

std::vector<Row> Rows() {
  std::vector<Row> rows;
  for (auto part : {BeginningRows, MasterRows, WorkerRows, SignalRows, TimeRows}) {
    for (Row& row : part()) rows.push_back(std::move(row));
  }
  return rows;
}

// The table names kinds, not their numbers.
std::string WithoutDetails(const std::string& text) {
  std::string result;
  int depth = 0;
  for (char c : text) {
    if (c == '{') ++depth;
    if (depth == 0) result += c;
    if (c == '}') --depth;
  }
  return result;
}

std::string Cell(const Row& row, Phase phase) {
  if (std::count(row.cannot_come.begin(), row.cannot_come.end(), phase) > 0) return kCannotCome;
  Node node = row.in(phase);
  EXPECT_EQ(node.machine.phase(), phase) << row.name;
  std::string text = WithoutDetails(row.act(node));
  if (node.machine.phase() != phase) text += " ⇒ " + PhaseText(node.machine.phase());
  return text;
}

std::string Line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line;
}

std::string TableOfMachine() {
  std::string table;
  for (const Row& row : Rows()) {
    std::vector<std::string> cells = {row.name};
    for (Phase phase : kColumns) cells.push_back(Cell(row, phase));
    table += Line(cells) + "\n";
  }
  return table;
}

std::string Header() {
  std::vector<std::string> cells = {"event"};
  for (Phase phase : kColumns) cells.push_back(PhaseText(phase));
  return Line(cells);
}

std::string TableOfDocument() {
  std::ifstream document("docs/SUPERVISION.md");
  EXPECT_TRUE(document) << "docs/SUPERVISION.md is missing";
  std::string table;
  bool is_inside = false;
  for (std::string line; std::getline(document, line);) {
    if (line == Header()) is_inside = true;
    if (line.empty()) is_inside = false;
    if (is_inside && line != Header() && line.rfind("| ---", 0) != 0) table += line + "\n";
  }
  return table;
}

TEST(SupervisorMachine, DoesInEveryPhaseOnEveryEventWhatTheDocumentSays) {
  const std::string table = TableOfMachine();
  if (getenv("MUSTER_PRINT_TABLE") != nullptr) printf("%s\n%s", Header().c_str(), table.c_str());
  EXPECT_EQ(table, TableOfDocument());
}

TEST(SupervisorMachine, TheTableHasEveryKindOfEventAndEveryMessageOfTheMaster) {
  std::map<std::string, int> rows;
  for (const Row& row : Rows()) ++rows[row.name.substr(0, row.name.find_first_of(", "))];
  // FromMaster stands as one row or more for each of its messages.
  EXPECT_EQ(rows.size(),
            std::variant_size_v<SupervisorEvent> - 1 + std::variant_size_v<MasterMessage>);
}

TEST(SupervisorMachine, AfterTheEndNoEventHasAnEffect) {
  for (const Row& row : Rows()) {
    Node node = In(Phase::kEnded);
    EXPECT_EQ(row.act(node), "-") << row.name;
    EXPECT_EQ(node.machine.phase(), Phase::kEnded) << row.name;
    EXPECT_EQ(node.machine.NextDeadline(), kNever) << row.name;
  }
}

}  // namespace
}  // namespace muster
