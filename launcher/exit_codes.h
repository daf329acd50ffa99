#ifndef MUSTER_LAUNCHER_EXIT_CODES_H_
#define MUSTER_LAUNCHER_EXIT_CODES_H_

#include "absl/status/status.h"

namespace muster {

// Exit codes of muster itself (docs/EXIT_CODES.md), beside base/print_out.h's; others are a
// worker's own, or 128 + a signal.
inline constexpr int kExitNoSuchJob = 1;      // status, stop: the master has no such job any more
inline constexpr int kExitFound = 1;          // check: there is a problem
inline constexpr int kExitUsage = 2;          // the command line
inline constexpr int kExitUnavailable = 69;   // EX_UNAVAILABLE: no master to be reached
inline constexpr int kExitSoftware = 70;      // EX_SOFTWARE: a fault in muster
inline constexpr int kExitOsError = 71;       // EX_OSERR: the kernel gives no process or descriptor
inline constexpr int kExitTimedOut = 75;      // EX_TEMPFAIL: too few nodes came
inline constexpr int kExitNoPermission = 77;  // EX_NOPERM: credentials
inline constexpr int kExitConfig = 78;        // EX_CONFIG: what is asked for does not work here
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

// The code for a failure before anything was started, by the kinds that launcher/plan.h names.
int ExitCodeFor(const absl::Status& status);

// Says the error in one line; its exit code.
int FailWith(const absl::Status& status);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_EXIT_CODES_H_
