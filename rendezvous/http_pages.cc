#include "rendezvous/http_pages.h"

#include <httplib.h>
#include <pthread.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "rendezvous/http_page_text.h"
#include "rendezvous/metrics_text.h"
#include "rendezvous/standby_text.h"
#include "rendezvous/status_codec.h"
#include "rendezvous/status_json.h"

namespace muster {
namespace {

constexpr int kReadTimeoutSeconds = 5;
constexpr size_t kPayloadBytesMax = 1024;
constexpr size_t kThreads = 4;

// An answer of the loop that a thread waits for, and may have stopped waiting for.
struct Answer {
  Mutex mutex;
  Condition changed;
  bool has_come ABSL_GUARDED_BY(mutex) = false;
  std::shared_ptr<const MasterReport> report ABSL_GUARDED_BY(mutex);
};

class Pages final : public HttpPages {
 public:
  explicit Pages(Options options) : options_(std::move(options)) {
    // Asked for when listening has begun: only from then on stop() has an effect.
    server_.new_task_queue = [this] {
      MutexLock lock(&listening_.mutex);
      listening_.has_come = true;
      listening_.changed.SignalAll();
      return new httplib::ThreadPool(kThreads);
    };
    server_.set_keep_alive_max_count(1);
    server_.set_read_timeout(kReadTimeoutSeconds);
    server_.set_write_timeout(kReadTimeoutSeconds);
    server_.set_payload_max_length(kPayloadBytesMax);
    // The library's own choice lets two programs share the port.
    server_.set_socket_options([](socket_t socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    });
    server_.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                                 {"Cache-Control", "no-store"},
                                 {"Content-Security-Policy", kPagePolicy}});
    Route();
  }

  ~Pages() override {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }

  bool Listen() {
    const HostPort& address = options_.address;
    if (address.port == 0) {
      port_ = server_.bind_to_any_port(address.host.c_str());
    } else if (server_.bind_to_port(address.host.c_str(), address.port)) {
      port_ = address.port;
    }
    if (port_ <= 0) return false;
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    pthread_setname_np(thread_.native_handle(), "http");
    MutexLock lock(&listening_.mutex);
    while (!listening_.has_come) listening_.changed.Wait(&listening_.mutex);
    return true;
  }

  int port() const override { return port_; }

 private:
  void Route() {
    server_.Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(kPageText, "text/html; charset=utf-8");
    });
    AddPage("/api/v1/status", {.detail = StatusDetail::kFull, .type = "application/json"},
            [](const MasterReport& report) { return StatusJson(Encode(report, WallClockMs())); });
    AddPage("/metrics", {.type = "text/plain; version=0.0.4; charset=utf-8", .has_standby = true},
            [](const MasterReport& report) { return MetricsText(report, WallClockMs()); });
    const auto ok = [](const MasterReport&) { return std::string("ok\n"); };
    AddPage("/healthz", {.has_standby = true}, ok);
    AddPage("/readyz", {}, ok);
  }

  struct Page {
    StatusDetail detail = StatusDetail::kSummary;
    const char* type = "text/plain";
    bool has_standby = false;  // also of a master that stands by
  };

  void AddPage(const char* path, const Page& page,
               std::string (*format)(const MasterReport& report)) {
    server_.Get(path, [this, page, format](const httplib::Request&, httplib::Response& response) {
      const std::shared_ptr<const MasterReport> report = Ask(page.detail);
      if (report != nullptr && (page.has_standby || !report->stands_by)) {
        return response.set_content(format(*report), page.type);
      }
      response.status = 503;
      response.set_content(
          (report == nullptr ? "the master does not answer" : StandbyText(report->leader)) + "\n",
          "text/plain");
    });
  }

  // Null: the master did not answer in time.
  std::shared_ptr<const MasterReport> Ask(StatusDetail detail) {
    const auto answer = std::make_shared<Answer>();
    options_.ask({.job_id = "", .detail = detail, .once = true},
                 [answer](const std::shared_ptr<const MasterReport>& report) {
                   MutexLock lock(&answer->mutex);
                   answer->report = report;
                   answer->has_come = true;
                   answer->changed.SignalAll();
                   return false;
                 });
    MutexLock lock(&answer->mutex);
    const auto give_up = std::chrono::steady_clock::now() + options_.patience;
    while (!answer->has_come) {
      const Duration left = give_up - std::chrono::steady_clock::now();
      if (left <= Duration::zero()) break;
      answer->changed.WaitFor(&answer->mutex, left);
    }
    return answer->report;
  }

  const Options options_;
  Answer listening_;
  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpPages>> HttpPages::Start(Options options) {
  const std::string where = ToString(options.address);
  auto pages = std::make_unique<Pages>(std::move(options));
  if (!pages->Listen()) {
    return absl::UnavailableError("cannot serve HTTP on " + where +
                                  ": the port is in use, or the address is not of this host");
  }
  return pages;
}

}  // namespace muster
