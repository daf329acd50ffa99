#include "tests/worker_sdk/ranks.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include "base/exit_status.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

// Bound and never listening: the port stays ours until the store takes it.
UniqueFd ReservePort(int* port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  *port = ntohs(address.sin_port);
  return socket;
}

int RunBody(int rank, const std::function<int(int)>& body) {
  try {
    const int code = body(rank);
    return code != 0 ? code : (testing::Test::HasFailure() ? 1 : 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: uncaught: %s\n", rank, error.what());
    return 1;
  }
}

pid_t Fork(int rank, const Variables& variables, const std::function<int(int)>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  const int code = RunBody(rank, body);
  std::fflush(nullptr);
  _exit(code);
}

bool Succeeded(int rank, pid_t child, std::chrono::steady_clock::time_point deadline) {
  const UniqueFd handle(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  pollfd ended{handle.get(), POLLIN, 0};
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  const bool in_time = poll(&ended, 1, std::max<int>(0, static_cast<int>(left.count()))) == 1;
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  const ExitStatus exit = ExitStatus::FromWait(status);
  if (exit.ok()) return true;
  std::fprintf(stderr, "rank %d: %s%s\n", rank, exit.ToString().c_str(),
               in_time ? "" : ", because its time was over");
  return false;
}

}  // namespace

bool OnRanks(int ranks, const std::function<int(int)>& body, const Variables& variables) {
  int port = 0;
  const UniqueFd reserved = ReservePort(&port);
  Variables environment = {
      {"WORLD_SIZE", std::to_string(ranks)},
      {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(port)},
      {"OMP_NUM_THREADS", "1"},
  };
  for (const auto& [name, value] : variables) environment[name] = value;
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) children.push_back(Fork(rank, environment, body));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  bool all = true;
  for (int rank = 0; rank < ranks; ++rank) all &= Succeeded(rank, children[rank], deadline);
  return all;
}

}  // namespace muster
