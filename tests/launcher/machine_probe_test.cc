#include "launcher/machine_probe.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

// Listens on a free port of the loopback address.
UniqueFd Listen(int* port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(fd.get(), 1), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  *port = ntohs(address.sin_port);
  return fd;
}

TEST(RealMachine, APortInUseIsToldWithItsUser) {
  RealMachine machine;
  int port = 0;
  UniqueFd listener = Listen(&port);
  absl::Status status = machine.CheckPortFree("127.0.0.1", port);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  std::string message(status.message());
  EXPECT_EQ(message.find(absl::StrCat("port ", port, " on 127.0.0.1 is in use by pid ", getpid())),
            0u)
      << message;
  EXPECT_FALSE(machine.CheckPortFree("localhost", port).ok());
  listener.reset();
  EXPECT_TRUE(machine.CheckPortFree("127.0.0.1", port).ok());
}

TEST(RealMachine, AddressesThatAreNotHereAreNotTried) {
  RealMachine machine;
  EXPECT_TRUE(machine.CheckPortFree("203.0.113.9", 29500).ok());
  EXPECT_TRUE(machine.CheckPortFree("no-such-host", 29500).ok());
}

TEST(RealMachine, FilesAreWhatTheyCanBeUsedFor) {
  RealMachine machine;
  std::string path = ::testing::TempDir() + "/probe-file";
  std::remove(path.c_str());
  EXPECT_EQ(machine.Inspect(path), FileKind::kMissing);
  std::ofstream(path) << "text";
  EXPECT_EQ(machine.Inspect(path), FileKind::kOther);
  std::ofstream(path) << "\177ELF and so on";
  EXPECT_EQ(machine.Inspect(path), FileKind::kBinary);
  chmod(path.c_str(), 0755);
  EXPECT_EQ(machine.Inspect(path), FileKind::kExecutable);
  EXPECT_EQ(machine.Inspect(::testing::TempDir()), FileKind::kDirectory);
  EXPECT_EQ(machine.Inspect("/dev/null"), FileKind::kOther);
}

TEST(RealMachine, CountsAndNamesAreUsable) {
  RealMachine machine;
  EXPECT_GE(machine.CpuCount(), 1);
  EXPECT_LE(machine.ReadTopology().cpus.size(), 1u << 20);
  EXPECT_FALSE(machine.HostName().empty());
  EXPECT_EQ(machine.RandomId().size(), 32u);
  EXPECT_NE(machine.RandomId(), machine.RandomId());
}

}  // namespace
}  // namespace muster
