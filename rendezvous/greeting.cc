#include "rendezvous/greeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/clock.h"
#include "base/one_line.h"

namespace muster {
namespace {

constexpr size_t kFrameHeaderBytes = 9;
constexpr unsigned char kSettingsType = 4;
// What a client says first: the preface and SETTINGS that set nothing (RFC 9113, 3.4).
constexpr std::string_view kClientBeginning("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
                                            33);

enum class Said { kNothing, kSettings, kOther, kClosed, kCancelled };

// Waits until a frame's header has come. `beginning` becomes what is there.
Said Listen(int fd, Duration patience, int cancel_fd, std::string* beginning) {
  const int wanted = kFrameHeaderBytes;
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted));
  RealClock clock;
  const Time deadline = clock.Now() + patience;
  pollfd waits[2] = {{.fd = fd, .events = POLLIN, .revents = 0},
                     {.fd = cancel_fd, .events = POLLIN, .revents = 0}};
  int ready = 0;
  do {
    const Duration left = std::max(deadline - clock.Now(), Duration::zero());
    const timespec span{.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                        .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
    ready = ppoll(waits, 2, &span, nullptr);
  } while (ready < 0 && errno == EINTR);
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
  if (waits[1].revents != 0) return Said::kCancelled;

  std::array<char, 32> bytes;
  const ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN ? Said::kNothing : Said::kClosed;
  if (got == 0) return Said::kClosed;
  beginning->assign(bytes.data(), static_cast<size_t>(got));
  const bool is_frame = beginning->size() >= kFrameHeaderBytes;
  const bool is_settings =
      is_frame && (*beginning)[3] == kSettingsType && beginning->substr(5, 4) == std::string(4, 0);
  return is_settings ? Said::kSettings : Said::kOther;
}

absl::Status AnotherProtocol(const std::string& where, const std::string& beginning) {
  const std::string line = beginning.substr(0, beginning.find_first_of("\r\n"));
  return absl::FailedPreconditionError(where + ": what listens there is no master: it says '" +
                                       OneLine(line) + "'");
}

}  // namespace

absl::Status AwaitGreeting(int fd, const std::string& where, Duration patience, int cancel_fd) {
  std::string beginning;
  bool has_asked = false;
  for (;;) {
    switch (Listen(fd, patience / 2, cancel_fd, &beginning)) {
      case Said::kCancelled:
        return absl::CancelledError(where + ": cancelled");
      case Said::kOther:
        return AnotherProtocol(where, beginning);
      case Said::kSettings:
        if (!has_asked) return absl::OkStatus();
        return absl::InternalError(where + ": the master was slow to answer");
      case Said::kClosed:
        if (has_asked) return absl::AbortedError(where + ": what listens there is no master");
        return absl::InternalError(where + ": the connection was closed at once");
      case Said::kNothing:
        if (has_asked) {
          return absl::AbortedError(where + ": what listens there says nothing");
        }
        break;
    }
    has_asked = true;
    if (send(fd, kClientBeginning.data(), kClientBeginning.size(), MSG_NOSIGNAL | MSG_DONTWAIT) <
        0) {
      return absl::InternalError(where + ": the connection was closed at once");
    }
  }
}

}  // namespace muster
