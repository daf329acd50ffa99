#include <errno.h>
#include <fcntl.h>
#include <muster/worker.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace muster {
namespace {

constexpr size_t kTextMax = 32 * 1024;
constexpr size_t kDatagramMax = 64 * 1024;
constexpr size_t kPendingMax = 64;

std::string OneLine(std::string_view text) {
  std::string line(text.substr(0, kTextMax));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r' || c == '\0'; }, ' ');
  return line;
}

UniqueFd Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return UniqueFd();
  memcpy(address.sun_path, path.data(), path.size());
  // The socket is this worker's alone, so a listener with room is the normal case and connect() is
  // immediate.
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return socket;
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return UniqueFd();
  }
  return socket;
}

std::string SocketInEnvironment() {
  const char* path = std::getenv("MUSTER_SOCKET");
  return path == nullptr ? "" : path;
}

}  // namespace

class AgentLink::Impl {
 public:
  using Aborted = std::function<void(int64_t generation)>;

  explicit Impl(const std::string& path) : socket_(Connect(path)), buffer_(kDatagramMax) {}
  ~Impl() {
    if (!listener_.joinable()) return;
    eventfd_write(stop_.get(), 1);
    listener_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool connected() {
    const std::lock_guard lock(mutex_);
    return socket_.valid();
  }

  // Keeps `line` for later if it cannot go now.
  void Say(std::string key, std::string value) {
    const std::lock_guard lock(mutex_);
    if (!socket_.valid()) return;
    if (key == "CHECKPOINT=") {  // only the newest one is of use
      std::erase_if(pending_,
                    [](const std::string& line) { return line.starts_with("CHECKPOINT="); });
    }
    if (pending_.size() < kPendingMax) pending_.push_back(std::move(key) + std::move(value));
    Flush();
  }

  // Drops `line` if it cannot go now.
  void Mention(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (Flush()) Send(line);
  }

  struct Heard {
    bool drain = false;
    std::optional<int64_t> aborted;
    std::optional<std::string> members;
  };

  Heard Listen() {
    std::vector<Aborted> to_tell;
    Heard heard;
    {
      const std::lock_guard lock(mutex_);
      Receive();
      Flush();
      heard = heard_;
      if (heard.aborted > told_) {
        told_ = heard.aborted;
        to_tell = listeners_;
      }
    }
    for (const Aborted& aborted : to_tell) aborted(*heard.aborted);
    return heard;
  }

  void OnAbort(Aborted aborted) {
    const Aborted again = aborted;
    std::optional<int64_t> already;
    {
      const std::lock_guard lock(mutex_);
      listeners_.push_back(std::move(aborted));
      already = told_;
      StartListener();
    }
    if (already) again(*already);
  }

 private:
  // A descriptor of the thread's own: hanging up closes the other one.
  void StartListener() {
    if (listener_.joinable() || !socket_.valid()) return;
    ears_.reset(fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
    stop_.reset(eventfd(0, EFD_CLOEXEC));
    if (ears_.valid() && stop_.valid()) listener_ = std::thread([this] { ListenOn(); });
  }

  void ListenOn() {
    pollfd ready[] = {{ears_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    while (connected()) {
      if (poll(ready, 2, -1) < 0 && errno != EINTR) return;
      if (ready[1].revents != 0) return;
      Listen();
    }
  }

  // True once nothing waits any more.
  bool Flush() {
    while (socket_.valid() && !pending_.empty() && Send(pending_.front())) {
      if (!pending_.empty()) pending_.pop_front();
    }
    return socket_.valid() && pending_.empty();
  }

  bool Send(const std::string& line) {
    while (true) {
      if (send(socket_.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return true;
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM)
        return false;
      Receive();  // what it said before it went is still there to read
      HangUp();
      return false;
    }
  }

  void Receive() {
    while (socket_.valid()) {
      const ssize_t size = recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (size > 0) {
        Understand(std::string_view(buffer_.data(), static_cast<size_t>(size)));
      } else if (size == 0) {
        return HangUp();
      } else if (errno != EINTR) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) HangUp();
        return;
      }
    }
  }

  void Understand(std::string_view datagram) {
    std::string_view rest = datagram;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      if (line == "DRAIN=1") heard_.drain = true;
      if (line.starts_with("MEMBERS=")) heard_.members = std::string(datagram);
      if (line.starts_with("ABORT=")) {
        int64_t generation = 0;
        const auto [end, error] =
            std::from_chars(line.data() + 6, line.data() + line.size(), generation);
        if (error == std::errc() && end == line.data() + line.size()) {
          heard_.aborted = std::max(heard_.aborted.value_or(generation), generation);
        }
      }
    }
  }

  void HangUp() {
    socket_.reset();
    pending_.clear();
  }

  std::mutex mutex_;
  UniqueFd socket_;
  std::deque<std::string> pending_;
  std::vector<char> buffer_;
  Heard heard_;
  std::optional<int64_t> told_;  // to the listeners
  std::vector<Aborted> listeners_;
  UniqueFd ears_, stop_;
  std::thread listener_;
};

AgentLink::AgentLink() : AgentLink(SocketInEnvironment()) {}
AgentLink::AgentLink(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
AgentLink::~AgentLink() = default;
AgentLink::AgentLink(AgentLink&&) noexcept = default;
AgentLink& AgentLink::operator=(AgentLink&&) noexcept = default;

bool AgentLink::connected() const { return impl_->connected(); }
void AgentLink::ready() { impl_->Say("READY=", "1"); }
void AgentLink::checkpoint(std::string_view text) { impl_->Say("CHECKPOINT=", OneLine(text)); }
void AgentLink::error(std::string_view text) { impl_->Say("ERROR=", OneLine(text)); }
void AgentLink::quiesced(int64_t generation) {
  impl_->Say("QUIESCED=", std::to_string(generation));
}
void AgentLink::step(int64_t n) { impl_->Mention("STEP=" + std::to_string(n)); }
void AgentLink::status(std::string_view text) { impl_->Mention("STATUS=" + OneLine(text)); }
bool AgentLink::drain_requested() { return impl_->Listen().drain; }
std::optional<int64_t> AgentLink::aborted_generation() { return impl_->Listen().aborted; }
void AgentLink::on_abort(std::function<void(int64_t generation)> aborted) {
  impl_->OnAbort(std::move(aborted));
}
std::optional<std::string> AgentLink::members() { return impl_->Listen().members; }

}  // namespace muster
