// What the kernel and the driver write; also CUDA_VISIBLE_DEVICES.

#include "agent/topology_sysfs.h"
#include "launcher/cpu_quota.h"
#include "launcher/gpu_list.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view text = TextOf(data, size);
  if (auto cpus = ParseCpuList(text)) {
    Must(ParseCpuList(CpuListText(*cpus)) == cpus, "what is written is read again");
  }
  const auto limit = ParseCpuMax(text);
  Must(!limit || *limit >= 1, "a limit is at least one CPU");
  const auto quota = ParseCfsQuota(text, text);
  Must(!quota || *quota == 1, "a quota of one period is one CPU");
  for (bool v1 : {false, true}) {
    const auto path = ParseCgroupPath(text, v1);
    Must(!path || path->empty() || path->front() == '/', "a cgroup is a path");
  }
  const std::vector<Gpu> gpus = {{"GPU-a", ""}, {"GPU-b", ""}, {"", ""}};
  for (int gpu : VisibleGpus(gpus, {{"CUDA_VISIBLE_DEVICES", std::string(text)}})) {
    Must(-1 <= gpu && gpu < 3, "a visible GPU is there");
  }
  return 0;
}
