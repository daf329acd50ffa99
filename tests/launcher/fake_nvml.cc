// Three GPUs, as libnvidia-ml.so.1 tells of them.

#include <cstdio>
#include <cstring>

// NOLINTBEGIN(readability-identifier-naming): NVML's names
extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int devices[3] = {0, 1, 2};
  *device = &devices[index];
  return 0;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  std::snprintf(uuid, length, "GPU-%d%d-fake", *static_cast<int*>(device),
                *static_cast<int*>(device));
  return 0;
}

int nvmlDeviceGetPciInfo_v3(void* device, void* info) {
  // 16 bytes of the old name and five numbers come before it.
  std::snprintf(static_cast<char*>(info) + 36, 32, "00000000:%dB:00.0", *static_cast<int*>(device));
  return 0;
}
}
// NOLINTEND(readability-identifier-naming)
