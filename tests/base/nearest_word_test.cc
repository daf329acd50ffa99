#include "base/nearest_word.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(NearestWord, FindsWhatWasMeant) {
  EXPECT_EQ(NearestWord("rnu", {"version", "run", "help"}), "run");
  EXPECT_EQ(NearestWord("nodes", {"nnodes", "node-rank"}), "nnodes");
  EXPECT_EQ(NearestWord("nprc", {"nnodes", "nproc-per-node"}), "nproc-per-node");
}

TEST(NearestWord, KeepsSilentWhenNothingIsNear) {
  EXPECT_EQ(NearestWord("zzzz", {"run", "help"}), "");
  EXPECT_EQ(NearestWord("bogus", {"logs-specs", "log-dir", "module", "nnodes"}), "");
  EXPECT_EQ(NearestWord("", {"run"}), "");
  EXPECT_EQ(NearestWord("x", {}), "");
  EXPECT_EQ(NearestWord(std::string(100000, 'r'), {"run"}), "");
}

}  // namespace
}  // namespace muster
