#ifndef MUSTER_AGENT_CONSOLE_WRITER_H_
#define MUSTER_AGENT_CONSOLE_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/output_fd.h"

namespace muster {

// One of the launcher's own streams as several workers' lines are written to it. What the console
// does not take at once waits here; writers look at `open_to` first, read no more input while it is
// false, and are called when that changes. So a slow console slows down only those who write to it.
// Everything happens on the loop's thread.
class ConsoleWriter {
 public:
  // `fd` stays the caller's.
  ConsoleWriter(EventLoop& loop, int fd);
  ~ConsoleWriter();
  ConsoleWriter(const ConsoleWriter&) = delete;
  ConsoleWriter& operator=(const ConsoleWriter&) = delete;

  // Takes `text` in any case; what cannot be written is kept. When the reader is gone or the disk
  // is full the text is dropped and counted, with one warning.
  void Write(std::string_view text);

  // Whether `writer` shall write now: nothing waits, and no other writer is in the middle of a
  // line.
  bool open_to(const void* writer) const {
    return backlog_.size() == sent_ && (owner_ == nullptr || owner_ == writer);
  }

  // `writer` is (not any more) in the middle of a line.
  void SetInLine(const void* writer, bool in_line);
  const void* owner() const { return owner_; }

  // Called once, when the console is open again; to be asked for again each time.
  void CallWhenOpen(std::function<void()> callback) { waiting_.push_back(std::move(callback)); }
  bool someone_waits() const { return !waiting_.empty(); }

  // Writes what waits, blocking, until all is written (true), `deadline`, or `interrupt_fd` (-1:
  // none) is readable.
  bool Flush(Time deadline, int interrupt_fd);

  bool flushed() const { return backlog_.size() == sent_; }
  int64_t lost_bytes() const { return lost_bytes_; }

 private:
  void WriteBacklog();
  void OnOpen();
  void Fail(int error, size_t bytes);

  EventLoop& loop_;
  OutputFd fd_;
  std::string backlog_;
  size_t sent_ = 0;  // of backlog_
  bool watching_ = false;
  const void* owner_ = nullptr;
  std::vector<std::function<void()>> waiting_;
  int64_t lost_bytes_ = 0;
};

}  // namespace muster

#endif  // MUSTER_AGENT_CONSOLE_WRITER_H_
