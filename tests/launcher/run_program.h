#ifndef MUSTER_TESTS_LAUNCHER_RUN_PROGRAM_H_
#define MUSTER_TESTS_LAUNCHER_RUN_PROGRAM_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/exit_status.h"

namespace muster {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

inline std::string Content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// Runs it with nothing but PATH and `env` in its environment and waits for its end. Its standard
// output goes to the file `out`; a device has no content.
inline Outcome RunProgram(const std::string& program, std::vector<std::string> words,
                          std::vector<std::string> env,
                          const std::string& out = ::testing::TempDir() + "/stdout") {
  const std::string err = ::testing::TempDir() + "/stderr";
  words.insert(words.begin(), program);
  env.emplace_back("PATH=/usr/bin:/bin");
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : env) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), kWrite, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), kWrite, 0600);
  pid_t pid = 0;
  EXPECT_EQ(posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), envp.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  const bool is_device = out.starts_with("/dev/");
  return {ExitStatus::FromWait(status).ShellCode(), is_device ? "" : Content(out), Content(err)};
}

}  // namespace muster

#endif  // MUSTER_TESTS_LAUNCHER_RUN_PROGRAM_H_
