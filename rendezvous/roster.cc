#include "rendezvous/roster.h"

#include <algorithm>
#include <utility>

namespace muster {

Node* Roster::Find(const std::string& id) {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : &found->second;
}

const Node* Roster::Of(StreamId stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : found->second;
}

Node* Roster::Of(StreamId stream) {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : found->second;
}

void Roster::Erase(const Node& node) {
  Uncount(node);
  heard_.Set(node.stream, kNever);
  streams_.erase(node.stream);
  if (node.counted.touched) std::erase(touched_, &node);
  nodes_.erase(nodes_.find(node.id));
}

void Roster::EraseLost() {
  for (auto it = nodes_.begin(); it != nodes_.end();) {
    const Node& node = (it++)->second;
    if (!node.attached()) Erase(node);
  }
}

void Roster::Bind(Node& node, StreamId stream) {
  if (node.stream != stream) Unbind(node);
  node.stream = stream;
  streams_[stream] = &node;
  Touch(node);
}

void Roster::Unbind(Node& node) {
  heard_.Set(node.stream, kNever);
  streams_.erase(node.stream);
  node.stream = 0;
  Touch(node);
}

void Roster::Heard(Node& node, Time now) {
  node.last_heard = now;
  heard_.Set(node.stream, now);
}

void Roster::Shift(Duration missed, Time now) {
  for (auto& [id, node] : nodes_) {
    node.last_heard = std::min(now, node.last_heard + missed);
    if (node.attached()) heard_.Set(node.stream, node.last_heard);
  }
}

void Roster::Touch(Node& node) {
  Uncount(node);
  Count(node);
  if (!std::exchange(node.counted.touched, true) && !all_touched_) touched_.push_back(&node);
}

void Roster::SetWaitKind(Node& node, WaitKind kind) {
  Uncount(node);
  node.wait_kind = kind;
  node.waits = false;
  Count(node);
}

void Roster::TouchAll() {
  for (auto& [id, node] : nodes_) {
    Uncount(node);
    Count(node);
  }
  all_touched_ = true;
}

std::vector<Node*> Roster::TakeTouched() {
  std::vector<Node*> taken = std::exchange(touched_, {});
  if (std::exchange(all_touched_, false)) {
    taken.clear();
    for (auto& [id, node] : nodes_) taken.push_back(&node);
  }
  for (Node* node : taken) node->counted.touched = false;
  return taken;
}

int Roster::HoldersOf(int fixed_rank) const {
  const auto found = rank_holders_.find(fixed_rank);
  return found == rank_holders_.end() ? 0 : found->second;
}

void Roster::Count(Node& node) {
  node.counted.counts = CountsOf(node);
  node.counted.fixed_rank = node.hello.fixed_group_rank;
  counts_ += node.counted.counts;
  if (node.counted.counts.former > node.counted.counts.former_here) absent_.insert(node.id);
  if (node.counted.counts.ranked == 0) return;
  if (++rank_holders_[node.counted.fixed_rank] == 1) held_ranks_.Add(node.counted.fixed_rank);
}

void Roster::Uncount(const Node& node) {
  counts_ -= node.counted.counts;
  if (node.counted.counts.former > node.counted.counts.former_here) absent_.erase(node.id);
  if (node.counted.counts.ranked == 0) return;
  const auto holders = rank_holders_.find(node.counted.fixed_rank);
  if (--holders->second > 0) return;
  rank_holders_.erase(holders);
  held_ranks_.Remove(node.counted.fixed_rank);
}

}  // namespace muster
