// muster-check-torch: what `muster check` runs where LibTorch is installed.

#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <dlfcn.h>
#include <muster/error.h>
#include <muster/world.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "check/check_program.h"
#include "check/ring.h"

namespace muster::check {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int64_t kLargeCount = int64_t{4} * 1024 * 1024;  // floats: 16 MiB
constexpr int kSmallRounds = 41;
constexpr int kLargeRounds = 5;

// The median of so many all-reduces, in seconds. Each ends when its result can be read, which on a
// GPU is later than the call's end.
double MedianTime(const World& world, int64_t count, int rounds) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const at::Tensor tensor = at::full({count}, world.rank() + 1.0, world.device());
    tensor[0].item<float>();
    const Clock::time_point begin = Clock::now();
    world.all_reduce(tensor);
    const double sum = tensor[count - 1].item<float>();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    if (sum != world.size() * (world.size() + 1.0) / 2) throw Error("the sum is wrong");
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<size_t>(rounds) / 2];
}

AllReduce Measure(const Facts& facts, Duration timeout) {
  AllReduce result;
  try {
    const auto limit = std::chrono::duration_cast<milliseconds>(timeout);
    const World world =
        init(InitOptions().backend(facts.backend).init_timeout(limit).op_timeout(limit));
    result.latency_s = MedianTime(world, 2, kSmallRounds);
    result.bandwidth = LinkBandwidth(static_cast<double>(kLargeCount) * sizeof(float), world.size(),
                                     MedianTime(world, kLargeCount, kLargeRounds));
    world.barrier();
  } catch (const std::exception& error) {
    result.failed_rank = facts.rank;
    result.failure = error.what();
  }
  return result;
}

// The NCCL that comes with LibTorch's wheel, beside it; else the one that the loader finds.
std::string NcclLibrary() {
  const std::string name = "libnccl.so.2";
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&at::globalContext), &info) == 0) return name;
  const std::filesystem::path lib = std::filesystem::path(info.dli_fname).parent_path();
  const std::filesystem::path own = lib / "../../nvidia/nccl/lib" / name;
  std::error_code error;
  return std::filesystem::exists(own, error) ? own.string() : name;
}

}  // namespace
}  // namespace muster::check

int main(int argc, char** argv) {
  const muster::check::TorchParts torch{MUSTER_TORCH_VERSION, muster::check::NcclLibrary(),
                                        muster::check::Measure};
  return muster::check::CheckProgram(argc, argv, &torch);
}
