#include "rendezvous/last_will.h"

#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "rendezvous/attend_call.h"
#include "rendezvous/dial.h"
#include "rendezvous/etcd_client.h"
#include "rendezvous/etcd_election.h"
#include "rendezvous/master_channel.h"
#include "rendezvous/stream_end_text.h"

namespace muster {
namespace {

// How the stream ended, told by a thread of gRPC.
struct Ending {
  Mutex mutex;
  Condition changed;
  bool ended ABSL_GUARDED_BY(mutex) = false;
  absl::Status status ABSL_GUARDED_BY(mutex);
  bool heard_master ABSL_GUARDED_BY(mutex) = false;
};

// Until the leader's key is another one than it was at `revision`, or the time is up.
struct KeyChange {
  Mutex mutex;
  Condition changed;
  bool is_there ABSL_GUARDED_BY(mutex) = false;
};

void AwaitAnotherLeader(EtcdClient* client, const std::string& key, int64_t revision,
                        Time deadline) {
  const auto change = std::make_shared<KeyChange>();
  client->AwaitChange(key, revision, [change](const auto&) {
    MutexLock lock(&change->mutex);
    change->is_there = true;
    change->changed.SignalAll();
  });
  RealClock clock;
  MutexLock lock(&change->mutex);
  while (!change->is_there && clock.Now() < deadline) {
    clock.Wait(&change->mutex, &change->changed, deadline);
  }
}

absl::Status SendTo(const HostPort& endpoint, const ClientSecurity& security, const LastWill& will,
                    Time deadline) {
  RealClock clock;
  const auto failed = [&](const absl::Status& status) {
    return absl::Status(status.code(), DialFailureText(endpoint, status));
  };
  const absl::StatusOr<std::vector<std::string>> addresses = ResolveHost(endpoint.host);
  if (!addresses.ok()) return failed(addresses.status());
  absl::StatusOr<Connection> connection =
      Connect(*addresses, endpoint.port, deadline - clock.Now(), /*cancel_fd=*/-1);
  if (!connection.ok()) return failed(connection.status());

  const std::string address = connection->address;
  absl::StatusOr<MasterChannel> channel =
      MasterChannel::Open(*std::move(connection), endpoint, security, deadline - clock.Now());
  if (!channel.ok()) return failed(channel.status());
  const auto ending = std::make_shared<Ending>();
  AttendCall::Listener listener{.on_message = [](const MasterMessage&) { return true; },
                                .on_end =
                                    [ending](absl::Status status, bool heard_master) {
                                      MutexLock lock(&ending->mutex);
                                      ending->ended = true;
                                      ending->status = std::move(status);
                                      ending->heard_master = heard_master;
                                      ending->changed.SignalAll();
                                    }};
  const std::shared_ptr<AttendCall> call =
      AttendCall::Start(*std::move(channel), std::move(listener));
  call->Send(will);
  call->HalfClose();

  MutexLock lock(&ending->mutex);
  while (!ending->ended && clock.Now() < deadline) {
    clock.Wait(&ending->mutex, &ending->changed, deadline);
  }
  if (!ending->ended) {
    call->Cancel();
    return absl::DeadlineExceededError(ToString(endpoint) +
                                       ": the master did not acknowledge in time");
  }
  if (ending->status.ok()) return absl::OkStatus();
  return absl::Status(ending->status.code(),
                      StreamEndText(endpoint, address, ending->status, ending->heard_master));
}

// The leader may be the node whose agent died: then the next one is waited for.
absl::Status SendToElected(const EtcdElectionOptions& election, const ClientSecurity& security,
                           const LastWill& will, Time deadline) {
  RealClock clock;
  const absl::StatusOr<std::unique_ptr<EtcdClient>> client = EtcdClient::Make(election.etcd);
  if (!client.ok()) return client.status();
  etcdserverpb::RangeRequest request;
  request.set_key(EtcdLeaderKey(election.prefix));
  absl::Status last;
  do {
    const auto key = (*client)->RangeAndWait(request);
    if (!key.ok()) return key.status();
    last = absl::UnavailableError(EtcdName(election.etcd) + ": no master is elected");
    if (key->kvs_size() != 0 && !key->kvs(0).value().empty()) {
      const absl::StatusOr<HostPort> endpoint = ParseHostPort(key->kvs(0).value(), 0);
      last = endpoint.ok() ? SendTo(*endpoint, security, will, deadline) : endpoint.status();
    }
    if (last.ok()) return last;
    AwaitAnotherLeader(client->get(), request.key(), key->header().revision(), deadline);
  } while (clock.Now() < deadline);
  return last;
}

}  // namespace

absl::Status SendLastWill(const ClusterOptions& where, const LastWill& will, Duration timeout) {
  RealClock clock;
  const Time end = clock.Now() + timeout;
  if (where.election.has_value()) return SendToElected(*where.election, where.security, will, end);
  absl::Status last;
  for (size_t i = 0; i < where.endpoints.size(); ++i) {
    // Those that do not answer leave time for the others.
    const auto left = static_cast<Duration::rep>(where.endpoints.size() - i);
    const Time now = clock.Now();
    last = SendTo(where.endpoints[i], where.security, will, now + (end - now) / left);
    if (last.ok()) break;
  }
  return last;
}

}  // namespace muster
