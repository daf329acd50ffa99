#ifndef MUSTER_AGENT_SIGNAL_SOURCE_H_
#define MUSTER_AGENT_SIGNAL_SOURCE_H_

#include <functional>
#include <vector>

#include "agent/events.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace muster {

// The launcher's signals as events of the loop; SIGTSTP is `on_suspend` unless it is one of
// `handled` or `forwarded`. A signal that was ignored when the process began
// stays ignored (nohup). Blocks the others for the calling thread, so make it before other threads
// exist and after the warden is forked.
class SignalSource {
 public:
  SignalSource(EventLoop& loop, const std::vector<int>& handled, const std::vector<int>& forwarded,
               std::function<void(SignalReceived)> on_signal, std::function<void()> on_suspend);

  int fd() const { return fd_.get(); }  // readable while a signal waits

  // Stops the process as SIGTSTP would have; returns when it was continued, or at once where the
  // kernel refuses because no shell could continue it.
  static void Suspend();

 private:
  void Read();

  std::vector<int> forwarded_;
  bool suspends_ = false;
  std::function<void(SignalReceived)> on_signal_;
  std::function<void()> on_suspend_;
  UniqueFd fd_;
};

}  // namespace muster

#endif  // MUSTER_AGENT_SIGNAL_SOURCE_H_
