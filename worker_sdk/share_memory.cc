#include "worker_sdk/share_memory.h"

#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "worker_sdk/store_text.h"

namespace muster {
namespace {

constexpr char kYes[] = "yes", kNo[] = "no";

std::shared_ptr<HostMemory> Try(const std::string& offer, int rank, int ranks) {
  try {
    return rank == 0 ? HostMemory::Create(ranks) : HostMemory::Open(offer, rank, ranks);
  } catch (const std::exception&) {
    return nullptr;  // over sockets, then
  }
}

}  // namespace

std::shared_ptr<HostMemory> ShareMemory(const c10::intrusive_ptr<c10d::Store>& of_group, int rank,
                                        int ranks, bool wanted) {
  if (ranks == 1) return nullptr;
  c10d::PrefixStore store("memory", of_group);
  std::shared_ptr<HostMemory> memory;
  const auto answer = [](int of) { return "answer/" + std::to_string(of); };
  if (rank == 0) {
    if (wanted) memory = Try("", rank, ranks);
    store.set("offer", ToStore(memory ? memory->offer() : kNo));
    if (!memory) return nullptr;
    bool all = true;
    for (int other = 1; other < ranks; ++other) all &= FromStore(store.get(answer(other))) == kYes;
    store.set("verdict", ToStore(all ? kYes : kNo));
    return all ? memory : nullptr;
  }
  const std::string offer = FromStore(store.get("offer"));
  if (offer == kNo) return nullptr;
  if (wanted) memory = Try(offer, rank, ranks);
  store.set(answer(rank), ToStore(memory ? kYes : kNo));
  return FromStore(store.get("verdict")) == kYes ? memory : nullptr;
}

}  // namespace muster
