#include <muster/learning_rate.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace muster {
namespace {

double Line(double base, double from, int64_t steps, int64_t total) {
  const int64_t done = std::min(steps, total);
  return base * (from + (1 - from) * static_cast<double>(done) / static_cast<double>(total));
}

}  // namespace

double linear_scaled_lr(double lr, const World& world, int reference_world) {
  if (reference_world < 1) throw Error("linear_scaled_lr: reference_world must be at least 1");
  return lr * world.size() / reference_world;
}

Schedule::Schedule(torch::optim::Optimizer& optimizer)
    : LRScheduler(optimizer), base_(get_current_lrs()) {}

std::vector<double> Schedule::get_lrs() {
  std::vector<double> rates;
  for (const double base : base_) rates.push_back(rate(base, step_count_));
  return rates;
}

std::string Schedule::snapshot() const {
  const int64_t count = steps();
  return {reinterpret_cast<const char*>(&count), sizeof count};
}

void Schedule::check(std::string_view bytes) const {
  if (bytes.size() != sizeof(int64_t)) throw CheckpointError("it is no schedule's state");
}

void Schedule::restore(std::string_view bytes) {
  check(bytes);
  int64_t count = 0;
  std::memcpy(&count, bytes.data(), sizeof count);
  step_count_ = static_cast<unsigned>(count);
  step();
}

Warmup::Warmup(torch::optim::Optimizer& optimizer, int64_t steps, double from)
    : Schedule(optimizer), total_(steps), from_(from) {
  if (steps < 1) throw Error("Warmup: it takes at least 1 step");
  step();
}

double Warmup::rate(double base, int64_t steps) const { return Line(base, from_, steps, total_); }

Cosine::Cosine(torch::optim::Optimizer& optimizer, int64_t steps, CosineOptions options)
    : Schedule(optimizer), total_(steps), options_(std::move(options)) {
  if (options_.warmup() < 0 || steps <= options_.warmup()) {
    throw Error("Cosine: it takes more steps than its warm-up");
  }
  step();
}

double Cosine::rate(double base, int64_t steps) const {
  if (steps < options_.warmup()) return Line(base, options_.from(), steps, options_.warmup());
  const auto done = static_cast<double>(std::min(steps, total_) - options_.warmup());
  const auto all = static_cast<double>(total_ - options_.warmup());
  const double floor = options_.min_lr();
  return floor + (base - floor) * (1 + std::cos(std::numbers::pi * done / all)) / 2;
}

}  // namespace muster
