#include "worker_sdk/checkpoint_file.h"

#include <errno.h>
#include <fcntl.h>
#include <muster/error.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <system_error>

#include "base/unique_fd.h"
#include "base/write_all.h"
#include "worker_sdk/checkpoint_rotation.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::string_view kMagic = "MUSTERCK";
constexpr uint64_t kVersion = 1;

struct Header {
  char magic[8];
  uint64_t version;
  uint64_t instance;
  int64_t generation;
  uint64_t run;
  uint64_t payload_size;
  uint64_t payload_hash;
  uint64_t header_hash;
};
static_assert(sizeof(Header) == 64);

uint64_t HashOf(const Header& header) {
  return Hash64({reinterpret_cast<const char*>(&header), offsetof(Header, header_hash)});
}

fs::path With(const fs::path& path, const std::string& suffix) { return path.string() + suffix; }

[[noreturn]] void Fail(const std::string& tried, const fs::path& path, int error) {
  throw CheckpointError("cannot " + tried + " checkpoint " + path.string() + ": " +
                        std::generic_category().message(error));
}

enum class Kind { kMissing, kWhole, kDamaged, kForeign, kNewer };

// A file as it was found. `trouble` is empty if it is whole.
struct Found {
  Kind kind = Kind::kMissing;
  std::string trouble;
  Header header{};
  std::string payload;
};

size_t ReadUpTo(int fd, char* data, size_t size, const fs::path& path) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count = read(fd, data + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) Fail("read", path, errno);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

void Judge(Found& found, size_t header_bytes, uint64_t file_size) {
  const Header& header = found.header;
  const auto is = [&found](Kind kind, std::string trouble) {
    found.kind = kind;
    found.trouble = std::move(trouble);
  };
  if (header_bytes < sizeof header) {
    return is(Kind::kDamaged,
              "it ends at byte " + std::to_string(file_size) + ", inside the header");
  }
  if (std::string_view(header.magic, sizeof header.magic) != kMagic) {
    return is(Kind::kForeign, "it is no checkpoint: at byte 0 there is no " + std::string(kMagic));
  }
  if (HashOf(header) != header.header_hash) {
    return is(Kind::kDamaged, "bytes 0 to 55 do not match the checksum at byte 56");
  }
  if (header.version > kVersion) {
    return is(Kind::kNewer, "at byte 8 it says format " + std::to_string(header.version) +
                                ", this program knows up to " + std::to_string(kVersion));
  }
  const uint64_t expected = sizeof header + header.payload_size;
  if (file_size < expected) {
    return is(Kind::kDamaged,
              "it ends at byte " + std::to_string(file_size) + " of " + std::to_string(expected));
  }
  if (file_size > expected) {
    return is(Kind::kDamaged, "bytes follow its end at " + std::to_string(expected));
  }
  found.kind = Kind::kWhole;
}

Found Read(const fs::path& path, bool with_payload) {
  Found found;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT) return found;
    Fail("open", path, errno);
  }
  struct stat status;
  if (fstat(file.get(), &status) != 0) Fail("read", path, errno);
  const size_t header_bytes =
      ReadUpTo(file.get(), reinterpret_cast<char*>(&found.header), sizeof found.header, path);
  Judge(found, header_bytes, static_cast<uint64_t>(status.st_size));
  if (!with_payload || found.kind != Kind::kWhole) return found;
  found.payload.resize(found.header.payload_size);
  const size_t got = ReadUpTo(file.get(), found.payload.data(), found.payload.size(), path);
  if (got != found.payload.size() || Hash64(found.payload) != found.header.payload_hash) {
    found.kind = Kind::kDamaged;
    found.trouble = "bytes 64 to " + std::to_string(status.st_size - 1) +
                    " do not match the checksum at byte 48";
  }
  return found;
}

[[noreturn]] void ThrowNewer(const fs::path& path, const Found& found) {
  throw CheckpointError("checkpoint " + path.string() + ": " + found.trouble +
                        ": go on with the newer program, or move it away");
}

// What must not be replaced.
void Respect(const fs::path& path, const Found& current, const Author& author) {
  const Header& disk = current.header;
  if (current.kind == Kind::kNewer) ThrowNewer(path, current);
  if (current.kind == Kind::kForeign) {
    throw CheckpointError("cannot save to " + path.string() + ": " + current.trouble +
                          ": not overwritten; move it away, or choose another name");
  }
  if (current.kind != Kind::kWhole) return;
  if (!BelongsToThePast(author, {disk.instance, disk.generation, disk.run})) return;
  const bool later_instance = disk.instance > author.instance;
  throw StaleGeneration("checkpoint " + path.string() + " is from generation " +
                        std::to_string(disk.generation) +
                        (later_instance ? " of a later run" : "") +
                        ", this worker is of generation " + std::to_string(author.generation) +
                        ": not overwritten; a new run must load it first, or remove it");
}

// Keeps what is at `path` among the previous ones. A damaged one must not push out a whole one.
void KeepPrevious(const fs::path& path, const Found& current, int keep) {
  if (current.kind == Kind::kDamaged) rename(path.c_str(), With(path, ".corrupt").c_str());
  if (current.kind != Kind::kWhole || keep < 2) return;
  ShiftPrevious(path, keep);
  const fs::path previous = PreviousName(path, 1);
  const fs::path second_name = With(path, ".previous.tmp");
  unlink(second_name.c_str());
  // A second name for the same file first, so that `path` itself never goes away; file systems
  // without hard links must make do with a rename, and a crash right then leaves path.previous as
  // the newest.
  if (link(path.c_str(), second_name.c_str()) == 0) {
    if (rename(second_name.c_str(), previous.c_str()) != 0) Fail("keep the previous", path, errno);
    unlink(second_name.c_str());  // still there if both names were one file already
  } else if (rename(path.c_str(), previous.c_str()) != 0) {
    Fail("keep the previous", path, errno);
  }
}

void SyncFolder(const fs::path& folder, const fs::path& path) {
  const UniqueFd directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some network file systems cannot sync a folder; they say so with EINVAL.
  if (!directory.valid() || (fsync(directory.get()) != 0 && errno != EINVAL)) {
    Fail("sync the folder of", path, errno);
  }
}

void WriteTemporary(const fs::path& temporary, const fs::path& path, const Header& header,
                    std::string_view payload) {
  const UniqueFd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) Fail("write", path, errno);
  int error = WriteAll(file.get(), {reinterpret_cast<const char*>(&header), sizeof header});
  if (error == 0) error = WriteAll(file.get(), payload);
  if (error == 0 && fsync(file.get()) != 0) error = errno;
  if (error != 0) Fail("write", path, error);
}

Header HeaderFor(const Author& author, std::string_view payload) {
  Header header{};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.version = kVersion;
  header.instance = author.instance;
  header.generation = author.generation;
  header.run = author.run;
  header.payload_size = payload.size();
  header.payload_hash = Hash64(payload);
  header.header_hash = HashOf(header);
  return header;
}

}  // namespace

uint64_t Hash64(std::string_view bytes) {
  // Each step is a bijection of the state for a fixed word, hence a change of one word always
  // shows.
  uint64_t state = 0x9e3779b97f4a7c15u ^ bytes.size();
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t count = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), count);
    bytes.remove_prefix(count);
    state = (state ^ word) * 0xff51afd7ed558ccdu;
    state ^= state >> 32;
  }
  return state;
}

void WriteCheckpoint(const fs::path& path, const Author& author, std::string_view payload,
                     int keep) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) Fail("make the folder of", path, error.value());
  const Found current = Read(path, false);
  Respect(path, current, author);
  const fs::path temporary = TemporaryName(path, author.instance, author.generation);
  try {
    WriteTemporary(temporary, path, HeaderFor(author, payload), payload);
    KeepPrevious(path, current, keep);
    if (rename(temporary.c_str(), path.c_str()) != 0) Fail("rename", path, errno);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  SyncFolder(folder, path);
  RemoveSurplus(path, keep, author.instance, author.generation);
}

std::optional<CheckpointFile> ReadCheckpoint(const fs::path& path) {
  std::vector<fs::path> candidates = PreviousFiles(path);
  candidates.insert(candidates.begin(), path);
  std::string troubles, moved;
  for (const fs::path& candidate : candidates) {
    Found found = Read(candidate, true);
    if (found.kind == Kind::kMissing) continue;
    if (found.kind == Kind::kNewer) ThrowNewer(candidate, found);
    if (found.kind != Kind::kWhole) {
      troubles += (troubles.empty() ? "" : "; ") + candidate.string() + ": " + found.trouble;
      if (candidate == path) moved = "; moved to " + path.string() + ".corrupt";
      continue;
    }
    CheckpointFile file;
    file.author = {found.header.instance, found.header.generation, found.header.run};
    file.payload = std::move(found.payload);
    file.path = candidate;
    if (!moved.empty()) rename(path.c_str(), With(path, ".corrupt").c_str());
    if (!troubles.empty()) {
      file.note =
          "checkpoint damaged (" + troubles + moved + "), going on from " + candidate.string();
    }
    return file;
  }
  if (troubles.empty()) return std::nullopt;
  throw CheckpointCorrupt("no whole checkpoint: " + troubles + "; remove it to start over");
}

bool BelongsToThePast(const Author& writer, const Author& disk) {
  if (disk.instance != writer.instance) return disk.instance > writer.instance;
  return disk.run == writer.run && disk.generation > writer.generation;
}

Author Successor(const Author& file, const Author& self) {
  const bool same_run = file.run == self.run && file.generation <= self.generation;
  return {same_run ? file.instance : file.instance + 1, self.generation, self.run};
}

}  // namespace muster
