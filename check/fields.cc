#include "check/fields.h"

#include <charconv>

namespace muster::check {
namespace {

std::optional<std::string> Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      plain += text[i];
      continue;
    }
    if (++i == text.size() || (text[i] != 'n' && text[i] != '\\')) return std::nullopt;
    plain += text[i] == 'n' ? '\n' : '\\';
  }
  return plain;
}

}  // namespace

std::string EncodeFields(const Fields& fields) {
  std::string bytes;
  for (const auto& [key, value] : fields) {
    bytes += key + '=';
    for (char c : value) {
      if (c == '\n') {
        bytes += "\\n";
      } else {
        if (c == '\\') bytes += '\\';
        bytes += c;
      }
    }
    bytes += '\n';
  }
  return bytes;
}

std::optional<Fields> DecodeFields(std::string_view bytes) {
  Fields fields;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view line = bytes.substr(0, end);
    const size_t equals = line.find('=');
    if (end == bytes.npos || equals == line.npos) return std::nullopt;
    std::optional<std::string> value = Unescaped(line.substr(equals + 1));
    if (!value) return std::nullopt;
    fields.emplace_back(line.substr(0, equals), *std::move(value));
    bytes.remove_prefix(end + 1);
  }
  return fields;
}

std::string_view FirstOf(const Fields& fields, std::string_view key) {
  for (const auto& [name, value] : fields) {
    if (name == key) return value;
  }
  return {};
}

std::optional<long long> WholeNumber(std::string_view text) {
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace muster::check
