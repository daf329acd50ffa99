#include "rendezvous/stream_end_text.h"

#include <absl/strings/match.h>

#include <algorithm>

namespace muster {
namespace {

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string InBrackets(const absl::Status& status) {
  return status.message().empty() ? "" : " (" + OneLine(std::string(status.message())) + ")";
}

// gRPC has the same code for this as for a master that is short of something.
bool IsTooLarge(const absl::Status& status) {
  return absl::IsResourceExhausted(status) &&
         absl::StrContains(status.message(), "larger than max");
}

}  // namespace

std::string DialFailureText(const HostPort& endpoint, const absl::Status& status) {
  const std::string where = ToString(endpoint);
  const std::string what = OneLine(std::string(status.message()));
  return what.rfind(where, 0) == 0 ? what : where + ": " + what;
}

std::string StreamEndText(const HostPort& endpoint, const std::string& address,
                          const absl::Status& status, bool heard_master) {
  std::string where = ToString(endpoint);
  if (address != endpoint.host) where += " (" + address + ")";
  where += ": ";
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return where + "the master closed the stream";
    case absl::StatusCode::kUnauthenticated:
      return where + "the master rejected the token" + InBrackets(status);
    case absl::StatusCode::kPermissionDenied:
      return where + "the master refused this node" + InBrackets(status);
    case absl::StatusCode::kInvalidArgument:
      return where + "a message was refused" + InBrackets(status);
    case absl::StatusCode::kUnimplemented:
      return where +
             (heard_master ? "a message is not known on the other side"
                           : "what listens there is not a muster master, or not of this version") +
             InBrackets(status);
    case absl::StatusCode::kResourceExhausted:
      return where +
             (IsTooLarge(status) ? "a message is larger than the other side takes"
                                 : "the stream was given up") +
             InBrackets(status);
    default:
      break;
  }
  if (!heard_master) {
    return where + "the connection was accepted, but no master answered on it" + InBrackets(status);
  }
  return where + "the connection to the master broke" + InBrackets(status);
}

Obstacle ObstacleAfter(const absl::Status& status, bool heard_master) {
  // gRPC ends such a stream by itself, perhaps before the master's greeting is on its way.
  if (IsTooLarge(status)) return Obstacle::kRefused;
  const bool is_unknown = absl::IsUnimplemented(status);
  if (!heard_master) return is_unknown ? Obstacle::kForeign : Obstacle::kNone;
  return is_unknown || absl::IsInvalidArgument(status) ? Obstacle::kRefused : Obstacle::kNone;
}

}  // namespace muster
