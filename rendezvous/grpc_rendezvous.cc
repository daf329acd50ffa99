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
#include "rendezvous/master_channel.h"
#include "rendezvous/master_dial.h"
#include "rendezvous/master_finder.h"
#include "rendezvous/round_limits.h"
#include "rendezvous/stream_end_text.h"
#include "rendezvous/tls_refusal.h"

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

}  // namespace

// Each Open() is an epoch; what a thread brings for another epoch than the current one is dropped.
class GrpcRendezvous::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(Clock* clock, const ClusterOptions& options)
      : finder_(MakeMasterFinder(clock, options)),
        options_(options),
        ready_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        cancel_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        tls_(options.security) {}

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
  void Dial(uint64_t epoch, int tries);
  absl::StatusOr<std::vector<std::string>> Resolve(const std::string& host);
  void Attach(uint64_t epoch, MasterFinder::Found found);
  bool OnMessage(uint64_t epoch, MasterMessage message);
  void OnEnd(uint64_t epoch, const std::string& address, const absl::Status& status, bool heard);
  void AddFailureLocked(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RedialLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(uint64_t epoch, const absl::Status& status);
  void Refuse(uint64_t epoch, const absl::Status& status);

  void EndLocked(StreamEnded end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PushLocked(ClientEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendLocked(AgentMessage message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<MasterFinder> finder_;
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
  HostPort endpoint_ ABSL_GUARDED_BY(mutex_);                       // while open
  std::vector<std::string> own_addresses_ ABSL_GUARDED_BY(mutex_);  // while open
  // What was said to a master that has not spoken yet: where it turns out not to be one, the next
  // one hears it.
  std::deque<AgentMessage> unheard_ ABSL_GUARDED_BY(mutex_);
  bool heard_ ABSL_GUARDED_BY(mutex_) = false;
  bool passes_over_ ABSL_GUARDED_BY(mutex_) = false;  // the next dial, what the last one found
  int tries_left_ ABSL_GUARDED_BY(mutex_) = 0;        // endpoints, in this epoch
  std::string failures_ ABSL_GUARDED_BY(mutex_);      // of those that were tried
  int live_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_workers_ ABSL_GUARDED_BY(mutex_) = false;  // as the last Hello said
  TlsRefusals tls_ ABSL_GUARDED_BY(mutex_);
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
  finder_->Cancel();
  for (const auto& call : calls) {
    if (call != nullptr) call->Cancel();
  }
  if (resolving) {
    thread_.detach();  // it sees abandoned_ when the resolver returns, and touches nothing but this
                       // object
  } else {
    thread_.join();
  }
  {
    MutexLock lock(&mutex_);
    RealClock real;
    const Time deadline = real.Now() + kCancelTime;
    while (live_calls_ > 0 && real.Now() < deadline) real.Wait(&mutex_, &changed_, deadline);
  }
  finder_->Close();
}

void GrpcRendezvous::Core::Open() {
  std::shared_ptr<AttendCall> dropped;
  {
    MutexLock lock(&mutex_);
    ++epoch_;
    stream_ = Stream::kDialling;
    events_.clear();
    outbox_.clear();
    unheard_.clear();
    failures_.clear();
    tries_left_ = finder_->choices();
    if (call_ != nullptr) dropped = std::exchange(former_call_, std::move(call_));
    changed_.SignalAll();
  }
  if (dropped != nullptr) dropped->Cancel();
}

void GrpcRendezvous::Core::Send(AgentMessage message) {
  MutexLock lock(&mutex_);
  if (const auto* hello = std::get_if<Hello>(&message)) {
    has_workers_ = hello->running.phase != WorkersPhase::kNone;
  }
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
  if (!heard_) unheard_.push_back(message);
  if (auto* hello = std::get_if<Hello>(&message)) {
    if (hello->own_addresses.empty()) hello->own_addresses = own_addresses_;
    if (hello->dialled_host.empty()) hello->dialled_host = endpoint_.host;
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
  const bool hosts = finder_->TellWhenIdle([self = shared_from_this()] {
    MutexLock lock(&self->mutex_);
    self->PushLocked(RendezvousFinished{});
  });
  if (!hosts) PushLocked(RendezvousFinished{});
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
    int tries = 0;
    bool passes_over = false;
    {
      MutexLock lock(&mutex_);
      const auto wanted = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stream_ == Stream::kDialling && dialled_epoch_ != epoch_;
      };
      while (!abandoned_ && !wanted()) changed_.Wait(&mutex_);
      if (abandoned_) return;
      epoch = dialled_epoch_ = epoch_;
      passes_over = std::exchange(passes_over_, false);
      tries = tries_left_;
    }
    if (passes_over) finder_->PassOver();
    Dial(epoch, tries);
  }
}

void GrpcRendezvous::Core::Dial(uint64_t epoch, int tries) {
  if (const absl::Status files = CheckFiles(options_); !files.ok()) return Refuse(epoch, files);
  const auto resolve = [this](const std::string& host) { return Resolve(host); };
  absl::StatusOr<MasterFinder::Found> found = finder_->Find(resolve, tries, cancel_fd_.get());
  if (absl::IsUnimplemented(found.status())) return Refuse(epoch, found.status());
  if (!found.ok()) return Fail(epoch, found.status());
  Attach(epoch, *std::move(found));
}

absl::StatusOr<std::vector<std::string>> GrpcRendezvous::Core::Resolve(const std::string& host) {
  {
    MutexLock lock(&mutex_);
    if (abandoned_) return absl::CancelledError("abandoned");
    resolving_ = true;
  }
  absl::StatusOr<std::vector<std::string>> resolved = ResolveHost(host);
  MutexLock lock(&mutex_);
  resolving_ = false;
  if (abandoned_) return absl::CancelledError("abandoned");
  return resolved;
}

void GrpcRendezvous::Core::Attach(uint64_t epoch, MasterFinder::Found found) {
  const std::string address = found.connection.address;
  std::vector<std::string> own_addresses = LocalAddressesFrom(found.connection.own_address);
  AttendCall::Listener listener{
      .on_message =
          [self = shared_from_this(), epoch](MasterMessage message) {
            return self->OnMessage(epoch, std::move(message));
          },
      .on_end = [self = shared_from_this(), epoch, address](
                    const absl::Status& status,
                    bool heard) { self->OnEnd(epoch, address, status, heard); }};
  absl::StatusOr<MasterChannel> channel = MasterChannel::Open(
      std::move(found.connection), found.endpoint, options_.security, options_.connect_timeout);
  if (!channel.ok()) return Refuse(epoch, channel.status());
  MutexLock lock(&mutex_);
  if (epoch != epoch_ || abandoned_) return;
  ++live_calls_;
  call_ = AttendCall::Start(*std::move(channel), std::move(listener));
  stream_ = Stream::kOpen;
  heard_ = false;
  tries_left_ -= found.passed_over + 1;
  AddFailureLocked(found.failures);
  endpoint_ = std::move(found.endpoint);
  own_addresses_ = std::move(own_addresses);
  for (AgentMessage& message : std::exchange(outbox_, {})) SendLocked(std::move(message));
}

bool GrpcRendezvous::Core::OnMessage(uint64_t epoch, MasterMessage message) {
  std::shared_ptr<AttendCall> former;
  {
    MutexLock lock(&mutex_);
    if (epoch != epoch_ || finishing_) return true;
    heard_ = true;
    unheard_.clear();
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
  const std::string detail = StreamEndText(endpoint_, address, status, heard);
  Obstacle obstacle = Obstacle::kNone;  // of several that are tried in turn no one is
  if (heard || finder_->choices() == 1) obstacle = ObstacleAfter(status, heard);
  if (heard) return EndLocked({.unreachable = false, .detail = detail, .obstacle = obstacle});
  const std::optional<Rejected> refusal = tls_.Ended(endpoint_, status);
  if (refusal.has_value() && !has_workers_) PushLocked(MasterMessage(*refusal));
  AddFailureLocked(detail);
  passes_over_ = true;
  if (tries_left_ > 0 && !finishing_) return RedialLocked();
  EndLocked({.unreachable = true, .detail = failures_, .obstacle = obstacle});
}

void GrpcRendezvous::Core::AddFailureLocked(const std::string& text) {
  if (!failures_.empty() && !text.empty()) failures_ += "; ";
  failures_ += text;
}

void GrpcRendezvous::Core::RedialLocked() {
  stream_ = Stream::kDialling;
  call_.reset();
  outbox_ = std::exchange(unheard_, {});
  dialled_epoch_ = 0;
  changed_.SignalAll();
}

void GrpcRendezvous::Core::Fail(uint64_t epoch, const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (epoch != epoch_ || abandoned_) return;
  AddFailureLocked(std::string(status.message()));
  EndLocked({.unreachable = true, .detail = failures_, .obstacle = ObstacleOf(status)});
}

// The files of this node's credentials cannot be used, or it has none and the master speaks TLS.
// With workers that is no reason to end: they may be in the middle of a change.
void GrpcRendezvous::Core::Refuse(uint64_t epoch, const absl::Status& status) {
  const std::string problem(status.message());
  {
    MutexLock lock(&mutex_);
    if (epoch != epoch_ || abandoned_) return;
    if (!has_workers_) PushLocked(MasterMessage(Rejected{kExitBadSettings, problem}));
  }
  Fail(epoch, absl::UnavailableError(problem));
}

GrpcRendezvous::GrpcRendezvous(Clock* clock, const ClusterOptions& options)
    : core_(std::make_shared<Core>(clock, options)) {
  core_->Start();
}

GrpcRendezvous::~GrpcRendezvous() { core_->Shutdown(); }

void GrpcRendezvous::Open() { core_->Open(); }
void GrpcRendezvous::Send(AgentMessage message) { core_->Send(std::move(message)); }
void GrpcRendezvous::Finish() { core_->Finish(); }
int GrpcRendezvous::fd() const { return core_->fd(); }
std::optional<ClientEvent> GrpcRendezvous::Receive() { return core_->Receive(); }

std::unique_ptr<RendezvousClient> MakeClusterRendezvous(const ClusterOptions& options) {
  static auto* const kClock = new RealClock;
  return std::make_unique<GrpcRendezvous>(kClock, options);
}

}  // namespace muster
