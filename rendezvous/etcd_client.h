#ifndef MUSTER_RENDEZVOUS_ETCD_CLIENT_H_
#define MUSTER_RENDEZVOUS_ETCD_CLIENT_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "proto/etcd.pb.h"
#include "rendezvous/etcd_options.h"

namespace muster {

// Calls to one etcd, over gRPC. A call goes to the member that answered last; when that one does
// not answer, refuses the connection or has no leader, the call is made to the next, until each was
// tried or the time is up. So a call that changes something may be carried out twice.
//
// With a user, a token is fetched first, and again when etcd does not take it any more.
//
// Thread-safe. `done` is called once, by a thread of gRPC; it must not block, nor destroy the
// client. The errors of all calls, one line that names the member:
//   Unavailable         no member answers or has a leader now; the call may have been carried out
//   Unauthenticated     the user or the password is wrong, or one is needed
//   PermissionDenied    the user may not do this
//   NotFound            there is no such lease
//   OutOfRange          what is to be watched from has been forgotten (compacted)
//   ResourceExhausted   etcd's disk quota is used up, or the request is too large
//   InvalidArgument, FailedPrecondition, Internal, …: etcd's own words
//   Cancelled           the client was cancelled
class EtcdClient {
 public:
  template <typename Response>
  using Done = std::function<void(absl::StatusOr<Response>)>;

  // InvalidArgument: no endpoint. FailedPrecondition: a file of the options cannot be read. Does
  // not connect.
  static absl::StatusOr<std::unique_ptr<EtcdClient>> Make(const EtcdOptions& options);

  // Cancels, and waits until all calls have ended.
  ~EtcdClient();

  void Range(const etcdserverpb::RangeRequest& request, Done<etcdserverpb::RangeResponse> done);
  void Txn(const etcdserverpb::TxnRequest& request, Done<etcdserverpb::TxnResponse> done);
  void LeaseGrant(const etcdserverpb::LeaseGrantRequest& request,
                  Done<etcdserverpb::LeaseGrantResponse> done);
  void LeaseRevoke(const etcdserverpb::LeaseRevokeRequest& request,
                   Done<etcdserverpb::LeaseRevokeResponse> done);
  void LeaseKeepAlive(const etcdserverpb::LeaseKeepAliveRequest& request,
                      Done<etcdserverpb::LeaseKeepAliveResponse> done);

  // Done when `key` changes after `revision`, with the first events, however long that takes.
  // Unavailable when the member goes away or has lost its leader: ask another time, from the same
  // revision.
  void AwaitChange(const std::string& key, int64_t revision,
                   Done<etcdserverpb::WatchResponse> done);

  // The same, for a thread that may wait.
  absl::StatusOr<etcdserverpb::RangeResponse> RangeAndWait(
      const etcdserverpb::RangeRequest& request);
  absl::StatusOr<etcdserverpb::TxnResponse> TxnAndWait(const etcdserverpb::TxnRequest& request);
  absl::StatusOr<etcdserverpb::LeaseGrantResponse> LeaseGrantAndWait(
      const etcdserverpb::LeaseGrantRequest& request);

  // Ends all calls, these and later ones, with Cancelled.
  void Cancel();

 private:
  struct State;
  explicit EtcdClient(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;
};

// The first key after all that begin with `prefix` (range_end of a range).
std::string AfterPrefix(std::string prefix);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ETCD_CLIENT_H_
