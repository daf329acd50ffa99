#ifndef MUSTER_RENDEZVOUS_SECURITY_LOG_H_
#define MUSTER_RENDEZVOUS_SECURITY_LOG_H_

#include <string>
#include <vector>

#include "base/host_port.h"
#include "rendezvous/security.h"

namespace muster {

// Logs a line for each of these files that every user of this machine can read; those with an empty
// name do not count.
void LogExposure(const std::vector<std::string>& secrets);

// Logs what an operator should know of the files that a master trusts, as they are now (it reads
// them again by itself before it uses them), and whether it asks anybody who they are.
void LogSecurity(const ServerSecurity& security, const HostPort& listen);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_SECURITY_LOG_H_
