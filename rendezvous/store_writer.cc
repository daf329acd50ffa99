#include "rendezvous/store_writer.h"

#include <pthread.h>

#include <utility>

#include "rendezvous/state_codec.h"

namespace muster {

StoreWriter::StoreWriter(const Clock* clock, StateStore* store,
                         std::function<void(absl::Status, Duration)> answer)
    : clock_(clock), store_(store), answer_(std::move(answer)), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "store");
}

StoreWriter::~StoreWriter() {
  {
    MutexLock lock(&mutex_);
    ends_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void StoreWriter::Write(std::vector<RecordChange> changes) {
  MutexLock lock(&mutex_);
  next_ = std::move(changes);
  changed_.SignalAll();
}

void StoreWriter::Run() {
  for (;;) {
    std::vector<RecordChange> changes;
    {
      MutexLock lock(&mutex_);
      while (!next_.has_value() && !ends_) changed_.Wait(&mutex_);
      if (!next_.has_value()) return;
      changes = *std::exchange(next_, std::nullopt);
    }
    std::vector<StoreWrite> writes;
    for (RecordChange& change : changes) {
      writes.push_back({std::move(change.key), std::nullopt});
      if (change.master) writes.back().value = EncodeMaster(*change.master);
      if (!change.record) continue;
      writes.back().value = EncodeJob(*change.record);
      writes.back().needed_for = NeededFor(*change.record);
    }
    const Time began = clock_->Now();
    absl::Status status = store_->Write(writes);
    answer_(std::move(status), clock_->Now() - began);
  }
}

}  // namespace muster
