#ifndef MUSTER_TESTS_RENDEZVOUS_TEST_AGENT_H_
#define MUSTER_TESTS_RENDEZVOUS_TEST_AGENT_H_

#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "rendezvous/rendezvous_client.h"

namespace muster {

// What a test plays an agent with: a client, and waiting for what it brings. Waiting has a deadline
// that only a failure reaches.
class TestAgent {
 public:
  explicit TestAgent(std::unique_ptr<RendezvousClient> client) : client_(std::move(client)) {}

  RendezvousClient& client() { return *client_; }

  // Opens a stream and says Hello.
  void Attend(const Hello& hello);

  // The next event, or nothing after 20 s.
  std::optional<ClientEvent> Next();

  // The next event of kind T; others are passed over, except that a stream that ends ends the
  // search. A test failure, and a default value, when it does not come.
  template <typename T>
  T Await() {
    for (;;) {
      const std::optional<ClientEvent> event = Next();
      if (!event.has_value()) return Missing<T>("nothing came");
      if (const auto* message = std::get_if<MasterMessage>(&*event)) {
        if constexpr (std::is_constructible_v<MasterMessage, T>) {
          if (const T* found = std::get_if<T>(message)) return *found;
        }
        continue;
      }
      if constexpr (!std::is_constructible_v<MasterMessage, T>) {
        if (const T* found = std::get_if<T>(&*event)) return *found;
      }
      if (const auto* end = std::get_if<StreamEnded>(&*event)) return Missing<T>(end->detail);
      return Missing<T>("the rendezvous finished");
    }
  }

 private:
  void Report(const std::string& why);
  template <typename T>
  T Missing(const std::string& why) {
    Report(why);
    return T{};
  }

  std::unique_ptr<RendezvousClient> client_;
};

// A Hello that forms with `nodes` nodes at once: no last call, one worker.
Hello HelloOf(const std::string& job_id, const std::string& node_id, int nodes);

// A TCP port of 127.0.0.1 that stays bound (never listening) while the object lives, so that only
// who asks for this very port gets it.
class ReservedPort {
 public:
  ReservedPort();
  ~ReservedPort();
  int number() const { return number_; }
  int fd() const { return fd_; }
  // Makes it the port of a service that answers nothing by itself.
  void Listen(int backlog = 8);

 private:
  int fd_ = -1;
  int number_ = 0;
};

}  // namespace muster

#endif  // MUSTER_TESTS_RENDEZVOUS_TEST_AGENT_H_
