#include <ATen/Functions.h>
#include <ATen/core/Generator.h>
#include <muster/world.h>
#include <signal.h>

#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "worker_sdk/check_settings.h"
#include "worker_sdk/data_split.h"
#include "worker_sdk/gloo_backend.h"
#include "worker_sdk/membership.h"
#include "worker_sdk/nccl_component.h"
#include "worker_sdk/share_memory.h"
#include "worker_sdk/store_address.h"
#include "worker_sdk/store_text.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

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
    throw Timeout("rank " + std::to_string(self.rank) + " waited " + SpanText(deadline.span()) +
                      " for rank 0 at " + Endpoint(self) +
                      ": is it running, and is MASTER_ADDR its address as seen from here?",
                  deadline.span(), {0});
  }
  c10d::TCPStoreOptions options;
  options.port = self.master_port;
  options.waitWorkers = false;
  options.timeout = deadline.left();
  // In a thread of its own: TCPStore waits without end for what accepts and then says nothing.
  std::packaged_task<c10::intrusive_ptr<c10d::Store>()> open([host = self.master_addr, options] {
    return c10::make_intrusive<c10d::TCPStore>(host, options);
  });
  auto store = open.get_future();
  std::thread(std::move(open)).detach();
  if (store.wait_until(deadline.end()) != std::future_status::ready) {
    throw Timeout("rank " + std::to_string(self.rank) + " reached " + Endpoint(self) +
                      ", but nothing there answered as rank 0's store within " +
                      SpanText(deadline.span()) + ": is MASTER_PORT another program's?",
                  deadline.span(), {0});
  }
  try {
    return store.get();
  } catch (const std::exception& error) {
    throw Error("rank " + std::to_string(self.rank) + " cannot use what listens at " +
                Endpoint(self) + " as the store: " + FirstLine(MessageOf(error)));
  }
}

// Every rank signs in, and finds out who did not, or who did twice.
void CallTheRoll(const Membership& group, c10d::Store& store, const Deadline& deadline) {
  const Identity& self = group.identity;
  const auto key = [](int rank) { return "present/" + std::to_string(rank); };
  const std::string own = std::to_string(self.world_size) + CheckText(group.options.check());
  const std::string agreed = FromStore(store.compareSet("world_size", {}, ToStore(own)));
  if (agreed != own) {
    throw Mismatch("rank " + std::to_string(self.rank) + " has WORLD_SIZE=" + own +
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
    for (int rank = 0; rank < self.world_size; ++rank) {
      if (!store.check({key(rank)}))
        missing.push_back(group.world_ranks[static_cast<size_t>(rank)]);
    }
    throw Timeout("rank " + std::to_string(group.WorldRank()) + " waited " +
                      SpanText(deadline.span()) + " for " + RanksText(missing) + " of " +
                      std::to_string(self.world_size) + " at " + Endpoint(self),
                  deadline.span(), missing);
  }
}

c10::intrusive_ptr<c10d::Store> OpenStore(const Membership& group, const Deadline& deadline) {
  const Identity& self = group.identity;
  if (self.world_size == 1) return c10::make_intrusive<c10d::HashStore>();
  auto base = self.rank == 0 ? HostStore(self, deadline) : ReachStore(self, deadline);
  auto store = c10::make_intrusive<c10d::PrefixStore>("muster/" + std::to_string(self.generation),
                                                      std::move(base));
  try {
    CallTheRoll(group, *store, deadline);
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
  self.memory = ShareMemory(self.store, id.rank, id.world_size,
                            self.options.shared_memory() && id.nodes == 1);
  const GlooAddress address = ChooseAddress(id, self.options);
  const OwnSockets before = ConnectedSockets();
  try {
    group->setBackend(
        at::kCPU, Group::BackendType::GLOO,
        MakeGlooBackend(c10::make_intrusive<c10d::PrefixStore>("gloo", self.store), id.rank,
                        id.world_size, deadline.left(), address, self.memory));
  } catch (const std::exception& error) {
    const std::string tried = "rank " + std::to_string(id.rank) + " cannot connect Gloo on " +
                              Text(address) + ": " + FirstLine(MessageOf(error));
    switch (Classify(MessageOf(error))) {
      case FailureKind::kTimeout:
        throw Timeout(tried, deadline.span());
      case FailureKind::kPeerLost:
        throw PeerLost(tried);
      default:
        throw Error(tried + "; choose with InitOptions::interface or the launcher's --local-addr");
    }
  }
  group->setDefaultBackend(nccl ? Group::BackendType::NCCL : Group::BackendType::GLOO);
  self.group = std::move(group);
  self.ObeyAgent(Since(before, ConnectedSockets()));
}

// From here on init() is over: how long one collective may take. (NCCL was told from the start.)
void SetOpTimeout(const c10d::ProcessGroup& group, std::chrono::milliseconds timeout) {
  SetGlooTimeout(*group.getBackend(c10d::ProcessGroup::BackendType::GLOO), timeout);
}

// Gloo writes into connections whose other end may have gone. That is to be an error and not the
// end of this process.
void IgnoreBrokenPipes() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace

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
bool World::shares_memory() const { return membership_->memory != nullptr; }
AgentLink& World::agent() const { return *membership_->agent; }
const c10::intrusive_ptr<c10d::ProcessGroup>& World::process_group() const {
  return membership_->Group();
}

void World::seed(uint64_t base) const { at::manual_seed(base + static_cast<uint64_t>(rank())); }

void World::abort(const std::string& why) const {
  membership_->Leave({FailureKind::kOther, membership_->WorldRank(), why, {}});
}

World World::subgroup(const std::vector<int>& ranks) const {
  const Membership& whole = *membership_;
  auto part = std::make_shared<Membership>();
  part->identity = whole.identity;
  part->identity.rank = -1;
  part->identity.world_size = static_cast<int>(ranks.size());
  std::string name = "group";
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int member = ranks[i];
    if (member < 0 || member >= size() || std::count(ranks.begin(), ranks.end(), member) != 1) {
      throw Error("subgroup: rank " + std::to_string(member) + " is not in this group of " +
                  std::to_string(size()) + ", or is named twice");
    }
    if (member == rank()) part->identity.rank = static_cast<int>(i);
    part->world_ranks.push_back(whole.world_ranks[static_cast<size_t>(member)]);
    name += "/" + std::to_string(member);
  }
  if (part->identity.rank < 0) {
    throw Error("subgroup: this rank, " + std::to_string(rank()) +
                ", is not among those named; only they call it");
  }
  name += "#" + std::to_string(membership_->subgroups[ranks]++);
  part->options = whole.options;
  part->agent = whole.agent;
  part->store = c10::make_intrusive<c10d::PrefixStore>(name, whole.store);
  const Deadline deadline(whole.options.init_timeout());
  CallTheRoll(*part, *part->store, deadline);
  MakeGroup(*part, deadline);
  SetOpTimeout(*part->group, whole.options.op_timeout());
  return World(part);
}

World init(const Identity& identity, const InitOptions& options) {
  IgnoreBrokenPipes();
  const Deadline deadline(options.init_timeout());
  auto self = std::make_shared<Membership>();
  self->identity = identity;
  self->options = options;
  self->options.check(WithEnvironment(options.check()));
  self->options.shared_memory(SwitchedOn("MUSTER_SHARED_MEMORY", options.shared_memory()));
  if (self->options.check().on()) RecordPasses();
  self->agent = std::make_shared<AgentLink>();
  for (int rank = 0; rank < identity.world_size; ++rank) self->world_ranks.push_back(rank);
  if (!options.interface().empty()) setenv("NCCL_SOCKET_IFNAME", options.interface().c_str(), 1);
  self->store = OpenStore(*self, deadline);
  MakeGroup(*self, deadline);
  World world(self);
  // The first collective connects what connects lazily, and shows at once what does not work.
  at::Tensor ones = at::ones({1}, at::TensorOptions().device(self->device));
  world.all_reduce(ones);
  if (ones.item<float>() != static_cast<float>(identity.world_size)) {
    throw Error("the first all_reduce over " + std::to_string(identity.world_size) +
                " ranks gave a wrong sum: the " + self->backend + " backend does not work here");
  }
  SetOpTimeout(*self->group, options.op_timeout());
  self->store->setTimeout(options.op_timeout());
  return world;
}

World init(const InitOptions& options) { return init(identity(), options); }

}  // namespace muster
