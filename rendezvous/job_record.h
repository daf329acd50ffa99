#ifndef MUSTER_RENDEZVOUS_JOB_RECORD_H_
#define MUSTER_RENDEZVOUS_JOB_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/incident.h"
#include "rendezvous/incident_record.h"
#include "rendezvous/messages.h"
#include "rendezvous/reason.h"

namespace muster {

// What a master must know of a job when it starts again: what RoundMachine::Record() gives and its
// restoring constructor takes. Plain values; as bytes: rendezvous/state_codec.h. What agents tell
// again when they re-attach (addresses, ports, what runs) is not in it.
//
// Times are durations between events of the record: it never changes because time passes, and the
// clocks of two masters are never compared. Whoever goes on with it begins to count anew: a drain
// has all its patience again, the latest failure of a node counts as of that moment. So no worker
// is stopped for an absence of the master, and an exclusion may last longer by the time that the
// master before had counted since that failure.

// A place of the current generation.
struct SeatRecord {
  std::string node_id;       // empty: a member that the master had not heard of yet
  uint64_t incarnation = 0;  // 0: likewise
  int rank_base = 0;
  int role_rank_base = 0;
  int role_world_size = 1;
  // kRunning: its workers may be alive. kStopped only of a member that is lost: the others say it
  // again. kSucceeded.
  WorkersPhase phase = WorkersPhase::kRunning;
  bool drained = false;  // it succeeded because it was told to end
  bool operator==(const SeatRecord&) const = default;
};

// A node of which more is known than its place, or that has none.
struct NodeRecord {
  std::string id;
  uint64_t incarnation = 0;
  int last_group_rank = -1;  // for stable ranks
  bool leaving = false;
  bool draining = false;  // it is to leave at the next commit point, or has been told to go
  std::vector<uint64_t> retired = {};
  bool lost = false;  // of a job that has ended: gone without having heard the verdict
  bool operator==(const NodeRecord&) const = default;
};

// A drain that is under way.
struct DrainRecord {
  std::string who;
  bool whole_job = false;
  Duration patience{};
  bool operator==(const DrainRecord&) const = default;
};

// The failures of a node that may exclude it (rendezvous/failure_memory.h).
struct FailureRecord {
  std::string node_id;
  // The oldest first: how long each happened before the latest one of any node of the job.
  std::vector<Duration> before_latest;
  bool operator==(const FailureRecord&) const = default;
};

struct JobRecord {
  enum class Stage { kForming, kUnderWay, kStopping, kClosed };

  std::string job_id;
  uint64_t instance = 1;
  Stage stage = Stage::kForming;
  std::optional<JobSettings> settings;
  int64_t generation = 0;
  int64_t highest_heard = 0;
  int restarts_used = 0;
  int quick_failures = 0;  // in a row
  int last_size = 0;       // nodes of the generation before; 0: none

  // The table of the generation; the seats by group rank, empty while there is none.
  std::vector<SeatRecord> seats;
  int world_size = 1;
  std::string master_addr;
  int master_port = 0;
  int restart_count = 0;

  std::vector<NodeRecord> nodes;  // by id
  Incident incident;              // of the generation that is under way or being stopped
  std::vector<std::string> lost;  // in that incident, where failures of nodes count; by id
  Reason reason;                  // why it is being stopped
  std::optional<DrainRecord> drain;
  std::vector<FailureRecord> failures;  // by node id
  std::optional<Leaving> last_leave;
  std::optional<Verdict> verdict;  // when closed

  // What the journal beside the machine has, the oldest first (JobRegistry::Record).
  std::vector<IncidentRecord> incidents;

  bool operator==(const JobRecord&) const = default;
};

// What a master must know besides its jobs.
struct MasterRecord {
  uint64_t forgotten_instance = 0;  // the highest number of an instance that was forgotten
  bool operator==(const MasterRecord&) const = default;
};

// All that one master leaves to the next.
struct MasterState {
  MasterRecord master;
  std::vector<JobRecord> jobs;
};

// One of these as it is now, under its name in a store; with neither the key is removed.
struct RecordChange {
  std::string key;
  std::optional<JobRecord> record = {};
  std::optional<MasterRecord> master = {};
};

inline constexpr char kMasterKey[] = "master";

// "jobs/ID/INSTANCE", with each byte of the id that is not a letter, a digit, '.', '_' or '-' as
// %XX.
std::string RecordKey(const std::string& job_id, uint64_t instance);

// How long a record that does not change any more can be of use: that of an ended job for a day
// longer than an agent keeps its workers without a master. Nothing: always.
std::optional<Duration> NeededFor(const JobRecord& record);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_JOB_RECORD_H_
