#ifndef MUSTER_AGENT_SIGNAL_SOURCE_H_
#define MUSTER_AGENT_SIGNAL_SOURCE_H_

#include <functional>
#include <vector>

#include "agent/events.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace muster {

// The launcher's signals as events of the loop. A signal that was ignored when the process began
// stays ignored (nohup). Blocks the others for the calling thread, so make it before other threads
// exist and after the warden is forked.
class SignalSource {
 public:
  SignalSource(EventLoop& loop, const std::vector<int>& handled, const std::vector<int>& forwarded,
               std::function<void(SignalReceived)> on_signal);

  int fd() const { return fd_.get(); }  // readable while a signal waits

 private:
  void Read();

  std::vector<int> forwarded_;
  std::function<void(SignalReceived)> on_signal_;
  UniqueFd fd_;
};

}  // namespace muster

#endif  // MUSTER_AGENT_SIGNAL_SOURCE_H_
