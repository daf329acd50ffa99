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
#include <utility>

#include "examples/cnn/net.h"
#include "examples/cnn/options.h"
#include "examples/shared/checkpoints.h"
#include "examples/shared/program.h"
#include "examples/shared/samples.h"
#include "examples/shared/stepper.h"

namespace cnn {
namespace {

using examples::Quotient;

at::Tensor Loss(const at::Tensor& output, const at::Tensor& labels) {
  return torch::nn::functional::cross_entropy(output, labels);
}

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
        optimizer_(net_->parameters(),
                   torch::optim::SGDOptions(examples::Rate(world, options.steps)).momentum(0.9)),
        sampler_(MakeSampler()),
        stepper_(world, optimizer_, options.steps,
                 options.epochs * Quotient(Batches(sampler_.size()), options.steps.accumulate)),
        state_(world, Checkpoints()) {
    state_.add("net", *net_).add("optimizer", optimizer_).add("sampler", sampler_);
    state_.add("epoch", epoch_).add("loss_sum", loss_sum_).add("batches", batches_);
    stepper_.Remember(state_);
  }

  // From the checkpoint, if there is one. False: the agent asked for an early end, and all is
  // saved.
  bool Train() {
    return muster::run(world_, state_, [this] {
      examples::TellNothingLeft(world_, state_, epoch_, options_.epochs);
      const bool is_done = epoch_ >= options_.epochs;
      for (; epoch_ < options_.epochs; ++epoch_) {
        TrainEpoch();
        Report();
        loss_sum_ = 0;
        batches_ = 0;
      }
      // What was saved at the last step does not know that its epoch is over.
      if (!is_done && !options_.checkpoint_dir.empty()) state_.save();
    });
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
        examples::Ask(world_, ddp_, training_, MakeSampler().indices(), options_.batch_size,
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

  muster::DistributedSampler MakeSampler() const {
    return {training_.count(), world_, muster::SamplerOptions().seed(options_.seed)};
  }

  muster::CheckpointOptions Checkpoints() const {
    if (options_.checkpoint_dir.empty()) return {};
    return muster::CheckpointOptions()
        .file(options_.checkpoint_dir / "cnn.ckpt")
        .every(options_.checkpoint_every);
  }

  int64_t Batches(size_t pictures) const {
    return Quotient(static_cast<int64_t>(pictures), options_.batch_size);
  }

  void TrainEpoch() {
    sampler_.set_epoch(static_cast<size_t>(epoch_));
    const auto loader = torch::data::make_data_loader(
        examples::Indices(training_.count()), sampler_, static_cast<size_t>(options_.batch_size));
    stepper_.Begin(Batches(sampler_.remaining()));
    size_t pictures = 0;  // in this step
    for (const std::vector<size_t>& indices : *loader) {
      const examples::Samples batch = training_.Pick(indices);
      const at::Tensor loss = stepper_.Accumulate(
          ddp_, [&] { return Loss(ddp_(Shifted(batch.pictures)), batch.labels); });
      loss_sum_ += loss.item<double>();
      ++batches_;
      pictures += indices.size();
      if (!stepper_.Complete()) continue;
      stepper_.Step(ddp_);
      sampler_.consumed(std::exchange(pictures, 0));
      state_.commit();
    }
  }

  void Report() {
    const at::Tensor sums = at::tensor({loss_sum_, static_cast<double>(batches_)}, at::kDouble);
    world_.all_reduce(sums);
    const double accuracy = Accuracy();
    if (!world_.leader()) return;
    std::printf("epoch %ld/%ld  loss %.4f  held-out accuracy %.4f\n", static_cast<long>(epoch_ + 1),
                static_cast<long>(options_.epochs), (sums[0] / sums[1]).item<double>(), accuracy);
    std::fflush(stdout);
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
  examples::Stepper stepper_;
  muster::State state_;
  // What a resumed run must know besides.
  int64_t epoch_ = 0;
  double loss_sum_ = 0;  // of this rank in this epoch, over batches_
  int64_t batches_ = 0;
};

int Run(const muster::Identity& self, const Options& options) {
  // Before joining, so that missing data keeps nobody waiting.
  if (self.rank == 0) {
    examples::CheckPlacesToWrite(options.checkpoint_dir, options.save_model);
  }
  const examples::Split training = examples::ReadSplit(options.data, "train");
  const examples::Split held_out = examples::ReadSplit(options.data, "t10k");
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  at::set_num_threads(1);
  at::globalContext().setDeterministicAlgorithms(true, false);

  const muster::World world = muster::init(self, muster::InitOptions());
  Trainer trainer(world, options, training, held_out);
  if (!trainer.Train()) {
    if (world.leader()) std::printf("drained: ending early as asked\n");
    return EX_OK;
  }
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
