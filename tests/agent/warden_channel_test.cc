#include "agent/warden_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "agent/warden_protocol.h"

namespace muster {
namespace {

struct Ends {
  UniqueFd a;
  UniqueFd b;
};

Ends SocketPair() {
  std::array<int, 2> ends;
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Ends Pipe() {
  std::array<int, 2> ends;
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string Frame(const std::string& text) {
  return Encode(WardenRequest(LastWillRequest{{text}, ""}));
}

ino_t FileOf(int fd) {
  struct stat info {};
  EXPECT_EQ(fstat(fd, &info), 0);
  return info.st_ino;
}

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(WardenChannel, FramesArriveWholeAndInOrder) {
  Ends ends = SocketPair();
  WardenChannel sender(std::move(ends.a));
  WardenChannel receiver(std::move(ends.b));
  sender.Send(Frame("one"));
  sender.Send(Frame("two"));
  EXPECT_TRUE(receiver.Fill());
  EXPECT_EQ(receiver.NextFrame(), Frame("one"));
  EXPECT_EQ(receiver.NextFrame(), Frame("two"));
  EXPECT_EQ(receiver.NextFrame(), std::nullopt);
}

TEST(WardenChannel, AFrameThatComesByteByByteIsHandedOutWhenItIsWhole) {
  Ends ends = SocketPair();
  WardenChannel receiver(std::move(ends.b));
  const std::string frame = Frame("slow");
  for (char byte : frame) {
    EXPECT_EQ(receiver.NextFrame(), std::nullopt);
    ASSERT_EQ(write(ends.a.get(), &byte, 1), 1);
    EXPECT_TRUE(receiver.Fill());
  }
  EXPECT_EQ(receiver.NextFrame(), frame);
}

TEST(WardenChannel, DescriptorsComeWithTheirFrame) {
  Ends ends = SocketPair();
  WardenChannel sender(std::move(ends.a));
  WardenChannel receiver(std::move(ends.b));
  const Ends first = Pipe();
  const Ends second = Pipe();
  sender.Send(Frame("one"), {first.a.get(), first.b.get()});
  sender.Send(Frame("none"));
  sender.Send(Frame("two"), {second.b.get()});
  while (!receiver.NextFrame()) ASSERT_TRUE(receiver.Fill());
  auto fds = receiver.TakeFds(2);
  ASSERT_TRUE(fds);
  EXPECT_EQ(FileOf((*fds)[0].get()), FileOf(first.a.get()));
  EXPECT_EQ(fcntl((*fds)[0].get(), F_GETFD), FD_CLOEXEC) << "nothing for the workers by accident";
  EXPECT_EQ(receiver.NextFrame(), Frame("none"));
  EXPECT_EQ(receiver.NextFrame(), Frame("two"));
  fds = receiver.TakeFds(1);
  ASSERT_TRUE(fds);
  EXPECT_EQ(FileOf(fds->front().get()), FileOf(second.b.get()));
  EXPECT_FALSE(receiver.TakeFds(1)) << "a frame that promises more than came is a broken peer's";
}

TEST(WardenChannel, AFullSocketKeepsNobodyWaitingAndLosesNothing) {
  Ends ends = SocketPair();
  WardenChannel sender(std::move(ends.a));
  WardenChannel receiver(std::move(ends.b));
  std::vector<std::string> sent;
  std::vector<ino_t> files;
  for (int i = 0; i < 40; ++i) {
    const Ends pipe = Pipe();
    sent.push_back(Frame(std::string(50'000, static_cast<char>('a' + i % 26))));
    files.push_back(FileOf(pipe.a.get()));
    sender.Send(sent.back(), {pipe.a.get()});  // the caller closes its own at once
  }
  EXPECT_TRUE(sender.wants_write());
  std::vector<std::string> received;
  while (received.size() < sent.size()) {
    sender.Flush();
    ASSERT_TRUE(receiver.Fill());
    while (auto frame = receiver.NextFrame()) {
      const auto fds = receiver.TakeFds(1);
      ASSERT_TRUE(fds);
      EXPECT_EQ(FileOf(fds->front().get()), files[received.size()]);
      received.push_back(*std::move(frame));
    }
  }
  EXPECT_EQ(received, sent);
  EXPECT_FALSE(sender.wants_write());
}

TEST(WardenChannel, DescriptorsThatNobodyHasTakenStayInTheSocketAfterAFew) {
  Ends ends = SocketPair();
  WardenChannel sender(std::move(ends.a));
  WardenChannel receiver(std::move(ends.b));
  const Ends pipe = Pipe();
  constexpr int kFrames = 100;
  for (int i = 0; i < kFrames; ++i) sender.Send(Frame("one"), {pipe.a.get()});
  int received = 0;
  for (int before = 0; received < kFrames; before = received) {
    ASSERT_TRUE(receiver.Fill());
    while (receiver.NextFrame()) {
      ASSERT_TRUE(receiver.TakeFds(1));
      ++received;
    }
    EXPECT_GT(received, before);
    EXPECT_LE(received - before, 16);
  }
}

TEST(WardenChannel, WhatAPeerSaidBeforeItWentIsStillHandedOut) {
  Ends ends = SocketPair();
  WardenChannel receiver(std::move(ends.b));
  WardenChannel(std::move(ends.a)).Send(Frame("last words"));
  EXPECT_FALSE(receiver.Fill());
  EXPECT_EQ(receiver.NextFrame(), Frame("last words"));
}

TEST(WardenChannel, SendingToAPeerThatIsGoneIsHarmless) {
  Ends ends = SocketPair();
  WardenChannel sender(std::move(ends.a));
  ends.b.reset();
  sender.Send(Frame("to nobody"));
  EXPECT_FALSE(sender.wants_write());
  EXPECT_FALSE(sender.Fill());
}

TEST(WardenChannel, ALengthBeyondAllFramesIsABrokenPeer) {
  Ends ends = SocketPair();
  WardenChannel receiver(std::move(ends.b));
  const uint32_t length = 0xffffffff;
  ASSERT_EQ(write(ends.a.get(), &length, sizeof(length)), ssize_t{sizeof(length)});
  EXPECT_FALSE(receiver.Fill());
}

TEST(WardenChannel, DescriptorsThatNobodyTookAreClosedWithTheChannel) {
  Ends ends = SocketPair();
  Ends pipe = Pipe();
  {
    WardenChannel sender(std::move(ends.a));
    WardenChannel receiver(std::move(ends.b));
    sender.Send(Frame("one"), {pipe.b.get()});
    EXPECT_TRUE(receiver.Fill());
    pipe.b.reset();
  }
  char byte;
  EXPECT_EQ(read(pipe.a.get(), &byte, 1), 0) << "no writer is left";
}

TEST(WardenChannel, ADescriptorThatCannotBeDuplicatedIsSaidAndNothingIsSent) {
  Ends ends = SocketPair();
  WardenChannel sender(std::move(ends.a));
  WardenChannel receiver(std::move(ends.b));
  const Ends pipe = Pipe();
  const int closed = 999;
  ASSERT_FALSE(IsOpen(closed));
  EXPECT_EQ(sender.Send(Frame("one"), {pipe.a.get(), closed}), EBADF);
  EXPECT_EQ(sender.Send(Frame("two")), 0);
  EXPECT_TRUE(receiver.Fill());
  EXPECT_EQ(receiver.NextFrame(), Frame("two"));
}

// For a user without privileges the kernel carries only as many descriptors as may be open.
TEST(WardenChannel, WhenTheKernelCarriesNoMoreDescriptorsTheRestFollowsThePeersAnswers) {
  const int child = fork();
  if (child == 0) {
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit few{64, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    if (setuid(65534) != 0) errno = 0;  // where there is nobody else to be, root has no privileges
    Ends ends = SocketPair();
    WardenChannel sender(std::move(ends.a));
    WardenChannel receiver(std::move(ends.b));
    const Ends pipe = Pipe();
    constexpr int kFrames = 45;
    for (int i = 0; i < kFrames; ++i) {
      if (sender.Send(Frame("x"), {pipe.a.get(), pipe.b.get()}) != 0) _exit(1);
    }
    if (sender.wants_write()) _exit(2);  // it would turn in circles
    setrlimit(RLIMIT_NOFILE, &before);
    int received = 0;
    for (int round = 0; round < kFrames && received < kFrames; ++round) {
      if (!receiver.Fill()) _exit(3);
      for (; receiver.NextFrame(); ++received) {
        if (!receiver.TakeFds(2)) _exit(4);
      }
      sender.Flush();
    }
    _exit(received == kFrames ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace muster
