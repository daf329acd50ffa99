#include "worker_sdk/host_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace muster {
namespace {

using std::chrono::steady_clock;

constexpr size_t kFirstPage = 4096;  // the token, then the seats
constexpr size_t kSeatBytes = 64;
// A rank that ended without a word is found this much later at most.
constexpr timespec kNap = {.tv_sec = 0, .tv_nsec = 10'000'000};
// Some 50 us: longer than a rank takes for its part of a sum, shorter than it is worth to sleep.
constexpr int kSpins = 1000;

constexpr char kClosed[] = "the connection was closed (shared memory)";

std::string Who(int rank) { return " (rank " + std::to_string(rank) + ", shared memory)"; }

std::system_error SystemError(const char* what) { return {errno, std::generic_category(), what}; }

size_t SeatsBytes(int ranks) {
  const size_t bytes = kFirstPage + static_cast<size_t>(ranks) * kSeatBytes;
  return (bytes + kFirstPage - 1) / kFirstPage * kFirstPage;
}

size_t TotalBytes(int ranks) {
  return SeatsBytes(ranks) + (2 * static_cast<size_t>(ranks) + 1) * HostMemory::kPartBytes;
}

uint64_t NewToken() {
  uint64_t token = 0;
  if (getrandom(&token, sizeof token, 0) != sizeof token) throw SystemError("getrandom");
  return token;
}

// Each rank holds the byte of its number in the file, for as long as it lives.
struct flock ByteOf(int rank) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

int ProcessorsForThis() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void Sleep(const std::atomic<uint32_t>& word, uint32_t while_it_is) {
  syscall(SYS_futex, &word, FUTEX_WAIT, while_it_is, &kNap, nullptr, 0);
}

void WakeAll(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

}  // namespace

struct alignas(kSeatBytes) HostMemory::Seat {
  std::atomic<uint32_t> meetings;  // begun by this rank
  std::atomic<uint32_t> sleepers;  // who wait for the next one
  std::atomic<uint32_t> left;
  static_assert(std::atomic<uint32_t>::is_always_lock_free, "it is shared between processes");
};

HostMemory::HostMemory(UniqueFd file, std::string offer, int rank, int ranks)
    : file_(std::move(file)),
      offer_(std::move(offer)),
      rank_(rank),
      ranks_(ranks),
      // Where a rank must wait for a processor, whoever spins keeps it waiting.
      spins_(ranks <= ProcessorsForThis() ? kSpins : 0) {
  void* const memory =
      mmap(nullptr, TotalBytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) throw SystemError("mmap");
  memory_ = static_cast<std::byte*>(memory);
}

HostMemory::~HostMemory() {
  Leave();
  munmap(memory_, TotalBytes(ranks_));
}

std::unique_ptr<HostMemory> HostMemory::Create(int ranks) {
  // Beyond this limit the kernel would send SIGXFSZ.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < TotalBytes(ranks)) {
    throw std::runtime_error("files may not be that large (ulimit -f)");
  }
  UniqueFd file(memfd_create("muster", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) throw SystemError("memfd_create");
  // Nobody can cut it and so end with SIGBUS whoever reads on.
  if (ftruncate(file.get(), static_cast<off_t>(TotalBytes(ranks))) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw SystemError("memory for all ranks");
  }
  const uint64_t token = NewToken();
  const std::string offer =
      std::to_string(getpid()) + " " + std::to_string(file.get()) + " " + std::to_string(token);
  std::unique_ptr<HostMemory> memory(new HostMemory(std::move(file), offer, 0, ranks));
  std::memcpy(memory->memory_, &token, sizeof token);
  memory->SitDown();
  return memory;
}

std::unique_ptr<HostMemory> HostMemory::Open(const std::string& offer, int rank, int ranks) {
  int pid = 0, number = 0;
  uint64_t token = 0;
  if (std::sscanf(offer.c_str(), "%d %d %" SCNu64, &pid, &number, &token) != 3) {
    throw std::runtime_error("no memory is offered");
  }
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number);
  // Not to wait for what may be there instead on this host.
  UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) throw SystemError(path.c_str());
  if (!S_ISREG(status.st_mode) || static_cast<size_t>(status.st_size) != TotalBytes(ranks)) {
    throw std::runtime_error(path + " is something else");
  }
  std::unique_ptr<HostMemory> memory(new HostMemory(std::move(file), offer, rank, ranks));
  if (std::memcmp(memory->memory_, &token, sizeof token) != 0) {
    throw std::runtime_error(path + " is something else");
  }
  memory->SitDown();
  return memory;
}

HostMemory::Seat& HostMemory::SeatOf(int rank) const {
  return reinterpret_cast<Seat*>(memory_ + kFirstPage)[rank];
}

std::byte* HostMemory::Part(int rank, int which) const {
  return memory_ + SeatsBytes(ranks_) + static_cast<size_t>(2 * rank + which) * kPartBytes;
}

std::byte* HostMemory::CommonPart() const { return Part(ranks_, 0); }

// A lock of the open file and not of the process: the kernel gives it up when the last descriptor
// is closed, and so at the latest with the process.
void HostMemory::SitDown() {
  struct flock own = ByteOf(rank_);
  if (fcntl(file_.get(), F_OFD_SETLK, &own) != 0) throw SystemError("a lock in the memory");
}

bool HostMemory::IsGone(int rank) const {
  if (SeatOf(rank).left.load() != 0) return true;
  if (rank == rank_) return false;  // one's own lock is not seen
  struct flock theirs = ByteOf(rank);
  return fcntl(file_.get(), F_OFD_GETLK, &theirs) == 0 && theirs.l_type == F_UNLCK;
}

bool HostMemory::HasCome(int rank, uint32_t meeting) const {
  // The count may wrap around.
  return static_cast<int32_t>(SeatOf(rank).meetings.load() - meeting) >= 0;
}

void HostMemory::Meet(steady_clock::time_point deadline) {
  Seat& own = SeatOf(rank_);
  if (own.left.load() != 0) throw std::runtime_error(kClosed);
  own.meetings.store(++meetings_);
  if (own.sleepers.load() > 0) WakeAll(own.meetings);
  try {
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank != rank_) Await(rank, meetings_, deadline);
    }
  } catch (const std::exception&) {
    Leave();
    throw;
  }
}

void HostMemory::Await(int rank, uint32_t meeting, steady_clock::time_point deadline) const {
  for (int i = 0; i < spins_; ++i) {
    if (HasCome(rank, meeting)) return;
    Relax();
  }
  Seat& seat = SeatOf(rank);
  while (true) {
    const uint32_t seen = seat.meetings.load();
    seat.sleepers.fetch_add(1);
    if (!HasCome(rank, meeting)) Sleep(seat.meetings, seen);
    seat.sleepers.fetch_sub(1);
    if (HasCome(rank, meeting)) return;
    // Of the others, too: who has come to this meeting and is gone has given it up.
    for (int other = 0; other < ranks_; ++other) {
      if (!IsGone(other)) continue;
      if (HasCome(rank, meeting)) return;  // in between, and the other went after the meeting
      throw std::runtime_error(other == rank_ ? kClosed : "connection closed by peer" + Who(other));
    }
    if (steady_clock::now() >= deadline) throw std::runtime_error("timed out waiting" + Who(rank));
  }
}

void HostMemory::Leave() {
  Seat& own = SeatOf(rank_);
  own.left.store(1);
  WakeAll(own.meetings);
}

}  // namespace muster
