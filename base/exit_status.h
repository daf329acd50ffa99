#ifndef MUSTER_BASE_EXIT_STATUS_H_
#define MUSTER_BASE_EXIT_STATUS_H_

#include <string>

namespace muster {

// How a process ended: by exit(code), or by a signal. A plain value.
class ExitStatus {
 public:
  ExitStatus() = default;  // exited with 0

  static ExitStatus Exited(int code) { return ExitStatus(code, 0, false); }
  static ExitStatus Signalled(int signal, bool core_dumped = false) {
    return ExitStatus(0, signal, core_dumped);
  }
  // From what waitpid(2) stored. `wait_status` is of an ended process, never of a stopped one.
  static ExitStatus FromWait(int wait_status);

  bool ok() const { return code_ == 0 && signal_ == 0; }
  bool signalled() const { return signal_ != 0; }
  int code() const { return code_; }      // 0 when signalled
  int signal() const { return signal_; }  // 0 when exited
  bool core_dumped() const { return core_dumped_; }

  // What a shell would report: the exit code, or 128 + signal.
  int ShellCode() const { return signal_ != 0 ? 128 + signal_ : code_; }

  // "exit code 3", "signal 9 (SIGKILL)", "signal 11 (SIGSEGV), core dumped".
  std::string ToString() const;

  bool operator==(const ExitStatus&) const = default;

 private:
  ExitStatus(int code, int signal, bool core_dumped)
      : code_(code), signal_(signal), core_dumped_(core_dumped) {}

  int code_ = 0;
  int signal_ = 0;
  bool core_dumped_ = false;
};

// "SIGTERM" for 15; "SIG99" for a number without a name.
std::string SignalName(int signal);

}  // namespace muster

#endif  // MUSTER_BASE_EXIT_STATUS_H_
