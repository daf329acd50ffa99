#include "tests/differential/trainings.h"

#include <muster/torch.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>

namespace muster {
namespace {

using torch::nn::Linear;

constexpr uint64_t kSeed = 7;
constexpr int64_t kSteps = 5, kBatch = 4;

struct Net : torch::nn::Module {
  virtual at::Tensor forward(const at::Tensor& x, int64_t turn) = 0;
};

struct Mlp : Net {
  at::Tensor forward(const at::Tensor& x, int64_t) override { return fc2(at::relu(fc1(x))); }
  Linear fc1 = register_module("fc1", Linear(4, 3));
  Linear fc2 = register_module("fc2", Linear(3, 2));
};

struct Dropping : Mlp {
  at::Tensor forward(const at::Tensor& x, int64_t) override {
    return fc2(at::dropout(fc1(x), 0.5, is_training()));
  }
};

struct Reused : Net {
  at::Tensor forward(const at::Tensor& x, int64_t) override {
    return out(at::relu(fc(at::relu(fc(x)))));
  }
  Linear fc = register_module("fc", Linear(4, 4));
  Linear out = register_module("out", Linear(4, 2));
};

struct Branches : Net {
  at::Tensor forward(const at::Tensor& x, int64_t turn) override {
    return turn % 2 == 0 ? a(x) : b(x);
  }
  Linear a = register_module("a", Linear(4, 2));
  Linear b = register_module("b", Linear(4, 2));
};

struct Dead : Branches {
  at::Tensor forward(const at::Tensor& x, int64_t) override { return a(x); }
};

struct Conv : Net {
  at::Tensor forward(const at::Tensor& x, int64_t) override {
    return fc(at::relu(bn(conv(x.reshape({-1, 1, 2, 2})))).flatten(1));
  }
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(1, 2, 1));
  torch::nn::BatchNorm2d bn = register_module("bn", torch::nn::BatchNorm2d(2));
  Linear fc = register_module("fc", Linear(8, 2));
};

struct Bag : Net {
  at::Tensor forward(const at::Tensor& x, int64_t) override {
    return fc(embedding((x * 1000).to(at::kLong).remainder(7)).mean(1));
  }
  torch::nn::Embedding embedding = register_module(
      "embedding", torch::nn::Embedding(torch::nn::EmbeddingOptions(7, 3).sparse(true)));
  Linear fc = register_module("fc", Linear(3, 2));
};

std::shared_ptr<Net> MakeNet(const std::string& model) {
  if (model == "mlp") return std::make_shared<Mlp>();
  if (model == "dropping") return std::make_shared<Dropping>();
  if (model == "reused") return std::make_shared<Reused>();
  if (model == "branches") return std::make_shared<Branches>();
  if (model == "dead") return std::make_shared<Dead>();
  if (model == "conv") return std::make_shared<Conv>();
  if (model == "bag") return std::make_shared<Bag>();
  throw Error("no model " + model);
}

// Not an average: what the hook gives must be used.
CommHook UserHook() {
  return {"user", [](const World& world, Bucket& bucket) {
            return world.all_reduce_async(bucket.gradients().mul_(0.5));
          }};
}

CommHook HookOf(const std::string& name) {
  if (name == "allreduce") return hooks::allreduce();
  if (name == "fp16") return hooks::fp16();
  if (name == "bf16") return hooks::bf16();
  if (name == "user") return UserHook();
  return {};
}

at::Tensor Flat(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> rows;
  for (const at::Tensor& tensor : tensors) {
    rows.push_back(tensor.detach().to(at::kFloat).flatten());
  }
  return at::cat(rows);
}

at::Tensor Gradients(const Net& net) {
  std::vector<at::Tensor> dense;
  for (const at::Tensor& parameter : net.parameters()) {
    const at::Tensor& gradient = parameter.grad();
    dense.push_back(!gradient.defined()    ? at::zeros_like(parameter)
                    : gradient.is_sparse() ? gradient.to_dense()
                                           : gradient);
  }
  return Flat(dense);
}

DDPOptions OptionsOf(const Case& one) {
  DDPOptions options;
  options.find_unused_parameters(one.On("find_unused"))
      .static_graph(one.On("static"))
      .gradient_as_bucket_view(one.On("view"))
      .broadcast_buffers(one.Get("buffers") != "0")
      .sync_batch_norm(one.On("sync_bn"))
      .comm_hook(HookOf(one.Get("hook")));
  const std::string cap = one.Get("bucket_cap_mb"), ignore = one.Get("ignore");
  if (!cap.empty()) options.bucket_cap_mb(std::stod(cap));
  if (!ignore.empty()) options.ignore({ignore});
  return options;
}

std::unique_ptr<torch::optim::Optimizer> OptimizerOf(const Case& one, const Net& net) {
  if (one.Get("optimizer") == "adam") {
    return std::make_unique<torch::optim::Adam>(net.parameters(), torch::optim::AdamOptions(0.01));
  }
  const double momentum = one.Get("model") == "bag" ? 0 : 0.9;  // none for sparse gradients
  return std::make_unique<torch::optim::SGD>(net.parameters(),
                                             torch::optim::SGDOptions(0.1).momentum(momentum));
}

std::unique_ptr<Schedule> ScheduleOf(const Case& one, torch::optim::Optimizer& optimizer) {
  const std::string name = one.Get("schedule");
  if (name == "warmup") return std::make_unique<Warmup>(optimizer, 3);
  if (name == "cosine") {
    return std::make_unique<Cosine>(optimizer, 6, CosineOptions().min_lr(0.01));
  }
  return nullptr;
}

std::shared_ptr<Net> SeededNet(const Case& one) {
  at::manual_seed(kSeed);
  return MakeNet(one.Get("model", "mlp"));
}

class Training {
 public:
  Training(const Case& one, const World& world)
      : case_(one),
        world_(world),
        net_(SeededNet(one)),
        initial_(Flat(net_->parameters())),
        dtype_(one.Get("dtype") == "bf16" ? at::kBFloat16 : at::kFloat),
        ddp_((net_->to(dtype_), net_), world, OptionsOf(one)),
        optimizer_(OptimizerOf(one, *net_)),
        scaler_(world,
                GradScalerOptions().init_scale(1024).growth_interval(2).enabled(one.On("scaler"))),
        schedule_(ScheduleOf(one, *optimizer_)) {
    world.seed(100 * kSeed);
  }

  // Name and content of what is compared.
  std::vector<std::pair<std::string, at::Tensor>> Run() {
    const std::string loop = case_.Get("loop");
    const bool uneven = loop.starts_with("join");
    at::Tensor gradients;
    const auto steps = [&] {
      const int64_t count = uneven ? kSteps - world_.rank() : kSteps;
      for (int64_t step = 0; step < count; ++step) {
        ddp_.zero_grad(case_.Get("zero") != "in_place");
        Backward(loop, step);
        gradients = Update();
      }
    };
    if (uneven) {
      ddp_.join(steps, JoinOptions().divide_by_initial_world_size(loop == "join"));
    } else {
      steps();
    }
    if (case_.Get("ignore").empty()) ddp_.check_consistency();
    std::vector<std::pair<std::string, at::Tensor>> results = {
        {"initial", initial_}, {"gradients", gradients}, {"parameters", Flat(net_->parameters())}};
    if (case_.On("scaler")) results.emplace_back("scale", at::full({1}, scaler_.current_scale()));
    if (schedule_) {
      const double rate = optimizer_->param_groups()[0].options().get_lr();
      results.emplace_back("rate", at::full({1}, rate));
    }
    if (!net_->buffers().empty()) results.emplace_back("buffers", Flat(net_->buffers()));
    return results;
  }

 private:
  at::Tensor Loss(int64_t step) {
    const int64_t rank = world_.rank(), start = (step * 8 + rank) * kBatch;
    // With batch norm over the ranks each has another number of samples.
    const int64_t end = start + kBatch - (case_.On("sync_bn") ? rank : 0);
    const at::Tensor x = at::cos(at::arange(start * 4, end * 4, at::kFloat)).reshape({-1, 4});
    const at::Tensor y = at::arange(start, end).remainder(2);
    at::Tensor loss;
    {
      const Autocast autocast(at::kCPU, at::kBFloat16, case_.On("autocast"));
      const at::Tensor output = ddp_(x.to(dtype_), step + rank);
      loss = torch::nn::functional::cross_entropy(output.to(at::kFloat), y);
    }
    if (case_.On("inf") && step == 1 && rank == world_.size() - 1) loss = loss * INFINITY;
    return scaler_.scale(loss);
  }

  // Returns the gradients that the step was done with.
  at::Tensor Update() {
    const std::string clip = case_.Get("clip");
    if (!clip.empty()) {
      scaler_.unscale(*optimizer_);
      ddp_.clip_grad_norm(std::stod(clip));
    }
    const at::Tensor gradients = Gradients(*net_);
    scaler_.step(*optimizer_);
    scaler_.update();
    if (schedule_) schedule_->step();
    return gradients;
  }

  void Backward(const std::string& loop, int64_t step) {
    if (loop == "no_sync") {
      {
        const auto skip = ddp_.no_sync();
        ddp_.backward(Loss(2 * step));
      }
      ddp_.backward(Loss(2 * step + 1));
    } else if (loop == "two_forwards") {
      const at::Tensor first = Loss(2 * step);
      ddp_.backward(first + Loss(2 * step + 1));
    } else {
      ddp_.backward(Loss(step));
    }
  }

  const Case& case_;
  World world_;
  std::shared_ptr<Net> net_;
  at::Tensor initial_;
  at::ScalarType dtype_;
  DistributedDataParallel<Net> ddp_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  GradScaler scaler_;
  std::unique_ptr<Schedule> schedule_;
};

std::string Bits(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.contiguous().view(at::kInt);
  std::string text;
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    char word[16];
    std::snprintf(word, sizeof word, " %08x",
                  static_cast<uint32_t>(numbers.const_data_ptr<int32_t>()[i]));
    text += word;
  }
  return text;
}

}  // namespace

std::string TrainAll(const std::vector<Case>& cases) {
  at::set_num_threads(1);
  const World world = init(InitOptions().op_timeout(std::chrono::seconds(30)));
  std::string lines;
  for (const Case& one : cases) {
    for (const auto& [name, tensor] : Training(one, world).Run()) {
      lines += one.name + " " + std::to_string(world.size()) + " " + name + Bits(tensor) + "\n";
    }
  }
  return lines;
}

std::string Processor() {
  std::ifstream lines("/proc/cpuinfo");
  std::string vendor = "unknown";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("vendor_id")) continue;
    vendor = line.substr(line.find_last_of(" \t") + 1);
    break;
  }
  return vendor + "/" + at::get_cpu_capability();
}

}  // namespace muster
