#ifndef MUSTER_TESTS_RENDEZVOUS_TEST_JOB_H_
#define MUSTER_TESTS_RENDEZVOUS_TEST_JOB_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/job_journal.h"
#include "rendezvous/round_machine.h"

namespace muster {

// A round machine with named agents around it, on a clock that only Advance() moves. Every step is
// followed by CheckInvariants; what it finds is kept in broken() and fails the test; so is a change
// of the record that the step did not tell. Agents send heartbeats by themselves until muted.
class TestJob {
 public:
  explicit TestJob(JobSettings settings);

  // What an agent of this name says in its first message; change it before Join() as the test
  // needs.
  Hello HelloOf(const std::string& name) const;

  // A new stream with this Hello, from `peer_address` (made from the name when empty).
  const RoundEffects& Join(const Hello& hello, const std::string& peer_address = "");
  const RoundEffects& Join(const std::string& name) { return Join(HelloOf(name)); }
  // The agent reconnects with the same incarnation and says what it runs.
  const RoundEffects& Rejoin(const std::string& name, WorkersPhase phase, bool fenced = false);
  const RoundEffects& Say(const std::string& name, AgentMessage message);
  const RoundEffects& Break(const std::string& name, bool half_closed = false);
  const RoundEffects& Will(const LastWill& will);
  const RoundEffects& Step(const RoundEvent& event);

  // Reports of the workers of the current generation.
  const RoundEffects& Stopped(const std::string& name, bool fenced = false);
  const RoundEffects& Succeeded(const std::string& name);
  const RoundEffects& Failed(const std::string& name, int exit_code, Duration uptime);

  // The master dies and starts again with what its store has: every stream is gone.
  void Restart();

  // Moves the clock; serves every deadline on the way at its moment.
  void Advance(Duration duration);
  // The master does not run for so long; then it learns of it.
  void Freeze(Duration duration);
  void Mute(const std::string& name) { muted_.insert(name); }

  // What the last step sent to an agent (its newest stream), HeartbeatAcks left out.
  std::vector<MasterMessage> SentTo(const std::string& name) const;
  template <typename T>
  std::optional<T> LastSent(const std::string& name) const {
    std::optional<T> last;
    for (const MasterMessage& message : SentTo(name)) {
      if (const T* wanted = std::get_if<T>(&message)) last = *wanted;
    }
    return last;
  }
  bool Closed(const std::string& name) const;  // the last step closed its newest stream

  // Told of every step's effects, HeartbeatAcks and Persist left out.
  void Watch(std::function<void(const RoundEffects&)> watcher) { watcher_ = std::move(watcher); }

  const RoundMachine& machine() const { return machine_; }
  // What stands beside the machine as in a master; its wall clock shows the seconds of now().
  const JobJournal& journal() const { return journal_; }
  // Each incident when it began and when it ended, in order.
  const std::vector<IncidentRecord>& news() const { return news_; }
  const Node& node(const std::string& name) const { return machine_.nodes().at(name); }
  Time now() const { return now_; }
  StreamId StreamOf(const std::string& name) const { return streams_.at(name); }
  std::string NameOf(StreamId stream) const;
  const std::string& broken() const { return broken_; }
  int writes() const { return writes_; }  // steps that changed the record
  JobSettings& settings() { return settings_; }

 private:
  void HeartbeatAll();
  std::string CheckRecord(const std::optional<JobRecord>& before, const RoundEvent& event) const;

  JobSettings settings_;
  RoundMachine machine_;
  JobJournal journal_;
  std::vector<IncidentRecord> news_;
  Time now_{std::chrono::hours(1)};
  StreamId last_stream_ = 0;
  std::map<std::string, StreamId> streams_;  // the newest of each agent
  std::map<StreamId, std::string> names_;
  std::map<std::string, Hello> hellos_;
  std::map<std::string, Assignment> places_;  // the newest that each agent got
  std::set<std::string> muted_;
  RoundEffects effects_;
  std::string broken_;
  int writes_ = 0;
  uint64_t taken_over_ = 0;     // the latest incident of the master before
  bool has_restarted_ = false;  // and has not been stepped since
  std::function<void(const RoundEffects&)> watcher_;
};

// Settings of a job of MIN to MAX nodes; everything else as by default.
JobSettings NodesFrom(int nodes_min, int nodes_max, int max_restarts = 0);

}  // namespace muster

#endif  // MUSTER_TESTS_RENDEZVOUS_TEST_JOB_H_
