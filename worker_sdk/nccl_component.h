#ifndef MUSTER_WORKER_SDK_NCCL_COMPONENT_H_
#define MUSTER_WORKER_SDK_NCCL_COMPONENT_H_

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstddef>
#include <string>

// The door to libmuster_nccl.so, which alone links libtorch_cuda and NCCL. It is opened by name at
// run time, so that CPU trainers never load a CUDA library.
namespace c10d {
class Backend;
class Store;
}  // namespace c10d

extern "C" {

struct MusterNcclRequest {
  c10d::Store* store;  // borrowed
  int rank;
  int size;
  int local_rank;
  long timeout_ms;
};

// A new reference and the number of the CUDA device that is now the current one; or null and, in
// `error`, one line.
c10d::Backend* muster_nccl_open(const MusterNcclRequest* request, int* device, char* error,
                                size_t error_size);
}

namespace muster {

// A GPU's device node and the component's file are here. Loads nothing.
bool NcclLooksUsable();

struct NcclBackend {
  c10::intrusive_ptr<c10d::Backend> backend;
  int device = 0;
};

// Looks for libmuster_nccl.so at MUSTER_NCCL_LIBRARY, else beside the program, else beside the
// library that this was linked into, else where the loader looks. Throws BackendUnavailable when
// it, a library of NVIDIA's, or a GPU is missing.
NcclBackend OpenNccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                     int local_rank, std::chrono::milliseconds timeout);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_NCCL_COMPONENT_H_
