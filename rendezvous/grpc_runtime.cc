#include "rendezvous/grpc_runtime.h"

#include <grpc/support/log.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "proto/rendezvous.grpc.pb.h"

namespace muster {
namespace {

// An assertion aborts the process: the one line that says why must not be lost.
void OnlyAssertions(gpr_log_func_args* line) {
  if (std::string_view(line->message).rfind("assertion failed", 0) != 0) return;
  std::fprintf(stderr, "gRPC: %s:%d: %s\n", line->file, line->line, line->message);
}

// As in proto/status.proto.
constexpr char kControlName[] = "muster.v1.Control";

// A server without a port; it only holds a reference to the callback threads.
grpc::Server* StartPin() {
  static auto* const kService = new v1::Rendezvous::CallbackService;
  grpc::ServerBuilder builder;
  builder.RegisterService(kService);
  return builder.BuildAndStart().release();
}

// Never released. Atomic, so that the compiler keeps a value that nobody reads.
std::atomic<grpc::Server*> pin = nullptr;

void PrepareOnce() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function(&OnlyAssertions);
  pin = StartPin();
}

}  // namespace

void PrepareGrpc() {
  static std::once_flag once;
  std::call_once(once, &PrepareOnce);
}

void OfferHealth() { grpc::EnableDefaultHealthCheckService(true); }

void TellHealth(grpc::Server* server, bool is_serving) {
  grpc::HealthCheckServiceInterface* health = server->GetHealthCheckService();
  for (const char* service : {"", v1::Rendezvous::service_full_name(), kControlName}) {
    health->SetServingStatus(service, is_serving);
  }
}

}  // namespace muster
