#include "agent/descriptor_need.h"

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int kOfTheAgent = 16;
constexpr int kOfTheConnection = 32;  // gRPC's
// A file, both ends of a pipe, and a copy on its way to the warden.
constexpr int kOfTee = 4;
// A file, and a copy on its way to the warden.
constexpr int kOfRedirect = 2;

int OfStream(bool redirected, bool teed) {
  if (teed) return kOfTee;
  return redirected ? kOfRedirect : 0;
}

}  // namespace

int64_t DescriptorsNeeded(const AgentOptions& options) {
  int64_t needed = kOfTheAgent + (options.single_node() ? 0 : kOfTheConnection);
  for (int i = 0; i < options.slots; ++i) {
    const Streams redirect = options.log.redirects.For(i);
    const Streams tee = options.log.tee.For(i);
    needed += 1 + (options.stdin_mode == StdinMode::kInherit ? 0 : 1);
    needed += OfStream(HasStdout(redirect), HasStdout(tee));
    needed += OfStream(HasStderr(redirect), HasStderr(tee));
  }
  return needed;
}

absl::Status CheckDescriptorLimit(const AgentOptions& options, uint64_t limit) {
  const int64_t needed = DescriptorsNeeded(options);
  if (static_cast<uint64_t>(needed) <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the limit of open files is ", limit, " and ", options.slots,
                   " workers with these log options need ", needed,
                   ": raise the hard limit (ulimit -n), or start fewer workers on this node"));
}

}  // namespace muster
