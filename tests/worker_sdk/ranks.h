#ifndef MUSTER_TESTS_WORKER_SDK_RANKS_H_
#define MUSTER_TESTS_WORKER_SDK_RANKS_H_

#include <functional>
#include <map>
#include <string>

namespace muster {

using Variables = std::map<std::string, std::string>;

// Runs `body(rank)` in `ranks` forked processes that have a launcher's environment (a free port of
// loopback, and `variables` besides), and waits for all. A body fails the test by EXPECT_ or by an
// exception; what it returns is its exit code. True if every one ended with 0 within a minute. The
// calling process must not have used LibTorch: its threads do not survive a fork.
bool OnRanks(int ranks, const std::function<int(int rank)>& body, const Variables& variables = {});

}  // namespace muster

#endif  // MUSTER_TESTS_WORKER_SDK_RANKS_H_
