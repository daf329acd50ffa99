#include "agent/kernel_evidence.h"

#include <charconv>

namespace muster {
namespace {

std::string_view NextLine(std::string_view* text) {
  const size_t end = text->find('\n');
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return line;
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// In core names a '/' within a value is written as '!'.
std::string InFileName(std::string text) {
  for (char& c : text) {
    if (c == '/') c = '!';
  }
  return text;
}

std::string Value(char letter, const CoreDump& dump) {
  constexpr size_t kCommandBytes = 15;  // TASK_COMM_LEN without its NUL
  switch (letter) {
    case '%':
      return "%";
    case 'p':
      return std::to_string(dump.pid);
    case 's':
      return std::to_string(dump.signal);
    case 'h':
      return dump.host;
    case 'e':
    case 'f':
      return std::string(BaseName(dump.program).substr(0, letter == 'e' ? kCommandBytes : -1));
    case 'E':
      return InFileName(dump.program);
    default:
      return "*";
  }
}

}  // namespace

std::string CoreDumpPlace(std::string_view core_pattern, bool uses_pid, const CoreDump& dump) {
  const std::string_view pattern = NextLine(&core_pattern);
  if (pattern.empty()) return "";
  if (pattern[0] == '|') {
    const std::string_view handler = pattern.substr(1, pattern.find(' ') - 1);
    std::string place = "piped to " + std::string(handler);
    if (BaseName(handler) == "systemd-coredump") {
      place += ": see coredumpctl info " + std::to_string(dump.pid);
    } else if (BaseName(handler) == "apport") {
      place += ": see /var/crash";
    }
    return place;
  }
  std::string path;
  bool has_pid = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      path += pattern[i];
    } else if (++i < pattern.size()) {
      path += Value(pattern[i], dump);
      has_pid |= pattern[i] == 'p' || pattern[i] == 'P';
    }
  }
  if (uses_pid && !has_pid) path += "." + std::to_string(dump.pid);
  return path[0] == '/' ? path : dump.cwd + "/" + path;
}

int64_t OomKills(std::string_view text) {
  constexpr std::string_view kKey = "oom_kill ";
  while (!text.empty()) {
    const std::string_view line = NextLine(&text);
    if (line.substr(0, kKey.size()) != kKey) continue;
    int64_t number = -1;
    std::from_chars(line.data() + kKey.size(), line.data() + line.size(), number);
    return number;
  }
  return -1;
}

CgroupPaths ParseCgroups(std::string_view text) {
  CgroupPaths paths;
  while (!text.empty()) {
    // "4:memory:/path", "0::/path"
    const std::string_view line = NextLine(&text);
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view path = line.substr(second + 1);
    const std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1));
    if (controllers == ",") {
      paths.unified = path;
    } else if ((controllers + ",").find(",memory,") != std::string::npos) {
      paths.memory = path;
    }
  }
  return paths;
}

std::string_view KernelRecordText(std::string_view record) {
  const size_t begin = record.find(';');
  if (begin == record.npos) return {};
  record.remove_prefix(begin + 1);
  return NextLine(&record);
}

bool TellsOfEnd(std::string_view record_text, int pid) {
  const std::string number = std::to_string(pid);
  // "Out of memory: Killed process 812 (trainer) …"
  const std::string killed = "illed process " + number;
  size_t at = record_text.find(killed);
  if (at != record_text.npos) {
    const size_t end = at + killed.size();
    return end == record_text.size() || record_text[end] < '0' || record_text[end] > '9';
  }
  // "trainer[812]: segfault at 0 ip …", "traps: trainer[812] general protection fault …"
  at = record_text.find("[" + number + "]");
  if (at == record_text.npos) return false;
  for (const std::string_view word : {"segfault", "trap", "fault", "oom"}) {
    if (record_text.find(word) != record_text.npos) return true;
  }
  return false;
}

}  // namespace muster
