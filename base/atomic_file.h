#ifndef MUSTER_BASE_ATOMIC_FILE_H_
#define MUSTER_BASE_ATOMIC_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

// Replaces the file `path` by one with this content: who reads it sees the old one or the new one,
// whole. Blocks as the disk does. Internal: one line with the path; the old file is then untouched
// and nothing else is left.
absl::Status ReplaceFile(const std::string& path, std::string_view content);

}  // namespace muster

#endif  // MUSTER_BASE_ATOMIC_FILE_H_
