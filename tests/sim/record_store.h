#ifndef MUSTER_TESTS_SIM_RECORD_STORE_H_
#define MUSTER_TESTS_SIM_RECORD_STORE_H_

#include <absl/status/status.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rendezvous/job_record.h"

namespace muster::sim {

// Where a simulated master keeps what outlives it.
class RecordStore {
 public:
  virtual ~RecordStore() = default;

  virtual bool exists() const = 0;  // else masters have no store
  virtual MasterState Load() const = 0;
  // One at a time. `answer` comes later, as of StateStore::Write.
  virtual void Write(std::vector<RecordChange> changes,
                     std::function<void(absl::Status)> answer) = 0;
  // The master is dead: it hears no answer.
  virtual void Abandon() = 0;
};

// What is kept, with changes as they are made.
struct KeptRecords {
  MasterRecord master;
  std::map<std::string, JobRecord> jobs;

  MasterState State() const {
    MasterState state{master, {}};
    for (const auto& [key, record] : jobs) state.jobs.push_back(record);
    return state;
  }
  void Make(const std::vector<RecordChange>& changes) {
    for (const RecordChange& change : changes) {
      if (change.master) {
        master = *change.master;
      } else if (change.record) {
        jobs[change.key] = *change.record;
      } else {
        jobs.erase(change.key);
      }
    }
  }
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_RECORD_STORE_H_
