#ifndef MUSTER_TESTS_SIM_SHRINK_H_
#define MUSTER_TESTS_SIM_SHRINK_H_

#include <cstdint>
#include <set>
#include <string>

#include "tests/sim/cluster.h"

namespace muster::sim {

// Leaves out faults of a seed that breaks a promise, as many as it can while the same promise is
// still broken: first halves of them, then ever smaller parts, then one by one. Returns those that
// are needed.
std::set<int> Shrink(uint64_t seed, const Result& broken);

// "" when all went well; else what was broken, with the faults that it takes, the end of that story
// and the command that replays it.
std::string Report(uint64_t seed, const Result& result);

// "3,17,20"
std::string Text(const std::set<int>& numbers);

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SHRINK_H_
