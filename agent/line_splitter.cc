#include "agent/line_splitter.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

bool ContainsOneOf(std::string_view line, const std::vector<std::string>& needles) {
  return std::any_of(needles.begin(), needles.end(), [line](const std::string& needle) {
    return line.find(needle) != std::string_view::npos;
  });
}

}  // namespace

void LineSplitter::Feed(std::string_view data, std::string_view prefix, std::string* out,
                        const LineFilter* filter) {
  if (std::exchange(ended_at_return_, false) && !data.empty() && data[0] == '\n') {
    // "\r\n" that came in two pieces.
    out->push_back('\n');
    data.remove_prefix(1);
  }
  size_t begin = 0;
  for (size_t at = data.find('\r'); at != data.npos; at = data.find('\r', at + 1)) {
    if (at + 1 < data.size() && data[at + 1] == '\n') continue;
    FeedLines(data.substr(begin, at + 1 - begin), prefix, out, filter);
    EndAtReturn(prefix, out, filter);
    begin = at + 1;
    ended_at_return_ = begin == data.size();
  }
  FeedLines(data.substr(begin), prefix, out, filter);
}

void LineSplitter::EndAtReturn(std::string_view prefix, std::string* out,
                               const LineFilter* filter) {
  // A line that is passed on in pieces goes on: who overwrites it is still the same.
  if (in_long_line_) return;
  if (held_ == "\r") {
    held_.clear();
  } else if (!held_.empty()) {
    Emit("", prefix, out, filter);
  }
}

void LineSplitter::FeedLines(std::string_view data, std::string_view prefix, std::string* out,
                             const LineFilter* filter) {
  while (!data.empty()) {
    const size_t newline = data.find('\n');
    if (newline != std::string_view::npos) {
      Emit(data.substr(0, newline + 1), prefix, out, filter);
      in_long_line_ = false;
      data.remove_prefix(newline + 1);
      continue;
    }
    if (in_long_line_ || held_.size() + data.size() > kLineBytesHeld) {
      Emit(data, prefix, out, filter);
      in_long_line_ = true;
    } else {
      held_ += data;
    }
    return;
  }
}

void LineSplitter::Finish(std::string_view prefix, std::string* out, const LineFilter* filter) {
  if (in_long_line_ || !held_.empty()) Feed("\n", prefix, out, filter);
}

void LineSplitter::Break(std::string* out) {
  if (in_long_line_) out->push_back('\n');
  in_long_line_ = false;
}

void LineSplitter::Emit(std::string_view rest, std::string_view prefix, std::string* out,
                        const LineFilter* filter) {
  if (in_long_line_) {
    out->append(rest);
    return;
  }
  const size_t begin = out->size();
  out->append(prefix).append(held_).append(rest);
  held_.clear();
  if (filter == nullptr) return;
  const std::string_view shown = std::string_view(*out).substr(begin);
  if (!ContainsOneOf(shown.substr(prefix.size()), *filter->needles)) return;
  filter->matches->append(shown);
  if (shown.back() != '\n') filter->matches->push_back('\n');
}

std::string_view LastLines(std::string_view text, int lines, bool cut) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  size_t begin = text.size();
  size_t end = text.size();
  for (int i = 0; i < lines; ++i) {
    const size_t newline = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    if (newline == std::string_view::npos) {
      const size_t first_end = text.find('\n');
      return cut && first_end != std::string_view::npos ? text.substr(first_end + 1) : text;
    }
    begin = newline + 1;
    end = newline;
  }
  return text.substr(begin);
}

}  // namespace muster
