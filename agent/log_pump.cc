#include "agent/log_pump.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace muster {
namespace {

// As much as an unprivileged process may ask for several times over; fewer wake-ups than the
// default 64 KiB.
constexpr int kPipeBytes = 256 * 1024;
constexpr size_t kTailBytes = 16 * 1024;

absl::Status Problem(const std::string& what, int error) {
  const std::string text = absl::StrCat(what, ": ", strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE) {
    return absl::ResourceExhaustedError(text);
  }
  return error == EACCES || error == EROFS ? absl::PermissionDeniedError(text)
                                           : absl::InternalError(text);
}

bool SamePlace(int a, int b) {
  struct stat one {};
  struct stat other {};
  return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

UniqueFd OpenForAppend(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
}

std::string TailOfFile(const std::string& path, int lines) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) return "";
  const off_t begin = std::max<off_t>(0, status.st_size - static_cast<off_t>(kTailBytes));
  std::string text(kTailBytes, '\0');
  const ssize_t size = pread(file.get(), text.data(), text.size(), begin);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return std::string(LastLines(text, lines, begin > 0));
}

bool Has(Streams streams, bool err) { return err ? HasStderr(streams) : HasStdout(streams); }

bool Any(const StreamsByRank& streams) {
  return streams.otherwise != Streams::kNone ||
         std::any_of(streams.by_local_rank.begin(), streams.by_local_rank.end(),
                     [](const auto& entry) { return entry.second != Streams::kNone; });
}

}  // namespace

LogPump::LogPump(EventLoop& loop, const LogOptions& options, Context context)
    : loop_(loop),
      options_(options),
      context_(std::move(context)),
      prefix_(options.prefix_template) {}

LogPump::~LogPump() { CloseGeneration(); }

bool LogPump::LogsAsked(const LogOptions& options) {
  return Any(options.redirects) || Any(options.tee);
}

bool LogPump::Shown(int local_rank) const {
  const std::vector<int>& filter = options_.local_ranks_filter;
  return filter.empty() || std::find(filter.begin(), filter.end(), local_rank) != filter.end();
}

ConsoleWriter& LogPump::Console(bool err) {
  if (err && !SamePlace(context_.console_out, context_.console_err)) {
    if (console_err_ == nullptr) {
      console_err_ =
          std::make_unique<ConsoleWriter>(loop_, context_.console_err, context_.long_line_hold);
    }
    return *console_err_;
  }
  if (console_out_ == nullptr) {
    console_out_ =
        std::make_unique<ConsoleWriter>(loop_, context_.console_out, context_.long_line_hold);
  }
  return *console_out_;
}

absl::Status LogPump::OpenGeneration(const Assignment& assignment, const RunDirectory& directory) {
  CloseGeneration();
  streams_.clear();
  streams_.resize(2 * static_cast<size_t>(context_.slots));
  for (int i = 0; i < 2 * context_.slots; ++i) {
    absl::Status opened = OpenStream(i / 2, i % 2 == 1, assignment, directory);
    if (!opened.ok()) {
      streams_.clear();
      filtered_out_.reset();
      filtered_err_.reset();
      return opened;
    }
  }
  return absl::OkStatus();
}

absl::Status LogPump::OpenStream(int local_rank, bool err, const Assignment& assignment,
                                 const RunDirectory& directory) {
  Stream& stream = streams_[2 * local_rank + (err ? 1 : 0)];
  const bool tee = Has(options_.tee.For(local_rank), err);
  const bool redirect = tee || Has(options_.redirects.For(local_rank), err);
  const bool filters =
      !(err ? options_.duplicate_stderr_filters : options_.duplicate_stdout_filters).empty();
  if (!redirect && Shown(local_rank)) return absl::OkStatus();

  const std::string path = redirect ? directory.LogFile(local_rank, err) : "";
  const bool pumped =
      (tee && (Shown(local_rank) || filters)) || (options_.bytes_max > 0 && !path.empty());
  if (pumped) return OpenTee(local_rank, err, assignment, directory);
  UniqueFd file;
  if (!path.empty()) {
    file = OpenForAppend(path);
    if (!file.valid()) return Problem("log file " + path, errno);
  }
  stream.file_path = path;
  stream.worker_end =
      path.empty() ? UniqueFd(open("/dev/null", O_WRONLY | O_CLOEXEC)) : std::move(file);
  return stream.worker_end.valid() ? absl::OkStatus() : Problem("/dev/null", errno);
}

absl::Status LogPump::OpenTee(int local_rank, bool err, const Assignment& assignment,
                              const RunDirectory& directory) {
  TeeTargets targets;
  const std::string path = directory.LogFile(local_rank, err);
  if (!path.empty()) {
    targets.file = LogFile(path, {options_.bytes_max, options_.files_max});
    if (!targets.file.valid()) return Problem("log file " + path, errno);
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Problem("pipe for a tee'd stream", errno);
  Stream& stream = streams_[2 * local_rank + (err ? 1 : 0)];
  UniqueFd read_end(ends[0]);
  stream.worker_end.reset(ends[1]);
  fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  // Refused over the user's limit: then it stays small.
  fcntl(read_end.get(), F_SETPIPE_SZ, kPipeBytes);

  const bool tee = Has(options_.tee.For(local_rank), err);
  if (tee && Shown(local_rank)) targets.console = &Console(err);
  targets.keep_tail = err;
  if (tee)
    targets.filters = err ? options_.duplicate_stderr_filters : options_.duplicate_stdout_filters;
  const std::string filtered_path = directory.FilteredLogFile(err);
  if (!targets.filters.empty() && !filtered_path.empty()) {
    UniqueFd& filtered = err ? filtered_err_ : filtered_out_;
    if (!filtered.valid()) filtered = OpenForAppend(filtered_path);
    if (!filtered.valid()) return Problem("log file " + filtered_path, errno);
    targets.filtered_fd = filtered.get();
  }

  PrefixValues values;
  values.role_name = context_.role;
  values.local_rank = std::to_string(local_rank);
  values.rank = std::to_string(assignment.rank_base + local_rank);
  values.hostname = context_.host_name;
  values.node = context_.node_id;
  values.generation = std::to_string(assignment.generation);
  stream.tee = std::make_unique<TeeStream>(loop_, buffers_, std::move(read_end), std::move(targets),
                                           prefix_, std::move(values));
  stream.tee->Start();
  return absl::OkStatus();
}

WorkerStreams LogPump::StreamsFor(int local_rank) const {
  const size_t first = 2 * static_cast<size_t>(local_rank);
  if (local_rank < 0 || first >= streams_.size()) return {};
  return {streams_[first].worker_end.get(), streams_[first + 1].worker_end.get()};
}

void LogPump::CloseWorkerEnds() {
  for (Stream& stream : streams_) stream.worker_end.reset();
}

void LogPump::SetPid(int local_rank, int pid) {
  const size_t first = 2 * static_cast<size_t>(local_rank);
  if (local_rank < 0 || first >= streams_.size()) return;
  for (size_t i = first; i < first + 2; ++i) {
    if (streams_[i].tee != nullptr) streams_[i].tee->SetPid(pid);
  }
}

std::string LogPump::Tail(int local_rank, int lines) {
  const size_t index = 2 * static_cast<size_t>(local_rank) + 1;
  if (local_rank < 0 || index >= streams_.size()) return "";
  Stream& stream = streams_[index];
  if (stream.tee == nullptr) {
    return stream.file_path.empty() ? "" : TailOfFile(stream.file_path, lines);
  }
  stream.tee->TakeReadable();
  return stream.tee->Tail(lines);
}

void LogPump::CloseGeneration() {
  CloseWorkerEnds();
  // Who is in the middle of a line completes it before others write.
  std::vector<TeeStream*> tees;
  for (const Stream& stream : streams_) {
    if (stream.tee != nullptr) tees.push_back(stream.tee.get());
  }
  std::stable_partition(tees.begin(), tees.end(), [](TeeStream* t) { return t->in_long_line(); });
  for (TeeStream* tee : tees) tee->Close();
  WarnOfLostBytes();
  filtered_out_.reset();
  filtered_err_.reset();
}

void LogPump::WarnOfLostBytes() {
  if (std::exchange(lost_bytes_told_, buffers_.file_bytes_lost) == buffers_.file_bytes_lost) return;
  int64_t bytes = 0;
  int files = 0;
  std::string place;
  for (const Stream& stream : streams_) {
    if (stream.tee == nullptr || stream.tee->file_bytes_lost() == 0) continue;
    bytes += stream.tee->file_bytes_lost();
    place = ++files == 1 ? stream.tee->file_path() : std::to_string(files) + " log files";
  }
  Log(LogLevel::kWarning, std::to_string(bytes) + " bytes are missing in " + place);
}

bool LogPump::Flush(Time deadline, int interrupt_fd) {
  bool all = true;
  for (ConsoleWriter* console : {console_out_.get(), console_err_.get()}) {
    if (console == nullptr) continue;
    all = console->Flush(deadline, interrupt_fd) && console->lost_bytes() == 0 && all;
  }
  return all;
}

}  // namespace muster
