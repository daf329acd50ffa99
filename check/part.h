#ifndef MUSTER_CHECK_PART_H_
#define MUSTER_CHECK_PART_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "check/channel.h"
#include "check/check_program.h"
#include "check/facts.h"
#include "check/fields.h"
#include "check/findings.h"
#include "check/ring.h"

namespace muster::check {

// The orders of rank 0, which each rank carries out, itself among them.
enum class Order {
  kDial,   // connect to a worker of each other node
  kForm,   // become a part of the ring
  kSum,    // time its all-reduce
  kTorch,  // time that of LibTorch
  kEnd,
};

// `others` are told with kDial only.
Fields OrderFields(Order order, const std::vector<Facts>& others = {});
std::optional<Order> OrderFrom(const Fields& fields);

// What one rank does in a check once it has met rank 0. One thread.
class Part {
 public:
  // Both pointers outlive this; `torch` may be null.
  Part(const Facts* facts, Listener listener, int world_size, const TorchParts* torch);

  // Carries out an order in at most `timeout`, and says how it went.
  Fields Do(Order order, const Fields& fields, Duration timeout);

 private:
  Fields DialOthers(const Fields& fields, Duration timeout);

  struct Peer {
    int node = 0;
    int local_rank = 0;
    int workers = 1;
    Target target;
  };

  const Facts& facts_;
  const Listener listener_;
  const int world_size_;
  const TorchParts* torch_;
  std::map<int, Peer> peers_;  // by rank
  Ring ring_;
};

// What the answers of the ranks, by rank, come to. A rank of 0 to world_size - 1 without an answer
// has failed.
std::vector<FailedDial> FailedDialsFrom(const std::map<int, Fields>& answers);
AllReduce AllReduceFrom(const std::map<int, Fields>& answers, int world_size,
                        const std::string& transport);

}  // namespace muster::check

#endif  // MUSTER_CHECK_PART_H_
