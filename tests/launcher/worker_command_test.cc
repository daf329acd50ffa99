#include "agent/worker_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WorkerCommandTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<std::string>> Command(const ProgramRequest& request) {
    return WorkerCommand(request, env_, [this](const std::string& path) {
      auto it = files_.find(path);
      return it == files_.end() ? FileKind::kMissing : it->second;
    });
  }

  std::string Problem(const ProgramRequest& request, absl::StatusCode code) {
    absl::Status status = Command(request).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }

  EnvMap env_ = {{"PATH", "/venv/bin::/usr/bin"}};
  std::map<std::string, FileKind> files_ = {
      {"/venv/bin/python3", FileKind::kExecutable},
      {"/usr/bin/python3", FileKind::kExecutable},
      {"/usr/bin/env", FileKind::kExecutable},
      {"train.py", FileKind::kOther},
      {"run.py", FileKind::kExecutable},
      {"./run.py", FileKind::kExecutable},
      {"build/trainer", FileKind::kExecutable},
      {"trainer", FileKind::kExecutable},
      {"./here", FileKind::kExecutable},
      {"here", FileKind::kExecutable},
      {"notes", FileKind::kOther},
      {"lost+x", FileKind::kBinary},
      {"folder", FileKind::kDirectory},
  };
};

TEST_F(WorkerCommandTest, ScriptsRunUnbufferedUnderTheFirstPythonOnPath) {
  EXPECT_THAT(*Command({"train.py", {"--x", ""}}),
              ElementsAre("/venv/bin/python3", "-u", "train.py", "--x", ""));
}

TEST_F(WorkerCommandTest, PythonExecWins) {
  env_["PYTHON_EXEC"] = "/usr/bin/python3";
  EXPECT_EQ(Command({"train.py"})->front(), "/usr/bin/python3");
  env_["PYTHON_EXEC"] = "python3";
  EXPECT_EQ(Command({"train.py"})->front(), "/venv/bin/python3");
  env_["PYTHON_EXEC"] = "";
  EXPECT_EQ(Command({"train.py"})->front(), "/venv/bin/python3");
}

TEST_F(WorkerCommandTest, AWrongPythonIsNamed) {
  env_["PYTHON_EXEC"] = "/no/python";
  EXPECT_THAT(Problem({"train.py"}, absl::StatusCode::kNotFound), HasSubstr("'/no/python'"));
  env_["PYTHON_EXEC"] = "./notes";
  files_["./notes"] = FileKind::kOther;
  EXPECT_THAT(Problem({"train.py"}, absl::StatusCode::kPermissionDenied), HasSubstr("'./notes'"));
  env_.erase("PYTHON_EXEC");
  env_["PATH"] = "/nowhere";
  EXPECT_THAT(Problem({"train.py"}, absl::StatusCode::kNotFound),
              HasSubstr("no python3 is on PATH"));
}

TEST_F(WorkerCommandTest, ModulesRunWithM) {
  EXPECT_THAT(*Command({"pkg.mod", {"-m"}, true}),
              ElementsAre("/venv/bin/python3", "-u", "-m", "pkg.mod", "-m"));
  EXPECT_THAT(Problem({"x", {}, true, true}, absl::StatusCode::kInvalidArgument),
              HasSubstr("--no-python"));
}

TEST_F(WorkerCommandTest, ExecutableFilesNeedNoFlag) {
  EXPECT_THAT(*Command({"build/trainer", {"a"}}), ElementsAre("build/trainer", "a"));
  EXPECT_THAT(*Command({"trainer"}), ElementsAre("./trainer"));
}

TEST_F(WorkerCommandTest, AnExecutableScriptStillRunsUnderPython) {
  EXPECT_THAT(*Command({"run.py"}), ElementsAre("/venv/bin/python3", "-u", "run.py"));
  EXPECT_THAT(*Command({"run.py", {}, false, true}), ElementsAre("./run.py"));
}

TEST_F(WorkerCommandTest, OtherFilesRunUnderPythonAsTorchrunDoes) {
  EXPECT_THAT(*Command({"notes"}), ElementsAre("/venv/bin/python3", "-u", "notes"));
}

TEST_F(WorkerCommandTest, BareNamesAreLookedForOnPath) {
  EXPECT_THAT(*Command({"env"}), ElementsAre("/usr/bin/env"));
  EXPECT_THAT(*Command({"env", {}, false, true}), ElementsAre("/usr/bin/env"));
  // An empty element of PATH is the working directory.
  EXPECT_THAT(*Command({"here", {}, false, true}), ElementsAre("./here"));
  env_.erase("PATH");
  EXPECT_THAT(*Command({"env"}), ElementsAre("/usr/bin/env"));
}

TEST_F(WorkerCommandTest, WhatIsNotThereIsNotFound) {
  EXPECT_EQ(Problem({"/nowhere/x.py"}, absl::StatusCode::kNotFound),
            "no such file: '/nowhere/x.py': correct the name of the program");
  EXPECT_EQ(Problem({"nosuch"}, absl::StatusCode::kNotFound),
            "no such file: 'nosuch', also not on PATH: correct the name of the program");
  EXPECT_THAT(Problem({"./a\nb"}, absl::StatusCode::kNotFound), HasSubstr("'./a b'"));
  EXPECT_THAT(Problem({""}, absl::StatusCode::kNotFound), HasSubstr("''"));
}

TEST_F(WorkerCommandTest, WhatCannotBeExecutedIsDenied) {
  EXPECT_THAT(Problem({"folder"}, absl::StatusCode::kPermissionDenied),
              HasSubstr("is a directory"));
  EXPECT_THAT(Problem({"lost+x"}, absl::StatusCode::kPermissionDenied),
              HasSubstr("is not executable"));
  EXPECT_THAT(Problem({"./notes", {}, false, true}, absl::StatusCode::kNotFound),
              HasSubstr("no such file"));
  files_["./notes"] = FileKind::kOther;
  EXPECT_THAT(Problem({"./notes", {}, false, true}, absl::StatusCode::kPermissionDenied),
              HasSubstr("permission denied"));
}

TEST_F(WorkerCommandTest, RunPathMeansPythonWhateverTheNameIs) {
  ProgramRequest request = {"build/trainer"};
  request.run_path = true;
  EXPECT_THAT(*Command(request), ElementsAre("/venv/bin/python3", "-u", "build/trainer"));
  request.no_python = true;
  EXPECT_THAT(*Command(request), ElementsAre("/venv/bin/python3", "-u", "build/trainer"));
  request.module = true;
  EXPECT_THAT(Problem(request, absl::StatusCode::kInvalidArgument), HasSubstr("--run-path"));
}

}  // namespace
}  // namespace muster
