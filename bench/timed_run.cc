// Runs one command to its end and says what it took, without the overhead of the language that
// asks.
//
//   timed_run COMMAND [ARGUMENT...]
//
// The command's standard output is thrown away. Printed: nanoseconds on the wall, microseconds on
// all CPUs, KiB of the largest process (of the command and all that it waited for), and its exit
// code, or minus the signal. The command is started from this small process because Linux counts
// the memory of who starts a program to that program's peak.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <cstdio>
#include <cstring>

extern char** environ;

namespace {

long long Nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

long long Microseconds(const timeval& time) { return time.tv_sec * 1'000'000LL + time.tv_usec; }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: timed_run COMMAND [ARGUMENT...]\n", stderr);
    return 2;
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  const long long begin = Nanoseconds();
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[1], &files, nullptr, argv + 1, environ);
  if (error != 0) {
    std::fprintf(stderr, "timed_run: cannot start %s: %s\n", argv[1], std::strerror(error));
    return 127;
  }
  int status = 0;
  rusage usage;
  wait4(pid, &status, 0, &usage);
  std::printf("%lld %lld %ld %d\n", Nanoseconds() - begin,
              Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime), usage.ru_maxrss,
              WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
}
