#ifndef MUSTER_TESTS_AGENT_LOG_PUMP_FIXTURE_H_
#define MUSTER_TESTS_AGENT_LOG_PUMP_FIXTURE_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/log_pump.h"
#include "base/log.h"
#include "tests/agent/temporary_folder.h"

namespace muster {

struct Ends {
  UniqueFd read;
  UniqueFd write;
};

inline Ends Pipe() {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Workers are descriptors that the test writes to; the console is two pipes that it reads.
class LogPumpFixture : public ::testing::Test {
 protected:
  LogPumpFixture() : out_(Pipe()), err_(Pipe()) {
    signal(SIGPIPE, SIG_IGN);
    SetLogLevel(LogLevel::kError);
    fcntl(out_.read.get(), F_SETFL, O_NONBLOCK);
    fcntl(err_.read.get(), F_SETFL, O_NONBLOCK);
    context_.slots = 2;
    context_.role = "default";
    context_.node_id = "node-3";
    context_.host_name = "gpu7";
    context_.console_out = out_.write.get();
    context_.console_err = err_.write.get();
    assignment_.generation = 4;
    assignment_.rank_base = 2;
    log_dir_ = folder_ / "logs";
  }
  ~LogPumpFixture() override {
    pump_.reset();
    if (directory_) directory_->Remove(true);
    SetLogFd(2);
  }

  // Opens a generation and takes the workers' ends, as the warden would.
  void Open() {
    directory_ = std::make_unique<RunDirectory>(
        RunDirectory::Options{log_dir_, LogPump::LogsAsked(options_), "job", folder_.path()});
    ASSERT_TRUE(directory_->Prepare().ok());
    ASSERT_TRUE(directory_->OpenGeneration(4, 0, context_.slots).ok());
    pump_ = std::make_unique<LogPump>(loop_, options_, context_);
    const absl::Status opened = pump_->OpenGeneration(assignment_, *directory_);
    ASSERT_TRUE(opened.ok()) << opened;
    for (int local_rank = 0; local_rank < context_.slots; ++local_rank) {
      const WorkerStreams streams = pump_->StreamsFor(local_rank);
      worker_out_.emplace_back(streams.out < 0 ? -1 : fcntl(streams.out, F_DUPFD_CLOEXEC, 3));
      worker_err_.emplace_back(streams.err < 0 ? -1 : fcntl(streams.err, F_DUPFD_CLOEXEC, 3));
    }
    pump_->CloseWorkerEnds();
  }

  static void Print(const UniqueFd& stream, std::string_view text) {
    while (!text.empty()) {
      const ssize_t size = write(stream.get(), text.data(), text.size());
      ASSERT_GT(size, 0) << strerror(errno);
      text.remove_prefix(static_cast<size_t>(size));
    }
  }

  void Settle() {
    for (int i = 0; i < 20; ++i) loop_.RunOnce(EventLoop::Now());
  }

  static std::string Take(const UniqueFd& end) {
    std::string text;
    char buffer[65536];
    for (ssize_t size; (size = read(end.get(), buffer, sizeof(buffer))) > 0;)
      text.append(buffer, size);
    return text;
  }
  std::string Console() { return Take(out_.read); }
  std::string ErrorConsole() { return Take(err_.read); }

  TemporaryFolder folder_;
  std::string log_dir_;
  EventLoop loop_;
  Ends out_;
  Ends err_;
  LogOptions options_;
  LogPump::Context context_;
  Assignment assignment_;
  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<LogPump> pump_;
  std::vector<UniqueFd> worker_out_;
  std::vector<UniqueFd> worker_err_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_AGENT_LOG_PUMP_FIXTURE_H_
