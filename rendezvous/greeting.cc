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

// What a client of TLS says first, of 1.2 or 1.3 (RFC 8446, 4.1.2), with what nearly every server
// takes: one that finds nothing for itself closes it, and some do so without an alert.
constexpr std::string_view kTlsHello(
    "\x16\3\1\0\x6f"                                            // a record, a handshake's
    "\1\0\0\x6b\3\3"                                            // ClientHello
    "muster asks whether this is TLS?\0"                        // random, no session
    "\0\x0e\x13\1\x13\2\x13\3\xc0\x2b\xc0\x2f\xc0\x2c\xc0\x30"  // cipher suites
    "\1\0\0\x34"                                                // no compression; extensions:
    "\0\x0a\0\6\0\4\0\x1d\0\x17"                                // x25519, secp256r1
    "\0\x0d\0\x0e\0\x0c\4\3\5\3\6\3\x08\4\x08\5\4\1"            // signatures
    "\0\x10\0\5\0\3\2h2"                                        // HTTP/2
    "\0\x2b\0\5\4\3\4\3\3"                                      // TLS 1.3, 1.2
    "\0\x33\0\2\0\0",                                           // no key yet
    116);
constexpr char kTlsAlert = 0x15;
constexpr char kTlsHandshake = 0x16;
constexpr char kTlsMajor = 3;

enum class Said { kNothing, kSettings, kTls, kOther, kClosed, kCancelled };

bool IsTls(std::string_view beginning) {
  return beginning.size() > 1 && (beginning[0] == kTlsAlert || beginning[0] == kTlsHandshake) &&
         beginning[1] == kTlsMajor;
}

bool Say(int fd, std::string_view bytes) {
  return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

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
  if (IsTls(*beginning)) return Said::kTls;
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

absl::Status Tls(const std::string& where) {
  return absl::UnimplementedError(where + ": what listens there speaks TLS: give --tls-ca");
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
      case Said::kTls:
        return Tls(where);
      case Said::kSettings:
        if (!has_asked) return absl::OkStatus();
        return absl::InternalError(where + ": the master was slow to answer");
      case Said::kClosed:
        if (has_asked) return absl::OutOfRangeError(where + ": what listens there is no master");
        return absl::InternalError(where + ": the connection was closed at once");
      case Said::kNothing:
        if (has_asked) {
          return absl::AbortedError(where + ": what listens there says nothing");
        }
        break;
    }
    has_asked = true;
    if (!Say(fd, kClientBeginning)) {
      return absl::InternalError(where + ": the connection was closed at once");
    }
  }
}

absl::Status CheckSpeaksNoTls(int fd, const std::string& where, Duration patience, int cancel_fd) {
  std::string beginning;
  const bool is_tls =
      Say(fd, kTlsHello) && Listen(fd, patience, cancel_fd, &beginning) == Said::kTls;
  return is_tls ? Tls(where) : absl::OkStatus();
}

}  // namespace muster
