#ifndef MUSTER_LAUNCHER_RDZV_CONF_H_
#define MUSTER_LAUNCHER_RDZV_CONF_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/agent_options.h"
#include "base/time.h"

namespace muster {

// What --rdzv-conf says, by torchrun's keys. Nothing where a key is not given.
struct RdzvConf {
  std::optional<Duration> join_timeout;
  std::optional<Duration> last_call_timeout;
  std::optional<Duration> keep_alive_interval;
  std::optional<int> keep_alive_max_attempt;
  std::optional<Duration> timeout;  // static rendezvous: how long to wait for all nodes
  HostMaster host_master = HostMaster::kAuto;
  EtcdElectionOptions election;      // of the etcd backends; endpoints and job are not said here
  std::vector<std::string> of_etcd;  // the keys given that only etcd has a use for
  std::vector<std::string> without_effect;  // torchrun's keys that have nothing to set here
};

// Reads "key=value,key=value"; empty: nothing set. Of a key that occurs twice the last counts.
// InvalidArgument, in one line, for: an item that is not key=value, a key that is not known (with
// the nearest known one), a time that is not positive, a protocol that is neither http nor https.
// Unimplemented: a file as the store.
absl::StatusOr<RdzvConf> ParseRdzvConf(absl::string_view text);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_RDZV_CONF_H_
