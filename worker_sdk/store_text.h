#ifndef MUSTER_WORKER_SDK_STORE_TEXT_H_
#define MUSTER_WORKER_SDK_STORE_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

// Text as c10d::Store has it.
inline std::vector<uint8_t> ToStore(const std::string& text) { return {text.begin(), text.end()}; }
inline std::string FromStore(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_STORE_TEXT_H_
