// The physical floor of starting a job: posix_spawn N processes and wait for all of them.
//
//   spawn_floor N PROGRAM [ARGUMENT...]
//
// Ends with 0 when all ended with 0; 2 on bad usage, 127 when PROGRAM cannot be started.
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern char** environ;

int main(int argc, char** argv) {
  const int count = argc > 2 ? std::atoi(argv[1]) : 0;
  if (count < 1) {
    std::fputs("usage: spawn_floor N PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
  }
  for (int i = 0; i < count; ++i) {
    pid_t pid = 0;
    const int error = posix_spawn(&pid, argv[2], nullptr, nullptr, argv + 2, environ);
    if (error != 0) {
      std::fprintf(stderr, "spawn_floor: cannot start %s: %s\n", argv[2], std::strerror(error));
      return 127;
    }
  }
  int failures = 0;
  for (int status = 0; wait(&status) > 0;) failures += status != 0;
  return failures == 0 ? 0 : 1;
}
