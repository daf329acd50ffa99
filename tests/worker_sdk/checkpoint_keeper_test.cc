#include "worker_sdk/checkpoint_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/error.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>

#include "worker_sdk/term_watch.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(BackgroundWriter, DoesOnePieceAtATimeAndASecondOneWaits) {
  BackgroundWriter writer;
  std::promise<void> go;
  std::atomic<int> running = 0, most = 0, done = 0;
  const auto piece = [&](std::shared_future<void> gate) {
    return [&, gate] {
      most = std::max(most.load(), ++running);
      gate.wait();
      --running;
      ++done;
    };
  };
  writer.Start(piece(go.get_future().share()));
  auto second = std::async(std::launch::async, [&] {
    std::promise<void> open;
    open.set_value();
    writer.Start(piece(open.get_future().share()));
    return done.load();
  });
  EXPECT_EQ(done, 0);
  go.set_value();
  EXPECT_GE(second.get(), 1) << "it was handed over before the first one was done";
  writer.Wait();
  EXPECT_EQ(done, 2);
  EXPECT_EQ(most, 1);
}

TEST(BackgroundWriter, AnErrorSurfacesOnceAtTheNextCallAndTheWriterGoesOn) {
  BackgroundWriter writer;
  writer.Wait();  // nothing there
  writer.Start([] { throw CheckpointError("full"); });
  EXPECT_THROW(writer.Start([] { ADD_FAILURE() << "in spite of the error"; }), CheckpointError);
  EXPECT_FALSE(writer.failed());
  writer.Start([] { throw CheckpointError("full"); });
  EXPECT_THROW(writer.Wait(), CheckpointError);
  int done = 0;
  writer.Start([&] { ++done; });
  writer.Wait();
  EXPECT_EQ(done, 1);
}

TEST(BackgroundWriter, TheEndWaitsForWhatWasStarted) {
  bool done = false;
  {
    BackgroundWriter writer;
    writer.Start([&] { done = true; });
  }
  EXPECT_TRUE(done);
}

class KeeperTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("keeper." + std::to_string(getpid()));
    fs::remove_all(folder_);
    file_ = folder_ / "run.ckpt";
  }
  void TearDown() override { fs::remove_all(folder_); }
  static Remembered Of(int64_t commit) {
    return {std::make_shared<const std::string>("commit " + std::to_string(commit)), commit};
  }
  std::string OnDisk() const { return ReadCheckpoint(file_)->payload; }

  fs::path folder_, file_;
  int written_ = 0;
  std::function<void(const fs::path&)> count_ = [this](const fs::path&) { ++written_; };
};

TEST_F(KeeperTest, WritesAtOnceOrInTheBackground) {
  CheckpointKeeper keeper({}, file_, 2, count_);
  for (const bool background : {false, true}) {
    keeper.Write(file_, Of(background ? 2 : 1), background);
    keeper.Wait();
    EXPECT_EQ(OnDisk(), background ? "commit 2" : "commit 1");
    EXPECT_EQ(keeper.last_written(), background ? 2 : 1);
  }
  EXPECT_EQ(written_, 2);
}

TEST_F(KeeperTest, AFailureInTheBackgroundIsToldAndTheFileBeforeStays) {
  CheckpointKeeper keeper({}, file_, 2, count_);
  keeper.Write(file_, Of(1), true);
  keeper.Wait();
  fs::create_directory(file_.string() + ".tmp.0.0");  // in the way
  keeper.Write(file_, Of(2), true);
  try {
    keeper.Write(file_, Of(3), true);
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot write checkpoint " + file_.string()));
  }
  EXPECT_EQ(keeper.last_written(), std::nullopt);
  EXPECT_EQ(OnDisk(), "commit 1");
  EXPECT_EQ(written_, 1);
}

TEST_F(KeeperTest, AtTheEndTheRememberedCommitIsSavedIfItIsNewer) {
  CheckpointKeeper keeper({}, file_, 2, count_);
  EXPECT_EQ(keeper.SaveRemembered(), "");
  EXPECT_FALSE(fs::exists(file_)) << "there was nothing to save";
  keeper.Remember(Of(7));
  EXPECT_EQ(keeper.SaveRemembered(), "");
  EXPECT_EQ(OnDisk(), "commit 7");
  EXPECT_EQ(keeper.SaveRemembered(), "");
  EXPECT_EQ(written_, 1) << "it is on disk already";
  keeper.Write(file_, Of(9), true);
  keeper.Remember(Of(8));
  EXPECT_EQ(keeper.SaveRemembered(), "");
  EXPECT_EQ(OnDisk(), "commit 9");
  keeper.RolledBack();
  EXPECT_EQ(keeper.SaveRemembered(), "");
  EXPECT_EQ(OnDisk(), "commit 8") << "commits are counted anew";
}

TEST_F(KeeperTest, WhatCannotBeSavedAtTheEndIsATextAndNoException) {
  CheckpointKeeper keeper({0, 3, 0}, file_, 2, count_);
  keeper.Remember(Of(7));
  WriteCheckpoint(file_, {0, 4, 0}, "of a later generation");
  EXPECT_THAT(keeper.SaveRemembered(), HasSubstr("not overwritten"));
  EXPECT_EQ(OnDisk(), "of a later generation");
}

TEST_F(KeeperTest, GoesOnFromAnEarlierRunAndThenThatIsThePast) {
  CheckpointKeeper keeper({0, 0, 2}, file_, 2, count_);
  keeper.GoOnFrom(file_, {4, 9, 1}, Of(5));
  EXPECT_EQ(keeper.SaveRemembered(), "");
  EXPECT_FALSE(fs::exists(file_)) << "it was read from there";
  keeper.Write(file_, Of(6), false);
  EXPECT_EQ(ReadCheckpoint(file_)->author.instance, 5u);
}

TEST_F(KeeperTest, ACopyElsewhereDoesNotStandForTheRunsOwnFile) {
  CheckpointKeeper keeper({}, file_, 2, count_);
  const fs::path copy = folder_ / "best.ckpt";
  keeper.Remember(Of(7));
  keeper.Write(copy, Of(8), false);
  EXPECT_EQ(keeper.SaveRemembered(), "");
  EXPECT_EQ(OnDisk(), "commit 7");
  keeper.GoOnFrom(copy, {}, Of(9));
  EXPECT_EQ(keeper.SaveRemembered(), "");
  EXPECT_EQ(OnDisk(), "commit 9");
}

TEST_F(KeeperTest, TermSavesFirstAndThenEndsAsItWouldHave) {
  const pid_t child = fork();
  if (child == 0) {
    CheckpointKeeper keeper({}, file_, 2, {});
    keeper.Remember(Of(42));
    const TermWatch watch([&] { keeper.SaveRemembered(); });
    kill(getpid(), SIGTERM);
    while (true) pause();
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_EQ(OnDisk(), "commit 42");
}

TEST(TermWatch, LeavesAChosenHandlerAloneAndEndsWithoutATrace) {
  signal(SIGTERM, SIG_IGN);
  {
    const TermWatch watch([] { ADD_FAILURE(); });
  }
  struct sigaction now {};
  sigaction(SIGTERM, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
  {
    const TermWatch watch([] { ADD_FAILURE(); });
  }
  sigaction(SIGTERM, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace muster
