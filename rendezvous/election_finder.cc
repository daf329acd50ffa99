#include "rendezvous/election_finder.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "base/local_addresses.h"
#include "rendezvous/hosting.h"
#include "rendezvous/master_dial.h"

namespace muster {

ElectionFinder::ElectionFinder(Clock* clock, ClusterOptions options)
    : clock_(clock), options_(std::move(options)) {}

absl::StatusOr<MasterFinder::Found> ElectionFinder::Find(const Resolver& resolve, int tries,
                                                         int cancel_fd) {
  if (absl::Status status = BeCandidate(resolve); !status.ok()) return status;
  const Time deadline = clock_->Now() + options_.connect_timeout;
  std::string failure;
  for (;;) {
    const absl::StatusOr<std::string> leader = AwaitLeader(deadline);
    if (absl::IsCancelled(leader.status())) return leader.status();
    if (!leader.ok()) {
      return absl::UnavailableError(
          absl::StrCat(leader.status().message(), failure.empty() ? "" : "; ", failure));
    }
    absl::StatusOr<Found> found = Reach(*leader, resolve, cancel_fd);
    if (found.ok() || absl::IsCancelled(found.status())) return found;
    failure = absl::StrCat("the master at ", *leader, ": ", found.status().message());
    PassOver();
  }
}

absl::StatusOr<MasterFinder::Found> ElectionFinder::Reach(const std::string& leader,
                                                          const Resolver& resolve, int cancel_fd) {
  const absl::StatusOr<HostPort> endpoint = ParseHostPort(leader, 0);
  if (!endpoint.ok()) return endpoint.status();
  const absl::StatusOr<std::vector<std::string>> addresses = resolve(endpoint->host);
  if (!addresses.ok()) return addresses.status();
  absl::StatusOr<Connection> connection = DialMaster(
      *addresses, endpoint->port, options_.connect_timeout, cancel_fd, options_.security.has_tls());
  if (!connection.ok()) return connection.status();
  return Found{*std::move(connection), *endpoint, 0, ""};
}

absl::StatusOr<std::string> ElectionFinder::AwaitLeader(Time deadline) {
  MutexLock lock(&mutex_);
  for (;;) {
    if (cancelled_) return absl::CancelledError("abandoned");
    if (!leader_.empty() && leader_ != avoided_) return leader_;
    if (clock_->Now() >= deadline) break;
    clock_->Wait(&mutex_, &changed_, deadline);
  }
  // The next time it may answer.
  avoided_.clear();
  return absl::UnavailableError(
      problem_.empty() ? absl::StrCat(EtcdName(options_.election->etcd), ": no master is elected")
                       : problem_);
}

void ElectionFinder::PassOver() {
  MutexLock lock(&mutex_);
  avoided_ = leader_;
}

void ElectionFinder::Cancel() {
  MutexLock lock(&mutex_);
  cancelled_ = true;
  changed_.SignalAll();
}

bool ElectionFinder::TellWhenIdle(std::function<void()> callback) {
  MutexLock lock(&mutex_);
  if (candidate_ != nullptr) candidate_->TellWhenIdle(std::move(callback));
  return candidate_ != nullptr;
}

void ElectionFinder::Close() {
  std::unique_ptr<ElectedMaster> candidate;  // ends without the lock
  MutexLock lock(&mutex_);
  candidate = std::move(candidate_);
}

void ElectionFinder::OnLeader(const std::string& address, const std::string& problem) {
  MutexLock lock(&mutex_);
  if (address != leader_) avoided_.clear();
  leader_ = address;
  problem_ = problem;
  changed_.SignalAll();
}

absl::Status ElectionFinder::BeCandidate(const Resolver& resolve) {
  {
    MutexLock lock(&mutex_);
    if (cancelled_) return absl::CancelledError("abandoned");
    if (candidate_ != nullptr) return absl::OkStatus();
  }
  own_host_ = OwnHost(resolve);
  ElectedMaster::Options options;
  options.election = *options_.election;
  options.seed = options_.seed;
  options.drops_ended = true;
  options.start = [this](const MasterLoop::Options& loop) { return StartServer(loop); };
  options.address_of = [this](int port) { return ToString({own_host_, port}); };
  options.on_leader = [this](const std::string& address, const std::string& problem) {
    OnLeader(address, problem);
  };
  absl::StatusOr<std::unique_ptr<ElectedMaster>> candidate =
      ElectedMaster::Start(clock_, std::move(options));
  if (!candidate.ok()) return candidate.status();
  MutexLock lock(&mutex_);
  if (!cancelled_) candidate_ = *std::move(candidate);
  return cancelled_ ? absl::CancelledError("abandoned") : absl::OkStatus();
}

// The address from which this node talks to etcd is one that the other nodes of the job reach, as
// they talk to the same etcd. A member on this very host may have a loopback address.
std::string ElectionFinder::OwnHost(const Resolver& resolve) const {
  if (!options_.own_host.empty()) return options_.own_host;
  std::string loopback;
  for (const HostPort& endpoint : options_.election->etcd.endpoints) {
    const auto addresses = resolve(endpoint.host);
    if (!addresses.ok()) continue;
    for (const std::string& address : *addresses) {
      const std::string own = RouteAddress(address);
      if (!own.empty() && !IsLoopbackHost(own)) return own;
      if (loopback.empty()) loopback = own;
    }
  }
  return loopback.empty() ? "127.0.0.1" : loopback;
}

absl::StatusOr<std::unique_ptr<MasterServer>> ElectionFinder::StartServer(
    const MasterLoop::Options& loop) {
  std::vector<std::string> addresses = AllAddresses();
  if (IsLocalAddress(own_host_)) addresses = {own_host_};
  absl::Status last;
  for (const std::string& address : addresses) {
    absl::StatusOr<std::unique_ptr<MasterServer>> started =
        MasterServer::Start(clock_, HostedServer(options_, {address, 0}, loop));
    if (started.ok()) {
      if (options_.on_hosting) options_.on_hosting(ToString({address, (*started)->port()}));
      return started;
    }
    last = started.status();
  }
  return last;
}

}  // namespace muster
