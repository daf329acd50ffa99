// A worker for measuring the way of output: it says when it begins to write, and writes without
// pause.
//
//   write_lines FOLDER LINES
//
// Writes its monotonic time to FOLDER/begin.RANK, then LINES lines of 80 bytes to its output.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

constexpr size_t kLineBytes = 80;
constexpr size_t kLinesAtOnce = 800;

void NoteTheTime(const std::string& path) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::ofstream(path) << now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

bool WriteAll(const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(STDOUT_FILENO, data, size);
    if (written < 0) return false;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const char* rank = std::getenv("RANK");
  if (argc != 3 || rank == nullptr) {
    std::fputs("usage: write_lines FOLDER LINES, with RANK in the environment\n", stderr);
    return 2;
  }
  std::string block;
  while (block.size() < kLinesAtOnce * kLineBytes) block += std::string(kLineBytes - 1, 'x') + "\n";
  NoteTheTime(std::string(argv[1]) + "/begin." + rank);
  for (size_t left = std::strtoul(argv[2], nullptr, 10) * kLineBytes; left > 0;) {
    const size_t now = std::min(left, block.size());
    if (!WriteAll(block.data(), now)) return 1;
    left -= now;
  }
  return 0;
}
