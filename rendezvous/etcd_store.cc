#include "rendezvous/etcd_store.h"

#include <absl/strings/str_cat.h>

#include <utility>

namespace muster {
namespace {

namespace etcd = etcdserverpb;

// etcd's own limits are 128 operations and 1.5 MiB.
constexpr size_t kKeysMax = 100;
constexpr size_t kBytesMax = size_t{1} << 20;

void ExpectRevision(etcd::Compare::CompareTarget target, const std::string& key, int64_t revision,
                    etcd::TxnRequest* request) {
  etcd::Compare* compare = request->add_compare();
  compare->set_result(etcd::Compare::EQUAL);
  compare->set_target(target);
  compare->set_key(key);
  if (target == etcd::Compare::CREATE) {
    compare->set_create_revision(revision);
  } else {
    compare->set_mod_revision(revision);
  }
}

size_t SizeOf(const StoreWrite& change) {
  return change.key.size() + (change.value.has_value() ? change.value->size() : 0);
}

// What is there is what was to be written: an attempt whose answer was lost has done it.
bool IsDone(const StoreWrite& change, const etcd::RangeResponse& found) {
  if (!change.value.has_value()) return found.kvs_size() == 0;
  return found.kvs_size() != 0 && found.kvs(0).value() == *change.value;
}

}  // namespace

EtcdStore::EtcdStore(EtcdClient* client, const std::string& prefix, LeaderClaim claim)
    : client_(client), prefix_(prefix + "/state/"), claim_(std::move(claim)) {}

absl::StatusOr<std::vector<StoredValue>> EtcdStore::Load() {
  etcd::TxnRequest request;
  ExpectRevision(etcd::Compare::CREATE, claim_.key, claim_.create_revision, &request);
  etcd::RangeRequest* all = request.add_success()->mutable_request_range();
  all->set_key(prefix_);
  all->set_range_end(AfterPrefix(prefix_));
  request.add_failure()->mutable_request_range()->set_key(claim_.key);
  const absl::StatusOr<etcd::TxnResponse> answer = client_->TxnAndWait(request);
  if (!answer.ok()) return answer.status();
  const etcd::RangeResponse& range = answer->responses(0).response_range();
  if (!answer->succeeded()) return CheckLeader(range);
  std::vector<StoredValue> values;
  revisions_.clear();
  for (const etcd::KeyValue& kv : range.kvs()) {
    revisions_[kv.key()] = kv.mod_revision();
    values.push_back({kv.key().substr(prefix_.size()), kv.value()});
  }
  return values;
}

absl::Status EtcdStore::Write(const std::vector<StoreWrite>& changes) {
  Batch batch;
  size_t bytes = 0;
  for (const StoreWrite& change : changes) {
    const size_t size = SizeOf(change);
    if (size > kBytesMax) {
      return absl::ResourceExhaustedError(absl::StrCat("etcd: the state ", change.key, " has ",
                                                       size, " bytes, and ", kBytesMax,
                                                       " can be written"));
    }
    if (batch.size() == kKeysMax || bytes + size > kBytesMax) {
      if (absl::Status status = WriteBatch(batch); !status.ok()) return status;
      batch.clear();
      bytes = 0;
    }
    batch.push_back(&change);
    bytes += size;
  }
  return batch.empty() ? absl::OkStatus() : WriteBatch(batch);
}

absl::Status EtcdStore::WriteBatch(const Batch& batch) {
  // The second time with the revisions that the first one told; nobody else changes them meanwhile.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const absl::StatusOr<etcd::TxnResponse> answer = client_->TxnAndWait(Transaction(batch));
    if (!answer.ok()) {
      for (const StoreWrite* change : batch) uncertain_.insert(prefix_ + change->key);
      return answer.status();
    }
    if (answer->succeeded()) {
      for (const StoreWrite* change : batch) {
        uncertain_.erase(prefix_ + change->key);
        revisions_.erase(prefix_ + change->key);
        if (change->value.has_value()) {
          revisions_[prefix_ + change->key] = answer->header().revision();
        }
      }
      return absl::OkStatus();
    }
    if (absl::Status status = Adopt(batch, *answer); !status.ok()) return status;
  }
  return absl::UnavailableError("etcd: the state changes while it is written");
}

etcd::TxnRequest EtcdStore::Transaction(const Batch& batch) const {
  etcd::TxnRequest request;
  ExpectRevision(etcd::Compare::CREATE, claim_.key, claim_.create_revision, &request);
  request.add_failure()->mutable_request_range()->set_key(claim_.key);
  for (const StoreWrite* change : batch) {
    const std::string key = prefix_ + change->key;
    ExpectRevision(etcd::Compare::MOD, key, RevisionOf(key), &request);
    etcd::RequestOp* operation = request.add_success();
    if (change->value.has_value()) {
      operation->mutable_request_put()->set_key(key);
      operation->mutable_request_put()->set_value(*change->value);
    } else {
      operation->mutable_request_delete_range()->set_key(key);
    }
    request.add_failure()->mutable_request_range()->set_key(key);
  }
  return request;
}

absl::Status EtcdStore::Adopt(const Batch& batch, const etcd::TxnResponse& refused) {
  if (absl::Status s = CheckLeader(refused.responses(0).response_range()); !s.ok()) return s;
  for (size_t i = 0; i < batch.size(); ++i) {
    const std::string key = prefix_ + batch[i]->key;
    const etcd::RangeResponse& found = refused.responses(static_cast<int>(i) + 1).response_range();
    const int64_t revision = found.kvs_size() == 0 ? 0 : found.kvs(0).mod_revision();
    const bool is_known = revision == RevisionOf(key) || uncertain_.count(key) != 0;
    if (!is_known && !IsDone(*batch[i], found)) {
      return absl::FailedPreconditionError(
          absl::StrCat("etcd: ", key, " was changed by somebody who is not the leader"));
    }
    revisions_.erase(key);
    if (revision != 0) revisions_[key] = revision;
  }
  return absl::OkStatus();
}

absl::Status EtcdStore::CheckLeader(const etcd::RangeResponse& leader) const {
  if (leader.kvs_size() == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("etcd: this master does not lead any more: ", claim_.key, " is gone"));
  }
  if (leader.kvs(0).create_revision() == claim_.create_revision) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "etcd: this master does not lead any more: the master at ",
      leader.kvs(0).value().empty() ? "another place" : leader.kvs(0).value(), " does"));
}

int64_t EtcdStore::RevisionOf(const std::string& key) const {
  const auto found = revisions_.find(key);
  return found == revisions_.end() ? 0 : found->second;
}

}  // namespace muster
