#include "check/ring.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "base/event_loop.h"

namespace muster::check {
namespace {

constexpr size_t kLargeCount = size_t{2} * 1024 * 1024;  // doubles: 16 MiB
constexpr int kSmallRounds = 41;
constexpr int kLargeRounds = 5;

double Median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

}  // namespace

double LinkBandwidth(double bytes, int ranks, double seconds) {
  return bytes * 2 * (ranks - 1) / ranks / seconds;
}

int Ring::Form(const Target& next, const Listener& listener, Time deadline) {
  std::vector<Dialled> dialled = Dial({next}, deadline);
  if (dialled[0].error != 0) return dialled[0].error;
  Channel to_next(std::move(dialled[0].fd));
  if (!to_next.Send({{"ring", std::to_string(rank_)}}, deadline)) return EPIPE;
  const std::string previous = std::to_string((rank_ + size_ - 1) % size_);
  while (!from_previous_.valid()) {
    pollfd readable{listener.fd.get(), POLLIN, 0};
    if (poll(&readable, 1, MillisecondsTo(deadline)) == 0) return ETIMEDOUT;
    UniqueFd accepted(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted.valid()) continue;
    // Those that only tried the port have closed already.
    Channel channel(std::move(accepted));
    const std::optional<Fields> greeting = channel.Receive(deadline);
    if (!greeting || FirstOf(*greeting, "ring") != previous) continue;
    if (!channel.Send({{"welcome", ""}}, deadline)) return EPIPE;
    from_previous_ = channel.Release();
  }
  // Before that the next rank could take numbers for a part of the greeting.
  if (!to_next.Receive(deadline)) return to_next.ended() ? ECONNRESET : ETIMEDOUT;
  to_next_ = to_next.Release();
  return 0;
}

int Ring::Exchange(const double* out, size_t out_count, double* in, size_t in_count,
                   Time deadline) {
  const char* from = reinterpret_cast<const char*>(out);
  char* to = reinterpret_cast<char*>(in);
  size_t to_send = out_count * sizeof(double);
  size_t to_receive = in_count * sizeof(double);
  while (to_send > 0 || to_receive > 0) {
    pollfd ready[] = {{to_send > 0 ? to_next_.get() : -1, POLLOUT, 0},
                      {to_receive > 0 ? from_previous_.get() : -1, POLLIN, 0}};
    const int count = poll(ready, 2, MillisecondsTo(deadline));
    if (count == 0) return ETIMEDOUT;
    if (ready[0].revents != 0) {
      const ssize_t size = send(to_next_.get(), from, to_send, MSG_NOSIGNAL);
      if (size < 0 && errno != EAGAIN) return errno;
      from += std::max<ssize_t>(size, 0);
      to_send -= static_cast<size_t>(std::max<ssize_t>(size, 0));
    }
    if (ready[1].revents != 0) {
      const ssize_t size = recv(from_previous_.get(), to, to_receive, 0);
      if (size == 0) return ECONNRESET;
      if (size < 0 && errno != EAGAIN) return errno;
      to += std::max<ssize_t>(size, 0);
      to_receive -= static_cast<size_t>(std::max<ssize_t>(size, 0));
    }
  }
  return 0;
}

int Ring::Sum(std::vector<double>* data, Time deadline) {
  const auto begin_of = [&](int chunk) {
    return data->size() * static_cast<size_t>(chunk) / static_cast<size_t>(size_);
  };
  const auto chunk_at = [&](int step) { return ((rank_ - step) % size_ + size_) % size_; };
  std::vector<double> received(data->size() / static_cast<size_t>(size_) + 1);
  for (int step = 0; step < 2 * (size_ - 1); ++step) {
    // First each chunk is summed on its way around, then the sums go around.
    const bool sums = step < size_ - 1;
    const int out = chunk_at(sums ? step : step - size_);
    const int in = chunk_at(sums ? step + 1 : step - size_ + 1);
    const size_t in_count = begin_of(in + 1) - begin_of(in);
    double* target = data->data() + begin_of(in);
    const int error = Exchange(data->data() + begin_of(out), begin_of(out + 1) - begin_of(out),
                               sums ? received.data() : target, in_count, deadline);
    if (error != 0) return error;
    if (!sums) continue;
    for (size_t i = 0; i < in_count; ++i) target[i] += received[i];
  }
  return 0;
}

AllReduce MeasureRing(Ring* ring, int rank, int size, Time deadline) {
  AllReduce result;
  result.transport = "TCP";
  const auto median_of = [&](size_t count, int rounds) {
    std::vector<double> times;
    for (int round = 0; round < rounds && result.failed_rank < 0; ++round) {
      std::vector<double> data(count, rank + 1.0);
      const Time begin = EventLoop::Now();
      const int error = ring->Sum(&data, deadline);
      times.push_back(std::chrono::duration<double>(EventLoop::Now() - begin).count());
      const bool is_right = std::all_of(
          data.begin(), data.end(), [size](double sum) { return sum == size * (size + 1.0) / 2; });
      if (error == 0 && is_right) continue;
      result.failed_rank = rank;
      result.failure = error != 0 ? std::strerror(error) : "the sum is wrong";
    }
    return Median(times);
  };
  result.latency_s = median_of(1, kSmallRounds);
  if (result.failed_rank >= 0) return result;
  const double large = median_of(kLargeCount, kLargeRounds);
  result.bandwidth = LinkBandwidth(static_cast<double>(kLargeCount * sizeof(double)), size, large);
  return result;
}

}  // namespace muster::check
