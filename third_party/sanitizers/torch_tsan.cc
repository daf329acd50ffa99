// LibTorch is not instrumented: tsan does not see its atomics and takes what they order for races.
// Not called_from_lib:libtorch_cpu.so, which would hide the locks too, and with them the waits of
// condition variables.
// NOLINTBEGIN(readability-identifier-naming): the runtime's name
extern "C" const char* __tsan_default_suppressions() {
  return "race:libtorch_cpu.so\n"
         "race:libc10.so\n";
}
// NOLINTEND(readability-identifier-naming)
