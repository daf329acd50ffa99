#ifndef MUSTER_RENDEZVOUS_GRPC_RUNTIME_H_
#define MUSTER_RENDEZVOUS_GRPC_RUNTIME_H_

namespace grpc {
class Server;
}  // namespace grpc

namespace muster {

// Before the first use of gRPC; any thread, any number of times.
//   - Keeps gRPC's own log lines off stderr, where users read the job's output: every failure
//     reaches them as a status of ours. Setting GRPC_VERBOSITY leaves gRPC's log as it is.
//   - Keeps gRPC's callback threads alive until the process ends, so that the last channel may be
//     released by a callback: gRPC 1.51 would have the thread join itself, and abort.
void PrepareGrpc();

// For a server that is about to be built: it will have a health service.
void OfferHealth();
// What the health service of a server says of it as a whole and of each service of a master: a
// standby is reachable and does not serve.
void TellHealth(grpc::Server* server, bool is_serving);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_GRPC_RUNTIME_H_
