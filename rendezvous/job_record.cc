#include "rendezvous/job_record.h"

#include <chrono>

namespace muster {
namespace {

bool IsPlain(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

}  // namespace

std::string RecordKey(const std::string& job_id, uint64_t instance) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string key = "jobs/";
  for (const char c : job_id) {
    if (IsPlain(c)) {
      key += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    key += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return key + "/" + std::to_string(instance);
}

std::optional<Duration> NeededFor(const JobRecord& record) {
  if (record.stage != JobRecord::Stage::kClosed) return std::nullopt;
  const Duration day = std::chrono::hours(24);
  return day + record.settings.value_or(JobSettings()).master_loss_timeout;
}

}  // namespace muster
