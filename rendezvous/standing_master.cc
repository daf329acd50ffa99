#include "rendezvous/standing_master.h"

#include <sys/random.h>
#include <unistd.h>

#include <climits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "rendezvous/dial.h"

namespace muster {
namespace {

uint64_t RandomSeed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) seed = static_cast<uint64_t>(getpid());
  return seed;
}

// How others call the host on which a master listens.
std::string AdvertisedHost(const std::string& listen_host) {
  if (listen_host != "0.0.0.0" && listen_host != "::") return listen_host;
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name)) == 0 ? name : listen_host;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StandingMaster>> StandingMaster::Start(Clock* clock,
                                                                      MusterdConfig config,
                                                                      MusterdState* state,
                                                                      Introspection introspection) {
  std::unique_ptr<StandingMaster> master(
      new StandingMaster(clock, std::move(config), std::move(introspection)));
  const absl::Status status = master->Begin(state);
  if (!status.ok()) return status;
  return master;
}

void StandingMaster::Ping(std::function<void()> callback) {
  if (elected_ != nullptr) return elected_->Ping(std::move(callback));
  alone_->Ping(std::move(callback));
}

void StandingMaster::Ask(StatusQuery query, StatusCallback callback) {
  if (elected_ != nullptr) return elected_->Ask(std::move(query), std::move(callback));
  alone_->Ask(std::move(query), std::move(callback));
}

absl::Status StandingMaster::Begin(MusterdState* state) {
  absl::StatusOr<std::vector<std::string>> addresses = ResolveHost(config_.listen.host);
  if (!addresses.ok()) return addresses.status();
  address_ = addresses->front();
  const absl::Status status = config_.is_elected() ? Campaign() : ServeAlone(state);
  if (!status.ok() || !config_.http) return status;
  return introspection_.ServePages(*config_.http,
                                   [this](StatusQuery query, StatusCallback callback) {
                                     Ask(std::move(query), std::move(callback));
                                   });
}

absl::Status StandingMaster::ServeAlone(MusterdState* state) {
  MasterLoop::Options loop;
  state->Lend(&loop);
  absl::StatusOr<std::unique_ptr<MasterServer>> server = Serve(std::move(loop));
  if (!server.ok()) return server.status();
  alone_ = *std::move(server);
  return absl::OkStatus();
}

absl::Status StandingMaster::Campaign() {
  ElectedMaster::Options options;
  options.election = config_.election;
  options.seed = RandomSeed();
  options.start = [this](MasterLoop::Options loop) {
    loop.on_store_trouble = [](const absl::Status& status) {
      Log(status.ok() ? LogLevel::kInfo : LogLevel::kWarning,
          status.ok() ? "etcd can be written to again"
                      : absl::StrCat("cannot write to etcd, the jobs wait: ", status.message()));
    };
    return Serve(std::move(loop));
  };
  options.address_of = [this](int port) {
    return ToString({AdvertisedHost(config_.listen.host), port});
  };
  options.stand_by = [this]() -> absl::StatusOr<std::unique_ptr<StandbyServer>> {
    auto standby = StandbyServer::Start({address_, port_}, config_.security);
    if (standby.ok()) port_ = (*standby)->port();
    return standby;
  };
  options.on_news = [](const std::string& line) { Log(LogLevel::kInfo, line); };
  absl::StatusOr<std::unique_ptr<ElectedMaster>> elected =
      ElectedMaster::Start(clock_, std::move(options));
  if (!elected.ok()) return elected.status();
  elected_ = *std::move(elected);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<MasterServer>> StandingMaster::Serve(MasterLoop::Options loop) {
  MasterServer::Options options;
  options.loop = std::move(loop);
  options.address = {address_, port_};
  options.security = config_.security;
  options.limits = config_.limits;
  options.loop.registry.seed = RandomSeed();
  options.loop.registry.idle_time = config_.job_idle_timeout;
  options.loop.on_decision = [](const std::string& job_id, const Reason& reason) {
    if (LogEnabled(LogLevel::kInfo)) {
      Log(LogLevel::kInfo, absl::StrCat("job ", job_id, ": ", Sentence(reason)));
    }
  };
  introspection_.LogIncidents(&options.loop);
  absl::StatusOr<std::unique_ptr<MasterServer>> server =
      MasterServer::Start(clock_, std::move(options));
  if (server.ok()) port_ = (*server)->port();
  return server;
}

}  // namespace muster
