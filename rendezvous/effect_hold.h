#ifndef MUSTER_RENDEZVOUS_EFFECT_HOLD_H_
#define MUSTER_RENDEZVOUS_EFFECT_HOLD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "rendezvous/job_registry.h"

namespace muster {

// Persist, then reply, then notify: keeps back what the machines want done until the records that
// it follows from are in the store. Of each job everything is performed in the order in which its
// machine said it; acknowledgements of heartbeats alone go past. Jobs do not wait for each other,
// and whatever changes while one write is under way goes into the next, all jobs together.
//
// Pure and single-threaded: who holds the store writes what Begin() names and says how it went.
class EffectHold {
 public:
  // What one step of one job's machine wants done.
  void Add(JobEffects job);

  // What may be performed now, in order; each once.
  std::vector<JobEffects> Take();

  // The jobs whose records must be written, as they are now; empty while a write is under way or
  // when nothing has changed. What the machines say after this call waits for the next write.
  std::vector<JobRegistry::Serial> Begin();

  // The write that Begin() asked for is there to stay, or it must be asked for again.
  void End(bool is_written);

  // Nothing is kept back or unwritten.
  bool empty() const { return lines_.empty(); }
  bool empty(JobRegistry::Serial job) const { return lines_.count(job) == 0; }
  // Effects of the job that wait.
  size_t HeldOf(JobRegistry::Serial job) const;

 private:
  struct Held {
    uint64_t version = 0;  // of the record that must be written first
    JobEffects job;
  };
  // A job with something unwritten. Versions count the changes of its record from 1.
  struct Line {
    uint64_t latest = 0;
    uint64_t writing = 0;
    uint64_t written = 0;
    std::deque<Held> held;
    size_t effects = 0;  // in `held`
  };

  std::map<JobRegistry::Serial, Line> lines_;
  std::set<JobRegistry::Serial> unwritten_;  // not even being written
  std::vector<JobRegistry::Serial> under_way_;
  std::vector<JobEffects> ready_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_EFFECT_HOLD_H_
