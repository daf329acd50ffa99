// Prints docs/MUSTERD.md, or with the word "man" packaging/man/musterd.8.

#include <cstdio>
#include <cstring>

#include "rendezvous/musterd_documents.h"

int main(int argc, char** argv) {
  const bool man = argc > 1 && std::strcmp(argv[1], "man") == 0;
  std::fputs((man ? muster::MusterdManPage() : muster::MusterdDocument()).c_str(), stdout);
  return 0;
}
