#include "worker_sdk/share_memory.h"

#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <vector>

namespace muster {
namespace {

constexpr char kYes[] = "yes", kNo[] = "no";

void Set(c10d::Store& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

std::string Get(c10d::Store& store, const std::string& key) {
  const std::vector<uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

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
    Set(store, "offer", memory ? memory->offer() : kNo);
    if (!memory) return nullptr;
    bool all = true;
    for (int other = 1; other < ranks; ++other) all &= Get(store, answer(other)) == kYes;
    Set(store, "verdict", all ? kYes : kNo);
    return all ? memory : nullptr;
  }
  const std::string offer = Get(store, "offer");
  if (offer == kNo) return nullptr;
  if (wanted) memory = Try(offer, rank, ranks);
  Set(store, answer(rank), memory ? kYes : kNo);
  return Get(store, "verdict") == kYes ? memory : nullptr;
}

}  // namespace muster
