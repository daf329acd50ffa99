// Preloaded into a trainer (LD_PRELOAD), this holds it at one of its steps until the test has done
// what it came for: what is killed or drained while it trains cannot have ended before.
//
//   HOLD_RANK=1 HOLD_STEP=60 HOLD_GATE=FIFO
//
// Rank 1 says STEP=60 to its agent and waits until there is a byte for it in FIFO, and the others
// with it in their next collective. In the first generation only.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

std::string Variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

// What is said at the step; empty in a process that is not to be held.
std::string Word() {
  const bool is_it = Variable("RANK", "") == Variable("HOLD_RANK", "none") &&
                     Variable("MUSTER_GENERATION", "1") == "1";
  return is_it ? "STEP=" + Variable("HOLD_STEP", "") : "";
}

void WaitAtGate() {
  const int gate = open(Variable("HOLD_GATE", "").c_str(), O_RDONLY | O_CLOEXEC);
  char byte = 0;
  while (read(gate, &byte, 1) < 0 && errno == EINTR) {
  }
  close(gate);
}

}  // namespace

extern "C" ssize_t send(int fd, const void* data, size_t size, int flags) {
  static const auto kSend = reinterpret_cast<decltype(&send)>(dlsym(RTLD_NEXT, "send"));
  static const std::string kWord = Word();
  const ssize_t sent = kSend(fd, data, size, flags);
  if (sent > 0 && std::string_view(static_cast<const char*>(data), size) == kWord) WaitAtGate();
  return sent;
}
