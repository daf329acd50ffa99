#ifndef MUSTER_BASE_ATOMIC_FILE_H_
#define MUSTER_BASE_ATOMIC_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

// Replaces the file `path` by one with this content: who reads it sees the old one or the new one,
// whole. A link is followed. What is no regular file (/dev/stderr, a pipe) is written to as it is,
// without waiting for a reader. Blocks as the disk does. Internal: one line with the path; the old
// file is then untouched and nothing else is left.
absl::Status ReplaceFile(const std::string& path, std::string_view content);

// Whether ReplaceFile could do so now. Changes nothing. PermissionDenied: one line with the path.
absl::Status CheckReplaceable(const std::string& path);

}  // namespace muster

#endif  // MUSTER_BASE_ATOMIC_FILE_H_
