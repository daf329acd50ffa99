#include "agent/worker_group.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

namespace muster {
namespace {

constexpr const char* kPrefix = "muster-";
constexpr const char* kInnerPrefix = "workers-";
constexpr const char* kKill = "cgroup.kill";

UniqueFd OpenFolder(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// What the kernel keeps in one page; "" when it cannot be read.
std::string ReadPage(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  const ssize_t got = fd.valid() ? read(fd.get(), text.data(), text.size()) : 0;
  return std::string(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
}

// The folders in it that begin with `prefix`.
std::vector<std::string> FoldersIn(const std::string& parent, const char* prefix) {
  std::vector<std::string> folders;
  DIR* directory = opendir(parent.c_str());
  if (directory == nullptr) return folders;
  while (const dirent* entry = readdir(directory)) {
    if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) {
      folders.push_back(parent + "/" + entry->d_name);
    }
  }
  closedir(directory);
  return folders;
}

void RemoveEmptyOnesIn(const std::string& folder) {
  for (const std::string& inner : FoldersIn(folder, kInnerPrefix)) rmdir(inner.c_str());
}

void RemoveGroup(const std::string& folder) {
  RemoveEmptyOnesIn(folder);
  rmdir(folder.c_str());
}

void EndAbandonedGroups(const std::string& parent) {
  for (const std::string& folder : FoldersIn(parent, kPrefix)) {
    const UniqueFd fd = OpenFolder(folder);
    // A living warden holds the lock. Not the pid in the name: it may be that of another namespace.
    if (!fd.valid() || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    const UniqueFd kill(openat(fd.get(), kKill, O_WRONLY | O_CLOEXEC));
    if (kill.valid() && write(kill.get(), "1", 1) != 1) continue;
    // While they still end, the next one that comes by removes it.
    RemoveGroup(folder);
  }
}

}  // namespace

WorkerGroup WorkerGroup::Make(const std::string& parent) {
  WorkerGroup group;
  if (parent.empty()) return group;
  EndAbandonedGroups(parent);
  group.folder_ = parent + "/" + kPrefix + std::to_string(getpid());
  if (mkdir(group.folder_.c_str(), 0755) != 0) return WorkerGroup();
  group.fd_ = OpenFolder(group.folder_);
  const bool is_ours = group.fd_.valid() && flock(group.fd_.get(), LOCK_EX | LOCK_NB) == 0;
  if (is_ours && faccessat(group.fd_.get(), kKill, W_OK, 0) == 0) return group;
  group.Remove();
  return group;
}

WorkerGroup WorkerGroup::Of(const std::string& parent, int warden_pid) {
  WorkerGroup group;
  if (parent.empty()) return group;
  group.folder_ = parent + "/" + kPrefix + std::to_string(warden_pid);
  group.fd_ = OpenFolder(group.folder_);
  return group;
}

int WorkerGroup::ForNextWorker() {
  if (!fd_.valid() || inner_.valid()) return inner_.get();
  RemoveEmptyOnesIn(folder_);
  const std::string inner = folder_ + "/" + kInnerPrefix + std::to_string(++inner_made_);
  if (mkdir(inner.c_str(), 0755) == 0) inner_ = OpenFolder(inner);
  return inner_.get();
}

void WorkerGroup::Kill() {
  if (!fd_.valid()) return;
  inner_.reset();
  const UniqueFd kill(openat(fd_.get(), kKill, O_WRONLY | O_CLOEXEC));
  // The signals to the process tree that follow do not depend on it.
  if (kill.valid() && write(kill.get(), "1", 1) != 1) return;
}

void WorkerGroup::Remove() {
  if (!folder_.empty()) RemoveGroup(folder_);
  folder_.clear();
  fd_.reset();
}

std::string OwnGroupFolder() {
  std::string mount;
  for (const char* path : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    struct statfs info {};
    if (mount.empty() && statfs(path, &info) == 0 && info.f_type == CGROUP2_SUPER_MAGIC) {
      mount = path;
    }
  }
  if (mount.empty()) return "";
  const std::string groups = "\n" + ReadPage("/proc/self/cgroup");
  const size_t at = groups.find("\n0::/");
  if (at == groups.npos) return "";
  const size_t begin = at + strlen("\n0::");
  std::string folder = mount + groups.substr(begin, groups.find('\n', begin) - begin);
  while (folder.back() == '/') folder.pop_back();
  // With controllers a new group would get a share of its own of CPU and memory.
  if (access(folder.c_str(), W_OK) != 0) return "";
  return ReadPage(folder + "/cgroup.subtree_control").find_first_not_of('\n') == groups.npos
             ? folder
             : "";
}

}  // namespace muster
