#ifndef MUSTER_CHECK_FINDINGS_H_
#define MUSTER_CHECK_FINDINGS_H_

#include <string>
#include <vector>

#include "check/facts.h"

// What the check makes of what the ranks know and could reach. Pure.

namespace muster::check {

enum class Severity {
  kProblem,  // a job will fail or hang, or be another one than was meant
  kRemark,   // it runs, slower than it could or not with every program
};

struct Finding {
  Severity severity = Severity::kProblem;
  std::string where;   // "node 1 (gpu7)", "ranks 2, 3"; empty: everywhere
  std::string what;    // one line
  std::string advice;  // one line: what to do

  bool operator==(const Finding&) const = default;
};

// A connection that could not be made.
struct FailedDial {
  int from = 0;  // ranks
  int to = 0;
  std::string address;
  int port = 0;
  int error = 0;  // errno; ETIMEDOUT also where nothing came back by the deadline
};

// How the ranks did together over one transport.
struct AllReduce {
  std::string transport;  // "TCP", "gloo", "nccl"
  double latency_s = 0;   // of 8 bytes
  double bandwidth = 0;   // bytes per second on each link, of a large tensor
  int failed_rank = -1;   // the first that could not take part, and why
  std::string failure;
};

// All that rank 0 knows in the end.
struct Observed {
  int world_size = 0;  // 0: this one has met nobody, and `facts` are its own
  std::string master_addr;
  int master_port = 0;
  std::vector<Facts> facts;  // of the ranks that came, in their order
  std::vector<FailedDial> failed_dials;
  std::vector<AllReduce> all_reduces;
};

// Problems first. Empty: nothing is wrong.
std::vector<Finding> FindingsOf(const Observed& observed);

// One address that a host name resolved to, and what came of dialling it.
struct Attempt {
  std::string address;
  int error = 0;
};

// Somebody who could not reach where all meet: rank 0, or the master.
struct Unreached {
  std::string what;  // "rank 0", "the master"
  std::string host;  // as it was given
  int port = 0;
  std::string option;             // where the host comes from: "MASTER_ADDR", "--rdzv-endpoint"
  std::string resolve_problem;    // empty: the name was found
  std::vector<Attempt> attempts;  // of the last round
  bool should_be_here = false;    // this very node is to have that address
  bool spans_hosts = true;        // false: all are on one machine
};

// Why, as far as this node can tell: never empty.
std::vector<Finding> FindingsOf(const Facts& own, const Unreached& unreached);

// Why this node has met too few others at a master that it reached, or hosted itself; `attempts`
// are the addresses alone.
std::vector<Finding> LonelyFindings(const Facts& own, const Unreached& master);

// Parts of the above: the rules for what differs between nodes (the first rank of each is given),
// for one node's machine and environment, and for the ranks' GPUs.
void AddDifferences(const std::vector<const Facts*>& nodes, std::vector<Finding>* findings);
void AddMachineFindings(const Facts& node, bool spans_hosts, std::vector<Finding>* findings);
void AddGpuFindings(const std::vector<Facts>& ranks, std::vector<Finding>* findings);

// "node 1 (gpu7)"; the host alone where it has no number.
std::string NodeText(const Facts& facts);
// "1 problem, 2 remarks"; "nothing found".
std::string CountText(const std::vector<Finding>& findings);
bool HasProblem(const std::vector<Finding>& findings);

}  // namespace muster::check

#endif  // MUSTER_CHECK_FINDINGS_H_
