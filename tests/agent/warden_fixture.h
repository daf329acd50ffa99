#ifndef MUSTER_TESTS_AGENT_WARDEN_FIXTURE_H_
#define MUSTER_TESTS_AGENT_WARDEN_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/warden_host.h"

namespace muster {

// Longer than anything here takes on the slowest machine: what waits so long has failed.
inline constexpr Duration kPatience = std::chrono::seconds(30);

// A process that may be anybody's child, held by its pidfd.
class Watched {
 public:
  explicit Watched(int pid);
  // Waits for its end (a zombie has ended). False when it does not come.
  bool Ends() const;
  bool IsAlive() const;

 private:
  UniqueFd pidfd_;
};

// The reading end of a worker's output.
class Output {
 public:
  // Makes the pipe; `writer` is for the worker.
  Output();
  UniqueFd writer;

  // The next line without its newline; what is left at the end of the file. Fails the test when
  // nothing comes.
  std::string Line();
  // Everything up to the end of the file: until the last process that holds it is gone.
  std::string All();
  // The next line as a pid.
  Watched Process() { return Watched(std::stoi(Line())); }

 private:
  bool Read();  // false at the end of the file

  UniqueFd reader_;
  std::string buffer_;
};

// A warden as the agent has it, and what it answers.
class WardenTest : public testing::Test {
 protected:
  void Start(const WardenOptions& options = {std::chrono::milliseconds(200), {}});

  // /bin/bash -c `script` as worker `id`.
  void Bash(uint32_t id, const std::string& script, Output& output,
            std::vector<std::string> env = {});
  void Spawn(SpawnRequest request, Output& output);
  void SignalTree(int signal) { host_->Signal({signal, true}); }

  // Runs the loop until an answer of type T has come that was not returned yet.
  template <class T>
  T Next() {
    for (size_t i = 0; WaitFor([&] { return i < answers_.size(); }); ++i) {
      if (const T* answer = std::get_if<T>(&answers_[i])) {
        const T copy = *answer;
        answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(i));
        return copy;
      }
    }
    ADD_FAILURE() << "no answer";
    return T();
  }

  // Runs the loop until `is_so`; false when it takes too long.
  bool WaitFor(const std::function<bool()>& is_so);

  EventLoop loop_;
  std::vector<WardenAnswer> answers_;
  bool lost_ = false;
  std::unique_ptr<WardenHost> host_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_AGENT_WARDEN_FIXTURE_H_
