#include "agent/run_directory.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr size_t kSocketPathMax = 107;  // sun_path without its NUL
// "/muster-XXXXXX/g<10 digits>-<5 digits>.sock"
constexpr size_t kSocketTailMax = 14 + 1 + 11 + 1 + 5 + 5;

absl::Status Problem(std::string_view what, std::string_view path, int error) {
  const std::string text =
      absl::StrCat(std::string(what), " ", std::string(path), ": ", strerror(error));
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text + "; choose a directory that can be written");
    case ENOTDIR:
    case EEXIST:
      return absl::InvalidArgumentError(text + "; choose a directory");
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(text + "; free some space");
    default:
      return absl::InternalError(text + "; choose another directory");
  }
}

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// 0, or the errno.
int MakeDirectories(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return 0;
  if (errno == EEXIST) return IsDirectory(path) ? 0 : ENOTDIR;
  const size_t slash = path.find_last_of('/');
  if (errno != ENOENT || slash == std::string::npos || slash == 0) return errno;
  if (const int error = MakeDirectories(path.substr(0, slash))) return error;
  return mkdir(path.c_str(), 0777) == 0 || (errno == EEXIST && IsDirectory(path)) ? 0 : errno;
}

std::string RandomName() {
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz234567";
  unsigned char bytes[8] = {};
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) abort();
  std::string name;
  for (const unsigned char byte : bytes) name.push_back(kLetters[byte % 32]);
  return name;
}

std::string SafeName(std::string name) {
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '/' || byte < 32 || byte == 127) c = '_';
  }
  // What follows must fit into NAME_MAX, too.
  if (name.size() > 200) name.resize(200);
  return name.empty() || name[0] == '.' ? "_" + name : name;
}

std::string TemporaryRoot(const std::string& tmp_dir) { return tmp_dir.empty() ? "/tmp" : tmp_dir; }

}  // namespace

absl::Status RunDirectory::Prepare() {
  const bool given = !options_.log_dir.empty();
  if (options_.log_dir == "/dev/null" || (!given && !options_.logs_asked)) {
    return absl::OkStatus();
  }
  std::string parent = given ? options_.log_dir : TemporaryRoot(options_.tmp_dir);
  while (parent.size() > 1 && parent.back() == '/') parent.pop_back();
  if (const int error = MakeDirectories(parent)) return Problem("log directory", parent, error);
  const std::string name = absl::StrCat(given ? "" : "muster_", SafeName(options_.job_id), "_");
  for (;;) {
    const std::string path = absl::StrCat(parent, "/", name, RandomName());
    if (mkdir(path.c_str(), 0777) == 0) {
      log_root_ = path;
      return absl::OkStatus();
    }
    if (errno != EEXIST) return Problem("log directory", path, errno);
  }
}

absl::Status RunDirectory::MakePrivateRoot() {
  const std::string& tmp = options_.tmp_dir;
  const bool usable = absl::StartsWith(tmp, "/") && tmp.size() + kSocketTailMax <= kSocketPathMax;
  // Making and removing a directory takes microseconds in memory and milliseconds on a busy disk.
  for (const std::string& parent :
       {usable ? tmp : "", std::string("/dev/shm"), std::string("/tmp")}) {
    std::string path = parent + "/muster-XXXXXX";
    if (parent.empty() || mkdtemp(path.data()) == nullptr) continue;
    private_root_ = path;
    return absl::OkStatus();
  }
  return Problem("private directory in", "/tmp", errno);
}

absl::Status RunDirectory::OpenGeneration(int64_t generation, int restart_count, int slots) {
  if (private_root_.empty()) {
    if (absl::Status made = MakePrivateRoot(); !made.ok()) return made;
  }
  generation_ = generation;
  if (!has_logs()) return absl::OkStatus();

  attempt_ = absl::StrCat(log_root_, "/attempt_", restart_count);
  if (mkdir(attempt_.c_str(), 0777) != 0 && errno == EEXIST) {
    absl::StrAppend(&attempt_, "_g", generation);
    if (mkdir(attempt_.c_str(), 0777) != 0) return Problem("log directory", attempt_, errno);
  } else if (!IsDirectory(attempt_)) {
    return Problem("log directory", attempt_, errno);
  }
  for (int local_rank = 0; local_rank < slots; ++local_rank) {
    const std::string path = absl::StrCat(attempt_, "/", local_rank);
    if (mkdir(path.c_str(), 0777) != 0) return Problem("log directory", path, errno);
  }
  return absl::OkStatus();
}

std::string RunDirectory::SocketPath(int local_rank) const {
  return absl::StrCat(private_root_, "/g", generation_, "-", local_rank, ".sock");
}

std::string RunDirectory::StatusSocketPath() const {
  return absl::StrCat(private_root_, "/", kStatusSocketName);
}

std::string RunDirectory::ErrorFile(int local_rank) const {
  if (has_logs()) return absl::StrCat(attempt_, "/", local_rank, "/error.json");
  if (options_.log_dir == "/dev/null") return "";
  return absl::StrCat(private_root_, "/g", generation_, "-", local_rank, ".error.json");
}

std::string RunDirectory::LogFile(int local_rank, bool err) const {
  if (!has_logs()) return "";
  return absl::StrCat(attempt_, "/", local_rank, err ? "/stderr.log" : "/stdout.log");
}

std::string RunDirectory::FilteredLogFile(bool err) const {
  if (!has_logs()) return "";
  return absl::StrCat(attempt_, err ? "/filtered_stderr.log" : "/filtered_stdout.log");
}

void RunDirectory::Remove(bool succeeded) {
  if (private_root_.empty()) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(private_root_.c_str()), closedir);
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder.get())) {
    if (!succeeded && absl::EndsWith(entry->d_name, ".error.json")) continue;
    unlinkat(dirfd(folder.get()), entry->d_name, 0);
  }
  // Refused while an error file is kept.
  if (rmdir(private_root_.c_str()) == 0) private_root_.clear();
}

}  // namespace muster
