#ifndef MUSTER_TESTS_SIM_SIM_NETWORK_H_
#define MUSTER_TESTS_SIM_SIM_NETWORK_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/events.h"
#include "tests/sim/sim_world.h"

namespace muster::sim {

// Who opened a stream. Nothing is heard after OnEnded or after SimNetwork::Drop.
class AgentEnd {
 public:
  virtual ~AgentEnd() = default;
  virtual void OnConnected(StreamId stream) = 0;
  virtual void OnMessage(StreamId stream, const MasterMessage& message) = 0;
  // `unreachable`: it never carried a message to this end.
  virtual void OnEnded(StreamId stream, bool unreachable) = 0;
};

class MasterEnd {
 public:
  virtual ~MasterEnd() = default;
  virtual void OnOpened(StreamId stream) = 0;
  virtual void OnMessage(StreamId stream, const AgentMessage& message, const std::string& peer) = 0;
  virtual void OnBroken(StreamId stream, bool half_closed) = 0;
};

// Streams between agents and the master, as TCP gives them: messages arrive once and in order, or
// the stream is dead; one end may learn of that long before the other, or never.
class SimNetwork {
 public:
  struct Options {
    int nodes = 0;
    Duration delay_min{};
    Duration delay_max{};
    Duration connect_timeout{};
    double break_at_hello = 0;  // probability that a new stream breaks at once, until faults_end
  };

  SimNetwork(SimWorld& world, const Options& options);

  // A master's process, by its number; nullptr: it does not listen any more, and the streams that
  // it had are reset.
  void Listen(int host, MasterEnd* master);
  // Which master a node tries; below 0: it knows none. Unless it is set: number 0.
  void OnFind(std::function<int(int node)> callback) { find_ = std::move(callback); }

  // Called when the master loses a stream that its node did not end in order.
  void OnLoss(std::function<void(int node)> callback) { on_loss_ = std::move(callback); }

  // Of agents. What is sent before the connection stands is sent then.
  StreamId Open(int node, AgentEnd* agent);
  void Send(StreamId stream, const AgentMessage& message);
  void HalfClose(StreamId stream);
  void Drop(StreamId stream);

  // Of the master.
  void SendToAgent(StreamId stream, const MasterMessage& message);
  void Close(StreamId stream);

  // Faults. A partition blocks one direction or both; each stream across it survives the end of the
  // partition with what was held back, or is dead, and its ends learn of that some time or never.
  void Partition(int node, bool up, bool down, Duration duration);
  void Break(int node);  // the node's open streams; the ends learn of it at different times
  void HealAll();

 private:
  struct HalfClosed {};
  struct Reset {};
  using Packet = std::variant<AgentMessage, MasterMessage, HalfClosed, Reset>;
  enum Direction { kUp = 0, kDown = 1 };

  struct Lane {
    Time last{};              // arrival of the latest packet
    std::deque<Packet> held;  // back by a partition
  };
  struct Stream {
    int node = 0;
    AgentEnd* agent = nullptr;
    MasterEnd* master = nullptr;  // when connected
    bool connected = false;
    bool heard = false;
    bool master_open = false;
    bool is_dead = false;  // what is under way vanishes
    Lane lanes[2];
    std::deque<AgentMessage> outbox;
  };

  Duration Delay() { return world_.random.Between(options_.delay_min, options_.delay_max); }
  Stream* Find(StreamId stream);
  void Connect(StreamId id);
  void Transmit(StreamId id, Direction direction, Packet packet);
  void Arrive(StreamId id, Direction direction, Packet packet);
  void Deliver(StreamId id, Direction direction, const Packet& packet);
  void Flush(StreamId id, Direction direction);
  void Heal(int node, Direction direction);
  void LoseAtAgent(StreamId id);
  void LoseAtMaster(StreamId id);
  void Forget(StreamId id);

  SimWorld& world_;
  Options options_;
  std::map<int, MasterEnd*> masters_;  // that listen
  std::function<int(int node)> find_;
  std::function<void(int node)> on_loss_;
  StreamId last_stream_ = 0;
  std::map<StreamId, Stream> streams_;
  std::vector<int> blocked_[2];  // by node: partitions that are in force
  uint64_t partitions_ = 0;      // grows when all are healed
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_NETWORK_H_
