#ifndef MUSTER_WORKER_SDK_DDP_IMPL_H_
#define MUSTER_WORKER_SDK_DDP_IMPL_H_

#include <muster/ddp_core.h>

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

#include "worker_sdk/ddp_agreement.h"
#include "worker_sdk/ddp_check.h"
#include "worker_sdk/ddp_sink.h"
#include "worker_sdk/membership.h"

namespace muster {

class DDPCore::Impl {
 public:
  // In ddp_build.cc.
  Impl(std::shared_ptr<torch::nn::Module> module, World world, DDPOptions options);
  ~Impl();

  // In ddp.cc.
  bool WantsInputs() const;
  void BeforeForward(const std::vector<at::Tensor>& inputs);
  void AfterForward(const std::vector<at::Tensor*>& outputs);
  [[noreturn]] void FailForward(const std::exception& error);
  void Backward(const at::Tensor& loss);
  void SetSync(bool sync) { sync_ = sync; }
  bool sync() const { return sync_; }
  std::shared_ptr<void> ForwardScope() const;
  void ZeroGrad(bool set_to_none);
  double ClipGradNorm(double max_norm, double norm_type) const;

  // In ddp_join.cc.
  void BeginJoin(const JoinOptions& options);
  void ShadowOthers();
  void EndJoin();

  // In ddp_report.cc.
  double MaxParameterDifference() const;
  void CheckConsistency(double atol) const;
  double MaxGradientDifference(const at::Tensor& reference_loss) const;
  Stats GetStats() const;
  const World& world() const { return world_; }

 private:
  // What a rank says before each forward within join().
  enum Vote : int32_t { kJoined = 0, kHere = 1, kGrad = 2, kSync = 4 };
  struct Ballot {
    std::vector<int32_t> votes;  // by rank
    int live() const;
    int highest_live() const;
    bool any(Vote vote) const;
    std::vector<int> joined() const;
  };

  double DifferenceFromLeader(const at::Tensor& parameter) const;  // this rank's; collective
  void CollectParameters();
  std::string Problem() const;
  NamedTensors AllNamed() const;
  NamedTensors Buffers() const;
  void Broadcast(const NamedTensors& named, int root);
  void SyncBuffers();
  void BuildReducer();
  void PassThroughSink(const std::vector<at::Tensor*>& outputs);
  void WatchBackward(const std::vector<at::Tensor*>& outputs);
  void BackwardBegins();
  void BackwardEnds();
  void RequireEngine() const;
  bool Walks() const { return options_.find_unused_parameters() && !options_.static_graph(); }
  bool Arms() const;
  bool HasReduced() const;
  // Runs a part of a step that talks to the others.
  template <class F>
  void Guard(const char* what, F&& part) {
    try {
      part();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      Fail(what, error);
    }
  }
  // Ends this rank's part in the group and throws. Within the handler of `error`.
  [[noreturn]] void Fail(const char* what, const std::exception& error);
  [[noreturn]] void LeaveAndRethrow(FailureNote note);
  void Drop();

  void VoteLive();
  Ballot CollectVotes(int32_t own) const;
  void ShadowStep(const Ballot& ballot);
  void ShadowBuckets();
  [[noreturn]] void ThrowUneven(const Ballot& ballot) const;

  std::shared_ptr<torch::nn::Module> module_;
  World world_;
  DDPOptions options_;
  NamedTensors parameters_;  // that require a gradient, each once
  std::shared_ptr<c10d::Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
  std::shared_ptr<SinkState> sink_ = std::make_shared<SinkState>();
  std::unique_ptr<DdpCheck> check_;
  std::optional<World> norm_group_;  // for batch norm over the ranks
  bool sync_ = true;
  bool armed_ = false;  // a forward expects a backward that reduces
  bool is_in_backward_ = false;
  // For what the graph keeps, which may outlive this.
  const std::shared_ptr<Impl*> self_ = std::make_shared<Impl*>(this);
  bool buffers_are_due_ = true;
  std::optional<JoinOptions> join_;  // while within join()
  int buffer_root_ = 0;              // whose buffers are copied
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_DDP_IMPL_H_
