#include "tests/sim/sim_network.h"

#include <algorithm>
#include <utility>

namespace muster::sim {

using namespace std::chrono_literals;

SimNetwork::SimNetwork(SimWorld& world, const Options& options) : world_(world), options_(options) {
  for (auto& blocked : blocked_) blocked.assign(options.nodes, 0);
}

void SimNetwork::Listen(int host, MasterEnd* master) {
  MasterEnd* const old = std::exchange(masters_[host], master);
  if (master != nullptr) return;
  for (auto& [id, stream] : streams_) {
    if (stream.master != old || !std::exchange(stream.master_open, false)) continue;
    Transmit(id, kDown, Reset{});
  }
}

SimNetwork::Stream* SimNetwork::Find(StreamId id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : &found->second;
}

StreamId SimNetwork::Open(int node, AgentEnd* agent) {
  const StreamId id = ++last_stream_;
  Stream& stream = streams_[id];
  stream.node = node;
  stream.agent = agent;
  world_.queue.After(Delay() + Delay(), [this, id] { Connect(id); });
  return id;
}

void SimNetwork::Connect(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr || stream->agent == nullptr) return Forget(id);
  if (blocked_[kUp][stream->node] > 0 || blocked_[kDown][stream->node] > 0) {
    world_.queue.After(options_.connect_timeout, [this, id] { LoseAtAgent(id); });
    return;
  }
  const auto master = masters_.find(find_ ? find_(stream->node) : 0);
  if (master == masters_.end() || master->second == nullptr) return LoseAtAgent(id);
  stream->master = master->second;
  stream->connected = true;
  stream->master_open = true;
  if (world_.queue.now() < world_.faults_end && world_.random.Chance(options_.break_at_hello)) {
    ++world_.faults;
    const Duration soon = world_.random.Between(0ms, 4 * options_.delay_max);
    world_.queue.After(soon, [this, id] {
      if (Stream* doomed = Find(id)) {
        doomed->is_dead = true;
        LoseAtMaster(id);
        LoseAtAgent(id);
      }
    });
  }
  AgentEnd* const agent = stream->agent;
  for (AgentMessage& message : std::exchange(stream->outbox, {})) {
    Transmit(id, kUp, std::move(message));
  }
  master->second->OnOpened(id);
  agent->OnConnected(id);
}

void SimNetwork::Send(StreamId id, const AgentMessage& message) {
  Stream* stream = Find(id);
  if (stream == nullptr || stream->agent == nullptr) return;
  if (stream->connected) return Transmit(id, kUp, message);
  stream->outbox.push_back(message);
}

void SimNetwork::HalfClose(StreamId id) { Transmit(id, kUp, HalfClosed{}); }

void SimNetwork::Drop(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr || stream->agent == nullptr) return;
  stream->agent = nullptr;
  if (stream->connected) Transmit(id, kUp, Reset{});
  Forget(id);
}

void SimNetwork::SendToAgent(StreamId id, const MasterMessage& message) {
  Stream* stream = Find(id);
  if (stream != nullptr && stream->master_open) Transmit(id, kDown, message);
}

void SimNetwork::Close(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr || !stream->master_open) return;
  stream->master_open = false;
  Transmit(id, kDown, Reset{});
  Forget(id);
}

void SimNetwork::Transmit(StreamId id, Direction direction, Packet packet) {
  Stream* stream = Find(id);
  if (stream == nullptr) return;
  Lane& lane = stream->lanes[direction];
  lane.last = std::max(lane.last, world_.queue.now() + Delay());
  world_.queue.At(lane.last, [this, id, direction, packet = std::move(packet)]() mutable {
    Arrive(id, direction, std::move(packet));
  });
}

void SimNetwork::Arrive(StreamId id, Direction direction, Packet packet) {
  Stream* stream = Find(id);
  if (stream == nullptr || stream->is_dead) return;
  Lane& lane = stream->lanes[direction];
  if (blocked_[direction][stream->node] > 0 || !lane.held.empty()) {
    lane.held.push_back(std::move(packet));
    return;
  }
  Deliver(id, direction, packet);
}

void SimNetwork::Deliver(StreamId id, Direction direction, const Packet& packet) {
  Stream* stream = Find(id);
  if (stream == nullptr || stream->is_dead) return;
  // An end that knows nothing of the stream any more says so.
  if (direction == kUp && !stream->master_open) return Transmit(id, kDown, Reset{});
  if (direction == kDown && stream->agent == nullptr) return LoseAtMaster(id);
  if (direction == kUp) {
    if (const auto* message = std::get_if<AgentMessage>(&packet)) {
      stream->master->OnMessage(id, *message, "10.0.0." + std::to_string(stream->node + 1));
    } else if (std::holds_alternative<HalfClosed>(packet)) {
      stream->master->OnBroken(id, true);
    } else {
      LoseAtMaster(id);
    }
  } else if (const auto* message = std::get_if<MasterMessage>(&packet)) {
    stream->heard = true;
    stream->agent->OnMessage(id, *message);
  } else {
    LoseAtAgent(id);
  }
}

void SimNetwork::LoseAtAgent(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr || stream->agent == nullptr) return;
  AgentEnd* const agent = std::exchange(stream->agent, nullptr);
  const bool heard = stream->heard;
  if (!stream->connected) stream->is_dead = true;
  Forget(id);
  agent->OnEnded(id, !heard);
}

void SimNetwork::LoseAtMaster(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr || !std::exchange(stream->master_open, false)) return;
  on_loss_(stream->node);
  MasterEnd* const master = stream->master;
  Forget(id);
  master->OnBroken(id, false);
}

// Drops what neither end knows any more.
void SimNetwork::Forget(StreamId id) {
  const Stream* stream = Find(id);
  if (stream != nullptr && stream->agent == nullptr && !stream->master_open) streams_.erase(id);
}

void SimNetwork::Break(int node) {
  for (auto& [id, stream] : streams_) {
    if (stream.node != node || !stream.connected || stream.is_dead) continue;
    stream.is_dead = true;
    const StreamId broken = id;
    world_.queue.After(Delay(), [this, broken] { LoseAtAgent(broken); });
    world_.queue.After(Delay(), [this, broken] { LoseAtMaster(broken); });
  }
}

void SimNetwork::Partition(int node, bool up, bool down, Duration duration) {
  for (const Direction direction : {kUp, kDown}) {
    if (!(direction == kUp ? up : down)) continue;
    ++blocked_[direction][node];
    world_.queue.After(duration, [this, node, direction, partitions = partitions_] {
      if (partitions == partitions_ && --blocked_[direction][node] == 0) Heal(node, direction);
    });
  }
  SimRandom& random = world_.random;
  for (auto& [id, stream] : streams_) {
    if (stream.node != node || !stream.connected || random.Chance(0.4)) continue;
    const StreamId broken = id;
    world_.queue.After(random.Between(0s, duration), [this, broken] {
      if (Stream* dead = Find(broken)) dead->is_dead = true;
    });
    const Duration longest = 2 * duration;
    if (random.Chance(0.5)) {
      world_.queue.After(random.Between(0s, longest), [this, broken] { LoseAtAgent(broken); });
    }
    if (random.Chance(0.5)) {
      world_.queue.After(random.Between(0s, longest), [this, broken] { LoseAtMaster(broken); });
    }
  }
}

void SimNetwork::Heal(int node, Direction direction) {
  for (auto& [id, stream] : streams_) {
    if (stream.node != node) continue;
    const StreamId healed = id;
    world_.queue.After(world_.random.Between(0s, 1s),
                       [this, healed, direction] { Flush(healed, direction); });
  }
}

void SimNetwork::Flush(StreamId id, Direction direction) {
  for (;;) {
    Stream* stream = Find(id);
    if (stream == nullptr || blocked_[direction][stream->node] > 0) return;
    Lane& lane = stream->lanes[direction];
    if (lane.held.empty()) return;
    const Packet packet = std::move(lane.held.front());
    lane.held.pop_front();
    Deliver(id, direction, packet);
  }
}

void SimNetwork::HealAll() {
  ++partitions_;
  for (const Direction direction : {kUp, kDown}) {
    for (int node = 0; node < options_.nodes; ++node) {
      if (std::exchange(blocked_[direction][node], 0) > 0) Heal(node, direction);
    }
  }
}

}  // namespace muster::sim
