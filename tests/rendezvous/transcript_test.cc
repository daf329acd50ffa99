// Golden scenarios of the round machine: each tests/transcripts/round_*.script holds commands and
// what came of them.
//   bazel run //tests/rendezvous:transcript_test -- --rewrite    writes what comes of them now
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/rendezvous/round_script.h"

namespace muster {
namespace {

constexpr char kFolder[] = "tests/transcripts";

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> Scripts(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("round_", 0) == 0 && entry.path().extension() == ".script") {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The transcript with the results of its commands as they are now. Comments, commands and empty
// lines stay.
std::string Rerun(const std::string& transcript) {
  RoundScript script;
  std::string result;
  std::istringstream lines(transcript);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') {
      result += line + "\n";
    } else if (line.rfind("> ", 0) == 0) {
      result += line + "\n" + script.Run(line.substr(2));
    }
  }
  return result;
}

std::string FirstDifference(const std::string& expected, const std::string& actual) {
  std::istringstream want(expected);
  std::istringstream have(actual);
  for (int number = 1; want || have; ++number) {
    std::string a;
    std::string b;
    std::getline(want, a);
    std::getline(have, b);
    if (a != b) return "line " + std::to_string(number) + " says " + a + "\nbut now it is " + b;
  }
  return "";
}

TEST(Transcripts, SayWhatTheMachineDoes) {
  const auto scripts = Scripts(kFolder);
  ASSERT_FALSE(scripts.empty());
  for (const auto& path : scripts) {
    SCOPED_TRACE(path.filename());
    const std::string expected = Read(path);
    const std::string difference = FirstDifference(expected, Rerun(expected));
    EXPECT_EQ(difference, "")
        << "if that is right: bazel run //tests/rendezvous:transcript_test -- --rewrite";
  }
}

int Rewrite() {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  const std::filesystem::path root = workspace != nullptr ? workspace : ".";
  for (const auto& path : Scripts(root / kFolder)) {
    const std::string rerun = Rerun(Read(path));
    std::ofstream(path) << rerun;
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::string(argv[1]) == "--rewrite") return muster::Rewrite();
  return RUN_ALL_TESTS();
}
