#include "rendezvous/musterd_state.h"

#include <absl/strings/str_cat.h>

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "rendezvous/file_store.h"
#include "rendezvous/state_codec.h"

namespace muster {

absl::Status MusterdState::Open(const std::string& folder) {
  if (folder.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<FileStore>> store = FileStore::Open(folder);
  if (!store.ok()) return store.status();
  const absl::StatusOr<std::vector<StoredValue>> values = (*store)->Load();
  if (!values.ok()) return values.status();
  absl::StatusOr<MasterState> state = DecodeState(*values);
  if (!state.ok()) {
    return absl::Status(state.status().code(),
                        absl::StrCat("state folder ", folder, ": ", state.status().message()));
  }
  store_ = *std::move(store);
  state_ = *std::move(state);
  Log(LogLevel::kInfo, absl::StrCat("state folder ", folder, ": goes on with ", state_.jobs.size(),
                                    state_.jobs.size() == 1 ? " job" : " jobs"));
  return absl::OkStatus();
}

void MusterdState::Lend(MasterLoop::Options* options) {
  options->store = store_.get();
  options->restored = std::move(state_);
  options->on_store_trouble = [](const absl::Status& status) {
    if (status.ok()) return Log(LogLevel::kInfo, "the state can be written again");
    Log(LogLevel::kError,
        absl::StrCat(std::string(status.message()), "; jobs wait, and it is tried again"));
  };
}

}  // namespace muster
