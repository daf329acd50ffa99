#ifndef MUSTER_AGENT_WORKER_MESSAGE_H_
#define MUSTER_AGENT_WORKER_MESSAGE_H_

#include <functional>
#include <string_view>

namespace muster {

// Longest datagram on a worker socket, in bytes.
inline constexpr int kWorkerMessageBytesMax = 64 * 1024;

// Splits a datagram of "KEY=VALUE" lines and hands each to `on_line`, in order. A key is 1 to 64
// characters of A-Z, 0-9 and '_'; a value is the rest of the line and may be empty or hold '='.
// Empty lines are allowed. Returns how many lines are malformed (no '=', another key, a NUL byte);
// they are skipped. Pure.
int ParseWorkerMessage(
    std::string_view datagram,
    const std::function<void(std::string_view key, std::string_view value)>& on_line);

}  // namespace muster

#endif  // MUSTER_AGENT_WORKER_MESSAGE_H_
