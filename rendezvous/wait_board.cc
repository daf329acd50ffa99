#include "rendezvous/wait_board.h"

#include <algorithm>
#include <chrono>

namespace muster {
namespace {

// How often numbers that change are told.
constexpr Duration kSpacing = std::chrono::seconds(1);

// Returns when the node has to be told again.
Time Tell(Time now, const Hold& hold, bool is_new, Duration renewal, Node* node,
          RoundOutput* output) {
  const Time until = hold.until == kNever ? now + renewal : hold.until;
  node->waits = true;
  node->wait_reason = hold.reason;
  node->wait_until = std::max(until, now + kSpacing);
  node->knows = !is_new || hold.untold == Duration::zero();
  if (!node->knows) return now + hold.untold;
  output->Send(node->stream, Wait{Sentence(hold.reason), std::max(until - now, Duration::zero())});
  return node->wait_until;
}

}  // namespace

// Those who have to be told at once, by what they wait for.
std::array<WaitBoard::Nodes, kWaitKinds> WaitBoard::SortTouched(const Rules& rules,
                                                                Roster* roster) {
  std::array<Nodes, kWaitKinds> fresh;
  for (Node* node : roster->TakeTouched()) {
    const WaitKind kind = rules.kind_of(*node);
    if (kind != node->wait_kind) roster->SetWaitKind(*node, kind);
    const bool waits = kind != WaitKind::kNothing;
    if (waits && !node->waits) fresh[static_cast<size_t>(kind)].push_back(node);
  }
  return fresh;
}

void WaitBoard::Update(Time now, const Rules& rules, Roster* roster, RoundOutput* output) {
  const std::array<Nodes, kWaitKinds> fresh = SortTouched(rules, roster);
  for (size_t index = 1; index < kWaitKinds; ++index) {
    Notice& notice = notices_[index];
    if (roster->counts().waiting[index] == 0) {
      notice = Notice();
      continue;
    }
    const auto kind = static_cast<WaitKind>(index);
    const Hold hold = rules.hold_of(kind);
    const bool is_other = notice.sent == Time::min() || hold.reason.code != notice.reason.code;
    const bool has_changed = is_other || hold.reason != notice.reason;
    const Time spaced = is_other ? now : notice.sent + kSpacing;
    if (now >= notice.until || (has_changed && now >= spaced)) {
      notice = {hold.reason, now, kNever, kNever};
      for (auto& [id, node] : roster->nodes()) {
        if (node.wait_kind != kind) continue;
        const bool knows =
            node.waits && node.knows && node.wait_reason == hold.reason && node.wait_until > now;
        const Time again =
            knows ? node.wait_until : Tell(now, hold, is_other, rules.renewal, &node, output);
        notice.until = std::min(notice.until, again);
      }
      notice.next = notice.until;
    } else {
      for (Node* node : fresh[index]) {
        notice.until = std::min(notice.until, Tell(now, hold, true, rules.renewal, node, output));
      }
      notice.next = has_changed ? std::min(spaced, notice.until) : notice.until;
    }
  }
}

Time WaitBoard::NextDeadline() const {
  Time next = kNever;
  for (const Notice& notice : notices_) next = std::min(next, notice.next);
  return next;
}

}  // namespace muster
