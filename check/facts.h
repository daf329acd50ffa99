#ifndef MUSTER_CHECK_FACTS_H_
#define MUSTER_CHECK_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "check/fields.h"

namespace muster::check {

// A network interface that is up.
struct Interface {
  std::string name;
  int mtu = 0;
  std::vector<std::string> addresses;

  bool operator==(const Interface&) const = default;
};

// What one rank knows of itself and its machine. Texts that are not known are empty. A plain value.
struct Facts {
  int rank = 0;
  int local_rank = 0;
  int workers = 1;  // on this node
  int node = 0;     // GROUP_RANK; -1: it has none
  std::string host;
  std::string address;  // of this node, as the others reach it
  int port = 0;         // where this rank listens for the others
  std::string backend;  // what a trainer would use here: "gloo" or "nccl"

  std::string muster;    // versions
  std::string libtorch;  // empty: the check runs without it
  std::string torch;     // --torch of this node; empty: of an older muster
  std::string nccl;
  std::string driver;

  int gpus = 0;                               // that this rank sees
  int all_gpus = 0;                           // of this machine
  int64_t shared_memory = 0;                  // bytes of /dev/shm; 0: not known
  int64_t locked_memory = 0;                  // bytes that may be locked (ulimit -l); -1: no limit
  std::vector<std::string> infiniband;        // "mlx5_0:1 ACTIVE"
  std::vector<Interface> interfaces;          // those that are up, loopback too
  std::vector<std::string> host_addresses;    // what the host's own name resolves to
  std::vector<std::string> node_addresses;    // what `address` resolves to here
  std::vector<std::string> master_addresses;  // what MASTER_ADDR resolves to here
  std::map<std::string, std::string> variables;  // NCCL_*, GLOO_*, TP_*, CUDA_VISIBLE_DEVICES

  bool operator==(const Facts&) const = default;
};

Fields ToFields(const Facts& facts);

// Nothing where a number is none or lies outside its range. Unknown keys are passed over, so that
// another version of muster can be told by its version.
std::optional<Facts> FactsFrom(const Fields& fields);

// The interface that has the address; null: none has.
const Interface* InterfaceOf(const Facts& facts, const std::string& address);

// The value of a variable; empty where it is not set.
std::string VariableOf(const Facts& facts, const std::string& name);

}  // namespace muster::check

#endif  // MUSTER_CHECK_FACTS_H_
