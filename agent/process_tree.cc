#include "agent/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/unique_fd.h"

namespace muster {
namespace {

struct Process {
  int pid;
  int parent;
};

std::string ReadAll(const std::string& path) {
  std::string text;
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(fd.get(), buffer, sizeof(buffer))) > 0) text.append(buffer, got);
  return text;
}

void AppendChildren(int parent, std::vector<Process>& processes) {
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  DIR* directory = opendir(tasks.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    const std::string children = ReadAll(tasks + "/" + entry->d_name + "/children");
    const char* cursor = children.c_str();
    char* end = nullptr;
    for (long pid = strtol(cursor, &end, 10); end != cursor; pid = strtol(cursor, &end, 10)) {
      processes.push_back({static_cast<int>(pid), parent});
      cursor = end;
    }
  }
  closedir(directory);
}

std::vector<Process> Tree() {
  std::vector<Process> processes;
  AppendChildren(getpid(), processes);
  for (size_t i = 0; i < processes.size(); ++i) AppendChildren(processes[i].pid, processes);
  return processes;
}

// 0 when the process is gone.
int ParentOf(int pid) {
  const std::string stat = ReadAll("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');
  int parent = 0;
  if (name_end == std::string::npos) return 0;
  return sscanf(stat.c_str() + name_end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

bool AsksToEnd(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

void SignalOne(const Process& process, int self, int signal) {
  if (process.parent == self) {
    // Our own child: its pid cannot be handed out again before we have reaped it.
    kill(process.pid, signal);
    if (AsksToEnd(signal)) kill(process.pid, SIGCONT);
    return;
  }
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!pidfd.valid()) return;
  // Only after the pidfd is open does a matching parent prove that it names the process that was
  // listed: its own parent may have reaped it and the pid may belong to somebody else by now. An
  // orphan has moved to us.
  const int parent = ParentOf(process.pid);
  if (parent != process.parent && parent != self) return;
  syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
  if (AsksToEnd(signal)) syscall(SYS_pidfd_send_signal, pidfd.get(), SIGCONT, nullptr, 0);
}

}  // namespace

std::vector<int> Descendants() {
  std::vector<int> pids;
  for (const Process& process : Tree()) pids.push_back(process.pid);
  return pids;
}

void SignalDescendants(int signal) {
  const int self = getpid();
  for (const Process& process : Tree()) SignalOne(process, self, signal);
}

}  // namespace muster
