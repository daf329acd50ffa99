#include "rendezvous/last_will.h"

#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "rendezvous/attend_call.h"
#include "rendezvous/dial.h"
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

}  // namespace

absl::Status SendLastWill(const HostPort& endpoint, const LastWill& will, Duration timeout) {
  RealClock clock;
  const Time deadline = clock.Now() + timeout;
  const auto failed = [&](const absl::Status& status) {
    return absl::Status(status.code(), DialFailureText(endpoint, status));
  };
  const absl::StatusOr<std::vector<std::string>> addresses = ResolveHost(endpoint.host);
  if (!addresses.ok()) return failed(addresses.status());
  absl::StatusOr<Connection> connection =
      Connect(*addresses, endpoint.port, deadline - clock.Now(), /*cancel_fd=*/-1);
  if (!connection.ok()) return failed(connection.status());

  const std::string address = connection->address;
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
      AttendCall::Start(std::move(connection->fd), ToString(endpoint), std::move(listener));
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

}  // namespace muster
