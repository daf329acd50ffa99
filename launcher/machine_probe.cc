#include "launcher/machine_probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/unique_fd.h"
#include "launcher/port_user.h"

namespace muster {
namespace {

// Entries of `folder` that are `prefix` followed by digits only ("" and any name when `digits` is
// false).
int CountEntries(const char* folder, absl::string_view prefix, bool digits) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder), closedir);
  if (dir == nullptr) return 0;
  int count = 0;
  while (dirent* entry = readdir(dir.get())) {
    absl::string_view name = entry->d_name;
    if (name[0] == '.' || !absl::StartsWith(name, prefix)) continue;
    absl::string_view rest = name.substr(prefix.size());
    bool all_digits = !rest.empty() && rest.find_first_not_of("0123456789") == rest.npos;
    if (all_digits || !digits) ++count;
  }
  return count;
}

bool IsElf(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char magic[4] = {};
  return fd.valid() && read(fd.get(), magic, sizeof(magic)) == sizeof(magic) &&
         std::memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

struct Resolved {
  addrinfo* list = nullptr;
  ~Resolved() {
    if (list != nullptr) freeaddrinfo(list);
  }
};

}  // namespace

int RealMachine::CpuCount() {
  // The kernel may know more CPUs than a cpu_set_t holds; it then wants a larger one.
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 2) {
    std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(cpus), [](cpu_set_t* allocated) { CPU_FREE(allocated); });
    size_t size = CPU_ALLOC_SIZE(cpus);
    if (sched_getaffinity(0, size, set.get()) == 0) return CPU_COUNT_S(size, set.get());
    if (errno != EINVAL) break;
  }
  return 1;
}

int RealMachine::GpuCount() {
  // A container sees the device files of its own GPUs only, but all GPUs of the host in /proc.
  int devices = CountEntries("/dev", "nvidia", true);
  return devices > 0 ? devices : CountEntries("/proc/driver/nvidia/gpus", "", false);
}

std::string RealMachine::HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == 0) return "localhost";
  return name;
}

FileKind RealMachine::Inspect(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return FileKind::kMissing;
  if (S_ISDIR(status.st_mode)) return FileKind::kDirectory;
  if (!S_ISREG(status.st_mode)) return FileKind::kOther;
  if (faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0) return FileKind::kExecutable;
  return IsElf(path) ? FileKind::kBinary : FileKind::kOther;
}

absl::Status RealMachine::CheckPortFree(const std::string& host, int port) {
  std::string address = host == "localhost" ? "127.0.0.1" : host;
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  Resolved resolved;
  if (getaddrinfo(address.c_str(), absl::StrCat(port).c_str(), &hints, &resolved.list) != 0) {
    return absl::OkStatus();
  }
  const addrinfo& where = *resolved.list;
  UniqueFd fd(socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // As servers do: connections that are only dying out do not count.
  int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd.get(), where.ai_addr, where.ai_addrlen) == 0) return absl::OkStatus();
  if (errno == EADDRINUSE) {
    std::string user = PortUser(port);
    return absl::FailedPreconditionError(
        absl::StrCat("port ", port, " on ", host, " is in use", user.empty() ? "" : " by " + user,
                     ": choose another --master-port, or none for any free port"));
  }
  if (errno == EACCES) {
    return absl::FailedPreconditionError(
        absl::StrCat("port ", port, " on ", host,
                     " may not be used (permission denied): choose one above 1023"));
  }
  return absl::OkStatus();
}

std::string RealMachine::RandomId() {
  char bytes[16] = {};
  // 16 bytes come whole or not at all (getrandom(2)); without them nothing unique can be made.
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) std::abort();
  return absl::BytesToHexString(absl::string_view(bytes, sizeof(bytes)));
}

}  // namespace muster
