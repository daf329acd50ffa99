#ifndef MUSTER_WORKER_SDK_CHECKPOINT_ROTATION_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_ROTATION_H_

#include <cstdint>
#include <filesystem>
#include <vector>

// The names beside a checkpoint: PATH.previous, PATH.previous.2, … (older and older), and
// PATH.tmp.INSTANCE.GENERATION while it is written. Gaps, as a crash leaves them, do no harm.
namespace muster {

std::filesystem::path PreviousName(const std::filesystem::path& path, int age);  // from 1 on

// A name of its own per author: a worker of the past that is still writing must not write into
// ours.
std::filesystem::path TemporaryName(const std::filesystem::path& path, uint64_t instance,
                                    int64_t generation);

// Those that exist, the newest first.
std::vector<std::filesystem::path> PreviousFiles(const std::filesystem::path& path);

// Makes each one older, so that PATH.previous is free and, with `path` and one at that place,
// `keep` remain. Throws CheckpointError.
void ShiftPrevious(const std::filesystem::path& path, int keep);

// Removes what is older than `keep` files, and temporary files that authors of the past left.
void RemoveSurplus(const std::filesystem::path& path, int keep, uint64_t instance,
                   int64_t generation);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_ROTATION_H_
