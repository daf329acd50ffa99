#include "agent/error_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/json_leaves.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

constexpr size_t kBytesMax = 1 << 20;

std::string FirstLine(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "";
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find_first_of("\r\n")));
}

std::string ReadFile(const std::string& path) {
  // Non-blocking, so that a FIFO in its place cannot hang the agent.
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text;
  if (!file.valid()) return text;
  text.resize(kBytesMax);
  size_t size = 0;
  for (;;) {
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace

WorkerError ParseErrorFile(std::string_view text) {
  const JsonLeaves json = ReadJsonLeaves(text);
  const auto value = [&json](const char* path) {
    const auto it = json.values.find(path);
    return it == json.values.end() ? std::string() : it->second;
  };
  WorkerError error;
  error.message = value("message.message");
  error.traceback = value("message.extraInfo.py_callstack");
  std::string timestamp = value("message.extraInfo.timestamp");
  if (error.message.empty()) error.message = value("message");
  if (error.message.empty()) error.message = FirstLine(text);
  if (timestamp.empty()) timestamp = value("timestamp");
  error.timestamp = strtoll(timestamp.c_str(), nullptr, 10);
  return error;
}

WorkerError ReadErrorFile(const std::string& path) {
  return path.empty() ? WorkerError() : ParseErrorFile(ReadFile(path));
}

}  // namespace muster
