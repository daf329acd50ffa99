#include "agent/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/agent/temporary_folder.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectory::Options Options() {
    RunDirectory::Options options;
    options.tmp_dir = folder_.path();
    return options;
  }
  RunDirectory::Options WithLogs() {
    RunDirectory::Options options = Options();
    options.log_dir = folder_ / "logs";
    options.job_id = "job";
    return options;
  }

  TemporaryFolder folder_;
};

TEST_F(RunDirectoryTest, WithoutLogOptionsNothingExistsBeforeTheFirstGenerationNorAfterTheEnd) {
  RunDirectory directory(Options());
  ASSERT_TRUE(directory.Prepare().ok());
  EXPECT_THAT(NamesIn(folder_.path()), IsEmpty());
  ASSERT_TRUE(directory.OpenGeneration(1, 0, 2).ok());
  EXPECT_THAT(NamesIn(folder_.path()), ElementsAre(StartsWith("muster-")));
  struct stat status {};
  ASSERT_EQ(stat(directory.private_root().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_EQ(directory.LogFile(0, false), "");
  EXPECT_EQ(directory.FilteredLogFile(true), "");
  WriteText(directory.ErrorFile(1), "{}");
  directory.Remove(true);
  EXPECT_THAT(NamesIn(folder_.path()), IsEmpty());
}

TEST_F(RunDirectoryTest, PathsDifferByGenerationAndLocalRank) {
  RunDirectory directory(Options());
  std::set<std::string> paths;
  for (int generation = 1; generation <= 2; ++generation) {
    ASSERT_TRUE(directory.OpenGeneration(generation, 0, 2).ok());
    for (int local_rank = 0; local_rank < 2; ++local_rank) {
      paths.insert(directory.SocketPath(local_rank));
      paths.insert(directory.ErrorFile(local_rank));
    }
  }
  EXPECT_EQ(paths.size(), 8u);
  for (const std::string& path : paths)
    EXPECT_THAT(path, StartsWith(directory.private_root() + "/"));
  directory.Remove(true);
}

TEST_F(RunDirectoryTest, AfterAFailureErrorFilesAreKeptAndNothingElse) {
  RunDirectory directory(Options());
  ASSERT_TRUE(directory.OpenGeneration(1, 0, 1).ok());
  WriteText(directory.ErrorFile(0), "{}");
  WriteText(directory.SocketPath(0), "");
  directory.Remove(false);
  EXPECT_THAT(NamesIn(directory.private_root()), ElementsAre("g1-0.error.json"));
}

TEST_F(RunDirectoryTest, AfterAFailureWithoutErrorFilesNothingIsKept) {
  RunDirectory directory(Options());
  ASSERT_TRUE(directory.OpenGeneration(1, 0, 1).ok());
  directory.Remove(false);
  EXPECT_THAT(NamesIn(folder_.path()), IsEmpty());
}

TEST_F(RunDirectoryTest, LongOrUnusableTmpdirGivesWay) {
  const std::string long_path = folder_ / std::string(80, 'x');
  std::filesystem::create_directory(long_path);
  for (const std::string& tmp :
       {long_path, folder_ / "missing", std::string("relative"), std::string()}) {
    RunDirectory::Options options;
    options.tmp_dir = tmp;
    RunDirectory directory(options);
    ASSERT_TRUE(directory.OpenGeneration(1, 0, 1).ok());
    EXPECT_THAT(directory.private_root(), MatchesRegex("(/dev/shm|/tmp)/muster-......"));
    directory.Remove(true);
  }
}

TEST_F(RunDirectoryTest, SocketPathsFitIntoTheirAddressForEveryAcceptedTmpdir) {
  for (int length = 1; length < 80; ++length) {
    const std::string tmp = folder_ / std::string(static_cast<size_t>(length), 'x');
    std::filesystem::create_directory(tmp);
    RunDirectory::Options options;
    options.tmp_dir = tmp;
    RunDirectory directory(options);
    ASSERT_TRUE(directory.OpenGeneration(9999999999, 0, 1).ok());
    EXPECT_LE(directory.SocketPath(99999).size(), 107u);
    directory.Remove(true);
  }
}

TEST_F(RunDirectoryTest, LogDirectoryHasTorchrunsLayout) {
  RunDirectory directory(WithLogs());
  ASSERT_TRUE(directory.Prepare().ok());
  ASSERT_TRUE(directory.OpenGeneration(3, 1, 2).ok());
  EXPECT_THAT(directory.log_root(), MatchesRegex(".*/logs/job_[a-z2-7]{8}"));
  const std::string attempt = directory.log_root() + "/attempt_1";
  EXPECT_EQ(directory.LogFile(1, false), attempt + "/1/stdout.log");
  EXPECT_EQ(directory.LogFile(0, true), attempt + "/0/stderr.log");
  EXPECT_EQ(directory.ErrorFile(1), attempt + "/1/error.json");
  EXPECT_EQ(directory.FilteredLogFile(false), attempt + "/filtered_stdout.log");
  EXPECT_THAT(NamesIn(attempt), ElementsAre("0", "1"));
  WriteText(directory.ErrorFile(1), "{}");
  directory.Remove(true);
  EXPECT_EQ(FileText(directory.ErrorFile(1)), "{}");
  EXPECT_THAT(NamesIn(folder_.path()), ElementsAre("logs"));
}

TEST_F(RunDirectoryTest, GenerationWithTheSameRestartCountKeepsTheOlderLogs) {
  RunDirectory directory(WithLogs());
  ASSERT_TRUE(directory.Prepare().ok());
  ASSERT_TRUE(directory.OpenGeneration(1, 0, 1).ok());
  WriteText(directory.LogFile(0, false), "old");
  ASSERT_TRUE(directory.OpenGeneration(2, 0, 1).ok());
  WriteText(directory.LogFile(0, false), "new");
  ASSERT_TRUE(directory.OpenGeneration(3, 1, 1).ok());
  EXPECT_THAT(NamesIn(directory.log_root()), ElementsAre("attempt_0", "attempt_0_g2", "attempt_1"));
  EXPECT_EQ(FileText(directory.log_root() + "/attempt_0/0/stdout.log"), "old");
  directory.Remove(true);
}

TEST_F(RunDirectoryTest, LogDirectoryIsMadeWithItsParentsAndSharedByJobs) {
  RunDirectory::Options options = Options();
  options.log_dir = folder_ / "a b/c/logs/";
  RunDirectory one(options);
  RunDirectory other(options);
  ASSERT_TRUE(one.Prepare().ok());
  ASSERT_TRUE(other.Prepare().ok());
  EXPECT_NE(one.log_root(), other.log_root());
  EXPECT_EQ(NamesIn(folder_ / "a b/c/logs").size(), 2u);
}

TEST_F(RunDirectoryTest, JobIdsWithSlashesDotsOrGreatLengthStayOneName) {
  for (const std::string& id :
       {std::string("a/b/../c"), std::string(".."), std::string("x\n"), std::string(1000, 'j')}) {
    RunDirectory::Options options = WithLogs();
    options.job_id = id;
    RunDirectory directory(options);
    ASSERT_TRUE(directory.Prepare().ok()) << id;
    EXPECT_EQ(std::filesystem::path(directory.log_root()).parent_path(), folder_ / "logs");
  }
}

TEST_F(RunDirectoryTest, RedirectWithoutLogDirectoryKeepsTheFilesInTmpdir) {
  RunDirectory::Options options = Options();
  options.logs_asked = true;
  RunDirectory directory(options);
  ASSERT_TRUE(directory.Prepare().ok());
  ASSERT_TRUE(directory.OpenGeneration(1, 0, 1).ok());
  WriteText(directory.LogFile(0, false), "out");
  directory.Remove(true);
  EXPECT_THAT(NamesIn(folder_.path()), ElementsAre(StartsWith("muster_none_")));
  EXPECT_EQ(FileText(directory.LogFile(0, false)), "out");
}

TEST_F(RunDirectoryTest, DevNullMeansNoFilesAtAll) {
  RunDirectory::Options options = Options();
  options.log_dir = "/dev/null";
  options.logs_asked = true;
  RunDirectory directory(options);
  ASSERT_TRUE(directory.Prepare().ok());
  ASSERT_TRUE(directory.OpenGeneration(1, 0, 1).ok());
  EXPECT_EQ(directory.ErrorFile(0), "");
  EXPECT_EQ(directory.LogFile(0, true), "");
  EXPECT_EQ(directory.log_root(), "");
  EXPECT_NE(directory.SocketPath(0), "");
  directory.Remove(true);
}

TEST_F(RunDirectoryTest, LogDirectoryThatIsAFileIsRefusedInOneLine) {
  WriteText(folder_ / "file", "");
  for (const std::string& path : {folder_ / "file", folder_ / "file/sub"}) {
    RunDirectory::Options options = Options();
    options.log_dir = path;
    const absl::Status status = RunDirectory(options).Prepare();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("Not a directory"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
}

TEST_F(RunDirectoryTest, LogDirectoryThatCannotBeWrittenIsRefusedInOneLine) {
  RunDirectory::Options options = Options();
  options.log_dir = "/proc/logs";
  const absl::Status status = RunDirectory(options).Prepare();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), StartsWith("log directory /proc"));
  if (geteuid() == 0) GTEST_SKIP() << "root writes where it likes";
  ASSERT_EQ(chmod(folder_.path().c_str(), 0500), 0);
  options.log_dir = folder_ / "logs";
  EXPECT_EQ(RunDirectory(options).Prepare().code(), absl::StatusCode::kPermissionDenied);
  chmod(folder_.path().c_str(), 0700);
}

}  // namespace
}  // namespace muster
