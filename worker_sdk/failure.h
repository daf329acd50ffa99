#ifndef MUSTER_WORKER_SDK_FAILURE_H_
#define MUSTER_WORKER_SDK_FAILURE_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

// What LibTorch says in words, in types; and how a rank that fails tells the others why. No
// LibTorch here.
namespace muster {

enum class FailureKind { kOther, kPeerLost, kTimeout, kUnusedParameter };

// What a rank leaves behind for the others before it leaves the group.
struct FailureNote {
  FailureKind kind = FailureKind::kOther;
  int rank = 0;
  std::string what;
  std::vector<std::string> names;  // parameters
};

std::string Encode(const FailureNote& note);
std::optional<FailureNote> DecodeNote(const std::string& bytes);

// By the words that c10d and Gloo use.
FailureKind Classify(const std::string& message);

// The first line, without LibTorch's source positions and backtraces.
std::string FirstLine(const std::string& message);

// The numbers that follow "did not receive grad for rank <n>:" in Reducer's message.
std::vector<size_t> UnusedIndices(const std::string& message);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_FAILURE_H_
