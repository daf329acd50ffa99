#include "base/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/unique_fd.h"

namespace muster {
namespace {

std::string Text(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(ReplaceFileTest, TheFileIsReplacedAndNothingElseIsLeft) {
  const std::string folder = testing::TempDir() + "/replace";
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/report.json";
  ASSERT_TRUE(ReplaceFile(path, "one").ok());
  ASSERT_TRUE(ReplaceFile(path, "two").ok());
  EXPECT_EQ(Text(path), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST(ReplaceFileTest, AFailureNamesThePathAndKeepsTheOldFile) {
  const absl::Status status = ReplaceFile("/no/such/folder/report.json", "x");
  EXPECT_EQ(status.message(),
            "cannot write /no/such/folder/report.json: No such file or directory");
  const std::string folder = testing::TempDir() + "/is_a_folder";
  std::filesystem::create_directories(folder + "/inside");
  EXPECT_FALSE(ReplaceFile(folder, "x").ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder + "/inside"));
}

TEST(ReplaceFileTest, ALinkIsFollowed) {
  const std::string folder = testing::TempDir() + "/links";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/real.json") << "old";
  std::filesystem::create_symlink("real.json", folder + "/latest.json");
  ASSERT_TRUE(ReplaceFile(folder + "/latest.json", "new").ok());
  EXPECT_EQ(Text(folder + "/real.json"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "/latest.json"));
}

TEST(ReplaceFileTest, APipeIsWrittenToAndStaysAPipe) {
  const std::string path = testing::TempDir() + "/pipe";
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(ReplaceFile(path, "nobody reads").ok());
  const UniqueFd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(ReplaceFile(path, "hello").ok());
  char text[16] = {};
  EXPECT_EQ(read(reader.get(), text, sizeof(text)), 5);
  EXPECT_STREQ(text, "hello");
}

TEST(ReplaceFileTest, ADeviceIsWrittenToAndStaysADevice) {
  EXPECT_TRUE(ReplaceFile("/dev/null", "x").ok());
  EXPECT_EQ(ReplaceFile("/dev/full", "x").message(),
            "cannot write /dev/full: No space left on device");
  for (const char* device : {"/dev/null", "/dev/full"}) {
    EXPECT_TRUE(std::filesystem::is_character_file(device)) << device;
    EXPECT_TRUE(CheckReplaceable(device).ok()) << device;
  }
}

TEST(CheckReplaceableTest, SaysBeforehandWhatReplaceFileWouldFailOf) {
  EXPECT_TRUE(CheckReplaceable(testing::TempDir() + "/not-there-yet").ok());
  EXPECT_TRUE(CheckReplaceable("not-there-yet").ok());
  EXPECT_EQ(CheckReplaceable("/no/such/folder/report.json").message(),
            "/no/such/folder/report.json cannot be written: No such file or directory");
  EXPECT_EQ(CheckReplaceable("/").message(), "/ cannot be written: Is a directory");
}

}  // namespace
}  // namespace muster
