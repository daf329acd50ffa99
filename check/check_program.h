#ifndef MUSTER_CHECK_CHECK_PROGRAM_H_
#define MUSTER_CHECK_CHECK_PROGRAM_H_

#include <functional>
#include <string>

#include "base/time.h"
#include "check/facts.h"
#include "check/findings.h"

namespace muster::check {

// Exit codes, besides those of muster run.
inline constexpr int kExitClear = 0;    // no problem; there may be remarks
inline constexpr int kExitProblem = 1;  // `muster check` has found one, and printed it
inline constexpr int kExitUsage = 2;

// What a program that is linked with LibTorch does besides.
struct TorchParts {
  std::string libtorch;      // its version
  std::string nccl_library;  // the file, or the name, of the NCCL that it uses
  // Called on every rank once all have met: makes the group, times its all-reduce, leaves it.
  std::function<AllReduce(const Facts&, Duration timeout)> measure;
};

// main() of the programs that `muster check` starts on each slot. `torch` is null without LibTorch.
// Rank 0 prints what was found on stdout; another rank only what it alone knows.
//
//   PROGRAM --timeout SECONDS --output table|json --backend auto|gloo|nccl
//   PROGRAM … --unreached HOST:PORT --option NAME [--here]   instead: why this node, which has no
//       rank, cannot reach the master; --here: the master should be on this node
//   PROGRAM … --lonely HOST:PORT --option NAME   instead: too few nodes have come to the master
int CheckProgram(int argc, char** argv, const TorchParts* torch);

}  // namespace muster::check

#endif  // MUSTER_CHECK_CHECK_PROGRAM_H_
