#include "worker_sdk/split_check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "worker_sdk/checkpoint_file.h"
#include "worker_sdk/membership.h"

namespace muster {
namespace {

// A pass as it is sent.
enum Column {
  kSampler,
  kNumber,
  kN,
  kRank,
  kRanks,
  kSeed,
  kShuffle,
  kEpoch,
  kBase,
  kFrom,
  kTo,
  kClosed,
  kColumns
};
using Row = std::array<int64_t, kColumns>;

Row RowOf(uint64_t sampler, const Pass& pass) {
  const Slice& slice = pass.slice;
  const auto number = [](auto value) { return static_cast<int64_t>(value); };
  return {number(sampler),     number(pass.number), number(slice.n),       number(slice.rank),
          number(slice.ranks), number(slice.seed),  number(slice.shuffle), number(slice.epoch),
          number(slice.base),  number(pass.from),   number(pass.to),       number(pass.closed)};
}

Slice SliceOf(const Row& row) {
  const auto size = [](int64_t value) { return static_cast<size_t>(value); };
  return {
      size(row[kN]),      size(row[kRank]),  size(row[kRanks]), static_cast<uint64_t>(row[kSeed]),
      row[kShuffle] != 0, size(row[kEpoch]), size(row[kBase])};
}

// By rank: the row of this pass; nothing unless all have it and it can be compared.
std::vector<Row> SamePass(const Row& own, const std::vector<std::vector<Row>>& table) {
  std::vector<Row> rows;
  for (const std::vector<Row>& theirs : table) {
    for (const Row& row : theirs) {
      if (row[kSampler] == own[kSampler] && row[kNumber] == own[kNumber]) rows.push_back(row);
    }
  }
  if (rows.size() != table.size()) return {};
  const auto alike = [&](Column column) {
    return std::all_of(rows.begin(), rows.end(),
                       [&](const Row& row) { return row[column] == rows[0][column]; });
  };
  const bool over = alike(kClosed) && rows[0][kClosed] != 0;
  return alike(kN) && (over || alike(kTo)) ? rows : std::vector<Row>();
}

// What makes the ranks' samplers hand out the same index, in words.
std::string Cause(const std::vector<Slice>& slices) {
  const auto differs = [&](const char* what, auto field) {
    std::string text;
    for (size_t rank = 1; rank < slices.size() && text.empty(); ++rank) {
      const uint64_t leaders = field(slices[0]), theirs = field(slices[rank]);
      if (leaders == theirs) continue;
      text = std::string("the sampler's ") + what + " is " + std::to_string(leaders) +
             " on rank 0 and " + std::to_string(theirs) + " on rank " + std::to_string(rank);
    }
    return text;
  };
  for (const std::string& text :
       {differs("seed", [](const Slice& s) { return s.seed; }),
        differs("shuffle", [](const Slice& s) { return uint64_t{s.shuffle}; }),
        differs("epoch", [](const Slice& s) { return uint64_t{s.epoch}; }),
        differs("first position", [](const Slice& s) { return uint64_t{s.base}; })}) {
    if (!text.empty()) return text;
  }
  for (size_t rank = 0; rank < slices.size(); ++rank) {
    for (size_t other = 0; other < rank; ++other) {
      if (slices[rank].rank != slices[other].rank) continue;
      return "the samplers of ranks " + std::to_string(other) + " and " + std::to_string(rank) +
             " are both made for rank " + std::to_string(slices[rank].rank);
    }
  }
  return "the samplers were not at the same place";
}

// What `pass` handed out, without what fills up.
std::vector<int64_t> Indices(const Pass& pass) {
  const Slice& slice = pass.slice;
  const auto order = EpochOrder(slice.n, slice.seed, slice.shuffle, slice.epoch);
  std::vector<int64_t> indices;
  for (size_t i = pass.from; i < pass.to; ++i) {
    const size_t position = slice.base + i * slice.ranks + slice.rank;
    if (position < slice.n) indices.push_back(order[position]);
  }
  return indices;
}

}  // namespace

SplitCheck::SplitCheck(const World& world) : world_(world) {}

std::vector<SplitCheck::Entry> SplitCheck::Entries() const {
  std::vector<Entry> entries;
  for (const auto& [number, log] : PassLogsFor(static_cast<size_t>(world_.size()))) {
    for (const Pass& pass : log->passes()) entries.push_back({log, number, pass});
  }
  return entries;
}

SplitCheck::Digest SplitCheck::Own() const {
  std::string rows;
  uint64_t handed_out = 0, all_handed = 0;
  const std::vector<Entry> entries = Entries();
  for (const Entry& entry : entries) {
    Row row = RowOf(entry.sampler, entry.pass);
    row[kRank] = 0;
    rows.append(reinterpret_cast<const char*>(row.data()), sizeof row);
    handed_out += entry.pass.handed_out;
    all_handed += entry.pass.all_handed;
  }
  return {static_cast<int64_t>(entries.size()), static_cast<int64_t>(Hash64(rows)),
          static_cast<int64_t>(all_handed), static_cast<int64_t>(handed_out)};
}

void SplitCheck::Judge(const std::vector<Digest>& digests) {
  uint64_t handed_out = 0;
  int64_t most = 0;
  bool alike = true;
  for (const Digest& digest : digests) {
    most = std::max(most, digest[0]);
    alike &= std::equal(digest.begin(), digest.begin() + 3, digests[0].begin());
    handed_out += static_cast<uint64_t>(digest[3]);
  }
  if (most == 0) return;
  const std::vector<Entry> own = Entries();
  if (alike && handed_out == static_cast<uint64_t>(digests[0][2])) return Settle(own);
  CompareExactly(own, most);
}

void SplitCheck::Settle(const std::vector<Entry>& compared) {
  for (const Entry& entry : compared) {
    const Slice& slice = entry.pass.slice;
    const size_t end = std::min(slice.n, slice.base + entry.pass.to * slice.ranks);
    answer_ = "epoch " + std::to_string(slice.epoch) + ": " +
              std::to_string(end - slice.base - entry.pass.from * slice.ranks) + " of " +
              std::to_string(slice.n) + " samples until here, none twice";
    entry.log->Forget(entry.pass.number);
  }
}

void SplitCheck::CompareExactly(const std::vector<Entry>& own, int64_t most) {
  at::Tensor rows = at::full({most, kColumns}, -1, at::kLong);
  for (size_t i = 0; i < own.size(); ++i) {
    const Row row = RowOf(own[i].sampler, own[i].pass);
    std::copy(row.begin(), row.end(), rows.data_ptr<int64_t>() + i * kColumns);
  }
  const at::Tensor all = world_.all_gather(rows);
  std::vector<std::vector<Row>> table(static_cast<size_t>(world_.size()));
  for (int64_t rank = 0; rank < world_.size(); ++rank) {
    for (int64_t i = 0; i < most; ++i) {
      Row row;
      std::copy_n(all[rank][i].const_data_ptr<int64_t>(), row.size(), row.begin());
      if (row[kSampler] >= 0) table[static_cast<size_t>(rank)].push_back(row);
    }
  }
  // In rank 0's order, which is the same order on every rank.
  std::vector<Entry> compared;
  for (const Row& leaders : table[0]) {
    const std::vector<Row> same = SamePass(leaders, table);
    if (same.empty()) continue;
    std::vector<Slice> slices;
    for (const Row& row : same) slices.push_back(SliceOf(row));
    const auto entry = std::find_if(own.begin(), own.end(), [&](const Entry& one) {
      return one.sampler == static_cast<uint64_t>(leaders[kSampler]) &&
             one.pass.number == static_cast<uint64_t>(leaders[kNumber]);
    });
    RequireNoneTwice(*entry, slices);
    compared.push_back(*entry);
  }
  Settle(compared);
}

void SplitCheck::RequireNoneTwice(const Entry& own, const std::vector<Slice>& slices) const {
  constexpr int64_t kChunk = 1 << 20;
  const std::vector<int64_t> indices = Indices(own.pass);
  const auto n = static_cast<int64_t>(own.pass.slice.n);
  for (int64_t start = 0; start < n; start += kChunk) {
    const at::Tensor counts = at::zeros({std::min(kChunk, n - start)}, at::kInt);
    for (const int64_t index : indices) {
      if (index >= start && index < start + kChunk) ++counts.data_ptr<int32_t>()[index - start];
    }
    const at::Tensor sums = counts.clone();
    world_.all_reduce(sums);
    const at::Tensor twice = sums.gt(1);
    if (!twice.any().item<bool>()) continue;
    const auto first = twice.to(at::kInt).argmax().item<int64_t>();
    const at::Tensor got = world_.all_gather(counts[first].clone());
    std::vector<int> ranks;
    for (int rank = 0; rank < world_.size(); ++rank) {
      if (got[rank].item<int32_t>() > 0) ranks.push_back(rank);
    }
    Mismatch error(
        "the data split is wrong: index " + std::to_string(start + first) +
        " was handed out twice in one epoch, to " + RanksText(ranks) + ": " + Cause(slices) +
        "; make the sampler from the World, with the same options on every rank, and call "
        "set_epoch() alike");
    error.everywhere = true;
    throw error;
  }
}

}  // namespace muster
