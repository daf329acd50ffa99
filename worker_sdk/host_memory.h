#ifndef MUSTER_WORKER_SDK_HOST_MEMORY_H_
#define MUSTER_WORKER_SDK_HOST_MEMORY_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/unique_fd.h"

namespace muster {

// Memory that the ranks of a group on one host share: a part that each writes and all read, a part
// that all write, and points at which all meet. It has no name, so that nothing of it is left when
// its processes end, however they do.
//
// One thread of a process meets; any may Leave().
class HostMemory {
 public:
  static constexpr size_t kPartBytes = 1 << 20;

  // For `ranks` on this host, this one being rank 0. Throws std::runtime_error where the kernel or
  // a limit of this process refuses.
  static std::unique_ptr<HostMemory> Create(int ranks);
  // The one that rank 0 offers. Throws std::runtime_error if it is not to be had from here: another
  // host, another namespace of processes, another user.
  static std::unique_ptr<HostMemory> Open(const std::string& offer, int rank, int ranks);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // What the others need to open it; one line.
  const std::string& offer() const { return offer_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // kPartBytes each; cache lines are not shared between them.
  std::byte* Part(int rank, int which) const;  // which: 0 or 1
  std::byte* CommonPart() const;

  // Only after every rank has opened it. Returns when each has called this as often as this one;
  // what they wrote before is seen after. Throws std::runtime_error, in words that Classify()
  // knows, when a rank that has not come left or ended, and when it has not come by `deadline`;
  // then this one has left as well.
  void Meet(std::chrono::steady_clock::time_point deadline);

  // Ends this rank's meetings, and those of whoever waits for it, now and in the future.
  void Leave();

 private:
  struct Seat;
  HostMemory(UniqueFd file, std::string offer, int rank, int ranks);
  Seat& SeatOf(int rank) const;
  void SitDown();
  bool IsGone(int rank) const;
  bool HasCome(int rank, uint32_t meeting) const;
  void Await(int rank, uint32_t meeting, std::chrono::steady_clock::time_point deadline) const;

  const UniqueFd file_;
  const std::string offer_;
  const int rank_;
  const int ranks_;
  const int spins_;
  std::byte* memory_ = nullptr;
  uint32_t meetings_ = 0;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_HOST_MEMORY_H_
