#include "agent/worker_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <tuple>

#include "base/log.h"
#include "tests/agent/temporary_folder.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

class WorkerSocketTest : public ::testing::Test {
 protected:
  WorkerSocketTest()
      : sockets_(loop_, [this](int local_rank, std::string_view key, std::string_view value) {
          said_.emplace_back(local_rank, key, value);
        }) {
    SetLogLevel(LogLevel::kError);
    const absl::Status opened = sockets_.Open({folder_ / "0", folder_ / "1"});
    EXPECT_TRUE(opened.ok()) << opened;
  }

  UniqueFd Connect(const std::string& name) {
    UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, (folder_ / name).c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0)
        << strerror(errno);
    return fd;
  }

  static void Say(const UniqueFd& fd, std::string_view text) {
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()))
        << strerror(errno);
  }

  // The next datagram; "" when there is none, "(end)" when the agent has closed.
  static std::string Hear(const UniqueFd& fd) {
    std::string text(1024, '\0');
    const ssize_t size = recv(fd.get(), text.data(), text.size(), 0);
    if (size == 0 || (size < 0 && errno == ECONNRESET)) return "(end)";
    text.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return text;
  }

  // Turns of the loop until nothing is ready.
  void Settle() {
    for (int i = 0; i < 10; ++i) loop_.RunOnce(EventLoop::Now());
  }

  TemporaryFolder folder_;
  EventLoop loop_;
  std::vector<std::tuple<int, std::string, std::string>> said_;
  WorkerSockets sockets_;
};

TEST_F(WorkerSocketTest, LinesArriveWithTheLocalRankOfTheirSocket) {
  UniqueFd first = Connect("0");
  UniqueFd second = Connect("1");
  Say(second, "READY=1\nSTEP=3");
  Say(first, "STATUS=loading data");
  Settle();
  EXPECT_THAT(said_,
              ::testing::UnorderedElementsAre(FieldsAre(1, "READY", "1"), FieldsAre(1, "STEP", "3"),
                                              FieldsAre(0, "STATUS", "loading data")));
}

TEST_F(WorkerSocketTest, WorkerMayHaveSeveralConnections) {
  UniqueFd one = Connect("0");
  UniqueFd other = Connect("0");
  Say(one, "STEP=1");
  Settle();
  Say(other, "STEP=2");
  Settle();
  EXPECT_THAT(said_, ElementsAre(FieldsAre(0, "STEP", "1"), FieldsAre(0, "STEP", "2")));
  sockets_.Tell("ABORT=4");
  EXPECT_EQ(Hear(one), "ABORT=4");
  EXPECT_EQ(Hear(other), "ABORT=4");
}

TEST_F(WorkerSocketTest, WhatAWorkerSaidBeforeItEndedIsTakenByDrain) {
  {
    UniqueFd known = Connect("0");
    Settle();
    Say(known, "STEP=1");
    UniqueFd unknown = Connect("0");
    Say(unknown, "ERROR=boom");
  }
  sockets_.Drain(0);
  EXPECT_THAT(said_, ::testing::UnorderedElementsAre(FieldsAre(0, "STEP", "1"),
                                                     FieldsAre(0, "ERROR", "boom")));
  sockets_.Drain(7);
}

TEST_F(WorkerSocketTest, MalformedMessagesAreCountedAndTheConnectionGoesOn) {
  UniqueFd fd = Connect("0");
  Say(fd, "nonsense");
  Say(fd, std::string(64 * 1024 + 1, 'x'));
  Say(fd, "READY=1");
  Settle();
  EXPECT_EQ(sockets_.malformed(), 2);
  EXPECT_THAT(said_, ElementsAre(FieldsAre(0, "READY", "1")));
}

TEST_F(WorkerSocketTest, MessageOf64KiBIsTaken) {
  UniqueFd fd = Connect("0");
  Say(fd, "STATUS=" + std::string(64 * 1024 - 7, 'x'));
  Settle();
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(std::get<2>(said_[0]).size(), 64u * 1024 - 7);
}

TEST_F(WorkerSocketTest, LateConnectionIsToldTheLatestAbortAndDrain) {
  sockets_.Tell("ABORT=1");
  sockets_.Tell("ABORT=2");
  sockets_.Tell("DRAIN=1");
  sockets_.Tell("MEMBERS=RANK 0");
  UniqueFd late = Connect("1");
  Settle();
  EXPECT_EQ(Hear(late), "ABORT=2");
  EXPECT_EQ(Hear(late), "DRAIN=1");
  EXPECT_EQ(Hear(late), "");
}

TEST_F(WorkerSocketTest, NextGenerationStartsWithNothingPendingAndDropsOldConnections) {
  UniqueFd old = Connect("0");
  Settle();
  sockets_.Tell("ABORT=1");
  ASSERT_TRUE(sockets_.Open({folder_ / "next"}).ok());
  EXPECT_EQ(Hear(old), "ABORT=1");
  EXPECT_EQ(Hear(old), "(end)");
  EXPECT_THAT(NamesIn(folder_.path()), ElementsAre("next"));
  UniqueFd fresh = Connect("next");
  Settle();
  EXPECT_EQ(Hear(fresh), "");
}

TEST_F(WorkerSocketTest, WorkerThatDoesNotReadNeverBlocksTheAgent) {
  UniqueFd fd = Connect("0");
  Settle();
  const std::string text = "MEMBERS=" + std::string(60 * 1024, 'x');
  for (int i = 0; i < 100; ++i) sockets_.Tell(text);
  Say(fd, "READY=1");
  Settle();
  EXPECT_THAT(said_, ElementsAre(FieldsAre(0, "READY", "1")));
}

TEST_F(WorkerSocketTest, ConnectionsPerWorkerAreBounded) {
  std::vector<UniqueFd> connections;
  for (int i = 0; i < 17; ++i) {
    connections.push_back(Connect("0"));
    Settle();
  }
  EXPECT_EQ(Hear(connections[15]), "");
  EXPECT_EQ(Hear(connections[16]), "(end)");
  connections[3].reset();
  Settle();
  UniqueFd again = Connect("0");
  Settle();
  Say(again, "READY=1");
  Settle();
  EXPECT_THAT(said_, ElementsAre(FieldsAre(0, "READY", "1")));
}

TEST_F(WorkerSocketTest, CloseRemovesThePaths) {
  sockets_.Close();
  EXPECT_THAT(NamesIn(folder_.path()), IsEmpty());
}

TEST_F(WorkerSocketTest, PathThatIsInUseIsReplaced) {
  WriteText(folder_ / "stale", "");
  EXPECT_TRUE(sockets_.Open({folder_ / "stale"}).ok());
  UniqueFd fd = Connect("stale");
}

TEST_F(WorkerSocketTest, BadPathsAreRefusedAndNothingStaysOpen) {
  const absl::Status too_long = sockets_.Open({folder_ / "a", folder_ / std::string(108, 'x')});
  EXPECT_EQ(too_long.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(NamesIn(folder_.path()), IsEmpty());
  const absl::Status missing = sockets_.Open({folder_ / "no/such/folder"});
  EXPECT_EQ(missing.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("No such file"));
}

}  // namespace
}  // namespace muster
