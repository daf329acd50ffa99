#include "worker_sdk/membership.h"

#include <c10/util/Logging.h>

#include <algorithm>

namespace muster {
namespace {

using std::chrono::milliseconds;

// For looking at the store after a failure, when its host may be gone.
constexpr milliseconds kNotePatience(2000);
// Whoever waits in a collective hears at once that somebody left, and signs out as well.
constexpr milliseconds kSignOutPatience(1000);

// While one lives, LibTorch logs errors only. Asking a store that went with its host is worth no
// warning with a backtrace: the exception says it all.
class QuietLibTorch {
 public:
  QuietLibTorch() : before_(FLAGS_caffe2_log_level) { FLAGS_caffe2_log_level = c10::GLOG_ERROR; }
  ~QuietLibTorch() { FLAGS_caffe2_log_level = before_; }

 private:
  int before_;
};

std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

// Set by a rank that waits in no collective any more, and by one that needs the store no more.
std::string GoneKey(int rank) { return "gone/" + std::to_string(rank); }
std::string DoneKey(int rank) { return "done/" + std::to_string(rank); }

}  // namespace

std::string MessageOf(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

std::string RanksText(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string SpanText(milliseconds span) {
  return span.count() % 1000 == 0 ? std::to_string(span.count() / 1000) + " s"
                                  : std::to_string(span.count()) + " ms";
}

const c10::intrusive_ptr<c10d::ProcessGroup>& Membership::Group() const {
  if (!group)
    throw PeerLost("this rank left its group after an error: start again from a checkpoint");
  return group;
}

void Membership::ThrowTyped(const char* what, const std::exception& error) {
  const std::string message = MessageOf(error);
  const std::string tried = "rank " + std::to_string(WorldRank()) + " of " +
                            std::to_string(identity.world_size) + ", " + what + ": ";
  const FailureKind kind = Classify(message);
  if (kind != FailureKind::kTimeout && kind != FailureKind::kPeerLost) {
    throw Error(tried + FirstLine(message));
  }
  const std::vector<int> silent = SignOutAndFindSilent(what);
  const auto note = Cause();
  NeedStoreNoMore(silent);
  if (note && note->kind == FailureKind::kUnusedParameter) {
    throw UnusedParameter(note->what, note->names);
  }
  if (note) {
    throw PeerLost(tried + "rank " + std::to_string(note->rank) + " left: " + note->what,
                   {note->rank});
  }
  std::vector<int> missing;
  for (const int rank : silent) missing.push_back(world_ranks[static_cast<size_t>(rank)]);
  if (kind == FailureKind::kTimeout) {
    const std::string who = missing.empty() ? "a peer" : RanksText(missing);
    throw Timeout(tried + "waited " + SpanText(options.op_timeout()) + " for " + who +
                      ": is it in the same collective, and does it run?",
                  options.op_timeout(), missing);
  }
  const std::string who = missing.empty() ? "" : ": " + RanksText(missing);
  throw PeerLost(tried + "a peer is gone" + who + " (" + FirstLine(message) + ")", missing);
}

// The group is closed before the others are waited for: that is how they notice.
std::vector<int> Membership::SignOutAndFindSilent(const std::string& what) {
  std::vector<int> silent;
  try {
    const QuietLibTorch quiet;
    store->setTimeout(kNotePatience);
    store->set(GoneKey(identity.rank), Bytes(what));
    CloseGroup();
    if (Cause()) return silent;
    std::vector<std::string> keys;
    for (int rank = 0; rank < identity.world_size; ++rank) keys.push_back(GoneKey(rank));
    try {
      store->wait(keys, kSignOutPatience);
    } catch (const std::exception&) {
      for (int rank = 0; rank < identity.world_size; ++rank) {
        if (!store->check({GoneKey(rank)})) silent.push_back(rank);
      }
    }
  } catch (const std::exception&) {
    silent = {0};  // the world's rank 0, and first in most groups, hosts the store
  }
  CloseGroup();
  return silent;
}

// The world's rank 0 takes the store along when it ends, so it leaves last.
void Membership::NeedStoreNoMore(const std::vector<int>& silent) {
  try {
    const QuietLibTorch quiet;
    store->setTimeout(kNotePatience);
    store->set(DoneKey(identity.rank), Bytes("done"));
    if (WorldRank() != 0) return;
    std::vector<std::string> keys;
    for (int rank = 0; rank < identity.world_size; ++rank) {
      if (std::count(silent.begin(), silent.end(), rank) == 0) keys.push_back(DoneKey(rank));
    }
    store->wait(keys, kSignOutPatience);
  } catch (const std::exception&) {
    // Somebody computes, or the store is gone.
  }
}

std::optional<FailureNote> Membership::Cause() const {
  try {
    const QuietLibTorch quiet;
    store->setTimeout(kNotePatience);
    if (!store->check({"failure"})) return std::nullopt;
    const auto bytes = store->get("failure");
    return DecodeNote(std::string(bytes.begin(), bytes.end()));
  } catch (const std::exception&) {
    return std::nullopt;  // the store was on the host that is gone
  }
}

void Membership::Leave(const FailureNote& note) {
  if (!group) return;
  try {
    const QuietLibTorch quiet;
    store->setTimeout(kNotePatience);
    store->compareSet("failure", std::vector<uint8_t>(), Bytes(Encode(note)));
    store->set(GoneKey(identity.rank), Bytes(note.what));
  } catch (const std::exception&) {
    // Then the others learn only that this rank is gone.
  }
  CloseGroup();
  NeedStoreNoMore({});
}

// Others may hold the group as well, so its connections are closed and not only forgotten.
void Membership::CloseGroup() {
  const auto closing = std::exchange(group, nullptr);
  if (!closing) return;
  try {
    const QuietLibTorch quiet;
    closing->abort();
  } catch (const std::exception&) {
    // It was closed by the error that led here.
  }
}

}  // namespace muster
