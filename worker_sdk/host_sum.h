#ifndef MUSTER_WORKER_SDK_HOST_SUM_H_
#define MUSTER_WORKER_SDK_HOST_SUM_H_

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <thread>

#include "worker_sdk/host_memory.h"

namespace c10d {
class Work;
}

namespace muster {

// Sums over the ranks of one host, in memory that they share: each rank copies its numbers in, and
// adds up what all have written, in the order of the ranks. So the sum of an element does not
// depend on where in the tensor it is, as it does with a ring, and is the same on every rank.
//
// They are computed one after the other, in the order in which they were started, by a thread.
class HostSum {
 public:
  explicit HostSum(std::shared_ptr<HostMemory> memory);
  ~HostSum();  // ends what is under way with an error
  HostSum(const HostSum&) = delete;
  HostSum& operator=(const HostSum&) = delete;

  // Dense, in a row, on the CPU, and of a type that Gloo adds up, too.
  static bool Takes(const at::Tensor& tensor);
  // In place. The work ends with what HostMemory::Meet() throws, and with Mismatch on every rank
  // where they do not sum tensors of the same size and type.
  c10::intrusive_ptr<c10d::Work> Start(const at::Tensor& tensor, std::chrono::milliseconds timeout);
  // May be called while sums are under way. They, and all later ones, end with an error.
  void Close();

 private:
  class Job;
  class Shop;
  const std::shared_ptr<Shop> shop_;  // the thread may outlive this for a moment
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_HOST_SUM_H_
