#include "base/atomic_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

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

}  // namespace
}  // namespace muster
