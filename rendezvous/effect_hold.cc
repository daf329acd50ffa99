#include "rendezvous/effect_hold.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace muster {
namespace {

bool IsAck(const RoundEffect& effect) {
  const auto* send = std::get_if<SendTo>(&effect);
  return send != nullptr && std::holds_alternative<HeartbeatAck>(send->message);
}

}  // namespace

void EffectHold::Add(JobEffects job) {
  const bool has_changed =
      !job.effects.empty() && std::holds_alternative<Persist>(job.effects.front());
  const auto found = lines_.find(job.serial);
  if (!has_changed && found == lines_.end()) {
    ready_.push_back(std::move(job));
    return;
  }
  Line& line = lines_[job.serial];
  if (has_changed) {
    ++line.latest;
    unwritten_.insert(job.serial);
    job.effects.erase(job.effects.begin());
  }
  const auto acks = std::stable_partition(job.effects.begin(), job.effects.end(),
                                          [](const RoundEffect& effect) { return !IsAck(effect); });
  if (acks != job.effects.end()) {
    JobEffects passing{job.serial, job.job_id, job.instance, {}};
    passing.effects.assign(std::make_move_iterator(acks),
                           std::make_move_iterator(job.effects.end()));
    job.effects.erase(acks, job.effects.end());
    ready_.push_back(std::move(passing));
  }
  if (job.effects.empty() && job.incidents.empty() && !job.afterwards) {
    ready_.push_back(std::move(job));
    return;
  }
  line.effects += job.effects.size();
  line.held.push_back({line.latest, std::move(job)});
}

std::vector<JobEffects> EffectHold::Take() { return std::exchange(ready_, {}); }

std::vector<JobRegistry::Serial> EffectHold::Begin() {
  if (!under_way_.empty()) return {};
  under_way_.assign(unwritten_.begin(), unwritten_.end());
  unwritten_.clear();
  for (const JobRegistry::Serial serial : under_way_) {
    Line& line = lines_.at(serial);
    line.writing = line.latest;
  }
  return under_way_;
}

void EffectHold::End(bool is_written) {
  for (const JobRegistry::Serial serial : std::exchange(under_way_, {})) {
    if (!is_written) {
      unwritten_.insert(serial);
      continue;
    }
    Line& line = lines_.at(serial);
    line.written = line.writing;
    while (!line.held.empty() && line.held.front().version <= line.written) {
      line.effects -= line.held.front().job.effects.size();
      ready_.push_back(std::move(line.held.front().job));
      line.held.pop_front();
    }
    if (line.latest == line.written) lines_.erase(serial);
  }
}

size_t EffectHold::HeldOf(JobRegistry::Serial job) const {
  const auto found = lines_.find(job);
  return found == lines_.end() ? 0 : found->second.effects;
}

}  // namespace muster
