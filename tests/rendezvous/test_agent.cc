#include "tests/rendezvous/test_agent.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>

namespace muster {

void TestAgent::Attend(const Hello& hello) {
  client_->Open();
  client_->Send(hello);
}

std::optional<ClientEvent> TestAgent::Next() {
  pollfd wait{.fd = client_->fd(), .events = POLLIN, .revents = 0};
  for (;;) {
    if (std::optional<ClientEvent> event = client_->Receive()) return event;
    if (poll(&wait, 1, 20'000) <= 0) return std::nullopt;
  }
}

void TestAgent::Report(const std::string& why) {
  ADD_FAILURE() << "the awaited event did not come: " << why;
}

Hello HelloOf(const std::string& job_id, const std::string& node_id, int nodes) {
  Hello hello;
  hello.job_id = job_id;
  hello.node_id = node_id;
  hello.incarnation = std::hash<std::string>()(job_id + "/" + node_id);
  hello.settings.nodes_min = nodes;
  hello.settings.nodes_max = nodes;
  hello.next_port = 20000;
  return hello;
}

ReservedPort::ReservedPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length), 0);
  number_ = ntohs(address.sin_port);
}

void ReservedPort::Listen(int backlog) { EXPECT_EQ(listen(fd_, backlog), 0); }

ReservedPort::~ReservedPort() { close(fd_); }

}  // namespace muster
