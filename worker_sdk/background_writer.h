#ifndef MUSTER_WORKER_SDK_BACKGROUND_WRITER_H_
#define MUSTER_WORKER_SDK_BACKGROUND_WRITER_H_

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace muster {

// One thread that does one piece of work at a time. The thread begins with the first piece. All
// functions may be called from any thread.
class BackgroundWriter {
 public:
  BackgroundWriter() = default;
  ~BackgroundWriter();  // does what was started, to its end; an error nobody waited for is dropped
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Blocks until nothing is being done. Throws what the last piece threw, once.
  void Wait();
  // Wait(), then hands over `work`.
  void Start(std::function<void()> work);
  // True: Wait() would throw now.
  bool failed() const;

 private:
  void Work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // set: to be done or being done
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_BACKGROUND_WRITER_H_
