#ifndef MUSTER_CHECK_MACHINE_H_
#define MUSTER_CHECK_MACHINE_H_

#include <muster/worker.h>

#include <string>
#include <vector>

#include "base/env.h"
#include "check/facts.h"

// What this process finds out about its machine: reads files, asks the kernel and the resolver.

namespace muster::check {

// The addresses that a host name or literal stands for, each once. `problem`, if given, gets the
// resolver's words where there are none. Waits as long as the resolver does.
std::vector<std::string> ResolvedAddresses(const std::string& host, std::string* problem = nullptr);

// "2.28.9"; empty where the library, a file or a name for the loader, is not there.
std::string NcclVersion(const std::string& library);

// All but what others tell: port, libtorch, and the address where the launcher names none.
// `backend` is "gloo", "nccl" or "auto". `root` is "" but in tests: the folder of a recorded /proc,
// /sys and /dev.
Facts CollectFacts(const Identity& identity, const EnvMap& env, const std::string& backend,
                   const std::string& root = "");

}  // namespace muster::check

#endif  // MUSTER_CHECK_MACHINE_H_
