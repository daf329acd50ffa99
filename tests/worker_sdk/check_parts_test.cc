#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "worker_sdk/check_settings.h"
#include "worker_sdk/data_split.h"

namespace muster {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

CheckOptions Read(const Variables& variables, const CheckOptions& options = {}) {
  return WithEnvironment(options, [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string Refusal(const Variables& variables) {
  try {
    Read(variables);
    ADD_FAILURE() << "no error";
  } catch (const EnvironmentError& error) {
    EXPECT_EQ(error.variables, std::vector<std::string>{variables.begin()->first});
    return error.what();
  }
  return "";
}

TEST(CheckSettings, TheEnvironmentWinsAndABadValueIsOneLine) {
  EXPECT_FALSE(Read({}).on());
  EXPECT_TRUE(Read({{"MUSTER_CHECK", "1"}}).on());
  EXPECT_FALSE(Read({{"MUSTER_CHECK", "0"}}, CheckOptions().on(true)).on());
  EXPECT_TRUE(Read({{"MUSTER_CHECK", ""}}, CheckOptions().on(true)).on());
  EXPECT_EQ(Read({{"MUSTER_CHECK_EVERY", "7"}}).every(), 7);
  EXPECT_EQ(Refusal({{"MUSTER_CHECK", "yes"}}),
            "MUSTER_CHECK='yes' in the environment is not 1 or 0: correct it, or unset it");
  for (const char* bad : {"0", "-1", "3x", "99999999999999999999"}) {
    EXPECT_THAT(Refusal({{"MUSTER_CHECK_EVERY", bad}}), HasSubstr("is not a number of steps"));
  }
  EXPECT_THROW(Read({}, CheckOptions().every(0)), Error);
}

TEST(CheckSettings, ACheckOfEachStepIsNotOneOfEvery1Steps) {
  EXPECT_EQ(CheckText(CheckOptions().on(true).every(1)), " with a check every step");
  EXPECT_EQ(CheckText(CheckOptions().on(true).every(7)), " with a check every 7 steps");
}

// What rank `rank` of `ranks` notes of the first `count` of its indices.
Pass PassOf(Slice slice, const std::vector<int64_t>& order, size_t count) {
  PassLog log;
  for (size_t i = 0; i < count; ++i) {
    const size_t position = slice.base + i * slice.ranks + slice.rank;
    log.Add(slice, order, i, {static_cast<size_t>(order[position % slice.n])});
  }
  return log.passes().at(0);
}

TEST(DataSplit, TheSumsOfAllRanksAreThatOfWhatTheyMustHaveGot) {
  std::vector<int64_t> order(10);
  std::iota(order.begin(), order.end(), 0);
  for (const size_t base : {0, 3}) {
    for (const size_t count : {1, 2, 4}) {  // the last of which fills up with indices of before
      uint64_t sum = 0;
      for (size_t rank = 0; rank < 3; ++rank) {
        sum += PassOf({10, rank, 3, 0, false, 0, base}, order, count).handed_out;
      }
      EXPECT_EQ(sum, PassOf({10, 0, 3, 0, false, 0, base}, order, count).all_handed);
      const uint64_t twice = PassOf({10, 1, 3, 0, false, 0, base}, order, count).handed_out;
      EXPECT_NE(sum + twice, PassOf({10, 0, 3, 0, false, 0, base}, order, count).all_handed);
    }
  }
}

TEST(DataSplit, PassesEndWhereTheyAreClosedAndTheLastSixteenAreKept) {
  PassLog log;
  const std::vector<int64_t> order = {0, 1, 2, 3};
  for (size_t pass = 0; pass < 20; ++pass) {
    log.Add({4, 0, 2, 0, false, pass, 0}, order, 0, {0});
    log.Add({4, 0, 2, 0, false, pass, 0}, order, 1, {2});
    if (pass < 19) log.Close();
    log.Forget(pass == 18 ? 18 : 99);
  }
  const std::vector<Pass> passes = log.passes();
  ASSERT_EQ(passes.size(), 16U);
  EXPECT_EQ(passes.front().slice.epoch, 3U);
  EXPECT_TRUE(passes.front().closed);
  EXPECT_EQ(passes.back().to, 2U);
  EXPECT_FALSE(passes.back().closed);
  log.Forget(19);
  EXPECT_EQ(log.passes().size(), 16U) << "it is not closed";
}

TEST(DataSplit, SamplersAreNumberedByTheNumberOfRanksTheyAreFor) {
  const auto first = NewPassLog(2), other = NewPassLog(3), second = NewPassLog(2);
  const auto found = PassLogsFor(2);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].first, 1U);
  EXPECT_EQ(found[1].second, second);
}

}  // namespace
}  // namespace muster
