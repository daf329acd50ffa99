// A worker for measuring restarts: it notes when it began to run, and dies at once on SIGTERM.
//
//   restart_worker FOLDER
//
// On the first start it writes its monotonic time to FOLDER/0.RANK and waits; when all ranks have
// done so, the last rank notes the time in FOLDER/failed and exits with 3. On the second start it
// writes FOLDER/1.RANK and ends with 0.
#include <fcntl.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

int Number(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : 0;
}

// Writes under another name first: a file that is there is complete.
void NoteTheTime(const std::string& path) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::string text = std::to_string(now.tv_sec * 1'000'000'000LL + now.tv_nsec);
  const int fd = open((path + ".new").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (write(fd, text.data(), text.size()) < 0) std::perror("restart_worker");
  close(fd);
  rename((path + ".new").c_str(), path.c_str());
}

bool AllBegan(const std::string& folder, int world_size) {
  for (int rank = 0; rank < world_size; ++rank) {
    if (access((folder + "/0." + std::to_string(rank)).c_str(), F_OK) != 0) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: restart_worker FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = argv[1];
  const int rank = Number("RANK");
  const int world_size = Number("WORLD_SIZE");
  const bool is_second_start = Number("TORCHELASTIC_RESTART_COUNT") > 0;
  const bool is_last = rank == world_size - 1;
  const int watch = is_last ? inotify_init1(IN_CLOEXEC) : -1;
  if (is_last) inotify_add_watch(watch, folder.c_str(), IN_MOVED_TO);
  NoteTheTime(folder + (is_second_start ? "/1." : "/0.") + std::to_string(rank));
  if (is_second_start) return 0;
  if (!is_last) {
    for (;;) pause();
  }
  while (!AllBegan(folder, world_size)) {
    char events[4096];
    if (read(watch, events, sizeof(events)) < 0) return 1;
  }
  // The kernel takes 10 ms and more to end a watch. That is not the launcher's time.
  close(watch);
  NoteTheTime(folder + "/failed");
  return 3;
}
