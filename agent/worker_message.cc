#include "agent/worker_message.h"

namespace muster {
namespace {

constexpr size_t kKeyBytesMax = 64;

bool IsKey(std::string_view key) {
  if (key.empty() || key.size() > kKeyBytesMax) return false;
  return key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos;
}

}  // namespace

int ParseWorkerMessage(
    std::string_view datagram,
    const std::function<void(std::string_view key, std::string_view value)>& on_line) {
  int malformed = 0;
  while (!datagram.empty()) {
    const size_t end = datagram.find('\n');
    const std::string_view line = datagram.substr(0, end);
    datagram.remove_prefix(end == std::string_view::npos ? datagram.size() : end + 1);
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    const bool readable = equals != std::string_view::npos && IsKey(line.substr(0, equals)) &&
                          line.find('\0') == std::string_view::npos;
    if (readable) {
      on_line(line.substr(0, equals), line.substr(equals + 1));
    } else {
      ++malformed;
    }
  }
  return malformed;
}

}  // namespace muster
