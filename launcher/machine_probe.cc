#include "launcher/machine_probe.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "agent/topology_sysfs.h"
#include "base/host_port.h"
#include "base/port_user.h"
#include "base/unique_fd.h"
#include "launcher/cpu_quota.h"

namespace muster {
namespace {

// The CPUs that the kernel lets this process run on; empty when it does not say.
std::vector<int> AllowedCpus() {
  std::vector<int> allowed;
  // The kernel may know more CPUs than a cpu_set_t holds; it then wants a larger one.
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 2) {
    std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(cpus), [](cpu_set_t* allocated) { CPU_FREE(allocated); });
    size_t size = CPU_ALLOC_SIZE(cpus);
    if (sched_getaffinity(0, size, set.get()) == 0) {
      for (int cpu = 0; cpu < cpus; ++cpu) {
        if (CPU_ISSET_S(cpu, size, set.get())) allowed.push_back(cpu);
      }
      break;
    }
    if (errno != EINVAL) break;
  }
  return allowed;
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

// 0, EADDRINUSE or EACCES for a program that wants to listen there.
int TryPort(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  const std::string service = absl::StrCat(port);
  Resolved resolved;
  const std::string address = host == "localhost" ? "127.0.0.1" : host;
  if (getaddrinfo(address.c_str(), service.c_str(), &hints, &resolved.list) != 0) {
    hints.ai_flags |= AI_PASSIVE;
    if (getaddrinfo("::", service.c_str(), &hints, &resolved.list) != 0) return 0;
  }
  const addrinfo& where = *resolved.list;
  UniqueFd fd(socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // As servers do: connections that are only dying out do not count.
  int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd.get(), where.ai_addr, where.ai_addrlen) == 0) return 0;
  return errno == EADDRINUSE || errno == EACCES ? errno : 0;
}

// A worker of a muster that was killed a moment ago ends within its orphan grace: true when it has.
bool DyingWorkerLeaves(int pid) {
  if (pid == 0) return false;
  std::string stat, parent, name;
  std::getline(std::ifstream(absl::StrCat("/proc/", pid, "/stat")), stat);
  std::istringstream(stat.substr(std::min(stat.size(), stat.rfind(')') + 1))) >> parent >> parent;
  std::getline(std::ifstream(absl::StrCat("/proc/", parent, "/comm")), name);
  if (name != "muster-warden") return false;
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return true;
  constexpr int kPatienceMs = 3000;
  pollfd wait{process.get(), POLLIN, 0};
  return poll(&wait, 1, kPatienceMs) == 1;
}

}  // namespace

int RealMachine::CpuCount() {
  const int allowed = std::max(1, static_cast<int>(AllowedCpus().size()));
  return std::min(allowed, CpuQuota(root_).value_or(allowed));
}

Topology RealMachine::ReadTopology() { return muster::ReadTopology(root_, AllowedCpus()); }

std::vector<Gpu> RealMachine::Gpus() { return ListGpus(root_, nvml_); }

int RealMachine::NumaNodeOf(const Gpu& gpu) {
  return gpu.pci_address.empty() ? -1 : NumaNodeOfPciDevice(root_, gpu.pci_address);
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
  int error = TryPort(host, port);
  if (error == EADDRINUSE && DyingWorkerLeaves(FindPortUser(port).pid)) {
    error = TryPort(host, port);
  }
  if (error == 0) return absl::OkStatus();
  const PortUser user = error == EADDRINUSE ? FindPortUser(port) : PortUser();
  return absl::FailedPreconditionError(
      absl::StrCat("port ", port, " on ", host,
                   error == EACCES ? " may not be used (permission denied)" : " is in use",
                   user.pid == 0 ? "" : " by " + user.text));
}

std::string RealMachine::RandomId() {
  char bytes[16] = {};
  // 16 bytes come whole or not at all (getrandom(2)); without them nothing unique can be made.
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) std::abort();
  return absl::BytesToHexString(absl::string_view(bytes, sizeof(bytes)));
}

}  // namespace muster
