#ifndef MUSTER_RENDEZVOUS_STANDBY_TEXT_H_
#define MUSTER_RENDEZVOUS_STANDBY_TEXT_H_

#include <string>

namespace muster {

// What a master that does not lead answers. `leader`: where the one is that does; empty: not known.
inline std::string StandbyText(const std::string& leader) {
  return leader.empty() ? "this master stands by, and no other one is known to lead yet"
                        : "this master stands by: the master is at " + leader;
}

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STANDBY_TEXT_H_
