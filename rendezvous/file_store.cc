#include "rendezvous/file_store.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/write_all.h"
#include "rendezvous/state_file.h"

namespace muster {
namespace {

constexpr char kLock[] = "lock";
constexpr char kFormat[] = "format";
constexpr char kStateEnd[] = ".state";
constexpr char kTemporaryEnd[] = ".tmp";
constexpr char kFormatKey[] = "folder";
constexpr off_t kFileBytesMax = off_t{256} << 20;

int WriteAndSync(int fd, std::string_view text) {
  const int error = WriteAll(fd, text);
  return error != 0 || fsync(fd) == 0 ? error : errno;
}

int ReadAll(int fd, std::string* text) {
  struct stat file {};
  if (fstat(fd, &file) != 0) return errno;
  if (file.st_size > kFileBytesMax) return EFBIG;
  text->resize(static_cast<size_t>(file.st_size));
  size_t done = 0;
  while (done < text->size()) {
    const ssize_t got = read(fd, text->data() + done, text->size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text->resize(done);
  return 0;
}

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::StatusCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

// The number of "17.state"; 0 for other names.
uint64_t NumberOf(absl::string_view name) {
  uint64_t number = 0;
  const bool is_state = absl::ConsumeSuffix(&name, kStateEnd) && absl::SimpleAtoi(name, &number);
  return is_state && absl::StrCat(number) == name ? number : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileStore>> FileStore::Open(const std::string& folder) {
  const auto failed = [&](const char* what, int error) {
    return absl::Status(CodeOf(error),
                        absl::StrCat("state folder ", folder, ": ", what, ": ", strerror(error)));
  };
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return failed("cannot make it", errno);
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return failed("cannot open it", errno);
  std::unique_ptr<FileStore> store(new FileStore(folder, std::move(fd)));
  if (absl::Status status = store->Lock(); !status.ok()) return status;
  if (absl::Status status = store->CheckFormat(); !status.ok()) return status;
  return store;
}

absl::Status FileStore::Lock() {
  lock_.reset(openat(folder_.get(), kLock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_.valid()) return Failed("cannot open", kLock, errno);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Failed("cannot lock", kLock, errno);
    std::string owner;
    ReadAll(lock_.get(), &owner);
    return absl::FailedPreconditionError(absl::StrCat(
        "state folder ", path_, ": another master works on it",
        owner.empty() ? "" : absl::StrCat(" (process ", absl::StripAsciiWhitespace(owner), ")"),
        ": stop that one first, or give this one a folder of its own"));
  }
  // For that message only: a disk too full for it is found out by the first value.
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(lock_.get(), 0) == 0) (void)!pwrite(lock_.get(), pid.data(), pid.size(), 0);
  return absl::OkStatus();
}

absl::Status FileStore::CheckFormat() {
  const absl::StatusOr<std::vector<std::string>> names = List();
  if (!names.ok()) return names.status();
  if (std::count(names->begin(), names->end(), kFormat) == 0) {
    for (const std::string& name : *names) {
      if (name == kLock || name == "lost+found" || absl::EndsWith(name, kTemporaryEnd)) continue;
      return absl::InvalidArgumentError(absl::StrCat("state folder ", path_, ": it holds ", name,
                                                     " and no master's state (no ", kFormat,
                                                     "): give an empty folder"));
    }
    const StoredValue format{kFormatKey, ""};
    if (absl::Status s = Replace(kFormat, kFormat, StateFileText(format)); !s.ok()) return s;
    const UniqueFd parent(openat(folder_.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent.valid()) fsync(parent.get());  // best effort: it may not be ours to open
    return Sync();
  }
  const absl::StatusOr<std::string> text = Read(kFormat);
  if (!text.ok()) return text.status();
  const absl::StatusOr<StoredValue> format = ParseStateFile(*text);
  if (absl::IsUnimplemented(format.status())) {
    return absl::UnimplementedError(absl::StrCat("state folder ", path_, ": ",
                                                 format.status().message(),
                                                 ": install the newer version again"));
  }
  if (format.ok() && format->key == kFormatKey) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("state folder ", path_, ": ", kFormat, ": ",
                   format.ok() ? "it is another file" : format.status().message(),
                   ": restore the folder from a backup, or give an empty one"));
}

absl::StatusOr<std::vector<StoredValue>> FileStore::Load() {
  const absl::StatusOr<std::vector<std::string>> names = List();
  if (!names.ok()) return names.status();
  std::vector<StoredValue> values;
  for (const std::string& name : *names) {
    if (absl::EndsWith(name, kTemporaryEnd)) unlinkat(folder_.get(), name.c_str(), 0);
    const uint64_t number = NumberOf(name);
    if (number == 0) continue;
    const absl::StatusOr<std::string> text = Read(name);
    if (!text.ok()) return text.status();
    absl::StatusOr<StoredValue> value = ParseStateFile(*text);
    if (value.ok() && !numbers_.emplace(value->key, number).second) {
      value = absl::DataLossError(
          absl::StrCat("it holds ", value->key, ", as ", numbers_[value->key], kStateEnd, " does"));
    }
    if (!value.ok()) {
      return absl::Status(
          value.status().code(),
          absl::StrCat("state file ", path_, "/", name, ": ", value.status().message(),
                       ": restore it from a backup, or move it away and with it "
                       "what is known of that job"));
    }
    last_number_ = std::max(last_number_, number);
    values.push_back(*std::move(value));
  }
  std::sort(values.begin(), values.end(),
            [](const StoredValue& a, const StoredValue& b) { return a.key < b.key; });
  return values;
}

absl::Status FileStore::Write(const std::vector<StoreWrite>& changes) {
  struct stat lock {};
  if (fstat(lock_.get(), &lock) != 0 || lock.st_nlink == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("state folder ", path_,
                     ": its lock file has been removed, so another master may work on "
                     "it"));
  }
  for (const StoreWrite& change : changes) {
    const auto known = numbers_.find(change.key);
    if (change.value) {
      // Kept when the write fails: the next try goes to the same file.
      const uint64_t number =
          known != numbers_.end() ? known->second : (numbers_[change.key] = ++last_number_);
      const std::string stem = absl::StrCat(number);
      const std::string text = StateFileText({change.key, *change.value});
      if (absl::Status s = Replace(stem, stem + kStateEnd, text); !s.ok()) return s;
    } else if (known != numbers_.end()) {
      const std::string name = absl::StrCat(known->second, kStateEnd);
      if (unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
        return Failed("cannot remove", name, errno);
      }
      numbers_.erase(known);
    }
  }
  return Sync();
}

absl::StatusOr<std::vector<std::string>> FileStore::List() const {
  const int fd = openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = fd < 0 ? nullptr : fdopendir(fd);
  if (entries == nullptr) return Failed("cannot read", ".", errno);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(entries)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(entries);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::string> FileStore::Read(const std::string& name) const {
  const UniqueFd file(openat(folder_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::string text;
  const int error = file.valid() ? ReadAll(file.get(), &text) : errno;
  if (error != 0) return Failed("cannot read", name, error);
  return text;
}

absl::Status FileStore::Replace(const std::string& stem, const std::string& name,
                                const std::string& text) {
  const std::string temporary = stem + kTemporaryEnd;
  const UniqueFd file(openat(folder_.get(), temporary.c_str(),
                             O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  int error = file.valid() ? WriteAndSync(file.get(), text) : errno;
  if (error == 0 && renameat(folder_.get(), temporary.c_str(), folder_.get(), name.c_str()) != 0) {
    error = errno;
  }
  if (error == 0) return absl::OkStatus();
  if (file.valid()) unlinkat(folder_.get(), temporary.c_str(), 0);
  return Failed("cannot write", name, error);
}

absl::Status FileStore::Sync() {
  if (fsync(folder_.get()) == 0) return absl::OkStatus();
  return Failed("cannot sync", ".", errno);
}

absl::Status FileStore::Failed(const std::string& what, const std::string& name, int error) const {
  const absl::StatusCode code = CodeOf(error);
  std::string advice;
  if (code == absl::StatusCode::kResourceExhausted) advice = ": make room on its disk";
  if (code == absl::StatusCode::kPermissionDenied) advice = ": it must be writable";
  return absl::Status(code, absl::StrCat("state folder ", path_, ": ", what, " ", name, ": ",
                                         strerror(error), advice));
}

int ExitCodeOfStateError(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnimplemented:
      return 65;  // EX_DATAERR
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
      return 73;  // EX_CANTCREAT
    default:
      return 75;  // EX_TEMPFAIL
  }
}

}  // namespace muster
