#ifndef MUSTER_TESTS_WORKER_SDK_FAKE_AGENT_H_
#define MUSTER_TESTS_WORKER_SDK_FAKE_AGENT_H_

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace muster {

// The agent's end: listens at a path of its own and takes one worker.
class FakeAgent {
 public:
  // Not in the test's own folder, whose path may be longer than a socket's may be.
  explicit FakeAgent(int worker = 0)
      : path_("/tmp/muster-agent-link." + std::to_string(getpid()) + "." + std::to_string(worker)) {
    unlink(path_.c_str());
    listener_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
  }
  ~FakeAgent() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }
  void Accept() { worker_.reset(accept(listener_.get(), nullptr, nullptr)); }
  void HangUp() { worker_.reset(); }
  void Say(const std::string& datagram) {
    ASSERT_EQ(send(worker_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(datagram.size()));
  }
  // All that has arrived.
  std::vector<std::string> Hear() {
    std::vector<std::string> heard;
    std::string buffer(1 << 16, '\0');
    while (true) {
      const ssize_t size = recv(worker_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (size <= 0) return heard;
      heard.push_back(buffer.substr(0, static_cast<size_t>(size)));
    }
  }
  // Waits for a line that begins so, and returns it; empty if the worker left before.
  std::string WaitFor(const std::string& prefix) {
    std::string buffer(1 << 16, '\0');
    while (true) {
      const ssize_t size = recv(worker_.get(), buffer.data(), buffer.size(), 0);
      if (size <= 0) return "";
      std::istringstream lines(buffer.substr(0, static_cast<size_t>(size)));
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(prefix)) return line;
      }
    }
  }

 private:
  std::string path_;
  UniqueFd listener_;
  UniqueFd worker_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_WORKER_SDK_FAKE_AGENT_H_
