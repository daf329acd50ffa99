#ifndef MUSTER_EXAMPLES_SHARED_CHECKPOINTS_H_
#define MUSTER_EXAMPLES_SHARED_CHECKPOINTS_H_

#include <muster/torch.h>

#include <cstdint>
#include <filesystem>

namespace examples {

// That the checkpoints of --checkpoint-dir and the file of --save-model will find a folder which
// they can write, where these are given; makes that of the checkpoints. For rank 0, before it
// trains. Throws muster::CheckpointError.
void CheckPlacesToWrite(const std::filesystem::path& checkpoint_dir,
                        const std::filesystem::path& save_model);

// Rank 0 says so where a run goes on from a checkpoint that has all the epochs it was asked for.
void TellNothingLeft(const muster::World& world, const muster::State& state, int64_t epochs_done,
                     int64_t epochs);

}  // namespace examples

#endif  // MUSTER_EXAMPLES_SHARED_CHECKPOINTS_H_
