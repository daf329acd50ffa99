#ifndef MUSTER_LAUNCHER_MAN_PAGE_H_
#define MUSTER_LAUNCHER_MAN_PAGE_H_

#include <string>

#include "launcher/option_table.h"

namespace muster {

// packaging/man/muster-run.1, made from launcher/option_table.h. Pure.
std::string ManPage();

// packaging/man/muster-status.1 and the like.
std::string CommandManPage(const CommandSpec& command);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_MAN_PAGE_H_
