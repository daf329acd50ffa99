#include "rendezvous/incident_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

class IncidentLogTest : public testing::Test {
 protected:
  IncidentLogTest() {
    path_ = testing::TempDir() + "/" +
            testing::UnitTest::GetInstance()->current_test_info()->name() + ".jsonl";
    for (const char* suffix : {"", ".1", ".2", ".3"}) unlink((path_ + suffix).c_str());
  }

  std::unique_ptr<IncidentLog> Open(int64_t bytes_max = 1 << 20) {
    IncidentLog::Options options;
    options.path = path_;
    options.bytes_max = bytes_max;
    options.files_max = 3;
    options.waiting_max = 4;
    options.on_problem = [this](const std::string& text) {
      MutexLock lock(&mutex_);
      problems_.push_back(text);
      changed_.SignalAll();
    };
    auto log = IncidentLog::Open(std::move(options));
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  std::string Content(const std::string& suffix = "") const {
    std::ifstream file(path_ + suffix);
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
  }
  std::string AwaitProblem(size_t number) {
    MutexLock lock(&mutex_);
    while (problems_.size() < number) changed_.Wait(&mutex_);
    return problems_[number - 1];
  }

  std::string path_;
  Mutex mutex_;
  Condition changed_;
  std::vector<std::string> problems_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(IncidentLogTest, ItIsContinuedByTheNextMaster) {
  Open()->Add("{\"a\":1}\n");
  Open()->Add("{\"a\":2}\n");
  EXPECT_EQ(Content(), "{\"a\":1}\n{\"a\":2}\n");
}

TEST_F(IncidentLogTest, AFullFileBecomesTheFirstOfTheOldOnes) {
  {
    const auto log = Open(10);
    for (const char* line : {"111111\n", "222222\n", "333333\n", "444444\n"}) log->Add(line);
  }
  EXPECT_EQ(Content(), "444444\n");
  EXPECT_EQ(Content(".1"), "333333\n");
  EXPECT_EQ(Content(".2"), "222222\n");
  EXPECT_EQ(Content(".3"), "");
}

TEST_F(IncidentLogTest, AFolderThatIsNotThereIsNamed) {
  const absl::Status status = IncidentLog::Open({.path = "/nowhere/incidents.jsonl"}).status();
  EXPECT_EQ(status.message(),
            "cannot write the incident log /nowhere/incidents.jsonl: No such file or directory");
}

// A limit of the file's size stands for a full disk: both stop a write in the middle of a line.
TEST_F(IncidentLogTest, ADiskThatIsFullForAWhileIsToldOnceAndNoLineIsTorn) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto log = Open();
  rlimit full = before;
  full.rlim_cur = 3;
  setrlimit(RLIMIT_FSIZE, &full);
  for (int i = 0; i < 6; ++i) log->Add("line " + std::to_string(i) + "\n");
  EXPECT_NE(AwaitProblem(1).find("cannot write the incident log " + path_), std::string::npos);
  EXPECT_EQ(Content(), "");
  setrlimit(RLIMIT_FSIZE, &before);
  log->Add("last\n");  // written if there is room for it by now
  const std::string mended = AwaitProblem(2);
  EXPECT_NE(mended.find("can be written again"), std::string::npos) << mended;
  log.reset();
  EXPECT_EQ(Content().substr(0, 28), "line 0\nline 1\nline 2\nline 3\n");
}

}  // namespace
}  // namespace muster
