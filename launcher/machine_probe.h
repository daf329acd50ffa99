#ifndef MUSTER_LAUNCHER_MACHINE_PROBE_H_
#define MUSTER_LAUNCHER_MACHINE_PROBE_H_

#include <string>

#include "absl/status/status.h"
#include "agent/worker_command.h"

namespace muster {

// The launcher's door to the machine it runs on. RealMachine asks the kernel; tests use a fake
// (tests/launcher/fake_machine.h).
class MachineProbe {
 public:
  virtual ~MachineProbe() = default;

  // CPUs that this process may use (affinity); at least 1.
  virtual int CpuCount() = 0;

  // NVIDIA GPUs that are there, whatever CUDA_VISIBLE_DEVICES says.
  virtual int GpuCount() = 0;

  // Never empty, without a domain where the kernel has none.
  virtual std::string HostName() = 0;

  virtual FileKind Inspect(const std::string& path) = 0;

  // OK when a program could listen on `port` of `host`, or when `host` is not an address of this
  // machine in numbers (nor "localhost") and cannot be tried. FailedPrecondition: somebody listens
  // there already; the message says who, where that can be found out.
  virtual absl::Status CheckPortFree(const std::string& host, int port) = 0;

  // 32 hexadecimal digits that no other call and no other machine gets.
  virtual std::string RandomId() = 0;
};

class RealMachine : public MachineProbe {
 public:
  int CpuCount() override;
  int GpuCount() override;
  std::string HostName() override;
  FileKind Inspect(const std::string& path) override;
  absl::Status CheckPortFree(const std::string& host, int port) override;
  std::string RandomId() override;
};

}  // namespace muster

#endif  // MUSTER_LAUNCHER_MACHINE_PROBE_H_
