#ifndef MUSTER_RENDEZVOUS_GRPC_RUNTIME_H_
#define MUSTER_RENDEZVOUS_GRPC_RUNTIME_H_

namespace muster {

// Before the first use of gRPC; any thread, any number of times.
//   - Keeps gRPC's own log lines off stderr, where users read the job's output: every failure
//     reaches them as a status of ours. Setting GRPC_VERBOSITY leaves gRPC's log as it is.
//   - Keeps gRPC's callback threads alive until the process ends, so that the last channel may be
//     released by a callback: gRPC 1.51 would have the thread join itself, and abort.
void PrepareGrpc();

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_GRPC_RUNTIME_H_
