#include "rendezvous/reason.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace muster {
namespace {

TEST(Reason, EveryCodeHasALabelOfItsOwnAndASentence) {
  std::set<std::string> labels;
  for (int code = 0; code <= static_cast<int>(kLastReasonCode); ++code) {
    Reason reason;
    reason.code = static_cast<ReasonCode>(code);
    const std::string label = Label(reason.code);
    EXPECT_TRUE(labels.insert(label).second) << label;
    EXPECT_EQ(label.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << label;
    EXPECT_NE(Sentence(reason), label);
  }
}

TEST(Reason, SentencesNameWhoAndHowMany) {
  EXPECT_EQ(Sentence({ReasonCode::kWaitingForNodes, "", 1, 2}),
            "waiting for nodes: 1 of 2 are here");
  EXPECT_EQ(Sentence({ReasonCode::kWaitingForNodes, "", 1, 2, "node rank 1"}),
            "waiting for nodes: 1 of 2 are here; missing: node rank 1");
  EXPECT_EQ(Sentence({ReasonCode::kNodeLostSilence, "n7", 15000}),
            "node n7 is lost: silent for 15s");
  EXPECT_EQ(Sentence({ReasonCode::kWorkerFailed, "n7", 12, 0, "exit code 3"}),
            "rank 12 on node n7 failed: exit code 3");
  EXPECT_EQ(Sentence({ReasonCode::kJobFailedBudget, "", 0, 0, "rank 0 on node a failed"}),
            "job failed: rank 0 on node a failed; no restarts are allowed");
}

}  // namespace
}  // namespace muster
