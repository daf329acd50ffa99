// What the decisions of a large job cost the master: the round machine alone, without any network.
//   bazel run -c opt //bench:round_machine             1,000, 10,000 and 32,000 nodes
//   bazel run -c opt //bench:round_machine -- 10000    so many
// Every figure is the best of three runs. docs/PERFORMANCE.md quotes them.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/rank_assignment.h"
#include "rendezvous/round_machine.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr int kRuns = 3;
constexpr int kNodesOfRack = 40;

Hello HelloOf(int index, int nodes) {
  const std::string number = std::to_string(index);
  Hello hello;
  hello.job_id = "bench";
  hello.settings.nodes_min = hello.settings.nodes_max = nodes;
  hello.settings.max_restarts = 3;
  hello.node_id = "node" + number;
  hello.incarnation = 1000 + index;
  hello.slots = 8;
  hello.role = "default";
  hello.topology_key = "pod" + std::to_string(index / (16 * kNodesOfRack)) + "/rack" +
                       std::to_string(index / kNodesOfRack);
  hello.own_addresses = {"10.0." + std::to_string(index / 250) + "." + std::to_string(index % 250)};
  hello.dialled_host = "10.0.0.1";
  hello.next_port = 30000;
  return hello;
}

// One job, with the time that its steps take.
class Job {
 public:
  explicit Job(int nodes) : machine_("bench", 1, 1), nodes_(nodes) {}

  // The longest step and the sum of all since the last call.
  struct Cost {
    Duration sum{};
    Duration longest{};
    size_t effects = 0;
  };
  Cost Take() { return std::exchange(cost_, {}); }

  void Step(const RoundEvent& event) {
    const auto began = std::chrono::steady_clock::now();
    const RoundEffects effects = machine_.Step(now_, event);
    const Time next = machine_.NextDeadline();
    const Duration took = std::chrono::steady_clock::now() - began;
    if (next < now_) abort();
    cost_.sum += took;
    cost_.longest = std::max(cost_.longest, took);
    cost_.effects += effects.size();
    now_ += 1us;
  }

  void Say(int index, AgentMessage message) {
    Step(MessageArrived{static_cast<StreamId>(index) + 1, std::move(message), "10.9.9.9"});
  }
  // Of the nodes in an order that has nothing to do with their names.
  int Shuffled(int i) const { return static_cast<int>((i * 7919LL) % nodes_); }

  const RoundMachine& machine() const { return machine_; }

 private:
  RoundMachine machine_;
  int nodes_;
  Time now_{1h};
  Cost cost_;
};

struct Figures {
  Job::Cost join, beats, fail, stop;

  void Better(const Figures& other) {
    for (auto member : {&Figures::join, &Figures::beats, &Figures::fail, &Figures::stop}) {
      Job::Cost& mine = this->*member;
      if (mine.effects == 0 || (other.*member).sum < mine.sum) mine = other.*member;
    }
  }
};

Figures Measure(int nodes) {
  Figures figures;
  std::vector<Hello> hellos;
  for (int i = 0; i < nodes; ++i) hellos.push_back(HelloOf(i, nodes));
  Job job(nodes);
  for (int i = 0; i < nodes; ++i) job.Say(job.Shuffled(i), hellos[job.Shuffled(i)]);
  figures.join = job.Take();
  for (int i = 0; i < nodes; ++i) job.Say(job.Shuffled(i), Heartbeat{1});
  figures.beats = job.Take();
  const int64_t generation = job.machine().generation();
  WorkerFailed failed;
  failed.generation = generation;
  failed.status = ExitStatus::Exited(1);
  failed.uptime = 60s;
  job.Say(0, failed);
  figures.fail = job.Take();
  for (int i = 0; i < nodes; ++i) job.Say(job.Shuffled(i), WorkersStopped{generation, 30001});
  figures.stop = job.Take();
  if (job.machine().generation() != generation + 1) abort();
  return figures;
}

double RankMilliseconds(int nodes) {
  std::vector<RankRequest> requests;
  for (int i = 0; i < nodes; ++i) {
    const Hello hello = HelloOf(static_cast<int>((i * 7919LL) % nodes), nodes);
    requests.push_back({hello.node_id, hello.topology_key, hello.role, hello.slots, -1, -1});
  }
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto began = std::chrono::steady_clock::now();
    const RankTable table = AssignRanks(requests);
    const double took = Milliseconds(std::chrono::steady_clock::now() - began).count();
    if (table.world_size != nodes * 8) abort();
    if (run == 0 || took < best) best = took;
  }
  return best;
}

void Print(int nodes) {
  Figures best;
  for (int run = 0; run < kRuns; ++run) best.Better(Measure(nodes));
  // Without the one step that begins a generation.
  const auto each = [nodes](const Job::Cost& cost) {
    return std::chrono::duration<double, std::micro>(cost.sum - cost.longest).count() / nodes;
  };
  printf("%6d  %10.1f  %10.2f  %10.2f  %10.2f  %10.2f  %10.2f  %10.2f\n", nodes,
         RankMilliseconds(nodes), each(best.join), Milliseconds(best.join.longest).count(),
         each(best.beats), Milliseconds(best.fail.sum).count(), each(best.stop),
         Milliseconds(best.stop.longest).count());
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  printf(
      " nodes  ranks (ms)   join (us)   form (ms)   beat (us)   fail (ms)   stop (us)  again "
      "(ms)\n");
  if (argc > 1) {
    muster::Print(std::max(1, atoi(argv[1])));
  } else {
    for (const int nodes : {1000, 10000, 32000}) muster::Print(nodes);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  printf("peak memory %ld MiB\n", usage.ru_maxrss / 1024);
  return 0;
}
