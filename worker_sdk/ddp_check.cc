#include "worker_sdk/ddp_check.h"

#include <ATen/ATen.h>
#include <errno.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <numeric>

#include "worker_sdk/check_settings.h"
#include "worker_sdk/checkpoint_file.h"
#include "worker_sdk/membership.h"

namespace muster {
namespace {

constexpr size_t kProbeTries = 8;
constexpr int64_t kProbeElements = 1 << 16;
constexpr int64_t kSamples = 1024;  // of each input

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

Mismatch Everywhere(const std::string& text, const std::string& parameter) {
  Mismatch error(text, parameter);
  error.everywhere = true;
  return error;
}

// Of some elements of each tensor, wherever it lies. Nothing if there are none.
std::optional<int64_t> BatchHash(const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard no_grad;
  std::string bytes;
  for (const at::Tensor& input : inputs) {
    if (!input.defined() || input.layout() != at::kStrided || input.numel() == 0) continue;
    const int64_t step = (input.numel() + kSamples - 1) / kSamples;
    const auto where = at::arange(0, input.numel(), step, input.options().dtype(at::kLong));
    const at::Tensor some = input.detach().take(where).cpu();
    bytes += c10::str(input.sizes(), input.scalar_type());
    bytes.append(static_cast<const char*>(some.const_data_ptr()), some.nbytes());
  }
  if (bytes.empty()) return std::nullopt;
  return static_cast<int64_t>(Hash64(bytes));
}

// Ranks that share their batch with another one.
std::vector<int> RanksWithTheSame(const at::Tensor& batches) {
  std::vector<int> ranks;
  for (int64_t rank = 0; rank < batches.size(0); ++rank) {
    for (int64_t other = 0; other < batches.size(0); ++other) {
      const bool counts = rank != other && batches[rank][0].item<int64_t>() != 0;
      if (!counts || !batches[rank].equal(batches[other])) continue;
      ranks.push_back(static_cast<int>(rank));
      break;
    }
  }
  return ranks;
}

// On a GPU the sum of the words, so that eight bytes leave it. It differs whenever one word does.
int64_t ReplicaHash(const at::Tensor& parameter) {
  if (!parameter.is_cuda()) return HashOf(parameter);
  const at::Tensor plain = parameter.detach();
  const at::Tensor real = plain.is_complex() ? at::view_as_real(plain.resolve_conj()) : plain;
  const at::ScalarType words = real.element_size() == 8   ? at::kLong
                               : real.element_size() == 4 ? at::kInt
                               : real.element_size() == 2 ? at::kShort
                                                          : at::kByte;
  return real.contiguous().view(words).sum(at::kLong).item<int64_t>();
}

// The type whose rounding the averaged gradients have.
at::ScalarType TypeOnTheWire(const CommHook& hook, const at::Tensor& parameter) {
  if (hook.name == "fp16") return at::kHalf;
  if (hook.name == "bf16") return at::kBFloat16;
  return parameter.scalar_type();
}

bool IsOwnHook(const CommHook& hook) {
  return hook.run && hook.name != "allreduce" && hook.name != "fp16" && hook.name != "bf16";
}

void Say(const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, text.c_str());
}

std::string Line(const char* title, const std::string& text, const char* verdict) {
  char line[512];
  std::snprintf(line, sizeof line, "\n%-17s %-76s %s", title, text.c_str(), verdict);
  return line;
}

}  // namespace

DdpCheck::DdpCheck(const World& world, Wrapper wrapper)
    : world_(world),
      options_(world.membership().options.check()),
      wrapper_(std::move(wrapper)),
      wants_inputs_(world.size() > 1 && options_.warn_of_same_batch()),
      split_(world) {
  options_.on(options_.on() && world.size() > 1);
  candidates_.resize(wrapper_.parameters.size());
  std::iota(candidates_.begin(), candidates_.end(), 0);
  const auto worth = [&](size_t i) {
    const int64_t elements = wrapper_.parameters[i].second.numel();
    return elements <= kProbeElements ? elements : -elements;
  };
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [&](size_t a, size_t b) { return worth(a) > worth(b); });
}

void DdpCheck::BeforeForward(const std::vector<at::Tensor>& inputs, bool training) {
  if (wants_inputs_) CompareInputs(inputs, training);
  if (!options_.on()) return;
  ++step_;
  const bool in_full = step_ == 1 || step_ % options_.every() == 0;
  if (in_full || probe_) AskAll(in_full);
  // Not the first step: the buckets are final after it, and a static graph reduces late in it.
  if (step_ == 2) ProbeNext();
}

void DdpCheck::AfterForward(bool reduces) {
  if (probe_) probe_->Listen(reduces ? step_ : 0);
}

void DdpCheck::CompareInputs(const std::vector<at::Tensor>& inputs, bool training) {
  wants_inputs_ = false;
  std::optional<int64_t> hash;
  try {
    if (training) hash = BatchHash(inputs);
  } catch (const std::exception&) {
    // An input of a kind that cannot be looked into. The others wait all the same.
  }
  const at::Tensor own = at::tensor({int64_t{hash.has_value()}, hash.value_or(0)}, at::kLong);
  const std::vector<int> same = RanksWithTheSame(world_.all_gather(own));
  if (same.empty() || !world_.leader()) return;
  const bool all = same.size() == static_cast<size_t>(world_.size());
  Say((all ? "all " + std::to_string(world_.size()) + " ranks" : RanksText(same)) +
      " began with the same batch: is the data split? muster::DistributedSampler gives each rank "
      "a part of its own");
}

void DdpCheck::AskAll(bool in_full) {
  constexpr int64_t kParameters = 0, kStep = 1, kSplit = 2;
  const SplitCheck::Digest split = split_.Own();
  std::vector<int64_t> own = {in_full ? ParametersHash() : 0, probe_ ? probe_->sample().step : 0};
  own.insert(own.end(), split.begin(), split.end());
  const at::Tensor all = world_.all_gather(at::tensor(own, at::kLong));
  if (all.select(1, kParameters).ne(all[0][kParameters]).any().item<bool>())
    wrapper_.name_difference();
  std::vector<SplitCheck::Digest> digests(static_cast<size_t>(world_.size()));
  std::vector<int64_t> steps;
  for (int rank = 0; rank < world_.size(); ++rank) {
    const auto* row = all[rank].const_data_ptr<int64_t>();
    steps.push_back(row[kStep]);
    std::copy_n(row + kSplit, split.size(), digests[static_cast<size_t>(rank)].begin());
  }
  if (in_full) split_.Judge(digests);
  if (probe_) JudgeGradients(steps);
  Report();
}

int64_t DdpCheck::ParametersHash() const {
  std::vector<int64_t> hashes;
  for (const auto& [name, parameter] : wrapper_.parameters)
    hashes.push_back(ReplicaHash(parameter));
  return HashOf(at::tensor(hashes, at::kLong));
}

void DdpCheck::ProbeNext() {
  probe_ = std::make_unique<GradientProbe>(wrapper_.parameters[candidates_[tries_]].second,
                                           wrapper_.reduced);
}

void DdpCheck::JudgeGradients(const std::vector<int64_t>& steps) {
  const bool everybody = steps[0] != 0 && std::all_of(steps.begin(), steps.end(),
                                                      [&](int64_t s) { return s == steps[0]; });
  if (everybody && JudgeSample()) return probe_.reset();
  if (++tries_ < std::min(kProbeTries, candidates_.size())) return ProbeNext();
  probe_.reset();
  gradients_ = "none came that could be compared: unused, sparse or not finite";
  verdict_ = "?";
}

// False: it says nothing. Collective.
bool DdpCheck::JudgeSample() {
  const GradientSample& sample = probe_->sample();
  const auto& [name, parameter] = wrapper_.parameters[candidates_[tries_]];
  const bool came =
      sample.delivered.defined() && !sample.delivered.is_sparse() && sample.delivered.numel() > 0;
  const at::Tensor own =
      at::tensor({int64_t{came}, came ? HashOf(sample.delivered) : 0}, at::kLong);
  const at::Tensor all = world_.all_gather(own);
  if (!all.select(1, 0).all().item<bool>()) return false;
  const std::string where =
      "gradient of parameter " + name + " in step " + std::to_string(sample.step) + " is ";
  std::vector<int> apart;
  for (int rank = 1; rank < world_.size(); ++rank) {
    if (!all[rank].equal(all[0])) apart.push_back(rank);
  }
  if (!apart.empty()) {
    throw Everywhere("the " + where + "not on " + RanksText(apart) +
                         " what it is on rank 0 after backward: was it changed on some ranks?",
                     name);
  }
  const at::Tensor sums = at::stack({sample.own.flatten(), sample.magnitude.flatten()}).cpu();
  world_.all_reduce(sums);
  sums.div_(world_.size());
  const at::Tensor delivered = Wide(sample.delivered).flatten().cpu();
  if (!sums.isfinite().all().item<bool>() || !delivered.isfinite().all().item<bool>()) return false;
  const Rounding rounding =
      RoundingOf(IsOwnHook(wrapper_.hook) ? at::kBFloat16 : TypeOnTheWire(wrapper_.hook, parameter),
                 world_.size());
  const at::Tensor off = (delivered - sums[0]).abs();
  const double worst = off.max().item<double>();
  const bool ok = off.le(sums[1] * rounding.relative + rounding.absolute).all().item<bool>();
  gradients_ = name + " in step " + std::to_string(sample.step) +
               ": max difference from the ranks' mean: " + Number(worst);
  if (ok) return true;
  const std::string wrong =
      "the " + where + "not the mean of the ranks' own, but off by up to " + Number(worst);
  if (!IsOwnHook(wrapper_.hook)) {
    throw Everywhere(wrong + ": was it changed during backward?", name);
  }
  verdict_ = "?";
  if (world_.leader()) Say(wrong + ": is the hook '" + wrapper_.hook.name + "' meant to do that?");
  return true;
}

void DdpCheck::Report() {
  if (reported_ || gradients_.empty()) return;
  reported_ = true;
  if (!world_.leader()) return;
  const std::string ranks = std::to_string(world_.size()) + " ranks";
  Say("check of " + ranks + ", " + EveryText(options_) +
      (split_.answer().empty()
           ? Line("data split", "no DistributedSampler of " + ranks + " that could be compared",
                  "?")
           : Line("data split", split_.answer(), "ok")) +
      Line("parameters", "equal bit for bit on " + ranks, "ok") +
      Line("gradients", gradients_, verdict_));
}

}  // namespace muster
