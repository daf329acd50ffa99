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

void WriteAll(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) Fail("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

// A file as it was found. `damage` is empty if it is whole.
struct Found {
  bool exists = false;
  std::string damage;
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

std::string DamageOf(const Header& header, size_t header_bytes, size_t file_size) {
  if (header_bytes < sizeof header) {
    return "it ends at byte " + std::to_string(file_size) + ", inside the header";
  }
  if (std::string_view(header.magic, sizeof header.magic) != kMagic) return "it is no checkpoint";
  if (HashOf(header) != header.header_hash) return "its header was altered";
  if (header.version != kVersion) {
    return "its format is version " + std::to_string(header.version) + ", this program reads " +
           std::to_string(kVersion);
  }
  const uint64_t expected = sizeof header + header.payload_size;
  if (file_size < expected) {
    return "it ends at byte " + std::to_string(file_size) + " of " + std::to_string(expected);
  }
  if (file_size > expected) return "bytes follow its end at " + std::to_string(expected);
  return "";
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
  found.exists = true;
  const size_t size = static_cast<size_t>(status.st_size);
  const size_t header_bytes =
      ReadUpTo(file.get(), reinterpret_cast<char*>(&found.header), sizeof found.header, path);
  found.damage = DamageOf(found.header, header_bytes, size);
  if (!with_payload || !found.damage.empty()) return found;
  found.payload.resize(found.header.payload_size);
  const size_t got = ReadUpTo(file.get(), found.payload.data(), found.payload.size(), path);
  if (got != found.payload.size() || Hash64(found.payload) != found.header.payload_hash) {
    found.damage = "its content does not match its checksum";
  }
  return found;
}

void RefuseThePast(const fs::path& path, const Header& disk, const Author& author) {
  if (!BelongsToThePast(author, {disk.instance, disk.generation, disk.run})) return;
  const bool later_instance = disk.instance > author.instance;
  throw StaleGeneration("checkpoint " + path.string() + " is from generation " +
                        std::to_string(disk.generation) +
                        (later_instance ? " of a later run" : "") +
                        ", this worker is of generation " + std::to_string(author.generation) +
                        ": not overwritten; a new run must load it first, or remove it");
}

// Keeps what is at `path` as path.previous. A damaged one must not push out a whole one.
void KeepPrevious(const fs::path& path, const Found& current) {
  if (!current.exists) return;
  if (!current.damage.empty()) {
    rename(path.c_str(), With(path, ".corrupt").c_str());
    return;
  }
  const fs::path previous = With(path, ".previous");
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
  try {
    WriteAll(file.get(), {reinterpret_cast<const char*>(&header), sizeof header}, path);
    WriteAll(file.get(), payload, path);
    if (fsync(file.get()) != 0) Fail("write", path, errno);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
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

void WriteCheckpoint(const fs::path& path, const Author& author, std::string_view payload) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) Fail("make the folder of", path, error.value());
  const Found current = Read(path, false);
  if (current.exists && current.damage.empty()) RefuseThePast(path, current.header, author);

  Header header{};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.version = kVersion;
  header.instance = author.instance;
  header.generation = author.generation;
  header.run = author.run;
  header.payload_size = payload.size();
  header.payload_hash = Hash64(payload);
  header.header_hash = HashOf(header);

  // A name of its own per author: a worker of the past that is still writing must not write into
  // ours.
  const fs::path temporary = With(
      path, ".tmp." + std::to_string(author.instance) + "." + std::to_string(author.generation));
  WriteTemporary(temporary, path, header, payload);
  KeepPrevious(path, current);
  if (rename(temporary.c_str(), path.c_str()) != 0) Fail("rename", path, errno);
  SyncFolder(folder, path);
}

std::optional<CheckpointFile> ReadCheckpoint(const fs::path& path) {
  const fs::path previous = With(path, ".previous");
  std::string damages;
  for (const fs::path& candidate : {path, previous}) {
    Found found = Read(candidate, true);
    if (!found.exists) continue;
    if (!found.damage.empty()) {
      damages += (damages.empty() ? "" : "; ") + candidate.string() + ": " + found.damage;
      continue;
    }
    CheckpointFile file;
    file.author = {found.header.instance, found.header.generation, found.header.run};
    file.payload = std::move(found.payload);
    file.path = candidate;
    if (!damages.empty()) {
      rename(path.c_str(), With(path, ".corrupt").c_str());
      file.note = "checkpoint damaged (" + damages + "; moved to " + path.string() +
                  ".corrupt), going on from " + previous.string();
    }
    return file;
  }
  if (damages.empty()) return std::nullopt;
  throw CheckpointCorrupt("no whole checkpoint: " + damages + "; remove it to start over");
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
