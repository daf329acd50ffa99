#ifndef MUSTER_BASE_PRINT_OUT_H_
#define MUSTER_BASE_PRINT_OUT_H_

#include <string_view>

namespace muster {

inline constexpr int kExitCannotWrite = 73;  // EX_CANTCREAT (docs/EXIT_CODES.md)

// Writes what was asked for to standard output. 0, or kExitCannotWrite when that cannot take it all
// (a full disk, a closed descriptor), after one line on stderr.
int PrintOut(std::string_view text);

}  // namespace muster

#endif  // MUSTER_BASE_PRINT_OUT_H_
