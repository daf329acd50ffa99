// Prints docs/COMMANDS.md, or with the word "man" packaging/man/muster-run.1.

#include <cstdio>
#include <cstring>

#include "launcher/help_text.h"
#include "launcher/man_page.h"

int main(int argc, char** argv) {
  const bool man = argc > 1 && std::strcmp(argv[1], "man") == 0;
  std::fputs((man ? muster::ManPage() : muster::CommandsDocument()).c_str(), stdout);
  return 0;
}
