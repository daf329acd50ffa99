#ifndef MUSTER_LAUNCHER_HOSTLIST_H_
#define MUSTER_LAUNCHER_HOSTLIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The hosts of a list as Slurm writes it, in its order: "gpu[01-03,7],login1" is gpu01, gpu02,
// gpu03, gpu7, login1. Numbers keep their leading zeros; a name may have several brackets, of which
// the last runs fastest. Pure, and needs no slurm.conf, unlike `scontrol show hostnames`.
// InvalidArgument, in one line with the text: a bracket without its partner, a range that is none
// or runs backwards, an empty name, more than 65536 hosts.
absl::StatusOr<std::vector<std::string>> ExpandHostlist(absl::string_view text);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_HOSTLIST_H_
