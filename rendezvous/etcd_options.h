#ifndef MUSTER_RENDEZVOUS_ETCD_OPTIONS_H_
#define MUSTER_RENDEZVOUS_ETCD_OPTIONS_H_

#include <absl/status/status.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/host_port.h"
#include "base/time.h"

// How to get at an etcd, in plain values: what the command line says and etcd_client.h needs.

namespace muster {

struct EtcdOptions {
  std::vector<HostPort> endpoints;  // the members, any of which will do

  // TLS. Files in PEM form; empty: the system's authorities, and no certificate of our own.
  bool tls = false;
  std::string ca_file;
  std::string cert_file;
  std::string key_file;

  // Empty: etcd asks nobody who they are. The file holds the password, on its first line, and is
  // read again for each new token.
  std::string user;
  std::string password_file;

  // How long one call may take, over all members that are tried for it.
  Duration timeout = std::chrono::seconds(5);
};

// A master that is elected through etcd, and what it keeps there.
struct EtcdElectionOptions {
  EtcdOptions etcd;
  // Of all keys: "/muster/jobs/digits". The leader's key is PREFIX/leader, the state
  // PREFIX/state/….
  std::string prefix;
  // How long a leader that vanished is waited for. Whole seconds; etcd makes 2 s of less.
  Duration lease = std::chrono::seconds(5);
};

// Whether the parts fit together. InvalidArgument: a certificate without its key or the reverse, a
// user without a password file or the reverse, files for TLS without TLS.
absl::Status CheckEtcdOptions(const EtcdOptions& options);

// "PREFIX/jobs/ID" for the masters that agents of one job elect among themselves. Bytes of the id
// that are not letters, digits, '.', '_' or '-' become %XX.
std::string EtcdJobPrefix(const std::string& prefix, const std::string& job_id);

// "etcd at a:2379,b:2379", for messages.
std::string EtcdName(const EtcdOptions& options);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ETCD_OPTIONS_H_
