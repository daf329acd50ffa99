#include "launcher/node_name.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int kSlots = 4096;

absl::Status Unusable(const std::string& path, const std::string& why) {
  return absl::UnavailableError(absl::StrCat("the lock for the node's name in ", path,
                                             " cannot be used (", why, "): pass --node-id"));
}

// Where the slots of a name lie in the file: FNV-1a, cut so that the last slot is a valid offset.
off_t FirstOffset(const std::string& job_id, const std::string& base) {
  uint64_t hash = 14695981039346656037u;
  for (unsigned char byte : job_id + '\0' + base) hash = (hash ^ byte) * 1099511628211u;
  return static_cast<off_t>((hash >> 2) / kSlots * kSlots);
}

// Not through links, and only in a folder of our own: other users can write to /tmp.
absl::StatusOr<UniqueFd> OpenLockFile(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Unusable(folder, std::strerror(errno));
  }
  UniqueFd dir(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status;
  if (!dir.valid() || fstat(dir.get(), &status) != 0) {
    return Unusable(folder, std::strerror(errno));
  }
  if (status.st_uid != geteuid() || (status.st_mode & 0022) != 0) {
    return Unusable(folder, "it belongs to others, too");
  }
  UniqueFd file(openat(dir.get(), "node-names", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return Unusable(folder, std::strerror(errno));
  futimens(file.get(), nullptr);  // in use: cleaners of /tmp go by age
  return file;
}

}  // namespace

absl::StatusOr<NodeName> ClaimNodeName(const std::string& folder, const std::string& job_id,
                                       const std::string& base) {
  absl::StatusOr<UniqueFd> file = OpenLockFile(folder);
  if (!file.ok()) return file.status();
  off_t first = FirstOffset(job_id, base);
  for (int slot = 0; slot < kSlots; ++slot) {
    struct flock range = {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = first + slot;
    range.l_len = 1;
    // Locks of the open file description, not of the process: a fork shares them.
    if (fcntl(file->get(), F_OFD_SETLK, &range) == 0) {
      return NodeName{slot == 0 ? base : absl::StrCat(base, "#", slot), *std::move(file)};
    }
    if (errno != EAGAIN && errno != EACCES) return Unusable(folder, std::strerror(errno));
  }
  return Unusable(folder, "all names are taken");
}

std::string NodeNameFolder() { return absl::StrCat("/tmp/muster-", geteuid()); }

}  // namespace muster
