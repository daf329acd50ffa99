#include "worker_sdk/own_sockets.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>

#include "base/unique_fd.h"

namespace muster {
namespace {

using ::testing::SizeIs;

struct Connection {
  UniqueFd ours, theirs;
};

Connection Connect() {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* where = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(listener.get(), where, size), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  EXPECT_EQ(getsockname(listener.get(), where, &size), 0);
  UniqueFd ours(socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(connect(ours.get(), where, size), 0);
  return {std::move(ours), UniqueFd(accept(listener.get(), nullptr, nullptr))};
}

TEST(OwnSockets, WhoReadsFromOneThatIsShutDownIsToldTheEndAndWhoWritesIsNotRefused) {
  const OwnSockets before = ConnectedSockets();
  const Connection connection = Connect();
  const OwnSockets both = Since(before, ConnectedSockets());
  ASSERT_THAT(both, SizeIs(2));
  for (const auto& one : both) {
    if (one.first == connection.ours.get()) ShutDown({one});
  }
  char byte = 0;
  EXPECT_EQ(recv(connection.ours.get(), &byte, 1, 0), 0);
  EXPECT_EQ(send(connection.ours.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(recv(connection.theirs.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'x');
}

}  // namespace
}  // namespace muster
