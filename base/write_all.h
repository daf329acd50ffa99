#ifndef MUSTER_BASE_WRITE_ALL_H_
#define MUSTER_BASE_WRITE_ALL_H_

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

namespace muster {

// write(2) until all of `bytes` is written; blocks as that does. 0, or the errno. `written`, if
// given, is set to how many were, also then.
[[nodiscard]] inline int WriteAll(int fd, std::string_view bytes, size_t* written = nullptr) {
  size_t done = 0;
  int error = 0;
  while (error == 0 && done < bytes.size()) {
    const ssize_t count = write(fd, bytes.data() + done, bytes.size() - done);
    if (count > 0) {
      done += static_cast<size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      error = count < 0 ? errno : EIO;
    }
  }
  if (written != nullptr) *written = done;
  return error;
}

}  // namespace muster

#endif  // MUSTER_BASE_WRITE_ALL_H_
