#include "check/meeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/event_loop.h"
#include "check/machine.h"

namespace muster::check {
namespace {

using namespace std::chrono_literals;

// Long enough for the kernel to find that nobody has an address.
constexpr Duration kAttemptTime = 4s;
constexpr Duration kPauseMax = 500ms;
constexpr size_t kStrangersMax = 1000;  // connections that have not said who they are

}  // namespace

Host::Host(Listener listener, int world_size, std::string key)
    : listener_(std::move(listener)), world_size_(world_size), key_(std::move(key)) {}

bool Host::Admit(Guest* guest, const Fields& hello) {
  const std::optional<long long> rank = WholeNumber(FirstOf(hello, "rank"));
  if (FirstOf(hello, "key") != key_ || !rank || *rank < 1 || *rank >= world_size_) return false;
  for (Guest& other : guests_) {
    if (other.rank == *rank) other.channel.Release();
  }
  guest->rank = static_cast<int>(*rank);
  return guest->channel.Send({{"welcome", key_}}, EventLoop::Now() + 1s);
}

void Host::Accept() {
  while (guests_.size() < static_cast<size_t>(world_size_) + kStrangersMax) {
    UniqueFd fd(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return;
    guests_.push_back({Channel(std::move(fd)), -1});
  }
}

void Host::Hear(Time deadline, std::map<int, Fields>* answers) {
  std::vector<pollfd> ready;
  for (const Guest& guest : guests_) {
    const bool is_done = answers->contains(guest.rank);
    ready.push_back({is_done ? -1 : guest.channel.fd(), POLLIN, 0});
  }
  ready.push_back({listener_.fd.get(), POLLIN, 0});
  if (poll(ready.data(), ready.size(), MillisecondsTo(deadline)) <= 0) return;
  for (size_t i = 0; i + 1 < ready.size(); ++i) {
    if (ready[i].revents == 0) continue;
    Guest& guest = guests_[i];
    std::optional<Fields> message = guest.channel.Receive(Time());
    if (!message) continue;
    if (guest.rank < 0 && !Admit(&guest, *message)) {
      guest.channel.Release();
      continue;
    }
    (*answers)[guest.rank] = *std::move(message);
  }
  std::erase_if(guests_,
                [](const Guest& guest) { return guest.channel.ended() || guest.channel.fd() < 0; });
  if (ready.back().revents != 0) Accept();
}

std::map<int, Fields> Host::Gather(Time deadline) {
  std::map<int, Fields> answers;
  while (static_cast<int>(answers.size()) < world_size_ - 1 && EventLoop::Now() < deadline) {
    Hear(deadline, &answers);
  }
  std::erase_if(guests_, [](const Guest& guest) { return guest.rank < 0; });
  return answers;
}

void Host::Tell(const Fields& message, Time deadline) {
  for (Guest& guest : guests_) guest.channel.Send(message, deadline);
  std::erase_if(guests_, [](const Guest& guest) { return guest.channel.ended(); });
}

std::map<int, Fields> Host::Collect(Time deadline) {
  std::map<int, Fields> answers;
  while (answers.size() < guests_.size() && EventLoop::Now() < deadline) Hear(deadline, &answers);
  return answers;
}

Joined Join(const std::string& host, int port, const Fields& hello, const std::string& key,
            int rank, Time deadline) {
  Fields greeting = {{"key", key}, {"rank", std::to_string(rank)}};
  greeting.insert(greeting.end(), hello.begin(), hello.end());
  Joined joined;
  Duration pause = 20ms;
  do {
    joined = Joined();
    for (const std::string& address : ResolvedAddresses(host, &joined.resolve_problem)) {
      const Time enough = std::min(deadline, EventLoop::Now() + kAttemptTime);
      std::vector<Dialled> dialled = Dial({{address, port}}, enough);
      joined.attempts.push_back({address, dialled[0].error});
      if (dialled[0].error != 0) continue;
      Channel channel(std::move(dialled[0].fd));
      std::optional<Fields> answer;
      if (channel.Send(greeting, enough)) answer = channel.Receive(enough);
      if (answer && FirstOf(*answer, "welcome") == key) {
        joined.channel = std::move(channel);
        return joined;
      }
      joined.attempts.back().error = EPROTO;
    }
    // Nothing tells when a port of another process opens.
    poll(nullptr, 0, MillisecondsTo(std::min(deadline, EventLoop::Now() + pause)));
    pause = std::min<Duration>(pause * 2, kPauseMax);
  } while (EventLoop::Now() < deadline);
  return joined;
}

}  // namespace muster::check
