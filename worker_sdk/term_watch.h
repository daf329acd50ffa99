#ifndef MUSTER_WORKER_SDK_TERM_WATCH_H_
#define MUSTER_WORKER_SDK_TERM_WATCH_H_

#include <functional>
#include <thread>

#include "base/unique_fd.h"

namespace muster {

// While one lives, a SIGTERM, where nothing was chosen for it, ends the process only after
// `last_words` has run, in a thread of its own: whatever the others do, and soon. One at a time.
class TermWatch {
 public:
  explicit TermWatch(std::function<void()> last_words);
  ~TermWatch();
  TermWatch(const TermWatch&) = delete;
  TermWatch& operator=(const TermWatch&) = delete;

 private:
  void Watch();

  std::function<void()> last_words_;
  UniqueFd told_, stop_;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_TERM_WATCH_H_
