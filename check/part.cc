#include "check/part.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/event_loop.h"

namespace muster::check {
namespace {

constexpr const char* kOrders[] = {"dial", "form", "sum", "torch", "end"};
constexpr double kNanoseconds = 1e9;

Fields Answer(const AllReduce& result) {
  if (result.failed_rank >= 0) return {{"failure", result.failure}};
  return {{"latency_ns", absl::StrCat(static_cast<int64_t>(result.latency_s * kNanoseconds))},
          {"bandwidth", absl::StrCat(static_cast<int64_t>(result.bandwidth))}};
}

// The numbers of a list "1 2 address 3", of which `texts` are not numbers; nothing for another one.
std::vector<std::string> Words(const std::string& text, size_t count) {
  std::vector<std::string> words = absl::StrSplit(text, ' ');
  if (words.size() != count) words.clear();
  return words;
}

int NumberIn(const std::vector<std::string>& words, size_t at) {
  return static_cast<int>(WholeNumber(words[at]).value_or(0));
}

}  // namespace

Fields OrderFields(Order order, const std::vector<Facts>& others) {
  Fields fields = {{"do", kOrders[static_cast<int>(order)]}};
  for (const Facts& one : others) {
    fields.emplace_back("peer", absl::StrCat(one.rank, " ", one.node, " ", one.local_rank, " ",
                                             one.workers, " ", one.address, " ", one.port));
  }
  return fields;
}

std::optional<Order> OrderFrom(const Fields& fields) {
  const std::string_view word = FirstOf(fields, "do");
  const auto found = std::find(std::begin(kOrders), std::end(kOrders), word);
  if (found == std::end(kOrders)) return std::nullopt;
  return static_cast<Order>(found - std::begin(kOrders));
}

Part::Part(const Facts* facts, Listener listener, int world_size, const TorchParts* torch)
    : facts_(*facts),
      listener_(std::move(listener)),
      world_size_(world_size),
      torch_(torch),
      ring_(facts->rank, world_size) {}

Fields Part::Do(Order order, const Fields& fields, Duration timeout) {
  const Time deadline = EventLoop::Now() + timeout;
  switch (order) {
    case Order::kDial:
      return DialOthers(fields, timeout);
    case Order::kForm: {
      const auto next = peers_.find((facts_.rank + 1) % world_size_);
      if (next == peers_.end()) return {{"failure", "the next rank is not here"}};
      const int error = ring_.Form(next->second.target, listener_, deadline);
      if (error != 0) return {{"failure", std::strerror(error)}};
      return {};
    }
    case Order::kSum:
      return Answer(MeasureRing(&ring_, facts_.rank, world_size_, deadline));
    case Order::kTorch:
      if (torch_ == nullptr) return {{"failure", "LibTorch is not here"}};
      return Answer(torch_->measure(facts_, timeout));
    case Order::kEnd:
      break;
  }
  return {};
}

Fields Part::DialOthers(const Fields& fields, Duration timeout) {
  for (const auto& [key, value] : fields) {
    const std::vector<std::string> words = Words(value, 6);
    if (key != "peer" || words.empty()) continue;
    peers_[NumberIn(words, 0)] = {NumberIn(words, 1),
                                  NumberIn(words, 2),
                                  std::max(NumberIn(words, 3), 1),
                                  {words[4], NumberIn(words, 5)}};
  }
  // Of each other node the worker that stands where this one does, as NCCL connects them.
  std::vector<int> ranks;
  std::vector<Target> targets;
  for (const auto& [rank, peer] : peers_) {
    if (peer.node == facts_.node || peer.local_rank != facts_.local_rank % peer.workers) continue;
    ranks.push_back(rank);
    targets.push_back(peer.target);
  }
  Fields answer;
  const std::vector<Dialled> dialled = Dial(targets, EventLoop::Now() + timeout);
  for (size_t i = 0; i < dialled.size(); ++i) {
    if (dialled[i].error == 0) continue;
    answer.emplace_back("failed", absl::StrCat(ranks[i], " ", targets[i].address, " ",
                                               targets[i].port, " ", dialled[i].error));
  }
  return answer;
}

std::vector<FailedDial> FailedDialsFrom(const std::map<int, Fields>& answers) {
  std::vector<FailedDial> dials;
  for (const auto& [rank, fields] : answers) {
    for (const auto& [key, value] : fields) {
      const std::vector<std::string> words = Words(value, 4);
      if (key != "failed" || words.empty()) continue;
      dials.push_back({rank, NumberIn(words, 0), words[1], NumberIn(words, 2), NumberIn(words, 3)});
    }
  }
  return dials;
}

AllReduce AllReduceFrom(const std::map<int, Fields>& answers, int world_size,
                        const std::string& transport) {
  AllReduce result;
  result.transport = transport;
  for (int rank = 0; rank < world_size; ++rank) {
    const auto answer = answers.find(rank);
    if (answer == answers.end()) {
      result.failed_rank = rank;
      result.failure = "it has not answered in time";
      return result;
    }
    const std::string_view failure = FirstOf(answer->second, "failure");
    if (failure.empty()) continue;
    result.failed_rank = rank;
    result.failure = failure;
    return result;
  }
  const auto number = [&](const char* key) {
    return static_cast<double>(WholeNumber(FirstOf(answers.at(0), key)).value_or(0));
  };
  result.latency_s = number("latency_ns") / kNanoseconds;
  result.bandwidth = number("bandwidth");
  return result;
}

}  // namespace muster::check
