#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/worker.h>

#include <map>

namespace muster {
namespace {

using Variables = std::map<std::string, std::string>;
using testing::ElementsAre;
using testing::HasSubstr;

Identity From(const Variables& variables) {
  return identity_from([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

Variables Launched() {
  return {{"RANK", "5"},           {"LOCAL_RANK", "1"},       {"WORLD_SIZE", "8"},
          {"GROUP_RANK", "2"},     {"LOCAL_WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"},
          {"MASTER_PORT", "29500"}};
}

Variables With(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

EnvironmentError ErrorOf(const Variables& variables) {
  try {
    From(variables);
  } catch (const EnvironmentError& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return EnvironmentError("", {});
}

TEST(Identity, WithoutALauncherIsAWorldOfOne) {
  const Identity self = From({{"PATH", "/bin"}});
  EXPECT_FALSE(self.launched);
  EXPECT_EQ(self.rank, 0);
  EXPECT_EQ(self.world_size, 1);
  EXPECT_EQ(self.generation, 0);
}

TEST(Identity, IsWhatTheLauncherSet) {
  Variables variables = With(Launched(), "TORCHELASTIC_RESTART_COUNT", "3");
  variables["MUSTER_GENERATION"] = "7";
  variables["MUSTER_LOCAL_ADDR"] = "10.0.0.3";
  variables["TORCHELASTIC_RUN_ID"] = "job";
  const Identity self = From(variables);
  EXPECT_TRUE(self.launched);
  EXPECT_EQ(self.rank, 5);
  EXPECT_EQ(self.local_rank, 1);
  EXPECT_EQ(self.world_size, 8);
  EXPECT_EQ(self.local_world_size, 2);
  EXPECT_EQ(self.node, 2);
  EXPECT_EQ(self.nodes, 4);
  EXPECT_EQ(self.master_addr, "10.0.0.1");
  EXPECT_EQ(self.master_port, 29500);
  EXPECT_EQ(self.restart_count, 3);
  EXPECT_EQ(self.generation, 7);
  EXPECT_EQ(self.local_addr, "10.0.0.3");
  EXPECT_EQ(self.run_id, "job");
}

TEST(Identity, UnderTorchrunTheRestartCountIsTheGeneration) {
  EXPECT_EQ(From(With(Launched(), "TORCHELASTIC_RESTART_COUNT", "2")).generation, 2);
}

TEST(Identity, WithoutGroupRankTheNodeIsFoundByDivision) {
  Variables variables = Launched();
  variables.erase("GROUP_RANK");
  EXPECT_EQ(From(variables).node, 2);
}

TEST(Identity, HalfAnEnvironmentNamesEachMissingVariable) {
  Variables variables = Launched();
  variables.erase("RANK");
  variables.erase("MASTER_PORT");
  const EnvironmentError error = ErrorOf(variables);
  EXPECT_THAT(error.variables, ElementsAre("RANK", "MASTER_PORT"));
  EXPECT_THAT(error.what(), HasSubstr("but not RANK, MASTER_PORT"));
  EXPECT_THAT(ErrorOf({{"MASTER_ADDR", "x"}}).variables, testing::SizeIs(5));
}

TEST(Identity, AMalformedOrContradictingValueIsNamed) {
  const std::pair<const char*, const char*> table[] = {
      {"RANK", ""},
      {"RANK", "one"},
      {"RANK", "1x"},
      {"RANK", "-1"},
      {"RANK", "8"},
      {"RANK", " 1"},
      {"WORLD_SIZE", "0"},
      {"WORLD_SIZE", "99999999999999999999"},
      {"LOCAL_RANK", "2"},
      {"LOCAL_WORLD_SIZE", "9"},
      {"MASTER_PORT", "0"},
      {"MASTER_PORT", "65536"},
      {"MASTER_ADDR", ""},
      {"GROUP_RANK", "8"},
      {"MUSTER_GENERATION", "g"},
      {"TORCHELASTIC_RESTART_COUNT", "-2"},
  };
  for (const auto& [name, value] : table) {
    const EnvironmentError error = ErrorOf(With(Launched(), name, value));
    EXPECT_THAT(error.variables, ElementsAre(name)) << value;
    EXPECT_THAT(error.what(), HasSubstr(name)) << value;
  }
}

}  // namespace
}  // namespace muster
