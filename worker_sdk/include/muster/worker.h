#ifndef MUSTER_WORKER_H_
#define MUSTER_WORKER_H_

#include <muster/error.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// For any program that muster starts, with or without LibTorch: who am I, and a line to the agent.
namespace muster {

// Who this process is, as the launcher (muster, or torchrun) put it into the environment.
struct Identity {
  bool launched = false;     // false: no launcher, a world of one
  int rank = 0;              // RANK: 0 … world_size-1, over all nodes
  int world_size = 1;        // WORLD_SIZE
  int local_rank = 0;        // LOCAL_RANK: 0 … local_world_size-1, on this node
  int local_world_size = 1;  // LOCAL_WORLD_SIZE
  int node = 0;              // GROUP_RANK; rank / local_world_size where it is not set
  int nodes = 1;             // GROUP_WORLD_SIZE; by division where it is not set
  std::string master_addr;   // MASTER_ADDR: where rank 0 is reached
  uint16_t master_port = 0;  // MASTER_PORT
  int restart_count = 0;     // TORCHELASTIC_RESTART_COUNT, 0 where it is not set
  int64_t generation = 0;    // MUSTER_GENERATION; restart_count where it is not set
  std::string local_addr;    // MUSTER_LOCAL_ADDR: this node as the others reach it; may be empty
  std::string run_id;        // TORCHELASTIC_RUN_ID; may be empty
};

// Looks up one variable; nullopt: not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// None of RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT set: a world of
// one. Throws EnvironmentError when only some of them are, and when a value is malformed or
// contradicts another.
Identity identity_from(const Environment& environment);
Identity identity();  // from the environment of this process

// The worker's end of the line to its agent (a socket that MUSTER_SOCKET names). Without an agent,
// and after the agent has gone, every call does nothing. No call blocks or throws. Any thread may
// call.
//
// The socket is SOCK_SEQPACKET and a datagram is KEY=VALUE lines, so that other languages need no
// library:
//   worker: READY=1  STEP=n  CHECKPOINT=text  STATUS=text  ERROR=text  QUIESCED=generation
//   agent:  ABORT=generation  DRAIN=1  MEMBERS=… (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT of the
//   next generation)
class AgentLink {
 public:
  AgentLink();                                  // to the socket that MUSTER_SOCKET names
  explicit AgentLink(const std::string& path);  // empty: to nobody
  ~AgentLink();
  AgentLink(AgentLink&&) noexcept;
  AgentLink& operator=(AgentLink&&) noexcept;

  bool connected() const;  // an agent listens

  // What is said again later when the agent is slow to read: ready, checkpoint (the newest one),
  // error, quiesced. What is dropped then: step, status. Line breaks in a text become spaces; a
  // text is cut at 32 KiB.
  void ready();
  void step(int64_t n);
  void checkpoint(std::string_view text);
  void status(std::string_view text);
  void error(std::string_view text);
  void quiesced(int64_t generation);

  // What the agent has said so far. Cheap enough for every step: one system call.
  bool drain_requested();                       // reach a commit point, save, exit 0
  std::optional<int64_t> aborted_generation();  // the highest; leave that generation's collectives
  std::optional<std::string> members();         // the newest MEMBERS datagram, as it came

  // Calls `aborted` once for each generation that the agent says ABORT of, also if it has said it
  // before: at once, from a thread that waits for it, or from a call above that hears it first. It
  // must not call this object. Whoever is called may still be called until this object is gone.
  void on_abort(std::function<void(int64_t generation)> aborted);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_H_
