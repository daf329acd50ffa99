#include "launcher/rdzv_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string ProblemOf(const std::string& text, absl::StatusCode code) {
  absl::Status status = ParseRdzvConf(text).status();
  EXPECT_EQ(status.code(), code) << text;
  return std::string(status.message());
}

TEST(RdzvConf, ReadsTorchrunsKeys) {
  RdzvConf conf = ParseRdzvConf(
                      " join_timeout=60 ,last_call_timeout=2,keep_alive_interval=500ms,"
                      "keep_alive_max_attempt=4,timeout=90,is_host=True")
                      .value();
  EXPECT_EQ(conf.join_timeout, seconds(60));
  EXPECT_EQ(conf.last_call_timeout, seconds(2));
  EXPECT_EQ(conf.keep_alive_interval, milliseconds(500));
  EXPECT_EQ(conf.keep_alive_max_attempt, 4);
  EXPECT_EQ(conf.timeout, seconds(90));
  EXPECT_EQ(conf.host_master, HostMaster::kYes);
}

TEST(RdzvConf, EmptySetsNothingAndTheLastOfTwoCounts) {
  EXPECT_EQ(ParseRdzvConf("")->join_timeout, std::nullopt);
  EXPECT_EQ(ParseRdzvConf("join_timeout=1,join_timeout=2")->join_timeout, seconds(2));
  EXPECT_EQ(ParseRdzvConf("is_host=0")->host_master, HostMaster::kNo);
}

TEST(RdzvConf, KeysWithNothingToSetAreCheckedAndRemembered) {
  RdzvConf conf =
      ParseRdzvConf("read_timeout=5,close_timeout=5,heartbeat_timeout=5,store_type=tcp").value();
  EXPECT_THAT(conf.without_effect, ::testing::ElementsAre("read_timeout", "close_timeout",
                                                          "heartbeat_timeout", "store_type"));
  EXPECT_FALSE(ParseRdzvConf("read_timeout=soon").ok());
}

TEST(RdzvConf, UnknownKeysAreRefusedWithTheNearest) {
  const auto bad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(ProblemOf("join_timout=3", bad),
            "unknown key 'join_timout': did you mean join_timeout?");
  EXPECT_EQ(ProblemOf("heartbeat=3", bad),
            "unknown key 'heartbeat': did you mean heartbeat_timeout?");
  EXPECT_THAT(ProblemOf("qqqqq=3", bad), ::testing::HasSubstr("known are join_timeout, "));
  EXPECT_THAT(ProblemOf("rank=3", bad), ::testing::HasSubstr("--node-rank"));
}

TEST(RdzvConf, MalformedItemsAreRefused) {
  for (const char* text : {"abc", "=1", "join_timeout=", "join_timeout=1,", "join_timeout=0",
                           "join_timeout=-3", "keep_alive_max_attempt=0", "is_host=perhaps"}) {
    EXPECT_FALSE(ProblemOf(text, absl::StatusCode::kInvalidArgument).empty());
  }
}

TEST(RdzvConf, AFileAsTheStoreIsNotBuiltYet) {
  EXPECT_FALSE(ProblemOf("store_type=file", absl::StatusCode::kUnimplemented).empty());
}

TEST(RdzvConf, EtcdIsReadByTheNamesOfBothBackends) {
  for (const char* text : {"protocol=https,ca_cert=/ca,ssl_cert=/cert,ssl_cert_key=/key",
                           "protocol=https,cacert=/ca,cert=/cert,key=/key"}) {
    const RdzvConf conf = ParseRdzvConf(text).value();
    EXPECT_TRUE(conf.election.etcd.tls);
    EXPECT_EQ(conf.election.etcd.ca_file, "/ca");
    EXPECT_EQ(conf.election.etcd.cert_file, "/cert");
    EXPECT_EQ(conf.election.etcd.key_file, "/key");
    EXPECT_EQ(conf.of_etcd.size(), 4u);
  }
  EXPECT_FALSE(ParseRdzvConf("protocol=http")->election.etcd.tls);
  EXPECT_EQ(ProblemOf("protocol=ftp", absl::StatusCode::kInvalidArgument),
            "protocol: 'ftp' is not a choice: give http or https");
}

TEST(RdzvConf, ReadsOurOwnKeysOfEtcd) {
  const RdzvConf conf =
      *ParseRdzvConf("etcd_prefix=/x,leader_lease=3,user=muster,password_file=/password");
  EXPECT_EQ(conf.election.prefix, "/x");
  EXPECT_EQ(conf.election.lease, seconds(3));
  EXPECT_EQ(conf.election.etcd.user, "muster");
  EXPECT_EQ(conf.election.etcd.password_file, "/password");
  EXPECT_THAT(ProblemOf("leader_lease=1", absl::StatusCode::kInvalidArgument),
              ::testing::HasSubstr("2 s at least"));
}

}  // namespace
}  // namespace muster
