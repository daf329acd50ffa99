#ifndef MUSTER_BENCH_LOAD_HELLO_H_
#define MUSTER_BENCH_LOAD_HELLO_H_

#include <cstdint>
#include <string>

#include "proto/rendezvous.pb.h"

namespace muster {

// What agent `i` of a job of `agents` says first.
inline v1::Hello HelloOf(const std::string& job, int agents, int i, uint64_t incarnation) {
  constexpr int64_t kSecond = 1'000'000'000;
  v1::Hello hello;
  hello.set_job_id(job);
  v1::JobSettings* settings = hello.mutable_settings();
  settings->set_nodes_min(agents);
  settings->set_nodes_max(agents);
  settings->set_max_restarts(1000);
  settings->set_last_call_ns(kSecond);
  settings->set_join_timeout_ns(600 * kSecond);
  settings->set_keep_alive_interval_ns(5 * kSecond);
  settings->set_keep_alive_max_attempt(12);
  settings->set_master_loss_timeout_ns(3600 * kSecond);
  settings->set_exit_barrier_timeout_ns(300 * kSecond);
  hello.set_node_id("node" + std::to_string(i));
  hello.set_incarnation(incarnation);
  hello.set_slots(8);
  hello.set_role("default");
  hello.add_own_addresses("127.0.0.1");
  hello.set_dialled_host("127.0.0.1");
  hello.set_next_port(20000 + i % 40000);
  hello.set_topology_key("rack" + std::to_string(i % 32));
  return hello;
}

}  // namespace muster

#endif  // MUSTER_BENCH_LOAD_HELLO_H_
