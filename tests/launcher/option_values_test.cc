#include "launcher/option_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The problem of a value that must be refused; it quotes the value and says what to give.
template <typename T>
std::string ProblemOf(const absl::StatusOr<T>& parsed) {
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

TEST(OptionValues, NodesAreANumberOrARange) {
  EXPECT_FALSE(ParseNodes(absl::string_view()).ok());
  EXPECT_EQ(ParseNodes("4")->min, 4);
  EXPECT_EQ(ParseNodes("4")->max, 4);
  EXPECT_EQ(ParseNodes("2:8")->min, 2);
  EXPECT_EQ(ParseNodes("2:8")->max, 8);
  EXPECT_EQ(ProblemOf(ParseNodes("1:2:3")),
            "'1:2:3' is neither N nor MIN:MAX: give 4 or 2:4, for example");
  EXPECT_EQ(ProblemOf(ParseNodes("2:1")),
            "MIN 2 is above MAX 1 in '2:1': give the smaller number first");
  EXPECT_EQ(ProblemOf(ParseNodes("0")), "'0' is too few: a job has at least 1 node");
  for (const char* text : {"", ":", "1:", ":2", "x", "1.5", "-1", "1 ", "99999999999", "0x2"}) {
    EXPECT_FALSE(ParseNodes(text).ok()) << text;
  }
}

TEST(OptionValues, SlotsAreANumberFromOneOrCounted) {
  EXPECT_EQ(ParseSlots("8")->number, 8);
  EXPECT_EQ(ParseSlots("cpu")->how, SlotCount::kCpu);
  EXPECT_EQ(ParseSlots("gpu")->how, SlotCount::kGpu);
  EXPECT_EQ(ParseSlots("auto")->how, SlotCount::kAuto);
  EXPECT_EQ(ProblemOf(ParseSlots("many")),
            "'many' is not a number of workers: give 1 to 65535, or cpu, gpu, auto");
  for (const char* text : {"0", "-2", "", "GPU", "1e3", "65536"})
    EXPECT_FALSE(ParseSlots(text).ok());
}

TEST(OptionValues, StreamsAreOneValueOrOnePerLocalRank) {
  EXPECT_EQ(ParseStreams("3")->For(7), Streams::kBoth);
  StreamsByRank streams = ParseStreams("0:1,12:3").value();
  EXPECT_EQ(streams.For(0), Streams::kStdout);
  EXPECT_EQ(streams.For(12), Streams::kBoth);
  EXPECT_EQ(streams.For(1), Streams::kNone);
  for (const char* text : {"", "4", "7", "0:4", "x:1", "0:", "0:1,", "0:1;1:2", "-1:1"}) {
    EXPECT_FALSE(ParseStreams(text).ok()) << text;
  }
}

TEST(OptionValues, RanksAndFiltersAreLists) {
  EXPECT_THAT(*ParseRanks("0, 2,11"), ElementsAre(0, 2, 11));
  EXPECT_THAT(*ParseRanks(""), IsEmpty());
  for (const char* text : {"zero", "0,", "-1", "0 1"}) EXPECT_FALSE(ParseRanks(text).ok()) << text;
  EXPECT_THAT(*ParseFilters("loss,a,,b,"), ElementsAre("loss", "a,b"));
  EXPECT_THAT(*ParseFilters(""), IsEmpty());
}

TEST(OptionValues, ExitCodesAreNumbersAndRanges) {
  EXPECT_EQ(ParseExitCodes("64-78, 3,77-80,255")->ToString(), "3,64-80,255");
  EXPECT_EQ(ParseExitCodes("7-7")->ToString(), "7");
  for (const char* text : {"", "none"}) EXPECT_TRUE(ParseExitCodes(text)->empty()) << text;
  EXPECT_EQ(ProblemOf(ParseExitCodes("0")),
            "'0' is not a list of exit codes: give codes from 1 to 255 and ranges, as in 3,64-78");
  for (const char* text :
       {"x", "3,", ",3", "-1", "3-", "-", "9-3", "256", "1-256", "1-2-3", "1--2"}) {
    EXPECT_FALSE(ParseExitCodes(text).ok()) << text;
  }
}

TEST(OptionValues, SignalsAreNamesWithOrWithoutSig) {
  EXPECT_THAT(*ParseSignals("SIGTERM,usr1, Sighup"), ElementsAre(SIGTERM, SIGUSR1, SIGHUP));
  EXPECT_THAT(*ParseSignals("TERM,SIGTERM"), ElementsAre(SIGTERM));
  EXPECT_THAT(*ParseSignals("none"), IsEmpty());
  EXPECT_EQ(ProblemOf(ParseSignals("TERM,FOO")),
            "'FOO' is no signal's name: give names as in SIGTERM,SIGUSR1, or none");
  EXPECT_EQ(ProblemOf(ParseSignals("KILL")), "SIGKILL cannot be handled: leave it out");
  for (const char* text : {"", "15", "SIG15", "SIGCHLD", "TERM,"}) {
    EXPECT_FALSE(ParseSignals(text).ok()) << text;
  }
}

TEST(OptionValues, ABackendThatIsNotBuiltYetIsNotAnUnknownOne) {
  EXPECT_EQ(*ParseBackend("c10d"), Backend::kC10d);
  EXPECT_EQ(*ParseBackend("etcd"), Backend::kEtcd);
  EXPECT_EQ(*ParseBackend("etcd-v2"), Backend::kEtcd);
  EXPECT_EQ(ProblemOf(ParseBackend("pigeon")),
            "'pigeon' is not a backend: give static, c10d, etcd or etcd-v2");
}

TEST(OptionValues, AHostHasNoPort) {
  EXPECT_EQ(*ParseHost("node-1.example"), "node-1.example");
  EXPECT_EQ(*ParseHost("[::1]"), "::1");
  EXPECT_EQ(*ParseHost("fe80::1"), "fe80::1");
  for (const char* text : {"", "a:1", "a b", "[::1]:2"}) EXPECT_FALSE(ParseHost(text).ok()) << text;
}

}  // namespace
}  // namespace muster
