#include "rendezvous/http_pages.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/rendezvous/test_job.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

class HttpPagesTest : public testing::Test {
 protected:
  void Start(Duration patience = 20s) {
    job_.Join("a");
    HttpPages::Options options;
    options.address = {"127.0.0.1", 0};
    options.ask = [this](const StatusQuery& query, const StatusCallback& callback) {
      if (is_frozen_) return;
      auto report = std::make_shared<MasterReport>();
      if (stands_by_) {
        report->stands_by = true;
        report->leader = "node1:29400";
        callback(report);
        return;
      }
      report->jobs.push_back(
          {StatusOf(job_.machine(), job_.journal().recorder(), job_.now(), query.detail), {}});
      callback(report);
    };
    options.patience = patience;
    auto pages = HttpPages::Start(std::move(options));
    ASSERT_TRUE(pages.ok()) << pages.status();
    pages_ = *std::move(pages);
  }
  httplib::Result Get(const std::string& path) {
    httplib::Client client("127.0.0.1", pages_->port());
    return client.Get(path.c_str());
  }

  TestJob job_{NodesFrom(2, 2)};
  bool is_frozen_ = false;
  bool stands_by_ = false;
  std::unique_ptr<HttpPages> pages_;
};

TEST_F(HttpPagesTest, EveryPageIsThere) {
  Start();
  EXPECT_NE(Get("/api/v1/status")->body.find("\"waiting for nodes: 1 of 2 are here\""),
            std::string::npos);
  EXPECT_NE(Get("/metrics")->body.find("muster_rendezvous_waiting{job=\"job\"} 1\n"),
            std::string::npos);
  EXPECT_NE(Get("/metrics")->body.find("\nmuster_serving 1\n"), std::string::npos);
  EXPECT_EQ(Get("/healthz")->body, "ok\n");
  EXPECT_EQ(Get("/readyz")->status, 200);
  EXPECT_EQ(Get("/nothing")->status, 404);
}

TEST_F(HttpPagesTest, ThePageForPeopleLoadsNothingFromElsewhere) {
  Start();
  const httplib::Result page = Get("/");
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_NE(page->get_header_value("Content-Security-Policy").find("default-src 'none'"),
            std::string::npos);
  for (const char* loader : {"http:", "https:", "src=", "<link", "@import", "innerHTML"}) {
    EXPECT_EQ(page->body.find(loader), std::string::npos) << loader;
  }
}

TEST_F(HttpPagesTest, NothingCanBeChanged) {
  Start();
  httplib::Client client("127.0.0.1", pages_->port());
  EXPECT_EQ(client.Post("/api/v1/status", "{}", "application/json")->status, 404);
}

TEST_F(HttpPagesTest, AStandbyIsHealthyAndSaysWhereTheMasterIs) {
  stands_by_ = true;
  Start();
  EXPECT_EQ(Get("/healthz")->body, "ok\n");
  EXPECT_NE(Get("/metrics")->body.find("\nmuster_serving 0\n"), std::string::npos);
  EXPECT_EQ(Get("/")->status, 200);
  for (const char* path : {"/readyz", "/api/v1/status"}) {
    EXPECT_EQ(Get(path)->status, 503) << path;
    EXPECT_EQ(Get(path)->body, "this master stands by: the master is at node1:29400\n") << path;
  }
}

TEST_F(HttpPagesTest, ALoopThatDoesNotTurnIsNotHealthy) {
  is_frozen_ = true;
  Start(10ms);
  EXPECT_EQ(Get("/healthz")->status, 503);
  EXPECT_EQ(Get("/api/v1/status")->body, "the master does not answer\n");
}

TEST_F(HttpPagesTest, APortInUseIsNamed) {
  Start();
  HttpPages::Options options;
  options.address = {"127.0.0.1", pages_->port()};
  const absl::Status status = HttpPages::Start(std::move(options)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("127.0.0.1:" + std::to_string(pages_->port())), std::string::npos)
      << status;
}

}  // namespace
}  // namespace muster
