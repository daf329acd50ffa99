#ifndef MUSTER_RENDEZVOUS_STATE_STORE_H_
#define MUSTER_RENDEZVOUS_STATE_STORE_H_

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace muster {

struct StoredValue {
  std::string key;
  std::string value;
  bool operator==(const StoredValue&) const = default;
};

struct StoreWrite {
  std::string key;                   // printable ASCII without spaces, kStoreKeyBytesMax at most
  std::optional<std::string> value;  // nothing: the key is removed, if it is there
  // Nobody asks for the value after so long: a store may drop it then by itself. Nothing: it stays
  // until it is removed.
  std::optional<Duration> needed_for = {};
  bool operator==(const StoreWrite&) const = default;
};

inline constexpr size_t kStoreKeyBytesMax = 1024;

// Where a master keeps what must outlive it: few keys (one for each job), each with one value of
// bytes. Exactly one master writes: the store holds that right itself (a locked file, a leader's
// key) and finds out when it has lost it.
//
// Every call blocks as the disk or the network does. One call at a time, from any thread.
class StateStore {
 public:
  virtual ~StateStore() = default;

  // All that is kept, by key. Called once, before the first Write and before the master serves.
  //   DataLoss            it is there and cannot be understood: what and where. Nothing is served,
  //                       nothing is written over it
  //   Unavailable         the store cannot be reached now
  //   FailedPrecondition  another master has the right to write
  virtual absl::StatusOr<std::vector<StoredValue>> Load() = 0;

  // Each change whole or not at all, whatever happens to the process or the machine; with OK all of
  // them are there to stay. Keys occur once, and no key needs another one's change: a store may
  // make them in any order and in several goes. After an error each may have been made or not: the
  // same ones, or newer ones of these keys, are written again until it says OK.
  //   Unavailable         for now (unreachable, an input/output error): worth another try
  //   ResourceExhausted   the disk or the quota is full, or a value is too large: worth another try
  //                       when somebody has made room
  //   FailedPrecondition  the right to write is lost for good: this master must step down
  // Any other error counts as Unavailable.
  virtual absl::Status Write(const std::vector<StoreWrite>& changes) = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STATE_STORE_H_
