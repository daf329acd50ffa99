// A trainer with its own options, its own loop, and a thread of its own that prepares batches. It
// learns to tell two spirals apart.
#include <muster/torch.h>
#include <torch/torch.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

namespace {

struct Options {
  int64_t epochs = 60, batch = 64, seed = 1;
  double lr = 0.2;
};

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (std::strcmp(argv[i], "--epochs") == 0 && value) {
      options.epochs = std::atoll(argv[++i]);
    } else if (std::strcmp(argv[i], "--batch") == 0 && value) {
      options.batch = std::atoll(argv[++i]);
    } else if (std::strcmp(argv[i], "--seed") == 0 && value) {
      options.seed = std::atoll(argv[++i]);
    } else if (std::strcmp(argv[i], "--lr") == 0 && value) {
      options.lr = std::atof(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: %s [--epochs N] [--batch N] [--seed N] [--lr X]\n", argv[0]);
      std::exit(2);
    }
  }
  return options;
}

struct Batch {
  torch::Tensor points, colours;
};

Batch Spirals(int64_t count) {
  const auto turn = torch::rand({count}).sqrt() * 9;
  const auto colours = torch::arange(count) % 2;
  const auto angle = turn + colours * M_PI;
  const auto points = torch::stack({turn * angle.cos(), turn * angle.sin()}, 1) / 9;
  return {points + torch::randn({count, 2}) * 0.02, colours};
}

// Cuts batches out of the data in the given order, one batch ahead of the loop.
class Feeder {
 public:
  Feeder(const Batch& data, std::vector<size_t> order, int64_t batch)
      : thread_([this, data, order = std::move(order), batch] { Run(data, order, batch); }) {}
  ~Feeder() { thread_.join(); }

  std::optional<Batch> Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !ready_.empty(); });
    if (ready_.empty()) return std::nullopt;
    Batch batch = ready_.front();
    ready_.pop_front();
    changed_.notify_all();
    return batch;
  }

 private:
  void Run(const Batch& data, const std::vector<size_t>& order, int64_t size) {
    const auto indices = torch::tensor(std::vector<int64_t>(order.begin(), order.end()));
    for (const auto& some : indices.split(size)) {
      Batch batch{data.points.index_select(0, some), data.colours.index_select(0, some)};
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ready_.size() < 2; });
      ready_.push_back(batch);
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  bool ended_ = false;
  std::thread thread_;
};

struct Net : torch::nn::Module {
  Net() {
    in = register_module("in", torch::nn::Linear(2, 64));
    middle = register_module("middle", torch::nn::Linear(64, 64));
    out = register_module("out", torch::nn::Linear(64, 2));
  }
  torch::Tensor forward(torch::Tensor x) { return out(torch::tanh(middle(torch::tanh(in(x))))); }
  torch::nn::Linear in{nullptr}, middle{nullptr}, out{nullptr};
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  const muster::World world = muster::init();
  torch::manual_seed(options.seed);
  const Batch data = Spirals(2000), test = Spirals(500);
  auto net = std::make_shared<Net>();
  torch::optim::SGD optimizer(net->parameters(),
                              torch::optim::SGDOptions(options.lr).momentum(0.9));
  muster::DistributedDataParallel ddp(net, world);
  muster::DistributedSampler sampler(2000, world, muster::SamplerOptions().seed(options.seed));

  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    sampler.set_epoch(epoch);
    Feeder feeder(data, sampler.indices(), options.batch);
    while (const auto batch = feeder.Next()) {
      optimizer.zero_grad();
      ddp.backward(torch::nn::functional::cross_entropy(ddp(batch->points), batch->colours));
      optimizer.step();
    }
  }

  const torch::NoGradGuard no_grad;
  const auto right = net->forward(test.points).argmax(1).eq(test.colours).sum().item<int64_t>();
  if (world.leader()) std::printf("%ld of 500 points told apart\n", static_cast<long>(right));
  return right > 450 ? 0 : 1;
}
