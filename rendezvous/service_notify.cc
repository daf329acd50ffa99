#include "rendezvous/service_notify.h"

#include <absl/strings/numbers.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace muster {

ServiceNotify::ServiceNotify(const EnvMap& env) {
  const std::string* address = FindVariable(env, "NOTIFY_SOCKET");
  if (address == nullptr || address->empty() || address->size() >= sizeof(sockaddr_un::sun_path)) {
    return;
  }
  address_ = *address;
  if (address_[0] == '@') address_[0] = '\0';
  socket_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

  const std::string* watchdog = FindVariable(env, "WATCHDOG_USEC");
  const std::string* process = FindVariable(env, "WATCHDOG_PID");
  const bool is_ours = process == nullptr || *process == std::to_string(getpid());
  int64_t microseconds = 0;
  if (watchdog != nullptr && is_ours && absl::SimpleAtoi(*watchdog, &microseconds) &&
      microseconds > 0) {
    watchdog_ = std::chrono::microseconds(microseconds);
  }
}

void ServiceNotify::Send(std::string_view lines) const {
  if (!socket_.valid()) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  const size_t size = offsetof(sockaddr_un, sun_path) + address_.size();
  static_cast<void>(!sendto(socket_.get(), lines.data(), lines.size(), MSG_NOSIGNAL,
                            reinterpret_cast<const sockaddr*>(&to), static_cast<socklen_t>(size)));
}

}  // namespace muster
