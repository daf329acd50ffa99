#ifndef MUSTER_RENDEZVOUS_FORMATION_GATE_H_
#define MUSTER_RENDEZVOUS_FORMATION_GATE_H_

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "rendezvous/reason.h"
#include "rendezvous/restart_backoff.h"
#include "rendezvous/settings.h"

namespace muster {

// Why nothing happens, and until when at the latest (kNever: nobody can say).
struct Hold {
  Reason reason;
  Time until = kNever;
  Duration untold{};  // it is likely to be over sooner, and nobody is told before
};

// When the next generation may begin: MIN nodes, last call, and the back-off after quick failures.
class FormationGate {
 public:
  explicit FormationGate(uint64_t seed) : backoff_(seed) {}

  // As it was before its master started again: quick_failures() and last_size().
  void Restore(int quick_failures, int last_size) {
    backoff_.Restore(quick_failures);
    last_size_ = last_size;
  }
  // A generation of `size` nodes has ended; the next one is being formed.
  void Ended(int size) { last_size_ = size; }
  int last_size() const { return last_size_; }
  // A failure was charged: the next generation may have to wait.
  void AfterFailure(bool is_quick, Time now, const JobSettings& settings);
  // The generation that ended had got going: it ends the row of quick failures.
  void GotGoing() { backoff_.Reset(); }
  // How many failures in a row were quick.
  int quick_failures() const { return backoff_.in_a_row(); }
  // A member left or is lost, and somebody may come in its place. A last call counts from here:
  // those who stop their workers meanwhile need not wait twice.
  void ExpectSuccessor(Time now, const JobSettings& settings);
  // An agent had a master before this one, which may have formed a generation: its members get the
  // time to come.
  void AwaitMembers(Time now);
  // A generation begins or goes on.
  void Begun();
  // The master did not run for so long.
  void Shift(Duration missed);

  // `here` nodes could be members now. To be called before HoldOf() whenever that may have changed.
  void Observe(int here, Time now, const JobSettings& settings);
  // What the generation waits for; nothing when it may begin.
  std::optional<Hold> HoldOf(int here, Time now, const JobSettings& settings) const;

  // When the wait for MIN nodes has been too long; kNever while they are in.
  Time join_deadline() const { return join_deadline_; }

 private:
  RestartBackoff backoff_;
  bool last_call_due_ = true;  // at first formation and when a member is gone
  int last_size_ = 0;          // nodes in the generation before; 0: none
  Time join_deadline_ = kNever;
  Time last_call_deadline_ = kNever;
  Time members_until_ = Time::min();
  Time backoff_until_ = Time::min();
  Duration backoff_wait_{};
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_FORMATION_GATE_H_
