#include "launcher/machine_probe.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "agent/topology_sysfs.h"
#include "base/host_port.h"
#include "base/unique_fd.h"
#include "launcher/cpu_quota.h"
#include "launcher/port_user.h"

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
