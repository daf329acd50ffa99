#ifndef MUSTER_WORKER_SDK_MEMBERSHIP_H_
#define MUSTER_WORKER_SDK_MEMBERSHIP_H_

#include <c10/util/Exception.h>
#include <muster/world.h>

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "worker_sdk/failure.h"
#include "worker_sdk/host_memory.h"
#include "worker_sdk/own_sockets.h"

namespace muster {

// What the agent's word closes from another thread, while the rank waits in a collective.
class Lifeline {
 public:
  // `sockets` are Gloo's; `memory` may be none.
  void Hold(c10::intrusive_ptr<c10d::ProcessGroup> group, OwnSockets sockets,
            std::shared_ptr<HostMemory> memory);
  void LetGo() { Hold(nullptr, {}, nullptr); }
  void Cut();    // the agent's ABORT
  void Close();  // the rank's own end
  bool cut() const;

 private:
  mutable std::mutex mutex_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  OwnSockets sockets_;
  std::shared_ptr<HostMemory> memory_;
  bool cut_ = false;
};

// One rank's part in one group of one generation: the store, the group, and how failures in it
// become typed errors.
class Membership {
 public:
  Membership() = default;
  ~Membership() { lifeline_->LetGo(); }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  Identity identity;  // rank and world_size are those of this group
  InitOptions options;
  at::Device device = at::kCPU;
  std::string backend;
  std::shared_ptr<AgentLink> agent;
  std::vector<int> world_ranks;  // by rank in this group: the rank in the world, for errors

  int WorldRank() const { return world_ranks[static_cast<size_t>(identity.rank)]; }

  // From here on an ABORT of the agent ends this rank's part. Called once, when `group` is set;
  // `sockets` are those that it uses.
  void ObeyAgent(OwnSockets sockets);

  // The group. Throws PeerLost if it was left, or if the agent said ABORT.
  const c10::intrusive_ptr<c10d::ProcessGroup>& Group() const;

  // Runs a collective. What c10d throws comes out as PeerLost, Timeout, or what another rank left
  // as its note.
  template <class F>
  auto Guard(const char* what, F&& collective) {
    try {
      return collective();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      ThrowTyped(what, error);
    }
  }

  // What an error of the backend means here.
  FailureKind KindOf(const std::string& message) const;

  // A lost peer or a time-out ends this rank's part, so that nobody waits for it, and the error
  // names those of whom nothing is heard.
  [[noreturn]] void ThrowTyped(const char* what, const std::exception& error);

  // Tells the others why, then leaves the group, which ends their waits.
  void Leave(const FailureNote& note);

  // Set once, by init() or subgroup().
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::shared_ptr<HostMemory> memory;         // that its ranks share; may be none
  std::map<std::vector<int>, int> subgroups;  // how many were made of the same ranks

 private:
  void CloseGroup();
  std::optional<FailureNote> Cause() const;
  struct Patience;
  std::vector<int> SignOutAndFindSilent(const std::string& what,
                                        const Patience& patience);  // ranks of this group
  void NeedStoreNoMore(const std::vector<int>& silent, const Patience& patience);

  std::shared_ptr<Lifeline> lifeline_ = std::make_shared<Lifeline>();
};

// LibTorch's message without its backtrace.
std::string MessageOf(const std::exception& error);

// "rank 3" or "ranks 1, 3".
std::string RanksText(const std::vector<int>& ranks);

// A duration for people: "3 s", "250 ms".
std::string SpanText(std::chrono::milliseconds span);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_MEMBERSHIP_H_
