#ifndef MUSTER_LAUNCHER_PORT_USER_H_
#define MUSTER_LAUNCHER_PORT_USER_H_

#include <string>

namespace muster {

// Who listens on the TCP port on this machine: "pid 1234, python3". Empty when it cannot be found
// out, for instance because the process is another user's. Reads /proc; takes milliseconds.
std::string PortUser(int port);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_PORT_USER_H_
