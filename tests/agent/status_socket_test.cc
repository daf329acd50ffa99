#include "agent/status_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "tests/agent/temporary_folder.h"

namespace muster {
namespace {

class StatusSocketTest : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/status.sock"; }

  UniqueFd Connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, path().size());
    UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    loop_.RunOnce(kNever);  // it is accepted
    return fd;
  }
  // What comes back; "": the connection is closed.
  std::string Ask(const UniqueFd& fd, const std::string& question) {
    EXPECT_EQ(send(fd.get(), question.data(), question.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(question.size()));
    loop_.RunOnce(kNever);
    char answer[100];
    const ssize_t size = recv(fd.get(), answer, sizeof(answer), 0);
    return {answer, static_cast<size_t>(std::max<ssize_t>(size, 0))};
  }

  TemporaryFolder folder_;
  EventLoop loop_;
};

TEST_F(StatusSocketTest, AQuestionHasOneAnswerAndThatIsTheEnd) {
  StatusSocket socket(loop_,
                      [](std::string_view question) { return "to " + std::string(question); });
  ASSERT_TRUE(socket.Open(path()).ok());
  ASSERT_TRUE(socket.Open(path()).ok()) << "once is enough";
  const UniqueFd idle = Connect();
  const UniqueFd asker = Connect();
  EXPECT_EQ(Ask(asker, "table"), "to table");
  char more = 0;
  EXPECT_EQ(recv(asker.get(), &more, 1, 0), 0);
  EXPECT_EQ(Ask(idle, "json"), "to json") << "who waits holds nobody up";
}

TEST_F(StatusSocketTest, WithoutAnAnswerTheConnectionIsClosed) {
  StatusSocket socket(loop_, [](std::string_view) { return std::string(); });
  ASSERT_TRUE(socket.Open(path()).ok());
  EXPECT_EQ(Ask(Connect(), "table"), "");
}

TEST_F(StatusSocketTest, WhoGoesAwayIsForgottenAndThePathGoesWithTheSocket) {
  {
    StatusSocket socket(loop_, [](std::string_view) { return "never"; });
    ASSERT_TRUE(socket.Open(path()).ok());
    Connect().reset();
    loop_.RunOnce(kNever);
    EXPECT_EQ(access(path().c_str(), F_OK), 0);
  }
  EXPECT_NE(access(path().c_str(), F_OK), 0);
}

TEST_F(StatusSocketTest, APathThatIsTooLongIsSaid) {
  StatusSocket socket(loop_, [](std::string_view) { return ""; });
  EXPECT_FALSE(socket.Open("/tmp/" + std::string(200, 'x')).ok());
}

}  // namespace
}  // namespace muster
