#include "rendezvous/etcd_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/rendezvous/test_etcd.h"

namespace muster {
namespace {

namespace etcd = etcdserverpb;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kPrefix[] = "/muster/test";

class EtcdStoreTest : public testing::Test {
 protected:
  EtcdStoreTest() : client_(*EtcdClient::Make(etcd_.options())) {}

  // Becomes the leader by the key alone, as an election would leave it.
  LeaderClaim Lead(const std::string& address) {
    etcd::TxnRequest request;
    request.add_success()->mutable_request_delete_range()->set_key(key_);
    EXPECT_TRUE(client_->TxnAndWait(request).ok());
    etcd::TxnRequest make;
    make.add_success()->mutable_request_put()->set_key(key_);
    make.mutable_success(0)->mutable_request_put()->set_value(address);
    const auto made = client_->TxnAndWait(make);
    EXPECT_TRUE(made.ok());
    return {key_, made->header().revision()};
  }

  EtcdStore Store(const LeaderClaim& claim) { return EtcdStore(client_.get(), kPrefix, claim); }

  void PutByHand(const std::string& key, const std::string& value) {
    etcd::TxnRequest request;
    request.add_success()->mutable_request_put()->set_key(key);
    request.mutable_success(0)->mutable_request_put()->set_value(value);
    ASSERT_TRUE(client_->TxnAndWait(request).ok());
  }

  int64_t CountParts() {
    etcd::RangeRequest request;
    request.set_key(std::string(kPrefix) + "/parts/");
    request.set_range_end(AfterPrefix(request.key()));
    return client_->RangeAndWait(request)->count();
  }

  const std::string key_ = std::string(kPrefix) + "/leader";
  TestEtcd etcd_{1};
  std::unique_ptr<EtcdClient> client_;
};

TEST_F(EtcdStoreTest, WhatOneMasterWroteTheNextOneLoads) {
  EtcdStore first = Store(Lead("a:1"));
  EXPECT_THAT(*first.Load(), IsEmpty());
  ASSERT_TRUE(first.Write({{"jobs/a", "one"}, {"jobs/b", std::string("\0\xff", 2)}}).ok());
  ASSERT_TRUE(first.Write({{"jobs/a", "two"}, {"jobs/c", "three"}}).ok());
  ASSERT_TRUE(first.Write({{"jobs/c", std::nullopt}}).ok());
  EtcdStore second = Store(Lead("b:1"));
  EXPECT_THAT(*second.Load(), ElementsAre(StoredValue{"jobs/a", "two"},
                                          StoredValue{"jobs/b", std::string("\0\xff", 2)}));
  EXPECT_TRUE(second.Write({{"jobs/a", "four"}}).ok());
}

TEST_F(EtcdStoreTest, WhatADeposedMasterWritesIsRefusedAndChangesNothing) {
  EtcdStore old = Store(Lead("a:1"));
  ASSERT_TRUE(old.Load().ok());
  ASSERT_TRUE(old.Write({{"jobs/a", "of the old"}}).ok());
  EtcdStore next = Store(Lead("b:1"));
  const absl::Status refused = old.Write({{"jobs/a", "too late"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the master at b:1"));
  EXPECT_TRUE(absl::IsFailedPrecondition(old.Load().status()));
  EXPECT_THAT(*next.Load(), ElementsAre(StoredValue{"jobs/a", "of the old"}));
}

TEST_F(EtcdStoreTest, AMasterWhoseKeyIsGoneIsRefused) {
  EtcdStore store = Store(Lead("a:1"));
  ASSERT_TRUE(store.Load().ok());
  etcd_.Control({"del", key_});
  const absl::Status refused = store.Write({{"jobs/a", "x"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
}

TEST_F(EtcdStoreTest, WhatIsNotNeededForEverGoesByItselfWhereThatIsWanted) {
  const std::string key = std::string(kPrefix) + "/state/jobs/a";
  const auto lease_of = [&] {
    etcd::RangeRequest request;
    request.set_key(key);
    return client_->RangeAndWait(request)->kvs(0).lease();
  };
  const LeaderClaim claim = Lead("a:1");
  EtcdStore keeps = Store(claim);
  ASSERT_TRUE(keeps.Load().ok());
  ASSERT_TRUE(keeps.Write({{"jobs/a", "runs"}}).ok());
  ASSERT_TRUE(keeps.Write({{"jobs/a", "ended", 1h}}).ok());
  EXPECT_EQ(lease_of(), 0);
  EtcdStore drops(client_.get(), kPrefix, claim, true);
  ASSERT_TRUE(drops.Load().ok());
  ASSERT_TRUE(drops.Write({{"jobs/a", "runs"}}).ok());
  EXPECT_EQ(lease_of(), 0);
  ASSERT_TRUE(drops.Write({{"jobs/a", "ended", 1h}}).ok());
  EXPECT_NE(lease_of(), 0);
  // When it has gone, this master may write and remove it all the same, and so may the next.
  for (const bool is_next : {false, true}) {
    EtcdStore next(client_.get(), kPrefix, claim, true);
    ASSERT_TRUE(next.Load().ok());
    etcd_.Control({"del", key});
    EXPECT_TRUE((is_next ? next : drops).Write({{"jobs/a", "ended", 1h}}).ok());
    ASSERT_TRUE(drops.Load().ok());
  }
  etcd_.Control({"del", key});
  EXPECT_TRUE(drops.Write({{"jobs/a", std::nullopt}}).ok());
}

TEST_F(EtcdStoreTest, AValueThatSomebodyElseChangedIsNotWrittenOver) {
  EtcdStore store = Store(Lead("a:1"));
  ASSERT_TRUE(store.Load().ok());
  ASSERT_TRUE(store.Write({{"jobs/a", "one"}}).ok());
  PutByHand(std::string(kPrefix) + "/state/jobs/a", "by hand");
  const absl::Status refused = store.Write({{"jobs/a", "two"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("jobs/a"));
}

TEST_F(EtcdStoreTest, AWriteThatWasCarriedOutWithoutAnAnswerMayBeRepeated) {
  const LeaderClaim claim = Lead("a:1");
  EtcdStore store = Store(claim);
  ASSERT_TRUE(store.Load().ok());
  // The same transaction by another store object: this one's answer was lost.
  EtcdStore lost = Store(claim);
  ASSERT_TRUE(lost.Load().ok());
  ASSERT_TRUE(lost.Write({{"jobs/a", "one"}, {"jobs/b", "two"}}).ok());
  EXPECT_TRUE(store.Write({{"jobs/a", "one"}, {"jobs/b", "two"}}).ok());
  EXPECT_TRUE(store.Write({{"jobs/a", "three"}}).ok());
}

TEST_F(EtcdStoreTest, MoreKeysThanOneTransactionHoldsAreWrittenInSeveral) {
  EtcdStore store = Store(Lead("a:1"));
  ASSERT_TRUE(store.Load().ok());
  std::vector<StoreWrite> changes;
  for (int i = 0; i < 250; ++i) changes.push_back({"jobs/" + std::to_string(i), "x"});
  ASSERT_TRUE(store.Write(changes).ok());
  const std::string large(size_t{700} << 10, 'y');
  ASSERT_TRUE(store.Write({{"jobs/1", large}, {"jobs/2", large}, {"jobs/3", large}}).ok());
  EtcdStore next = Store(Lead("b:1"));
  EXPECT_EQ(next.Load()->size(), 250u);
}

TEST_F(EtcdStoreTest, AValueThatIsTooLargeForEtcdIsKeptInPartsAndChangesInOneGo) {
  const std::string first(size_t{2} << 20, 'x');
  const std::string second = std::string(size_t{3} << 20, 'y') + "end";
  EtcdStore store = Store(Lead("a:1"));
  ASSERT_TRUE(store.Load().ok());
  ASSERT_TRUE(store.Write({{"jobs/a", first}, {"jobs/ab", "small"}}).ok());
  ASSERT_TRUE(store.Write({{"jobs/a", second}}).ok());
  EXPECT_EQ(CountParts(), 4);

  EtcdStore next = Store(Lead("b:1"));
  EXPECT_THAT(*next.Load(),
              ElementsAre(StoredValue{"jobs/a", second}, StoredValue{"jobs/ab", "small"}));
  // Of a deposed master not even a part is written.
  EXPECT_TRUE(absl::IsFailedPrecondition(store.Write({{"jobs/a", first}})));
  EXPECT_EQ(CountParts(), 4);

  ASSERT_TRUE(next.Write({{"jobs/a", "small"}}).ok());
  EXPECT_EQ(CountParts(), 0);
  ASSERT_TRUE(next.Write({{"jobs/a", first}}).ok());
  ASSERT_TRUE(next.Write({{"jobs/a", std::nullopt}}).ok());
  EXPECT_EQ(CountParts(), 0);
}

TEST_F(EtcdStoreTest, AValueThatIsNoneOfOursIsNeverTakenForAState) {
  for (const std::string value : {"", "x", "c", "c 1", "c00 1", "c1 x"}) {
    PutByHand(std::string(kPrefix) + "/state/jobs/a", value);
    const auto loaded = Store(Lead("a:1")).Load();
    EXPECT_TRUE(absl::IsDataLoss(loaded.status())) << value << ": " << loaded.status();
  }
}

TEST_F(EtcdStoreTest, JobsWhoseNamesBeginAlikeDoNotMix) {
  EtcdStore store = Store(Lead("a:1"));
  PutByHand(std::string(kPrefix) + "/state0", "no state");
  PutByHand(std::string(kPrefix) + "/stat", "no state");
  EXPECT_THAT(*store.Load(), IsEmpty());
}

TEST_F(EtcdStoreTest, AnEtcdThatIsAwayIsUnavailableAndTheWriteGoesThroughWhenItIsBack) {
  EtcdOptions options = etcd_.options();
  options.timeout = std::chrono::seconds(20);
  EtcdStore store = Store(Lead("a:1"));
  ASSERT_TRUE(store.Load().ok());
  etcd_.Kill(0);
  EXPECT_TRUE(absl::IsUnavailable(store.Write({{"jobs/a", "one"}})));
  etcd_.Start(0);
  absl::Status status = absl::UnavailableError("");
  while (absl::IsUnavailable(status)) status = store.Write({{"jobs/a", "one"}});
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace muster
