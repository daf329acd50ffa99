#ifndef MUSTER_LAUNCHER_MACHINE_PROBE_H_
#define MUSTER_LAUNCHER_MACHINE_PROBE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/numa_plan.h"
#include "agent/worker_command.h"
#include "launcher/gpu_list.h"

namespace muster {

// The launcher's door to the machine it runs on. RealMachine asks the kernel; tests use a fake
// (tests/launcher/fake_machine.h).
class MachineProbe {
 public:
  virtual ~MachineProbe() = default;

  // CPUs that this process may use: its affinity and its cgroup's quota; at least 1.
  virtual int CpuCount() = 0;

  // Those of its affinity, and how they lie.
  virtual Topology ReadTopology() = 0;

  // NVIDIA GPUs that are there, whatever CUDA_VISIBLE_DEVICES says.
  virtual std::vector<Gpu> Gpus() = 0;

  // -1: not known.
  virtual int NumaNodeOf(const Gpu& gpu) = 0;

  // Never empty, without a domain where the kernel has none.
  virtual std::string HostName() = 0;

  virtual FileKind Inspect(const std::string& path) = 0;

  // Whether a worker here could listen on `port` of `host`. A name but "localhost" is not looked
  // up: all addresses are tried. OK where that cannot be found out, as for an address of another
  // machine. FailedPrecondition, without advice: somebody listens there, and who, where that is
  // known; or the user may not. Where it is a worker whose muster has been killed, its end is
  // awaited (3 s).
  virtual absl::Status CheckPortFree(const std::string& host, int port) = 0;

  // 32 hexadecimal digits that no other call and no other machine gets.
  virtual std::string RandomId() = 0;
};

class RealMachine : public MachineProbe {
 public:
  // `root` is "" but in tests: the folder of recorded /sys and /proc.
  explicit RealMachine(std::string root = "", std::string nvml = "libnvidia-ml.so.1")
      : root_(std::move(root)), nvml_(std::move(nvml)) {}

  int CpuCount() override;
  Topology ReadTopology() override;
  std::vector<Gpu> Gpus() override;
  int NumaNodeOf(const Gpu& gpu) override;
  std::string HostName() override;
  FileKind Inspect(const std::string& path) override;
  absl::Status CheckPortFree(const std::string& host, int port) override;
  std::string RandomId() override;

 private:
  std::string root_;
  std::string nvml_;
};

}  // namespace muster

#endif  // MUSTER_LAUNCHER_MACHINE_PROBE_H_
