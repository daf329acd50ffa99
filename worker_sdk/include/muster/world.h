#ifndef MUSTER_WORLD_H_
#define MUSTER_WORLD_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>
#include <muster/check_options.h>
#include <muster/pending.h>
#include <muster/worker.h>
#include <torch/arg.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace c10d {
class ProcessGroup;
}

namespace muster {

class Membership;  // what the copies of a World share

struct InitOptions {
  // "gloo", "nccl", or "auto": NCCL where this node has a GPU and libmuster_nccl.so is installed,
  // else Gloo.
  TORCH_ARG(std::string, backend) = "auto";
  // One deadline for all of init(): the others must be there, and the first collective done, by
  // then.
  TORCH_ARG(std::chrono::milliseconds, init_timeout) = std::chrono::minutes(10);
  // How long one collective may take.
  TORCH_ARG(std::chrono::milliseconds, op_timeout) = std::chrono::minutes(10);
  // The network interface for Gloo and NCCL, such as "eth0". Empty: the address that the launcher
  // named (MUSTER_LOCAL_ADDR), else GLOO_SOCKET_IFNAME, else loopback if MASTER_ADDR is on it, else
  // what the host name resolves to.
  TORCH_ARG(std::string, interface) = "";
  // Where all ranks are on one node, tensors on the CPU are summed, broadcast and gathered over
  // memory that the ranks share, and not over sockets: several times as fast, and added in the
  // order of the ranks. Not where one of them says no, or where they do not see each other's
  // processes. MUSTER_SHARED_MEMORY=0 or 1 in the environment overrides it.
  TORCH_ARG(bool, shared_memory) = true;
  TORCH_ARG(CheckOptions, check);  // of what the ranks do, while they train
};

// What all_reduce and reduce_scatter compute.
enum class Op { sum, mean, min, max };

// The group of processes that train together. Cheap to copy; all copies are the same group. Not
// thread-safe: collectives must be called in the same order on every rank, so by one thread.
//
// Every collective throws PeerLost when a member is gone, Timeout after op_timeout, and Error for
// anything else. PeerLost and Timeout name the ranks of whom nothing is heard any more: those that
// ended, and those that are not in a collective. They end this rank's part in the group: it is
// closed, and whoever waits for this rank in it gets a PeerLost at once.
class World {
 public:
  int rank() const;                    // 0 … size()-1
  int size() const;                    // of the group
  int local_rank() const;              // on this node
  int local_size() const;              // ranks on this node
  int node() const;                    // 0 … nodes()-1
  int nodes() const;                   // at least 1
  int64_t generation() const;          // grows with every change of the membership
  bool leader() const;                 // rank() == 0
  const Identity& identity() const;    // what init() was told
  at::Device device() const;           // cuda:local_rank with NCCL, else cpu
  const std::string& backend() const;  // "gloo" or "nccl"
  bool shares_memory() const;          // see InitOptions::shared_memory
  AgentLink& agent() const;            // connected or not

  // Seeds LibTorch's generators (CPU, and CUDA where it is) with base + rank.
  void seed(uint64_t base) const;

  // In place, on any layout, and on any dtype that has the operation: real and complex numbers, and
  // bool (sum and max are "or", min is "and"). Op::mean divides (integers: rounds towards zero).
  void all_reduce(const at::Tensor& tensor, Op op = Op::sum) const;
  // The rest copies any dtype exactly.
  void broadcast(const at::Tensor& tensor, int root = 0) const;  // in place
  at::Tensor all_gather(const at::Tensor& tensor) const;         // [*] -> [size, *], by rank
  // [size * k, *] -> [k, *]: the sum over the ranks, and of it this rank's part.
  at::Tensor reduce_scatter(const at::Tensor& tensor, Op op = Op::sum) const;
  void barrier() const;  // returns when every rank has called it

  // The same, started and not waited for. `output` is contiguous, of the shape above.
  Pending all_reduce_async(const at::Tensor& tensor, Op op = Op::sum) const;
  Pending broadcast_async(const at::Tensor& tensor, int root = 0) const;
  Pending all_gather_async(const at::Tensor& tensor, const at::Tensor& output) const;
  Pending reduce_scatter_async(const at::Tensor& tensor, const at::Tensor& output,
                               Op op = Op::sum) const;
  Pending barrier_async() const;

  // A group of some of the ranks, in the order given: rank() in it is the position in `ranks`. Its
  // members, and nobody else, call it. Throws Error if this rank is not among them, Timeout with
  // the ranks that did not come.
  World subgroup(const std::vector<int>& ranks) const;

  // Leaves the group because of something that only this rank knows. The others get a PeerLost
  // with this rank and `why`, now or in their next collective.
  void abort(const std::string& why) const;

  // For c10d calls that are not here. Owned by the World.
  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const;

  // For the SDK's own parts.
  explicit World(std::shared_ptr<Membership> membership);
  Membership& membership() const { return *membership_; }

 private:
  std::shared_ptr<Membership> membership_;
};

// Joins the group that the launcher formed (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, …); without
// a launcher a world of one. Rank 0 hosts the store at MASTER_PORT. Makes and uses the group, so
// that what is wrong shows here. Throws EnvironmentError, BackendUnavailable, Timeout (with the
// ranks that did not come), PeerLost, Mismatch (two workers with one rank, different world sizes,
// or different CheckOptions), Error (the port is taken, the interface does not exist).
World init(const InitOptions& options = {});
// The same for an identity that does not come from the environment.
World init(const Identity& identity, const InitOptions& options);

}  // namespace muster

#endif  // MUSTER_WORLD_H_
