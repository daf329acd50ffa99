#include "check/machine.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/host_port.h"
#include "base/one_line.h"
#include "base/unique_fd.h"
#include "base/version.h"

namespace muster::check {
namespace {

namespace fs = std::filesystem;

// "" where it is neither IPv4 nor IPv6.
std::string AddressText(const sockaddr* address) {
  char text[NI_MAXHOST];
  const bool is_v6 = address->sa_family == AF_INET6;
  if (!is_v6 && address->sa_family != AF_INET) return "";
  const socklen_t size = is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (getnameinfo(address, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return UnmapAddress(text);
}

int MtuOf(const std::string& name) {
  const UniqueFd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  const bool is_known = socket_fd.valid() && ioctl(socket_fd.get(), SIOCGIFMTU, &request) == 0;
  return is_known ? request.ifr_mtu : 0;
}

std::vector<Interface> InterfacesUp() {
  std::vector<Interface> interfaces;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return interfaces;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    auto at = std::find_if(interfaces.begin(), interfaces.end(),
                           [&](const Interface& one) { return one.name == entry->ifa_name; });
    if (at == interfaces.end()) {
      at = interfaces.insert(at, {entry->ifa_name, MtuOf(entry->ifa_name), {}});
    }
    const std::string address = entry->ifa_addr == nullptr ? "" : AddressText(entry->ifa_addr);
    // A link-local address ("fe80::1%eth0") means nothing to others.
    const bool is_useful = !address.empty() && !absl::StrContains(address, '%');
    if (is_useful) at->addresses.push_back(address);
  }
  return interfaces;
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? OneLine(name) : "";
}

// Of a file of one line; empty where it cannot be read.
std::string FirstLine(const fs::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return OneLine(line);
}

std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed Feb …": the first word with two
// dots or one between digits.
std::string DriverVersion(const std::string& root) {
  for (const absl::string_view word :
       absl::StrSplit(FirstLine(root + "/proc/driver/nvidia/version"), ' ')) {
    const bool is_version = !word.empty() && absl::StrContains(word, '.') &&
                            word.find_first_not_of("0123456789.") == word.npos;
    if (is_version) return std::string(word);
  }
  return "";
}

// As a container sees them: its device files.
int GpuCount(const std::string& root) {
  const std::vector<std::string> names = NamesIn(root + "/dev");
  return static_cast<int>(std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return absl::StartsWith(name, "nvidia") && name.size() > 6 &&
           name.find_first_not_of("0123456789", 6) == name.npos;
  }));
}

// CUDA's rule as far as it needs no driver: the list ends at the first entry that names nothing.
int VisibleGpuCount(int all, const EnvMap& env) {
  const std::string* list = FindVariable(env, "CUDA_VISIBLE_DEVICES");
  if (list == nullptr || all == 0) return all;
  int count = 0;
  for (const absl::string_view entry : absl::StrSplit(*list, ',')) {
    const std::optional<long long> index = WholeNumber(std::string(entry));
    const bool is_named = absl::StartsWith(entry, "GPU-") || absl::StartsWith(entry, "MIG-");
    if (!is_named && (!index || *index < 0 || *index >= all)) break;
    ++count;
  }
  return count;
}

// "mlx5_0:1 ACTIVE" for each port.
std::vector<std::string> InfinibandPorts(const std::string& root) {
  std::vector<std::string> ports;
  const fs::path devices = root + "/sys/class/infiniband";
  for (const std::string& device : NamesIn(devices)) {
    for (const std::string& port : NamesIn(devices / device / "ports")) {
      const std::string state = FirstLine(devices / device / "ports" / port / "state");
      const size_t colon = state.find(": ");  // "4: ACTIVE"
      ports.push_back(absl::StrCat(device, ":", port, " ",
                                   colon == state.npos ? state : state.substr(colon + 2)));
    }
  }
  return ports;
}

std::map<std::string, std::string> NetworkVariables(const EnvMap& env) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, value] : env) {
    const bool is_ours = absl::StartsWith(name, "NCCL_") || absl::StartsWith(name, "GLOO_") ||
                         absl::StartsWith(name, "TP_") || name == "CUDA_VISIBLE_DEVICES";
    if (is_ours) variables[name] = OneLine(value);
  }
  return variables;
}

}  // namespace

std::string NcclVersion(const std::string& library) {
  const std::unique_ptr<void, int (*)(void*)> handle(
      dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL), [](void* open) { return dlclose(open); });
  if (handle == nullptr) return "";
  using GetVersion = int (*)(int*);
  const auto get = reinterpret_cast<GetVersion>(dlsym(handle.get(), "ncclGetVersion"));
  int code = 0;
  if (get == nullptr || get(&code) != 0) return "";
  return absl::StrCat(code / 10000, ".", code / 100 % 100, ".", code % 100);
}

std::vector<std::string> ResolvedAddresses(const std::string& host, std::string* problem) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    if (problem != nullptr) *problem = gai_strerror(error);
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const std::string text = AddressText(one->ai_addr);
    const bool is_new = std::find(addresses.begin(), addresses.end(), text) == addresses.end();
    if (!text.empty() && is_new) addresses.push_back(text);
  }
  return addresses;
}

Facts CollectFacts(const Identity& identity, const EnvMap& env, const std::string& backend,
                   const std::string& root) {
  Facts facts;
  facts.rank = identity.rank;
  facts.local_rank = identity.local_rank;
  facts.workers = identity.local_world_size;
  facts.node = identity.node;
  facts.host = HostName();
  facts.address = identity.local_addr;
  facts.muster = kVersion;
  facts.nccl = NcclVersion("libnccl.so.2");  // a trainer may bring its own
  facts.driver = DriverVersion(root);
  facts.all_gpus = GpuCount(root);
  facts.gpus = VisibleGpuCount(facts.all_gpus, env);
  facts.backend = backend;
  if (backend == "auto") facts.backend = facts.gpus > 0 ? "nccl" : "gloo";
  struct statvfs shared {};
  if (statvfs((root + "/dev/shm").c_str(), &shared) == 0) {
    facts.shared_memory = static_cast<int64_t>(shared.f_blocks * shared.f_frsize);
  }
  rlimit locked{};
  if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY) {
    facts.locked_memory = static_cast<int64_t>(locked.rlim_cur);
  } else {
    facts.locked_memory = -1;
  }
  facts.infiniband = InfinibandPorts(root);
  facts.interfaces = InterfacesUp();
  facts.host_addresses = ResolvedAddresses(facts.host);
  if (!identity.local_addr.empty()) facts.node_addresses = ResolvedAddresses(identity.local_addr);
  if (!identity.master_addr.empty()) {
    facts.master_addresses = ResolvedAddresses(identity.master_addr);
  }
  facts.variables = NetworkVariables(env);
  return facts;
}

}  // namespace muster::check
