#ifndef MUSTER_LAUNCHER_PRINT_OUT_H_
#define MUSTER_LAUNCHER_PRINT_OUT_H_

#include <string_view>

namespace muster {

// Writes what was asked for to standard output. 0, or the exit code when that cannot take it all (a
// full disk, a closed descriptor), after one line on stderr.
int PrintOut(std::string_view text);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_PRINT_OUT_H_
