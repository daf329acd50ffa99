#include "worker_sdk/name_difference.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(NameDifference, SaysWhatIsWhere) {
  EXPECT_EQ(NameDifference({}, {}), "");
  EXPECT_EQ(NameDifference({"net", "epoch"}, {"net", "epoch"}), "");
  EXPECT_EQ(NameDifference({"net", "scaler"}, {"net"}),
            "it has scaler, which this program does not have");
  EXPECT_EQ(NameDifference({"net"}, {"net", "scaler", "schedule"}),
            "it lacks scaler, schedule, which this program has");
  EXPECT_EQ(NameDifference({"net", "epoch"}, {"epoch", "net"}),
            "it has net where this program has epoch: the same in another order");
  EXPECT_EQ(NameDifference({"1", "2", "3", "4", "5", "6", "7", "8"}, {}),
            "it has 1, 2, 3, 4, 5, 6 and 2 more, which this program does not have");
}

}  // namespace
}  // namespace muster
