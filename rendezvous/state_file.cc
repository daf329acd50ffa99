#include "rendezvous/state_file.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <vector>

#include "base/crc32c.h"

namespace muster {
namespace {

constexpr absl::string_view kName = "muster-state";
constexpr size_t kFields = 5;

}  // namespace

std::string StateFileText(const StoredValue& value) {
  const std::string length_and_key = absl::StrCat(value.value.size(), " ", value.key, "\n");
  const std::string covered = absl::StrCat(kStateVersion, " ", length_and_key, value.value);
  return absl::StrCat(kName, " ", kStateVersion, " ", absl::Hex(Crc32c(covered), absl::kZeroPad8),
                      " ", length_and_key, value.value);
}

absl::StatusOr<StoredValue> ParseStateFile(absl::string_view text) {
  const size_t line_end = text.find('\n');
  const absl::string_view line = text.substr(0, line_end);
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
  if (fields.empty() || fields.front() != kName)
    return absl::DataLossError("it is not a state file of muster");
  int version = 0;
  if (fields.size() == kFields && line_end != text.npos && absl::SimpleAtoi(fields[1], &version) &&
      version > kStateVersion) {
    return absl::UnimplementedError(
        absl::StrCat("it has version ", version, " and this program knows ", kStateVersion));
  }
  if (fields.size() != kFields || line_end == text.npos) {
    return absl::DataLossError("its first line is damaged");
  }
  StoredValue value{std::string(fields[4]), std::string(text.substr(line_end + 1))};
  size_t length = 0;
  if (absl::SimpleAtoi(fields[3], &length) && value.value.size() < length) {
    return absl::DataLossError(
        absl::StrCat("it is cut short: ", value.value.size(), " of ", length, " bytes are there"));
  }
  // One form only: what would not be written like this has been changed.
  if (StateFileText(value) != text) return absl::DataLossError("its checksum does not match");
  return value;
}

}  // namespace muster
