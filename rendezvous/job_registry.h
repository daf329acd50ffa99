#ifndef MUSTER_RENDEZVOUS_JOB_REGISTRY_H_
#define MUSTER_RENDEZVOUS_JOB_REGISTRY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "rendezvous/admission_limits.h"
#include "rendezvous/deadlines.h"
#include "rendezvous/histogram.h"
#include "rendezvous/job_journal.h"
#include "rendezvous/job_status.h"
#include "rendezvous/round_machine.h"

namespace muster {

// What one job's machine wants done, in order.
struct JobEffects {
  uint64_t serial = 0;  // JobRegistry::Serial; 0: of no job
  std::string job_id;
  uint64_t instance = 0;
  RoundEffects effects;
  std::vector<IncidentRecord> incidents = {};  // that have begun or ended with this step
  std::function<void()> afterwards = {};       // to be called when all this is done
};

// What is known of one job.
struct JobReport {
  JobStatus status;
  JobCounters counters;
};

// All jobs of one master: hands each event to the machine of the job that it belongs to.
//
// A job id whose job has ended may be used again: a Hello of an agent that the ended job did not
// know opens a new instance, while agents of the ended one are still told its verdict. Ended
// instances are remembered for that, the most recent kEndedMax of them. A verdict that waits for
// the store may still be lost: until it is written, who comes belongs to that job and hears it.
//
// A job of which no agent has been here for the idle time is ended and forgotten, when no worker of
// it can be alive: agents that come after all find a master without memory of it.
//
// Pure and single-threaded, like the machines.
class JobRegistry {
 public:
  static constexpr size_t kEndedMax = 256;
  using Serial = uint64_t;  // of an instance in this registry, across all jobs; from 1

  struct Options {
    uint64_t seed = 0;         // of the machines' jitter
    MasterLimits limits = {};  // on jobs and nodes; the others are not the registry's
    Duration idle_time{};      // 0: for ever
    // When set, every step is checked against rendezvous/invariants.h; called with the job and what
    // does not hold.
    std::function<void(const std::string& violation)> on_violation = {};
    // Milliseconds since 1970, for the time of incidents; may be empty.
    std::function<int64_t()> wall_clock = {};
    // What the job has decided waits for a store (RecordKeeper::IsHeld): a verdict is none yet for
    // who comes now. Empty: nothing ever waits.
    std::function<bool(Serial)> is_held = {};
  };

  explicit JobRegistry(Options options) : options_(std::move(options)) {}

  // Before the first step: goes on with what another registry's Record()s and Master() tell. The
  // serials of the jobs count from 1 in this order.
  void Restore(Time now, const MasterState& state);

  // What to remember of the job and its incidents; nothing when it has no record or has been
  // forgotten.
  std::optional<JobRecord> Record(Serial serial) const;
  // What to remember besides: must be written before the record of a forgotten job is removed.
  const MasterRecord& Master() const { return master_; }

  // One entry for each job that was stepped, even without effects.
  // MessageArrived and StreamBroken go to the stream's job; DeadlinePassed to the jobs whose
  // deadline has come; WokeUp and StopRequested to all. The first message of a stream must be a
  // Hello or a LastWill, else the effect is to close it; a Hello that there is no room for is
  // rejected and opens nothing. The end of an incident has the effect Persist, too; and so has a
  // job that is forgotten: there is no record of it any more.
  std::vector<JobEffects> Step(Time now, const RoundEvent& event);

  // An event for the newest instance of one job. Nothing when there is no such job.
  std::vector<JobEffects> StepJob(Time now, const std::string& job_id, const RoundEvent& event);

  // The earliest of all jobs.
  Time NextDeadline() const { return deadlines_.earliest(); }

  // No job needs this master any more: each has ended and its agents know.
  bool idle() const { return ended_ == jobs_.size(); }

  // The newest instance, or nullptr.
  const RoundMachine* Find(const std::string& job_id) const;

  // The newest instance of the job, or of each job when `job_id` is empty, by id.
  std::vector<JobReport> Report(Time now, const std::string& job_id, StatusDetail detail) const;
  std::vector<std::string> job_ids() const;

  // How late heartbeats came, of all jobs since the beginning.
  const Histogram& heartbeat_lag() const { return heartbeat_lag_; }

 private:
  struct Job {
    RoundMachine machine;
    JobJournal journal = {};
    Time alone_since = kNever;  // kNever: an agent is here, or it has ended
    bool has_ended = false;     // counted in ended_
  };
  using Jobs = std::map<Serial, Job>;

  void Take(Time now, const MessageArrived& event, std::vector<JobEffects>* all);
  Serial InstanceOf(const Hello& hello) const;
  MasterLoad LoadOf(Serial serial, const Hello& hello) const;
  Serial OpenInstance(const Hello& hello);
  bool IsOver(Serial serial) const;
  void StepOne(Time now, const RoundEvent& event, Serial serial, std::vector<JobEffects>* all);
  void TakeNote(Time now, Serial serial, Job* job);
  Time GivenUpAt(const Job& job) const;
  void GiveUpAlone(Time now, std::vector<JobEffects>* all);
  Jobs::iterator Forget(Jobs::iterator job);
  void CountHeartbeat(const RoundMachine& machine, const RoundEvent& event);
  void ForgetEnded(std::vector<JobEffects>* all);

  Options options_;
  Serial last_serial_ = 0;
  MasterRecord master_;
  Jobs jobs_;                             // the oldest comes first
  size_t ended_ = 0;                      // of jobs_: those that are finished()
  Deadlines deadlines_;                   // of jobs_
  std::map<std::string, Serial> newest_;  // by job id
  std::map<StreamId, Serial> streams_;
  Histogram heartbeat_lag_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_JOB_REGISTRY_H_
