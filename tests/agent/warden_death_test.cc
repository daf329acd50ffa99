#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>

#include "agent/warden_channel.h"
#include "base/exit_status.h"
#include "tests/agent/warden_fixture.h"

// Whoever dies, nothing stays behind.

namespace muster {
namespace {

using namespace std::chrono_literals;
using WardenDeath = WardenTest;

constexpr const char* kObedient = "setsid sleep 600 & echo $!; echo $$; wait";
// A deaf worker with a deaf grandchild in a session of its own: two pids.
constexpr const char* kDeafFamily =
    "trap '' TERM; echo $$; setsid bash -c 'echo $$; exec sleep 600' & wait; exec sleep 600";

// Where a last will is heard.
class Will {
 public:
  Will() : path_(std::string(getenv("TEST_TMPDIR")) + "/will" + std::to_string(getpid())) {
    unlink(path_.c_str());
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
    // For writing too: it must not look ended before somebody has come to write.
    reader_.reset(open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  }
  ~Will() { unlink(path_.c_str()); }

  std::vector<std::string> Saying(const std::string& text) const {
    return {"/bin/sh", "-c", "echo " + text + " >" + path_};
  }
  // What has been said, waiting `patience` for it.
  std::string Heard(Duration patience) const {
    pollfd wait{reader_.get(), POLLIN, 0};
    const auto span = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
    poll(&wait, 1, static_cast<int>(span.count()));
    std::array<char, 100> text;
    const ssize_t got = read(reader_.get(), text.data(), text.size());
    return got <= 0 ? "" : std::string(text.data(), static_cast<size_t>(got));
  }

 private:
  std::string path_;
  UniqueFd reader_;
};

TEST_F(WardenDeath, WhenTheAgentIsGoneTermSuffices) {
  Start({1h, {}});  // nobody waits for the orphan grace
  Output output;
  Bash(0, kObedient, output);
  const Watched child = output.Process();
  const Watched worker = output.Process();
  host_.reset();
  EXPECT_FALSE(child.IsAlive());
  EXPECT_FALSE(worker.IsAlive());
}

TEST_F(WardenDeath, WhenTheAgentIsGoneWhatIgnoresTermIsKilled) {
  Start({50ms, {}});
  Output output;
  Bash(0, kDeafFamily, output);
  const Watched worker = output.Process();
  const Watched child = output.Process();
  host_.reset();
  EXPECT_FALSE(worker.IsAlive());
  EXPECT_FALSE(child.IsAlive());
}

TEST_F(WardenDeath, TheLastWillIsDeliveredWhenEverythingIsGone) {
  Start({50ms, {}});
  Output worker;
  const Will will;
  Bash(0, kDeafFamily, worker);
  worker.Process();
  worker.Process();
  host_->SetLastWill({will.Saying("an old one"), ""});
  host_->SetLastWill({will.Saying("gone"), ""});
  host_.reset();
  EXPECT_EQ(will.Heard(0s), "gone\n");
  EXPECT_EQ(worker.All(), "") << "and before that nobody held the worker's output any more";
}

TEST_F(WardenDeath, AWillThatWasTakenBackIsNotDelivered) {
  Start();
  const Will will;
  host_->SetLastWill({will.Saying("gone"), ""});
  host_->SetLastWill({});
  host_.reset();
  EXPECT_EQ(will.Heard(0s), "");
}

TEST_F(WardenDeath, AWillThatCannotBeExecutedChangesNothing) {
  Start();
  host_->SetLastWill({{"/no/such/program"}, ""});
  host_.reset();
}

TEST_F(WardenDeath, AWorkerThatWasOrderedWithTheLastBreathDoesNotStay) {
  Start({50ms, {}});
  Output output;
  Bash(0, kDeafFamily, output);
  host_.reset();
  output.All();  // ends, because nobody holds it
}

TEST_F(WardenDeath, AnAgentKilledOutrightLeavesNothing) {
  Output output;
  const Will will;
  const int agent = fork();
  if (agent == 0) {
    Start({50ms, {}});
    Bash(0, kDeafFamily, output);
    host_->SetLastWill({will.Saying("gone"), ""});
    WaitFor([] { return false; });
    _exit(1);
  }
  const Watched worker = output.Process();
  const Watched child = output.Process();
  kill(agent, SIGKILL);
  waitpid(agent, nullptr, 0);
  EXPECT_TRUE(worker.Ends());
  EXPECT_TRUE(child.Ends());
  EXPECT_EQ(will.Heard(kPatience), "gone\n");
}

TEST_F(WardenDeath, AnAgentThatTalksNonsenseIsAnAgentThatIsGone) {
  absl::StatusOr<WardenProcess> warden = ForkWarden({50ms, {}});
  ASSERT_TRUE(warden.ok());
  WardenChannel channel(std::move(warden->socket));
  Output output;
  channel.Send(Encode(WardenRequest(SpawnRequest{0, {"/bin/bash", "-c", kDeafFamily}, {}, 2})),
               {output.writer.get(), output.writer.get()});
  const Watched worker = output.Process();
  const Watched child = output.Process();
  channel.Send(std::string("\x03\x00\x00\x00wha", 7));
  EXPECT_TRUE(worker.Ends());
  EXPECT_TRUE(child.Ends());
  EXPECT_TRUE(Watched(warden->pid).Ends());
  EXPECT_EQ(waitpid(warden->pid, nullptr, 0), warden->pid);
}

TEST_F(WardenDeath, OfTheWardenTakesWorkersAndTheirHiddenChildrenWithIt) {
  Start();
  Output output;
  Bash(0, kDeafFamily, output);
  const Watched worker = output.Process();
  const Watched child = output.Process();
  kill(host_->warden_pid(), SIGKILL);
  EXPECT_TRUE(WaitFor([this] { return lost_; }));
  // Everything was killed and reaped before that was said.
  EXPECT_FALSE(worker.IsAlive());
  EXPECT_FALSE(child.IsAlive());
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(WardenDeath, OfTheWardenIsSaidOnceAndAfterItNothingIsAccepted) {
  Start();
  kill(host_->warden_pid(), SIGKILL);
  EXPECT_TRUE(WaitFor([this] { return lost_; }));
  lost_ = false;
  Output output;
  Bash(0, "echo started", output);
  SignalTree(SIGTERM);
  EXPECT_EQ(output.All(), "");
  EXPECT_FALSE(lost_);
}

}  // namespace
}  // namespace muster
