#ifndef MUSTER_RENDEZVOUS_LAST_WILL_H_
#define MUSTER_RENDEZVOUS_LAST_WILL_H_

#include <absl/status/status.h>

#include "base/time.h"
#include "rendezvous/cluster.h"
#include "rendezvous/messages.h"

namespace muster {

// Tells the master that the workers of a node whose agent died are gone, and waits until it has
// taken note. Of `where` only endpoints, election and security count. For a one-shot process: it
// blocks, for `timeout` at most apart from a resolver that does not answer; where masters are
// elected it waits for the next one when the last one is gone. Errors: as StreamEnded's detail, one
// line; DeadlineExceeded when the master did not acknowledge in time.
absl::Status SendLastWill(const ClusterOptions& where, const LastWill& will, Duration timeout);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_LAST_WILL_H_
