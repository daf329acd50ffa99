#include "rendezvous/etcd_election.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace muster {
namespace {

namespace etcd = etcdserverpb;

// Each call brings one event, and few are under way.
constexpr size_t kQueueMax = 1024;

LeaderKey KeyOf(const etcd::KeyValue& kv) {
  return {.create_revision = kv.create_revision(), .lease = kv.lease(), .address = kv.value()};
}

election::KeyIs KeyOf(uint64_t ticket, const etcd::RangeResponse& range, int64_t revision) {
  election::KeyIs result{.ticket = ticket, .key = std::nullopt, .revision = revision};
  if (range.kvs_size() != 0) result.key = KeyOf(range.kvs(0));
  return result;
}

election::Failed FailedCall(uint64_t ticket, const absl::Status& status) {
  return {ticket, std::string(status.message())};
}

etcd::Compare CreatedAt(const std::string& key, int64_t revision) {
  etcd::Compare compare;
  compare.set_result(etcd::Compare::EQUAL);
  compare.set_target(etcd::Compare::CREATE);
  compare.set_key(key);
  compare.set_create_revision(revision);
  return compare;
}

}  // namespace

std::string EtcdLeaderKey(const std::string& prefix) { return prefix + "/leader"; }

EtcdElection::EtcdElection(Clock* clock, EtcdClient* client, Options options, Listener listener)
    : clock_(clock),
      client_(client),
      options_(std::move(options)),
      key_(EtcdLeaderKey(options_.prefix)),
      listener_(std::move(listener)),
      machine_(options_.seed),
      queue_(std::make_shared<Queue>(clock, kQueueMax)),
      thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "election");
}

EtcdElection::~EtcdElection() {
  queue_->Close();
  if (thread_.joinable()) thread_.join();
}

void EtcdElection::Serving(const std::string& address) { Post(election::ServingAt{address}); }

void EtcdElection::StepDown(const std::string& why) { Post(election::StepDownAsked{why}); }

void EtcdElection::Resign() {
  Post(election::ResignAsked{});
  if (thread_.joinable()) thread_.join();
}

void EtcdElection::Run() {
  election::Event event = election::Begin{};
  while (!queue_->closed()) {
    const ElectionMachine::Effects effects = machine_.Step(clock_->Now(), event);
    leads_until_ = machine_.leads_until().time_since_epoch().count();
    for (const election::Effect& effect : effects) {
      std::visit([this](const auto& kind) { Perform(kind); }, effect);
    }
    if (machine_.over()) return;
    event = queue_->Pop(machine_.NextDeadline()).value_or(election::TimeCame{});
  }
}

void EtcdElection::Perform(const election::ReadKey& effect) {
  etcd::RangeRequest request;
  request.set_key(key_);
  client_->Range(request, [queue = queue_, ticket = effect.ticket](auto answer) {
    if (!answer.ok()) {
      queue->Push(FailedCall(ticket, answer.status()));
    } else {
      queue->Push(KeyOf(ticket, *answer, answer->header().revision()));
    }
  });
}

void EtcdElection::Perform(const election::WatchKey& effect) {
  client_->AwaitChange(
      key_, effect.revision, [queue = queue_, ticket = effect.ticket](auto answer) {
        if (!answer.ok()) {
          queue->Push(FailedCall(ticket, answer.status()));
          return;
        }
        const etcd::Event& last = *answer->events().rbegin();
        election::KeyIs is{
            .ticket = ticket, .key = std::nullopt, .revision = last.kv().mod_revision()};
        if (last.type() == etcd::Event::PUT) is.key = KeyOf(last.kv());
        queue->Push(is);
      });
}

void EtcdElection::Perform(const election::GrantLease& effect) {
  using std::chrono::seconds;
  etcd::LeaseGrantRequest request;
  request.set_ttl(std::max<int64_t>(1, std::chrono::ceil<seconds>(options_.lease).count()));
  client_->LeaseGrant(request, [queue = queue_, ticket = effect.ticket](auto answer) {
    if (!answer.ok()) {
      queue->Push(FailedCall(ticket, answer.status()));
    } else if (!answer->error().empty()) {
      queue->Push(election::Failed{ticket, "etcd: " + answer->error()});
    } else {
      queue->Push(election::LeaseGranted{ticket, answer->id(), seconds(answer->ttl())});
    }
  });
}

void EtcdElection::Perform(const election::MakeKey& effect) {
  etcd::TxnRequest request;
  *request.add_compare() = CreatedAt(key_, 0);
  etcd::PutRequest* put = request.add_success()->mutable_request_put();
  put->set_key(key_);
  put->set_lease(effect.lease);
  request.add_failure()->mutable_request_range()->set_key(key_);
  client_->Txn(request, [queue = queue_, effect](auto answer) {
    if (!answer.ok()) {
      queue->Push(FailedCall(effect.ticket, answer.status()));
      return;
    }
    const int64_t revision = answer->header().revision();
    if (answer->succeeded()) {
      queue->Push(election::KeyIs{effect.ticket, LeaderKey{revision, effect.lease, ""}, revision});
    } else {
      queue->Push(KeyOf(effect.ticket, answer->responses(0).response_range(), revision));
    }
  });
}

void EtcdElection::Perform(const election::RefreshLease& effect) {
  etcd::LeaseKeepAliveRequest request;
  request.set_id(effect.lease);
  client_->LeaseKeepAlive(request, [queue = queue_, ticket = effect.ticket](auto answer) {
    if (answer.ok()) {
      queue->Push(election::LeaseIs{ticket, std::chrono::seconds(answer->ttl())});
    } else {
      queue->Push(FailedCall(ticket, answer.status()));
    }
  });
}

void EtcdElection::Perform(const election::PublishAddress& effect) {
  etcd::TxnRequest request;
  *request.add_compare() = CreatedAt(key_, effect.create_revision);
  etcd::PutRequest* put = request.add_success()->mutable_request_put();
  put->set_key(key_);
  put->set_value(effect.address);
  put->set_lease(effect.lease);
  client_->Txn(request, [queue = queue_, ticket = effect.ticket](const auto& answer) {
    // Where the key is another one's by now, the watch tells.
    if (answer.ok()) {
      queue->Push(election::Published{ticket});
    } else {
      queue->Push(FailedCall(ticket, answer.status()));
    }
  });
}

void EtcdElection::Perform(const election::RevokeLease& effect) {
  etcd::LeaseRevokeRequest request;
  request.set_id(effect.lease);
  client_->LeaseRevoke(request, [queue = queue_, ticket = effect.ticket](const auto&) {
    // A lease that is gone or cannot be reached is as good as revoked.
    queue->Push(election::Revoked{ticket});
  });
}

void EtcdElection::Perform(const election::Elected& effect) {
  if (listener_.on_elected) listener_.on_elected({key_, effect.create_revision});
}

void EtcdElection::Perform(const election::Lost& effect) {
  if (listener_.on_lost) listener_.on_lost(effect.why);
}

void EtcdElection::Perform(const election::LeaderIs& effect) {
  if (listener_.on_leader) listener_.on_leader(effect.address, effect.problem);
}

void EtcdElection::Perform(const election::Over&) {}

}  // namespace muster
