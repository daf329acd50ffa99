#ifndef MUSTER_EXAMPLES_MNIST_TRAINER_H_
#define MUSTER_EXAMPLES_MNIST_TRAINER_H_

#include <muster/torch.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <memory>

#include "examples/mnist/options.h"
#include "examples/shared/samples.h"
#include "examples/shared/stepper.h"

namespace mnist {

struct Net : torch::nn::Module {
  explicit Net(bool batch_norm);
  at::Tensor forward(const at::Tensor& x);
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(784, 128));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(128, 10));
  torch::nn::BatchNorm1d norm = nullptr;  // between them
};

// One rank's part of the training. All its functions are collective.
class Trainer {
 public:
  // Throws UsageError for flags that do not fit the data.
  Trainer(muster::World world, const Options& options, const examples::Split& training,
          const examples::Split& held_out);

  // To the end, from the checkpoint if there is one. False: the agent asked for an early end, and
  // all is saved.
  bool Train();
  examples::Answers Answer();
  double Accuracy();  // on the held-out pictures
  void SaveModel() const;
  muster::Stats Stats() const { return ddp_.stats(); }

 private:
  muster::DistributedSampler MakeSampler() const;
  size_t ShareOf(int rank) const;
  int64_t StepsPerEpoch() const;
  void TellResumed() const;
  void TrainEpoch();
  void TrainBatches();
  void Count(double batch_loss, size_t pictures);
  void ShowProgress(double batch_loss);
  void ReportEpoch();

  muster::World world_;
  Options options_;
  examples::Samples training_, held_out_;
  examples::Part part_;  // of training_: what this rank's indices are counted in
  std::shared_ptr<Net> net_;
  muster::DistributedDataParallel<Net> ddp_;
  torch::optim::SGD optimizer_;
  muster::DistributedSampler sampler_;
  examples::Stepper stepper_;
  muster::State state_;
  // What a resumed run must know besides.
  int64_t epoch_ = 0;
  double loss_sum_ = 0;  // of this rank in this epoch, over loss_count_ pictures
  int64_t loss_count_ = 0;
};

}  // namespace mnist

#endif  // MUSTER_EXAMPLES_MNIST_TRAINER_H_
