#include "rendezvous/unknown_job.h"

#include <cstddef>

#include "base/nearest_word.h"

namespace muster {
namespace {

constexpr size_t kListedMax = 5;

std::string Listed(const std::vector<std::string>& known) {
  if (known.empty()) return "it has none";
  std::string text = "it has ";
  for (size_t i = 0; i < known.size() && i < kListedMax; ++i) {
    text += (i == 0 ? "'" : ", '") + known[i] + "'";
  }
  if (known.size() > kListedMax) {
    text += " and " + std::to_string(known.size() - kListedMax) + " more";
  }
  return text;
}

}  // namespace

absl::Status UnknownJob(const std::string& job_id, const std::vector<std::string>& known) {
  const std::string nearest = NearestWord(job_id, known);
  return absl::NotFoundError("there is no job '" + job_id + "' at this master: " +
                             (nearest.empty() ? Listed(known) : "did you mean '" + nearest + "'?"));
}

}  // namespace muster
