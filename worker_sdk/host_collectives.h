#ifndef MUSTER_WORKER_SDK_HOST_COLLECTIVES_H_
#define MUSTER_WORKER_SDK_HOST_COLLECTIVES_H_

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "worker_sdk/host_memory.h"

namespace c10d {
class Work;
}

namespace muster {

// Collectives of the ranks of one host, in memory that they share. They are done one after the
// other, in the order in which they were started, by a thread.
//
// The work ends with what HostMemory::Meet() throws, and with Mismatch on every rank where they do
// not do the same with tensors of the same size and type.
class HostCollectives {
 public:
  explicit HostCollectives(std::shared_ptr<HostMemory> memory);
  ~HostCollectives();  // ends what is under way with an error
  HostCollectives(const HostCollectives&) = delete;
  HostCollectives& operator=(const HostCollectives&) = delete;

  using Work = c10::intrusive_ptr<c10d::Work>;
  using Span = std::chrono::milliseconds;

  static bool Copies(const at::Tensor& tensor);  // on the CPU, dense, in a row
  static bool Sums(const at::Tensor& tensor);    // and of a type that Gloo adds up, too

  // In place. Each rank adds up what all have written, in the order of the ranks: so the sum of an
  // element does not depend on where in the tensor it is, as it does with a ring.
  Work AllReduce(const at::Tensor& tensor, Span timeout);
  Work Broadcast(const at::Tensor& tensor, int root, Span timeout);
  // outputs: by rank, each as large as the input.
  Work AllGather(const std::vector<at::Tensor>& outputs, const at::Tensor& input, Span timeout);

  // May be called while others are under way. They, and all later ones, end with an error.
  void Close();

 private:
  class Job;
  class Shop;
  const std::shared_ptr<Shop> shop_;  // the thread may outlive this for a moment
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_HOST_COLLECTIVES_H_
