// Takes training steps as a user of the SDK would, and prints on rank 0 how long they took, as one
// line of JSON. bench/ddp_steps.py is the same in Python.
//
//   ddp_steps MODEL STEPS [--bare] [--nccl]
//
// MODEL is small, medium, large (perceptrons) or conv; a tenth of the steps more are not counted.
// --bare: LibTorch alone, without the wrapper. --nccl: on a GPU. Times are microseconds, the moment
// of the first step's end is in seconds of CLOCK_MONOTONIC.
#include <ATen/ATen.h>
#include <muster/torch.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace {

using std::chrono::steady_clock;

constexpr int64_t kBatch = 64;
constexpr int64_t kClasses = 10;

struct Net : torch::nn::Module {
  explicit Net(std::vector<int64_t> widths, bool with_convolutions) {
    if (with_convolutions) {
      conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3)));
      conv2 = register_module("conv2",
                              torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).stride(2)));
    }
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      layers.push_back(
          register_module("fc" + std::to_string(i), torch::nn::Linear(widths[i], widths[i + 1])));
    }
  }

  at::Tensor forward(at::Tensor x) {
    if (conv1) {
      x = at::relu(conv1(x.view({-1, 1, 28, 28})));
      x = at::relu(conv2(x)).flatten(1);
    }
    for (size_t i = 0; i + 1 < layers.size(); ++i) x = at::relu(layers[i](x));
    return layers.back()(x);
  }

  torch::nn::Conv2d conv1 = nullptr, conv2 = nullptr;
  std::vector<torch::nn::Linear> layers;
};

std::shared_ptr<Net> Make(const std::string& model) {
  const std::map<std::string, std::vector<int64_t>> widths = {
      {"small", {784, 128, kClasses}},
      {"medium", {784, 1024, 1024, kClasses}},
      {"large", {784, 4096, 2048, kClasses}},
      {"conv", {32 * 12 * 12, 64, kClasses}}};
  at::manual_seed(1);
  return std::make_shared<Net>(widths.at(model), model == "conv");
}

double Microseconds(steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

struct Times {
  double first_step_s = 0;
  std::vector<double> steps_us;
};

Times Measure(int64_t steps, const std::function<void()>& step) {
  Times times;
  const int64_t not_counted = std::max<int64_t>(steps / 10, 3);
  for (int64_t i = 0; i < not_counted + steps; ++i) {
    const auto began = steady_clock::now();
    step();
    const auto ended = steady_clock::now();
    if (i == 0)
      times.first_step_s = std::chrono::duration<double>(ended.time_since_epoch()).count();
    if (i >= not_counted) times.steps_us.push_back(Microseconds(ended - began));
  }
  std::sort(times.steps_us.begin(), times.steps_us.end());
  return times;
}

void Print(const Times& times, const muster::Stats& stats) {
  std::printf(
      "{\"first_step_s\": %.6f, \"median_us\": %.2f, \"communication_us\": %.1f, "
      "\"overlap_us\": %.1f, \"buckets\": %zu, \"bytes\": %" PRId64 "}\n",
      times.first_step_s, times.steps_us[times.steps_us.size() / 2], stats.communication_ms * 1e3,
      stats.overlap_ms * 1e3, stats.bucket_bytes.size(),
      std::accumulate(stats.bucket_bytes.begin(), stats.bucket_bytes.end(), int64_t{0}));
}

int Main(const std::string& model, int64_t steps, bool is_bare, bool on_gpu) {
  at::set_num_threads(1);
  // Before all else of LibTorch, which looks for CUDA once.
  std::optional<muster::World> world;
  if (on_gpu) {
    world = muster::init(muster::InitOptions().backend("nccl"));
  } else if (!is_bare) {
    world = muster::init();
  }
  const at::Device device = on_gpu ? world->device() : at::Device(at::kCPU);
  const std::shared_ptr<Net> net = Make(model);
  net->to(device);
  const at::Tensor inputs = at::randn({kBatch, 784}).to(device);
  const at::Tensor targets = at::randint(kClasses, {kBatch}, at::kLong).to(device);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  const auto loss_of = [&](const at::Tensor& outputs) {
    return torch::nn::functional::cross_entropy(outputs, targets);
  };
  // A GPU works on after the calls have returned.
  const auto finish = [&](const at::Tensor& loss) {
    if (on_gpu) loss.item<float>();
  };
  if (is_bare) {
    Print(Measure(steps,
                  [&] {
                    optimizer.zero_grad();
                    const at::Tensor loss = loss_of(net->forward(inputs));
                    loss.backward();
                    optimizer.step();
                    finish(loss);
                  }),
          {});
    return 0;
  }
  muster::DistributedDataParallel ddp(net, *world);
  const Times times = Measure(steps, [&] {
    optimizer.zero_grad();
    const at::Tensor loss = loss_of(ddp(inputs));
    ddp.backward(loss);
    optimizer.step();
    finish(loss);
  });
  if (world->leader()) Print(times, ddp.stats());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: ddp_steps small|medium|large|conv STEPS [--bare] [--nccl]\n", stderr);
    return 2;
  }
  const std::vector<std::string> flags(argv + 3, argv + argc);
  const auto has = [&](const char* flag) {
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  };
  return Main(argv[1], std::atoll(argv[2]), has("--bare"), has("--nccl"));
}
