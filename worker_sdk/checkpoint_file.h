#ifndef MUSTER_WORKER_SDK_CHECKPOINT_FILE_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_FILE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

// A checkpoint on disk: a header of 64 bytes and a payload, both checksummed. No LibTorch here.
//
//   0 "MUSTERCK"   8 version   16 instance   24 generation   32 hash of the run id
//   40 payload size   48 payload hash   56 hash of bytes 0 … 55   64 payload
//
// The first 64 bytes mean the same in every version. Before PATH there are PATH.previous,
// PATH.previous.2 and so on, as many as were asked for.
namespace muster {

// Who writes. Within one run generations grow; a later run that goes on from a file belongs to the
// next instance. So a worker of the past, which still holds the old pair, is told apart from a new
// run that counts from 0 again.
struct Author {
  uint64_t instance = 0;
  int64_t generation = 0;
  uint64_t run = 0;  // Hash64 of the run id
};

struct CheckpointFile {
  Author author;
  std::string payload;
  std::filesystem::path path;
  std::string note;  // why it is not the newest one; empty if it is
};

// Changes whenever one byte does.
uint64_t Hash64(std::string_view bytes);

// Puts the payload at `path` and what was there at path.previous, so that `keep` files remain. At
// every moment, also across a crash or a power cut, the newest or the one before it is whole.
// Throws StaleGeneration if the author belongs to the past of what is there; CheckpointError if it
// cannot be written, or if what is there is no checkpoint or one of a newer format. No file is lost
// then.
void WriteCheckpoint(const std::filesystem::path& path, const Author& author,
                     std::string_view payload, int keep = 2);

// The newest whole one of `path`, path.previous, path.previous.2 … If that is not `path`, the
// damaged `path` is moved to path.corrupt. nullopt: none exists. Throws CheckpointCorrupt if there
// are files but none is whole; CheckpointError if one cannot be read, or is of a newer format:
// then nothing is moved.
std::optional<CheckpointFile> ReadCheckpoint(const std::filesystem::path& path);

// True when a save of `writer` must not take the place of one of `disk`: it is of an earlier
// generation of the run, or of an earlier run.
bool BelongsToThePast(const Author& writer, const Author& disk);

// The author that `self` becomes by going on from a file of `file`'s.
Author Successor(const Author& file, const Author& self);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_FILE_H_
