#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randperm.h>
#include <muster/sampler.h>
#include <torch/serialize/archive.h>

#include <cstring>
#include <numeric>

#include "worker_sdk/data_split.h"

namespace muster {

std::vector<int64_t> EpochOrder(size_t n, uint64_t seed, bool shuffle, size_t epoch) {
  std::vector<int64_t> order(n);
  if (shuffle) {
    const auto generator = at::detail::createCPUGenerator(seed + epoch);
    const at::Tensor shuffled = at::randperm(static_cast<int64_t>(n), generator);
    std::memcpy(order.data(), shuffled.data_ptr<int64_t>(), n * sizeof order[0]);
  } else {
    std::iota(order.begin(), order.end(), 0);
  }
  return order;
}

// The order of an epoch over all ranks is order[0], order[1], … and, where it must be filled up,
// order[0] again. This rank takes every `ranks`-th from `base + rank` on. `base` is 0, or where
// another number of ranks had got to.
struct DistributedSampler::Shared {
  size_t n = 0, rank = 0, ranks = 1;
  SamplerOptions options;
  size_t epoch = 0;
  size_t base = 0;
  size_t consumed = 0;    // of this rank's share after `base`
  size_t handed_out = 0;  // likewise; at least `consumed` while a loader reads ahead
  bool ran_out = false;   // next() said so in this process
  std::vector<int64_t> order;
  size_t order_epoch = SIZE_MAX;
  std::shared_ptr<PassLog> log;  // for the check; null: there is one rank

  size_t Share() const {
    const size_t left = n > base ? n - base : 0;
    return options.drop_last() ? left / ranks : (left + ranks - 1) / ranks;
  }

  const std::vector<int64_t>& Order() {
    if (order_epoch == epoch) return order;
    order = EpochOrder(n, options.seed(), options.shuffle(), epoch);
    order_epoch = epoch;
    return order;
  }

  size_t At(size_t i) { return static_cast<size_t>(Order()[(base + i * ranks + rank) % n]); }

  void Record(size_t from, const std::vector<size_t>& batch) {
    if (!log || !PassesAreRecorded()) return;
    log->Add({n, rank, ranks, options.seed(), options.shuffle(), epoch, base}, Order(), from,
             batch);
  }

  void EndPass() const {
    if (log) log->Close();
  }

  void Rewind() {
    EndPass();
    base = consumed = handed_out = 0;
    ran_out = false;
  }
};

DistributedSampler::DistributedSampler(size_t n, const World& world, SamplerOptions options)
    : DistributedSampler(n, world.rank(), world.size(), std::move(options)) {}

DistributedSampler::DistributedSampler(size_t n, int rank, int ranks, SamplerOptions options)
    : shared_(std::make_shared<Shared>()) {
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    throw Error("DistributedSampler: rank " + std::to_string(rank) + " of " +
                std::to_string(ranks) + " is no rank");
  }
  if (n == 0) throw Error("DistributedSampler: the data set is empty");
  shared_->n = n;
  shared_->rank = static_cast<size_t>(rank);
  shared_->ranks = static_cast<size_t>(ranks);
  shared_->options = std::move(options);
  if (ranks > 1) shared_->log = NewPassLog(shared_->ranks);
}

void DistributedSampler::set_epoch(size_t epoch) {
  if (epoch == shared_->epoch) return;
  shared_->epoch = epoch;
  shared_->Rewind();
}

size_t DistributedSampler::epoch() const { return shared_->epoch; }

size_t DistributedSampler::size() const {
  Shared whole = {};
  whole.n = shared_->n;
  whole.ranks = shared_->ranks;
  whole.options = shared_->options;
  return whole.Share();
}

size_t DistributedSampler::remaining() const { return shared_->Share() - shared_->consumed; }

void DistributedSampler::consumed(size_t local) {
  shared_->consumed = std::min(shared_->consumed + local, shared_->Share());
}

std::vector<size_t> DistributedSampler::indices() const {
  std::vector<size_t> rest;
  for (size_t i = shared_->consumed; i < shared_->Share(); ++i) rest.push_back(shared_->At(i));
  return rest;
}

size_t DistributedSampler::position() const {
  return shared_->base + shared_->consumed * shared_->ranks;
}

void DistributedSampler::reset(std::optional<size_t> new_size) {
  if (new_size && *new_size != shared_->n) {
    throw Error("DistributedSampler: the data set changed from " + std::to_string(shared_->n) +
                " to " + std::to_string(*new_size) + " samples");
  }
  // Going over the same epoch again. After restore() an epoch that was done stays done.
  if (shared_->ran_out && shared_->consumed >= shared_->Share()) shared_->Rewind();
  shared_->EndPass();
  shared_->handed_out = shared_->consumed;
}

std::optional<std::vector<size_t>> DistributedSampler::next(size_t batch_size) {
  const size_t end = std::min(shared_->handed_out + batch_size, shared_->Share());
  if (shared_->handed_out == end) {
    shared_->ran_out = true;
    shared_->EndPass();
    return std::nullopt;
  }
  const size_t from = shared_->handed_out;
  std::vector<size_t> batch;
  for (; shared_->handed_out < end; ++shared_->handed_out) {
    batch.push_back(shared_->At(shared_->handed_out));
  }
  shared_->Record(from, batch);
  return batch;
}

namespace {

struct Snapshot {
  uint64_t n, seed, shuffle, epoch, position;
};

}  // namespace

std::string DistributedSampler::snapshot() const {
  const Snapshot snapshot{shared_->n, shared_->options.seed(), shared_->options.shuffle(),
                          shared_->epoch, position()};
  return {reinterpret_cast<const char*>(&snapshot), sizeof snapshot};
}

void DistributedSampler::check(std::string_view bytes) const {
  Snapshot snapshot{};
  if (bytes.size() != sizeof snapshot) throw CheckpointError("it is no sampler's state");
  std::memcpy(&snapshot, bytes.data(), sizeof snapshot);
  const auto require = [](const char* what, uint64_t theirs, uint64_t ours) {
    if (theirs == ours) return;
    throw CheckpointError(std::string("the sampler had ") + what + " " + std::to_string(theirs) +
                          ", now it has " + std::to_string(ours));
  };
  require("a data set of size", snapshot.n, shared_->n);
  require("seed", snapshot.seed, shared_->options.seed());
  require("shuffle", snapshot.shuffle, shared_->options.shuffle());
}

void DistributedSampler::restore(std::string_view bytes) {
  check(bytes);
  Snapshot snapshot{};
  std::memcpy(&snapshot, bytes.data(), sizeof snapshot);
  shared_->Rewind();
  shared_->epoch = snapshot.epoch;
  shared_->base = snapshot.position;
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  std::string bytes = snapshot();
  archive.write(
      "muster_sampler",
      at::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, at::kByte).clone(),
      /*is_buffer=*/true);
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  at::Tensor bytes;
  archive.read("muster_sampler", bytes, /*is_buffer=*/true);
  restore({reinterpret_cast<const char*>(bytes.data_ptr<uint8_t>()),
           static_cast<size_t>(bytes.numel())});
}

}  // namespace muster
