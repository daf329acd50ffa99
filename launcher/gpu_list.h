#ifndef MUSTER_LAUNCHER_GPU_LIST_H_
#define MUSTER_LAUNCHER_GPU_LIST_H_

#include <string>
#include <vector>

#include "base/env.h"

namespace muster {

// A GPU of this machine.
struct Gpu {
  std::string uuid;         // "GPU-8a56..."; empty: not known
  std::string pci_address;  // "0000:3b:00.0", as under /sys/bus/pci; empty: not known
};

// The NVIDIA GPUs that are there, in the driver's order. Asks NVML (`nvml`, a library's name or
// path, loaded for the time of the call), else counts the folders of ROOT/proc/driver/nvidia/gpus,
// else the device files ROOT/dev/nvidia0, ... `root` is "" for the real machine. No GPU: empty.
std::vector<Gpu> ListGpus(const std::string& root, const std::string& nvml);

// What CUDA_VISIBLE_DEVICES leaves of `gpus`, by index: for each visible device the GPU, or -1 for
// a MIG device or one whose GPU cannot be told. The variable not set: all. CUDA's rules: entries
// are indices, (beginnings of) UUIDs "GPU-..." or MIG devices "MIG-..."; the list ends at the first
// entry that is none; a GPU that is named twice makes all invisible. Pure.
std::vector<int> VisibleGpus(const std::vector<Gpu>& gpus, const EnvMap& env);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_GPU_LIST_H_
