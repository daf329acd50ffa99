#ifndef MUSTER_RENDEZVOUS_MUSTERD_STATE_H_
#define MUSTER_RENDEZVOUS_MUSTERD_STATE_H_

#include <absl/status/status.h>

#include <memory>
#include <string>

#include "rendezvous/master_loop.h"
#include "rendezvous/state_store.h"

namespace muster {

// What a musterd keeps, and where; logs what it finds and what the store has to say.
class MusterdState {
 public:
  // Opens the folder of --state-dir ("": nothing is kept) and reads it. Errors: as FileStore's Open
  // and Load, and DecodeState; their exit code: ExitCodeOfStateError.
  absl::Status Open(const std::string& folder);

  // The state outlives the loop.
  void Lend(MasterLoop::Options* options);

 private:
  std::unique_ptr<StateStore> store_;
  MasterState state_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MUSTERD_STATE_H_
