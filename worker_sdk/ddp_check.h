#ifndef MUSTER_WORKER_SDK_DDP_CHECK_H_
#define MUSTER_WORKER_SDK_DDP_CHECK_H_

#include <muster/ddp_options.h>
#include <muster/world.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker_sdk/ddp_agreement.h"
#include "worker_sdk/gradient_probe.h"
#include "worker_sdk/split_check.h"

namespace muster {

// The check of one wrapper; see CheckOptions. All of it happens in the forwards of steps that
// average gradients, outside of join(): there, and only there, every rank comes by in the same
// order.
class DdpCheck {
 public:
  // What it asks the wrapper.
  struct Wrapper {
    const NamedTensors& parameters;
    const CommHook& hook;
    // Collective; throws for the first parameter that the ranks do not hold alike.
    std::function<void()> name_difference;
    std::function<bool()> reduced;  // Reducer is done with the last backward
  };
  DdpCheck(const World& world, Wrapper wrapper);

  bool WantsInputs() const { return wants_inputs_; }

  // Collective. Throws Mismatch, on every rank with the same text.
  void BeforeForward(const std::vector<at::Tensor>& inputs, bool training);
  // `reduces`: the backward of this forward averages gradients, and not within join().
  void AfterForward(bool reduces);

 private:
  void CompareInputs(const std::vector<at::Tensor>& inputs, bool training);
  void AskAll(bool in_full);
  int64_t ParametersHash() const;
  void JudgeGradients(const std::vector<int64_t>& steps);
  bool JudgeSample();
  void ProbeNext();
  void Report();

  World world_;
  CheckOptions options_;
  Wrapper wrapper_;
  bool wants_inputs_;
  int64_t step_ = 0;
  SplitCheck split_;
  std::vector<size_t> candidates_;  // parameters to be probed, the best first
  std::unique_ptr<GradientProbe> probe_;
  size_t tries_ = 0;
  std::string gradients_;       // the answer; empty: none yet
  const char* verdict_ = "ok";  // on it
  bool reported_ = false;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_DDP_CHECK_H_
