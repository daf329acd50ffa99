#ifndef MUSTER_WORKER_SDK_DDP_AGREEMENT_H_
#define MUSTER_WORKER_SDK_DDP_AGREEMENT_H_

#include <muster/ddp_core.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Collective. Throws Error, with the same text on every rank, if a rank has a `problem` of its own
// (empty: none), and Mismatch, likewise, unless all have the same options and the same parameters
// and buffers by name, shape, layout, dtype, device and whether they are trained.
void RequireAgreement(const World& world, const DDPOptions& options, const std::string& problem,
                      const NamedTensors& parameters, const NamedTensors& buffers);

// Of what is in it, whatever its strides.
int64_t HashOf(const at::Tensor& tensor);

// The largest absolute difference; infinite where exactly one of both is NaN.
double MaxDifference(const at::Tensor& a, const at::Tensor& b);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_DDP_AGREEMENT_H_
