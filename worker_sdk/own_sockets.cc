#include "worker_sdk/own_sockets.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

namespace muster {
namespace {

uint64_t InodeOf(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

bool IsConnectedTcp(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
         (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
}

}  // namespace

OwnSockets ConnectedSockets() {
  OwnSockets sockets;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    const uint64_t inode = InodeOf(fd);
    if (inode != 0 && IsConnectedTcp(fd)) sockets.emplace(fd, inode);
  }
  return sockets;
}

OwnSockets Since(const OwnSockets& before, const OwnSockets& now) {
  OwnSockets fresh;
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(),
                      std::inserter(fresh, fresh.end()));
  return fresh;
}

void ShutDown(const OwnSockets& sockets) {
  for (const auto& [fd, inode] : sockets) {
    if (InodeOf(fd) == inode) shutdown(fd, SHUT_RD);
  }
}

}  // namespace muster
