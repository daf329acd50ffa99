#include "examples/mnist/trainer.h"

#include <ATen/ATen.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/nn/functional/loss.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace mnist {
namespace {

// MNIST's own mean and deviation.
constexpr double kMean = 0.1307, kDeviation = 0.3081;

// Hands out indices: the samples are in one tensor already, a batch is one index_select.
struct Indices : torch::data::datasets::Dataset<Indices, size_t> {
  explicit Indices(size_t count) : count(count) {}
  size_t get(size_t index) override { return index; }
  std::optional<size_t> size() const override { return count; }
  size_t count;
};

at::Tensor Loss(const at::Tensor& output, const at::Tensor& labels) {
  return torch::nn::functional::cross_entropy(output, labels);
}

int64_t CountLost(const at::Tensor& values) {
  return values.numel() - at::isfinite(values).sum().item<int64_t>();
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

Samples::Samples(const Split& split, const at::Device& device) {
  const int64_t count = split.count;
  at::Tensor bytes = at::empty({count, 784}, at::kByte);
  std::copy(split.pictures.begin(), split.pictures.end(), bytes.data_ptr<uint8_t>());
  pictures = ((bytes.to(at::kFloat) / 255 - kMean) / kDeviation).to(device);
  at::Tensor digits = at::empty({count}, at::kByte);
  std::copy(split.labels.begin(), split.labels.end(), digits.data_ptr<uint8_t>());
  labels = digits.to(at::kLong).to(device);
}

Trainer::Trainer(muster::World world, const Options& options, const Split& training,
                 const Split& held_out)
    : world_(std::move(world)),
      options_(options),
      training_(training, world_.device()),
      held_out_(held_out, world_.device()),
      net_(MakeNet(world_, options.seed)),
      ddp_(net_, world_),
      optimizer_(net_->parameters(), torch::optim::SGDOptions(options.lr).momentum(0.9)),
      sampler_(training.count, world_, muster::SamplerOptions().seed(options.seed)),
      state_(world_, Checkpoints(options)) {
  state_.add("net", *net_).add("optimizer", optimizer_).add("sampler", sampler_);
  state_.add("epoch", epoch_);
  state_.add("loss_sum", loss_sum_).add("loss_count", loss_count_);
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
  const auto loader = torch::data::make_data_loader(Indices(sampler_.size()), sampler_,
                                                    static_cast<size_t>(options_.batch_size));
  for (const std::vector<size_t>& indices : *loader) {
    Step(indices);
    state_.commit();
  }
}

void Trainer::Step(const std::vector<size_t>& indices) {
  const at::Tensor chosen =
      at::tensor(std::vector<int64_t>(indices.begin(), indices.end())).to(world_.device());
  const at::Tensor loss = Loss(ddp_(training_.pictures.index_select(0, chosen)),
                               training_.labels.index_select(0, chosen));
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

Answers Trainer::Answer() {
  Answers answers;
  answers.samples = static_cast<size_t>(training_.labels.numel());
  muster::DistributedSampler fresh(answers.samples, world_,
                                   muster::SamplerOptions().seed(options_.seed));
  const std::vector<size_t> own = fresh.indices();
  const at::Tensor indices = at::tensor(std::vector<int64_t>(own.begin(), own.end()));
  const at::Tensor all = world_.all_gather(indices);
  const auto ranks = static_cast<size_t>(world_.size());
  for (size_t rank = 0; rank < ranks; ++rank) {
    answers.shares.emplace_back();
    for (size_t i = 0; i < own.size(); ++i) {
      if (i * ranks + rank >= answers.samples) continue;  // repeated to fill up
      const auto row = static_cast<int64_t>(rank), column = static_cast<int64_t>(i);
      answers.shares.back().push_back(static_cast<size_t>(all[row][column].item<int64_t>()));
    }
  }

  answers.parameter_difference = ddp_.max_parameter_difference();

  const at::Tensor batch = indices.slice(0, 0, options_.batch_size).to(world_.device());
  const at::Tensor x = training_.pictures.index_select(0, batch);
  const at::Tensor y = training_.labels.index_select(0, batch);
  ddp_.zero_grad();
  ddp_.backward(Loss(ddp_(x), y));
  const at::Tensor joined_x = world_.all_gather(x).flatten(0, 1);
  const at::Tensor joined_y = world_.all_gather(y).flatten();
  answers.gradient_difference =
      ddp_.max_gradient_difference(Loss(net_->forward(joined_x), joined_y));
  int64_t lost_parameters = 0, lost_gradients = 0;
  for (const at::Tensor& parameter : net_->parameters()) {
    lost_parameters += CountLost(parameter);
    lost_gradients += CountLost(parameter.grad());
  }
  const at::Tensor lost = at::tensor({lost_parameters, lost_gradients});
  world_.all_reduce(lost);
  answers.lost_parameters = lost[0].item<int64_t>();
  answers.lost_gradients = lost[1].item<int64_t>();
  return answers;
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
