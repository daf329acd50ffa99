#ifndef MUSTER_RENDEZVOUS_STATE_FILE_H_
#define MUSTER_RENDEZVOUS_STATE_FILE_H_

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

#include "rendezvous/state_store.h"

namespace muster {

// One value of a FileStore as the bytes of its file: a line "muster-state VERSION CRC32C BYTES
// KEY", readable by `head -1`, then the value. The checksum covers version, length, key and value.

// Of the lines and of the folder as a whole; a program reads its own version only.
inline constexpr int kStateVersion = 1;

std::string StateFileText(const StoredValue& value);

// What is wrong, without the name of the file:
//   Unimplemented  written by a version that this program does not know
//   DataLoss       not such a file, cut short, longer than it says, or a byte has changed
absl::StatusOr<StoredValue> ParseStateFile(absl::string_view text);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STATE_FILE_H_
