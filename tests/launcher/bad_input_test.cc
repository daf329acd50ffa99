// The real program with wrong input: one line on stderr, nothing on stdout, a documented exit code.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/launcher/run_program.h"

namespace muster {
namespace {

struct BadInput {
  const char* name;
  std::vector<std::string> words;
  int code;
  const char* message;  // part of it
  std::vector<std::string> env = {};
};

class BadInputTest : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, GivesOneLineAndItsExitCode) {
  Outcome outcome = RunProgram("launcher/muster", GetParam().words, GetParam().env);
  EXPECT_EQ(outcome.code, GetParam().code);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, ::testing::StartsWith("muster: "));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(GetParam().message));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

const std::vector<BadInput>& Cases() {
  static const auto& cases = *new std::vector<BadInput>{
      {"unknown_option", {"run", "--nosuchflag", "true"}, 2, "'--nosuchflag'"},
      {"nothing_near", {"run", "--bogus", "true"}, 2, "'--bogus': 'muster run --help' lists"},
      {"typing_error", {"run", "--ndoes", "2", "true"}, 2, "did you mean --nnodes?"},
      {"unknown_command", {"rnu", "true"}, 2, "did you mean 'run'?"},
      {"no_program", {"run"}, 2, "no program"},
      {"missing_value", {"run", "--nproc-per-node"}, 2, "--nproc-per-node needs a value"},
      {"nnodes_shape", {"run", "--nnodes", "1:2:3", "true"}, 2, "--nnodes: '1:2:3'"},
      {"nnodes_reversed", {"run", "--nnodes", "2:1", "true"}, 2, "MIN 2 is above MAX 1"},
      {"nproc_zero", {"run", "--nproc-per-node", "0", "true"}, 2, "--nproc-per-node: '0'"},
      {"max_restarts", {"run", "--max-restarts", "x", "true"}, 2, "--max-restarts: 'x'"},
      {"pet_value", {"run", "true"}, 2, "PET_NNODES: 'two'", {"PET_NNODES=two"}},
      {"pet_empty", {"run", "true"}, 2, "PET_ROLE is set and empty", {"PET_ROLE="}},
      {"pet_switch", {"run", "true"}, 2, "PET_STANDALONE: 'si'", {"PET_STANDALONE=si"}},
      {"rdzv_conf", {"run", "--rdzv-conf", "join_timout=3", "true"}, 2, "join_timeout?"},
      {"endpoint", {"run", "--rdzv-endpoint", "127.0.0.1:99999", "true"}, 2, "99999"},
      {"backend", {"run", "--rdzv-backend", "pigeon", "true"}, 2, "'pigeon'"},
      {"line_break", {"run", "--role", "r", "--nnodes", "1\n2", "true"}, 2, "'1 2'"},
      {"missing_script", {"run", "/nowhere/train.py"}, 127, "'/nowhere/train.py'"},
      {"missing_program", {"run", "--no-python", "nosuchprogram"}, 127, "'nosuchprogram'"},
      {"not_executable", {"run", "--no-python", "/etc/passwd"}, 126, "not executable"},
      {"folder", {"run", "/etc"}, 126, "is a directory"},
      {"missing_python", {"run", "-m", "x"}, 127, "PYTHON_EXEC", {"PYTHON_EXEC=/no/python"}},
      {"empty_endpoint",
       {"run", "--rdzv-endpoint", "", "true"},
       2,
       "--rdzv-endpoint is empty: give H"},
      {"empty_local_addr",
       {"check", "--local-addr", ""},
       2,
       "--local-addr is empty: give ADDR, or"},
      {"empty_node",
       {"drain", "j", "--node", ""},
       2,
       "--node is empty: give NAME, or leave it out"},
      {"empty_tls_ca", {"status", "--tls-ca", ""}, 2, "--tls-ca is empty: give FILE, or leave"},
      {"empty_token", {"stop", "j", "--token-file="}, 2, "--token-file is empty: give FILE, or"},
      {"empty_job",
       {"status", ""},
       2,
       "muster status: an argument is empty: give the name of a job"},
      {"last_will", {"last-will", "--job", "x"}, 2, "muster's own use"},
  };
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, BadInputTest, ::testing::ValuesIn(Cases()),
                         [](const auto& each) { return each.param.name; });

TEST(Muster, WithoutWordsShowsItsUsageAsAnError) {
  Outcome outcome = RunProgram("launcher/muster", {}, {});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("muster run [OPTIONS] PROGRAM"));
}

TEST(Muster, HelpAndVersionGoToStdout) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"help"},
                                                {"--help"},
                                                {"run", "-h"},
                                                {"help", "run"},
                                                {"version"},
                                                {"--version"},
                                                {"run", "--version"}}) {
    Outcome outcome = RunProgram("launcher/muster", words, {});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, ::testing::StartsWith("muster "));
  }
}

// Everything that is printed because somebody asked for it.
TEST(Muster, WhatCannotBePrintedIsSaidAndReturned) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"help"},
                                                {"--help"},
                                                {"help", "run"},
                                                {"version"},
                                                {"--version"},
                                                {"run", "--help"},
                                                {"run", "--version"},
                                                {"run", "--print-completion", "bash"},
                                                {"run", "--dry-run", "true"}}) {
    Outcome outcome = RunProgram("launcher/muster", words, {}, "/dev/full");
    EXPECT_EQ(outcome.code, 73) << words.back();
    EXPECT_EQ(outcome.err, "muster: cannot write to standard output: No space left on device\n");
  }
}

TEST(Muster, ATinyStackIsOneLine) {
  for (const char* kib : {"64", "255"}) {
    Outcome outcome =
        RunProgram("/bin/bash",
                   {"-c", std::string("ulimit -s ") + kib + "; exec launcher/muster run true"}, {});
    EXPECT_EQ(outcome.code, 71);
    EXPECT_EQ(outcome.err,
              "muster: the limit of the stack (ulimit -s) is below 256 KiB: raise it\n");
  }
}

TEST(Muster, CalledTorchrunIsMusterRun) {
  std::string link = ::testing::TempDir() + "/torchrun";
  unlink(link.c_str());
  char* real = realpath("launcher/muster", nullptr);
  ASSERT_NE(real, nullptr);
  ASSERT_EQ(symlink(real, link.c_str()), 0);
  free(real);
  Outcome outcome = RunProgram(link, {"--standalone", "--nproc_per_node=2", "echo", "run"}, {});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "run\nrun\n");
  outcome = RunProgram(link, {"--version"}, {});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, ::testing::StartsWith("muster "));
}

TEST(Muster, WithoutItsClusterProgramSaysSo) {
  std::string folder = ::testing::TempDir() + "alone";
  mkdir(folder.c_str(), 0700);
  std::string copy = folder + "/muster";
  unlink(copy.c_str());
  std::ofstream(copy, std::ios::binary) << Content("launcher/muster");
  chmod(copy.c_str(), 0755);
  Outcome outcome = RunProgram(copy, {"run", "--nnodes", "2", "true"}, {});
  EXPECT_EQ(outcome.code, 127);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("alone/muster-cluster"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(Muster, ADryRunStartsNothing) {
  std::string file = ::testing::TempDir() + "/made";
  Outcome outcome = RunProgram("launcher/muster", {"run", "--dry-run", "touch", file}, {});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("touch"));
  EXPECT_NE(access(file.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace muster
