#ifndef MUSTER_EXAMPLES_SHARED_PROGRAM_H_
#define MUSTER_EXAMPLES_SHARED_PROGRAM_H_

#include <muster/worker.h>

#include <functional>
#include <string>

namespace examples {

// The rest of main(): runs `body` and returns what it returns. What it throws becomes one line on
// stderr, the launcher's report of it, and an exit code (docs/TRAINING.md); an error that all ranks
// find alike is printed once per node. No LibTorch here.
int RunProgram(const std::string& name, const std::function<int(const muster::Identity&)>& body);

}  // namespace examples

#endif  // MUSTER_EXAMPLES_SHARED_PROGRAM_H_
