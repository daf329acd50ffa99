#ifndef MUSTER_WORKER_SDK_PROCESS_VARIABLE_H_
#define MUSTER_WORKER_SDK_PROCESS_VARIABLE_H_

#include <cstdlib>
#include <optional>
#include <string>

namespace muster {

// An Environment: that of this process.
inline std::optional<std::string> ProcessVariable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_PROCESS_VARIABLE_H_
