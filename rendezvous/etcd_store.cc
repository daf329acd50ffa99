#include "rendezvous/etcd_store.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>

#include <chrono>
#include <utility>

namespace muster {
namespace {

namespace etcd = etcdserverpb;

// etcd's own limits are 128 operations and 1.5 MiB; a key may need two operations.
constexpr size_t kKeysMax = 60;
constexpr size_t kBytesMax = size_t{1} << 20;

// How a value begins: all of it follows, or the number of its parts, "NUMBER COUNT".
constexpr char kWhole = 'w';
constexpr char kCut = 'c';

std::string PartKey(const std::string& number, size_t i) {
  return absl::StrFormat("%s %04d", number, i);
}

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

void Expect(const LeaderClaim& claim, etcd::TxnRequest* request) {
  ExpectRevision(etcd::Compare::CREATE, claim.key, claim.create_revision, request);
  request->add_failure()->mutable_request_range()->set_key(claim.key);
}

void AskAll(const std::string& prefix, etcd::TxnRequest* request) {
  etcd::RangeRequest* range = request->add_success()->mutable_request_range();
  range->set_key(prefix);
  range->set_range_end(AfterPrefix(prefix));
}

}  // namespace

EtcdStore::EtcdStore(EtcdClient* client, const std::string& prefix, LeaderClaim claim,
                     bool drops_unneeded)
    : client_(client),
      prefix_(prefix + "/state/"),
      parts_(prefix + "/parts/"),
      claim_(std::move(claim)),
      drops_unneeded_(drops_unneeded) {}

absl::StatusOr<std::vector<StoredValue>> EtcdStore::Load() {
  etcd::TxnRequest request;
  Expect(claim_, &request);
  AskAll(prefix_, &request);
  AskAll(parts_, &request);
  const absl::StatusOr<etcd::TxnResponse> answer = client_->TxnAndWait(request);
  if (!answer.ok()) return answer.status();
  if (!answer->succeeded()) return CheckLeader(answer->responses(0).response_range());
  return Assemble(answer->responses(0).response_range(), answer->responses(1).response_range());
}

absl::StatusOr<std::vector<StoredValue>> EtcdStore::Assemble(const etcd::RangeResponse& values,
                                                             const etcd::RangeResponse& parts) {
  std::map<std::string, const std::string*> by_key;
  for (const etcd::KeyValue& part : parts.kvs()) {
    const std::string key = part.key().substr(parts_.size());
    by_key[key] = &part.value();
    cut_.insert(key.substr(0, key.find(' ')));
  }
  std::vector<StoredValue> result;
  revisions_.clear();
  for (const etcd::KeyValue& kv : values.kvs()) {
    revisions_[kv.key()] = kv.mod_revision();
    if (kv.lease() != 0) leased_.insert(kv.key());
    const std::string key = kv.key().substr(prefix_.size());
    const absl::Status broken =
        absl::DataLossError(absl::StrCat("etcd: ", kv.key(), " is no state of a master"));
    if (kv.value().empty()) return broken;
    StoredValue value{key, kv.value().substr(1)};
    if (kv.value()[0] == kCut) {
      const std::vector<std::string> words = absl::StrSplit(value.value, ' ');
      int count = 0;
      if (words.size() != 2 || !absl::SimpleAtoi(words[1], &count) || count < 1) return broken;
      value.value.clear();
      for (int i = 0; i < count; ++i) {
        const auto part = by_key.find(absl::StrCat(key, " ", PartKey(words[0], i)));
        if (part == by_key.end()) return broken;
        value.value += *part->second;
      }
    } else if (kv.value()[0] != kWhole) {
      return broken;
    }
    result.push_back(std::move(value));
  }
  return result;
}

absl::Status EtcdStore::Write(const std::vector<StoreWrite>& changes) {
  Batch batch;
  size_t bytes = 0;
  for (const StoreWrite& change : changes) {
    absl::StatusOr<Put> put = Prepare(change);
    if (!put.ok()) return put.status();
    if (batch.size() == kKeysMax || bytes + put->text.size() > kBytesMax + 1) {
      if (absl::Status status = WriteBatch(batch); !status.ok()) return status;
      batch.clear();
      bytes = 0;
    }
    bytes += put->text.size();
    batch.push_back(*std::move(put));
  }
  return batch.empty() ? absl::OkStatus() : WriteBatch(batch);
}

absl::StatusOr<EtcdStore::Put> EtcdStore::Prepare(const StoreWrite& change) {
  Put put{&change, "", 0};
  if (!change.value.has_value()) return put;
  const absl::StatusOr<int64_t> lease = LeaseFor(change);
  if (!lease.ok()) return lease.status();
  put.lease = *lease;
  if (change.value->size() <= kBytesMax) {
    put.text = kWhole + *change.value;
    return put;
  }
  const absl::StatusOr<std::string> number = WriteParts(change, put.lease);
  if (!number.ok()) return number.status();
  put.text = kCut + *number;
  return put;
}

// 0: none. What is written again gets a new one; the old one ends by itself, with nothing left.
absl::StatusOr<int64_t> EtcdStore::LeaseFor(const StoreWrite& change) {
  if (!drops_unneeded_ || !change.needed_for) return 0;
  etcd::LeaseGrantRequest request;
  request.set_ttl(std::chrono::ceil<std::chrono::seconds>(*change.needed_for).count());
  const absl::StatusOr<etcd::LeaseGrantResponse> granted = client_->LeaseGrantAndWait(request);
  if (!granted.ok()) return granted.status();
  leased_.insert(prefix_ + change.key);
  return granted->id();
}

// The numbers of one master grow, and are greater than those of all masters before it.
absl::StatusOr<std::string> EtcdStore::WriteParts(const StoreWrite& change, int64_t lease) {
  const std::string number = absl::StrFormat("%020d.%010d", claim_.create_revision, ++cuts_);
  cut_.insert(change.key);
  size_t count = 0;
  for (size_t at = 0; at < change.value->size(); at += kBytesMax) {
    etcd::TxnRequest request;
    Expect(claim_, &request);
    etcd::PutRequest* put = request.add_success()->mutable_request_put();
    put->set_key(absl::StrCat(parts_, change.key, " ", PartKey(number, count++)));
    put->set_value(change.value->substr(at, kBytesMax));
    put->set_lease(lease);
    const absl::StatusOr<etcd::TxnResponse> answer = client_->TxnAndWait(request);
    if (!answer.ok()) return answer.status();
    if (!answer->succeeded()) return CheckLeader(answer->responses(0).response_range());
  }
  return absl::StrCat(number, " ", count);
}

absl::Status EtcdStore::WriteBatch(const Batch& batch) {
  // The second time with the revisions that the first one told; nobody else changes them meanwhile.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const absl::StatusOr<etcd::TxnResponse> answer = client_->TxnAndWait(Transaction(batch));
    if (!answer.ok()) {
      for (const Put& put : batch) uncertain_.insert(prefix_ + put.change->key);
      return answer.status();
    }
    if (answer->succeeded()) {
      Written(batch, answer->header().revision());
      return absl::OkStatus();
    }
    if (absl::Status status = Adopt(batch, *answer); !status.ok()) return status;
  }
  return absl::UnavailableError("etcd: the state changes while it is written");
}

void EtcdStore::Written(const Batch& batch, int64_t revision) {
  for (const Put& put : batch) {
    const std::string key = prefix_ + put.change->key;
    uncertain_.erase(key);
    revisions_.erase(key);
    if (put.change->value.has_value()) revisions_[key] = revision;
    if (put.text.empty() || put.text[0] == kWhole) cut_.erase(put.change->key);
  }
}

etcd::TxnRequest EtcdStore::Transaction(const Batch& batch) const {
  etcd::TxnRequest request;
  Expect(claim_, &request);
  for (const Put& put : batch) {
    const std::string key = prefix_ + put.change->key;
    ExpectRevision(etcd::Compare::MOD, key, RevisionOf(key), &request);
    etcd::RequestOp* operation = request.add_success();
    if (put.change->value.has_value()) {
      operation->mutable_request_put()->set_key(key);
      operation->mutable_request_put()->set_value(put.text);
      operation->mutable_request_put()->set_lease(put.lease);
    } else {
      operation->mutable_request_delete_range()->set_key(key);
    }
    request.add_failure()->mutable_request_range()->set_key(key);
    if (cut_.count(put.change->key) == 0) continue;
    // The parts of older values; a blank comes before its number.
    const std::string old = absl::StrCat(parts_, put.change->key, " ");
    const bool is_cut = !put.text.empty() && put.text[0] == kCut;
    etcd::DeleteRangeRequest* remove = request.add_success()->mutable_request_delete_range();
    remove->set_key(old);
    remove->set_range_end(is_cut ? old + put.text.substr(1, put.text.find(' ') - 1)
                                 : AfterPrefix(old));
  }
  return request;
}

absl::Status EtcdStore::Adopt(const Batch& batch, const etcd::TxnResponse& refused) {
  if (absl::Status s = CheckLeader(refused.responses(0).response_range()); !s.ok()) return s;
  for (size_t i = 0; i < batch.size(); ++i) {
    const std::string key = prefix_ + batch[i].change->key;
    const etcd::RangeResponse& found = refused.responses(static_cast<int>(i) + 1).response_range();
    const int64_t revision = found.kvs_size() == 0 ? 0 : found.kvs(0).mod_revision();
    const bool has_expired = revision == 0 && leased_.count(key) != 0;
    const bool is_known = revision == RevisionOf(key) || uncertain_.count(key) != 0 || has_expired;
    // An attempt whose answer was lost has done it.
    const std::string there = found.kvs_size() == 0 ? "" : found.kvs(0).value();
    if (!is_known && there != batch[i].text) {
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
