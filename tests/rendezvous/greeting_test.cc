#include "rendezvous/greeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>

#include "base/unique_fd.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using ::testing::StartsWith;

// SETTINGS that set nothing.
constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);

class GreetingTest : public testing::Test {
 protected:
  GreetingTest() {
    std::array<int, 2> ends;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours_.reset(ends[0]);
    theirs_.reset(ends[1]);
  }

  absl::Status Await(Duration patience, int cancel_fd = -1) {
    return AwaitGreeting(ours_.get(), "10.0.0.7:29400", patience, cancel_fd);
  }
  absl::Status AskInTls() { return CheckSpeaksNoTls(ours_.get(), "10.0.0.7:29400", 1min, -1); }
  void Say(std::string_view text) {
    EXPECT_EQ(send(theirs_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  std::string Hear() {
    char text[64] = {};
    const ssize_t got = recv(theirs_.get(), text, sizeof(text), 0);
    return std::string(text, got > 0 ? static_cast<size_t>(got) : 0);
  }

  UniqueFd ours_;
  UniqueFd theirs_;
};

TEST_F(GreetingTest, AMasterSpeaksFirstAndItsWordsStayOnTheConnection) {
  Say(kSettings);
  EXPECT_TRUE(Await(1min).ok());
  char text[16];
  EXPECT_EQ(recv(ours_.get(), text, sizeof(text), MSG_DONTWAIT), ssize_t{kSettings.size()});
}

TEST_F(GreetingTest, WhoSpeaksAnotherProtocolIsQuoted) {
  Say("220 mail\tready\r\n");
  const absl::Status status = Await(1min);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(status.message(),
            "10.0.0.7:29400: what listens there is no master: it says '220 mail ready'");
}

TEST_F(GreetingTest, WhoSpeaksSecondIsAskedFirst) {
  std::thread server([this] {
    EXPECT_THAT(Hear(), StartsWith("PRI * HTTP/2.0"));
    Say("HTTP/1.1 400 Bad Request\r\n");
  });
  const absl::Status status = Await(2s);
  server.join();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_F(GreetingTest, SilenceIsNoMaster) { EXPECT_TRUE(absl::IsAborted(Await(2ms))); }

TEST_F(GreetingTest, AnEndWithoutAnAnswerIsNoMaster) {
  std::thread server([this] {
    Hear();
    theirs_.reset();
  });
  EXPECT_TRUE(absl::IsOutOfRange(Await(2s)));
  server.join();
}

TEST_F(GreetingTest, AnAlertOfTlsIsTls) {
  Say(std::string_view("\x15\3\3\0\2\2\x46", 7));
  theirs_.reset();
  const absl::Status status = Await(1min);
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_EQ(status.message(), "10.0.0.7:29400: what listens there speaks TLS: give --tls-ca");
}

TEST_F(GreetingTest, WhoAnswersAHelloOfTlsSpeaksIt) {
  Say(std::string_view("\x16\3\3\0\x7a\2\0\0\x76\3\3", 11));
  EXPECT_TRUE(absl::IsUnimplemented(AskInTls()));
}

TEST_F(GreetingTest, WhoAnswersAHelloOfTlsWithSomethingElseDoesNot) {
  Say("-ERR unknown command\r\n");
  EXPECT_TRUE(AskInTls().ok());
}

TEST_F(GreetingTest, WhoClosesAfterAHelloOfTlsDoesNotSpeakIt) {
  theirs_.reset();
  EXPECT_TRUE(AskInTls().ok());
}

TEST_F(GreetingTest, WhatIsClosedAtOnceMayBeAProxyWithoutItsMaster) {
  theirs_.reset();
  EXPECT_TRUE(absl::IsInternal(Await(1min)));
}

TEST_F(GreetingTest, ASlowMasterIsTriedAgain) {
  std::thread server([this] {
    Hear();
    Say(kSettings);
  });
  EXPECT_TRUE(absl::IsInternal(Await(2s)));
  server.join();
}

TEST_F(GreetingTest, CanBeCancelled) {
  const UniqueFd cancel(eventfd(1, EFD_CLOEXEC));
  EXPECT_TRUE(absl::IsCancelled(Await(1min, cancel.get())));
}

}  // namespace
}  // namespace muster
