#ifndef MUSTER_TESTS_RENDEZVOUS_TEST_ETCD_H_
#define MUSTER_TESTS_RENDEZVOUS_TEST_ETCD_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "rendezvous/etcd_options.h"
#include "tests/rendezvous/test_agent.h"

namespace muster {

// A real etcd for a test: so many member processes on free ports of the loopback address, in a
// temporary folder. It is killed with the test.
class TestEtcd {
 public:
  // TLS towards clients, and a certificate asked of them, where there is a CA.
  struct Tls {
    std::string ca;
    std::string cert;
    std::string key;
  };

  // Serves when it is made.
  explicit TestEtcd(int members, Tls tls = {});
  ~TestEtcd();

  EtcdOptions options() const;

  // One member is killed with SIGKILL, or started again on its data and waited for.
  void Kill(int member);
  void Start(int member);
  // The member that the others follow.
  int Leader();

  // Runs etcdctl, with the endpoints; the test fails if that fails. Its standard output.
  std::string Control(const std::vector<std::string>& words);

 private:
  struct Member {
    ReservedPort client;
    ReservedPort peer;
    std::string name;
    pid_t pid = -1;
    std::thread reader;
  };

  void Spawn(Member* member);
  void Read(Member* member, UniqueFd log);
  void AwaitReady(const Member& member);

  const Tls tls_;
  std::string folder_;
  std::vector<std::unique_ptr<Member>> members_;
  Mutex mutex_;
  Condition changed_;
  const Member* leader_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<const Member*> ready_ ABSL_GUARDED_BY(mutex_);
};

// Runs a program to its end; its exit code, or -1. `output` may be null.
int RunProgram(const std::vector<std::string>& words, std::string* output);

}  // namespace muster

#endif  // MUSTER_TESTS_RENDEZVOUS_TEST_ETCD_H_
