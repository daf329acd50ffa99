#include "launcher/gpu_list.h"

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

// Of NVML's C interface, which is stable: the few functions that are called, by their symbols.
constexpr unsigned kNvmlGpusMax = 1024;

struct NvmlPciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];  // "00000000:3B:00.0"
};

class Nvml {
 public:
  explicit Nvml(const std::string& name) : library_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    Load("nvmlInit_v2", &init_);
    Load("nvmlShutdown", &shutdown_);
    Load("nvmlDeviceGetCount_v2", &count_);
    Load("nvmlDeviceGetHandleByIndex_v2", &handle_);
    Load("nvmlDeviceGetUUID", &uuid_);
    Load("nvmlDeviceGetPciInfo_v3", &pci_);
    ready_ = init_ != nullptr && shutdown_ != nullptr && count_ != nullptr && init_() == 0;
  }
  ~Nvml() {
    if (ready_) shutdown_();
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::vector<Gpu> List() {
    unsigned count = 0;
    if (!ready_ || count_(&count) != 0 || count > kNvmlGpusMax) return {};
    std::vector<Gpu> gpus(count);
    for (unsigned i = 0; i < count && handle_ != nullptr; ++i) {
      void* device = nullptr;
      if (handle_(i, &device) == 0) Describe(device, &gpus[i]);
    }
    return gpus;
  }

 private:
  template <typename Function>
  void Load(const char* symbol, Function* function) {
    *function = library_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library_, symbol));
  }

  void Describe(void* device, Gpu* gpu) {
    char uuid[96] = {};
    if (uuid_ != nullptr && uuid_(device, uuid, sizeof(uuid) - 1) == 0) gpu->uuid = uuid;
    // Larger than what NVML writes today.
    union {
      NvmlPciInfo info;
      char room[256];
    } pci = {};
    if (pci_ == nullptr || pci_(device, &pci.info) != 0) return;
    std::string address = absl::AsciiStrToLower(
        absl::string_view(pci.info.bus_id, strnlen(pci.info.bus_id, sizeof(pci.info.bus_id))));
    // The kernel writes four digits of the domain, NVML eight.
    if (absl::StartsWith(address, "0000") && address.find(':') == 8) address.erase(0, 4);
    gpu->pci_address = address;
  }

  void* library_;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*handle_)(unsigned, void**) = nullptr;
  int (*uuid_)(void*, char*, unsigned) = nullptr;
  int (*pci_)(void*, NvmlPciInfo*) = nullptr;
  bool ready_ = false;
};

std::vector<std::string> Entries(const std::string& folder) {
  std::vector<std::string> names;
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  while (dirent* entry = dir == nullptr ? nullptr : readdir(dir.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool IsDeviceFile(absl::string_view name) {
  constexpr absl::string_view kPrefix = "nvidia";
  if (!absl::StartsWith(name, kPrefix) || name == kPrefix) return false;
  return name.find_first_not_of("0123456789", kPrefix.size()) == name.npos;
}

// The GPU that `entry` of CUDA_VISIBLE_DEVICES names; -1: one that cannot be told; -2: none.
int GpuNamed(absl::string_view entry, const std::vector<Gpu>& gpus) {
  constexpr int kUnknown = -1, kNone = -2;
  int index = 0;
  if (absl::SimpleAtoi(entry, &index)) {
    return index >= 0 && index < static_cast<int>(gpus.size()) ? index : kNone;
  }
  if (absl::StartsWith(entry, "MIG-")) return kUnknown;
  if (!absl::StartsWith(entry, "GPU-")) return kNone;
  bool known = false;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (absl::StartsWith(gpus[i].uuid, entry)) return static_cast<int>(i);
    known = known || !gpus[i].uuid.empty();
  }
  return known || gpus.empty() ? kNone : kUnknown;
}

}  // namespace

std::vector<Gpu> ListGpus(const std::string& root, const std::string& nvml) {
  std::vector<Gpu> gpus = Nvml(nvml).List();
  if (!gpus.empty()) return gpus;
  // A container sees the device files of its own GPUs only, but all GPUs of the host in /proc.
  std::vector<std::string> devices = Entries(root + "/dev");
  std::erase_if(devices, [](const std::string& name) { return !IsDeviceFile(name); });
  for (const std::string& address : Entries(root + "/proc/driver/nvidia/gpus")) {
    gpus.push_back({"", absl::AsciiStrToLower(address)});
  }
  // Which of the host's they are is not known then.
  if (!devices.empty() && devices.size() != gpus.size()) gpus.assign(devices.size(), Gpu());
  return gpus;
}

std::vector<int> VisibleGpus(const std::vector<Gpu>& gpus, const EnvMap& env) {
  std::vector<int> visible;
  const std::string* list = FindVariable(env, "CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    for (size_t i = 0; i < gpus.size(); ++i) visible.push_back(static_cast<int>(i));
    return visible;
  }
  for (absl::string_view entry : absl::StrSplit(*list, ',')) {
    const int gpu = GpuNamed(absl::StripAsciiWhitespace(entry), gpus);
    if (gpu < -1) break;
    if (gpu >= 0 && std::find(visible.begin(), visible.end(), gpu) != visible.end()) return {};
    visible.push_back(gpu);
  }
  return visible;
}

}  // namespace muster
