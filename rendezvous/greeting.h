#ifndef MUSTER_RENDEZVOUS_GREETING_H_
#define MUSTER_RENDEZVOUS_GREETING_H_

#include <absl/status/status.h>

#include <string>

#include "base/time.h"

namespace muster {

// Waits for what a master says on a new connection without being asked, the SETTINGS of HTTP/2, and
// leaves it on the connection. For plaintext only. Half of `patience` it is waited for; then the
// client's beginning of HTTP/2 is sent, so that servers which speak second show what they are.
// Nothing but OK leaves a connection that can be used.
//
// Errors, each one line that begins with `where`:
//   Internal            closed before we said anything (as a proxy does for a master that is not
//                       up), or a master that was slow: try again
//   FailedPrecondition  another protocol is spoken there
//   OutOfRange          closed without an answer once we had said something: another program's port
//   Aborted             nothing is said there: another program's port, or a master that is stopped
//   Unimplemented       TLS is spoken there
//   Cancelled           `cancel_fd` became readable (-1: never)
absl::Status AwaitGreeting(int fd, const std::string& where, Duration patience, int cancel_fd);

// Whether TLS is spoken on a new connection, which it uses up: OK, or the error Unimplemented of
// above. For servers that close what is not TLS without a word, as a master does.
absl::Status CheckSpeaksNoTls(int fd, const std::string& where, Duration patience, int cancel_fd);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_GREETING_H_
