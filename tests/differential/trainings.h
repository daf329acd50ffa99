#ifndef MUSTER_TESTS_DIFFERENTIAL_TRAININGS_H_
#define MUSTER_TESTS_DIFFERENTIAL_TRAININGS_H_

#include <string>

#include "tests/differential/cases.h"

namespace muster {

// Trains each case on the ranks of the launcher's environment, as train_in_python.py does, and
// returns the same lines. Throws if ranks end with different parameters.
std::string TrainAll(const std::vector<Case>& cases);

// "GenuineIntel/AVX2": the processor, as train_in_python.py names it.
std::string Processor();

}  // namespace muster

#endif  // MUSTER_TESTS_DIFFERENTIAL_TRAININGS_H_
