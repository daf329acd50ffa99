#include "rendezvous/etcd_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/event_queue.h"
#include "tests/rendezvous/test_etcd.h"

namespace muster {
namespace {

namespace etcd = etcdserverpb;
using namespace std::chrono_literals;
using testing::HasSubstr;

etcd::TxnRequest Put(const std::string& key, const std::string& value) {
  etcd::TxnRequest request;
  request.add_success()->mutable_request_put()->set_key(key);
  request.mutable_success(0)->mutable_request_put()->set_value(value);
  return request;
}

etcd::RangeRequest Get(const std::string& key) {
  etcd::RangeRequest request;
  request.set_key(key);
  return request;
}

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(EtcdClientTest, WhatIsPutIsReadAndWatched) {
  TestEtcd server(1);
  RealClock clock;
  EventQueue<std::string> events(&clock, 10);
  const auto client = *EtcdClient::Make(server.options());
  const auto put = client->TxnAndWait(Put("a", "one"));
  ASSERT_TRUE(put.ok()) << put.status();
  client->AwaitChange("a", put->header().revision(), [&events](auto answer) {
    events.Push(answer.ok() ? answer->events(0).kv().value() : std::string("failed"));
  });
  ASSERT_TRUE(client->TxnAndWait(Put("a", "two")).ok());
  EXPECT_EQ(events.Pop(clock.Now() + 20s), "two");
  EXPECT_EQ(client->RangeAndWait(Get("a"))->kvs(0).value(), "two");
}

TEST(EtcdClientTest, AWatchFromWhatHasBeenCompactedSaysSo) {
  TestEtcd server(1);
  RealClock clock;
  EventQueue<absl::Status> ends(&clock, 10);
  const auto client = *EtcdClient::Make(server.options());
  client->TxnAndWait(Put("a", "one")).IgnoreError();
  client->TxnAndWait(Put("a", "two")).IgnoreError();
  server.Control({"compact", "3"});
  client->AwaitChange("a", 1, [&ends](auto answer) { ends.Push(answer.status()); });
  EXPECT_TRUE(absl::IsOutOfRange(ends.Pop(clock.Now() + 20s).value()));
}

TEST(EtcdClientTest, CallsGoToAnotherMemberWhenOneIsGone) {
  TestEtcd server(3);
  const auto client = *EtcdClient::Make(server.options());
  ASSERT_TRUE(client->TxnAndWait(Put("a", "one")).ok());
  for (const int gone : {0, 1}) {
    if (gone == 1) server.Start(0);
    server.Kill(gone);
    // While the others choose a leader, etcd may say that it has none.
    absl::StatusOr<etcd::RangeResponse> read = absl::UnavailableError("");
    while (absl::IsUnavailable(read.status())) read = client->RangeAndWait(Get("a"));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->kvs(0).value(), "one");
  }
}

TEST(EtcdClientTest, WithoutAnyMemberACallIsUnavailableInOneLine) {
  ReservedPort port;
  EtcdOptions options;
  options.endpoints = {{"127.0.0.1", port.number()}};
  const auto client = *EtcdClient::Make(options);
  const absl::Status status = client->RangeAndWait(Get("a")).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(port.number())));
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

TEST(EtcdClientTest, AMemberThatSaysNothingIsGivenUpInTime) {
  ReservedPort port;
  port.Listen();
  EtcdOptions options;
  options.endpoints = {{"127.0.0.1", port.number()}};
  options.timeout = 200ms;
  const auto client = *EtcdClient::Make(options);
  EXPECT_TRUE(absl::IsUnavailable(client->RangeAndWait(Get("a")).status()));
}

TEST(EtcdClientTest, CancellingEndsWhatWaits) {
  TestEtcd server(1);
  RealClock clock;
  EventQueue<absl::Status> ends(&clock, 10);
  auto client = *EtcdClient::Make(server.options());
  client->AwaitChange("a", 1, [&ends](auto answer) { ends.Push(answer.status()); });
  client.reset();
  EXPECT_FALSE(ends.Pop(clock.Now()).value().ok());
}

TEST(EtcdClientTest, WithoutAnEndpointOrAFileThereIsNoClient) {
  EXPECT_TRUE(absl::IsInvalidArgument(EtcdClient::Make({}).status()));
  EtcdOptions options;
  options.endpoints = {{"127.0.0.1", 2379}};
  options.tls = true;
  options.ca_file = "/no/such/file";
  const absl::Status status = EtcdClient::Make(options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/file"));
}

class EtcdAuthTest : public testing::Test {
 protected:
  EtcdAuthTest() {
    server_.Control({"user", "add", "root:secret"});
    server_.Control({"user", "add", "muster:old"});
    server_.Control({"role", "add", "trainer"});
    server_.Control(
        {"role", "grant-permission", "trainer", "--prefix=true", "readwrite", "/muster"});
    server_.Control({"user", "grant-role", "muster", "trainer"});
    server_.Control({"user", "grant-role", "root", "root"});
    server_.Control({"auth", "enable"});
  }

  std::unique_ptr<EtcdClient> Client(const std::string& user, const std::string& password) {
    EtcdOptions options = server_.options();
    options.user = user;
    options.password_file = WriteFile("password", password + "\n");
    return *EtcdClient::Make(options);
  }

  TestEtcd server_{1};
};

TEST_F(EtcdAuthTest, AUserMayWhatItsRoleAllows) {
  const auto client = Client("muster", "old");
  EXPECT_TRUE(client->TxnAndWait(Put("/muster/a", "one")).ok());
  EXPECT_EQ(client->RangeAndWait(Get("/muster/a"))->kvs(0).value(), "one");
  EXPECT_TRUE(absl::IsPermissionDenied(client->TxnAndWait(Put("/other", "x")).status()));
}

TEST_F(EtcdAuthTest, AWrongPasswordAndNoneAtAllAreRefused) {
  const absl::Status wrong = Client("muster", "wrong")->RangeAndWait(Get("/muster/a")).status();
  EXPECT_TRUE(absl::IsUnauthenticated(wrong)) << wrong;
  const auto without = *EtcdClient::Make(server_.options());
  const absl::Status none = without->RangeAndWait(Get("/muster/a")).status();
  EXPECT_TRUE(absl::IsUnauthenticated(none)) << none;
}

TEST_F(EtcdAuthTest, AChangedPasswordIsReadFromItsFileWhenTheTokenIsRefused) {
  const auto client = Client("muster", "old");
  ASSERT_TRUE(client->TxnAndWait(Put("/muster/a", "one")).ok());
  server_.Control({"--user", "root:secret", "user", "delete", "muster"});
  server_.Control({"--user", "root:secret", "user", "add", "muster:new"});
  server_.Control({"--user", "root:secret", "user", "grant-role", "muster", "trainer"});
  WriteFile("password", "new\n");
  const absl::Status status = client->TxnAndWait(Put("/muster/a", "two")).status();
  EXPECT_TRUE(status.ok()) << status;
}

// A certificate of a test's own authority (of itself, when `name` is that authority's).
std::string Certificate(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  const std::string ca = testing::TempDir() + "/ca";
  std::vector<std::string> words = {"openssl",
                                    "req",
                                    "-x509",
                                    "-newkey",
                                    "ec",
                                    "-pkeyopt",
                                    "ec_paramgen_curve:prime256v1",
                                    "-nodes",
                                    "-days",
                                    "2",
                                    "-subj",
                                    "/CN=" + name,
                                    "-keyout",
                                    path + ".key",
                                    "-out",
                                    path + ".pem"};
  if (name != "ca") {
    for (const std::string& word :
         {std::string("-CA"), ca + ".pem", std::string("-CAkey"), ca + ".key",
          std::string("-addext"), std::string("subjectAltName=IP:127.0.0.1"),
          std::string("-addext"), std::string("basicConstraints=critical,CA:FALSE")}) {
      words.push_back(word);
    }
  }
  std::string output;
  EXPECT_EQ(RunProgram(words, &output), 0) << output;
  return path;
}

TEST(EtcdTlsTest, BothSidesShowTheirCertificates) {
  const std::string ca = Certificate("ca") + ".pem";
  const std::string server_files = Certificate("server");
  const std::string client_files = Certificate("client");
  TestEtcd server(1, {ca, server_files + ".pem", server_files + ".key"});
  EtcdOptions options = server.options();
  options.tls = true;
  options.ca_file = ca;
  const absl::Status without = (*EtcdClient::Make(options))->RangeAndWait(Get("a")).status();
  EXPECT_TRUE(absl::IsUnavailable(without)) << without;

  options.cert_file = client_files + ".pem";
  options.key_file = client_files + ".key";
  const absl::Status with = (*EtcdClient::Make(options))->TxnAndWait(Put("a", "one")).status();
  EXPECT_TRUE(with.ok()) << with;

  options.ca_file.clear();  // the system's authorities do not know ours
  EXPECT_FALSE((*EtcdClient::Make(options))->RangeAndWait(Get("a")).ok());
  EXPECT_FALSE((*EtcdClient::Make(server.options()))->RangeAndWait(Get("a")).ok());
}

}  // namespace
}  // namespace muster
