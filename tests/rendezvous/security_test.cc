#include "rendezvous/security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

constexpr char kLoopback[] = "127.0.0.1";
constexpr char kOpen[] = "0.0.0.0";

struct ServerCase {
  const char* name;
  const char* listen;
  ServerSecurity security;
  StatusCode code;
  const char* message = "";
};

TEST(Security, AServerListensOutsideLoopbackOnlyWithTlsOrWhenTold) {
  const TlsFiles pair{.ca = "", .cert = "c", .key = "k"};
  const TlsFiles mutual{.ca = "a", .cert = "c", .key = "k"};
  const std::vector<ServerCase> cases = {
      {"loopback", kLoopback, {}, StatusCode::kOk},
      {"IPv6 loopback", "::1", {}, StatusCode::kOk},
      {"localhost", "localhost", {}, StatusCode::kOk},
      {"open", kOpen, {}, StatusCode::kFailedPrecondition, "--insecure"},
      {"open IPv6", "::", {}, StatusCode::kFailedPrecondition, "[::]"},
      {"an address", "10.0.0.1", {}, StatusCode::kFailedPrecondition, "--tls-cert"},
      {"told so", kOpen, {.insecure = true}, StatusCode::kOk},
      {"TLS", kOpen, {.tls = pair}, StatusCode::kOk},
      {"mutual TLS", kOpen, {.tls = mutual, .allowed_peers = {"x"}}, StatusCode::kOk},
      {"token, TLS", kOpen, {.tls = pair, .token_file = "t"}, StatusCode::kOk},
      {"token on loopback", kLoopback, {.token_file = "t"}, StatusCode::kOk},
      {"token in the clear",
       kOpen,
       {.token_file = "t"},
       StatusCode::kFailedPrecondition,
       "could be read"},
      {"and told so",
       kOpen,
       {.token_file = "t", .insecure = true},
       StatusCode::kFailedPrecondition,
       "could be read"},
      {"no key",
       kLoopback,
       {.tls = {.ca = "", .cert = "c", .key = ""}},
       StatusCode::kInvalidArgument,
       "--tls-key"},
      {"no certificate",
       kLoopback,
       {.tls = {.ca = "", .cert = "", .key = "k"}},
       StatusCode::kInvalidArgument,
       "--tls-cert"},
      {"only a CA",
       kLoopback,
       {.tls = {.ca = "a", .cert = "", .key = ""}},
       StatusCode::kInvalidArgument,
       "--tls-cert and --tls-key"},
      {"names without a CA",
       kLoopback,
       {.tls = pair, .allowed_peers = {"x"}},
       StatusCode::kInvalidArgument,
       "--tls-ca"},
  };
  for (const ServerCase& each : cases) {
    SCOPED_TRACE(each.name);
    const absl::Status status = CheckSecurity(each.security, {each.listen, 29400});
    EXPECT_EQ(status.code(), each.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(each.message));
  }
}

struct ClientCase {
  const char* name;
  const char* endpoint;
  ClientSecurity security;
  StatusCode code;
  const char* message = "";
};

TEST(Security, AClientSendsATokenOnlyOverTlsOrOnItsOwnHost) {
  const TlsFiles ca{.ca = "a", .cert = "", .key = ""};
  const std::vector<ClientCase> cases = {
      {"nothing", "node1", {}, StatusCode::kOk},
      {"TLS", "node1", {.tls = ca}, StatusCode::kOk},
      {"mutual TLS", "node1", {.tls = {.ca = "a", .cert = "c", .key = "k"}}, StatusCode::kOk},
      {"token, TLS", "node1", {.tls = ca, .token_file = "t"}, StatusCode::kOk},
      {"token on loopback", kLoopback, {.token_file = "t"}, StatusCode::kOk},
      {"token in the clear",
       "node1",
       {.token_file = "t"},
       StatusCode::kFailedPrecondition,
       "node1:29400"},
      {"certificate without TLS",
       "node1",
       {.tls = {.ca = "", .cert = "c", .key = "k"}},
       StatusCode::kInvalidArgument,
       "--tls-ca"},
      {"name without TLS",
       "node1",
       {.server_name = "n"},
       StatusCode::kInvalidArgument,
       "--tls-server-name"},
      {"no key",
       "node1",
       {.tls = {.ca = "a", .cert = "c", .key = ""}},
       StatusCode::kInvalidArgument,
       "--tls-key"},
  };
  for (const ClientCase& each : cases) {
    SCOPED_TRACE(each.name);
    const absl::Status status = CheckSecurity(each.security, {each.endpoint, 29400});
    EXPECT_EQ(status.code(), each.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(each.message));
  }
}

TEST(Security, AllowedNamesAreExactOrHaveOneLabelOpen) {
  const std::vector<std::string> allowed = {"a.example.org", "*.pool.example.org",
                                            "spiffe://example.org/agent", "10.0.0.7"};
  for (const char* name : {"a.example.org", "A.Example.ORG", "x.pool.example.org",
                           "spiffe://example.org/agent", "10.0.0.7"}) {
    EXPECT_TRUE(IsAllowedPeer(allowed, {"other", name})) << name;
  }
  for (const char* name :
       {"b.example.org", "pool.example.org", "x.y.pool.example.org", ".pool.example.org",
        "spiffe://example.org/AGENT", "spiffe://example.org/agent/x", "10.0.0.70", ""}) {
    EXPECT_FALSE(IsAllowedPeer(allowed, {name})) << name;
  }
  EXPECT_FALSE(IsAllowedPeer(allowed, {}));
}

}  // namespace
}  // namespace muster
