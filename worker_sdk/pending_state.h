#ifndef MUSTER_WORKER_SDK_PENDING_STATE_H_
#define MUSTER_WORKER_SDK_PENDING_STATE_H_

#include <muster/pending.h>

#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

namespace muster {

struct Pending::Shared {
  std::shared_ptr<Membership> membership;
  const char* what = "";
  c10::intrusive_ptr<c10d::Work> work;  // null: done
  std::vector<std::function<void()>> steps;

  void Finish() {
    for (const auto& step : std::exchange(steps, {})) step();
  }
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_PENDING_STATE_H_
