#ifndef MUSTER_AGENT_WARDEN_HOST_H_
#define MUSTER_AGENT_WARDEN_HOST_H_

#include <functional>
#include <string>
#include <vector>

#include "agent/process_host.h"
#include "agent/warden.h"
#include "agent/warden_channel.h"
#include "base/event_loop.h"

namespace muster {

// ProcessHost through a warden.
class WardenHost : public ProcessHost {
 public:
  // `on_answer` is called from the loop for each answer, in order, and from within Spawn when there
  // is no descriptor to be had for it; `on_lost` once from the loop, when the warden is gone and
  // everything it left has been killed and reaped by this process.
  WardenHost(EventLoop& loop, WardenProcess warden,
             std::function<void(const WardenAnswer&)> on_answer, std::function<void()> on_lost);
  // The warden ends when its socket closes; waits for it, so that nothing outlives the agent.
  ~WardenHost() override;

  void Spawn(SpawnRequest request, const std::vector<int>& fds) override;
  void Signal(const SignalRequest& request) override;
  void SetLastWill(const LastWillRequest& will) override;
  void SetFence(const FenceRequest& fence) override;

  int warden_pid() const { return pid_; }

 private:
  // 0, or the errno with which a descriptor could not be duplicated.
  int Send(const WardenRequest& request, const std::vector<int>& fds = {});
  void OnReady();
  void Watch();
  void SweepAfterWarden();

  EventLoop& loop_;
  int pid_;
  WardenChannel channel_;
  std::function<void(const WardenAnswer&)> on_answer_;
  std::function<void()> on_lost_;
  bool lost_ = false;
};

}  // namespace muster

#endif  // MUSTER_AGENT_WARDEN_HOST_H_
