#include "launcher/hostlist.h"

#include <charconv>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/option_values.h"

namespace muster {
namespace {

constexpr size_t kHostsMax = 65536;
constexpr size_t kDigitsMax = 9;

using Names = std::vector<std::string>;

absl::Status Bad(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is no list of hosts (", why, "): give it as in gpu[01-03,7]"));
}

bool ReadNumber(absl::string_view digits, int* number) {
  if (digits.empty() || digits.size() > kDigitsMax) return false;
  for (char c : digits) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  return std::from_chars(digits.data(), digits.data() + digits.size(), *number).ec == std::errc();
}

std::string Padded(int number, size_t width) {
  std::string digits = absl::StrCat(number);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

// "01-03,7" to 01, 02, 03, 7.
absl::StatusOr<Names> ExpandRanges(absl::string_view ranges) {
  Names numbers;
  for (absl::string_view range : absl::StrSplit(ranges, ',')) {
    std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    const bool single = range.find('-') == absl::string_view::npos;
    int first = 0, last = 0;
    if (!ReadNumber(ends.first, &first) || !ReadNumber(single ? ends.first : ends.second, &last)) {
      return Bad(ranges, "not a range of numbers");
    }
    if (last < first) return Bad(ranges, "a range runs backwards");
    if (static_cast<size_t>(last - first) + numbers.size() >= kHostsMax) {
      return Bad(ranges, "too many hosts");
    }
    for (int number = first; number <= last; ++number) {
      numbers.push_back(Padded(number, ends.first.size()));
    }
  }
  return numbers;
}

// Every name of `left` followed by every one of `right`.
absl::StatusOr<Names> Joined(const Names& left, const Names& right, absl::string_view item) {
  if (left.size() * right.size() > kHostsMax) return Bad(item, "too many hosts");
  Names names;
  for (const std::string& head : left) {
    for (const std::string& tail : right) names.push_back(head + tail);
  }
  return names;
}

// One item between the commas outside of brackets: "a[1-2]b[3]".
absl::StatusOr<Names> ExpandItem(absl::string_view item) {
  if (item.empty()) return Bad(item, "an empty name");
  Names names = {""};
  absl::string_view rest = item;
  while (!rest.empty()) {
    const size_t open = rest.find('[');
    const absl::string_view plain = rest.substr(0, open);
    if (plain.find(']') != plain.npos) return Bad(item, "a bracket is not opened");
    for (std::string& name : names) absl::StrAppend(&name, plain);
    if (open == rest.npos) break;
    const size_t close = rest.find(']', open);
    if (close == rest.npos) return Bad(item, "a bracket is not closed");
    absl::StatusOr<Names> numbers = ExpandRanges(rest.substr(open + 1, close - open - 1));
    if (!numbers.ok()) return numbers.status();
    absl::StatusOr<Names> joined = Joined(names, *numbers, item);
    if (!joined.ok()) return joined.status();
    names = *std::move(joined);
    rest = rest.substr(close + 1);
  }
  return names;
}

// Cuts at the commas that are outside of brackets.
std::vector<absl::string_view> Items(absl::string_view text) {
  std::vector<absl::string_view> items;
  size_t start = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == ']') inside = text[i] == '[';
    if (text[i] != ',' || inside) continue;
    items.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  items.push_back(text.substr(start));
  return items;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHostlist(absl::string_view text) {
  Names hosts;
  for (absl::string_view item : Items(text)) {
    absl::StatusOr<Names> names = ExpandItem(item);
    if (!names.ok()) return names.status();
    if (hosts.size() + names->size() > kHostsMax) return Bad(text, "too many hosts");
    hosts.insert(hosts.end(), names->begin(), names->end());
  }
  return hosts;
}

}  // namespace muster
