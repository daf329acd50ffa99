#include <ATen/Functions.h>
#include <ATen/core/Generator.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <muster/world.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "worker_sdk/gloo_backend.h"
#include "worker_sdk/membership.h"
#include "worker_sdk/nccl_component.h"
#include "worker_sdk/store_address.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// For looking at the store after a failure, when its host may be gone.
constexpr milliseconds kNotePatience(2000);

// While one lives, LibTorch logs errors only. Asking a store that went with its host is worth no
// warning with a backtrace: the exception says it all.
class QuietLibTorch {
 public:
  QuietLibTorch() : before_(FLAGS_caffe2_log_level) { FLAGS_caffe2_log_level = c10::GLOG_ERROR; }
  ~QuietLibTorch() { FLAGS_caffe2_log_level = before_; }

 private:
  int before_;
};

class Deadline {
 public:
  explicit Deadline(milliseconds span) : span_(span), end_(Clock::now() + span) {}
  milliseconds span() const { return span_; }
  Clock::time_point end() const { return end_; }
  milliseconds left() const {
    return std::max(std::chrono::ceil<milliseconds>(end_ - Clock::now()), milliseconds(1));
  }

 private:
  milliseconds span_;
  Clock::time_point end_;
};

std::string Text(milliseconds span) {
  return span.count() % 1000 == 0 ? std::to_string(span.count() / 1000) + " s"
                                  : std::to_string(span.count()) + " ms";
}

std::string Endpoint(const Identity& self) {
  return self.master_addr + ":" + std::to_string(self.master_port);
}

c10::intrusive_ptr<c10d::Store> HostStore(const Identity& self, const Deadline& deadline) {
  c10d::TCPStoreOptions options;
  options.port = self.master_port;
  options.isServer = true;
  options.waitWorkers = false;
  options.timeout = deadline.left();
  try {
    return c10::make_intrusive<c10d::TCPStore>(self.master_addr, options);
  } catch (const std::exception& error) {
    throw Error("rank 0 cannot open the store at " + Endpoint(self) + ": " +
                FirstLine(MessageOf(error)) + "; is MASTER_PORT taken by another job?");
  }
}

c10::intrusive_ptr<c10d::Store> ReachStore(const Identity& self, const Deadline& deadline) {
  if (!AwaitListener(self.master_addr, self.master_port, deadline.end())) {
    throw Timeout("rank " + std::to_string(self.rank) + " waited " + Text(deadline.span()) +
                      " for rank 0 at " + Endpoint(self) +
                      ": is it running, and is MASTER_ADDR its address as seen from here?",
                  deadline.span(), {0});
  }
  c10d::TCPStoreOptions options;
  options.port = self.master_port;
  options.waitWorkers = false;
  options.timeout = deadline.left();
  try {
    return c10::make_intrusive<c10d::TCPStore>(self.master_addr, options);
  } catch (const std::exception& error) {
    throw Error("rank " + std::to_string(self.rank) + " cannot use what listens at " +
                Endpoint(self) + " as the store: " + FirstLine(MessageOf(error)));
  }
}

// Every rank signs in, and finds out who did not, or who did twice.
void CallTheRoll(const Identity& self, c10d::Store& store, const Deadline& deadline) {
  const auto key = [](int rank) { return "present/" + std::to_string(rank); };
  const std::string size = std::to_string(self.world_size);
  const auto first = store.compareSet("world_size", std::vector<uint8_t>(),
                                      std::vector<uint8_t>(size.begin(), size.end()));
  const std::string agreed(first.begin(), first.end());
  if (agreed != size) {
    throw Mismatch("rank " + std::to_string(self.rank) + " has WORLD_SIZE=" + size +
                   ", another worker at " + Endpoint(self) + " has " + agreed);
  }
  if (store.add(key(self.rank), 1) != 1) {
    throw Mismatch("two workers at " + Endpoint(self) + " have RANK=" + std::to_string(self.rank));
  }
  std::vector<std::string> keys;
  for (int rank = 0; rank < self.world_size; ++rank) keys.push_back(key(rank));
  try {
    store.wait(keys, deadline.left());
  } catch (const std::exception& error) {
    std::vector<int> missing;
    std::string names;
    for (int rank = 0; rank < self.world_size; ++rank) {
      if (store.check({key(rank)})) continue;
      missing.push_back(rank);
      names += (names.empty() ? "" : ", ") + std::to_string(rank);
    }
    throw Timeout("rank " + std::to_string(self.rank) + " waited " + Text(deadline.span()) +
                      " for rank " + names + " of " + size + " at " + Endpoint(self),
                  deadline.span(), missing);
  }
}

c10::intrusive_ptr<c10d::Store> OpenStore(const Identity& self, const Deadline& deadline) {
  if (self.world_size == 1) return c10::make_intrusive<c10d::HashStore>();
  auto base = self.rank == 0 ? HostStore(self, deadline) : ReachStore(self, deadline);
  auto store = c10::make_intrusive<c10d::PrefixStore>("muster/" + std::to_string(self.generation),
                                                      std::move(base));
  try {
    CallTheRoll(self, *store, deadline);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw PeerLost("the store of rank 0 at " + Endpoint(self) +
                       " went away while the ranks gathered: " + FirstLine(MessageOf(error)),
                   {0});
  }
  return store;
}

GlooAddress ChooseAddress(const Identity& self, const InitOptions& options) {
  if (!options.interface().empty()) return {.interface = options.interface(), .host = ""};
  if (!self.local_addr.empty()) return {.interface = "", .host = self.local_addr};
  const char* named = std::getenv("GLOO_SOCKET_IFNAME");
  if (named != nullptr && *named != '\0') return {};
  if (self.world_size == 1 || IsLoopback(self.master_addr)) {
    return {.interface = "", .host = "127.0.0.1"};
  }
  return {};
}

std::string Text(const GlooAddress& address) {
  if (!address.interface.empty()) return "interface " + address.interface;
  if (!address.host.empty()) return "address " + address.host;
  const char* named = std::getenv("GLOO_SOCKET_IFNAME");
  return named != nullptr ? std::string("interface ") + named + " (GLOO_SOCKET_IFNAME)"
                          : "the address of this host's name";
}

bool WantsNccl(const std::string& backend) {
  if (backend == "nccl") return true;
  if (backend == "auto") return NcclLooksUsable();
  if (backend == "gloo") return false;
  throw Error("there is no backend '" + backend + "': use auto, gloo or nccl");
}

// The groups of both backends where there are both: CPU tensors always go over Gloo.
void MakeGroup(Membership& self, const Deadline& deadline) {
  using Group = c10d::ProcessGroup;
  const Identity& id = self.identity;
  auto group = c10::make_intrusive<Group>(self.store, id.rank, id.world_size);
  const bool nccl = WantsNccl(self.options.backend());
  self.backend = nccl ? "nccl" : "gloo";
  if (nccl) {
    auto opened = OpenNccl(c10::make_intrusive<c10d::PrefixStore>("nccl", self.store), id.rank,
                           id.world_size, id.local_rank, self.options.op_timeout());
    self.device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(opened.device));
    group->setBackend(at::kCUDA, Group::BackendType::NCCL, opened.backend);
  }
  const GlooAddress address = ChooseAddress(id, self.options);
  try {
    group->setBackend(at::kCPU, Group::BackendType::GLOO,
                      MakeGlooBackend(c10::make_intrusive<c10d::PrefixStore>("gloo", self.store),
                                      id.rank, id.world_size, deadline.left(), address));
  } catch (const std::exception& error) {
    const std::string tried = "rank " + std::to_string(id.rank) + " cannot connect Gloo on " +
                              Text(address) + ": " + FirstLine(MessageOf(error));
    switch (Classify(MessageOf(error))) {
      case FailureKind::kTimeout:
        throw Timeout(tried, deadline.span());
      case FailureKind::kPeerLost:
        throw PeerLost(tried);
      default:
        throw Error(tried + "; choose with InitOptions::interface or GLOO_SOCKET_IFNAME");
    }
  }
  group->setDefaultBackend(nccl ? Group::BackendType::NCCL : Group::BackendType::GLOO);
  self.group = std::move(group);
}

c10d::ReduceOp::RedOpType ReduceOpOf(Op op) {
  switch (op) {
    case Op::sum:
    case Op::mean:
      return c10d::ReduceOp::SUM;
    case Op::min:
      return c10d::ReduceOp::MIN;
    case Op::max:
      return c10d::ReduceOp::MAX;
  }
  throw Error("no such operation");
}

void Wait(const c10::intrusive_ptr<c10d::Work>& work) {
  if (work) work->wait();
}

}  // namespace

std::string MessageOf(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

const c10::intrusive_ptr<c10d::ProcessGroup>& Membership::Group() const {
  if (!group)
    throw PeerLost("this rank left its group after an error: start again from a checkpoint");
  return group;
}

void Membership::ThrowTyped(const char* what, const std::exception& error) const {
  const std::string message = MessageOf(error);
  const std::string tried = "rank " + std::to_string(identity.rank) + " of " +
                            std::to_string(identity.world_size) + ", " + what + ": ";
  const FailureKind kind = Classify(message);
  if (kind == FailureKind::kTimeout)
    throw Timeout(tried + FirstLine(message), options.op_timeout());
  if (kind != FailureKind::kPeerLost) throw Error(tried + FirstLine(message));
  std::optional<FailureNote> note;
  try {
    const QuietLibTorch quiet;
    store->setTimeout(kNotePatience);
    if (store->check({"failure"})) {
      const auto bytes = store->get("failure");
      note = DecodeNote(std::string(bytes.begin(), bytes.end()));
    }
  } catch (const std::exception&) {
    // The store was on the host that is gone.
  }
  if (!note) throw PeerLost(tried + "a peer is gone (" + FirstLine(message) + ")");
  if (note->kind == FailureKind::kUnusedParameter) throw UnusedParameter(note->what, note->names);
  throw PeerLost(tried + "rank " + std::to_string(note->rank) + " left: " + note->what,
                 {note->rank});
}

void Membership::Leave(const FailureNote& note) {
  if (!group) return;
  try {
    const QuietLibTorch quiet;
    store->setTimeout(kNotePatience);
    const std::string text = Encode(note);
    store->compareSet("failure", std::vector<uint8_t>(),
                      std::vector<uint8_t>(text.begin(), text.end()));
  } catch (const std::exception&) {
    // Then the others learn only that this rank is gone.
  }
  group.reset();
}

World::World(std::shared_ptr<Membership> membership) : membership_(std::move(membership)) {}

int World::rank() const { return membership_->identity.rank; }
int World::size() const { return membership_->identity.world_size; }
int World::local_rank() const { return membership_->identity.local_rank; }
int World::local_size() const { return membership_->identity.local_world_size; }
int World::node() const { return membership_->identity.node; }
int World::nodes() const { return membership_->identity.nodes; }
int64_t World::generation() const { return membership_->identity.generation; }
bool World::leader() const { return rank() == 0; }
const Identity& World::identity() const { return membership_->identity; }
at::Device World::device() const { return membership_->device; }
const std::string& World::backend() const { return membership_->backend; }
AgentLink& World::agent() const { return membership_->agent; }
const c10::intrusive_ptr<c10d::ProcessGroup>& World::process_group() const {
  return membership_->Group();
}

void World::seed(uint64_t base) const { at::manual_seed(base + static_cast<uint64_t>(rank())); }

void World::all_reduce(at::Tensor tensor, Op op) const {
  const at::NoGradGuard no_grad;
  at::Tensor dense = tensor.detach().contiguous();
  membership_->Guard("all_reduce", [&] {
    std::vector<at::Tensor> tensors = {dense};
    c10d::AllreduceOptions options;
    options.reduceOp = ReduceOpOf(op);
    Wait(process_group()->allreduce(tensors, options));
  });
  if (op == Op::mean) {
    if (at::isIntegralType(dense.scalar_type(), true)) {
      dense.div_(size(), "trunc");
    } else {
      dense.div_(size());
    }
  }
  if (!dense.is_alias_of(tensor)) tensor.detach().copy_(dense);
}

void World::broadcast(at::Tensor tensor, int root) const {
  const at::NoGradGuard no_grad;
  at::Tensor dense = tensor.detach().contiguous();
  membership_->Guard("broadcast", [&] {
    std::vector<at::Tensor> tensors = {dense};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    Wait(process_group()->broadcast(tensors, options));
  });
  if (!dense.is_alias_of(tensor)) tensor.detach().copy_(dense);
}

at::Tensor World::all_gather(const at::Tensor& tensor) const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> inputs = {tensor.detach().contiguous()};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int rank = 0; rank < size(); ++rank) outputs[0].push_back(at::empty_like(inputs[0]));
  membership_->Guard("all_gather", [&] { Wait(process_group()->allgather(outputs, inputs)); });
  return at::stack(outputs[0]);
}

void World::barrier() const {
  membership_->Guard("barrier", [&] {
    c10d::BarrierOptions options;
    options.device = device();
    Wait(process_group()->barrier(options));
  });
}

World init(const Identity& identity, const InitOptions& options) {
  const Deadline deadline(options.init_timeout());
  auto self = std::make_shared<Membership>();
  self->identity = identity;
  self->options = options;
  if (!options.interface().empty()) setenv("NCCL_SOCKET_IFNAME", options.interface().c_str(), 1);
  self->store = OpenStore(identity, deadline);
  MakeGroup(*self, deadline);
  World world(self);
  // The first collective connects what connects lazily, and shows at once what does not work.
  at::Tensor ones = at::ones({1}, at::TensorOptions().device(self->device));
  world.all_reduce(ones);
  if (ones.item<float>() != static_cast<float>(identity.world_size)) {
    throw Error("the first all_reduce over " + std::to_string(identity.world_size) +
                " ranks gave a wrong sum: the " + self->backend + " backend does not work here");
  }
  self->group->setTimeout(options.op_timeout());
  self->store->setTimeout(options.op_timeout());
  return world;
}

World init(const InitOptions& options) { return init(identity(), options); }

}  // namespace muster
