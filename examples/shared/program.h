#ifndef MUSTER_EXAMPLES_SHARED_PROGRAM_H_
#define MUSTER_EXAMPLES_SHARED_PROGRAM_H_

#include <muster/worker.h>

#include <functional>
#include <string>

namespace examples {

// The rest of main(): muster::record() of `body`, which may also throw InputError and UsageError;
// what all ranks of a node find alike is printed once for them. No LibTorch here.
int RunProgram(const std::function<int(const muster::Identity&)>& body);

}  // namespace examples

#endif  // MUSTER_EXAMPLES_SHARED_PROGRAM_H_
