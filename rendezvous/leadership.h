#ifndef MUSTER_RENDEZVOUS_LEADERSHIP_H_
#define MUSTER_RENDEZVOUS_LEADERSHIP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/time.h"

namespace muster {

// What a leader shows for the right to write: the key that it holds, in the revision that only its
// own campaign made. Whoever leads after it has another one.
struct LeaderClaim {
  std::string key;
  int64_t create_revision = 0;
};

// One candidate of an election: at most one of them leads at a time, as far as clocks run equally
// fast. What must hold even when they do not (a process that was stopped) is checked by the store,
// with the claim. Thread-safe.
class Leadership {
 public:
  // Called by one thread of the candidate, which keeps the lease alive: they must not block.
  struct Listener {
    // This one leads from now on, and has to say Serving() once it does.
    std::function<void(const LeaderClaim& claim)> on_elected;
    // It does not lead any more, before anybody else can: it must stop to serve. The candidate
    // campaigns again by itself.
    std::function<void(const std::string& why)> on_lost;
    // Another one leads and serves at `address`; empty: nobody is known to. `problem` is one line
    // when that is because it cannot be found out.
    std::function<void(const std::string& address, const std::string& problem)> on_leader;
  };

  // Gives up without a word; what it held is free after the lease. Resign() first where there is
  // time.
  virtual ~Leadership() = default;

  // Whether it leads at `now`. Also right where on_lost is yet to come, as in a process that was
  // frozen: nobody may be answered then.
  virtual bool Leads(Time now) const = 0;

  // The elected one serves at "host:port": the others are told.
  virtual void Serving(const std::string& address) = 0;

  // The elected one cannot or may not serve (the store refused it): on_lost follows.
  virtual void StepDown(const std::string& why) = 0;

  // Ends the candidacy and lets the next one lead at once. Waits for that, for a second at most.
  // Not from within a listener. No callback comes afterwards.
  virtual void Resign() = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_LEADERSHIP_H_
