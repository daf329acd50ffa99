#ifndef MUSTER_WORLD_H_
#define MUSTER_WORLD_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>
#include <muster/worker.h>
#include <torch/arg.h>

#include <chrono>
#include <memory>
#include <string>

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
};

enum class Op { sum, mean, min, max };

// The group of processes that train together. Cheap to copy; all copies are the same group. Not
// thread-safe: collectives must be called in the same order on every rank, so by one thread.
//
// Every collective throws PeerLost when a member is gone, Timeout after op_timeout, and Error for
// anything else.
class World {
 public:
  int rank() const;  // 0 … size()-1
  int size() const;
  int local_rank() const;  // on this node
  int local_size() const;
  int node() const;
  int nodes() const;
  int64_t generation() const;  // grows with every change of the membership
  bool leader() const;         // rank() == 0
  const Identity& identity() const;
  at::Device device() const;           // cuda:local_rank with NCCL, else cpu
  const std::string& backend() const;  // "gloo" or "nccl"
  AgentLink& agent() const;            // connected or not

  // Seeds LibTorch's generators (CPU, and CUDA where it is) with base + rank.
  void seed(uint64_t base) const;

  // In place, on any dtype and layout that the backend carries. Op::mean divides (integers: rounds
  // towards zero).
  void all_reduce(at::Tensor tensor, Op op = Op::sum) const;
  void broadcast(at::Tensor tensor, int root = 0) const;
  at::Tensor all_gather(
      const at::Tensor& tensor) const;  // [*] -> [size, *]; one shape on all ranks
  void barrier() const;

  // For c10d calls that are not here. Owned by the World.
  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const;

  explicit World(std::shared_ptr<Membership> membership);
  Membership& membership() const { return *membership_; }

 private:
  std::shared_ptr<Membership> membership_;
};

// Joins the group that the launcher formed (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, …); without
// a launcher a world of one. Rank 0 hosts the store at MASTER_PORT. Makes and uses the group, so
// that what is wrong shows here. Throws EnvironmentError, BackendUnavailable, Timeout (with the
// ranks that did not come), PeerLost, Mismatch (two workers with one rank, or different world
// sizes), Error (the port is taken, the interface does not exist).
World init(const InitOptions& options = {});
// The same for an identity that does not come from the environment.
World init(const Identity& identity, const InitOptions& options);

}  // namespace muster

#endif  // MUSTER_WORLD_H_
