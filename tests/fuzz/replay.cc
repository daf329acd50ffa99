// Gives a fuzz target every file of a folder, and what a few simple changes make of each: the same
// inputs on every run, without libFuzzer.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace {

constexpr int kChangesOfEach = 300;

std::string current;

// Says which input it was.
void Tell(int) {
  std::fputs("input:", stderr);
  for (unsigned char byte : current) std::fprintf(stderr, " %02x", byte);
  std::fprintf(stderr, "\n%s\n", current.c_str());
}

int Give(const std::string& input) {
  current = input;
  // Of exactly its size: a read behind it is seen by the address sanitizer.
  std::vector<uint8_t> bytes(input.begin(), input.end());
  return LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::string Changed(std::string input, const std::string& other, std::mt19937& random) {
  auto below = [&random](size_t n) { return n == 0 ? 0 : random() % n; };
  switch (random() % 5) {
    case 0:
      input.resize(below(input.size() + 1));
      break;
    case 1:
      input.insert(below(input.size() + 1), 1, static_cast<char>(random()));
      break;
    case 2:
      if (!input.empty()) input[below(input.size())] = static_cast<char>(random());
      break;
    case 3:
      input.insert(below(input.size() + 1), other.substr(below(other.size() + 1)));
      break;
    default:
      if (!input.empty()) input.erase(below(input.size()), 1 + below(4));
      break;
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGABRT, Tell);
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[argc - 1])) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs = {""};
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::mt19937 random(1);
  size_t given = 0;
  for (const std::string& input : inputs) {
    Give(input);
    std::string changed = input;
    for (int i = 0; i < kChangesOfEach; ++i) {
      changed = Changed(i % 10 == 0 ? input : changed, inputs[random() % inputs.size()], random);
      if (changed.size() > 100'000) changed = input;
      Give(changed);
    }
    given += kChangesOfEach + 1;
  }
  std::printf("%zu inputs from %zu files\n", given, paths.size());
  return paths.empty() ? 1 : 0;
}
