#ifndef MUSTER_AGENT_RUN_DIRECTORY_H_
#define MUSTER_AGENT_RUN_DIRECTORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace muster {

// In the private directory: where the launcher answers questions (agent/status_socket.h). That
// directory's name begins with the prefix.
inline constexpr char kStatusSocketName[] = "status.sock";
inline constexpr char kPrivatePrefix[] = "muster-";

// Where the files of a run are. Two places:
//
//  - The private directory, "<TMPDIR>/muster-XXXXXX" (mode 0700); in /dev/shm, else /tmp, where
//    TMPDIR is unset, unusable, or so long that a socket's path would pass 107 bytes. Always holds
//    the workers' sockets and that of the launcher (agent/status_socket.h), and the error files
//    when no log is asked for. Made by the first OpenGeneration, removed by Remove.
//  - The log directory, when --log-dir is given or a stream is redirected or tee'd. torchrun's
//    layout, <run> being "<job id>_<8 random characters>":
//      <log_dir>/<run>/attempt_<restart count>/<local rank>/{stdout.log,stderr.log,error.json}
//      <log_dir>/<run>/attempt_<restart count>/filtered_{stdout,stderr}.log
//    A later generation with the same restart count gets "attempt_<restart count>_g<generation>",
//    so that nothing is overwritten. '/' and control bytes in the job id become '_'. Without
//    --log-dir it lies in TMPDIR, else /tmp, and <run> begins with "muster_". Never removed.
//
// `log_dir` /dev/null: no log files and no error files at all.
//
// Not thread-safe. The destructor removes nothing.
class RunDirectory {
 public:
  struct Options {
    std::string log_dir;      // --log-dir, or empty
    bool logs_asked = false;  // a stream is redirected or tee'd
    std::string job_id = "none";
    std::string tmp_dir;  // TMPDIR, or empty
  };

  explicit RunDirectory(Options options) : options_(std::move(options)) {}

  // Makes and checks the log directory; does nothing when there is none. Call it before anything is
  // started. InvalidArgument: it is a file. PermissionDenied, ResourceExhausted (disk full),
  // Internal: it cannot be made or written. One line each, with the path.
  absl::Status Prepare();

  // Makes what the workers of a generation need. Fails like Prepare. The paths below are those of
  // the latest generation.
  absl::Status OpenGeneration(int64_t generation, int restart_count, int slots);

  std::string SocketPath(int local_rank) const;
  std::string StatusSocketPath() const;
  std::string ErrorFile(int local_rank) const;          // "" with /dev/null
  std::string LogFile(int local_rank, bool err) const;  // "" where there is no log directory
  std::string FilteredLogFile(bool err) const;          // the same

  // "<log_dir>/<job id>_<random>", to tell the user; "" where there is none.
  const std::string& log_root() const { return log_root_; }
  // "" before the first OpenGeneration and after Remove.
  const std::string& private_root() const { return private_root_; }

  // Ends the private directory. Unless the run succeeded, error files in it are kept, and then the
  // directory too.
  void Remove(bool succeeded);

 private:
  absl::Status MakePrivateRoot();
  bool has_logs() const { return !log_root_.empty(); }

  Options options_;
  std::string log_root_;
  std::string private_root_;
  std::string attempt_;  // of the latest generation
  int64_t generation_ = 0;
};

}  // namespace muster

#endif  // MUSTER_AGENT_RUN_DIRECTORY_H_
