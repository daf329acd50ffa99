#include "base/port_user.h"

#include <dirent.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "base/one_line.h"

namespace muster {
namespace {

constexpr char kListening[] = "0A";  // state column of /proc/net/tcp

using Dir = std::unique_ptr<DIR, int (*)(DIR*)>;

// Inode numbers of the sockets that listen on the port.
std::set<std::string> ListenerInodes(const char* table, int port) {
  char wanted[8];
  std::snprintf(wanted, sizeof(wanted), ":%04X", port);
  std::set<std::string> inodes;
  std::ifstream file(table);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
        inode;
    if (state == kListening && local.ends_with(wanted)) inodes.insert(inode);
  }
  return inodes;
}

bool HoldsSocket(const std::string& pid, const std::set<std::string>& inodes) {
  std::string folder = "/proc/" + pid + "/fd";
  Dir dir(opendir(folder.c_str()), closedir);
  if (dir == nullptr) return false;
  while (dirent* entry = readdir(dir.get())) {
    char target[64];
    ssize_t size = readlinkat(dirfd(dir.get()), entry->d_name, target, sizeof(target));
    std::string_view link(target, size < 0 ? 0 : static_cast<size_t>(size));
    if (!link.starts_with("socket:[") || !link.ends_with("]")) continue;
    if (inodes.contains(std::string(link.substr(8, link.size() - 9)))) return true;
  }
  return false;
}

}  // namespace

PortUser FindPortUser(int port) {
  std::set<std::string> inodes = ListenerInodes("/proc/net/tcp", port);
  inodes.merge(ListenerInodes("/proc/net/tcp6", port));
  Dir dir(opendir("/proc"), closedir);
  if (inodes.empty() || dir == nullptr) return {};
  while (dirent* entry = readdir(dir.get())) {
    std::string pid = entry->d_name;
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!HoldsSocket(pid, inodes)) continue;
    std::string name;
    std::ifstream comm("/proc/" + pid + "/comm");
    std::getline(comm, name);
    return {std::stoi(pid), "pid " + pid + (name.empty() ? "" : ", " + OneLine(name))};
  }
  return {};
}

}  // namespace muster
