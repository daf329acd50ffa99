#ifndef MUSTER_RENDEZVOUS_CONTROL_SERVICE_H_
#define MUSTER_RENDEZVOUS_CONTROL_SERVICE_H_

#include <string>

#include "proto/status.grpc.pb.h"
#include "rendezvous/call_table.h"
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
  WatcherId NextWatcher() { return watches_.NextId(); }

 private:
  friend class WatchStream;

  grpc::ServerUnaryReactor* Command(grpc::CallbackServerContext* context, const std::string& job_id,
                                    const std::string& who, RoundEvent event);

  CallGuard* const guard_;
  MasterLoop* loop_ = nullptr;
  CallTable<WatchStream> watches_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_CONTROL_SERVICE_H_
