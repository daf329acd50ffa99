#include "examples/mnist/trainer.h"

#include <ATen/ATen.h>
#include <torch/data/dataloader.h>
#include <torch/nn/functional/loss.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "examples/mnist/features.h"
#include "examples/shared/checkpoints.h"

namespace mnist {
namespace {

using examples::Part, examples::Quotient, examples::Samples, examples::UnevenPart;

at::Tensor Loss(const at::Tensor& output, const at::Tensor& labels) {
  return torch::nn::functional::cross_entropy(output, labels);
}

std::shared_ptr<Net> MakeNet(const muster::World& world, const Options& options) {
  at::manual_seed(options.seed);  // the same parameters everywhere; DDP would copy rank 0's anyway
  auto net = std::make_shared<Net>(options.batch_norm || options.sync_batch_norm);
  net->to(world.device());
  return net;
}

// A rank that is out of batches does not step: its momentum would be another than that of the rest.
torch::optim::SGDOptions Descent(const muster::World& world, const Options& options) {
  return torch::optim::SGDOptions(examples::Rate(world, options.steps))
      .momentum(options.join ? 0 : 0.9);
}

// What is lost where gradients are sent in low precision, relative to the largest: twice the
// rounding of each rank's own and of their sum.
double SentPrecision(const std::string& hook) {
  if (hook == "fp16") return 4 * 0x1p-11;
  return hook == "bf16" ? 4 * 0x1p-8 : 0;
}

double LargestGradient(const torch::nn::Module& module) {
  double largest = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    largest = std::max(largest, parameter.grad().abs().max().item<double>());
  }
  return largest;
}

std::string Compared(const Options& options, bool own_norm, double rounding) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!options.steps.amp.empty()) add("in single precision");
  if (own_norm) add("with the statistics of rank 0");
  if (SentPrecision(options.hook) > 0) {
    char most[32];
    std::snprintf(most, sizeof most, "%.2g", rounding);
    add("sent as " + options.hook + ": at most " + most);
  }
  return text;
}

// LibTorch's batch norm has no statistics of a batch of one.
void RequireNoBatchOfOne(size_t pictures, int64_t batch_size) {
  const auto size = static_cast<size_t>(batch_size);
  if (pictures % size != 1 % size) return;
  throw examples::UsageError("--batch-size " + std::to_string(batch_size) + " leaves one of " +
                             std::to_string(pictures) +
                             " pictures to the last batch, too few for a batch norm");
}

}  // namespace

Net::Net(bool batch_norm) {
  if (batch_norm) norm = register_module("norm", torch::nn::BatchNorm1d(128));
}

at::Tensor Net::forward(const at::Tensor& x) {
  const at::Tensor y = fc1(x);
  return fc2(at::relu(norm ? norm(y) : y));
}

Trainer::Trainer(muster::World world, const Options& options, const examples::Split& training,
                 const examples::Split& held_out)
    : world_(std::move(world)),
      options_(options),
      training_(training, world_.device()),
      held_out_(held_out, world_.device()),
      part_(options.join ? UnevenPart(training_.count(), world_.rank(), world_.size())
                         : Part{0, training_.count()}),
      net_(MakeNet(world_, options)),
      ddp_(net_, world_, Wrapping(options)),
      optimizer_(net_->parameters(), Descent(world_, options)),
      sampler_(MakeSampler()),
      stepper_(world_, optimizer_, options.steps, options.epochs * StepsPerEpoch()),
      state_(world_, Checkpoints(options)) {
  for (int rank = 0; net_->norm && rank < world_.size(); ++rank) {
    RequireNoBatchOfOne(ShareOf(rank), options.batch_size);
  }
  state_.add("net", *net_).add("optimizer", optimizer_);
  // With --join an epoch is the unit, and a state, being the same for all, knows no rank's
  // own part.
  if (!options.join) state_.add("sampler", sampler_);
  state_.add("epoch", epoch_);
  state_.add("loss_sum", loss_sum_).add("loss_count", loss_count_);
  stepper_.Remember(state_);
}

// Of the indices in part_, which with --join is this rank's alone.
muster::DistributedSampler Trainer::MakeSampler() const {
  if (options_.join) return {part_.count, 0, 1, Sampling(options_)};
  return {part_.count, world_, Sampling(options_)};
}

// Pictures of a rank in an epoch.
size_t Trainer::ShareOf(int rank) const {
  return options_.join ? UnevenPart(training_.count(), rank, world_.size()).count : sampler_.size();
}

// Of the last rank, which has most where the shares are uneven.
int64_t Trainer::StepsPerEpoch() const {
  const auto pictures = static_cast<int64_t>(ShareOf(world_.size() - 1));
  return Quotient(Quotient(pictures, options_.batch_size), options_.steps.accumulate);
}

bool Trainer::Train() {
  return muster::run(world_, state_, [this] {
    TellResumed();
    while (epoch_ < options_.epochs) {
      TrainEpoch();
      ReportEpoch();
      if (options_.check_consistency) ddp_.check_consistency();
      ++epoch_;
      loss_sum_ = 0;
      loss_count_ = 0;
      if (options_.join) state_.commit();
      if (!options_.checkpoint_dir.empty()) state_.save();
    }
  });
}

void Trainer::TrainEpoch() {
  sampler_.set_epoch(static_cast<size_t>(epoch_));
  if (!options_.join) return TrainBatches();
  ddp_.join([this] { TrainBatches(); });
  stepper_.CatchUp((epoch_ + 1) * StepsPerEpoch());
}

void Trainer::TrainBatches() {
  const auto loader = torch::data::make_data_loader(examples::Indices(part_.count), sampler_,
                                                    static_cast<size_t>(options_.batch_size));
  stepper_.Begin(Quotient(static_cast<int64_t>(sampler_.remaining()), options_.batch_size));
  size_t pictures = 0;  // in this step
  for (const std::vector<size_t>& indices : *loader) {
    const Samples batch = training_.Pick(indices, part_.begin);
    const at::Tensor loss =
        stepper_.Accumulate(ddp_, [&] { return Loss(ddp_(batch.pictures), batch.labels); });
    Count(loss.item<double>(), indices.size());
    pictures += indices.size();
    if (!stepper_.Complete()) continue;
    stepper_.Step(ddp_);
    sampler_.consumed(std::exchange(pictures, 0));
    ShowProgress(loss.item<double>());
    // All ranks must be at one point.
    if (!options_.join) state_.commit();
  }
}

void Trainer::Count(double batch_loss, size_t pictures) {
  loss_sum_ += batch_loss * static_cast<double>(pictures);
  loss_count_ += static_cast<int64_t>(pictures);
}

void Trainer::TellResumed() const {
  const muster::Loaded& loaded = state_.loaded();
  if (!loaded || !world_.leader()) return;
  std::printf("going on from %s: epoch %ld, step %ld\n", loaded.file.c_str(),
              static_cast<long>(epoch_ + 1), static_cast<long>(state_.commits()));
  std::fflush(stdout);
  examples::TellNothingLeft(world_, state_, epoch_, options_.epochs);
}

double Trainer::Accuracy() {
  // Rank 0 alone: the model itself, not the wrapper, so that the others are not needed.
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
  const bool own_norm = options_.batch_norm && !options_.sync_batch_norm;
  if (own_norm) {
    net_->eval();
    for (const at::Tensor& buffer : net_->buffers()) world_.broadcast(buffer);
  }
  examples::Answers answers = examples::Ask(
      world_, ddp_, training_, MakeSampler().indices(), options_.batch_size,
      [](auto&& model, const Samples& batch) { return Loss(model(batch.pictures), batch.labels); },
      part_.begin);
  if (options_.sync_batch_norm) answers.rounding = 1e-5;  // means over the batch in another order
  answers.rounding += SentPrecision(options_.hook) * LargestGradient(*net_);
  answers.compared = Compared(options_, own_norm, answers.rounding);
  if (options_.drop_last) answers.left_out = answers.samples % static_cast<size_t>(world_.size());
  return answers;
}

void Trainer::SaveModel() const {
  if (options_.save_model.empty() || !world_.leader()) return;
  muster::save_state_dict(*net_, options_.save_model);
}

}  // namespace mnist
