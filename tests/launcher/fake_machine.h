#ifndef MUSTER_TESTS_LAUNCHER_FAKE_MACHINE_H_
#define MUSTER_TESTS_LAUNCHER_FAKE_MACHINE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/machine_probe.h"

namespace muster {

// A machine that is what the test says: 4 CPUs, no GPU, a few programs.
class FakeMachine : public MachineProbe {
 public:
  int CpuCount() override { return cpus; }
  Topology ReadTopology() override { return topology; }
  std::vector<Gpu> Gpus() override {
    std::vector<Gpu> list;
    for (int i = 0; i < gpus; ++i) list.push_back({absl::StrCat("GPU-", i), absl::StrCat(i)});
    return list;
  }
  // Half of the GPUs are on NUMA node 0, the others on 1.
  int NumaNodeOf(const Gpu& gpu) override { return 2 * std::stoi(gpu.pci_address) / gpus; }
  std::string HostName() override { return "host7"; }
  std::string RandomId() override { return "random-id"; }

  FileKind Inspect(const std::string& path) override {
    auto it = files.find(path);
    return it == files.end() ? FileKind::kMissing : it->second;
  }

  absl::Status CheckPortFree(const std::string& host, int port) override {
    checked_ports.insert(absl::StrCat(host, ":", port));
    if (!ports_in_use.contains(port)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("port ", port, " is in use"));
  }

  int cpus = 4;
  int gpus = 0;
  // Two sockets with two cores each.
  Topology topology = {{{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {2, 2, 2, 1, 1}, {3, 3, 2, 1, 1}}};
  std::map<std::string, FileKind> files = {
      {"/usr/bin/python3", FileKind::kExecutable},
      {"/usr/bin/env", FileKind::kExecutable},
      {"train.py", FileKind::kOther},
      {"./trainer", FileKind::kExecutable},
      {"trainer", FileKind::kExecutable},
  };
  std::set<int> ports_in_use;
  std::set<std::string> checked_ports;
};

}  // namespace muster

#endif  // MUSTER_TESTS_LAUNCHER_FAKE_MACHINE_H_
