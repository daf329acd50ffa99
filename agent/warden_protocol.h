#ifndef MUSTER_AGENT_WARDEN_PROTOCOL_H_
#define MUSTER_AGENT_WARDEN_PROTOCOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// What agent and warden say to each other over their socket pair, and its bytes: frames of a 4-byte
// length (of what follows), a type byte, and fields in host byte order, because both ends are the
// same binary. Pure.

namespace muster {

// ── Agent → warden ──────────────────────────────────────────────────────────────────────────────

// Start a process in a session of its own. `fd_count` descriptors travel with the frame
// (SCM_RIGHTS) and become the descriptors 3 - fd_count ... 2 of the process: 2 = stdout and stderr
// (stdin is the warden's), 3 = stdin too.
struct SpawnRequest {
  uint32_t id = 0;                // the local rank
  std::vector<std::string> argv;  // argv[0] is a path; it is not looked up
  std::vector<std::string> env;   // "K=V", replacing those of the warden's own environment
  uint8_t fd_count = 2;
  std::vector<uint32_t> cpus = {};  // it runs on these only; empty: wherever the warden may
  bool operator==(const SpawnRequest&) const = default;
};

// To every descendant, to the started processes only, or to a single one of these. SIGKILL to the
// tree is repeated until nothing is left.
struct SignalRequest {
  int32_t signal = 0;
  bool whole_tree = true;
  int32_t only = -1;  // id of the one process, where not the whole tree; -1: each of them
  bool operator==(const SignalRequest&) const = default;
};

// What to do when the agent has vanished and everything is gone: the folder to remove, then the
// command to run. Empty: none.
struct LastWillRequest {
  std::vector<std::string> argv;
  std::string folder;
  bool operator==(const LastWillRequest&) const = default;
};

// Until when processes may live unless the agent says otherwise, for an agent that is frozen: then
// SIGKILL goes to the whole tree. Replaces the one before.
struct FenceRequest {
  int64_t at_ns = INT64_MAX;  // on the monotonic clock; INT64_MAX: for ever
  bool operator==(const FenceRequest&) const = default;
};

using WardenRequest = std::variant<SpawnRequest, SignalRequest, LastWillRequest, FenceRequest>;

// ── Warden → agent ──────────────────────────────────────────────────────────────────────────────

struct StartedAnswer {
  uint32_t id = 0;
  int32_t pid = 0;
  bool operator==(const StartedAnswer&) const = default;
};

struct NotStartedAnswer {
  uint32_t id = 0;
  int32_t error = 0;    // errno
  bool forked = false;  // the process existed and could not execute the program
  bool operator==(const NotStartedAnswer&) const = default;
};

// `tree_empty`: the warden has no descendants any more.
struct ExitedAnswer {
  uint32_t id = 0;
  int32_t wait_status = 0;
  bool tree_empty = false;
  bool operator==(const ExitedAnswer&) const = default;
};

// The last descendant, not a started process itself, is gone.
struct EmptyAnswer {
  bool operator==(const EmptyAnswer&) const = default;
};

using WardenAnswer = std::variant<StartedAnswer, NotStartedAnswer, ExitedAnswer, EmptyAnswer>;

// ── Bytes ───────────────────────────────────────────────────────────────────────────────────────

inline constexpr size_t kFrameHeader = sizeof(uint32_t);
inline constexpr uint32_t kCpusMax = 65536;
inline constexpr size_t kFrameMax = 64u << 20;  // far above ARG_MAX: what is larger is not ours

std::string Encode(const WardenRequest& request);
std::string Encode(const WardenAnswer& answer);

// The length of the first frame in `bytes` with its header; 0 while its header is incomplete.
size_t FrameLength(std::string_view bytes);

// `frame` is one whole frame with its header. Nothing for bytes that no Encode makes.
std::optional<WardenRequest> DecodeRequest(std::string_view frame);
std::optional<WardenAnswer> DecodeAnswer(std::string_view frame);

}  // namespace muster

#endif  // MUSTER_AGENT_WARDEN_PROTOCOL_H_
