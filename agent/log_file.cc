#include "agent/log_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/write_all.h"

namespace muster {
namespace {

constexpr int64_t kOverlongBytes = 64 * 1024;

UniqueFd OpenEmpty(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
}

}  // namespace

LogFile::LogFile(std::string path, LogRotation rotation)
    : path_(std::move(path)), rotation_(rotation), fd_(OpenEmpty(path_)) {}

size_t LogFile::Fitting(std::string_view data) const {
  const int64_t room = rotation_.bytes_max - size_;
  if (rotation_.bytes_max == 0 || static_cast<int64_t>(data.size()) <= room) return data.size();
  if (room > 0) {
    const size_t end = data.rfind('\n', static_cast<size_t>(room) - 1);
    if (end != data.npos) return end + 1;
  }
  if (!in_line_ && size_ > 0) return 0;
  // The line that has begun is completed here, unless it will not end.
  const size_t end = std::min(data.find('\n'), data.size() - 1) + 1;
  return static_cast<size_t>(
      std::clamp<int64_t>(room + kOverlongBytes, 0, static_cast<int64_t>(end)));
}

void LogFile::Rotate() {
  const auto name = [this](int i) { return i == 0 ? path_ : path_ + "." + std::to_string(i); };
  for (int i = rotation_.files_max - 1; i > 0; --i) rename(name(i - 1).c_str(), name(i).c_str());
  // Without a new file the old one goes on, under its new name.
  if (UniqueFd next = OpenEmpty(path_); next.valid()) fd_ = std::move(next);
  size_ = 0;
  in_line_ = false;
}

int LogFile::Write(std::string_view data, size_t* written) {
  *written = 0;
  while (!data.empty()) {
    const size_t size = Fitting(data);
    if (size == 0) {
      Rotate();
      continue;
    }
    size_t more = 0;
    const int error = WriteAll(fd_.get(), data.substr(0, size), &more);
    *written += more;
    size_ += static_cast<int64_t>(more);
    in_line_ = data[size - 1] != '\n';
    if (error != 0) return error;
    data.remove_prefix(size);
  }
  return 0;
}

}  // namespace muster
