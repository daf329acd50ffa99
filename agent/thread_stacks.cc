#include "agent/thread_stacks.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/one_line.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

constexpr int kFramesMax = 16;

// The first 4 KiB at most; empty where it cannot be read.
std::string Content(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return "";
  char bytes[4096];
  const ssize_t size = read(fd.get(), bytes, sizeof(bytes));
  return size > 0 ? std::string(bytes, size) : "";
}

std::string FirstLine(const std::string& text) { return OneLine(text.substr(0, text.find('\n'))); }

std::vector<int> Threads(const std::string& folder) {
  std::vector<int> ids;
  DIR* const directory = opendir(folder.c_str());
  if (directory == nullptr) return ids;
  while (const dirent* entry = readdir(directory)) {
    if (const int id = atoi(entry->d_name); id > 0) ids.push_back(id);
  }
  closedir(directory);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// The letter behind the name in /proc/PID/stat; the name may hold anything.
const char* StateText(const std::string& stat) {
  const size_t end = stat.rfind(')');
  switch (end == std::string::npos || end + 2 >= stat.size() ? '?' : stat[end + 2]) {
    case 'R':
      return "running";
    case 'S':
      return "sleeping";
    case 'D':
      return "in uninterruptible sleep";
    case 'T':
      return "stopped";
    case 't':
      return "stopped by a debugger";
    case 'Z':
      return "ended";
    default:
      return "in an unknown state";
  }
}

std::string Describe(const std::string& folder, int thread) {
  std::string line = "thread " + std::to_string(thread);
  if (const std::string name = FirstLine(Content(folder + "/comm")); !name.empty()) {
    line += " (" + name + ")";
  }
  line += ": " + std::string(StateText(Content(folder + "/stat")));
  const std::string channel = FirstLine(Content(folder + "/wchan"));
  if (!channel.empty() && channel != "0") line += " in " + channel;
  const std::string call = FirstLine(Content(folder + "/syscall"));
  if (!call.empty() && call[0] >= '0' && call[0] <= '9') {
    line += ", system call " + call.substr(0, call.find(' '));
  }
  return line;
}

// "[<0>] futex_wait_queue+0x60/0x90" becomes "  futex_wait_queue+0x60/0x90".
void AddFrames(std::string_view stack, std::vector<std::string>& lines) {
  for (int i = 0; i < kFramesMax && !stack.empty(); ++i) {
    const size_t end = stack.find('\n');
    std::string_view frame = stack.substr(0, end);
    stack.remove_prefix(end == std::string_view::npos ? stack.size() : end + 1);
    if (const size_t bracket = frame.find("] "); bracket != std::string_view::npos) {
      frame.remove_prefix(bracket + 2);
    }
    if (!frame.empty()) lines.push_back("  " + OneLine(std::string(frame)));
  }
}

}  // namespace

std::vector<std::string> ThreadStacks(int pid, int threads_max, const std::string& proc) {
  const std::string tasks = proc + "/" + std::to_string(pid) + "/task";
  const std::vector<int> threads = Threads(tasks);
  std::vector<std::string> lines;
  const size_t shown = std::min(threads.size(), static_cast<size_t>(std::max(threads_max, 0)));
  for (size_t i = 0; i < shown; ++i) {
    const std::string folder = tasks + "/" + std::to_string(threads[i]);
    lines.push_back(Describe(folder, threads[i]));
    AddFrames(Content(folder + "/stack"), lines);
  }
  if (shown < threads.size()) {
    lines.push_back("and " + std::to_string(threads.size() - shown) + " more threads");
  }
  return lines;
}

}  // namespace muster
