#include "rendezvous/grpc_rendezvous.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "base/local_addresses.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "rendezvous/attend_call.h"
#include "rendezvous/dial.h"
#include "rendezvous/hosting.h"
#include "rendezvous/stream_end_text.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

// How long the destructor waits for gRPC to take note that a stream was cancelled.
constexpr Duration kCancelTime = 1s;

void Signal(int event_fd) {
  const uint64_t one = 1;
  static_cast<void>(!write(event_fd, &one, sizeof(one)));  // a full counter is a signal too
}

void Reset(int event_fd) {
  uint64_t ignored = 0;
  static_cast<void>(!read(event_fd, &ignored, sizeof(ignored)));
}

// This node's addresses, `first` in front.
std::vector<std::string> OwnAddresses(const std::string& first) {
  std::vector<std::string> addresses = LocalAddresses();
  addresses.erase(std::remove(addresses.begin(), addresses.end(), first), addresses.end());
  if (!first.empty()) addresses.insert(addresses.begin(), first);
  return addresses;
}

}  // namespace

// Each Open() is an epoch; what a thread brings for another epoch than the current one is dropped.
class GrpcRendezvous::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(Clock* clock, ClusterOptions options)
      : clock_(clock),
        options_(std::move(options)),
        ready_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        cancel_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void Start();
  void Shutdown();

  void Open();
  void Send(AgentMessage message);
  void Finish();
  std::optional<ClientEvent> Receive();
  int fd() const { return ready_fd_.get(); }

 private:
  enum class Stream { kNone, kDialling, kOpen };

  void DialThread();
  void Dial(uint64_t epoch);
  absl::StatusOr<std::vector<std::string>> Resolve();
  absl::StatusOr<Connection> HostOrConnect(const std::vector<std::string>& resolved);
  void Attach(uint64_t epoch, Connection connection);
  bool OnMessage(uint64_t epoch, MasterMessage message);
  void OnEnd(uint64_t epoch, const std::string& address, const absl::Status& status, bool heard);
  void Fail(uint64_t epoch, const absl::Status& status);

  void EndLocked(StreamEnded end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PushLocked(ClientEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendLocked(AgentMessage message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  const ClusterOptions options_;
  const UniqueFd ready_fd_;
  const UniqueFd cancel_fd_;
  std::thread thread_;

  Mutex mutex_;
  Condition changed_;
  std::deque<ClientEvent> events_ ABSL_GUARDED_BY(mutex_);
  Stream stream_ ABSL_GUARDED_BY(mutex_) = Stream::kNone;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t dialled_epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<AgentMessage> outbox_ ABSL_GUARDED_BY(mutex_);   // while dialling
  std::shared_ptr<AttendCall> call_ ABSL_GUARDED_BY(mutex_);  // while open
  // The one before, until the master has spoken on this one. Its end would be the loss of this node
  // to a master that hears and is not heard.
  std::shared_ptr<AttendCall> former_call_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> own_addresses_ ABSL_GUARDED_BY(mutex_);  // while open
  HostedMaster hosted_ ABSL_GUARDED_BY(mutex_);                     // set by the dial thread, once
  int live_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool resolving_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
};

void GrpcRendezvous::Core::Start() {
  thread_ = std::thread([self = shared_from_this()] { self->DialThread(); });
  pthread_setname_np(thread_.native_handle(), "dial");
}

void GrpcRendezvous::Core::Shutdown() {
  std::shared_ptr<AttendCall> calls[2];
  bool resolving = false;
  {
    MutexLock lock(&mutex_);
    abandoned_ = true;
    ++epoch_;
    calls[0] = std::move(call_);
    calls[1] = std::move(former_call_);
    resolving = resolving_;
    changed_.SignalAll();
  }
  Signal(cancel_fd_.get());
  for (const auto& call : calls) {
    if (call != nullptr) call->Cancel();
  }
  if (resolving) {
    thread_.detach();  // it sees abandoned_ when the resolver returns, and touches nothing but this
                       // object
  } else {
    thread_.join();
  }
  std::unique_ptr<MasterServer> server;
  {
    MutexLock lock(&mutex_);
    RealClock real;
    const Time deadline = real.Now() + kCancelTime;
    while (live_calls_ > 0 && real.Now() < deadline) real.Wait(&mutex_, &changed_, deadline);
    server = std::move(hosted_.server);
  }
}

void GrpcRendezvous::Core::Open() {
  std::shared_ptr<AttendCall> dropped;
  {
    MutexLock lock(&mutex_);
    ++epoch_;
    stream_ = Stream::kDialling;
    events_.clear();
    outbox_.clear();
    if (call_ != nullptr) dropped = std::exchange(former_call_, std::move(call_));
    changed_.SignalAll();
  }
  if (dropped != nullptr) dropped->Cancel();
}

void GrpcRendezvous::Core::Send(AgentMessage message) {
  MutexLock lock(&mutex_);
  if (finishing_) return;
  switch (stream_) {
    case Stream::kNone:
      return;
    case Stream::kDialling:
      outbox_.push_back(std::move(message));
      return;
    case Stream::kOpen:
      SendLocked(std::move(message));
      return;
  }
}

void GrpcRendezvous::Core::SendLocked(AgentMessage message) {
  if (auto* hello = std::get_if<Hello>(&message)) {
    if (hello->own_addresses.empty()) hello->own_addresses = own_addresses_;
    if (hello->dialled_host.empty()) hello->dialled_host = options_.endpoint.host;
  }
  call_->Send(message);
}

void GrpcRendezvous::Core::Finish() {
  MutexLock lock(&mutex_);
  if (std::exchange(finishing_, true)) return;
  events_.clear();
  if (stream_ == Stream::kOpen) {
    call_->HalfClose();
    call_->Resume();
    return;
  }
  ++epoch_;
  stream_ = Stream::kNone;
  FinishedLocked();
}

void GrpcRendezvous::Core::FinishedLocked() {
  if (hosted_.server == nullptr) {
    PushLocked(RendezvousFinished{});
    return;
  }
  hosted_.server->TellWhenIdle([self = shared_from_this()] {
    MutexLock lock(&self->mutex_);
    self->PushLocked(RendezvousFinished{});
  });
}

std::optional<ClientEvent> GrpcRendezvous::Core::Receive() {
  MutexLock lock(&mutex_);
  std::optional<ClientEvent> event;
  if (!events_.empty()) {
    event = std::move(events_.front());
    events_.pop_front();
  }
  if (events_.empty()) Reset(ready_fd_.get());
  const bool is_message = event.has_value() && std::holds_alternative<MasterMessage>(*event);
  if (is_message && call_ != nullptr) call_->Resume();
  return event;
}

void GrpcRendezvous::Core::PushLocked(ClientEvent event) {
  events_.push_back(std::move(event));
  Signal(ready_fd_.get());
}

void GrpcRendezvous::Core::EndLocked(StreamEnded end) {
  stream_ = Stream::kNone;
  call_.reset();
  outbox_.clear();
  if (finishing_) {
    FinishedLocked();
  } else {
    PushLocked(std::move(end));
  }
}

void GrpcRendezvous::Core::DialThread() {
  for (;;) {
    uint64_t epoch = 0;
    {
      MutexLock lock(&mutex_);
      const auto wanted = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stream_ == Stream::kDialling && dialled_epoch_ != epoch_;
      };
      while (!abandoned_ && !wanted()) changed_.Wait(&mutex_);
      if (abandoned_) return;
      epoch = dialled_epoch_ = epoch_;
    }
    Dial(epoch);
  }
}

void GrpcRendezvous::Core::Dial(uint64_t epoch) {
  const absl::StatusOr<std::vector<std::string>> resolved = Resolve();
  if (!resolved.ok()) return Fail(epoch, resolved.status());
  absl::StatusOr<Connection> connection = HostOrConnect(*resolved);
  if (!connection.ok()) return Fail(epoch, connection.status());
  Attach(epoch, *std::move(connection));
}

absl::StatusOr<std::vector<std::string>> GrpcRendezvous::Core::Resolve() {
  {
    MutexLock lock(&mutex_);
    if (abandoned_) return absl::CancelledError("abandoned");
    resolving_ = true;
  }
  absl::StatusOr<std::vector<std::string>> resolved = ResolveHost(options_.endpoint.host);
  MutexLock lock(&mutex_);
  resolving_ = false;
  if (abandoned_) return absl::CancelledError("abandoned");
  return resolved;
}

absl::StatusOr<Connection> GrpcRendezvous::Core::HostOrConnect(
    const std::vector<std::string>& resolved) {
  bool hosts = false;
  {
    MutexLock lock(&mutex_);
    hosts = hosted_.server != nullptr;
  }
  if (!hosts) {
    absl::StatusOr<HostedMaster> hosted = TryHost(clock_, options_, resolved);
    if (!hosted.ok()) return hosted.status();
    MutexLock lock(&mutex_);
    hosted_ = *std::move(hosted);
  }
  std::vector<std::string> addresses = resolved;
  int port = options_.endpoint.port;
  {
    MutexLock lock(&mutex_);
    if (hosted_.server != nullptr) {
      addresses = {hosted_.dial_address};
      port = hosted_.server->port();
    }
  }
  return Connect(addresses, port, options_.connect_timeout, cancel_fd_.get());
}

void GrpcRendezvous::Core::Attach(uint64_t epoch, Connection connection) {
  const std::string address = connection.address;
  std::vector<std::string> own_addresses = OwnAddresses(connection.own_address);
  AttendCall::Listener listener{
      .on_message =
          [self = shared_from_this(), epoch](MasterMessage message) {
            return self->OnMessage(epoch, std::move(message));
          },
      .on_end = [self = shared_from_this(), epoch, address](
                    const absl::Status& status,
                    bool heard) { self->OnEnd(epoch, address, status, heard); }};
  MutexLock lock(&mutex_);
  if (epoch != epoch_ || abandoned_) return;
  ++live_calls_;
  call_ =
      AttendCall::Start(std::move(connection.fd), ToString(options_.endpoint), std::move(listener));
  stream_ = Stream::kOpen;
  own_addresses_ = std::move(own_addresses);
  for (AgentMessage& message : std::exchange(outbox_, {})) SendLocked(std::move(message));
}

bool GrpcRendezvous::Core::OnMessage(uint64_t epoch, MasterMessage message) {
  std::shared_ptr<AttendCall> former;
  {
    MutexLock lock(&mutex_);
    if (epoch != epoch_ || finishing_) return true;
    PushLocked(std::move(message));
    former = std::move(former_call_);
  }
  if (former != nullptr) former->Cancel();
  return false;
}

void GrpcRendezvous::Core::OnEnd(uint64_t epoch, const std::string& address,
                                 const absl::Status& status, bool heard) {
  MutexLock lock(&mutex_);
  --live_calls_;
  changed_.SignalAll();
  if (epoch != epoch_) return;
  EndLocked(
      {.unreachable = !heard, .detail = StreamEndText(options_.endpoint, address, status, heard)});
}

void GrpcRendezvous::Core::Fail(uint64_t epoch, const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (epoch != epoch_ || abandoned_) return;
  EndLocked({.unreachable = true, .detail = DialFailureText(options_.endpoint, status)});
}

GrpcRendezvous::GrpcRendezvous(Clock* clock, ClusterOptions options)
    : core_(std::make_shared<Core>(clock, std::move(options))) {
  core_->Start();
}

GrpcRendezvous::~GrpcRendezvous() { core_->Shutdown(); }

void GrpcRendezvous::Open() { core_->Open(); }
void GrpcRendezvous::Send(AgentMessage message) { core_->Send(std::move(message)); }
void GrpcRendezvous::Finish() { core_->Finish(); }
int GrpcRendezvous::fd() const { return core_->fd(); }
std::optional<ClientEvent> GrpcRendezvous::Receive() { return core_->Receive(); }

std::unique_ptr<RendezvousClient> MakeClusterRendezvous(ClusterOptions options) {
  static auto* const kClock = new RealClock;
  return std::make_unique<GrpcRendezvous>(kClock, std::move(options));
}

}  // namespace muster
