#include "worker_sdk/host_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace muster {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::Not;

steady_clock::time_point Soon() { return steady_clock::now() + std::chrono::seconds(30); }

// Of all ranks, in this process: each has opened the file for itself.
std::vector<std::unique_ptr<HostMemory>> Everybody(int ranks) {
  std::vector<std::unique_ptr<HostMemory>> all;
  all.push_back(HostMemory::Create(ranks));
  for (int rank = 1; rank < ranks; ++rank) {
    all.push_back(HostMemory::Open(all[0]->offer(), rank, ranks));
  }
  return all;
}

std::string ErrorOf(const std::function<void()>& what) {
  try {
    what();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(HostMemory, WhatWasWrittenBeforeAMeetingIsSeenAfterIt) {
  constexpr int kRounds = 2000;
  for (const int ranks : {2, 3, 5}) {
    const auto all = Everybody(ranks);
    const auto run = [ranks](HostMemory& memory) {
      const auto number = [&](int rank, int which) {
        return reinterpret_cast<int*>(memory.Part(rank, which));
      };
      for (int round = 0; round < kRounds; ++round) {
        const int which = round % 2;
        *number(memory.rank(), which) = round * ranks + memory.rank();
        memory.Meet(Soon());
        for (int rank = 0; rank < ranks; ++rank) {
          ASSERT_EQ(*number(rank, which), round * ranks + rank);
        }
      }
    };
    std::vector<std::thread> threads;
    for (const auto& memory : all) threads.emplace_back(run, std::ref(*memory));
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(HostMemory, PartsDoNotOverlap) {
  const auto all = Everybody(2);
  std::vector<std::byte*> parts;
  for (const int rank : {0, 1}) {
    for (const int which : {0, 1}) parts.push_back(all[0]->Part(rank, which));
  }
  parts.push_back(all[0]->CommonPart());
  for (size_t i = 0; i < parts.size(); ++i) {
    std::memset(parts[i], static_cast<int>(i + 1), HostMemory::kPartBytes);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i][0], static_cast<std::byte>(i + 1));
    EXPECT_EQ(parts[i][HostMemory::kPartBytes - 1], static_cast<std::byte>(i + 1));
  }
  EXPECT_EQ(static_cast<int>(all[1]->CommonPart()[17]), 5) << "the other rank's view of it";
}

TEST(HostMemory, ARankThatDoesNotComeIsNamedByTheDeadline) {
  const auto all = Everybody(3);
  std::string others;
  std::thread other([&] { others = ErrorOf([&] { all[2]->Meet(Soon()); }); });
  EXPECT_EQ(ErrorOf([&] { all[0]->Meet(steady_clock::now()); }),
            "timed out waiting (rank 1, shared memory)");
  other.join();
  EXPECT_EQ(others, "connection closed by peer (rank 0, shared memory)")
      << "it waits for rank 1, too, and is not to wait for longer than rank 0";
}

TEST(HostMemory, WhoLeavesEndsTheOthersMeetingsAndItsOwn) {
  const auto all = Everybody(2);
  std::string heard, own;
  std::thread waiter([&] { heard = ErrorOf([&] { all[0]->Meet(Soon()); }); });
  all[1]->Leave();
  waiter.join();
  EXPECT_EQ(heard, "connection closed by peer (rank 1, shared memory)");
  EXPECT_THAT(ErrorOf([&] { all[1]->Meet(Soon()); }), HasSubstr("connection was closed"));
  EXPECT_THAT(ErrorOf([&] { all[0]->Meet(Soon()); }), HasSubstr("connection was closed"))
      << "a meeting that failed is the last";

  const auto again = Everybody(2);
  std::thread leaver([&] { again[0]->Leave(); });
  own = ErrorOf([&] { again[0]->Meet(Soon()); });
  leaver.join();
  EXPECT_THAT(own, HasSubstr("connection was closed"));
}

TEST(HostMemory, WhoCameAndThenEndedIsNotMissed) {
  auto all = Everybody(2);
  std::thread other([&] {
    all[1]->Meet(Soon());
    all[1].reset();
  });
  all[0]->Meet(Soon());
  other.join();
}

// Forks before any thread is started; what the child does must not return.
TEST(HostMemory, ARankThatIsKilledIsALostPeer) {
  const auto own = HostMemory::Create(2);
  int opened[2];
  ASSERT_EQ(pipe(opened), 0);
  const UniqueFd read_end(opened[0]), write_end(opened[1]);
  char byte = 0;
  const pid_t child = fork();
  if (child == 0) {
    const auto memory = HostMemory::Open(own->offer(), 1, 2);
    if (write(opened[1], &byte, 1) == 1) memory->Meet(Soon());
    raise(SIGKILL);
  }
  ASSERT_EQ(read(opened[0], &byte, 1), 1);
  own->Meet(Soon());
  EXPECT_EQ(ErrorOf([&] { own->Meet(Soon()); }),
            "connection closed by peer (rank 1, shared memory)");
  waitpid(child, nullptr, 0);
}

TEST(HostMemory, ALimitOfFilesIsAnErrorAndNoSignal) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1 << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = ErrorOf([] { HostMemory::Create(2); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(error, "files may not be that large (ulimit -f)");
}

TEST(HostMemory, WhatIsNotTheOffersIsRefused) {
  const auto own = HostMemory::Create(2);
  const auto refusal = [](const std::string& offer, int ranks = 2) {
    return ErrorOf([&] { HostMemory::Open(offer, 1, ranks); });
  };
  const std::string self = std::to_string(getpid()) + " ", token = " " + std::string(32, '0');
  EXPECT_EQ(refusal(""), "no memory is offered");
  EXPECT_EQ(refusal("one two three"), "no memory is offered");
  EXPECT_THAT(refusal(self + "9999" + token), HasSubstr("No such file"));
  EXPECT_THAT(refusal("0 0" + token), HasSubstr("No such file"));
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]), write_end(ends[1]);
  EXPECT_THAT(refusal(self + std::to_string(ends[0]) + token), HasSubstr("is something else"));
  const std::string offer = own->offer();
  EXPECT_THAT(refusal(offer, 3), HasSubstr("is something else")) << "another number of ranks";
  EXPECT_THAT(refusal(offer.substr(0, offer.rfind(' ')) + token), HasSubstr("is something else"));
  EXPECT_THAT(refusal(offer), Not(HasSubstr("is something else")));
}

}  // namespace
}  // namespace muster
