// Prints docs/COMMANDS.md.

#include <cstdio>

#include "launcher/help_text.h"

int main() {
  std::fputs(muster::CommandsDocument().c_str(), stdout);
  return 0;
}
