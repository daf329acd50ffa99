#include "base/exit_status.h"

#include <string.h>
#include <sys/wait.h>

namespace muster {

ExitStatus ExitStatus::FromWait(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return Signalled(WTERMSIG(wait_status), WCOREDUMP(wait_status));
  }
  return Exited(WEXITSTATUS(wait_status));
}

std::string ExitStatus::ToString() const {
  if (!signalled()) return "exit code " + std::to_string(code_);
  return "signal " + std::to_string(signal_) + " (" + SignalName(signal_) + ")" +
         (core_dumped_ ? ", core dumped" : "");
}

std::string SignalName(int signal) {
  const char* abbreviation = sigabbrev_np(signal);
  return "SIG" + (abbreviation != nullptr ? std::string(abbreviation) : std::to_string(signal));
}

}  // namespace muster
