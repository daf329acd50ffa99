#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <optional>

#include "absl/strings/match.h"
#include "tests/agent/warden_fixture.h"

// A user who may have no more processes.

namespace muster {
namespace {

using ProcessLimit = WardenTest;

// Runs `act` in a process of a user of its own who may have `processes` of them. Its answer;
// nothing where no other user can be had.
std::optional<bool> AsUserWith(rlim_t processes, const std::function<bool()>& act) {
  constexpr int kNoOtherUser = 77;
  const int pid = fork();
  if (pid == 0) {
    const uid_t user = 100'000 + static_cast<uid_t>(getpid());
    const rlimit limit{processes, processes};
    if (setresuid(user, user, user) != 0) _exit(kNoOtherUser);
    _exit(setrlimit(RLIMIT_NPROC, &limit) == 0 && act() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  if (WEXITSTATUS(status) == kNoOtherUser) return std::nullopt;
  return status == 0;
}

TEST_F(ProcessLimit, WithoutAProcessForTheWardenTheLimitIsNamed) {
  const std::optional<bool> result = AsUserWith(1, [] {
    const absl::Status status = ForkWarden({std::chrono::milliseconds(200), {}}).status();
    return absl::IsUnavailable(status) && absl::StrContains(status.message(), "ulimit -u");
  });
  if (!result) GTEST_SKIP() << "no other user can be had";
  EXPECT_TRUE(*result);
}

TEST_F(ProcessLimit, WithoutAProcessForAWorkerThatIsAnswered) {
  const std::optional<bool> result = AsUserWith(2, [this] {
    Start();
    Output output;
    Spawn({0, {"/bin/true"}, {}}, output);
    const bool is_answered = Next<NotStartedAnswer>() == NotStartedAnswer{0, EAGAIN, false};
    host_.reset();
    return is_answered;
  });
  if (!result) GTEST_SKIP() << "no other user can be had";
  EXPECT_TRUE(*result);
}

}  // namespace
}  // namespace muster
