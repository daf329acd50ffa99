#include "worker_sdk/membership.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <future>
#include <thread>

#include "worker_sdk/store_text.h"

namespace muster {
namespace {

using std::chrono::milliseconds;

constexpr const char* kAborted = "the agent says that a peer of this generation is gone (ABORT)";

// While one lives, LibTorch logs errors only. Asking a store that went with its host is worth no
// warning with a backtrace: the exception says it all.
class QuietLibTorch {
 public:
  QuietLibTorch() : before_(FLAGS_caffe2_log_level) { FLAGS_caffe2_log_level = c10::GLOG_ERROR; }
  ~QuietLibTorch() { FLAGS_caffe2_log_level = before_; }

 private:
  int before_;
};

// Set by a rank that waits in no collective any more, and by one that needs the store no more.
std::string GoneKey(int rank) { return "gone/" + std::to_string(rank); }
std::string DoneKey(int rank) { return "done/" + std::to_string(rank); }

std::optional<FailureNote> NoteIn(c10d::Store& store) {
  if (!store.check({"failure"})) return std::nullopt;
  return DecodeNote(FromStore(store.get("failure")));
}

// Those who do not sign out within `patience`.
std::vector<int> Silent(c10d::Store& store, int ranks, milliseconds patience) {
  std::vector<int> silent;
  std::vector<std::string> keys;
  for (int rank = 0; rank < ranks; ++rank) keys.push_back(GoneKey(rank));
  try {
    store.wait(keys, patience);
  } catch (const std::exception&) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (!store.check({GoneKey(rank)})) silent.push_back(rank);
    }
  }
  return silent;
}

struct Findings {
  std::vector<int> silent = {0};  // rank 0 has the store, which did not answer
  std::optional<FailureNote> note;
};

constexpr milliseconds kEach(200), kAll(500);

// Who is told to leave is to be gone within a second. The host of the store may be the one that is
// frozen, and some questions to it have no time-out: hence another thread, which is left behind
// then.
Findings LookAroundQuickly(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks) {
  const auto answer = std::make_shared<std::promise<Findings>>();
  auto found = answer->get_future();
  std::thread([store, rank, ranks, answer] {
    Findings findings;
    try {
      const QuietLibTorch quiet;
      store->setTimeout(kEach);
      store->set(GoneKey(rank), ToStore("aborted"));
      findings.note = NoteIn(*store);
      findings.silent = Silent(*store, ranks, kEach);
      store->set(DoneKey(rank), ToStore("done"));
    } catch (const std::exception&) {
      // It went with its host.
    }
    answer->set_value(findings);
  }).detach();
  return found.wait_for(kAll) == std::future_status::ready ? found.get() : Findings();
}

}  // namespace

struct Membership::Patience {
  milliseconds store;     // for looking at it after a failure, when its host may be gone
  milliseconds sign_out;  // whoever waits in a collective hears at once that somebody left
  static Patience Normal() { return {milliseconds(2000), milliseconds(1000)}; }
  static Patience Short() { return {milliseconds(200), milliseconds(200)}; }
};

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

void Lifeline::Hold(c10::intrusive_ptr<c10d::ProcessGroup> group, OwnSockets sockets,
                    std::shared_ptr<HostMemory> memory) {
  const std::lock_guard lock(mutex_);
  group_ = std::move(group);
  sockets_ = std::move(sockets);
  memory_ = std::move(memory);
}

// Gloo's abort() closes its sockets, which wakes the peers; who waits in this process it leaves to
// the time-out. An end of the connections wakes it.
void Lifeline::Cut() {
  const std::lock_guard lock(mutex_);
  cut_ = true;
  if (!group_) return;
  ShutDown(sockets_);
  if (memory_) memory_->Leave();
  if (group_->getBackendType() != c10d::ProcessGroup::BackendType::NCCL) return;
  try {
    const QuietLibTorch quiet;
    group_->getBackend(at::kCUDA)->abort();
  } catch (const std::exception&) {
    // It was closed by an error before.
  }
}

// Others may hold the group as well, so its connections are closed and not only forgotten.
void Lifeline::Close() {
  const std::lock_guard lock(mutex_);
  sockets_.clear();
  memory_.reset();
  const auto closing = std::exchange(group_, nullptr);
  if (!closing) return;
  try {
    const QuietLibTorch quiet;
    closing->abort();
  } catch (const std::exception&) {
    // It was closed by an error before.
  }
}

bool Lifeline::cut() const {
  const std::lock_guard lock(mutex_);
  return cut_;
}

// The lifeline, and not this object, is what the agent's thread holds: it must never be the last
// owner of what joins that thread.
void Membership::ObeyAgent(OwnSockets sockets) {
  lifeline_->Hold(group, std::move(sockets), memory);
  agent->on_abort([lifeline = lifeline_, own = identity.generation](int64_t generation) {
    if (generation >= own) lifeline->Cut();
  });
}

const c10::intrusive_ptr<c10d::ProcessGroup>& Membership::Group() const {
  if (lifeline_->cut()) throw PeerLost(std::string(kAborted) + ": leave and start again");
  if (!group)
    throw PeerLost("this rank left its group after an error: start again from a checkpoint");
  return group;
}

FailureKind Membership::KindOf(const std::string& message) const {
  const FailureKind kind = Classify(message);
  // What the backend says of a group that was closed under it may be anything.
  const bool named = kind == FailureKind::kUnusedParameter;
  return lifeline_->cut() && !named ? FailureKind::kPeerLost : kind;
}

void Membership::ThrowTyped(const char* what, const std::exception& error) {
  const std::string message = MessageOf(error);
  const std::string tried = "rank " + std::to_string(WorldRank()) + " of " +
                            std::to_string(identity.world_size) + ", " + what + ": ";
  const bool aborted = lifeline_->cut();
  const FailureKind kind = KindOf(message);
  if (kind != FailureKind::kTimeout && kind != FailureKind::kPeerLost) {
    throw Error(tried + FirstLine(message));
  }
  std::vector<int> silent;
  std::optional<FailureNote> note;
  if (aborted) {
    CloseGroup();
    Findings found = LookAroundQuickly(store, identity.rank, identity.world_size);
    silent = found.silent;
    note = found.note;
    if (WorldRank() == 0) NeedStoreNoMore(silent, Patience::Short());
  } else {
    silent = SignOutAndFindSilent(what, Patience::Normal());
    note = Cause();
    NeedStoreNoMore(silent, Patience::Normal());
  }
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
  if (aborted) throw PeerLost(tried + kAborted + who, missing);
  throw PeerLost(tried + "a peer is gone" + who + " (" + FirstLine(message) + ")", missing);
}

// The group is closed before the others are waited for: that is how they notice.
std::vector<int> Membership::SignOutAndFindSilent(const std::string& what,
                                                  const Patience& patience) {
  std::vector<int> silent;
  try {
    const QuietLibTorch quiet;
    store->setTimeout(patience.store);
    store->set(GoneKey(identity.rank), ToStore(what));
    CloseGroup();
    if (Cause()) return silent;
    silent = Silent(*store, identity.world_size, patience.sign_out);
  } catch (const std::exception&) {
    silent = {0};  // the world's rank 0, and first in most groups, hosts the store
  }
  CloseGroup();
  return silent;
}

// The world's rank 0 takes the store along when it ends, so it leaves last.
void Membership::NeedStoreNoMore(const std::vector<int>& silent, const Patience& patience) {
  try {
    const QuietLibTorch quiet;
    store->setTimeout(patience.store);
    store->set(DoneKey(identity.rank), ToStore("done"));
    if (WorldRank() != 0) return;
    std::vector<std::string> keys;
    for (int rank = 0; rank < identity.world_size; ++rank) {
      if (std::count(silent.begin(), silent.end(), rank) == 0) keys.push_back(DoneKey(rank));
    }
    store->wait(keys, patience.sign_out);
  } catch (const std::exception&) {
    // Somebody computes, or the store is gone.
  }
}

std::optional<FailureNote> Membership::Cause() const {
  try {
    const QuietLibTorch quiet;
    return NoteIn(*store);
  } catch (const std::exception&) {
    return std::nullopt;  // the store was on the host that is gone
  }
}

void Membership::Leave(const FailureNote& note) {
  if (!group) return;
  if (lifeline_->cut()) return CloseGroup();  // the others are told by their agents
  const Patience patience = Patience::Normal();
  try {
    const QuietLibTorch quiet;
    store->setTimeout(patience.store);
    store->compareSet("failure", {}, ToStore(Encode(note)));
    store->set(GoneKey(identity.rank), ToStore(note.what));
  } catch (const std::exception&) {
    // Then the others learn only that this rank is gone.
  }
  CloseGroup();
  NeedStoreNoMore({}, patience);
}

void Membership::CloseGroup() {
  group = nullptr;
  lifeline_->Close();
}

}  // namespace muster
