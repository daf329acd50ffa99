#include "base/atomic_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

// 0, or the errno.
int WriteAndSync(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    content.remove_prefix(static_cast<size_t>(written));
  }
  // A file system without fsync (EINVAL) is as good as it gets.
  return fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
}

}  // namespace

absl::Status ReplaceFile(const std::string& path, std::string_view content) {
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  UniqueFd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  int error = file.valid() ? WriteAndSync(file.get(), content) : errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  if (file.valid()) unlink(temporary.c_str());
  return absl::InternalError(absl::StrCat("cannot write ", path, ": ", strerror(error)));
}

}  // namespace muster
