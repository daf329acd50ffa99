#include "agent/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

constexpr int kStopRounds = 20;

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

// Its parent has not reaped it.
bool HasEnded(int pid) {
  const std::string stat = ReadAll("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.compare(name_end, 3, ") Z") == 0;
}

// Signals every descendant; returns those that had not ended before.
std::vector<Process> SignalTree(int self, int signal) {
  std::vector<Process> signalled;
  for (const Process& process : Tree()) {
    if (process.parent != self && HasEnded(process.pid)) continue;
    SignalOne(process, self, signal);
    signalled.push_back(process);
  }
  return signalled;
}

// Until one of them has ended. What they have forked since they were listed is orphaned by that and
// not before, so that who looks then misses nobody.
void WaitForAnEnd(const std::vector<Process>& signalled, int self, Time deadline) {
  std::vector<UniqueFd> pidfds;
  std::vector<pollfd> waits;
  for (const Process& process : signalled) {
    UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
    if (!pidfd.valid() && errno != ESRCH) break;  // no descriptors left: the others will do for now
    const int parent = ParentOf(process.pid);
    if (!pidfd.valid() || (parent != process.parent && parent != self)) return;
    waits.push_back({pidfd.get(), POLLIN, 0});
    pidfds.push_back(std::move(pidfd));
  }
  poll(waits.data(), waits.size(), MillisecondsTo(deadline));
}

}  // namespace

std::vector<int> Descendants() {
  std::vector<int> pids;
  for (const Process& process : Tree()) pids.push_back(process.pid);
  return pids;
}

void SignalDescendants(int signal) {
  const int self = getpid();
  std::set<int> known;
  // What was forked between the listing and the signal is in the next listing; only what forks
  // without end could be in all of them.
  for (int round = 0; round < (signal == SIGSTOP ? kStopRounds : 1); ++round) {
    bool is_news = false;
    for (const Process& process : Tree()) {
      if (!known.insert(process.pid).second) continue;
      is_news = true;
      SignalOne(process, self, signal);
    }
    if (!is_news) return;
  }
}

std::vector<int> EndDescendants(int signal, Duration patience) {
  const int self = getpid();
  const Time deadline = EventLoop::Now() + patience;
  while (true) {
    const std::vector<Process> signalled = SignalTree(self, signal);
    int pid = 0;
    while ((pid = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (pid < 0 && errno == ECHILD) return {};
    if (EventLoop::Now() >= deadline) return Descendants();
    WaitForAnEnd(signalled, self, deadline);
  }
}

std::string ProcessText(int pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::string name = ReadAll(folder + "/comm");
  name = name.substr(0, name.find('\n'));
  const std::string place = ReadAll(folder + "/wchan");
  std::string text = "pid " + std::to_string(pid);
  if (!name.empty()) text += " (" + name + ")";
  // "0": it runs, or we may not know.
  if (!place.empty() && place != "0") text += " in " + place;
  return text;
}

}  // namespace muster
