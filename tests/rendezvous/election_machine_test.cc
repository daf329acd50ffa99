#include "rendezvous/election_machine.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster {
namespace {

using namespace std::chrono_literals;
using namespace election;  // NOLINT(google-build-using-namespace): nothing else is tested here

constexpr int64_t kOurLease = 7;
constexpr int64_t kTheirLease = 9;
constexpr Duration kTtl = 5s;
constexpr Duration kTrust = 4s;  // kTtl less a fifth

// One candidate, and what it wants done as short words.
class Candidate {
 public:
  // Steps the machine and returns the effects as text, in order.
  std::string Tell(const Event& event) {
    std::string words;
    for (const Effect& effect : machine_.Step(now_, event)) {
      if (!words.empty()) words += ", ";
      words += std::visit([this](const auto& kind) { return Word(kind); }, effect);
    }
    return words;
  }

  // Lets the time pass up to the next deadline, which must come within `span`; then TimeCame.
  std::string Wait(Duration span) {
    const Time end = now_ + span;
    EXPECT_LE(machine_.NextDeadline(), end);
    now_ = std::max(now_, std::min(end, machine_.NextDeadline()));
    return Tell(TimeCame{});
  }
  void Pass(Duration span) { now_ += span; }

  std::string Key(std::optional<LeaderKey> key) { return Tell(KeyIs{call_, std::move(key), 100}); }
  std::string Changed(std::optional<LeaderKey> key) {
    return Tell(KeyIs{watch_, std::move(key), 101});
  }
  std::string Granted() { return Tell(LeaseGranted{call_, kOurLease, kTtl}); }

  // From the beginning to its election.
  void BecomeLeader() {
    EXPECT_EQ(Tell(Begin{}), "read");
    EXPECT_EQ(Key(std::nullopt), "leader ?, grant");
    EXPECT_EQ(Granted(), "make 7");
    EXPECT_EQ(Key(Ours()), "elected 50, watch 100");
  }

  static LeaderKey Ours(std::string address = "") { return {50, kOurLease, std::move(address)}; }
  static LeaderKey Theirs() { return {60, kTheirLease, "them:1"}; }

  uint64_t call() const { return call_; }
  uint64_t watch() const { return watch_; }
  uint64_t publish() const { return publish_; }
  const ElectionMachine& machine() const { return machine_; }
  Time now() const { return now_; }

 private:
  std::string Word(const ReadKey& e) {
    (machine_.leads() ? watch_ : call_) = e.ticket;
    return "read";
  }
  std::string Word(const WatchKey& e) {
    watch_ = e.ticket;
    return "watch " + std::to_string(e.revision);
  }
  std::string Word(const GrantLease& e) {
    call_ = e.ticket;
    return "grant";
  }
  std::string Word(const MakeKey& e) {
    call_ = e.ticket;
    return "make " + std::to_string(e.lease);
  }
  std::string Word(const RefreshLease& e) {
    call_ = e.ticket;
    return "refresh " + std::to_string(e.lease);
  }
  std::string Word(const PublishAddress& e) {
    publish_ = e.ticket;
    return "publish " + e.address;
  }
  std::string Word(const RevokeLease& e) {
    if (e.ticket != 0) call_ = e.ticket;
    return "revoke " + std::to_string(e.lease);
  }
  static std::string Word(const Elected& e) {
    return "elected " + std::to_string(e.create_revision);
  }
  static std::string Word(const Lost& e) { return "lost: " + e.why; }
  static std::string Word(const LeaderIs& e) {
    return "leader " + (e.address.empty() ? "?" : e.address) +
           (e.problem.empty() ? "" : " (" + e.problem + ")");
  }
  static std::string Word(const Over&) { return "over"; }

  ElectionMachine machine_{/*seed=*/1};
  Time now_ = Time(std::chrono::hours(1));
  uint64_t call_ = 0;
  uint64_t watch_ = 0;
  uint64_t publish_ = 0;
};

TEST(ElectionMachine, WhoFindsNoKeyMakesItAndLeads) {
  Candidate candidate;
  candidate.BecomeLeader();
  EXPECT_TRUE(candidate.machine().leads());
}

TEST(ElectionMachine, WhoFindsAKeyFollowsWithoutALease) {
  Candidate candidate;
  candidate.Tell(Begin{});
  EXPECT_EQ(candidate.Key(Candidate::Theirs()), "leader them:1, watch 100");
  EXPECT_EQ(candidate.machine().NextDeadline(), kNever);
}

TEST(ElectionMachine, WhoMakesTheKeyTooLateGivesItsLeaseBackAndFollows) {
  Candidate candidate;
  candidate.Tell(Begin{});
  candidate.Key(std::nullopt);
  candidate.Granted();
  EXPECT_EQ(candidate.Key(Candidate::Theirs()), "leader them:1, revoke 7, watch 100");
}

TEST(ElectionMachine, AFollowerCampaignsWhenTheKeyGoes) {
  Candidate candidate;
  candidate.Tell(Begin{});
  candidate.Key(Candidate::Theirs());
  EXPECT_EQ(candidate.Changed(std::nullopt), "leader ?, grant");
}

TEST(ElectionMachine, AFollowerTellsWhereALeaderServesOnceItDoes) {
  Candidate candidate;
  candidate.Tell(Begin{});
  EXPECT_EQ(candidate.Key(LeaderKey{60, kTheirLease, ""}), "leader ?, watch 100");
  EXPECT_EQ(candidate.Changed(Candidate::Theirs()), "leader them:1, watch 101");
}

TEST(ElectionMachine, ALeaderRefreshesItsLeaseAtAThirdOfTheTimeToLive) {
  Candidate candidate;
  candidate.BecomeLeader();
  for (int i = 0; i < 10; ++i) {
    const Time before = candidate.now();
    EXPECT_EQ(candidate.Wait(kTtl / 3), "refresh 7");
    EXPECT_EQ(candidate.now(), before + kTtl / 3);
    EXPECT_EQ(candidate.Tell(LeaseIs{candidate.call(), kTtl}), "");
  }
}

TEST(ElectionMachine, TrustCountsFromTheSendingOfTheLastAcknowledgedRefresh) {
  Candidate candidate;
  candidate.BecomeLeader();
  candidate.Wait(kTtl / 3);
  const Time sent = candidate.now();
  candidate.Pass(1s);
  candidate.Tell(LeaseIs{candidate.call(), kTtl});
  candidate.Wait(kTtl);  // the next refresh, which nobody answers
  EXPECT_EQ(candidate.Wait(kTtl), "lost: etcd has not confirmed the lease in time, revoke 7");
  EXPECT_EQ(candidate.now(), sent + kTrust);
  EXPECT_FALSE(candidate.machine().leads());
}

TEST(ElectionMachine, ARefreshThatFailsIsTriedAgainWhileThereIsTrust) {
  Candidate candidate;
  candidate.BecomeLeader();
  candidate.Wait(kTtl / 3);
  EXPECT_EQ(candidate.Tell(Failed{candidate.call(), "e:1: refused"}), "");
  EXPECT_EQ(candidate.Wait(250ms), "refresh 7");
  candidate.Tell(LeaseIs{candidate.call(), kTtl});
  EXPECT_TRUE(candidate.machine().leads());
}

TEST(ElectionMachine, AProcessThatWasStoppedForTooLongHasLostBeforeItHearsAnythingElse) {
  Candidate candidate;
  candidate.BecomeLeader();
  candidate.Wait(kTtl / 3);
  candidate.Pass(kTtl);
  EXPECT_EQ(candidate.Tell(LeaseIs{candidate.call(), kTtl}),
            "lost: etcd has not confirmed the lease in time, revoke 7");
}

TEST(ElectionMachine, ALeaseThatHasRunOutEndsTheTerm) {
  Candidate candidate;
  candidate.BecomeLeader();
  candidate.Wait(kTtl / 3);
  EXPECT_EQ(candidate.Tell(LeaseIs{candidate.call(), 0s}), "lost: the lease has run out, revoke 7");
}

TEST(ElectionMachine, AKeyThatSomebodyRemovesEndsTheTerm) {
  Candidate candidate;
  candidate.BecomeLeader();
  EXPECT_EQ(candidate.Changed(std::nullopt), "lost: the leader's key was removed, revoke 7");
  EXPECT_EQ(candidate.Wait(1s), "read");
  EXPECT_EQ(candidate.Key(std::nullopt), "leader ?, grant");
}

TEST(ElectionMachine, AKeyOfAnotherOneEndsTheTerm) {
  Candidate candidate;
  candidate.BecomeLeader();
  EXPECT_EQ(candidate.Changed(Candidate::Theirs()), "lost: another master was elected, revoke 7");
}

TEST(ElectionMachine, ItsOwnAddressInTheKeyChangesNothing) {
  Candidate candidate;
  candidate.BecomeLeader();
  EXPECT_EQ(candidate.Tell(ServingAt{"us:1"}), "publish us:1");
  EXPECT_EQ(candidate.Tell(Published{candidate.publish()}), "");
  EXPECT_EQ(candidate.Changed(Candidate::Ours("us:1")), "watch 101");
}

TEST(ElectionMachine, AnAddressThatCouldNotBePublishedIsPublishedAgain) {
  Candidate candidate;
  candidate.BecomeLeader();
  candidate.Tell(ServingAt{"us:1"});
  EXPECT_EQ(candidate.Tell(Failed{candidate.publish(), "no answer"}), "");
  EXPECT_EQ(candidate.Wait(250ms), "publish us:1");
}

TEST(ElectionMachine, ALeaderWhoseWatchBreaksReadsTheKeyAgain) {
  Candidate candidate;
  candidate.BecomeLeader();
  EXPECT_EQ(candidate.Tell(Failed{candidate.watch(), "the member went away"}), "");
  EXPECT_EQ(candidate.Wait(250ms), "read");
  EXPECT_EQ(candidate.Changed(Candidate::Ours()), "watch 101");
  EXPECT_TRUE(candidate.machine().leads());
}

TEST(ElectionMachine, AFollowerWhoseWatchBreaksLooksAgainAndKeepsTheAddress) {
  Candidate candidate;
  candidate.Tell(Begin{});
  candidate.Key(Candidate::Theirs());
  EXPECT_EQ(candidate.Tell(Failed{candidate.watch(), "the member went away"}), "");
  EXPECT_EQ(candidate.Wait(100ms), "read");
}

TEST(ElectionMachine, AnEtcdThatDoesNotAnswerIsLookedForWithGrowingPausesAndTold) {
  Candidate candidate;
  candidate.Tell(Begin{});
  Duration longest{};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(candidate.Tell(Failed{candidate.call(), "refused"}), "leader ? (refused)");
    const Time before = candidate.now();
    EXPECT_EQ(candidate.Wait(2s), "read");
    longest = candidate.now() - before;
  }
  EXPECT_GE(longest, 1s);
}

TEST(ElectionMachine, AKeyWhoseMakingHadNoAnswerIsFoundToBeOurs) {
  Candidate candidate;
  candidate.Tell(Begin{});
  candidate.Key(std::nullopt);
  candidate.Granted();
  candidate.Tell(Failed{candidate.call(), "no answer in time"});
  candidate.Wait(100ms);
  EXPECT_EQ(candidate.Key(Candidate::Ours()), "elected 50, watch 100");
}

TEST(ElectionMachine, AKeyOfOurOwnLeaseThatIsNotTrustedAnyMoreIsGivenUp) {
  Candidate candidate;
  candidate.Tell(Begin{});
  candidate.Key(std::nullopt);
  candidate.Granted();
  candidate.Tell(Failed{candidate.call(), "no answer in time"});
  candidate.Wait(100ms);
  candidate.Pass(kTrust);
  EXPECT_EQ(candidate.Key(Candidate::Ours()), "leader ?, revoke 7, watch 100");
  EXPECT_EQ(candidate.Changed(std::nullopt), "leader ?, grant");
}

TEST(ElectionMachine, AKeyWithoutALeaseIsNobodysOfUs) {
  Candidate candidate;
  candidate.Tell(Begin{});
  EXPECT_EQ(candidate.Key(LeaderKey{60, 0, "hand:1"}), "leader hand:1, watch 100");
}

TEST(ElectionMachine, WhoStepsDownLetsTheOthersTryFirst) {
  Candidate candidate;
  candidate.BecomeLeader();
  EXPECT_EQ(candidate.Tell(StepDownAsked{"the store refused"}),
            "lost: the store refused, revoke 7");
  EXPECT_EQ(candidate.machine().NextDeadline(), candidate.now() + 1s);
  EXPECT_EQ(candidate.Wait(1s), "read");
  EXPECT_EQ(candidate.Key(Candidate::Theirs()), "leader them:1, watch 100");
}

TEST(ElectionMachine, WhoResignsFreesTheKeyFirst) {
  Candidate candidate;
  candidate.BecomeLeader();
  EXPECT_EQ(candidate.Tell(ResignAsked{}), "revoke 7");
  EXPECT_FALSE(candidate.machine().over());
  EXPECT_EQ(candidate.Tell(Revoked{candidate.call()}), "over");
  EXPECT_TRUE(candidate.machine().over());
}

TEST(ElectionMachine, AnEtcdThatDoesNotAnswerDoesNotHoldUpWhoResigns) {
  Candidate candidate;
  candidate.BecomeLeader();
  candidate.Tell(ResignAsked{});
  EXPECT_EQ(candidate.Wait(1s), "over");
}

TEST(ElectionMachine, AFollowerResignsAtOnce) {
  Candidate candidate;
  candidate.Tell(Begin{});
  candidate.Key(Candidate::Theirs());
  EXPECT_EQ(candidate.Tell(ResignAsked{}), "over");
}

TEST(ElectionMachine, ALeaseThatComesTooLateIsGivenBack) {
  Candidate candidate;
  candidate.Tell(Begin{});
  candidate.Key(std::nullopt);
  const uint64_t late = candidate.call();
  candidate.Tell(Failed{late, "no answer in time"});
  EXPECT_EQ(candidate.Tell(LeaseGranted{late, kOurLease, kTtl}), "revoke 7");
}

TEST(ElectionMachine, AnswersThatNobodyWaitsForChangeNothing) {
  Candidate candidate;
  candidate.BecomeLeader();
  EXPECT_EQ(candidate.Tell(KeyIs{12345, Candidate::Theirs(), 200}), "");
  EXPECT_EQ(candidate.Tell(LeaseIs{12345, 0s}), "");
  EXPECT_EQ(candidate.Tell(Failed{12345, "late"}), "");
  EXPECT_EQ(candidate.Tell(Revoked{12345}), "");
  EXPECT_EQ(candidate.Tell(Published{12345}), "");
  EXPECT_TRUE(candidate.machine().leads());
}

}  // namespace
}  // namespace muster
