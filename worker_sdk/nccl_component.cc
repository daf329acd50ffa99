#include "worker_sdk/nccl_component.h"

#include <dlfcn.h>
#include <muster/error.h>

#include <array>
#include <cstdlib>
#include <filesystem>
// Store and Backend must be complete to be counted.
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libmuster_nccl.so";

// Empty: leave it to the loader's own search.
fs::path ComponentPath() {
  if (const char* named = std::getenv("MUSTER_NCCL_LIBRARY")) return named;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = program.parent_path() / kName;
  return !error && fs::exists(beside, error) ? beside : fs::path();
}

bool HasGpuNode() {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("nvidia") && name.size() > 6 && std::isdigit(name[6])) return true;
  }
  return false;
}

}  // namespace

bool NcclLooksUsable() { return !ComponentPath().empty() && HasGpuNode(); }

NcclBackend OpenNccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                     int local_rank, std::chrono::milliseconds timeout) {
  const fs::path path = ComponentPath();
  // Global, because libtorch_cuda registers itself with libtorch_cpu. Never closed: such a library
  // cannot be unloaded.
  void* library = dlopen(path.empty() ? kName : path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw BackendUnavailable(std::string("cannot load the NCCL backend: ") + dlerror() +
                             "; install it with its CUDA libraries, or ask for backend gloo");
  }
  auto* open = reinterpret_cast<decltype(&muster_nccl_open)>(dlsym(library, "muster_nccl_open"));
  if (open == nullptr) {
    throw BackendUnavailable("cannot load the NCCL backend: " + path.string() +
                             " has no muster_nccl_open; it is of another version of muster");
  }
  const MusterNcclRequest request{store.get(), rank, size, local_rank, timeout.count()};
  std::array<char, 512> error{};
  NcclBackend opened;
  c10d::Backend* backend = open(&request, &opened.device, error.data(), error.size());
  if (backend == nullptr) {
    throw BackendUnavailable(std::string("cannot use the NCCL backend: ") + error.data());
  }
  opened.backend = c10::intrusive_ptr<c10d::Backend>::reclaim(backend);
  return opened;
}

}  // namespace muster
