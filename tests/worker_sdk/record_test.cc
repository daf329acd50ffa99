#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/record.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

TEST(Record, EachKindOfErrorHasItsExitCode) {
  const auto code = [](const std::exception& error) { return exit_code(error); };
  EXPECT_EQ(code(CheckpointCorrupt("")), 65);
  EXPECT_EQ(code(BackendUnavailable("")), 69);
  EXPECT_EQ(code(Error("")), 70);
  EXPECT_EQ(code(Mismatch("")), 70);
  EXPECT_EQ(code(UnusedParameter("", {})), 70);
  EXPECT_EQ(code(std::bad_alloc()), 70);
  EXPECT_EQ(code(CheckpointError("")), 74);
  EXPECT_EQ(code(StaleGeneration("")), 75);
  EXPECT_EQ(code(PeerLost("")), 75);
  EXPECT_EQ(code(Timeout("", {})), 75);
  EXPECT_EQ(code(EnvironmentError("", {})), 78);
}

class RecordTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kLauncher) setenv(name, "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    file_ = fs::path(testing::TempDir()) / "error.json";
    fs::remove(file_);
    setenv("TORCHELASTIC_ERROR_FILE", file_.c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : kLauncher) unsetenv(name);
    unsetenv("TORCHELASTIC_ERROR_FILE");
  }
  std::string Json() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }
  static constexpr const char* kLauncher[] = {
      "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
  fs::path file_;
};

TEST_F(RecordTest, WhatIsThrownIsOneLineWithTheRankAndTheErrorFileOfTheLauncher) {
  CaptureStderr();
  EXPECT_EQ(record([] { throw std::runtime_error("loss is \"nan\"\nException raised from …"); }),
            70);
  const std::string line = GetCapturedStderr();
  EXPECT_THAT(line, testing::MatchesRegex("[^\n]*run_parts_test: rank 1: loss is \"nan\"\n"));
  EXPECT_THAT(Json(),
              testing::StartsWith(
                  R"({"message": {"message": "loss is \"nan\"", "extraInfo": {"timestamp": ")"));
}

TEST_F(RecordTest, TheErrorFileIsReadableWhateverBytesAreInTheText) {
  CaptureStderr();
  EXPECT_EQ(record([] { throw Error("no sample '\xff\t'"); }), 70);
  GetCapturedStderr();
  EXPECT_THAT(Json(), HasSubstr("\"message\": \"no sample '\xef\xbf\xbd\\t'\""));
}

TEST_F(RecordTest, WhatTheBodyReturnsIsTheCodeAndNothingIsSaid) {
  CaptureStderr();
  EXPECT_EQ(record([] { return 3; }), 3);
  EXPECT_EQ(record([] {}), 0);
  EXPECT_EQ(GetCapturedStderr(), "");
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(RecordTest, WhatIsNoExceptionIsAnErrorToo) {
  CaptureStderr();
  EXPECT_EQ(record([] { throw 42; }), 70);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("no std::exception"));
}

TEST_F(RecordTest, WhatEveryRankThrowsIsPrintedByRankZero) {
  const auto full = [] {
    CheckpointError error("the disk is full");
    error.everywhere = true;
    return error;
  };
  CaptureStderr();
  EXPECT_EQ(record([&] { throw full(); }), 74);
  EXPECT_EQ(GetCapturedStderr(), "");
  EXPECT_THAT(Json(), HasSubstr("the disk is full"));
  setenv("RANK", "0", 1);
  CaptureStderr();
  EXPECT_EQ(record([&] { throw full(); }), 74);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("rank 0: the disk is full"));
}

TEST_F(RecordTest, HalfAnEnvironmentCanBeReported) {
  unsetenv("RANK");
  setenv("TORCHELASTIC_ERROR_FILE", "/nonexistent/error.json", 1);
  CaptureStderr();
  EXPECT_EQ(record([] { throw EnvironmentError("the environment lacks RANK", {"RANK"}); }), 78);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("run_parts_test: the environment lacks RANK"));
}

}  // namespace
}  // namespace muster
