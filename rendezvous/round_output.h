#ifndef MUSTER_RENDEZVOUS_ROUND_OUTPUT_H_
#define MUSTER_RENDEZVOUS_ROUND_OUTPUT_H_

#include <utility>
#include <variant>

#include "rendezvous/events.h"

namespace muster {

// The effects of the step in progress, in order.
class RoundOutput {
 public:
  void Send(StreamId stream, MasterMessage message) {
    effects_.push_back(SendTo{stream, std::move(message)});
  }
  void Close(StreamId stream) { effects_.push_back(CloseStreamTo{stream}); }
  void Log(const Reason& reason) { effects_.push_back(Decided{reason}); }

  // Comes before all others.
  void PersistFirst() {
    if (!effects_.empty() && std::holds_alternative<Persist>(effects_.front())) return;
    effects_.insert(effects_.begin(), Persist{});
  }

  RoundEffects Take() { return std::exchange(effects_, {}); }

 private:
  RoundEffects effects_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ROUND_OUTPUT_H_
