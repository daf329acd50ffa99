#include "examples/mnist/trainer.h"

#include <ATen/ATen.h>
#include <torch/data/dataloader.h>
#include <torch/nn/functional/loss.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace mnist {
namespace {

at::Tensor Loss(const at::Tensor& output, const at::Tensor& labels) {
  return torch::nn::functional::cross_entropy(output, labels);
}

muster::CheckpointOptions Checkpoints(const Options& options) {
  if (options.checkpoint_dir.empty()) return {};
  return muster::CheckpointOptions()
      .file(options.checkpoint_dir / "mnist.ckpt")
      .every(options.checkpoint_every);
}

std::shared_ptr<Net> MakeNet(const muster::World& world, uint64_t seed) {
  at::manual_seed(seed);  // the same parameters everywhere; DDP would copy rank 0's anyway
  auto net = std::make_shared<Net>();
  net->to(world.device());
  return net;
}

}  // namespace

at::Tensor Net::forward(const at::Tensor& x) { return fc2(at::relu(fc1(x))); }

Trainer::Trainer(muster::World world, const Options& options, const examples::Split& training,
                 const examples::Split& held_out)
    : world_(std::move(world)),
      options_(options),
      training_(training, world_.device()),
      held_out_(held_out, world_.device()),
      net_(MakeNet(world_, options.seed)),
      ddp_(net_, world_),
      optimizer_(net_->parameters(), torch::optim::SGDOptions(options.lr).momentum(0.9)),
      sampler_(training_.count(), world_, Sampling()),
      state_(world_, Checkpoints(options)) {
  state_.add("net", *net_).add("optimizer", optimizer_).add("sampler", sampler_);
  state_.add("epoch", epoch_);
  state_.add("loss_sum", loss_sum_).add("loss_count", loss_count_);
}

muster::SamplerOptions Trainer::Sampling() const {
  return muster::SamplerOptions().seed(options_.seed);
}

bool Trainer::Train() {
  return muster::run(world_, state_, [this] {
    TellResumed();
    while (epoch_ < options_.epochs) {
      TrainEpoch();
      ReportEpoch();
      ++epoch_;
      loss_sum_ = 0;
      loss_count_ = 0;
      if (!options_.checkpoint_dir.empty()) state_.save();
    }
  });
}

void Trainer::TrainEpoch() {
  sampler_.set_epoch(static_cast<size_t>(epoch_));
  const auto loader = torch::data::make_data_loader(examples::Indices(sampler_.size()), sampler_,
                                                    static_cast<size_t>(options_.batch_size));
  for (const std::vector<size_t>& indices : *loader) {
    Step(indices);
    state_.commit();
  }
}

void Trainer::Step(const std::vector<size_t>& indices) {
  const examples::Samples batch = training_.Pick(indices);
  const at::Tensor loss = Loss(ddp_(batch.pictures), batch.labels);
  ddp_.zero_grad();
  ddp_.backward(loss);
  optimizer_.step();
  const double batch_loss = loss.item<double>();
  loss_sum_ += batch_loss * static_cast<double>(indices.size());
  loss_count_ += static_cast<int64_t>(indices.size());
  sampler_.consumed(indices.size());
  ShowProgress(batch_loss);
}

void Trainer::TellResumed() const {
  const muster::Loaded& loaded = state_.loaded();
  if (!loaded || !world_.leader()) return;
  std::printf("going on from %s: epoch %ld, step %ld\n", loaded.file.c_str(),
              static_cast<long>(epoch_ + 1), static_cast<long>(state_.commits()));
  std::fflush(stdout);
}

double Trainer::Accuracy() {
  // Rank 0 alone: the model itself, not the wrapper, so that the others are not needed.
  at::Tensor accuracy = at::zeros({1}, at::kDouble);
  if (world_.leader()) {
    const at::NoGradGuard no_grad;
    const at::Tensor guesses = net_->forward(held_out_.pictures).argmax(1);
    accuracy = guesses.eq(held_out_.labels).to(at::kDouble).mean().reshape({1}).cpu();
  }
  world_.broadcast(accuracy);
  return accuracy.item<double>();
}

void Trainer::ReportEpoch() {
  const at::Tensor sums = at::tensor({loss_sum_, static_cast<double>(loss_count_)}, at::kDouble);
  world_.all_reduce(sums);
  const double loss = sums[0].item<double>() / sums[1].item<double>();
  const double accuracy = Accuracy();
  if (!world_.leader()) return;
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r\033[K");
  std::printf("epoch %ld/%ld  loss %.4f  held-out accuracy %.4f\n", static_cast<long>(epoch_ + 1),
              static_cast<long>(options_.epochs), loss, accuracy);
  std::fflush(stdout);
}

void Trainer::ShowProgress(double batch_loss) {
  if (!world_.leader() || !isatty(STDERR_FILENO)) return;
  std::fprintf(stderr, "\r\033[Kepoch %ld/%ld  %3.0f %%  step %ld  loss %.4f",
               static_cast<long>(epoch_ + 1), static_cast<long>(options_.epochs),
               100.0 - 100.0 * static_cast<double>(sampler_.remaining()) /
                           static_cast<double>(sampler_.size()),
               static_cast<long>(state_.commits() + 1), batch_loss);
}

examples::Answers Trainer::Answer() {
  return examples::Ask(world_, ddp_, training_, Sampling(), options_.batch_size,
                       [](auto&& model, const examples::Samples& batch) {
                         return Loss(model(batch.pictures), batch.labels);
                       });
}

void CheckSaveModel(const Options& options) {
  if (options.save_model.empty()) return;
  const std::filesystem::path folder = std::filesystem::absolute(options.save_model).parent_path();
  if (access(folder.c_str(), W_OK | X_OK) == 0) return;
  throw muster::CheckpointError("--save-model " + options.save_model.string() + ": the folder " +
                                folder.string() + " cannot be written: " + std::strerror(errno));
}

void Trainer::SaveModel() const {
  if (options_.save_model.empty() || !world_.leader()) return;
  muster::save_state_dict(*net_, options_.save_model);
}

}  // namespace mnist
