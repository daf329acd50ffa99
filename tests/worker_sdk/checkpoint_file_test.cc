#include "worker_sdk/checkpoint_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

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

TEST_F(CheckpointFileTest, AFolderInItsPlaceIsAnErrorAndNotAHang) {
  fs::create_directories(path_);
  EXPECT_THROW(ReadCheckpoint(path_), CheckpointError);
}

}  // namespace

}  // namespace muster
