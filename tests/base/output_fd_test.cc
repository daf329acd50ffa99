#include "base/output_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "base/unique_fd.h"

namespace muster {
namespace {

struct Ends {
  UniqueFd read;
  UniqueFd write;
};

Ends Pipe() {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Ends SocketPair() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Ends Terminal() {
  Ends ends;
  ends.read.reset(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  EXPECT_EQ(grantpt(ends.read.get()), 0);
  EXPECT_EQ(unlockpt(ends.read.get()), 0);
  ends.write.reset(open(ptsname(ends.read.get()), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  EXPECT_TRUE(ends.write.valid());
  return ends;
}

class OutputFdTest : public ::testing::TestWithParam<Ends (*)()> {
 protected:
  OutputFdTest() { signal(SIGPIPE, SIG_IGN); }
};

TEST_P(OutputFdTest, FullOutputGivesAgainInsteadOfBlockingAndTheSharedFlagsStay) {
  Ends ends = GetParam()();
  OutputFd output(ends.write.get());
  const std::string block(64 * 1024, 'x');
  size_t total = 0;
  ssize_t written;
  while ((written = output.TryWrite(block)) > 0) total += static_cast<size_t>(written);
  EXPECT_EQ(written, -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GT(total, 0u);
  EXPECT_EQ(fcntl(ends.write.get(), F_GETFL) & O_NONBLOCK, 0);

  // The reader reads, and the output takes something again.
  std::string taken(1 << 20, '\0');
  pollfd ready[2] = {{output.poll_fd(), POLLOUT, 0}, {ends.read.get(), POLLIN, 0}};
  while (ready[0].revents == 0) {
    ASSERT_GT(poll(ready, 2, 10000), 0);
    if (ready[1].revents != 0) {
      ASSERT_GT(read(ends.read.get(), taken.data(), taken.size()), 0);
    }
  }
  EXPECT_GT(output.TryWrite("x"), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, OutputFdTest, ::testing::Values(&Pipe, &SocketPair, &Terminal));

TEST(OutputFdErrorsTest, ReaderGoneIsEpipe) {
  signal(SIGPIPE, SIG_IGN);
  for (Ends (*make)() : {&Pipe, &SocketPair}) {
    Ends ends = make();
    OutputFd output(ends.write.get());
    ends.read.reset();
    EXPECT_EQ(output.TryWrite("x"), -1);
    EXPECT_EQ(errno, EPIPE);
  }
}

TEST(OutputFdErrorsTest, PipeWithoutReaderFromTheStartIsEpipe) {
  signal(SIGPIPE, SIG_IGN);
  Ends ends = Pipe();
  ends.read.reset();
  OutputFd output(ends.write.get());
  EXPECT_EQ(output.TryWrite("x"), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST(OutputFdErrorsTest, ClosedDescriptorIsEbadf) {
  OutputFd output(-1);
  EXPECT_EQ(output.TryWrite("x"), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(OutputFdErrorsTest, FullDeviceIsEnospc) {
  UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  OutputFd output(full.get());
  EXPECT_EQ(output.TryWrite("x"), -1);
  EXPECT_EQ(errno, ENOSPC);
}

TEST(OutputFdErrorsTest, RegularFileKeepsTheSharedOffset) {
  char path[] = "/tmp/muster-test-XXXXXX";
  UniqueFd file(mkstemp(path));
  unlink(path);
  ASSERT_EQ(write(file.get(), "ab", 2), 2);
  OutputFd output(file.get());
  EXPECT_EQ(output.TryWrite("cd"), 2);
  ASSERT_EQ(write(file.get(), "ef", 2), 2);
  char text[16];
  EXPECT_EQ(pread(file.get(), text, sizeof(text), 0), 6);
  EXPECT_EQ(std::string(text, 6), "abcdef");
}

}  // namespace
}  // namespace muster
