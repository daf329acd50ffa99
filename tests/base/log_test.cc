#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <regex>
#include <string>

#include "base/one_line.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_.reset(ends[0]);
    write_.reset(ends[1]);
    fcntl(read_.get(), F_SETFL, O_NONBLOCK);
    SetLogFd(write_.get());
    SetLogLevel(LogLevel::kWarning);
  }
  ~LogTest() override {
    SetLogFd(2);
    SetLogStyle(LogFormat::kPlain, "muster");
  }

  std::string Logged() {
    std::string text(1 << 20, '\0');
    const ssize_t size = read(read_.get(), text.data(), text.size());
    text.resize(size > 0 ? size : 0);
    return text;
  }

  UniqueFd read_;
  UniqueFd write_;
};

TEST_F(LogTest, WarningsAndErrorsArePlainLines) {
  Log(LogLevel::kWarning, "the master is gone");
  Log(LogLevel::kError, "{} %s stays as it is");
  EXPECT_EQ(Logged(), "muster: the master is gone\nmuster: {} %s stays as it is\n");
}

TEST_F(LogTest, ADatedFormatDatesWarningsToo) {
  SetLogStyle(LogFormat::kDated, "musterd");
  Log(LogLevel::kWarning, "a");
  EXPECT_TRUE(std::regex_match(
      Logged(), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warning musterd: a\n)")));
}

TEST_F(LogTest, JsonLinesQuoteTheText) {
  SetLogStyle(LogFormat::kJson, "musterd");
  Log(LogLevel::kError, "job \"a\\b\" %v");
  const std::string line = Logged();
  EXPECT_EQ(line.rfind(R"({"ts":"2)", 0), 0) << line;
  const std::string end = R"(Z","level":"error","component":"musterd","msg":"job \"a\\b\" %v"})"
                          "\n";
  ASSERT_GT(line.size(), end.size());
  EXPECT_EQ(line.substr(line.size() - end.size()), end);
}

TEST_F(LogTest, MessagesBelowTheLevelAreDropped) {
  Log(LogLevel::kInfo, "no");
  EXPECT_FALSE(LogEnabled(LogLevel::kInfo));
  SetLogLevel(LogLevel::kError);
  Log(LogLevel::kWarning, "no");
  EXPECT_EQ(Logged(), "");
}

TEST_F(LogTest, InfoAndDebugCarryTimeAndLevel) {
  SetLogLevel(LogLevel::kDebug);
  Log(LogLevel::kInfo, "a");
  Log(LogLevel::kDebug, "b");
  const std::string time = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)";
  const std::string text = Logged();
  EXPECT_TRUE(
      std::regex_match(text, std::regex(time + " info muster: a\n" + time + " debug muster: b\n")))
      << text;
}

TEST_F(LogTest, MessageIsAlwaysOneLineWithoutControlBytes) {
  Log(LogLevel::kError, "two\nlines\r \x1b[31mred\n");
  EXPECT_EQ(Logged(), "muster: two lines   [31mred\n");
}

TEST_F(LogTest, FullPipeDelaysOnceAndLostMessagesAreCounted) {
  Log(LogLevel::kError, "before");  // gives the pipe its room
  fcntl(write_.get(), F_SETFL, O_NONBLOCK);
  const std::string junk(4096, 'x');
  while (write(write_.get(), junk.data(), junk.size()) > 0) {
  }
  fcntl(write_.get(), F_SETFL, 0);
  for (int i = 0; i < 100; ++i) Log(LogLevel::kError, "lost");
  while (!Logged().empty()) {
  }
  Log(LogLevel::kError, "after");
  EXPECT_EQ(Logged(), "muster: 100 messages were lost: stderr did not take them\nmuster: after\n");
}

TEST_F(LogTest, SharedPipeStaysBlockingForOthers) {
  Log(LogLevel::kError, "x");
  EXPECT_EQ(fcntl(write_.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(LogTest, ReaderGoneOrDescriptorClosedDropsTheMessage) {
  Log(LogLevel::kError, "x");
  read_.reset();
  Log(LogLevel::kError, "y");
  SetLogFd(-1);
  Log(LogLevel::kError, "z");
}

TEST(OneLineTest, ControlBytesBecomeBlanksAndTrailingOnesGo) {
  EXPECT_EQ(OneLine("a\tb\x7f"
                    "c\n\n"),
            "a b c");
  EXPECT_EQ(OneLine("é€"), "é€");
  EXPECT_EQ(OneLine(" \n"), "");
}

}  // namespace
}  // namespace muster
