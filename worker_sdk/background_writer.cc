#include "worker_sdk/background_writer.h"

#include <utility>

namespace muster {

BackgroundWriter::~BackgroundWriter() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundWriter::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !work_; });
  if (const auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

void BackgroundWriter::Start(std::function<void()> work) {
  Wait();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !work_; });  // another caller may have been faster
    work_ = std::move(work);
    if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
  }
  changed_.notify_all();
}

bool BackgroundWriter::failed() const {
  const std::lock_guard lock(mutex_);
  return !work_ && error_ != nullptr;
}

void BackgroundWriter::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return work_ || ends_; });
    if (!work_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      work_();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    work_ = nullptr;  // what it holds, too: its memory is free again
    changed_.notify_all();
  }
}

}  // namespace muster
