#include "base/exit_status.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ExitStatus, ShellCodeIsTheExitCodeOr128PlusTheSignal) {
  EXPECT_EQ(ExitStatus::Exited(3).ShellCode(), 3);
  EXPECT_EQ(ExitStatus::Signalled(9).ShellCode(), 137);
  EXPECT_TRUE(ExitStatus().ok());
  EXPECT_FALSE(ExitStatus::Signalled(15).ok());
}

TEST(ExitStatus, TextNamesTheSignalAndTheCoreDump) {
  EXPECT_EQ(ExitStatus::Exited(3).ToString(), "exit code 3");
  EXPECT_EQ(ExitStatus::Signalled(11, true).ToString(), "signal 11 (SIGSEGV), core dumped");
  EXPECT_EQ(SignalName(99), "SIG99");
}

TEST(ExitStatus, ReadsWhatWaitpidStored) {
  EXPECT_EQ(ExitStatus::FromWait(3 << 8), ExitStatus::Exited(3));
  EXPECT_EQ(ExitStatus::FromWait(9), ExitStatus::Signalled(9));
  EXPECT_EQ(ExitStatus::FromWait(11 | 0x80), ExitStatus::Signalled(11, true));
}

}  // namespace
}  // namespace muster
