#include "base/atomic_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace muster {
namespace {

// 0, or the errno.
int WriteAndSync(int fd, std::string_view content) {
  if (const int error = WriteAll(fd, content); error != 0) return error;
  // A file system without fsync, or a device (EINVAL), is as good as it gets.
  return fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
}

// A descriptor of somebody's, a device, a pipe.
bool IsWrittenInPlace(const std::string& path) {
  for (const char* folder : {"/dev/fd/", "/dev/std", "/proc/"}) {
    if (path.starts_with(folder)) return true;
  }
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

// What a rename would have to replace.
std::string BehindLinks(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), free);
  return real == nullptr ? path : real.get();
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

int WriteInPlace(const std::string& path, std::string_view content) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK));
  return file.valid() ? WriteAndSync(file.get(), content) : errno;
}

int WriteAndRename(const std::string& path, std::string_view content) {
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  const UniqueFd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  int error = file.valid() ? WriteAndSync(file.get(), content) : errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0 && file.valid()) unlink(temporary.c_str());
  return error;
}

}  // namespace

absl::Status ReplaceFile(const std::string& path, std::string_view content) {
  const int error = IsWrittenInPlace(path) ? WriteInPlace(path, content)
                                           : WriteAndRename(BehindLinks(path), content);
  if (error == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", path, ": ", strerror(error)));
}

absl::Status CheckReplaceable(const std::string& path) {
  const bool is_in_place = IsWrittenInPlace(path);
  const std::string place = is_in_place ? path : FolderOf(BehindLinks(path));
  struct stat status {};
  int error = access(place.c_str(), is_in_place ? W_OK : W_OK | X_OK) == 0 ? 0 : errno;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  if (error == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(path, " cannot be written: ", strerror(error)));
}

}  // namespace muster
