#include "worker_sdk/host_collectives.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <muster/error.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

namespace muster {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

// What a rank says that it does, in front of its numbers.
struct alignas(64) Label {
  c10d::OpType what;
  at::ScalarType type;  // kByte where it makes no difference
  int32_t root;
  int64_t bytes;

  bool operator==(const Label& other) const {
    return what == other.what && type == other.type && root == other.root && bytes == other.bytes;
  }
  std::string Text() const {
    const std::string of = " of " + std::to_string(bytes) + " bytes";
    if (what == c10d::OpType::BROADCAST) return "broadcast from rank " + std::to_string(root) + of;
    if (what == c10d::OpType::ALLGATHER) return "all_gather" + of;
    return "all_reduce" + of + " of " + c10::toString(type);
  }
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

std::byte* BytesOf(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

}  // namespace

// What the thread needs.
class HostCollectives::Shop {
 public:
  explicit Shop(std::shared_ptr<HostMemory> memory) : memory_(std::move(memory)) {}
  HostCollectives::Work Start(c10::intrusive_ptr<Job> job);
  void Work();  // in the thread, until End()
  void Close() { memory_->Leave(); }
  void End();

  void Sum(const at::Tensor& tensor, Deadline deadline);
  void Copy(const at::Tensor& tensor, int root, Deadline deadline);
  void Gather(const std::vector<at::Tensor>& outputs, const at::Tensor& input, Deadline deadline);

 private:
  // Writes what this rank does, and `bytes` if there are any; returns when all have done so, and
  // which part is theirs. Throws Mismatch if it is not the same.
  int Exchange(const Label& own, const std::byte* bytes, size_t size, Deadline deadline);
  std::byte* Written(int rank, int which) const {
    return memory_->Part(rank, which) + sizeof(Label);
  }
  void SumPiece(const Label& label, std::byte* numbers, size_t size, Deadline deadline);

  const std::shared_ptr<HostMemory> memory_;
  int turn_ = 0;  // which of a rank's two parts is written next
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<c10::intrusive_ptr<Job>> jobs_;
  bool ends_ = false;
};

class HostCollectives::Job : public c10d::Work {
 public:
  using Body = std::function<void(Shop&, Deadline)>;
  Job(c10d::OpType what, std::vector<at::Tensor> tensors, Span timeout, Body body)
      : Work(-1, what),
        tensors_(std::move(tensors)),
        timeout_(timeout),
        body_(std::move(body)),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {}

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::vector<at::Tensor> result() override { return tensors_; }

  void Run(Shop& shop) {
    const at::NoGradGuard no_grad;
    try {
      body_(shop, std::chrono::steady_clock::now() + timeout_);
      future_->markCompleted(c10::IValue(tensors_));
      finish();
    } catch (...) {
      future_->setError(std::current_exception());
      finish(std::current_exception());
    }
  }

 private:
  const std::vector<at::Tensor> tensors_;
  const Span timeout_;
  const Body body_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

HostCollectives::HostCollectives(std::shared_ptr<HostMemory> memory)
    : shop_(std::make_shared<Shop>(std::move(memory))), thread_([shop = shop_] { shop->Work(); }) {}

HostCollectives::~HostCollectives() {
  shop_->End();
  // What a future calls in the thread may be the last to hold the group.
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

bool HostCollectives::Copies(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.is_contiguous() &&
         tensor.numel() > 0;
}

bool HostCollectives::Sums(const at::Tensor& tensor) {
  constexpr std::array kTypes = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,
                                 at::kInt,   at::kLong,   at::kChar, at::kByte};
  return Copies(tensor) &&
         std::find(kTypes.begin(), kTypes.end(), tensor.scalar_type()) != kTypes.end();
}

HostCollectives::Work HostCollectives::AllReduce(const at::Tensor& tensor, Span timeout) {
  return shop_->Start(c10::make_intrusive<Job>(
      c10d::OpType::ALLREDUCE, std::vector{tensor}, timeout,
      [tensor](Shop& shop, Deadline deadline) { shop.Sum(tensor, deadline); }));
}

HostCollectives::Work HostCollectives::Broadcast(const at::Tensor& tensor, int root, Span timeout) {
  return shop_->Start(c10::make_intrusive<Job>(
      c10d::OpType::BROADCAST, std::vector{tensor}, timeout,
      [tensor, root](Shop& shop, Deadline deadline) { shop.Copy(tensor, root, deadline); }));
}

HostCollectives::Work HostCollectives::AllGather(const std::vector<at::Tensor>& outputs,
                                                 const at::Tensor& input, Span timeout) {
  return shop_->Start(c10::make_intrusive<Job>(
      c10d::OpType::ALLGATHER, outputs, timeout,
      [outputs, input](Shop& shop, Deadline deadline) { shop.Gather(outputs, input, deadline); }));
}

void HostCollectives::Close() { shop_->Close(); }

HostCollectives::Work HostCollectives::Shop::Start(c10::intrusive_ptr<Job> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
  }
  changed_.notify_all();
  return job;
}

void HostCollectives::Shop::End() {
  Close();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

void HostCollectives::Shop::Work() {
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

int HostCollectives::Shop::Exchange(const Label& own, const std::byte* bytes, size_t size,
                                    Deadline deadline) {
  // The other part: somebody may still read the last one.
  const int which = std::exchange(turn_, 1 - turn_);
  std::memcpy(memory_->Part(memory_->rank(), which), &own, sizeof own);
  if (bytes != nullptr) std::memcpy(Written(memory_->rank(), which), bytes, size);
  memory_->Meet(deadline);
  const auto label = [&](int rank) {
    Label theirs;
    std::memcpy(&theirs, memory_->Part(rank, which), sizeof theirs);
    return theirs;
  };
  const Label first = label(0);
  for (int rank = 1; rank < memory_->ranks(); ++rank) {
    if (label(rank) == first) continue;
    throw Mismatch("the ranks are in different collectives: rank 0 in " + first.Text() + ", rank " +
                   std::to_string(rank) + " in " + label(rank).Text());
  }
  return which;
}

void HostCollectives::Shop::Copy(const at::Tensor& tensor, int root, Deadline deadline) {
  const size_t total = tensor.nbytes();
  const Label label{c10d::OpType::BROADCAST, at::kByte, root, static_cast<int64_t>(total)};
  const bool is_root = memory_->rank() == root;
  for (size_t from = 0; from < total; from += kPieceBytes) {
    const size_t size = std::min(kPieceBytes, total - from);
    std::byte* const piece = BytesOf(tensor) + from;
    const int which = Exchange(label, is_root ? piece : nullptr, size, deadline);
    if (!is_root) std::memcpy(piece, Written(root, which), size);
  }
}

void HostCollectives::Shop::Gather(const std::vector<at::Tensor>& outputs, const at::Tensor& input,
                                   Deadline deadline) {
  const size_t total = input.nbytes();
  const Label label{c10d::OpType::ALLGATHER, at::kByte, 0, static_cast<int64_t>(total)};
  for (size_t from = 0; from < total; from += kPieceBytes) {
    const size_t size = std::min(kPieceBytes, total - from);
    const int which = Exchange(label, BytesOf(input) + from, size, deadline);
    for (int rank = 0; rank < memory_->ranks(); ++rank) {
      std::memcpy(BytesOf(outputs[static_cast<size_t>(rank)]) + from, Written(rank, which), size);
    }
  }
}

void HostCollectives::Shop::Sum(const at::Tensor& tensor, Deadline deadline) {
  const size_t total = tensor.nbytes();
  const Label label{c10d::OpType::ALLREDUCE, tensor.scalar_type(), 0, static_cast<int64_t>(total)};
  for (size_t from = 0; from < total; from += kPieceBytes) {
    SumPiece(label, BytesOf(tensor) + from, std::min(kPieceBytes, total - from), deadline);
  }
}

void HostCollectives::Shop::SumPiece(const Label& label, std::byte* numbers, size_t size,
                                     Deadline deadline) {
  const int ranks = memory_->ranks();
  const int which = Exchange(label, numbers, size, deadline);
  const size_t element = c10::elementSize(label.type);
  const auto all = static_cast<int64_t>(size / element);
  const bool each_adds_all = ranks == 2 || size <= kSmallBytes;
  const int64_t share = (all / ranks + kAlignedElements) / kAlignedElements * kAlignedElements;
  const int64_t begin = each_adds_all ? 0 : std::min(memory_->rank() * share, all);
  const int64_t end = each_adds_all ? all : std::min(begin + share, all);
  for (int64_t from = begin; from < end; from += kElementsAtOnce) {
    const int64_t to = std::min(from + kElementsAtOnce, end);
    const auto of = [&](int rank) { return View(Written(rank, which), from, to, label.type); };
    at::Tensor sum = View(numbers, from, to, label.type);
    at::add_out(sum, of(0), of(1));
    for (int rank = 2; rank < ranks; ++rank) sum.add_(of(rank));
  }
  if (each_adds_all) return;
  std::byte* const common = memory_->CommonPart();
  const size_t own_begin = static_cast<size_t>(begin) * element;
  const size_t own_end = static_cast<size_t>(end) * element;
  std::memcpy(common + own_begin, numbers + own_begin, own_end - own_begin);
  memory_->Meet(deadline);
  std::memcpy(numbers, common, own_begin);
  std::memcpy(numbers + own_end, common + own_end, size - own_end);
}

}  // namespace muster
