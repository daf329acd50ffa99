#ifndef MUSTER_LAUNCHER_OPTION_VALUES_H_
#define MUSTER_LAUNCHER_OPTION_VALUES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/agent_options.h"
#include "agent/numa_plan.h"
#include "base/value_text.h"

// The text of option values and what it means. Pure. Every function returns InvalidArgument for a
// text that it does not take, with "what is wrong: what to give" as the message and the text in it;
// the caller puts the option's name in front.

namespace muster {

// N or MIN:MAX, 1 <= MIN <= MAX.
struct NodeRange {
  int min = 1;
  int max = 1;
};
absl::StatusOr<NodeRange> ParseNodes(absl::string_view text);

// How many workers a node has: a number from 1, or counted on the machine.
enum class SlotCount { kNumber, kCpu, kGpu, kAuto };
struct Slots {
  SlotCount how = SlotCount::kNumber;
  int number = 1;
};
absl::StatusOr<Slots> ParseSlots(absl::string_view text);

// A redirect or tee value: 0 to 3, or RANK:VALUE,... (unlisted ranks: none).
absl::StatusOr<StreamsByRank> ParseStreams(absl::string_view text);

// Local ranks with commas between them; empty: none.
absl::StatusOr<std::vector<int>> ParseRanks(absl::string_view text);

// Exit codes from 1 to 255 and ranges of them, as in 3,64-78; empty or "none": an empty set.
absl::StatusOr<ExitCodeSet> ParseExitCodes(absl::string_view text);

// Texts with commas between them; ",," is a comma within a text. Empty texts are left out.
absl::StatusOr<std::vector<std::string>> ParseFilters(absl::string_view text);

// Signal names with or without SIG and with commas between them; "none": an empty list. Signals
// that cannot be caught, and those the agent needs itself, are refused.
absl::StatusOr<std::vector<int>> ParseSignals(absl::string_view text);

// inherit, none, or the local rank that gets the launcher's standard input.
struct StdinChoice {
  StdinMode mode = StdinMode::kInherit;
  int local_rank = 0;
};
absl::StatusOr<StdinChoice> ParseStdin(absl::string_view text);

absl::StatusOr<Fencing> ParseFencing(absl::string_view text);
absl::StatusOr<JoinPolicy> ParseJoinPolicy(absl::string_view text);

// node, socket, exclusive, core-complex.
absl::StatusOr<NumaBinding> ParseNumaBinding(absl::string_view text);

// static, c10d, etcd; etcd-v2 is etcd.
enum class Backend { kStatic, kC10d, kEtcd };
absl::StatusOr<Backend> ParseBackend(absl::string_view text);

// A host name or an IP address without a port; brackets around an IPv6 address are taken off.
absl::StatusOr<std::string> ParseHost(absl::string_view text);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_OPTION_VALUES_H_
