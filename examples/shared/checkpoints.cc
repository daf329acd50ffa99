#include "examples/shared/checkpoints.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

namespace examples {
namespace {

namespace fs = std::filesystem;

void RequireWritable(const std::string& option, const fs::path& folder) {
  if (access(folder.c_str(), W_OK | X_OK) == 0) return;
  throw muster::CheckpointError(option + ": the folder " + folder.string() +
                                " cannot be written: " + std::strerror(errno));
}

}  // namespace

void CheckPlacesToWrite(const fs::path& checkpoint_dir, const fs::path& save_model) {
  if (!checkpoint_dir.empty()) {
    const std::string option = "--checkpoint-dir " + checkpoint_dir.string();
    std::error_code problem;
    fs::create_directories(checkpoint_dir, problem);
    if (problem) {
      throw muster::CheckpointError(option + ": cannot make it: " + problem.message());
    }
    RequireWritable(option, checkpoint_dir);
  }
  if (save_model.empty()) return;
  const std::string option = "--save-model " + save_model.string();
  if (fs::is_directory(save_model)) {
    throw muster::CheckpointError(option + ": is a folder; give the name of a file");
  }
  RequireWritable(option, fs::absolute(save_model).parent_path());
}

void TellNothingLeft(const muster::World& world, const muster::State& state, int64_t epochs_done,
                     int64_t epochs) {
  const muster::Loaded& loaded = state.loaded();
  if (!loaded || !world.leader() || epochs_done < epochs) return;
  std::printf("nothing left to do: %ld of %ld epochs are in %s; say more with --epochs\n",
              static_cast<long>(epochs), static_cast<long>(epochs), loaded.file.c_str());
  std::fflush(stdout);
}

}  // namespace examples
