#ifndef MUSTER_WORKER_SDK_STORE_ADDRESS_H_
#define MUSTER_WORKER_SDK_STORE_ADDRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace muster {

// "127.0.0.1", "::1", "localhost" and their like.
bool IsLoopback(const std::string& host);

// Returns once somebody accepts at host:port; false if nobody did by `deadline`. LibTorch's own
// client would wait a whole second after a first attempt that came too early.
bool AwaitListener(const std::string& host, uint16_t port,
                   std::chrono::steady_clock::time_point deadline);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_STORE_ADDRESS_H_
