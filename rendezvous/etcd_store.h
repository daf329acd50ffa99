#ifndef MUSTER_RENDEZVOUS_ETCD_STORE_H_
#define MUSTER_RENDEZVOUS_ETCD_STORE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/etcd_client.h"
#include "rendezvous/leadership.h"
#include "rendezvous/state_store.h"

namespace muster {

// A StateStore in etcd, below PREFIX/state/. Every transaction holds only while the leader's key is
// still the one of the claim and each key is as this store left it: what a deposed master writes is
// refused (FailedPrecondition), and so is every change that somebody else makes by hand.
//
// A transaction carries up to 100 keys and 1 MiB, so several of them may be needed for one Write.
// One value may have 1 MiB: etcd takes requests of up to 1.5 MiB.
class EtcdStore final : public StateStore {
 public:
  // `client` outlives the store.
  EtcdStore(EtcdClient* client, const std::string& prefix, LeaderClaim claim);

  absl::StatusOr<std::vector<StoredValue>> Load() override;
  absl::Status Write(const std::vector<StoreWrite>& changes) override;

 private:
  using Batch = std::vector<const StoreWrite*>;

  absl::Status WriteBatch(const Batch& batch);
  etcdserverpb::TxnRequest Transaction(const Batch& batch) const;
  absl::Status Adopt(const Batch& batch, const etcdserverpb::TxnResponse& refused);
  absl::Status CheckLeader(const etcdserverpb::RangeResponse& leader) const;
  int64_t RevisionOf(const std::string& key) const;

  EtcdClient* const client_;
  const std::string prefix_;  // of the keys, with the slash behind it
  const LeaderClaim claim_;
  std::map<std::string, int64_t> revisions_;  // of the keys that are there, as last seen
  std::set<std::string> uncertain_;           // keys of transactions without an answer
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ETCD_STORE_H_
