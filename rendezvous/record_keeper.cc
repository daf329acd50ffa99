#include "rendezvous/record_keeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstRetry = 100ms;
constexpr Duration kLongestRetry = 5s;

// An agent is told a few things at most for each thing that it says; a generation of ten thousand
// nodes that begins and ends while the store is away stays below.
constexpr size_t kHeldMax = 100'000;

}  // namespace

RecordKeeper::RecordKeeper(const JobRegistry* registry, Write write)
    : registry_(registry), write_(std::move(write)) {}

void RecordKeeper::Restored(const MasterState& state) {
  master_ = state.master;
  JobRegistry::Serial serial = 0;
  for (const JobRecord& record : state.jobs) {
    keys_[++serial] = RecordKey(record.job_id, record.instance);
  }
}

std::vector<JobEffects> RecordKeeper::Pass(Time now, std::vector<JobEffects> all) {
  if (!write_) return all;
  for (JobEffects& job : all) hold_.Add(std::move(job));
  if (retry_at_ == kNever || now >= retry_at_) BeginWrite();
  return hold_.Take();
}

std::vector<JobEffects> RecordKeeper::Answered(Time now, const absl::Status& status) {
  trouble_ = status;
  const std::optional<MasterRecord> master = std::exchange(master_writing_, std::nullopt);
  hold_.End(status.ok());
  std::map<JobRegistry::Serial, std::string> written = std::exchange(writing_, {});
  if (!status.ok()) {
    const Duration wait = kFirstRetry * (1 << std::min(failures_++, 6));
    if (!absl::IsFailedPrecondition(status)) retry_at_ = now + std::min(wait, kLongestRetry);
    return {};
  }
  failures_ = 0;
  master_ = master.value_or(master_);
  for (auto& [serial, key] : written) {
    if (key.empty()) {
      keys_.erase(serial);
    } else {
      keys_[serial] = std::move(key);
    }
  }
  return Pass(now, {});
}

bool RecordKeeper::IsFull(JobRegistry::Serial job) const { return hold_.HeldOf(job) > kHeldMax; }

void RecordKeeper::BeginWrite() {
  if (IsWriting()) return;
  retry_at_ = kNever;
  // By itself: what is forgotten goes when its number is there to stay.
  if (registry_->Master() != master_) {
    master_writing_ = registry_->Master();
    return write_({{kMasterKey, {}, master_writing_}});
  }
  const std::vector<JobRegistry::Serial> changed = hold_.Begin();
  if (changed.empty()) return;
  std::vector<RecordChange> changes;
  for (const JobRegistry::Serial serial : changed) {
    std::optional<JobRecord> record = registry_->Record(serial);
    const std::string key = record ? RecordKey(record->job_id, record->instance) : "";
    const auto known = keys_.find(serial);
    // Forgotten, or an older instance than its master had thought.
    if (known != keys_.end() && known->second != key) changes.push_back({known->second, {}});
    if (record) changes.push_back({key, std::move(record)});
    writing_[serial] = key;
  }
  if (!changes.empty()) return write_(std::move(changes));
  hold_.End(true);  // ended and forgotten before anything was kept
  writing_.clear();
}

}  // namespace muster
