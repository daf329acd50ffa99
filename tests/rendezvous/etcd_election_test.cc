#include "rendezvous/etcd_election.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/event_queue.h"
#include "rendezvous/etcd_store.h"
#include "tests/rendezvous/test_etcd.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr char kPrefix[] = "/muster/test";
constexpr Duration kPatience = 30s;  // only a failure waits for so long

// A candidate, and what it was told in order.
class Candidate {
 public:
  explicit Candidate(const EtcdOptions& options, Duration lease = 2s)
      : client_(*EtcdClient::Make(options)) {
    Leadership::Listener listener{.on_elected =
                                      [this](const LeaderClaim& claim) {
                                        claim_ = claim;
                                        news_.Push("elected");
                                      },
                                  .on_lost = [this](const std::string&) { news_.Push("lost"); },
                                  .on_leader =
                                      [this](const std::string& address, const std::string&) {
                                        if (!address.empty()) news_.Push("leader " + address);
                                      }};
    election_ = std::make_unique<EtcdElection>(
        &clock_, client_.get(), EtcdElection::Options{.prefix = kPrefix, .lease = lease, .seed = 1},
        std::move(listener));
  }

  std::string Next() { return news_.Pop(clock_.Now() + kPatience).value_or("nothing came"); }
  // Passes over what comes before.
  void Await(const std::string& news) {
    std::string next;
    while ((next = Next()) != news) ASSERT_NE(next, "nothing came") << "waited for " << news;
  }
  bool HasNews() { return news_.Pop(clock_.Now()).has_value(); }

  EtcdElection& election() { return *election_; }
  EtcdStore Store() { return EtcdStore(client_.get(), kPrefix, claim_); }

 private:
  RealClock clock_;
  EventQueue<std::string> news_{&clock_, 1000};
  LeaderClaim claim_;  // written before the news of it
  std::unique_ptr<EtcdClient> client_;
  std::unique_ptr<EtcdElection> election_;
};

TEST(EtcdElectionTest, OneLeadsAndTheOtherHearsWhereItServes) {
  TestEtcd etcd(1);
  Candidate first(etcd.options());
  EXPECT_EQ(first.Next(), "elected");
  first.election().Serving("first:1");
  Candidate second(etcd.options());
  second.Await("leader first:1");
}

TEST(EtcdElectionTest, TheNextLeadsAtOnceWhenTheLeaderResigns) {
  TestEtcd etcd(1);
  Candidate first(etcd.options(), /*lease=*/600s);
  first.Await("elected");
  Candidate second(etcd.options(), /*lease=*/600s);
  first.election().Resign();
  EXPECT_EQ(second.Next(), "elected");
}

TEST(EtcdElectionTest, TheNextLeadsAfterTheLeaseOfALeaderThatVanished) {
  TestEtcd etcd(1);
  auto first = std::make_unique<Candidate>(etcd.options());
  first->Await("elected");
  Candidate second(etcd.options());
  first.reset();  // without a word
  EXPECT_EQ(second.Next(), "elected");
}

TEST(EtcdElectionTest, ALeaderWhoseKeyIsRemovedHearsOfItAndItsStoreRefuses) {
  TestEtcd etcd(1);
  Candidate first(etcd.options());
  first.Await("elected");
  EtcdStore store = first.Store();
  ASSERT_TRUE(store.Load().ok());
  Candidate second(etcd.options());
  etcd.Control({"del", EtcdLeaderKey(kPrefix)});
  EXPECT_EQ(second.Next(), "elected");
  first.Await("lost");
  EXPECT_TRUE(absl::IsFailedPrecondition(store.Write({{"jobs/a", "too late"}})));
  EXPECT_TRUE(second.Store().Load().ok());
}

TEST(EtcdElectionTest, WhenTheLeaderOfEtcdDiesNobodyNotices) {
  TestEtcd etcd(3);
  Candidate first(etcd.options(), /*lease=*/5s);
  first.Await("elected");
  EtcdStore store = first.Store();
  ASSERT_TRUE(store.Load().ok());
  etcd.Kill(etcd.Leader());
  etcd.Leader();
  absl::Status status = absl::UnavailableError("");
  while (absl::IsUnavailable(status)) status = store.Write({{"jobs/a", "one"}});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_FALSE(first.HasNews());
}

TEST(EtcdElectionTest, WithoutEtcdALeaderLosesAndSomebodyLeadsWhenEtcdIsBack) {
  TestEtcd etcd(1);
  Candidate only(etcd.options());
  only.Await("elected");
  etcd.Kill(0);
  EXPECT_EQ(only.Next(), "lost");
  etcd.Start(0);
  EXPECT_EQ(only.Next(), "elected");
}

}  // namespace
}  // namespace muster
