#ifndef MUSTER_LAUNCHER_STATUS_TABLE_H_
#define MUSTER_LAUNCHER_STATUS_TABLE_H_

#include <string>

#include "proto/status.pb.h"

namespace muster {

// A master's jobs for people, in lines. Of one job: a line that says what it does or waits for,
// then its nodes (`is_wide`: with addresses, and its incidents). Of several: a line each. Pure.
std::string StatusTable(const v1::StatusResponse& status, bool is_wide);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_STATUS_TABLE_H_
