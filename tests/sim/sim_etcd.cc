#include "tests/sim/sim_etcd.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTimeout = 5s;  // of a call (EtcdOptions)
// A lease holds at least as long as was promised, and a while longer.
constexpr Duration kEndsLate = 1s;

uint64_t TicketOf(const election::Effect& effect) {
  return std::visit(
      [](const auto& call) -> uint64_t {
        if constexpr (requires { call.ticket; }) return call.ticket;
        return 0;
      },
      effect);
}

}  // namespace

SimEtcd::SimEtcd(SimWorld& world, const Options& options)
    : world_(world), options_(options), cut_until_(options.candidates, Time::min()) {}

bool SimEtcd::IsCut(int candidate) const { return world_.queue.now() < cut_until_[candidate]; }

// `carry_out` returns what the answer does to the caller.
void SimEtcd::Ask(int candidate, std::function<std::function<void()>()> carry_out,
                  std::function<void()> fail) {
  world_.queue.After(
      Way(), [this, candidate, carry_out = std::move(carry_out), fail = std::move(fail)] {
        if (IsCut(candidate)) return world_.queue.After(kTimeout, fail);
        auto answer = carry_out();
        world_.queue.After(Way(), [this, candidate, fail, answer = std::move(answer)] {
          if (IsCut(candidate)) return world_.queue.After(kTimeout, fail);
          answer();
        });
      });
}

void SimEtcd::Call(int candidate, const election::Effect& effect, Answer answer) {
  const auto fail = [effect, answer] {
    if (std::holds_alternative<election::RevokeLease>(effect)) {
      return answer(election::Revoked{TicketOf(effect)});
    }
    answer(election::Failed{TicketOf(effect), "etcd does not answer"});
  };
  if (const auto* watch = std::get_if<election::WatchKey>(&effect)) {
    world_.queue.After(Way(), [this, candidate, call = *watch, answer, fail] {
      if (IsCut(candidate)) return world_.queue.After(kTimeout, fail);
      AddWatch(candidate, call, answer);
    });
    return;
  }
  Ask(
      candidate,
      [this, effect, answer]() -> std::function<void()> {
        return [event = CarryOut(effect), answer] { answer(event); };
      },
      fail);
}

election::KeyIs SimEtcd::KeyNow(uint64_t ticket, int64_t revision) const {
  election::KeyIs is{ticket, std::nullopt, revision};
  if (!key_) return is;
  const std::string address = key_->serves < 0 ? "" : std::to_string(key_->serves);
  is.key = LeaderKey{key_->create_revision, key_->lease, address};
  return is;
}

election::Event SimEtcd::CarryOut(const election::Effect& effect) {
  const uint64_t ticket = TicketOf(effect);
  if (std::holds_alternative<election::GrantLease>(effect)) {
    Refresh(++last_lease_);
    return election::LeaseGranted{ticket, last_lease_, options_.ttl};
  }
  if (const auto* make = std::get_if<election::MakeKey>(&effect)) {
    if (leases_.count(make->lease) == 0) return election::Failed{ticket, "there is no such lease"};
    if (!key_) {
      key_ = Key{++revision_, make->lease, -1};
      Changed();
    }
  } else if (const auto* refresh = std::get_if<election::RefreshLease>(&effect)) {
    if (leases_.count(refresh->lease) == 0) return election::LeaseIs{ticket, 0s};
    Refresh(refresh->lease);
    return election::LeaseIs{ticket, options_.ttl};
  } else if (const auto* publish = std::get_if<election::PublishAddress>(&effect)) {
    if (key_ && key_->create_revision == publish->create_revision) {
      ++revision_;
      key_->serves = std::stoi(publish->address);
      Changed();
    }
    return election::Published{ticket};
  } else if (const auto* revoke = std::get_if<election::RevokeLease>(&effect)) {
    End(revoke->lease);
    return election::Revoked{ticket};
  }
  return KeyNow(ticket, revision_);
}

void SimEtcd::AddWatch(int candidate, const election::WatchKey& call, const Answer& answer) {
  watches_[++last_watch_] = {candidate, call, answer};
  if (changed_at_ > call.revision) Tell(last_watch_);
}

void SimEtcd::Tell(uint64_t watch) {
  const auto found = watches_.find(watch);
  if (found == watches_.end()) return;
  const Watch told = std::move(found->second);
  watches_.erase(found);
  world_.queue.After(Way(), [this, told, is = KeyNow(told.call.ticket, changed_at_)] {
    if (!IsCut(told.candidate)) return told.answer(is);
    world_.queue.After(kTimeout, [told] {
      told.answer(election::Failed{told.call.ticket, "the member is gone"});
    });
  });
}

void SimEtcd::Changed() {
  changed_at_ = revision_;
  std::vector<uint64_t> all;
  for (const auto& [number, watch] : watches_) all.push_back(number);
  for (const uint64_t number : all) Tell(number);
}

void SimEtcd::Refresh(int64_t lease) {
  const Time until = world_.queue.now() + options_.ttl + world_.random.Between(0ms, kEndsLate);
  leases_[lease] = until;
  world_.queue.At(until, [this, lease, until] {
    const auto found = leases_.find(lease);
    if (found != leases_.end() && found->second == until) End(lease);
  });
}

void SimEtcd::End(int64_t lease) {
  leases_.erase(lease);
  if (!key_ || key_->lease != lease) return;
  key_.reset();
  ++revision_;
  Changed();
}

void SimEtcd::Load(int candidate, int64_t claim,
                   std::function<void(absl::StatusOr<MasterState>)> answer) {
  Ask(
      candidate,
      [this, claim, answer]() -> std::function<void()> {
        absl::StatusOr<MasterState> result = kept_.State();
        if (!key_ || key_->create_revision != claim) {
          result = absl::FailedPreconditionError("another master leads");
        }
        return [answer, result = std::move(result)] { answer(result); };
      },
      [answer] { answer(absl::UnavailableError("etcd does not answer")); });
}

void SimEtcd::Write(int candidate, int64_t claim, std::vector<RecordChange> changes,
                    std::function<void(absl::Status)> answer) {
  Ask(
      candidate,
      [this, claim, changes = std::move(changes), answer]() -> std::function<void()> {
        if (!key_ || key_->create_revision != claim) {
          return [answer] { answer(absl::FailedPreconditionError("another master leads")); };
        }
        if (claim < last_claim_) world_.Violate("a deposed master's write took effect");
        last_claim_ = claim;
        ++revision_;
        kept_.Make(changes);
        return [answer] { answer(absl::OkStatus()); };
      },
      [answer] { answer(absl::UnavailableError("etcd does not answer")); });
}

// Who watches across the cut may learn of it, or not.
void SimEtcd::Cut(int candidate, Duration duration) {
  cut_until_[candidate] = std::max(cut_until_[candidate], world_.queue.now() + duration);
  for (const auto& [number, watch] : watches_) {
    if (watch.candidate != candidate || !world_.random.Chance(0.5)) continue;
    const Duration soon = world_.random.Between(0s, duration + kTimeout);
    world_.queue.After(soon, [this, number = number] {
      const auto found = watches_.find(number);
      if (found == watches_.end()) return;
      const Watch broken = std::move(found->second);
      watches_.erase(found);
      broken.answer(election::Failed{broken.call.ticket, "the member is gone"});
    });
  }
}

void SimEtcd::HealAll() { std::fill(cut_until_.begin(), cut_until_.end(), Time::min()); }

}  // namespace muster::sim
