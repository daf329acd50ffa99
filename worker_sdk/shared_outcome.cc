#include "worker_sdk/shared_outcome.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

namespace muster {
namespace {

template <class E>
E Made(const std::string& text, bool everywhere) {
  E error(text);
  error.everywhere = everywhere;
  return error;
}

// In pieces, so that a large text needs no second copy of itself.
void BroadcastText(const World& world, std::string& text, int64_t size) {
  constexpr int64_t kPiece = 64 << 20;
  text.resize(static_cast<size_t>(size));
  for (int64_t from = 0; from < size; from += kPiece) {
    const int64_t count = std::min(kPiece, size - from);
    const at::Tensor piece = at::empty({count}, at::kByte);
    std::memcpy(piece.data_ptr(), text.data() + from, static_cast<size_t>(count));
    world.broadcast(piece);
    std::memcpy(text.data() + from, piece.data_ptr(), static_cast<size_t>(count));
  }
}

}  // namespace

void Throw(const Report& report, bool everywhere) {
  switch (report.outcome) {
    case Outcome::kStale:
      throw Made<StaleGeneration>(report.text, everywhere);
    case Outcome::kCorrupt:
      throw Made<CheckpointCorrupt>(report.text, everywhere);
    default:
      throw Made<CheckpointError>(report.text, everywhere);
  }
}

void Share(const World& world, Report& report) {
  const at::Tensor head = at::empty({2}, at::kLong);
  head.data_ptr<int64_t>()[0] = static_cast<int64_t>(report.outcome);
  head.data_ptr<int64_t>()[1] = static_cast<int64_t>(report.text.size());
  world.broadcast(head);
  report.outcome = static_cast<Outcome>(head.data_ptr<int64_t>()[0]);
  BroadcastText(world, report.text, head.data_ptr<int64_t>()[1]);
}

}  // namespace muster
