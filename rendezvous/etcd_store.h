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
// A transaction carries up to 60 keys and 1 MiB, so several of them may be needed for one Write. A
// larger value is cut: its parts are written first, below PREFIX/parts/, under a number of their
// own, and the key that names the number last, so that the value changes in one go.
//
// With `drops_unneeded` a value gets a lease of its own of StoreWrite::needed_for, with which etcd
// removes it; its parts likewise.
class EtcdStore final : public StateStore {
 public:
  // `client` outlives the store.
  EtcdStore(EtcdClient* client, const std::string& prefix, LeaderClaim claim,
            bool drops_unneeded = false);

  absl::StatusOr<std::vector<StoredValue>> Load() override;
  absl::Status Write(const std::vector<StoreWrite>& changes) override;

 private:
  // A change, and what is put for its key.
  struct Put {
    const StoreWrite* change;
    std::string text;
    int64_t lease = 0;  // 0: none
  };
  using Batch = std::vector<Put>;

  absl::StatusOr<std::vector<StoredValue>> Assemble(const etcdserverpb::RangeResponse& values,
                                                    const etcdserverpb::RangeResponse& parts);
  absl::StatusOr<int64_t> LeaseFor(const StoreWrite& change);
  absl::StatusOr<Put> Prepare(const StoreWrite& change);
  absl::StatusOr<std::string> WriteParts(const StoreWrite& change, int64_t lease);
  absl::Status WriteBatch(const Batch& batch);
  etcdserverpb::TxnRequest Transaction(const Batch& batch) const;
  void Written(const Batch& batch, int64_t revision);
  absl::Status Adopt(const Batch& batch, const etcdserverpb::TxnResponse& refused);
  absl::Status CheckLeader(const etcdserverpb::RangeResponse& leader) const;
  int64_t RevisionOf(const std::string& key) const;

  EtcdClient* const client_;
  const std::string prefix_;  // of the keys, with the slash behind it
  const std::string parts_;   // likewise, of parts of values
  const LeaderClaim claim_;
  const bool drops_unneeded_;
  std::map<std::string, int64_t> revisions_;  // of the keys that are there, as last seen
  std::set<std::string> uncertain_;           // keys of transactions without an answer
  std::set<std::string> leased_;              // keys that may go by themselves
  std::set<std::string> cut_;                 // keys of changes whose value is or was in parts
  int cuts_ = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ETCD_STORE_H_
