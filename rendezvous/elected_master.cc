#include "rendezvous/elected_master.h"

#include <absl/strings/str_cat.h>
#include <pthread.h>

#include <atomic>
#include <utility>

#include "rendezvous/state_codec.h"

namespace muster {
namespace {

constexpr size_t kOrdersMax = 256;

// `callback` as one that works only the first time.
std::function<void()> Once(std::function<void()> callback) {
  auto called = std::make_shared<std::atomic<bool>>(false);
  return [called, callback = std::move(callback)] {
    if (!called->exchange(true)) callback();
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<ElectedMaster>> ElectedMaster::Start(Clock* clock, Options options) {
  absl::StatusOr<std::unique_ptr<EtcdClient>> client = EtcdClient::Make(options.election.etcd);
  if (!client.ok()) return client.status();
  absl::StatusOr<std::unique_ptr<StandbyServer>> standby;
  if (options.stand_by) standby = options.stand_by();
  if (options.stand_by && !standby.ok()) return standby.status();
  return std::unique_ptr<ElectedMaster>(new ElectedMaster(
      clock, std::move(options), *std::move(client), standby.ok() ? *std::move(standby) : nullptr));
}

ElectedMaster::ElectedMaster(Clock* clock, Options options, std::unique_ptr<EtcdClient> client,
                             std::unique_ptr<StandbyServer> standby)
    : clock_(clock),
      options_(std::move(options)),
      orders_(clock, kOrdersMax),
      client_(std::move(client)),
      standby_(std::move(standby)) {
  Leadership::Listener listener{
      .on_elected = [this](const LeaderClaim& claim) { orders_.Push(Elected{claim}); },
      .on_lost =
          [this](const std::string& why) {
            Interrupt();
            orders_.Push(Lost{why});
          },
      .on_leader =
          [this](const std::string& address, const std::string& problem) {
            orders_.Push(LeaderAt{address, problem});
          }};
  const EtcdElectionOptions& election = options_.election;
  election_ = std::make_unique<EtcdElection>(
      clock_, client_.get(),
      EtcdElection::Options{
          .prefix = election.prefix, .lease = election.lease, .seed = options_.seed},
      std::move(listener));
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "elected");
}

ElectedMaster::~ElectedMaster() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  orders_.Close();
  Interrupt();
  thread_.join();
  election_->Resign();
}

void ElectedMaster::TellWhenIdle(std::function<void()> callback) {
  orders_.Push(WhenIdle{std::move(callback)});
}

void ElectedMaster::Ping(std::function<void()> callback) {
  orders_.Push(Pinged{std::move(callback)});
}

void ElectedMaster::Ask(StatusQuery query, StatusCallback callback) {
  orders_.Push(Asked{std::move(query), std::move(callback)});
}

void ElectedMaster::Run() {
  while (!orders_.closed()) {
    std::optional<Order> order = orders_.Pop(kNever);
    if (order.has_value()) std::visit([this](const auto& kind) { Obey(kind); }, *order);
  }
  EndTerm();
}

void ElectedMaster::Obey(const Elected& order) {
  const absl::Status served = Serve(order.claim);
  if (served.ok()) return;
  News(absl::StrCat("elected, but cannot serve: ", served.message()));
  election_->StepDown(std::string(served.message()));
}

void ElectedMaster::Obey(const Lost& order) {
  News(absl::StrCat("does not lead any more: ", order.why));
  EndTerm();
  leader_.clear();
  StandBy();
  if (options_.on_leader) options_.on_leader("", "");
}

void ElectedMaster::Obey(const LeaderAt& order) {
  if (!order.problem.empty()) News(order.problem);
  if (!order.address.empty()) News(absl::StrCat("the master is at ", order.address));
  leader_ = order.address;
  if (standby_ != nullptr) standby_->SetLeader(leader_);
  if (options_.on_leader) options_.on_leader(order.address, order.problem);
}

void ElectedMaster::Obey(const WhenIdle& order) {
  if (term_.server == nullptr) return order.callback();
  idle_callbacks_.push_back(Once(order.callback));
  term_.server->TellWhenIdle(idle_callbacks_.back());
}

void ElectedMaster::Obey(const Pinged& order) {
  if (term_.server == nullptr) return order.callback();
  term_.server->Ping(order.callback);
}

void ElectedMaster::Obey(const Asked& order) {
  if (term_.server != nullptr) return term_.server->Ask(order.query, order.callback);
  auto report = std::make_shared<MasterReport>();
  report->stands_by = true;
  report->leader = leader_;
  order.callback(report);
}

absl::Status ElectedMaster::Serve(const LeaderClaim& claim) {
  EndTerm();
  absl::StatusOr<MasterLoop::Options> loop = OpenStore(claim);
  if (!loop.ok()) return loop.status();
  standby_.reset();  // it has the port
  absl::StatusOr<std::unique_ptr<MasterServer>> server = options_.start(*std::move(loop));
  if (!server.ok()) return server.status();
  term_.server = *std::move(server);
  const std::string address = options_.address_of(term_.server->port());
  News(absl::StrCat("leads and serves at ", address));
  election_->Serving(address);
  if (options_.on_leader) options_.on_leader(address, "");
  return absl::OkStatus();
}

absl::StatusOr<MasterLoop::Options> ElectedMaster::OpenStore(const LeaderClaim& claim) {
  auto client = EtcdClient::Make(options_.election.etcd);
  if (!client.ok()) return client.status();
  term_.client = *std::move(client);
  term_.store = std::make_unique<EtcdStore>(term_.client.get(), options_.election.prefix, claim,
                                            options_.drops_ended);
  {
    MutexLock lock(&mutex_);
    if (ending_) return absl::CancelledError("this process ends");
    interruptible_ = term_.client.get();
  }
  const absl::StatusOr<std::vector<StoredValue>> values = term_.store->Load();
  if (!values.ok()) return values.status();
  absl::StatusOr<MasterState> state = DecodeState(*values);
  if (!state.ok()) return state.status();
  MasterLoop::Options loop;
  loop.store = term_.store.get();
  loop.restored = *std::move(state);
  loop.leads = [this](Time now) { return election_->Leads(now); };
  loop.on_deposed = [this](const absl::Status& why) {
    election_->StepDown(std::string(why.message()));
  };
  return loop;
}

void ElectedMaster::EndTerm() {
  Interrupt();
  {
    MutexLock lock(&mutex_);
    interruptible_ = nullptr;
  }
  term_.server.reset();
  term_.store.reset();
  term_.client.reset();
  for (const auto& callback : std::exchange(idle_callbacks_, {})) callback();
}

// What waits for etcd in this term waits no longer.
void ElectedMaster::Interrupt() {
  MutexLock lock(&mutex_);
  if (interruptible_ != nullptr) interruptible_->Cancel();
}

void ElectedMaster::StandBy() {
  if (!options_.stand_by || standby_ != nullptr) return;
  auto standby = options_.stand_by();
  if (standby.ok()) {
    standby_ = *std::move(standby);
  } else {
    News(std::string(standby.status().message()));
  }
}

void ElectedMaster::News(const std::string& line) {
  if (options_.on_news) options_.on_news(line);
}

}  // namespace muster
