// A residual network, data-parallel: see --help, and docs/TRAINING.md for how it works.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <muster/torch.h>
#include <sysexits.h>
#include <torch/data/dataloader.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "examples/cnn/net.h"
#include "examples/cnn/options.h"
#include "examples/shared/program.h"
#include "examples/shared/samples.h"

namespace cnn {
namespace {

at::Tensor Loss(const at::Tensor& output, const at::Tensor& labels) {
  return torch::nn::functional::cross_entropy(output, labels);
}

int64_t Quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One rank's part of the training. All its functions are collective.
class Trainer {
 public:
  Trainer(const muster::World& world, const Options& options, const examples::Split& training,
          const examples::Split& held_out)
      : world_(world),
        options_(options),
        training_(training, world.device()),
        held_out_(held_out, world.device()),
        net_(MakeNet()),
        ddp_(net_, world, muster::DDPOptions().sync_batch_norm(options.sync_batch_norm)),
        optimizer_(
            net_->parameters(),
            torch::optim::SGDOptions(muster::linear_scaled_lr(options.lr, world)).momentum(0.9)),
        sampler_(training_.count(), world, Sampling()),
        batches_(Quotient(static_cast<int64_t>(sampler_.size()), options.batch_size)),
        schedule_(optimizer_, Steps(), muster::CosineOptions().warmup(options.warmup)) {}

  void Train() {
    world_.agent().ready();
    for (int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
      const double loss = TrainEpoch(epoch);
      const double accuracy = Accuracy();
      if (!world_.leader()) continue;
      std::printf("epoch %ld/%ld  loss %.4f  held-out accuracy %.4f\n",
                  static_cast<long>(epoch + 1), static_cast<long>(options_.epochs), loss, accuracy);
      std::fflush(stdout);
    }
  }

  // Rank 0 alone, with the model itself and not the wrapper, so that the others are not needed.
  double Accuracy() {
    at::Tensor accuracy = at::zeros({1}, at::kDouble);
    if (world_.leader()) {
      const at::NoGradGuard no_grad;
      net_->eval();
      const at::Tensor guesses = net_->forward(held_out_.pictures).argmax(1);
      net_->train();
      accuracy = guesses.eq(held_out_.labels).to(at::kDouble).mean().reshape({1}).cpu();
    }
    world_.broadcast(accuracy);
    return accuracy.item<double>();
  }

  examples::Answers Answer() {
    net_->train(options_.sync_batch_norm);
    examples::Answers answers =
        examples::Ask(world_, ddp_, training_, Sampling(), options_.batch_size,
                      [](auto&& model, const examples::Samples& batch) {
                        return Loss(model(batch.pictures), batch.labels);
                      });
    answers.rounding = 1e-5;  // a batch norm multiplies what the one before has rounded
    return answers;
  }

  void SaveModel() const {
    if (options_.save_model.empty() || !world_.leader()) return;
    std::ofstream file(options_.save_model, std::ios::binary | std::ios::trunc);
    torch::save(net_, file);
    file.close();
    if (!file) {
      throw muster::CheckpointError("cannot write the model to " + options_.save_model.string());
    }
  }

 private:
  std::shared_ptr<Net> MakeNet() const {
    world_.seed(
        options_.seed);  // differs between the ranks; DDP gives all of them rank 0's network
    auto net = std::make_shared<Net>();
    net->to(world_.device());
    return net;
  }

  muster::SamplerOptions Sampling() const { return muster::SamplerOptions().seed(options_.seed); }

  int64_t Steps() const {
    const int64_t steps = options_.epochs * Quotient(batches_, options_.accumulate);
    if (options_.warmup < steps) return steps;
    throw examples::UsageError("--warmup " + std::to_string(options_.warmup) +
                               " is too long for a training of " + std::to_string(steps) +
                               " steps");
  }

  // The mean loss over the ranks.
  double TrainEpoch(int64_t epoch) {
    sampler_.set_epoch(static_cast<size_t>(epoch));
    const auto loader = torch::data::make_data_loader(
        examples::Indices(training_.count()), sampler_, static_cast<size_t>(options_.batch_size));
    at::Tensor sum = at::zeros({1}, world_.device());
    int64_t i = 0;
    for (const std::vector<size_t>& indices : *loader) {
      const int64_t left_before = batches_ - (i - i % options_.accumulate);
      const int64_t together = std::min(options_.accumulate, left_before);
      ++i;
      const bool last = i % options_.accumulate == 0 || i == batches_;
      sum += Accumulate(training_.Pick(indices), together, last);
      if (last) Step();
    }
    world_.all_reduce(sum, muster::Op::mean);
    return sum.item<double>() / static_cast<double>(batches_);
  }

  // Forward and backward of one batch of `together` that make a step.
  at::Tensor Accumulate(const examples::Samples& batch, int64_t together, bool last) {
    const auto skip = ddp_.no_sync(!last);
    at::Tensor loss;
    {
      const muster::Autocast autocast(world_.device(), at::kBFloat16, options_.amp);
      loss = Loss(ddp_(Shifted(batch.pictures)), batch.labels);
    }
    ddp_.backward(loss / together);
    return loss.detach();
  }

  void Step() {
    if (options_.clip > 0) ddp_.clip_grad_norm(options_.clip);
    optimizer_.step();
    schedule_.step();
    ddp_.zero_grad();
    world_.agent().step(schedule_.steps());
  }

  // By another random distance on each rank: the ranks' generators differ.
  at::Tensor Shifted(const at::Tensor& pictures) const {
    if (options_.shift == 0) return pictures;
    const at::Tensor by = at::randint(-options_.shift, options_.shift + 1, {2});
    return at::roll(pictures.view({-1, 28, 28}), {by[0].item<int64_t>(), by[1].item<int64_t>()},
                    {1, 2});
  }

  muster::World world_;
  Options options_;
  examples::Samples training_, held_out_;
  std::shared_ptr<Net> net_;
  muster::DistributedDataParallel<Net> ddp_;
  torch::optim::SGD optimizer_;
  muster::DistributedSampler sampler_;
  int64_t batches_;  // of this rank, per epoch
  muster::Cosine schedule_;
};

int Run(const muster::Identity& self, const Options& options) {
  // Before joining, so that missing data keeps nobody waiting.
  const examples::Split training = examples::ReadSplit(options.data, "train");
  const examples::Split held_out = examples::ReadSplit(options.data, "t10k");
  at::set_num_threads(1);
  at::globalContext().setDeterministicAlgorithms(true, false);

  const muster::World world = muster::init(self, muster::InitOptions());
  Trainer trainer(world, options, training, held_out);
  trainer.Train();
  trainer.SaveModel();
  const double accuracy = trainer.Accuracy();
  const bool colour = isatty(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
  const examples::Verdict verdict = examples::Judge(trainer.Answer(), colour);
  if (world.leader()) {
    std::printf("held-out accuracy %.4f\n%s", accuracy, verdict.text.c_str());
    std::fflush(stdout);
  }
  return verdict.ok ? EX_OK : EXIT_FAILURE;
}

}  // namespace
}  // namespace cnn

int main(int argc, char** argv) {
  return examples::RunProgram([&](const muster::Identity& self) {
    const cnn::Options options = cnn::ParseOptions({argv + 1, argv + argc});
    if (!options.help) return cnn::Run(self, options);
    std::fputs(cnn::kHelp, stdout);
    return EX_OK;
  });
}
