#include "rendezvous/file_store.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/state_file.h"
#include "tests/agent/temporary_folder.h"

namespace muster {
namespace {

using Values = std::vector<StoredValue>;

std::unique_ptr<FileStore> Opened(const std::string& folder) {
  absl::StatusOr<std::unique_ptr<FileStore>> store = FileStore::Open(folder);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

// What a master that starts now finds.
absl::StatusOr<Values> Found(const std::string& folder) {
  absl::StatusOr<std::unique_ptr<FileStore>> store = FileStore::Open(folder);
  if (!store.ok()) return store.status();
  return (*store)->Load();
}

// An error is one line that names the place; `what` must be in it.
void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& what) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_NE(status.message().find(what), std::string::npos) << status;
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status;
  EXPECT_EQ(status.message().substr(0, 6), "state ") << status;
}

class FileStoreTest : public testing::Test {
 protected:
  void Put(const Values& values) {
    const auto store = Opened(folder_);
    ASSERT_TRUE(store->Load().ok());
    std::vector<StoreWrite> writes;
    for (const StoredValue& value : values) writes.push_back({value.key, value.value});
    EXPECT_TRUE(store->Write(writes).ok());
  }

  TemporaryFolder parent_;
  const std::string folder_ = parent_ / "state";
};

TEST_F(FileStoreTest, WhatWasWrittenIsFoundAgain) {
  {
    const auto store = Opened(folder_);
    EXPECT_EQ(*store->Load(), Values());
    ASSERT_TRUE(
        store->Write({{"jobs/b/1", "two"}, {"jobs/a/1", std::string("\0\n \xff", 4)}}).ok());
    ASSERT_TRUE(store->Write({{"jobs/b/1", "three"}, {"jobs/c/1", ""}}).ok());
    ASSERT_TRUE(store->Write({{"jobs/c/1", std::nullopt}, {"jobs/none/1", std::nullopt}}).ok());
  }
  const Values expected = {{"jobs/a/1", std::string("\0\n \xff", 4)}, {"jobs/b/1", "three"}};
  EXPECT_EQ(*Found(folder_), expected);
  // A master that takes over writes to the same files.
  Put({{"jobs/b/1", "four"}});
  EXPECT_EQ(Found(folder_)->at(1).value, "four");
  EXPECT_EQ(NamesIn(folder_), (std::set<std::string>{"1.state", "2.state", "format", "lock"}));
}

TEST_F(FileStoreTest, TheFolderIsTheMastersAlone) {
  Put({{"jobs/a/1", "x"}});
  struct stat folder {};
  struct stat file {};
  ASSERT_EQ(stat(folder_.c_str(), &folder), 0);
  ASSERT_EQ(stat((folder_ + "/1.state").c_str(), &file), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700u);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

// What a loss of power can leave of a value that was being replaced: the temporary file cut
// anywhere beside the old value, or the new value.
TEST_F(FileStoreTest, ALossOfPowerAtAnyByteLeavesTheOldValue) {
  Put({{"jobs/a/1", "old"}});
  const std::string next = StateFileText({"jobs/a/1", "the next value"});
  for (size_t cut = 0; cut <= next.size(); ++cut) {
    WriteText(folder_ + "/1.tmp", next.substr(0, cut));
    const auto found = Found(folder_);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, Values({{"jobs/a/1", "old"}})) << "cut at " << cut;
    EXPECT_EQ(NamesIn(folder_).count("1.tmp"), 0u);
  }
}

TEST_F(FileStoreTest, ALossOfPowerWhileTheFolderIsMadeLeavesAFolderThatCanBeUsed) {
  const std::string format = StateFileText({"folder", ""});
  for (size_t cut = 0; cut <= format.size(); ++cut) {
    std::filesystem::create_directory(folder_);
    WriteText(folder_ + "/lock", "");
    WriteText(folder_ + "/format.tmp", format.substr(0, cut));
    EXPECT_TRUE(Found(folder_).ok()) << "cut at " << cut;
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(FileStoreTest, AFileThatIsCutAnywhereIsRefusedByNameAndNothingIsWrittenOverIt) {
  Put({{"jobs/a/1", "some value"}, {"jobs/b/1", "another"}});
  const std::string path = folder_ + "/1.state";
  const std::string whole = FileText(path);
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    WriteText(path, whole.substr(0, cut));
    ExpectError(Found(folder_).status(), absl::StatusCode::kDataLoss, path + ": it");
    EXPECT_EQ(FileText(path), whole.substr(0, cut));
  }
  WriteText(path, whole + "x");
  ExpectError(Found(folder_).status(), absl::StatusCode::kDataLoss, "its checksum does not match");
}

TEST_F(FileStoreTest, AFileOfWhichAnyByteHasChangedIsRefused) {
  Put({{"jobs/a/1", "some value\nwith lines"}});
  const std::string path = folder_ + "/1.state";
  const std::string whole = FileText(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      WriteText(path, changed);
      const absl::Status status = Found(folder_).status();
      EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsUnimplemented(status))
          << "byte " << at << " bit " << bit << ": " << status;
    }
  }
}

TEST_F(FileStoreTest, GarbageIsRefused) {
  Put({{"jobs/a/1", "x"}});
  const std::string path = folder_ + "/1.state";
  for (const std::string& garbage :
       {std::string(), std::string("\n"), std::string(4096, '\0'), std::string("hello\nworld\n"),
        std::string("muster-state"),
        std::string("muster-state 1 00000000 99999999999999999999 k\n"),
        std::string("muster-state -1 00000000 0 k\n")}) {
    WriteText(path, garbage);
    ExpectError(Found(folder_).status(), absl::StatusCode::kDataLoss, path);
  }
}

TEST_F(FileStoreTest, OneKeyInTwoFilesIsRefused) {
  Put({{"jobs/a/1", "x"}});
  std::filesystem::copy(folder_ + "/1.state", folder_ + "/2.state");
  ExpectError(Found(folder_).status(), absl::StatusCode::kDataLoss,
              "2.state: it holds jobs/a/1, as 1.state does");
}

TEST_F(FileStoreTest, ANewerVersionIsRefused) {
  Put({{"jobs/a/1", "x"}});
  const std::string format = FileText(folder_ + "/format");
  WriteText(folder_ + "/format", "muster-state 2 0badcafe 0 folder\n");
  ExpectError(Found(folder_).status(), absl::StatusCode::kUnimplemented,
              "it has version 2 and this program knows 1");
  WriteText(folder_ + "/format", format);
  WriteText(folder_ + "/1.state", "muster-state 2 0badcafe 1 jobs/a/1\nx");
  ExpectError(Found(folder_).status(), absl::StatusCode::kUnimplemented,
              "1.state: it has version 2");
}

TEST_F(FileStoreTest, ADamagedFormatIsRefusedAndAFolderOfSomethingElseToo) {
  Put({});
  WriteText(folder_ + "/format", "hello\n");
  ExpectError(Found(folder_).status(), absl::StatusCode::kDataLoss,
              "format: it is not a state file");
  WriteText(folder_ + "/format", StateFileText({"jobs/a/1", ""}));
  ExpectError(Found(folder_).status(), absl::StatusCode::kDataLoss, "format: it is another file");
  std::filesystem::remove(folder_ + "/format");
  WriteText(folder_ + "/thesis.tex", "x");
  ExpectError(Found(folder_).status(), absl::StatusCode::kInvalidArgument, "it holds thesis.tex");
}

TEST_F(FileStoreTest, APlaceThatCannotBeAFolderIsRefused) {
  ExpectError(Found(parent_ / "no/such").status(), absl::StatusCode::kNotFound,
              "cannot make it: No such file or directory");
  WriteText(folder_, "x");
  ExpectError(Found(folder_).status(), absl::StatusCode::kNotFound,
              "cannot open it: Not a directory");
}

TEST_F(FileStoreTest, ASecondMasterIsRefusedAndToldWhoTheFirstIs) {
  auto first = Opened(folder_);
  ExpectError(Found(folder_).status(), absl::StatusCode::kFailedPrecondition,
              "another master works on it (process " + std::to_string(getpid()) + ")");
  first.reset();
  EXPECT_TRUE(Found(folder_).ok());
}

TEST_F(FileStoreTest, AMasterWhoseLockWasRemovedMayNotWriteAnyMore) {
  const auto store = Opened(folder_);
  ASSERT_TRUE(store->Write({{"jobs/a/1", "x"}}).ok());
  std::filesystem::remove(folder_ + "/lock");
  ExpectError(store->Write({{"jobs/a/1", "y"}}), absl::StatusCode::kFailedPrecondition,
              "its lock file has been removed");
  EXPECT_EQ(Found(folder_)->at(0).value, "x");
}

// Runs `body` in a process of its own; its exit code.
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(FileStoreTest, AFolderThatMayNotBeWrittenIsRefused) {
  std::filesystem::create_directory(folder_);
  chmod(folder_.c_str(), 0555);
  const int exit_code = InChild([this] {
    // Root may write everywhere, unless it gives up that right.
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    if (syscall(SYS_capset, &header, none) != 0) return 2;
    ExpectError(Found(folder_).status(), absl::StatusCode::kPermissionDenied,
                "cannot open lock: Permission denied: it must be writable");
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(exit_code, 0);
}

TEST_F(FileStoreTest, AValueForWhichThereIsNoRoomLeavesTheOldOneAndIsWrittenWhenThereIsRoom) {
  Put({{"jobs/a/1", "old"}});
  const int exit_code = InChild([this] {
    signal(SIGXFSZ, SIG_IGN);
    const auto store = Opened(folder_);
    store->Load().IgnoreError();
    const rlimit most{256, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &most);
    const std::vector<StoreWrite> large = {{"jobs/a/1", std::string(5000, 'x')},
                                           {"jobs/b/1", "beside it"}};
    ExpectError(store->Write(large), absl::StatusCode::kResourceExhausted,
                "cannot write 1.state: File too large: make room on its disk");
    EXPECT_EQ(FileText(folder_ + "/1.state"), StateFileText({"jobs/a/1", "old"}));
    EXPECT_EQ(NamesIn(folder_).count("1.tmp"), 0u);
    const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &unlimited);
    EXPECT_TRUE(store->Write(large).ok());
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(exit_code, 0);
  EXPECT_EQ(Found(folder_)->size(), 2u);
}

// A file system of its own with room for a few pages; needs a namespace of mounts.
TEST_F(FileStoreTest, AFullDiskIsSaidAndLeavesWhatIsThere) {
  std::filesystem::create_directory(folder_);
  const int exit_code = InChild([this] {
    const bool may_mount = unshare(CLONE_NEWNS | (getuid() == 0 ? 0 : CLONE_NEWUSER)) == 0 &&
                           mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                           mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=64k,mode=0755") == 0;
    if (!may_mount) return 77;
    const auto store = Opened(folder_);
    EXPECT_TRUE(store->Write({{"jobs/a/1", "small"}}).ok());
    ExpectError(store->Write({{"jobs/a/1", std::string(200'000, 'x')}}),
                absl::StatusCode::kResourceExhausted,
                "cannot write 1.state: No space left on device: make room on its disk");
    EXPECT_EQ(FileText(folder_ + "/1.state"), StateFileText({"jobs/a/1", "small"}));
    EXPECT_TRUE(store->Write({{"jobs/a/1", "small again"}}).ok());
    return testing::Test::HasFailure() ? 1 : 0;
  });
  if (exit_code == 77) GTEST_SKIP() << "no file system may be mounted here";
  EXPECT_EQ(exit_code, 0);
}

// The writer counts up in both values and tells each count when it is there to stay.
TEST_F(FileStoreTest, WhateverAMasterThatIsKilledWasToldIsThereToStay) {
  for (int life = 0; life < 8; ++life) {
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    const pid_t writer = fork();
    if (writer == 0) {
      const auto store = Opened(folder_);
      if (!store->Load().ok()) _exit(1);
      for (uint32_t count = 1;; ++count) {
        const std::string text = std::to_string(count);
        if (!store->Write({{"jobs/a/1", text}, {"jobs/b/1", text}}).ok()) _exit(2);
        if (write(told[1], &count, sizeof(count)) != sizeof(count)) _exit(3);
      }
    }
    close(told[1]);
    uint32_t last = 0;
    uint32_t count = 0;
    for (int i = 0; i < 3 + life; ++i) {
      ASSERT_EQ(read(told[0], &count, sizeof(count)), static_cast<ssize_t>(sizeof(count)));
      last = count;
    }
    kill(writer, SIGKILL);
    while (read(told[0], &count, sizeof(count)) == sizeof(count)) last = count;
    close(told[0]);
    ASSERT_EQ(waitpid(writer, nullptr, 0), writer);
    const auto found = Found(folder_);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->size(), 2u);
    for (const StoredValue& value : *found) {
      const uint32_t kept = static_cast<uint32_t>(std::stoul(value.value));
      EXPECT_TRUE(kept == last || kept == last + 1) << value.key << ": " << kept << ", " << last;
    }
  }
}

TEST(StateErrorTest, EachKindHasItsExitCode) {
  EXPECT_EQ(ExitCodeOfStateError(absl::DataLossError("")), 65);
  EXPECT_EQ(ExitCodeOfStateError(absl::UnimplementedError("")), 65);
  EXPECT_EQ(ExitCodeOfStateError(absl::InvalidArgumentError("")), 73);
  EXPECT_EQ(ExitCodeOfStateError(absl::NotFoundError("")), 73);
  EXPECT_EQ(ExitCodeOfStateError(absl::PermissionDeniedError("")), 73);
  EXPECT_EQ(ExitCodeOfStateError(absl::FailedPreconditionError("")), 75);
  EXPECT_EQ(ExitCodeOfStateError(absl::ResourceExhaustedError("")), 75);
  EXPECT_EQ(ExitCodeOfStateError(absl::UnavailableError("")), 75);
}

}  // namespace
}  // namespace muster
