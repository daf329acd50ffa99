#include "launcher/exit_codes.h"

#include <string>

#include "base/log.h"

namespace muster {

int ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kPermissionDenied:
      return kExitNotExecutable;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
      return kExitConfig;
    case absl::StatusCode::kUnauthenticated:
      return kExitNoPermission;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitUnavailable;
    default:
      return kExitSoftware;
  }
}

int FailWith(const absl::Status& status) {
  Log(LogLevel::kError, std::string(status.message()));
  return ExitCodeFor(status);
}

}  // namespace muster
