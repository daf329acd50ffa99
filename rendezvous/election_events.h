#ifndef MUSTER_RENDEZVOUS_ELECTION_EVENTS_H_
#define MUSTER_RENDEZVOUS_ELECTION_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/time.h"

// What an ElectionMachine is told and what it wants done. Pure.

namespace muster {

// The leader's key as it is now.
struct LeaderKey {
  int64_t create_revision = 0;
  int64_t lease = 0;
  std::string address;  // empty: elected, and does not serve yet
};

namespace election {

// Effects. Each call is answered by one event with its ticket, by Failed where it failed; the
// answer to a ticket that is not waited for any more is passed over.

struct ReadKey {
  uint64_t ticket = 0;
};
struct WatchKey {  // answered when the key changes after `revision`
  uint64_t ticket = 0;
  int64_t revision = 0;
};
struct GrantLease {
  uint64_t ticket = 0;
};
struct MakeKey {  // with `lease`, unless the key is there
  uint64_t ticket = 0;
  int64_t lease = 0;
};
struct RefreshLease {
  uint64_t ticket = 0;
  int64_t lease = 0;
};
struct PublishAddress {  // in the key, if it is still the one of `create_revision`
  uint64_t ticket = 0;
  int64_t create_revision = 0;
  int64_t lease = 0;
  std::string address;
};
struct RevokeLease {
  uint64_t ticket = 0;  // 0: nobody waits for the answer
  int64_t lease = 0;
};
struct Elected {
  int64_t create_revision = 0;
};
struct Lost {
  std::string why;
};
struct LeaderIs {  // another one, or nobody that is known
  std::string address;
  std::string problem;  // why it is not known
};
struct Over {};  // resigned

using Effect = std::variant<ReadKey, WatchKey, GrantLease, MakeKey, RefreshLease, PublishAddress,
                            RevokeLease, Elected, Lost, LeaderIs, Over>;

// Events.
struct Begin {};
struct KeyIs {  // answers ReadKey, WatchKey, and MakeKey
  uint64_t ticket = 0;
  std::optional<LeaderKey> key;
  int64_t revision = 0;  // as of which this holds
};
struct LeaseGranted {
  uint64_t ticket = 0;
  int64_t lease = 0;
  Duration ttl{};
};
struct LeaseIs {  // answers RefreshLease; a time to live of 0: the lease is gone
  uint64_t ticket = 0;
  Duration ttl{};
};
struct Published {
  uint64_t ticket = 0;
};
struct Revoked {
  uint64_t ticket = 0;
};
struct Failed {
  uint64_t ticket = 0;
  std::string detail;
};
struct ServingAt {
  std::string address;
};
struct StepDownAsked {
  std::string why;
};
struct ResignAsked {};
struct TimeCame {};

using Event = std::variant<Begin, KeyIs, LeaseGranted, LeaseIs, Published, Revoked, Failed,
                           ServingAt, StepDownAsked, ResignAsked, TimeCame>;

}  // namespace election

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ELECTION_EVENTS_H_
