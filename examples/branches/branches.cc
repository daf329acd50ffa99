// A model whose steps do not use all of its parameters: see --help, and docs/TRAINING.md.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <muster/torch.h>
#include <sysexits.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "examples/shared/flags.h"
#include "examples/shared/program.h"

namespace branches {
namespace {

const char kHelp[] =
    R"(usage: branches [OPTION…]
       muster run --nproc-per-node 2 branches [OPTION…]

Teaches a network the sine. It has three experts, and in each step each rank takes one of them, by
chance: the parameters of the others get no gradient there, nor anywhere if no rank took them.

  --steps N         default 300
  --seed N          default 1
  --no-find-unused  leave find_unused_parameters off: the first step ends with an UnusedParameter on
                    every rank, with the names

Exit codes: 0 trained, and all ranks hold the same parameters; 1 they do not; 2 usage; 69 the
backend cannot run here; 70 any other error, UnusedParameter among them; 75 another worker was lost;
78 the launcher's environment is incomplete.
)";

constexpr int64_t kExperts = 3, kWidth = 32, kBatch = 64;

struct Options {
  int64_t steps = 300;
  uint64_t seed = 1;
  bool find_unused = true;
};

struct Net : torch::nn::Module {
  Net() {
    for (int64_t i = 0; i < kExperts; ++i) experts->push_back(torch::nn::Linear(kWidth, kWidth));
  }
  at::Tensor forward(const at::Tensor& x, int64_t expert) {
    const at::Tensor y = at::tanh(first(x));
    return last(
        at::tanh(experts[static_cast<size_t>(expert)]->as<torch::nn::Linear>()->forward(y)));
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(1, kWidth));
  torch::nn::ModuleList experts = register_module("experts", torch::nn::ModuleList());
  torch::nn::Linear last = register_module("last", torch::nn::Linear(kWidth, 1));
};

at::Tensor Loss(const at::Tensor& guess, const at::Tensor& x) {
  return torch::nn::functional::mse_loss(guess, at::sin(x));
}

// Prints how good each expert is, and how many of all ranks' steps had it.
void Report(const muster::World& world, Net& net, const at::Tensor& taken) {
  world.all_reduce(taken);
  if (!world.leader()) return;
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::linspace(-3, 3, 101).unsqueeze(1).to(world.device());
  for (int64_t i = 0; i < kExperts; ++i) {
    std::printf("expert %ld  taken %ld times  loss %.4f\n", static_cast<long>(i),
                static_cast<long>(taken[i].item<int64_t>()),
                Loss(net.forward(x, i), x).item<double>());
  }
}

int Run(const muster::Identity& self, const Options& options) {
  at::set_num_threads(1);
  const muster::World world = muster::init(self, muster::InitOptions());
  world.seed(options.seed);  // so that each rank takes other experts and other numbers
  auto net = std::make_shared<Net>();
  net->to(world.device());
  muster::DistributedDataParallel<Net> ddp(
      net, world, muster::DDPOptions().find_unused_parameters(options.find_unused));
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.01));
  const at::Tensor taken = at::zeros({kExperts}, at::kLong);

  world.agent().ready();
  for (int64_t step = 1; step <= options.steps; ++step) {
    const auto expert = at::randint(kExperts, {1}).item<int64_t>();
    const at::Tensor x = at::rand({kBatch, 1}).mul(6).sub(3).to(world.device());
    ddp.zero_grad();
    ddp.backward(Loss(ddp(x, expert), x));
    optimizer.step();
    taken[expert] += 1;
    world.agent().step(step);
  }
  Report(world, *net, taken);
  const double difference = ddp.max_parameter_difference();
  if (world.leader()) {
    std::printf("parameters  max difference over %d ranks: %.2g  %s\n", world.size(), difference,
                difference == 0 ? "ok" : "NOT OK");
  }
  return difference == 0 ? EX_OK : EXIT_FAILURE;
}

}  // namespace
}  // namespace branches

int main(int argc, char** argv) {
  return examples::RunProgram([&](const muster::Identity& self) {
    branches::Options options;
    examples::Flags flags;
    flags.Count("--steps", options.steps, 1, "a number of steps from 1 on");
    flags.Seed("--seed", options.seed);
    flags.Switch("--no-find-unused", options.find_unused, false);
    if (flags.Parse({argv + 1, argv + argc})) return branches::Run(self, options);
    std::fputs(branches::kHelp, stdout);
    return EX_OK;
  });
}
