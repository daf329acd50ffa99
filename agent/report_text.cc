#include "agent/report_text.h"

#include <cstdint>

namespace muster {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes of the character at the beginning of `text`; 0 when it is not UTF-8.
size_t CharacterSize(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  size_t size = 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) size = 2;
  if (lead >= 0xE0 && lead < 0xF0) size = 3;
  if (lead >= 0xF0 && lead < 0xF5) size = 4;
  if (size == 0 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  return size;
}

// The index of the byte where column `columns` begins, or npos where the line is not that long.
size_t ByteOfColumn(std::string_view line, int columns) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (IsContinuation(line[i])) continue;
    if (columns-- == 0) return i;
  }
  return std::string_view::npos;
}

}  // namespace

std::string CleanLine(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const size_t overwritten = line.rfind('\r');
  if (overwritten != std::string_view::npos) line.remove_prefix(overwritten + 1);
  std::string clean;
  while (!line.empty()) {
    const size_t size = CharacterSize(line);
    const auto byte = static_cast<unsigned char>(line[0]);
    if (size == 0) {
      clean.push_back('?');
    } else if (byte < 32 || byte == 127 ||
               (byte == 0xC2 && IsContinuation(line[1]) &&
                static_cast<unsigned char>(line[1]) < 0xA0)) {
      clean.push_back(' ');
    } else {
      clean.append(line.substr(0, size));
    }
    line.remove_prefix(size == 0 ? 1 : size);
  }
  clean.erase(clean.find_last_not_of(' ') + 1);
  return clean;
}

std::vector<std::string> CleanLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(CleanLine(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string CutToColumns(const std::string& line, int columns) {
  if (ByteOfColumn(line, columns) == std::string::npos) return line;
  return line.substr(0, ByteOfColumn(line, columns - 1)) + "…";
}

std::vector<std::string> WrapToColumns(const std::string& line, int columns) {
  std::vector<std::string> pieces;
  std::string_view rest = line;
  for (;;) {
    const size_t end = ByteOfColumn(rest, columns);
    if (end == std::string_view::npos) {
      pieces.emplace_back(rest);
      return pieces;
    }
    size_t blank = rest.rfind(' ', end);
    if (blank == 0 || blank == std::string_view::npos) {
      pieces.emplace_back(rest.substr(0, end));
      rest.remove_prefix(end);
    } else {
      pieces.emplace_back(rest.substr(0, blank));
      rest.remove_prefix(blank + 1);
    }
  }
}

}  // namespace muster
