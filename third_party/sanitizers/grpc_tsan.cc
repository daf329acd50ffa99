// What ThreadSanitizer must not report in tests that link gRPC: Debian's gRPC and Abseil are not
// instrumented, so tsan sees neither their locks nor the order that they make, and takes every
// hand-over inside them for a race.
// NOLINTBEGIN(readability-identifier-naming): the runtime's name
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so.29\n"
         "called_from_lib:libgpr.so.29\n"
         "called_from_lib:libgrpc++.so.1.51\n"
         "race:libgrpc.so.29\n"
         "race:libgpr.so.29\n"
         "race:libgrpc++.so.1.51\n"
         "race:libabsl_\n"
         "race:libupb.so.29\n"
         "race:grpc::internal::CallOp\n"
         "deadlock:libgrpc.so.29\n";
}
// NOLINTEND(readability-identifier-naming)
