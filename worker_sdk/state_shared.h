#ifndef MUSTER_WORKER_SDK_STATE_SHARED_H_
#define MUSTER_WORKER_SDK_STATE_SHARED_H_

#include <muster/state.h>

#include "worker_sdk/checkpoint_keeper.h"
#include "worker_sdk/commit_rhythm.h"

// What State and run() share.
namespace muster {

// Leaves the body of run(). No std::exception, so that a body that catches those lets it pass.
struct Drained {};

struct State::Entry {
  std::string name;
  std::function<std::string()> snapshot;
  std::function<void(std::string_view)> check;
  std::function<void(std::string_view)> restore;
};

struct State::Shared {
  Shared(World its_world, CheckpointOptions its_options);

  World world;
  CheckpointOptions options;
  std::vector<Entry> entries;
  int64_t commits = 0;
  std::optional<int64_t> saved;  // the commit in options.file(), as far as this rank knows
  bool draining = false;
  bool within_run = false;
  Loaded loaded;
  CommitRhythm rhythm;
  CheckpointKeeper keeper;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_STATE_SHARED_H_
