#include "agent/port_reservation.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace muster {
namespace {

using ::testing::HasSubstr;

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif

bool HasIpv6() {
  UniqueFd fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  return fd.valid() && bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof(any)) == 0;
}

// 0, or the errno of binding and listening on the port as LibTorch's store does.
int TryListen(const std::string& address, int port) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  const bool is_v6 = inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1;
  UniqueFd fd(socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  int bound;
  if (is_v6) {
    const int no = 0;
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<uint16_t>(port));
    bound = bind(fd.get(), reinterpret_cast<sockaddr*>(&v6), sizeof(v6));
  } else {
    inet_pton(AF_INET, address.c_str(), &v4.sin_addr);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<uint16_t>(port));
    bound = bind(fd.get(), reinterpret_cast<sockaddr*>(&v4), sizeof(v4));
  }
  return bound == 0 && listen(fd.get(), 16) == 0 ? 0 : errno;
}

TEST(PortReservationTest, StoreCanListenOnThePortWhileItIsHeld) {
  auto port = ReservedPort::Reserve();
  ASSERT_TRUE(port.ok()) << port.status();
  ASSERT_GT(port->port(), 0);
  EXPECT_EQ(TryListen("0.0.0.0", port->port()), 0);
  EXPECT_EQ(TryListen("127.0.0.1", port->port()), 0);
  if (!HasIpv6()) return;
  EXPECT_EQ(TryListen("::", port->port()), 0);
  EXPECT_EQ(TryListen("::1", port->port()), 0);
}

TEST(PortReservationTest, LoopbackReservationLetsTheStoreListenOnAllAddresses) {
  auto port = ReservedPort::Reserve("127.0.0.1");
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_EQ(TryListen("0.0.0.0", port->port()), 0);
  EXPECT_EQ(TryListen("127.0.0.1", port->port()), 0);
  if (!HasIpv6()) return;
  EXPECT_EQ(TryListen("::", port->port()), 0);
}

TEST(PortReservationTest, KernelHandsAHeldPortToNobody) {
  auto port = ReservedPort::Reserve();
  ASSERT_TRUE(port.ok()) << port.status();
  for (const int reuse : {0, 1}) {
    // "Any port" with only this one to choose from.
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
    const auto only = static_cast<uint32_t>(port->port());
    const uint32_t range = only << 16 | only;
    if (setsockopt(fd.get(), IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof(range)) != 0) {
      GTEST_SKIP() << "this kernel cannot narrow the range of ports";
    }
    sockaddr_in any{};
    any.sin_family = AF_INET;
    EXPECT_NE(bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof(any)), 0);
    EXPECT_EQ(errno, EADDRINUSE);
  }
}

TEST(PortReservationTest, TwoReservationsDiffer) {
  auto one = ReservedPort::Reserve();
  auto other = ReservedPort::Reserve();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE(one->port(), other->port());
}

TEST(PortReservationTest, ResetAndMoveGiveThePortUp) {
  auto port = ReservedPort::Reserve();
  ASSERT_TRUE(port.ok());
  const int number = port->port();
  ReservedPort moved = *std::move(port);
  EXPECT_EQ(moved.port(), number);
  moved.reset();
  EXPECT_EQ(moved.port(), 0);
}

TEST(PortReservationTest, BadAddressesAreNamed) {
  const auto name = ReservedPort::Reserve("node1");
  EXPECT_EQ(name.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(name.status().message()), HasSubstr("\"node1\""));
  const auto foreign = ReservedPort::Reserve("192.0.2.1");
  EXPECT_EQ(foreign.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(foreign.status().message()), HasSubstr("192.0.2.1"));
}

}  // namespace
}  // namespace muster
