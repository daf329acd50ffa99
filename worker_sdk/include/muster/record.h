#ifndef MUSTER_RECORD_H_
#define MUSTER_RECORD_H_

#include <muster/error.h>

#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

namespace muster {

// The exit code that tells the launcher, and people, what kind of error ended a worker. The numbers
// are those of sysexits.h:
//   65 CheckpointCorrupt            69 BackendUnavailable   74 any other CheckpointError
//   75 PeerLost, Timeout, StaleGeneration: start the next generation
//   78 EnvironmentError             70 everything else
int exit_code(const std::exception& error);

// Says why this worker ends: one line on stderr, "PROGRAM: rank 3: …", the ERROR of the launcher's
// report, and the file that TORCHELASTIC_ERROR_FILE names, as torchrun's agent reads it. An error
// that every rank throws with the same text is printed by rank 0 alone. Any thread; never throws.
void report_failure(const std::exception& error) noexcept;

// For record().
int record_main(const std::function<int()>& body) noexcept;

// For main(): what @record of torch.distributed.elastic is to a Python trainer. Runs body(), which
// returns an exit code or nothing (then 0), and returns that. What it throws is reported as above
// and becomes an exit code.
template <class F>
int record(F&& body) noexcept {
  if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    return record_main([&body] {
      body();
      return 0;
    });
  } else {
    return record_main([&body] { return static_cast<int>(body()); });
  }
}

}  // namespace muster

#endif  // MUSTER_RECORD_H_
