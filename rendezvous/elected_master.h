#ifndef MUSTER_RENDEZVOUS_ELECTED_MASTER_H_
#define MUSTER_RENDEZVOUS_ELECTED_MASTER_H_

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/event_queue.h"
#include "base/mutex.h"
#include "rendezvous/etcd_client.h"
#include "rendezvous/etcd_election.h"
#include "rendezvous/etcd_store.h"
#include "rendezvous/master_server.h"
#include "rendezvous/standby_server.h"

namespace muster {

// A master that serves while it leads an election in etcd and stands by otherwise. A thread of its
// own makes and ends the server, so that the lease is refreshed meanwhile.
class ElectedMaster {
 public:
  struct Options {
    EtcdElectionOptions election;
    uint64_t seed = 0;
    // The state of a job that has ended goes by itself some time later (NeededFor): for masters
    // that serve one job and end with it.
    bool drops_ended = false;

    // Makes the server, whose loop has the store, the records that were in it and what to do when
    // this master is deposed. An error ends this candidate's term.
    std::function<absl::StatusOr<std::unique_ptr<MasterServer>>(MasterLoop::Options loop)> start;

    // The server's address as others dial it, from the port on which it listens.
    std::function<std::string(int port)> address_of;

    // What answers in place of the server while this one does not lead. Null: nothing does. Called
    // by Start, too.
    std::function<absl::StatusOr<std::unique_ptr<StandbyServer>>()> stand_by;

    // What happens, each one line for the log; on a thread of the election, must not block. May be
    // empty.
    std::function<void(const std::string& line)> on_news;
    // Where the master is, this one or another: "host:port". Empty: not known; `problem` then says
    // why, if that is known. Likewise.
    std::function<void(const std::string& address, const std::string& problem)> on_leader;
  };

  // As EtcdClient::Make, and stand_by. `clock` outlives the master. Campaigns from now on.
  static absl::StatusOr<std::unique_ptr<ElectedMaster>> Start(Clock* clock, Options options);

  // Ends the server, if there is one, and resigns.
  ~ElectedMaster();

  // Calls `callback` once when no job needs a server of this process: on a thread of the server, or
  // of the election where there is none.
  void TellWhenIdle(std::function<void()> callback);

  // Calls `callback` once, likewise, as soon as it comes to that.
  void Ping(std::function<void()> callback);

  // Has one question answered, likewise: by the server as MasterServer::Ask does, else by a report
  // that says where the master is.
  void Ask(StatusQuery query, StatusCallback callback);

 private:
  struct Elected {
    LeaderClaim claim;
  };
  struct Lost {
    std::string why;
  };
  struct LeaderAt {
    std::string address;
    std::string problem;
  };
  struct WhenIdle {
    std::function<void()> callback;
  };
  struct Pinged {
    std::function<void()> callback;
  };
  struct Asked {
    StatusQuery query;
    StatusCallback callback;
  };
  using Order = std::variant<Elected, Lost, LeaderAt, WhenIdle, Pinged, Asked>;

  // From an election to its loss. The parts use those above them.
  struct Term {
    std::unique_ptr<EtcdClient> client;  // its own: cancelled when the term ends
    std::unique_ptr<EtcdStore> store;
    std::unique_ptr<MasterServer> server;
  };

  ElectedMaster(Clock* clock, Options options, std::unique_ptr<EtcdClient> client,
                std::unique_ptr<StandbyServer> standby);
  void Run();
  void Obey(const Elected& order);
  void Obey(const Lost& order);
  void Obey(const LeaderAt& order);
  void Obey(const WhenIdle& order);
  void Obey(const Pinged& order);
  void Obey(const Asked& order);
  absl::Status Serve(const LeaderClaim& claim);
  absl::StatusOr<MasterLoop::Options> OpenStore(const LeaderClaim& claim);
  void EndTerm();
  void Interrupt();
  void StandBy();
  void News(const std::string& line);

  Clock* const clock_;
  const Options options_;
  EventQueue<Order> orders_;
  std::unique_ptr<EtcdClient> client_;  // of the election

  // Of the thread.
  Term term_;
  std::unique_ptr<StandbyServer> standby_;
  std::string leader_;                                 // empty: not known
  std::vector<std::function<void()>> idle_callbacks_;  // each works once

  Mutex mutex_;
  EtcdClient* interruptible_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the term
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;

  std::unique_ptr<EtcdElection> election_;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ELECTED_MASTER_H_
