#ifndef MUSTER_CHECK_MEETING_H_
#define MUSTER_CHECK_MEETING_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "check/channel.h"
#include "check/fields.h"
#include "check/findings.h"

// How the ranks of a check come together: a star around rank 0, which listens at MASTER_PORT. Rank
// 0 says what is next, each other one answers. One thread.

namespace muster::check {

// Rank 0's end.
class Host {
 public:
  // `key` is what all ranks of this check know and nobody else does by accident.
  Host(Listener listener, int world_size, std::string key);

  // Lets ranks in until all are there or `deadline` has come: what each has said, by rank. Whoever
  // does not know the key is sent away; who comes again takes its own place.
  std::map<int, Fields> Gather(Time deadline);
  // Nobody gets in any more, and the port is free.
  void Close() { listener_.fd.reset(); }
  // To all that are there.
  void Tell(const Fields& message, Time deadline);
  // The answer of each that gives one by `deadline`, by rank.
  std::map<int, Fields> Collect(Time deadline);

 private:
  struct Guest {
    Channel channel;
    int rank;  // -1: has not said it
  };

  void Hear(Time deadline, std::map<int, Fields>* answers);
  void Accept();
  bool Admit(Guest* guest, const Fields& hello);

  Listener listener_;
  int world_size_;
  std::string key_;
  std::vector<Guest> guests_;
};

// The way of another rank to rank 0.
struct Joined {
  std::optional<Channel> channel;  // nothing: it was not reached, and the rest says why
  std::string resolve_problem;
  std::vector<Attempt> attempts;  // of the last round; EPROTO: something else listens there
};
// Tries all addresses of `host` again and again until `deadline`; `hello` is what Host::Gather
// returns.
Joined Join(const std::string& host, int port, const Fields& hello, const std::string& key,
            int rank, Time deadline);

}  // namespace muster::check

#endif  // MUSTER_CHECK_MEETING_H_
