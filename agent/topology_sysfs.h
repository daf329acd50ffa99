#ifndef MUSTER_AGENT_TOPOLOGY_SYSFS_H_
#define MUSTER_AGENT_TOPOLOGY_SYSFS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/numa_plan.h"

// What Linux says of the machine under /sys. `root` is "" for the real one, or the folder of a
// recorded tree: "ROOT/sys/devices/system/cpu/...". No function fails: what cannot be read is left
// at what a machine with one NUMA node and no caches would say.

namespace muster {

// The numbers of a list as the kernel writes it ("0-3,8"), ascending, at most 65536. Nothing for a
// text that is none. An empty text is an empty list.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);

// For people: "0-3,8" for 0, 1, 2, 3, 8.
std::string CpuListText(const std::vector<int>& cpus);

// The CPUs of `allowed` that are online.
Topology ReadTopology(const std::string& root, const std::vector<int>& allowed);

// The NUMA node of a PCI device, as "0000:3b:00.0"; -1: not known.
int NumaNodeOfPciDevice(const std::string& root, const std::string& address);

}  // namespace muster

#endif  // MUSTER_AGENT_TOPOLOGY_SYSFS_H_
