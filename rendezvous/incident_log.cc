#include "rendezvous/incident_log.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/write_all.h"

namespace muster {
namespace {

constexpr mode_t kMode = 0640;

UniqueFd OpenFile(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kMode));
}

}  // namespace

absl::StatusOr<std::unique_ptr<IncidentLog>> IncidentLog::Open(Options options) {
  UniqueFd fd = OpenFile(options.path);
  struct stat file {};
  if (!fd.valid() || fstat(fd.get(), &file) != 0) {
    return absl::PermissionDeniedError("cannot write the incident log " + options.path + ": " +
                                       std::strerror(errno));
  }
  return std::unique_ptr<IncidentLog>(
      new IncidentLog(std::move(options), std::move(fd), file.st_size));
}

IncidentLog::IncidentLog(Options options, UniqueFd fd, int64_t size)
    : options_(std::move(options)), fd_(std::move(fd)), size_(size), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "incident-log");
}

IncidentLog::~IncidentLog() {
  {
    MutexLock lock(&mutex_);
    is_closing_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void IncidentLog::Add(std::string line) {
  MutexLock lock(&mutex_);
  if (waiting_.size() < options_.waiting_max) {
    waiting_.push_back(std::move(line));
  } else {
    ++lost_;
  }
  is_stirred_ = true;
  changed_.SignalAll();
}

// A line that the disk does not take is tried again when the next one comes.
void IncidentLog::Run() {
  for (;;) {
    std::string line;
    {
      MutexLock lock(&mutex_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !waiting_.empty() && (is_stirred_ || !is_failing_);
      };
      while (!has_work() && !is_closing_) changed_.Wait(&mutex_);
      if (!has_work()) return;
      is_stirred_ = false;
      line = waiting_.front();
    }
    const int error = Write(line);
    MutexLock lock(&mutex_);
    if (error == 0) waiting_.pop_front();
    Report(error, lost_);
  }
}

// 0, or the errno; the file then ends where it ended before.
int IncidentLog::Write(const std::string& line) {
  if (size_ > 0 && size_ + static_cast<int64_t>(line.size()) > options_.bytes_max) Rotate();
  size_t written = 0;
  const int error = WriteAll(fd_.get(), line, &written);
  const bool is_cut_off = error != 0 && written > 0;
  if (!is_cut_off || ftruncate(fd_.get(), size_) != 0) size_ += static_cast<int64_t>(written);
  return error;
}

void IncidentLog::Rotate() {
  const auto name = [this](int i) {
    return i == 0 ? options_.path : options_.path + "." + std::to_string(i);
  };
  for (int i = options_.files_max - 1; i > 0; --i) rename(name(i - 1).c_str(), name(i).c_str());
  if (options_.files_max == 1) unlink(options_.path.c_str());
  // Without a new file the old one goes on, under its new name.
  if (UniqueFd next = OpenFile(options_.path); next.valid()) fd_ = std::move(next);
  size_ = 0;
}

void IncidentLog::Report(int error, uint64_t lost) {
  if ((error != 0) == is_failing_) return;
  is_failing_ = error != 0;
  if (!options_.on_problem) return;
  const std::string file = "the incident log " + options_.path;
  if (is_failing_) {
    options_.on_problem("cannot write " + file + ": " + std::strerror(error) +
                        "; what is to be written waits");
  } else {
    options_.on_problem(file + " can be written again; " + std::to_string(lost - lost_told_) +
                        " lines were lost");
    lost_told_ = lost;
  }
}

}  // namespace muster
