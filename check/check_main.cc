// muster-check: what `muster check` runs where there is no LibTorch.

#include "check/check_program.h"

int main(int argc, char** argv) { return muster::check::CheckProgram(argc, argv, nullptr); }
