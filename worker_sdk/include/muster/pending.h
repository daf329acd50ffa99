#ifndef MUSTER_PENDING_H_
#define MUSTER_PENDING_H_

#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <memory>
#include <vector>

namespace c10d {
class Work;
}

namespace muster {

class Membership;

// A collective that was started. Copies are the same one. One without a start (`Pending()`) is
// done.
//
// Whoever starts a collective calls wait(), before the tensors are read or changed, and before the
// World ends. Not thread-safe.
class Pending {
 public:
  Pending() = default;
  // The SDK makes these.
  Pending(std::shared_ptr<Membership> membership, const char* what,
          c10::intrusive_ptr<c10d::Work> work);

  // Blocks until it is done, then runs the steps; once, however often it is called. Throws as the
  // collective does.
  void wait() const;
  bool done() const;  // wait() would not block

  // Adds a step that is run when the collective is done: in wait(), or, for a Pending that a
  // communication hook returns, in a thread of the backend.
  Pending& then(std::function<void()> step);

 private:
  friend class HookAdapter;
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster

#endif  // MUSTER_PENDING_H_
