#ifndef MUSTER_TESTS_LAUNCHER_FAKE_MACHINE_H_
#define MUSTER_TESTS_LAUNCHER_FAKE_MACHINE_H_

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "launcher/machine_probe.h"

namespace muster {

// A machine that is what the test says: 4 CPUs, no GPU, a few programs.
class FakeMachine : public MachineProbe {
 public:
  int CpuCount() override { return cpus; }
  int GpuCount() override { return gpus; }
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
