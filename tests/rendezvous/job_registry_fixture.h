#ifndef MUSTER_TESTS_RENDEZVOUS_JOB_REGISTRY_FIXTURE_H_
#define MUSTER_TESTS_RENDEZVOUS_JOB_REGISTRY_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/job_registry.h"

namespace muster {

// A registry of jobs, and what it sends.
class JobRegistryTest : public testing::Test {
 protected:
  explicit JobRegistryTest(MasterLimits limits = {}, Duration idle_time = {})
      : registry_({.seed = 1,
                   .limits = limits,
                   .idle_time = idle_time,
                   .on_violation = [](const std::string& what) { ADD_FAILURE() << what; }}) {}

  static Hello HelloOf(const std::string& job_id, const std::string& node_id, uint64_t incarnation,
                       int nodes = 1) {
    Hello hello;
    hello.job_id = job_id;
    hello.node_id = node_id;
    hello.incarnation = incarnation;
    hello.settings.nodes_min = hello.settings.nodes_max = nodes;
    hello.next_port = 20000;
    return hello;
  }

  // What the registry sends to `stream` in answer to a message that comes on it.
  std::vector<MasterMessage> Say(StreamId stream, AgentMessage message) {
    all_ = registry_.Step(now_, MessageArrived{stream, std::move(message), ""});
    return To(stream);
  }
  std::vector<MasterMessage> To(StreamId stream) const {
    std::vector<MasterMessage> sent;
    for (const JobEffects& job : all_) {
      for (const RoundEffect& effect : job.effects) {
        const auto* send = std::get_if<SendTo>(&effect);
        if (send != nullptr && send->stream == stream) sent.push_back(send->message);
      }
    }
    return sent;
  }
  bool Closes(StreamId stream) const {
    for (const JobEffects& job : all_) {
      for (const RoundEffect& effect : job.effects) {
        const auto* close = std::get_if<CloseStreamTo>(&effect);
        if (close != nullptr && close->stream == stream) return true;
      }
    }
    return false;
  }
  template <typename T>
  static const T* Only(const std::vector<MasterMessage>& messages) {
    return messages.size() == 1 ? std::get_if<T>(&messages.front()) : nullptr;
  }
  void EndJob(StreamId stream, const std::string& job_id) {
    const int64_t generation = registry_.Find(job_id)->generation();
    ASSERT_NE(Only<Verdict>(Say(stream, WorkersSucceeded{generation, 0})), nullptr);
  }

  Time now_{std::chrono::hours(1)};
  JobRegistry registry_;
  std::vector<JobEffects> all_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_RENDEZVOUS_JOB_REGISTRY_FIXTURE_H_
