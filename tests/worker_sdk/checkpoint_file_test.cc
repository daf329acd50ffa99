#include "worker_sdk/checkpoint_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <muster/error.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "worker_sdk/checkpoint_rotation.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CheckpointFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("ckpt." + std::to_string(getpid()));
    fs::remove_all(folder_);
    path_ = folder_ / "model.ckpt";
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string Slurp(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static void Spill(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  fs::path Beside(const std::string& suffix) const { return path_.string() + suffix; }
  template <class F>
  static std::string ErrorOf(F&& attempt) {
    try {
      attempt();
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "no error";
  }
  // Of all checkpoints, newest first; fails if other files are there.
  std::vector<std::string> Payloads() const {
    std::vector<std::string> payloads;
    for (int age = 0;; ++age) {
      const fs::path file = age == 0 ? path_ : PreviousName(path_, age);
      if (!fs::exists(file)) break;
      payloads.push_back(Slurp(file).substr(64));
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()),
              static_cast<long>(payloads.size()));
    return payloads;
  }

  fs::path folder_, path_;
};

TEST_F(CheckpointFileTest, GivesBackWhatWasWrittenAndItsAuthor) {
  const std::string payload("bytes\0and\nmore", 14);
  WriteCheckpoint(path_, {2, 5, 77}, payload);
  const auto file = ReadCheckpoint(path_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->payload, payload);
  EXPECT_EQ(file->author.instance, 2u);
  EXPECT_EQ(file->author.generation, 5);
  EXPECT_EQ(file->author.run, 77u);
  EXPECT_EQ(file->note, "");
}

TEST_F(CheckpointFileTest, NothingThereIsNoError) {
  EXPECT_FALSE(ReadCheckpoint(path_).has_value());
}

TEST_F(CheckpointFileTest, TheOneBeforeIsKeptAndNothingElseIsLeft) {
  for (const char* text : {"one", "two", "three"}) WriteCheckpoint(path_, {}, text);
  EXPECT_EQ(ReadCheckpoint(path_)->payload, "three");
  EXPECT_EQ(ReadCheckpoint(Beside(".previous"))->payload, "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(CheckpointFileTest, CutAtEveryByteItFallsBackToTheOneBefore) {
  WriteCheckpoint(path_, {}, "the one before");
  WriteCheckpoint(path_, {}, "the newest");
  const std::string newest = Slurp(path_), before = Slurp(Beside(".previous"));
  for (size_t size = 0; size < newest.size(); ++size) {
    Spill(path_, newest.substr(0, size));
    const auto file = ReadCheckpoint(path_);
    ASSERT_TRUE(file) << size;
    EXPECT_EQ(file->payload, "the one before") << size;
    EXPECT_THAT(file->note, HasSubstr("ends at byte " + std::to_string(size)));
    EXPECT_EQ(Slurp(Beside(".corrupt")), newest.substr(0, size));
    EXPECT_EQ(Slurp(Beside(".previous")), before);
  }
}

TEST_F(CheckpointFileTest, AnyAlteredByteIsDetected) {
  WriteCheckpoint(path_, {1, 2, 3}, "some payload, not a multiple of 8");
  const std::string whole = Slurp(path_);
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const char flip : {'\x01', '\x80'}) {
      std::string altered = whole;
      altered[i] ^= flip;
      Spill(path_, altered);
      EXPECT_THROW(ReadCheckpoint(path_), CheckpointCorrupt) << "byte " << i;
    }
  }
  Spill(path_, whole + "x");
  EXPECT_THROW(ReadCheckpoint(path_), CheckpointCorrupt);
}

TEST_F(CheckpointFileTest, WithoutAWholeOneTheErrorNamesBothAndKeepsBoth) {
  WriteCheckpoint(path_, {}, "one");
  WriteCheckpoint(path_, {}, "two");
  fs::resize_file(path_, 70 - 6);
  fs::resize_file(Beside(".previous"), 10);
  try {
    ReadCheckpoint(path_);
    FAIL();
  } catch (const CheckpointCorrupt& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.ckpt: it ends at byte 64 of 67"));
    EXPECT_THAT(error.what(), HasSubstr("model.ckpt.previous: it ends at byte 10, inside"));
  }
  EXPECT_TRUE(fs::exists(path_));
}

TEST_F(CheckpointFileTest, ADamagedOneNeverPushesOutAWholeOne) {
  WriteCheckpoint(path_, {}, "whole");
  WriteCheckpoint(path_, {}, "to be cut");
  fs::resize_file(path_, 66);
  WriteCheckpoint(path_, {}, "newest");
  EXPECT_EQ(ReadCheckpoint(path_)->payload, "newest");
  EXPECT_EQ(ReadCheckpoint(Beside(".previous"))->payload, "whole");
}

TEST_F(CheckpointFileTest, AWorkerOfThePastIsRefused) {
  WriteCheckpoint(path_, {0, 4, 9}, "generation 4");
  EXPECT_THROW(WriteCheckpoint(path_, {0, 3, 9}, "generation 3"), StaleGeneration);
  EXPECT_EQ(ReadCheckpoint(path_)->payload, "generation 4");
  WriteCheckpoint(path_, {0, 4, 9}, "again 4");
  WriteCheckpoint(path_, {0, 5, 9}, "generation 5");
}

TEST_F(CheckpointFileTest, ANewRunGoesOnFromAnOldOneAndThenTheOldOneIsThePast) {
  const Author old_run{0, 7, 1};
  WriteCheckpoint(path_, old_run, "old run");
  const Author new_run = Successor(ReadCheckpoint(path_)->author, {0, 0, 2});
  WriteCheckpoint(path_, new_run, "new run");
  EXPECT_THROW(WriteCheckpoint(path_, {0, 8, 1}, "late"), StaleGeneration);
  // A restart within the new run belongs to it.
  EXPECT_EQ(Successor(new_run, {0, 1, 2}).instance, new_run.instance);
  // The same id with a lower generation: the job was started anew.
  EXPECT_EQ(Successor(old_run, {0, 0, 1}).instance, 1u);
}

TEST_F(CheckpointFileTest, WhatCannotBeWrittenLeavesTheOldFile) {
  WriteCheckpoint(path_, {}, "old");
  fs::create_directory(path_.string() + ".tmp.0.0");  // in the way
  try {
    WriteCheckpoint(path_, {}, "new");
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot write checkpoint " + path_.string()));
  }
  EXPECT_EQ(ReadCheckpoint(path_)->payload, "old");
  EXPECT_THROW(WriteCheckpoint("/proc/nowhere/x", {}, "new"), CheckpointError);
  EXPECT_THROW(WriteCheckpoint("/dev/full/x", {}, "new"), CheckpointError);
}

// ── Rotation ────────────────────────────────────────────────────────────────────────────────────

TEST_F(CheckpointFileTest, AsManyAreKeptAsWereAskedForOldestLast) {
  for (int i = 1; i <= 6; ++i) WriteCheckpoint(path_, {}, std::to_string(i), 4);
  EXPECT_EQ(Payloads(), (std::vector<std::string>{"6", "5", "4", "3"}));
  WriteCheckpoint(path_, {}, "7", 2);  // fewer from now on
  EXPECT_EQ(Payloads(), (std::vector<std::string>{"7", "6"}));
  WriteCheckpoint(path_, {}, "8", 1);
  EXPECT_EQ(Payloads(), (std::vector<std::string>{"8"}));
  WriteCheckpoint(path_, {}, "9", 3);
  WriteCheckpoint(path_, {}, "10", 3);
  EXPECT_EQ(Payloads(), (std::vector<std::string>{"10", "9", "8"}));
}

TEST_F(CheckpointFileTest, TheNewestWholeOneIsTakenHoweverManyAreDamagedOrMissing) {
  for (int damaged = 0; damaged < 4; ++damaged) {
    for (const bool removed : {false, true}) {
      fs::remove_all(folder_);
      for (int i = 1; i <= 4; ++i) WriteCheckpoint(path_, {}, std::to_string(i), 4);
      const std::vector<fs::path> files = {path_, Beside(".previous"), Beside(".previous.2"),
                                           Beside(".previous.3")};
      for (int i = 0; i < damaged; ++i) {
        const fs::path& file = files[static_cast<size_t>(i)];
        removed ? static_cast<void>(fs::remove(file)) : fs::resize_file(file, 65 - 40);
      }
      const auto found = ReadCheckpoint(path_);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->payload, std::to_string(4 - damaged));
      EXPECT_EQ(found->note.empty(), damaged == 0 || removed) << found->note;
      // And saving goes on, whatever the gaps.
      WriteCheckpoint(path_, {}, "5", 4);
      EXPECT_EQ(ReadCheckpoint(path_)->payload, "5");
      fs::resize_file(path_, 30);
      EXPECT_EQ(ReadCheckpoint(path_)->payload, std::to_string(4 - damaged));
    }
  }
}

TEST_F(CheckpointFileTest, OtherFilesBesideItAreLeftAlone) {
  fs::create_directories(folder_);
  const std::vector<std::string> others = {".previous.x", ".previous.01x", ".previously", "2",
                                           ".tmp.junk",   ".tmp.9.9",      ".previous.1"};
  for (const std::string& suffix : others) Spill(Beside(suffix), "mine");
  Spill(Beside(".tmp.0.3"), "left by a crash");
  for (int i = 1; i <= 3; ++i) WriteCheckpoint(path_, {0, 4, 0}, std::to_string(i), 2);
  for (const std::string& suffix : others) EXPECT_EQ(Slurp(Beside(suffix)), "mine") << suffix;
  EXPECT_FALSE(fs::exists(Beside(".tmp.0.3")));
}

// ── What cannot be written or read ──────────────────────────────────────────────────────────────

TEST_F(CheckpointFileTest, AFullDiskIsNamedAndLosesNothing) {
  WriteCheckpoint(path_, {}, "one");
  WriteCheckpoint(path_, {}, "two");
  fs::create_symlink("/dev/full", Beside(".tmp.0.0"));
  EXPECT_THAT(ErrorOf([&] { WriteCheckpoint(path_, {}, "three"); }),
              HasSubstr("cannot write checkpoint " + path_.string() + ": No space left on device"));
  EXPECT_EQ(Payloads(), (std::vector<std::string>{"two", "one"})) << "and no temporary file";
}

TEST_F(CheckpointFileTest, ALimitOfTheFilesSizeIsAnErrorAtEveryLength) {
  WriteCheckpoint(path_, {}, "one");
  const std::string payload(300, 'x');
  for (rlim_t most = 0; most < 364; most += 13) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{most, most};
      setrlimit(RLIMIT_FSIZE, &limit);
      try {
        WriteCheckpoint(path_, {}, payload);
      } catch (const CheckpointError&) {
        _exit(3);
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 3) << most;
    EXPECT_EQ(Payloads(), (std::vector<std::string>{"one"})) << most;
  }
}

// Root, too, is then held to the permissions of files.
bool WithoutPrivileges() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capset, &header, none) == 0;
}

TEST_F(CheckpointFileTest, WithoutPermissionItIsNamedAndLosesNothing) {
  WriteCheckpoint(path_, {}, "one");
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const pid_t child = fork();
  if (child == 0) {
    if (!WithoutPrivileges()) _exit(4);
    const std::string error = ErrorOf([&] { WriteCheckpoint(path_, {}, "two"); });
    _exit(error.find("Permission denied") != std::string::npos ? 3 : 5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_EQ(Payloads(), (std::vector<std::string>{"one"}));
}

TEST_F(CheckpointFileTest, AFileOfANewerFormatIsNeitherReadNorReplacedNorTakenForDamage) {
  WriteCheckpoint(path_, {}, "old");
  WriteCheckpoint(path_, {}, "new");
  std::string bytes = Slurp(path_);
  bytes[8] = 2;
  const uint64_t hash = Hash64(std::string_view(bytes).substr(0, 56));
  std::memcpy(&bytes[56], &hash, sizeof hash);
  bytes += "and more than this program knows of";
  Spill(path_, bytes);
  EXPECT_THAT(
      ErrorOf([&] { ReadCheckpoint(path_); }),
      HasSubstr(path_.string() + ": at byte 8 it says format 2, this program knows up to 1"));
  EXPECT_THAT(ErrorOf([&] { WriteCheckpoint(path_, {}, "x"); }), HasSubstr("format 2"));
  EXPECT_EQ(Slurp(path_), bytes);
  EXPECT_FALSE(fs::exists(Beside(".corrupt")));
}

TEST_F(CheckpointFileTest, AForeignFileIsNotReplaced) {
  fs::create_directories(folder_);
  const std::string foreign(200, 'P');
  Spill(path_, foreign);
  EXPECT_THAT(ErrorOf([&] { WriteCheckpoint(path_, {}, "x"); }),
              HasSubstr(path_.string() + ": it is no checkpoint: at byte 0 there is no MUSTERCK"));
  EXPECT_THROW(ReadCheckpoint(path_), CheckpointCorrupt);
  EXPECT_EQ(Slurp(path_), foreign);
}

TEST_F(CheckpointFileTest, DamageIsNamedWithItsPlace) {
  WriteCheckpoint(path_, {}, "some payload");
  std::string bytes = Slurp(path_);
  bytes[70] ^= 1;
  Spill(path_, bytes);
  EXPECT_THAT(ErrorOf([&] { ReadCheckpoint(path_); }),
              HasSubstr(path_.string() + ": bytes 64 to 75 do not match the checksum at byte 48"));
  bytes[20] ^= 1;
  Spill(path_, bytes);
  EXPECT_THAT(ErrorOf([&] { ReadCheckpoint(path_); }),
              HasSubstr("bytes 0 to 55 do not match the checksum at byte 56"));
}

TEST_F(CheckpointFileTest, AFolderInItsPlaceIsAnErrorAndNotAHang) {
  fs::create_directories(path_);
  EXPECT_THROW(ReadCheckpoint(path_), CheckpointError);
}

}  // namespace

}  // namespace muster
