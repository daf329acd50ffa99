#include "tests/rendezvous/test_etcd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/clock.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 30s;  // only a failure waits for so long

// Starts a program; what it writes comes out of `output`. No fork of our own: the test may have
// threads.
pid_t Spawned(const std::vector<std::string>& words, UniqueFd* output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  output->reset(ends[0]);
  const UniqueFd write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0) << "cannot start " << words[0];
  return error == 0 ? pid : -1;
}

std::string Url(const std::string& scheme, const ReservedPort& port) {
  return scheme + "://127.0.0.1:" + std::to_string(port.number());
}

bool Has(const std::string& line, const char* words) {
  return line.find(words) != std::string::npos;
}

}  // namespace

int RunProgram(const std::vector<std::string>& words, std::string* output) {
  UniqueFd out;
  const pid_t pid = Spawned(words, &out);
  if (pid < 0) return -1;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(out.get(), buffer, sizeof(buffer))) > 0;) {
    if (output != nullptr) output->append(buffer, size);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TestEtcd::TestEtcd(int members, Tls tls) : tls_(std::move(tls)) {
  std::string pattern = testing::TempDir() + "/etcd.XXXXXX";
  folder_ = mkdtemp(pattern.data());
  for (int i = 0; i < members; ++i) {
    members_.push_back(std::make_unique<Member>());
    members_.back()->name = "m" + std::to_string(i);
  }
  for (const auto& member : members_) Spawn(member.get());
  for (const auto& member : members_) AwaitReady(*member);
}

TestEtcd::~TestEtcd() {
  for (size_t i = 0; i < members_.size(); ++i) Kill(static_cast<int>(i));
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

EtcdOptions TestEtcd::options() const {
  EtcdOptions options;
  for (const auto& member : members_) {
    options.endpoints.push_back({"127.0.0.1", member->client.number()});
  }
  return options;
}

void TestEtcd::Kill(int index) {
  Member& member = *members_[index];
  if (member.pid < 0) return;
  kill(member.pid, SIGKILL);
  waitpid(member.pid, nullptr, 0);
  member.pid = -1;
  member.reader.join();
}

void TestEtcd::Start(int index) {
  Spawn(members_[index].get());
  AwaitReady(*members_[index]);
}

int TestEtcd::Leader() {
  RealClock clock;
  const Time deadline = clock.Now() + kPatience;
  MutexLock lock(&mutex_);
  while (leader_ == nullptr && clock.Now() < deadline) clock.Wait(&mutex_, &changed_, deadline);
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].get() == leader_) return static_cast<int>(i);
  }
  ADD_FAILURE() << "etcd has no leader";
  return 0;
}

std::string TestEtcd::Control(const std::vector<std::string>& words) {
  std::string endpoints;
  for (const auto& member : members_) {
    endpoints +=
        (endpoints.empty() ? "" : ",") + Url(tls_.ca.empty() ? "http" : "https", member->client);
  }
  std::vector<std::string> all = {"env", "ETCDCTL_API=3", "etcdctl", "--endpoints", endpoints};
  all.insert(all.end(), words.begin(), words.end());
  std::string output;
  EXPECT_EQ(RunProgram(all, &output), 0) << output;
  return output;
}

void TestEtcd::Spawn(Member* member) {
  std::string cluster;
  for (const auto& each : members_) {
    cluster += (cluster.empty() ? "" : ",") + each->name + "=" + Url("http", each->peer);
  }
  const std::string client = Url(tls_.ca.empty() ? "http" : "https", member->client);
  std::vector<std::string> words = {"setpriv",
                                    "--pdeathsig",
                                    "KILL",
                                    "etcd",
                                    "--name",
                                    member->name,
                                    "--data-dir",
                                    folder_ + "/" + member->name,
                                    "--listen-client-urls",
                                    client,
                                    "--advertise-client-urls",
                                    client,
                                    "--listen-peer-urls",
                                    Url("http", member->peer),
                                    "--initial-advertise-peer-urls",
                                    Url("http", member->peer),
                                    "--initial-cluster",
                                    cluster,
                                    "--initial-cluster-token",
                                    folder_};
  if (!tls_.ca.empty()) {
    for (const std::string& word :
         {std::string("--client-cert-auth"), "--trusted-ca-file=" + tls_.ca,
          "--cert-file=" + tls_.cert, "--key-file=" + tls_.key}) {
      words.push_back(word);
    }
  }
  UniqueFd log;
  member->pid = Spawned(words, &log);
  member->reader = std::thread([this, member, fd = std::make_shared<UniqueFd>(std::move(log))] {
    Read(member, std::move(*fd));
  });
}

// What etcd writes is how a test knows that it is ready, and it must not stop for want of a reader.
void TestEtcd::Read(Member* member, UniqueFd log) {
  std::FILE* file = fdopen(log.release(), "r");
  char* line = nullptr;
  size_t size = 0;
  while (getline(&line, &size, file) > 0) {
    MutexLock lock(&mutex_);
    if (Has(line, "became leader at term")) leader_ = member;
    if (Has(line, "ready to serve client requests")) ready_.push_back(member);
    changed_.SignalAll();
  }
  std::free(line);
  std::fclose(file);
  MutexLock lock(&mutex_);
  if (leader_ == member) leader_ = nullptr;
  ready_.erase(std::remove(ready_.begin(), ready_.end(), member), ready_.end());
}

void TestEtcd::AwaitReady(const Member& member) {
  RealClock clock;
  const Time deadline = clock.Now() + kPatience;
  MutexLock lock(&mutex_);
  const auto is_ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::find(ready_.begin(), ready_.end(), &member) != ready_.end();
  };
  while (!is_ready() && clock.Now() < deadline) clock.Wait(&mutex_, &changed_, deadline);
  EXPECT_TRUE(is_ready()) << "etcd does not start";
}

}  // namespace muster
