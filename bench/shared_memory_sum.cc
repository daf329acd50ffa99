// What an all-reduce between processes of one host costs that share memory: each rank copies its
// floats in, sums its part of all, and copies the whole sum out, with a barrier between.
//
//   shared_memory_sum RANKS BYTES ROUNDS
//
// Prints the median of the rounds in microseconds. 2 on bad usage, 71 when the kernel refuses.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using std::chrono::steady_clock;

struct Shared {
  pthread_barrier_t barrier;
  alignas(64) float values[];  // of each rank, then the sum
};

void OneSum(Shared& shared, int ranks, int rank, size_t count, std::vector<float>& own) {
  float* const sum = shared.values + static_cast<size_t>(ranks) * count;
  std::memcpy(shared.values + static_cast<size_t>(rank) * count, own.data(), count * sizeof(float));
  pthread_barrier_wait(&shared.barrier);
  const size_t from = count * static_cast<size_t>(rank) / static_cast<size_t>(ranks);
  const size_t to = count * static_cast<size_t>(rank + 1) / static_cast<size_t>(ranks);
  std::copy(shared.values + from, shared.values + to, sum + from);
  for (size_t other = 1; other < static_cast<size_t>(ranks); ++other) {
    const float* const theirs = shared.values + other * count;
    for (size_t i = from; i < to; ++i) sum[i] += theirs[i];
  }
  pthread_barrier_wait(&shared.barrier);
  std::memcpy(own.data(), sum, count * sizeof(float));
}

// False: a sum is wrong.
bool Rank(Shared& shared, int ranks, int rank, size_t count, int rounds) {
  std::vector<float> own(count);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    std::fill(own.begin(), own.end(), static_cast<float>(rank + 1));
    pthread_barrier_wait(&shared.barrier);
    const auto began = steady_clock::now();
    OneSum(shared, ranks, rank, count, own);
    times.push_back(std::chrono::duration<double, std::micro>(steady_clock::now() - began).count());
    if (own.front() != own.back() || own.front() != static_cast<float>(ranks * (ranks + 1)) / 2) {
      return false;
    }
  }
  std::sort(times.begin(), times.end());
  if (rank == 0) std::printf("%.1f\n", times[times.size() / 2]);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 3 ? std::atoi(argv[1]) : 0;
  const size_t count = argc > 3 ? std::strtoull(argv[2], nullptr, 10) / sizeof(float) : 0;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 0;
  if (ranks < 1 || count < static_cast<size_t>(ranks) || rounds < 1) {
    std::fputs("usage: shared_memory_sum RANKS BYTES ROUNDS\n", stderr);
    return 2;
  }
  const size_t size = sizeof(Shared) + (static_cast<size_t>(ranks) + 1) * count * sizeof(float);
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 71;
  Shared& shared = *static_cast<Shared*>(memory);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared.barrier, &attributes, static_cast<unsigned>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid < 0) return 71;
    if (pid > 0) continue;
    const bool is_right = Rank(shared, ranks, rank, count, rounds);
    std::fflush(stdout);
    _exit(is_right ? 0 : 1);
  }
  int failures = 0;
  for (int status = 0; wait(&status) > 0;) failures += status != 0;
  return failures == 0 ? 0 : 1;
}
