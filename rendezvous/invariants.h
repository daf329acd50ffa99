#ifndef MUSTER_RENDEZVOUS_INVARIANTS_H_
#define MUSTER_RENDEZVOUS_INVARIANTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/round_machine.h"

namespace muster {

// What CheckInvariants compares with: the machine before the step.
struct RoundSnapshot {
  RoundPhase phase = RoundPhase::kForming;
  uint64_t instance = 0;
  int64_t generation = 0;
  int restarts_used = 0;
  std::optional<JobSettings> settings;
  std::optional<Verdict> verdict;
  std::vector<Seat> seats;
  std::map<StreamId, std::string> streams;  // of attached nodes, to their ids

  static RoundSnapshot Of(const RoundMachine& machine);
};

// "" when all of this holds after a step at `now` with `event`, else one sentence that names what
// does not:
//   the generation, the instance and the restarts used never fall, and the restarts stay within the
//   budget; a job with a verdict stays closed and keeps it; group ranks are 0…n−1 without gaps,
//   global and role ranks count on, and all members get the same table; a generation is assigned
//   only when every place of the one before has ended, and only to nodes with nothing running;
//   effects name only streams that were attached or are being answered, and nothing follows the
//   close of a stream; every attached node that does not run has been told why it waits, and there
//   is a deadline; after a deadline the next one lies ahead.
std::string CheckInvariants(const RoundSnapshot& before, const RoundMachine& machine, Time now,
                            const RoundEvent& event, const RoundEffects& effects);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_INVARIANTS_H_
