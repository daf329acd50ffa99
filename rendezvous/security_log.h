#ifndef MUSTER_RENDEZVOUS_SECURITY_LOG_H_
#define MUSTER_RENDEZVOUS_SECURITY_LOG_H_

#include "base/host_port.h"
#include "rendezvous/security.h"

namespace muster {

// Logs what an operator should know of the files that a master trusts, as they are now (it reads
// them again by itself before it uses them), and whether it asks anybody who they are.
void LogSecurity(const ServerSecurity& security, const HostPort& listen);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_SECURITY_LOG_H_
