#ifndef MUSTER_RUN_H_
#define MUSTER_RUN_H_

#include <muster/state.h>
#include <muster/world.h>

#include <functional>

namespace muster {

// Runs a training so that it survives what happens around it. Collective.
//
// It goes on from the newest checkpoint (CheckpointOptions::file; none: from the beginning), tells
// the agent READY, and calls `body`, which trains to the end and calls state.commit() after each
// step. Whatever `body` does must begin from what is in `state`, so that it can be called anew.
//
// Returns true when `body` has returned, on every rank, and its end is saved; false when the job is
// to drain: all ranks have left `body` at the same commit, and saved. The program then ends with 0.
//
// What `body` throws is thrown on. The others learn of it at once: they get a PeerLost with this
// rank and the text. When a rank is lost, because it ended or because the agent says ABORT, the
// others leave the collective that they are in with PeerLost. Rank 0 then saves the last commit
// that it remembers, also when it is ended by SIGTERM (where the program chose nothing for that).
// record() of <muster/record.h> makes a line and an exit code of what is thrown; the launcher
// starts the next generation, which goes on from there.
bool run(const World& world, State& state, const std::function<void()>& body);

}  // namespace muster

#endif  // MUSTER_RUN_H_
