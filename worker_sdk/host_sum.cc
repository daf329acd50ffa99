#include "worker_sdk/host_sum.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <muster/error.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

namespace muster {
namespace {

// What a rank says of the tensor that it sums, in front of its numbers.
struct alignas(64) Label {
  int64_t bytes;
  at::ScalarType type;
};

constexpr size_t kPieceBytes = HostMemory::kPartBytes - sizeof(Label);
// Up to here it is quicker that each rank adds up everything than that they meet once more to
// exchange what each has added up.
constexpr size_t kSmallBytes = 4096;
// LibTorch would wake other threads for more.
constexpr int64_t kElementsAtOnce = 32768;
constexpr int64_t kAlignedElements = 64;

at::Tensor View(std::byte* numbers, int64_t from, int64_t to, at::ScalarType type) {
  const auto offset = static_cast<size_t>(from) * c10::elementSize(type);
  return at::from_blob(numbers + offset, {to - from}, at::TensorOptions().dtype(type));
}

std::string Text(const Label& label) {
  const auto size = static_cast<int64_t>(c10::elementSize(label.type));
  return std::to_string(label.bytes / size) + " numbers of type " + c10::toString(label.type);
}

}  // namespace

// What the thread needs.
class HostSum::Shop {
 public:
  explicit Shop(std::shared_ptr<HostMemory> memory) : memory_(std::move(memory)) {}
  void Add(c10::intrusive_ptr<Job> job);
  void Work();  // in the thread, until End()
  void Close() { memory_->Leave(); }
  void End();
  void Sum(const at::Tensor& tensor, std::chrono::milliseconds timeout);

 private:
  void SumPiece(const at::Tensor& piece, size_t total,
                std::chrono::steady_clock::time_point deadline);

  const std::shared_ptr<HostMemory> memory_;
  int turn_ = 0;  // which of a rank's two parts is written next
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<c10::intrusive_ptr<Job>> jobs_;
  bool ends_ = false;
};

class HostSum::Job : public c10d::Work {
 public:
  Job(at::Tensor tensor, std::chrono::milliseconds timeout)
      : Work(-1, c10d::OpType::ALLREDUCE),
        tensor_(std::move(tensor)),
        timeout_(timeout),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {}

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::vector<at::Tensor> result() override { return {tensor_}; }

  void Run(Shop& shop) {
    try {
      shop.Sum(tensor_, timeout_);
      future_->markCompleted(c10::IValue(result()));
      finish();
    } catch (...) {
      future_->setError(std::current_exception());
      finish(std::current_exception());
    }
  }

 private:
  const at::Tensor tensor_;
  const std::chrono::milliseconds timeout_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

HostSum::HostSum(std::shared_ptr<HostMemory> memory)
    : shop_(std::make_shared<Shop>(std::move(memory))), thread_([shop = shop_] { shop->Work(); }) {}

HostSum::~HostSum() {
  shop_->End();
  // What a future calls in the thread may be the last to hold the group.
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

bool HostSum::Takes(const at::Tensor& tensor) {
  constexpr std::array kTypes = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,
                                 at::kInt,   at::kLong,   at::kChar, at::kByte};
  return tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.is_contiguous() &&
         tensor.numel() > 0 &&
         std::find(kTypes.begin(), kTypes.end(), tensor.scalar_type()) != kTypes.end();
}

c10::intrusive_ptr<c10d::Work> HostSum::Start(const at::Tensor& tensor,
                                              std::chrono::milliseconds timeout) {
  auto job = c10::make_intrusive<Job>(tensor, timeout);
  shop_->Add(job);
  return job;
}

void HostSum::Close() { shop_->Close(); }

void HostSum::Shop::Add(c10::intrusive_ptr<Job> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void HostSum::Shop::End() {
  Close();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

void HostSum::Shop::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !jobs_.empty() || ends_; });
    if (jobs_.empty()) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job->Run(*this);
    job.reset();  // what it holds may lead to End()
    lock.lock();
  }
}

void HostSum::Shop::Sum(const at::Tensor& tensor, std::chrono::milliseconds timeout) {
  const at::NoGradGuard no_grad;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const at::Tensor row = tensor.detach().view({-1});
  const auto at_once = static_cast<int64_t>(kPieceBytes / row.element_size());
  for (const at::Tensor& piece : row.split(at_once)) SumPiece(piece, row.nbytes(), deadline);
}

void HostSum::Shop::SumPiece(const at::Tensor& piece, size_t total,
                             std::chrono::steady_clock::time_point deadline) {
  const int own_rank = memory_->rank(), ranks = memory_->ranks();
  const at::ScalarType type = piece.scalar_type();
  // The other part: somebody may still read the last one.
  const int which = std::exchange(turn_, 1 - turn_);
  const auto part = [&](int rank) { return memory_->Part(rank, which); };
  const Label own{static_cast<int64_t>(total), type};
  std::memcpy(part(own_rank), &own, sizeof own);
  std::memcpy(part(own_rank) + sizeof own, piece.const_data_ptr(), piece.nbytes());
  memory_->Meet(deadline);
  for (int rank = 1; rank < ranks; ++rank) {
    Label first, theirs;
    std::memcpy(&first, part(0), sizeof first);
    std::memcpy(&theirs, part(rank), sizeof theirs);
    if (theirs.bytes == first.bytes && theirs.type == first.type) continue;
    throw Mismatch("the ranks are in different collectives: rank 0 sums " + Text(first) +
                   ", rank " + std::to_string(rank) + " " + Text(theirs));
  }
  const int64_t all = piece.numel();
  const bool each_adds_all = ranks == 2 || piece.nbytes() <= kSmallBytes;
  const int64_t share =
      each_adds_all ? all : (all / ranks + kAlignedElements) / kAlignedElements * kAlignedElements;
  const int64_t begin = each_adds_all ? 0 : std::min(own_rank * share, all);
  const int64_t end = std::min(begin + share, all);
  auto* const sums = static_cast<std::byte*>(piece.mutable_data_ptr());
  for (int64_t from = begin; from < end; from += kElementsAtOnce) {
    const int64_t to = std::min(from + kElementsAtOnce, end);
    const auto of = [&](int rank) { return View(part(rank) + sizeof(Label), from, to, type); };
    at::Tensor sum = View(sums, from, to, type);
    at::add_out(sum, of(0), of(1));
    for (int rank = 2; rank < ranks; ++rank) sum.add_(of(rank));
  }
  if (each_adds_all) return;
  std::byte* const common = memory_->CommonPart();
  const auto copy = [&](std::byte* target, const std::byte* source, int64_t from, int64_t to) {
    const auto size = static_cast<size_t>(piece.element_size());
    const size_t offset = static_cast<size_t>(from) * size;
    std::memcpy(target + offset, source + offset, static_cast<size_t>(to - from) * size);
  };
  copy(common, sums, begin, end);
  memory_->Meet(deadline);
  copy(sums, common, 0, begin);
  copy(sums, common, end, all);
}

}  // namespace muster
