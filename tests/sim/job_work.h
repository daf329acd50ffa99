#ifndef MUSTER_TESTS_SIM_JOB_WORK_H_
#define MUSTER_TESTS_SIM_JOB_WORK_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "rendezvous/messages.h"
#include "tests/sim/sim_world.h"
#include "worker_sdk/checkpoint_file.h"

namespace muster::sim {

// The group that workers find each other by: masters without memory may use the same numbers again,
// but never with the same store.
struct GroupKey {
  uint64_t instance = 0;
  int64_t generation = 0;
  std::string address;
  int port = 0;

  static GroupKey Of(const Assignment& assignment) {
    return {assignment.instance, assignment.generation, assignment.master_addr,
            assignment.master_port};
  }
  auto operator<=>(const GroupKey&) const = default;
  std::string ToString() const;
};

// A live worker as the work sees it.
struct WorkerHandle {
  std::function<void()> finish;     // the work is done: exit with 0 soon
  std::function<void()> lose_peer;  // a peer is gone: the collective may fail
  std::function<void()> fail;       // of its own fault
  std::function<void()> commit;     // it has saved the state of the group
};

// What the workers of the job do together: progress needs every rank of one group, and what has
// been reached is kept when the group falls apart.
//
// A group saves at commit points, under the rule by which the SDK refuses those of the past.
//
// It also is where the promises about groups are checked: each has one table, ranks are not taken
// twice, under strict fencing only one group has workers, and otherwise at most one can make
// progress unless all members of the older one are out of the master's sight.
class JobWork {
 public:
  struct Options {
    Duration work{};
    Duration commit_gap{};
    double heeds_drain = 1;
    bool is_strict = false;                    // at most one group may have workers
    bool forgets = false;                      // the master may crash: numbers can come again
    bool fixed_store = false;                  // all groups have the same address and port
    std::function<bool(int node)> is_cut_off;  // the node has been out of sight lately
  };

  JobWork(SimWorld& world, Options options) : world_(world), options_(std::move(options)) {}

  void Started(int node, const Assignment& assignment, int rank, WorkerHandle handle);
  void Ended(const Assignment& assignment, int rank, bool ok);
  // One of its members was told DRAIN=1: the group comes to a commit point and ends, or never
  // heeds.
  void Drain(const Assignment& assignment);

  bool is_done() const { return done_; }
  // All ranks of one group have exited with 0.
  bool a_group_succeeded() const { return succeeded_; }
  // A worker that is alive, by `choice` among all; nothing when there is none.
  const WorkerHandle* AnyWorker(uint64_t choice) const;

 private:
  struct Rank {
    int node = 0;
    WorkerHandle handle;
  };
  struct Group {
    Assignment table;  // of the first worker that started
    std::map<int, Rank> alive;
    int succeeded = 0;
    uint64_t run = 0;     // grows when the group begins or ceases to make progress
    Author author;        // of its saves
    uint64_t loaded = 0;  // when it read the checkpoint it goes on from, in the order of such reads
    bool drains = false;
    bool runs = false;
    bool finishes = false;
    Time since{};
  };

  bool IsComplete(const Group& group) const {
    return static_cast<int>(group.alive.size()) == group.table.world_size;
  }
  void CheckTable(const GroupKey& key, const Group& group, const Assignment& assignment, int rank);
  void CheckGroups();
  std::string LiveGroups() const;
  void Run(const GroupKey& key, Group& group);
  void Load(Group& group);
  void CommitLater(const GroupKey& key, uint64_t run);
  void Commit(const GroupKey& key, Group& group);
  void EndAll(Group& group);
  void Finish(const GroupKey& key);

  SimWorld& world_;
  Options options_;
  Duration reached_{};
  bool done_ = false;
  bool succeeded_ = false;
  std::map<GroupKey, Group> groups_;

  // The checkpoint that all groups share, with the rule of the SDK.
  std::optional<Author> saved_by_;
  uint64_t saved_at_load_ = 0;  // Group::loaded of that group
  uint64_t loads_ = 0;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_JOB_WORK_H_
