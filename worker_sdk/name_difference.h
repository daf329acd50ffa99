#ifndef MUSTER_WORKER_SDK_NAME_DIFFERENCE_H_
#define MUSTER_WORKER_SDK_NAME_DIFFERENCE_H_

#include <string>
#include <vector>

namespace muster {

// How the names in a checkpoint differ from those in the program: "it has scaler, which this
// program does not have". Empty where they are the same in the same order.
std::string NameDifference(const std::vector<std::string>& in_checkpoint,
                           const std::vector<std::string>& in_program);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_NAME_DIFFERENCE_H_
