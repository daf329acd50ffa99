#ifndef MUSTER_RENDEZVOUS_LOCAL_RENDEZVOUS_H_
#define MUSTER_RENDEZVOUS_LOCAL_RENDEZVOUS_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "base/unique_fd.h"
#include "rendezvous/rendezvous_client.h"
#include "rendezvous/round_machine.h"

namespace muster {

// The rendezvous of a single-node job: its round machine runs in the agent's process, so no network
// and no gRPC are needed. fd() is an epoll descriptor over "an event is queued" and the machine's
// deadline: waiting on it is all the agent must do. Single-threaded, as every RendezvousClient.
class LocalRendezvous : public RendezvousClient {
 public:
  struct Options {
    std::string job_id;
    uint64_t instance = 1;
    uint64_t seed = 1;                       // of the restart back-off's jitter
    std::function<Time()> now;               // the agent's clock; required
    std::function<void(const Reason&)> log;  // each decision of the master; may be empty
  };

  // Aborts when the kernel gives no descriptors (EMFILE): nothing can run then.
  explicit LocalRendezvous(Options options);

  void Open() override;
  void Send(AgentMessage message) override;
  void Finish() override;
  int fd() const override { return epoll_.get(); }
  std::optional<ClientEvent> Receive() override;

  const RoundMachine& machine() const { return machine_; }

 private:
  void Step(const RoundEvent& event);
  void RunDeadline();
  void ArmTimer();
  void Queue(ClientEvent event);

  Options options_;
  RoundMachine machine_;
  StreamId stream_ = 0;  // 0: none is open
  StreamId last_stream_ = 0;
  Time last_step_{};
  Time armed_for_ = kNever;
  std::deque<ClientEvent> events_;
  UniqueFd epoll_;
  UniqueFd queued_;  // eventfd: 1 while events_ is not empty
  UniqueFd timer_;   // timerfd for NextDeadline()
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_LOCAL_RENDEZVOUS_H_
