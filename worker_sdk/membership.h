#ifndef MUSTER_WORKER_SDK_MEMBERSHIP_H_
#define MUSTER_WORKER_SDK_MEMBERSHIP_H_

#include <c10/util/Exception.h>
#include <muster/world.h>

#include <exception>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "worker_sdk/failure.h"

namespace muster {

// One rank's part in one generation: the store, the group, and how failures in it become typed
// errors.
class Membership {
 public:
  Identity identity;
  InitOptions options;
  at::Device device = at::kCPU;
  std::string backend;
  mutable AgentLink agent;

  // The group. Throws PeerLost if it was left.
  const c10::intrusive_ptr<c10d::ProcessGroup>& Group() const;
  // Runs a collective. What c10d throws comes out as PeerLost, Timeout, or what another rank left
  // as its note.
  template <class F>
  auto Guard(const char* what, F&& collective) const {
    try {
      return collective();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      ThrowTyped(what, error);
    }
  }
  [[noreturn]] void ThrowTyped(const char* what, const std::exception& error) const;

  // Tells the others why, then leaves the group, which ends their waits. The caller has dropped
  // what else refers to it.
  void Leave(const FailureNote& note);

  // Set once, by init().
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
};

// LibTorch's message without its backtrace.
std::string MessageOf(const std::exception& error);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_MEMBERSHIP_H_
