#ifndef MUSTER_RENDEZVOUS_RENDEZVOUS_SERVICE_H_
#define MUSTER_RENDEZVOUS_RENDEZVOUS_SERVICE_H_

#include "base/clock.h"
#include "base/mutex.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/admission_limits.h"
#include "rendezvous/call_table.h"
#include "rendezvous/credentials.h"
#include "rendezvous/master_loop.h"

namespace muster {

class AttendStream;

// The gRPC side of a master: one reactor per agent, no thread per agent. Turns what the streams
// bring into events of the loop and the loop's calls into writes; decides nothing but what no
// machine should see: a caller that the guard refuses, one stream too many, a message that does not
// decode, a first message that is neither Hello nor LastWill, a Hello in the middle, an agent that
// stopped reading.
class RendezvousService final : public v1::Rendezvous::CallbackService, public AgentStreams {
 public:
  // Both outlive the service.
  RendezvousService(Clock* clock, CallGuard* guard, const MasterLimits& limits);
  ~RendezvousService() override;  // no stream is left: the server has been shut down

  // Before the server starts. `loop` outlives the server.
  void SetLoop(MasterLoop* loop) { loop_ = loop; }

  grpc::ServerBidiReactor<v1::AgentMessage, v1::MasterMessage>* Attend(
      grpc::CallbackServerContext* context) override;

  void Send(StreamId stream, const MasterMessage& message) override;
  void Close(StreamId stream) override;
  void CloseAll() override;
  void Resume(StreamId stream) override;

 private:
  friend class AttendStream;

  grpc::Status Admit(const grpc::CallbackServerContext& context);

  Clock* const clock_;
  CallGuard* const guard_;
  MasterLoop* loop_ = nullptr;
  Mutex mutex_;
  StreamGate gate_ ABSL_GUARDED_BY(mutex_);
  CallTable<AttendStream> streams_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_RENDEZVOUS_SERVICE_H_
