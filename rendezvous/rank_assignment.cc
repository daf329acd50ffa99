#include "rendezvous/rank_assignment.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace muster {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Cuts the number that `text` starts with off it, without leading zeros.
std::string_view TakeNumber(std::string_view& text) {
  size_t length = 0;
  while (length < text.size() && IsDigit(text[length])) ++length;
  std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

// Less than 0, 0 or more; equal for "node02" and "node2".
int NaturalCompare(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a.front()) && IsDigit(b.front())) {
      const std::string_view x = TakeNumber(a);
      const std::string_view y = TakeNumber(b);
      if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
      if (const int order = x.compare(y); order != 0) return order;
      continue;
    }
    if (a.front() != b.front()) {
      return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front()) ? -1 : 1;
    }
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return static_cast<int>(!a.empty()) - static_cast<int>(!b.empty());
}

// Appends what sorts as bytes like `text` in its natural order: before each number its length.
void AppendSortKey(std::string_view text, std::string* key) {
  const std::string_view whole = text;
  while (!text.empty()) {
    if (IsDigit(text.front())) {
      const std::string_view digits = TakeNumber(text);
      const auto length = static_cast<uint16_t>(digits.size());
      *key += '0';
      *key += static_cast<char>(length >> 8);
      *key += static_cast<char>(length & 0xff);
      *key += digits;
    } else {
      *key += text.front();
      text.remove_prefix(1);
    }
  }
  // An end comes first, and "node02" is not "node2".
  *key += '\0';
  *key += whole;
  *key += '\0';
}

// Those without a rank of their own, in the order in which they fill the gaps.
void SortByTurn(const std::vector<RankRequest>& requests, std::vector<size_t>* others) {
  struct Turn {
    int last_rank;  // newcomers come last
    size_t from;    // of its key, in `keys`
    size_t size;
    size_t index;
  };
  std::string keys;
  std::vector<Turn> turns;
  turns.reserve(others->size());
  for (const size_t index : *others) {
    const RankRequest& request = requests[index];
    const size_t from = keys.size();
    AppendSortKey(request.topology_key, &keys);
    AppendSortKey(request.node_id, &keys);
    const int last_rank = request.last_rank < 0 ? INT_MAX : request.last_rank;
    turns.push_back({last_rank, from, keys.size() - from, index});
  }
  const auto key = [&keys](const Turn& turn) {
    return std::string_view(keys).substr(turn.from, turn.size);
  };
  std::sort(turns.begin(), turns.end(), [&key](const Turn& a, const Turn& b) {
    return a.last_rank != b.last_rank ? a.last_rank < b.last_rank : key(a) < key(b);
  });
  for (size_t i = 0; i < turns.size(); ++i) (*others)[i] = turns[i].index;
}

// The index of the request that holds each group rank.
std::vector<size_t> Holders(const std::vector<RankRequest>& requests) {
  constexpr size_t kFree = static_cast<size_t>(-1);
  std::vector<size_t> holders(requests.size(), kFree);
  std::vector<size_t> others;
  for (size_t i = 0; i < requests.size(); ++i) {
    const RankRequest& request = requests[i];
    const int wanted = request.fixed_rank >= 0 ? request.fixed_rank : request.last_rank;
    const bool fits = wanted >= 0 && static_cast<size_t>(wanted) < holders.size();
    if (fits && holders[wanted] == kFree) {
      holders[wanted] = i;
    } else {
      others.push_back(i);
    }
  }
  SortByTurn(requests, &others);
  auto next = others.begin();
  for (size_t& holder : holders) {
    if (holder == kFree) holder = *next++;
  }
  return holders;
}

}  // namespace

RankTable AssignRanks(const std::vector<RankRequest>& requests) {
  RankTable table;
  table.grants.resize(requests.size());
  std::map<std::string, int> role_sizes;
  const std::vector<size_t> holders = Holders(requests);
  for (size_t rank = 0; rank < holders.size(); ++rank) {
    const RankRequest& request = requests[holders[rank]];
    RankGrant& grant = table.grants[holders[rank]];
    int& role_size = role_sizes[request.role];
    grant.group_rank = static_cast<int>(rank);
    grant.rank_base = table.world_size;
    grant.role_rank_base = role_size;
    table.world_size += request.slots;
    role_size += request.slots;
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    table.grants[i].role_world_size = role_sizes[requests[i].role];
  }
  return table;
}

bool NaturalLess(std::string_view a, std::string_view b) {
  const int order = NaturalCompare(a, b);
  return order != 0 ? order < 0 : a < b;
}

}  // namespace muster
