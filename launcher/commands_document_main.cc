// Prints docs/COMMANDS.md; with "man" packaging/man/muster-run.1, with "man status"
// packaging/man/muster-status.1, and so on.

#include <cstdio>
#include <string>

#include "launcher/help_text.h"
#include "launcher/man_page.h"

namespace muster {
namespace {

std::string Document(const std::string& command) {
  for (const CommandSpec& spec : CommandSpecs()) {
    if (command == spec.name) return CommandManPage(spec);
  }
  return ManPage();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const std::string text =
      argc > 1 ? muster::Document(argc > 2 ? argv[2] : "run") : muster::CommandsDocument();
  std::fputs(text.c_str(), stdout);
  return 0;
}
