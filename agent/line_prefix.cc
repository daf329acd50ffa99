#include "agent/line_prefix.h"

#include <algorithm>
#include <array>

namespace muster {
namespace {

struct Macro {
  std::string_view name;
  std::string PrefixValues::*value;
};

constexpr std::array<Macro, 7> kMacros = {{
    {"role_name", &PrefixValues::role_name},
    {"local_rank", &PrefixValues::local_rank},
    {"rank", &PrefixValues::rank},
    {"hostname", &PrefixValues::hostname},
    {"node", &PrefixValues::node},
    {"generation", &PrefixValues::generation},
    {"pid", &PrefixValues::pid},
}};

std::string PrefixValues::*FindMacro(std::string_view name) {
  const auto it = std::find_if(kMacros.begin(), kMacros.end(),
                               [name](const Macro& macro) { return macro.name == name; });
  return it == kMacros.end() ? nullptr : it->value;
}

}  // namespace

LinePrefix::LinePrefix(std::string_view text_template) {
  std::string text;
  while (!text_template.empty()) {
    const size_t end = text_template.find('}');
    if (text_template.substr(0, 2) != "${" || end == std::string_view::npos) {
      const size_t next = text_template.find('$', 1);
      text += text_template.substr(0, next);
      text_template.remove_prefix(std::min(next, text_template.size()));
      continue;
    }
    const std::string_view macro = text_template.substr(0, end + 1);
    const std::string_view name = macro.substr(2, end - 2);
    text_template.remove_prefix(end + 1);
    const auto value = FindMacro(name);
    if (value == nullptr && name != "time") {
      text += macro;
      if (std::find(unknown_.begin(), unknown_.end(), macro) == unknown_.end()) {
        unknown_.emplace_back(macro);
      }
      continue;
    }
    if (!text.empty()) pieces_.push_back({std::move(text)});
    text.clear();
    pieces_.push_back({"", value, value == nullptr});
    has_time_ |= value == nullptr;
    has_pid_ |= value == &PrefixValues::pid;
  }
  if (!text.empty()) pieces_.push_back({std::move(text)});
}

std::string LinePrefix::Expand(const PrefixValues& values, std::string_view time) const {
  std::string prefix;
  for (const Piece& piece : pieces_) {
    if (piece.is_time) {
      prefix += time;
    } else {
      prefix += piece.value != nullptr ? values.*piece.value : piece.text;
    }
  }
  return prefix;
}

}  // namespace muster
