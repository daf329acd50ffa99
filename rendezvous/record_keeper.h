#ifndef MUSTER_RENDEZVOUS_RECORD_KEEPER_H_
#define MUSTER_RENDEZVOUS_RECORD_KEEPER_H_

#include <absl/status/status.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/effect_hold.h"
#include "rendezvous/job_record.h"
#include "rendezvous/job_registry.h"

namespace muster {

// Keeps the records of a registry and its jobs in a store, and what the jobs want done until that
// has happened (rendezvous/effect_hold.h).
//
// A write that fails is tried again, after 0.1 s, 0.2 s … 5 s, with the records as they are by
// then. Without a store everything passes at once. Pure and single-threaded.
class RecordKeeper {
 public:
  using Write = std::function<void(std::vector<RecordChange>)>;

  // `registry` outlives the keeper. `write` begins a write (StateStore::Write), whose end is to be
  // told by Answered(), not from within; empty: there is no store.
  RecordKeeper(const JobRegistry* registry, Write write);

  // Before the first step: these are in the store, and in the registry in this order.
  void Restored(const MasterState& state);

  // Of what the jobs want done, all that may be done now, in order. Begins a write if it can.
  std::vector<JobEffects> Pass(Time now, std::vector<JobEffects> all);
  std::vector<JobEffects> Answered(Time now, const absl::Status& status);

  // When Pass(now, {}) must be called for another try; kNever when there is nothing to try.
  Time NextDeadline() const { return retry_at_; }

  // Nothing is kept back or unwritten.
  bool empty() const { return hold_.empty(); }
  // Something of the job is: what it has decided is not known to anybody yet.
  bool IsHeld(JobRegistry::Serial job) const { return !hold_.empty(job); }
  // So much of the job is kept back that its agents had better wait.
  bool IsFull(JobRegistry::Serial job) const;
  // Why the last write failed; OK when it did not.
  const absl::Status& trouble() const { return trouble_; }

 private:
  bool IsWriting() const { return master_writing_.has_value() || !writing_.empty(); }
  void BeginWrite();

  const JobRegistry* const registry_;
  const Write write_;
  EffectHold hold_;
  std::map<JobRegistry::Serial, std::string> keys_;     // in the store
  std::map<JobRegistry::Serial, std::string> writing_;  // as keys_ when it is written; "": none
  MasterRecord master_;                                 // likewise
  std::optional<MasterRecord> master_writing_;
  absl::Status trouble_;
  int failures_ = 0;  // in a row
  Time retry_at_ = kNever;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_RECORD_KEEPER_H_
