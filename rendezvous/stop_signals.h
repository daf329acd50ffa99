#ifndef MUSTER_RENDEZVOUS_STOP_SIGNALS_H_
#define MUSTER_RENDEZVOUS_STOP_SIGNALS_H_

#include <csignal>
#include <functional>

#include "base/time.h"
#include "base/unique_fd.h"

namespace muster {

// How a daemon waits for the signal that ends it: SIGTERM or SIGINT. SIGHUP asks for something.
class StopSignals {
 public:
  // Blocks the signals for this thread and those that it starts: before there are others.
  StopSignals();

  // Returns the signal to stop. Calls `on_hangup` for each SIGHUP meanwhile, and `on_pulse` now and
  // every so often (zero: never).
  int Await(const std::function<void()>& on_hangup, Duration pulse,
            const std::function<void()>& on_pulse) const;

  // From here on a signal ends the process at once.
  void Unblock() const;

 private:
  sigset_t signals_{};
  UniqueFd fd_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STOP_SIGNALS_H_
