#include "agent/topology_sysfs.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <system_error>

namespace muster {
namespace {

constexpr int kCpusMax = 65536;

// Without the line's end; empty when there is no such file.
std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool ReadNumber(std::string_view text, int* number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

int NumberIn(const std::string& path, int otherwise) {
  int number = 0;
  return ReadNumber(FirstLine(path), &number) ? number : otherwise;
}

std::vector<int> ListIn(const std::string& path) {
  return ParseCpuList(FirstLine(path)).value_or(std::vector<int>());
}

int LowestIn(const std::string& path, int otherwise) {
  const std::vector<int> list = ListIn(path);
  return list.empty() ? otherwise : list.front();
}

// The lowest CPU that shares `cpu`'s L3 cache, or `otherwise`.
int CacheOf(const std::string& cpu_folder, int otherwise) {
  constexpr int kCachesMax = 16;
  for (int index = 0; index < kCachesMax; ++index) {
    const std::string cache = cpu_folder + "/cache/index" + std::to_string(index);
    const std::string level = FirstLine(cache + "/level");
    if (level.empty()) break;
    if (level == "3") return LowestIn(cache + "/shared_cpu_list", otherwise);
  }
  return otherwise;
}

// The NUMA node of each CPU.
std::map<int, int> NodesOfCpus(const std::string& system) {
  std::map<int, int> nodes;
  for (int node : ListIn(system + "/node/online")) {
    for (int cpu : ListIn(system + "/node/node" + std::to_string(node) + "/cpulist")) {
      nodes[cpu] = node;
    }
  }
  return nodes;
}

}  // namespace

std::optional<std::vector<int>> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    if (comma == text.size() - 1) return std::nullopt;
    text = comma == text.npos ? "" : text.substr(comma + 1);
    const size_t dash = range.find('-');
    int first = 0, last = 0;
    if (!ReadNumber(range.substr(0, dash), &first) ||
        !ReadNumber(dash == range.npos ? range : range.substr(dash + 1), &last)) {
      return std::nullopt;
    }
    if (first < 0 || last < first || last >= kCpusMax) return std::nullopt;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (cpus.size() > kCpusMax) return std::nullopt;
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string CpuListText(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size(); ++i) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (last > i) text += '-' + std::to_string(cpus[last]);
    i = last;
  }
  return text;
}

Topology ReadTopology(const std::string& root, const std::vector<int>& allowed) {
  const std::string system = root + "/sys/devices/system";
  const std::map<int, int> nodes = NodesOfCpus(system);
  const std::vector<int> online = ListIn(system + "/cpu/online");
  std::map<int, int> first_of_node;
  Topology topology;
  for (int id : allowed) {
    if (!online.empty() && !std::binary_search(online.begin(), online.end(), id)) continue;
    const std::string folder = system + "/cpu/cpu" + std::to_string(id);
    Cpu cpu;
    cpu.id = id;
    auto node = nodes.find(id);
    cpu.node = node == nodes.end() ? 0 : node->second;
    cpu.core = LowestIn(folder + "/topology/thread_siblings_list", id);
    cpu.socket = NumberIn(folder + "/topology/physical_package_id", -1);
    cpu.l3 = CacheOf(folder, first_of_node.try_emplace(cpu.node, id).first->second);
    topology.cpus.push_back(cpu);
  }
  return topology;
}

int NumaNodeOfPciDevice(const std::string& root, const std::string& address) {
  if (address.find('/') != address.npos) return -1;
  return NumberIn(root + "/sys/bus/pci/devices/" + address + "/numa_node", -1);
}

}  // namespace muster
