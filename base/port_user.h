#ifndef MUSTER_BASE_PORT_USER_H_
#define MUSTER_BASE_PORT_USER_H_

#include <string>

namespace muster {

// Who listens on a TCP port of this machine.
struct PortUser {
  int pid = 0;       // 0: nobody, or it cannot be found out, as when the process is another user's
  std::string text;  // "pid 1234, python3"
};

// Reads /proc; takes milliseconds.
PortUser FindPortUser(int port);

}  // namespace muster

#endif  // MUSTER_BASE_PORT_USER_H_
