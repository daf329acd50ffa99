#ifndef MUSTER_RENDEZVOUS_CONTROL_SERVICE_H_
#define MUSTER_RENDEZVOUS_CONTROL_SERVICE_H_

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "proto/status.grpc.pb.h"
#include "rendezvous/credentials.h"
#include "rendezvous/master_loop.h"

namespace muster {

class WatchStream;

// Answers people and programs that ask for jobs or end them: turns requests into events of the loop
// and its answers into messages. Decides nothing but what the guard decides. Thread-safe.
class ControlService final : public v1::Control::CallbackService {
 public:
  explicit ControlService(CallGuard* guard);  // outlives the service
  ~ControlService() override;                 // no call is left: the server has been shut down

  // Before the server starts. `loop` outlives the server.
  void SetLoop(MasterLoop* loop) { loop_ = loop; }

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::StatusRequest* request,
                                      v1::StatusResponse* response) override;
  grpc::ServerWriteReactor<v1::StatusResponse>* WatchStatus(
      grpc::CallbackServerContext* context, const v1::StatusRequest* request) override;
  grpc::ServerUnaryReactor* StopJob(grpc::CallbackServerContext* context,
                                    const v1::StopJobRequest* request,
                                    v1::StopJobResponse* response) override;
  grpc::ServerUnaryReactor* DrainJob(grpc::CallbackServerContext* context,
                                     const v1::DrainJobRequest* request,
                                     v1::DrainJobResponse* response) override;
  grpc::ServerUnaryReactor* DrainNode(grpc::CallbackServerContext* context,
                                      const v1::DrainNodeRequest* request,
                                      v1::DrainNodeResponse* response) override;

  // Ends every watch: the master stops.
  void CloseAll();

  // For one more question to the loop.
  WatcherId NextWatcher();

 private:
  friend class WatchStream;

  grpc::ServerUnaryReactor* Command(grpc::CallbackServerContext* context, const std::string& job_id,
                                    const std::string& who, RoundEvent event);
  void Gone(WatcherId watcher);

  CallGuard* const guard_;
  MasterLoop* loop_ = nullptr;
  Mutex mutex_;
  WatcherId last_watcher_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<WatcherId, std::shared_ptr<WatchStream>> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_CONTROL_SERVICE_H_
