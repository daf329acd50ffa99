#include "rendezvous/dial.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <string>

#include "tests/rendezvous/test_agent.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(DialTest, ALiteralIsItsOwnAddress) {
  EXPECT_EQ(*ResolveHost("10.0.0.7"), std::vector<std::string>{"10.0.0.7"});
  EXPECT_EQ(*ResolveHost("::1"), std::vector<std::string>{"::1"});
}

TEST(DialTest, AnUnknownNameIsSaidByName) {
  const absl::Status status = ResolveHost("no-such-host.invalid").status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("no-such-host.invalid"), std::string::npos)
      << status;
}

TEST(DialTest, TheConnectionKnowsBothItsAddresses) {
  ReservedPort port;
  port.Listen();
  const auto connection = Connect({"127.0.0.1"}, port.number(), 20s, -1);
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(connection->address, "127.0.0.1");
  EXPECT_EQ(connection->own_address, "127.0.0.1");
}

TEST(DialTest, ARefusalNamesAddressAndPort) {
  ReservedPort port;
  const absl::Status status = Connect({"127.0.0.1"}, port.number(), 20s, -1).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(),
            "127.0.0.1:" + std::to_string(port.number()) + ": connection refused");
}

TEST(DialTest, TriesTheNextAddressWhenOneRefuses) {
  ReservedPort port;
  port.Listen();
  const auto connection = Connect({"127.0.0.2", "127.0.0.1"}, port.number(), 20s, -1);
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(connection->address, "127.0.0.1");
}

// The backlog of a listener that nobody serves fills up; from then on the kernel answers nothing.
class SilentPort {
 public:
  SilentPort() {
    port_.Listen(0);
    for (int i = 0; i < 2; ++i) {
      filling_[i] = Connect({"127.0.0.1"}, port_.number(), 1ms, -1);
    }
  }
  int number() const { return port_.number(); }

 private:
  ReservedPort port_;
  absl::StatusOr<Connection> filling_[2] = {absl::UnknownError(""), absl::UnknownError("")};
};

TEST(DialTest, SilenceEndsWithTheTimeout) {
  const SilentPort port;
  const absl::Status status = Connect({"127.0.0.1"}, port.number(), 1ms, -1).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST(DialTest, CanBeCancelled) {
  const SilentPort port;
  const UniqueFd cancel(eventfd(1, EFD_CLOEXEC));
  const absl::Status status = Connect({"127.0.0.1"}, port.number(), 20s, cancel.get()).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

}  // namespace
}  // namespace muster
