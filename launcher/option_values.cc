#include "launcher/option_values.h"

#include <algorithm>
#include <csignal>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/exit_status.h"
#include "base/host_port.h"

namespace muster {
namespace {

// More than any machine has; keeps sums of ranks far from overflow.
constexpr int kRanksMax = 65535;
constexpr int kNodesMax = 1000000;
constexpr int kNamedSignalsMax = 31;

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

bool ReadStreams(absl::string_view text, Streams* streams) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return false;
  *streams = static_cast<Streams>(text[0] - '0');
  return true;
}

bool IsCatchable(int signal) { return signal != SIGKILL && signal != SIGSTOP && signal != SIGCHLD; }

int SignalNumber(absl::string_view name) {
  std::string wanted = absl::AsciiStrToUpper(name);
  if (!absl::StartsWith(wanted, "SIG")) wanted = "SIG" + wanted;
  for (int signal = 1; signal <= kNamedSignalsMax; ++signal) {
    if (SignalName(signal) == wanted) return signal;
  }
  return 0;
}

}  // namespace

absl::StatusOr<NodeRange> ParseNodes(absl::string_view text) {
  std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  NodeRange range;
  if (parts.empty() || parts.size() > 2 || !ReadWhole(parts.front(), &range.min) ||
      !ReadWhole(parts.back(), &range.max)) {
    return Bad(Quoted(text), " is neither N nor MIN:MAX: give 4 or 2:4, for example");
  }
  if (range.min < 1) return Bad(Quoted(text), " is too few: a job has at least 1 node");
  if (range.max > kNodesMax) return Bad(Quoted(text), " is too many: at most ", kNodesMax);
  if (range.min > range.max) {
    return Bad("MIN ", range.min, " is above MAX ", range.max, " in ", Quoted(text),
               ": give the smaller number first");
  }
  return range;
}

absl::StatusOr<Slots> ParseSlots(absl::string_view text) {
  if (text == "cpu") return Slots{SlotCount::kCpu, 0};
  if (text == "gpu") return Slots{SlotCount::kGpu, 0};
  if (text == "auto") return Slots{SlotCount::kAuto, 0};
  int number = 0;
  if (ReadWhole(text, &number) && number >= 1 && number <= kRanksMax) {
    return Slots{SlotCount::kNumber, number};
  }
  return Bad(Quoted(text), " is not a number of workers: give 1 to ", kRanksMax,
             ", or cpu, gpu, auto");
}

absl::StatusOr<StreamsByRank> ParseStreams(absl::string_view text) {
  StreamsByRank streams;
  if (ReadStreams(text, &streams.otherwise)) return streams;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    std::vector<absl::string_view> parts = absl::StrSplit(item, ':');
    int rank = 0;
    Streams value = Streams::kNone;
    if (parts.size() != 2 || !ReadWhole(parts[0], &rank) || rank < 0 || rank > kRanksMax ||
        !ReadStreams(parts[1], &value)) {
      return Bad(Quoted(text),
                 " names no streams: give 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or "
                 "LOCAL_RANK:VALUE,... as in 0:3,1:2");
    }
    streams.by_local_rank[rank] = value;
  }
  return streams;
}

absl::StatusOr<std::vector<int>> ParseRanks(absl::string_view text) {
  std::vector<int> ranks;
  if (text.empty()) return ranks;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    int rank = 0;
    if (!ReadWhole(absl::StripAsciiWhitespace(item), &rank) || rank < 0 || rank > kRanksMax) {
      return Bad(Quoted(text), " is not a list of local ranks: give them as in 0,1,2");
    }
    ranks.push_back(rank);
  }
  return ranks;
}

absl::StatusOr<ExitCodeSet> ParseExitCodes(absl::string_view text) {
  ExitCodeSet codes;
  if (text.empty() || text == "none") return codes;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    item = absl::StripAsciiWhitespace(item);
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(item, absl::MaxSplits('-', 1));
    int first = 0;
    int last = 0;
    const bool is_range = absl::StrContains(item, '-');
    if (!ReadWhole(ends.first, &first) || !ReadWhole(is_range ? ends.second : ends.first, &last) ||
        first < 1 || last < first || last >= ExitCodeSet::kSize) {
      return Bad(Quoted(text),
                 " is not a list of exit codes: give codes from 1 to 255 and ranges, ",
                 "as in 3,64-78");
    }
    for (int code = first; code <= last; ++code) codes.Add(code);
  }
  return codes;
}

absl::StatusOr<std::vector<std::string>> ParseFilters(absl::string_view text) {
  std::vector<std::string> filters(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      filters.back() += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      filters.back() += ',';
      ++i;
    } else {
      filters.emplace_back();
    }
  }
  std::erase(filters, "");
  return filters;
}

absl::StatusOr<std::vector<int>> ParseSignals(absl::string_view text) {
  std::vector<int> signals;
  if (text == "none") return signals;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    absl::string_view name = absl::StripAsciiWhitespace(item);
    int signal = SignalNumber(name);
    if (signal == 0) {
      return Bad(Quoted(name), " is no signal's name: give names as in SIGTERM,SIGUSR1, or none");
    }
    if (!IsCatchable(signal)) return Bad(SignalName(signal), " cannot be handled: leave it out");
    if (std::find(signals.begin(), signals.end(), signal) == signals.end()) {
      signals.push_back(signal);
    }
  }
  return signals;
}

absl::StatusOr<StdinChoice> ParseStdin(absl::string_view text) {
  if (text == "inherit") return StdinChoice{StdinMode::kInherit, 0};
  if (text == "none") return StdinChoice{StdinMode::kNone, 0};
  int rank = 0;
  if (ReadWhole(text, &rank) && rank >= 0) return StdinChoice{StdinMode::kOneRank, rank};
  return Bad(Quoted(text), " is not a choice: give inherit, none, or a local rank");
}

absl::StatusOr<NumaBinding> ParseNumaBinding(absl::string_view text) {
  if (text == "node") return NumaBinding::kNode;
  if (text == "socket") return NumaBinding::kSocket;
  if (text == "exclusive") return NumaBinding::kExclusive;
  if (text == "core-complex") return NumaBinding::kCoreComplex;
  return Bad(Quoted(text), " is not a choice: give node, socket, exclusive or core-complex");
}

absl::StatusOr<Fencing> ParseFencing(absl::string_view text) {
  if (text == "token") return Fencing::kToken;
  if (text == "strict") return Fencing::kStrict;
  return Bad(Quoted(text), " is not a choice: give token or strict");
}

absl::StatusOr<JoinPolicy> ParseJoinPolicy(absl::string_view text) {
  if (text == "now") return JoinPolicy::kNow;
  if (text == "checkpoint") return JoinPolicy::kCheckpoint;
  if (text == "restart") return JoinPolicy::kRestart;
  return Bad(Quoted(text), " is not a choice: give now, checkpoint or restart");
}

absl::StatusOr<Backend> ParseBackend(absl::string_view text) {
  if (text == "static") return Backend::kStatic;
  if (text == "c10d") return Backend::kC10d;
  if (text == "etcd" || text == "etcd-v2") return Backend::kEtcd;
  return Bad(Quoted(text), " is not a backend: give static, c10d, etcd or etcd-v2");
}

absl::StatusOr<std::string> ParseHost(absl::string_view text) {
  constexpr int kNoPort = -1;
  if (text.empty()) return Bad("an empty text is not a host: give a name or an IP address");
  absl::StatusOr<HostPort> host = ParseHostPort({text.data(), text.size()}, kNoPort);
  if (!host.ok()) return host.status();
  if (host->port != kNoPort) return Bad(Quoted(text), " has a port: give the host alone");
  return host->host;
}

}  // namespace muster
