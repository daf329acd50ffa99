#ifndef MUSTER_RENDEZVOUS_STANDING_MASTER_H_
#define MUSTER_RENDEZVOUS_STANDING_MASTER_H_

#include <absl/status/statusor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "rendezvous/elected_master.h"
#include "rendezvous/introspection.h"
#include "rendezvous/master_server.h"
#include "rendezvous/musterd_config.h"
#include "rendezvous/musterd_state.h"
#include "rendezvous/status_watchers.h"

namespace muster {

// The master of musterd, with what it shows of itself: one that serves from its start to its end,
// or, with --etcd-endpoints, one of several of which the elected one serves and the others say
// where it is. Writes to the log.
class StandingMaster {
 public:
  // Listens when it returns. Errors as of MasterServer, Introspection and ElectedMaster. `clock`
  // and `state`, which is for a master that is not elected, outlive the master. `introspection`
  // has its log.
  static absl::StatusOr<std::unique_ptr<StandingMaster>> Start(Clock* clock, MusterdConfig config,
                                                               MusterdState* state,
                                                               Introspection introspection);

  int port() const { return port_; }
  int http_port() const { return introspection_.http_port(); }  // 0: nothing is shown over HTTP

  // Calls `callback` once, on a thread of the master, as soon as it comes to that.
  void Ping(std::function<void()> callback);

 private:
  StandingMaster(Clock* clock, MusterdConfig config, Introspection introspection)
      : clock_(clock),
        config_(std::move(config)),
        port_(config_.listen.port),
        introspection_(std::move(introspection)) {}

  absl::Status Begin(MusterdState* state);
  absl::Status ServeAlone(MusterdState* state);
  absl::Status Campaign();
  // `loop` says what there is to go on with.
  absl::StatusOr<std::unique_ptr<MasterServer>> Serve(MasterLoop::Options loop);
  void Ask(StatusQuery query, StatusCallback callback);

  Clock* const clock_;
  const MusterdConfig config_;
  std::string address_;    // that the listening host resolves to
  std::atomic<int> port_;  // the same for all that listens in turn

  // One of the two.
  std::unique_ptr<MasterServer> alone_;
  std::unique_ptr<ElectedMaster> elected_;
  Introspection introspection_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STANDING_MASTER_H_
