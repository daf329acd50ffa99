#include "worker_sdk/nccl_component.h"

#include <dlfcn.h>
#include <limits.h>
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

// The folder of a library that is loaded; empty: it is not.
fs::path FolderOf(const char* library) {
  void* loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return {};
  std::array<char, PATH_MAX> folder{};
  dlinfo(loaded, RTLD_DI_ORIGIN, folder.data());
  dlclose(loaded);
  return folder.data();
}

// The folder of the library, or the program, that this code was linked into.
fs::path OwnFolder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&NcclLooksUsable), &info) == 0) return {};
  return fs::path(info.dli_fname).parent_path();
}

// Empty: leave it to the loader's own search.
fs::path ComponentPath() {
  if (const char* named = std::getenv("MUSTER_NCCL_LIBRARY")) return named;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder : {program.parent_path(), OwnFolder(), FolderOf(kName)}) {
    if (!folder.empty() && fs::exists(folder / kName, error)) return folder / kName;
  }
  return {};
}

// libtorch_cuda must be that of the LibTorch that runs; the component only knows the one that it
// was built with.
void LoadLibTorchsOwnCuda() {
  const fs::path library = FolderOf("libtorch_cpu.so") / "libtorch_cuda.so";
  // Where it cannot be loaded the component cannot, either, and says why.
  if (library.has_parent_path()) dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
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
  LoadLibTorchsOwnCuda();
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
