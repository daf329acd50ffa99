#include "launcher/local_status.h"

#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/run_directory.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "base/print_out.h"
#include "base/unique_fd.h"
#include "base/version.h"
#include "launcher/exit_codes.h"
#include "launcher/option_values.h"

namespace muster {
namespace {

constexpr size_t kAnswerBytesMax = 1024 * 1024;

// Where agent/run_directory.h puts the private directories. Only this user's are looked at: another
// one could answer anything.
std::vector<std::string> SocketPaths(const EnvMap& env) {
  std::set<std::string> parents = {"/dev/shm", "/tmp"};
  if (const std::string* tmp = FindVariable(env, "TMPDIR")) parents.insert(*tmp);
  std::vector<std::string> paths;
  for (const std::string& parent : parents) {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(parent.c_str()), closedir);
    if (folder == nullptr) continue;
    while (const dirent* entry = readdir(folder.get())) {
      if (!absl::StartsWith(entry->d_name, kPrivatePrefix)) continue;
      const std::string path = absl::StrCat(parent, "/", entry->d_name);
      struct stat status {};
      if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
      if (status.st_uid == geteuid()) paths.push_back(absl::StrCat(path, "/", kStatusSocketName));
    }
  }
  return paths;
}

// Not valid: nobody is there any more.
UniqueFd Ask(const std::string& path, const std::string& question) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return UniqueFd();
  path.copy(address.sun_path, path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool is_sent =
      fd.valid() &&
      connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      send(fd.get(), question.data(), question.size(), MSG_NOSIGNAL) >= 0;
  return is_sent ? std::move(fd) : UniqueFd();
}

// Empty: it runs another job. None: not in time.
std::optional<std::string> AnswerOn(const UniqueFd& fd, Time deadline) {
  pollfd ready{fd.get(), POLLIN, 0};
  if (poll(&ready, 1, MillisecondsTo(deadline)) <= 0) {
    return std::nullopt;
  }
  std::string answer(kAnswerBytesMax, '\0');
  const ssize_t size = recv(fd.get(), answer.data(), answer.size(), 0);
  answer.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return answer;
}

void WarnOfSilence(const UniqueFd& fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  Log(LogLevel::kWarning, absl::StrCat("your launcher with pid ", peer.pid,
                                       " does not answer: is it stopped (Ctrl-Z, SIGSTOP)?"));
}

// All are asked before the first answer is waited for: one that is stopped keeps nobody else's
// back.
std::vector<std::string> Answers(const EnvMap& env, const std::string& question, Time deadline) {
  std::vector<UniqueFd> asked;
  for (const std::string& path : SocketPaths(env)) {
    UniqueFd fd = Ask(path, question);
    if (fd.valid()) asked.push_back(std::move(fd));
  }
  std::vector<std::string> answers;
  for (const UniqueFd& fd : asked) {
    std::optional<std::string> answer = AnswerOn(fd, deadline);
    if (!answer) WarnOfSilence(fd);
    if (answer && !answer->empty()) answers.push_back(*std::move(answer));
  }
  std::sort(answers.begin(), answers.end());
  return answers;
}

}  // namespace

int LocalStatus(const Options& options, const EnvMap& env) {
  if (options.on("watch")) {
    Log(LogLevel::kError, "--watch needs a master: leave out --local, or --watch");
    return kExitUsage;
  }
  const std::string& job = options.program;
  const bool is_json = options.text("output") == "json";
  const std::string question = absl::StrCat(is_json ? "json" : "table", "\n", job);
  const Time deadline = EventLoop::Now() + ParsePositiveSpan(options.text("timeout")).value();
  const std::vector<std::string> answers = Answers(env, question, deadline);
  if (answers.empty() && !job.empty()) {
    Log(LogLevel::kError,
        absl::StrCat("no launcher of yours on this machine runs job ", Quoted(job)));
    return kExitNoSuchJob;
  }
  if (is_json) {
    return PrintOut(absl::StrCat("{\"version\": \"", std::string(kVersion), "\", \"jobs\": [",
                                 answers.empty() ? "" : "\n  ", absl::StrJoin(answers, ",\n  "),
                                 answers.empty() ? "" : "\n", "]}\n"));
  }
  return PrintOut(answers.empty() ? "no jobs\n" : absl::StrJoin(answers, "\n"));
}

}  // namespace muster
