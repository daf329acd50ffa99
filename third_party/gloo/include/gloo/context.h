#pragma once

#include <gloo/transport/device.h>

#include <chrono>

namespace gloo {

// Never made here: ProcessGroupGloo hands around shared pointers to it.
class Context {
 public:
  Context() = delete;
  void setTimeout(std::chrono::milliseconds timeout);
  void closeConnections();
};

}  // namespace gloo
