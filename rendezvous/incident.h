#ifndef MUSTER_RENDEZVOUS_INCIDENT_H_
#define MUSTER_RENDEZVOUS_INCIDENT_H_

#include <optional>
#include <string>

#include "rendezvous/messages.h"

namespace muster {

struct Failure {
  std::string node_id;
  WorkerFailed what;
  bool operator==(const Failure&) const = default;

  // It died before it got going: under 10 s of uptime and no READY=1.
  bool is_quick() const;
};

// Everything that goes wrong between an Assignment and the end of its stop: one incident, charged
// at most once. Classified when every member has answered the stop or is lost, because a failure
// that another node's loss has caused is often heard first.
class Incident {
 public:
  void AddFailure(const std::string& node_id, const WorkerFailed& failure);
  // A member left, was drained, lost or replaced.
  void MemberGone() { member_gone_ = true; }
  // The generation ended on purpose, to take a newcomer in.
  void Planned() { planned_ = true; }

  bool planned() const { return planned_; }
  bool member_gone() const { return member_gone_; }
  // The restart counts against max_restarts: a worker failed and the membership had no part in it.
  bool charges() const { return root_cause_.has_value() && !member_gone_ && !planned_; }
  // The first failure that the master heard of, unless no restart can mend a later one.
  const std::optional<Failure>& root_cause() const { return root_cause_; }
  // No restart can mend it: the job ends.
  bool is_fatal() const { return root_cause_ && !root_cause_->what.can_restart; }

  bool operator==(const Incident&) const = default;

 private:
  std::optional<Failure> root_cause_;
  bool member_gone_ = false;
  bool planned_ = false;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_INCIDENT_H_
