#ifndef MUSTER_WORKER_SDK_GRADIENT_PROBE_H_
#define MUSTER_WORKER_SDK_GRADIENT_PROBE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker_sdk/ddp_agreement.h"

namespace muster {

// What one parameter's gradient was on this rank before the ranks' gradients were averaged, and
// what Reducer made of it.
struct GradientSample {
  int64_t step = 0;      // of what forward; 0: there is none yet
  at::Tensor own;        // in double; with what was accumulated before
  at::Tensor magnitude;  // sum of the absolute values of what `own` was added up from
  at::Tensor delivered;  // undefined: none
};

// Listens to one parameter during a backward. Its hook runs before Reducer's, and its callback
// after Reducer's last.
class GradientProbe {
 public:
  // `reduced`: Reducer is done with this backward.
  GradientProbe(at::Tensor parameter, std::function<bool()> reduced);
  ~GradientProbe();
  GradientProbe(const GradientProbe&) = delete;
  GradientProbe& operator=(const GradientProbe&) = delete;

  // The next backward is that of forward `step`, whose gradients are averaged; 0: they are not.
  void Listen(int64_t step);
  const GradientSample& sample() const;

 private:
  struct Ear;
  at::Tensor parameter_;
  std::shared_ptr<Ear> ear_;
  unsigned hook_ = 0;
};

// In double; complex numbers as two.
at::Tensor Wide(const at::Tensor& gradient);

// How far a rank's averaged gradient may be from the mean in double precision: per element,
// `relative` of the mean magnitude of what was added, and `absolute`.
struct Rounding {
  double relative = 0, absolute = 0;
};
// For a sum over `ranks` in `type`.
Rounding RoundingOf(at::ScalarType type, int ranks);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_GRADIENT_PROBE_H_
