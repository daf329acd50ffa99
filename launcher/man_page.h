#ifndef MUSTER_LAUNCHER_MAN_PAGE_H_
#define MUSTER_LAUNCHER_MAN_PAGE_H_

#include <string>

namespace muster {

// packaging/man/muster-run.1, made from launcher/option_table.h. Pure.
std::string ManPage();

}  // namespace muster

#endif  // MUSTER_LAUNCHER_MAN_PAGE_H_
