#ifndef MUSTER_AGENT_CONSOLE_WRITER_H_
#define MUSTER_AGENT_CONSOLE_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/output_fd.h"
#include "base/time.h"
#include "base/unique_fd.h"

namespace muster {

// One of the launcher's own streams as several writers (tee'd streams of workers) share it. What
// the console does not take at once waits here; a writer reads no more input while OpenTo(it) is
// false and asks to be called when that changes. So a slow console slows down only those who write
// to it. Writers are known by their address. Everything happens on the loop's thread.
class ConsoleWriter {
 public:
  // `fd` stays the caller's. `long_line_hold`: how long one writer's long line may keep the others
  // waiting.
  ConsoleWriter(EventLoop& loop, int fd, Duration long_line_hold);
  ~ConsoleWriter();
  ConsoleWriter(const ConsoleWriter&) = delete;
  ConsoleWriter& operator=(const ConsoleWriter&) = delete;

  // Takes `text` in any case; what cannot be written is kept. When the reader is gone or the disk
  // is full it is dropped and counted, with one warning.
  void Write(std::string_view text);

  // Nothing waits, and no other writer is in the middle of a line.
  bool OpenTo(const void* writer) const {
    return flushed() && (owner_ == nullptr || owner_ == writer);
  }

  // Calls back once, from the loop, when OpenTo(writer) is true. Waiting writers have their turns
  // in order.
  void CallWhenOpen(const void* writer, std::function<void()> callback);

  // `writer` has written a part of a line: the others wait until it calls Release. `give_up` is
  // called when that takes too long; it must complete the line and Release.
  void Claim(const void* writer, std::function<void()> give_up);
  void Release(const void* writer);

  // Makes another writer that is in the middle of a line give up.
  void Interrupt(const void* writer);

  // `writer` ends: releases, and is not called any more.
  void Forget(const void* writer);

  // Blocks until all that waits is written (true), `deadline`, or `interrupt_fd` (-1: none) is
  // readable.
  bool Flush(Time deadline, int interrupt_fd);

  bool flushed() const { return sent_ == backlog_.size(); }
  int64_t lost_bytes() const { return lost_bytes_; }

 private:
  struct Waiting {
    const void* writer;
    std::function<void()> callback;
  };

  void WriteBacklog();
  void OnTaken();
  void CallWaiting();
  void ArmHold();
  void DisarmHold();
  void Drop(int error, size_t bytes);

  EventLoop& loop_;
  OutputFd fd_;
  Duration long_line_hold_;
  std::string backlog_;
  size_t sent_ = 0;  // of backlog_
  bool watching_ = false;
  const void* owner_ = nullptr;
  std::function<void()> give_up_;
  UniqueFd hold_timer_;  // armed while somebody waits for the owner
  std::vector<Waiting> waiting_;
  int64_t lost_bytes_ = 0;
};

}  // namespace muster

#endif  // MUSTER_AGENT_CONSOLE_WRITER_H_
