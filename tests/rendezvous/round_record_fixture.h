#ifndef MUSTER_TESTS_RENDEZVOUS_ROUND_RECORD_FIXTURE_H_
#define MUSTER_TESTS_RENDEZVOUS_ROUND_RECORD_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>

#include "tests/rendezvous/test_job.h"

namespace muster {

// A job whose master dies and starts again.
class RoundRecordTest : public testing::Test {
 protected:
  // Two nodes run generation 1.
  void FormPair(int max_restarts = 3) {
    job_.settings().max_restarts = max_restarts;
    job_.settings().nodes_min = job_.settings().nodes_max = 2;
    job_.Join("a");
    job_.Join("b");
    ASSERT_EQ(job_.machine().phase(), RoundPhase::kRunning);
  }
  RoundPhase phase() const { return job_.machine().phase(); }
  Hello NextProcessOf(const std::string& name) const {
    Hello hello = job_.HelloOf(name);
    hello.incarnation += 50000;
    return hello;
  }

  TestJob job_{NodesFrom(2, 2)};
};

}  // namespace muster

#endif  // MUSTER_TESTS_RENDEZVOUS_ROUND_RECORD_FIXTURE_H_
