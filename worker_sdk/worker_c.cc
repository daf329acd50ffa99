#include <muster/worker.h>
#include <muster/worker_c.h>

#include <array>
#include <cstdio>
#include <memory>

#include "base/version.h"

struct MusterWorker {
  muster::Identity identity;
  muster::AgentLink agent;
};

namespace {

// An array, so that there is room to say that there is no memory.
thread_local std::array<char, 1024> last_error;

void Remember(const char* text) { std::snprintf(last_error.data(), last_error.size(), "%s", text); }

const muster::Identity& IdentityOf(const MusterWorker* worker) {
  static const muster::Identity kAlone;
  return worker == nullptr ? kAlone : worker->identity;
}

std::string_view TextOf(const char* text) { return text == nullptr ? "" : text; }

// The link itself throws for want of memory at most, and then nothing was said or heard.
template <class F>
auto WithAgent(MusterWorker* worker, F&& use) -> decltype(use(worker->agent)) {
  using Answer = decltype(use(worker->agent));
  if (worker == nullptr) return Answer();
  try {
    return use(worker->agent);
  } catch (...) {
    return Answer();
  }
}

}  // namespace

extern "C" {

int muster_worker_abi(void) { return MUSTER_WORKER_ABI; }
const char* muster_version(void) { return muster::kVersion; }

MusterWorker* muster_worker_open(void) {
  Remember("");
  try {
    auto worker = std::make_unique<MusterWorker>();
    worker->identity = muster::identity();
    return worker.release();
  } catch (const std::exception& error) {
    Remember(error.what());
  } catch (...) {
    Remember("cannot open the worker: an unknown exception");
  }
  return nullptr;
}

void muster_worker_close(MusterWorker* worker) { delete worker; }
const char* muster_worker_last_error(void) { return last_error.data(); }

int muster_worker_launched(const MusterWorker* worker) { return IdentityOf(worker).launched; }
int muster_worker_rank(const MusterWorker* worker) { return IdentityOf(worker).rank; }
int muster_worker_world_size(const MusterWorker* worker) { return IdentityOf(worker).world_size; }
int muster_worker_local_rank(const MusterWorker* worker) { return IdentityOf(worker).local_rank; }
int muster_worker_local_world_size(const MusterWorker* worker) {
  return IdentityOf(worker).local_world_size;
}
int muster_worker_node(const MusterWorker* worker) { return IdentityOf(worker).node; }
int muster_worker_nodes(const MusterWorker* worker) { return IdentityOf(worker).nodes; }
int muster_worker_restart_count(const MusterWorker* worker) {
  return IdentityOf(worker).restart_count;
}
int64_t muster_worker_generation(const MusterWorker* worker) {
  return IdentityOf(worker).generation;
}
const char* muster_worker_master_addr(const MusterWorker* worker) {
  return IdentityOf(worker).master_addr.c_str();
}
int muster_worker_master_port(const MusterWorker* worker) { return IdentityOf(worker).master_port; }
const char* muster_worker_local_addr(const MusterWorker* worker) {
  return IdentityOf(worker).local_addr.c_str();
}
const char* muster_worker_run_id(const MusterWorker* worker) {
  return IdentityOf(worker).run_id.c_str();
}

int muster_worker_connected(MusterWorker* worker) {
  return WithAgent(worker, [](auto& agent) { return agent.connected(); });
}

void muster_worker_ready(MusterWorker* worker) {
  WithAgent(worker, [](auto& agent) { agent.ready(); });
}
void muster_worker_step(MusterWorker* worker, int64_t step) {
  WithAgent(worker, [step](auto& agent) { agent.step(step); });
}
void muster_worker_checkpoint(MusterWorker* worker, const char* text) {
  WithAgent(worker, [text](auto& agent) { agent.checkpoint(TextOf(text)); });
}
void muster_worker_status(MusterWorker* worker, const char* text) {
  WithAgent(worker, [text](auto& agent) { agent.status(TextOf(text)); });
}
void muster_worker_error(MusterWorker* worker, const char* text) {
  WithAgent(worker, [text](auto& agent) { agent.error(TextOf(text)); });
}
void muster_worker_quiesced(MusterWorker* worker, int64_t generation) {
  WithAgent(worker, [generation](auto& agent) { agent.quiesced(generation); });
}

int muster_worker_drain_requested(MusterWorker* worker) {
  return WithAgent(worker, [](auto& agent) { return agent.drain_requested(); });
}

int muster_worker_aborted(MusterWorker* worker, int64_t* generation) {
  const auto heard = WithAgent(worker, [](auto& agent) { return agent.aborted_generation(); });
  if (heard && generation != nullptr) *generation = *heard;
  return heard.has_value();
}

size_t muster_worker_members(MusterWorker* worker, char* buffer, size_t size) {
  const auto heard = WithAgent(worker, [](auto& agent) { return agent.members(); });
  const std::string_view text = heard ? std::string_view(*heard) : std::string_view();
  if (buffer != nullptr && size > 0) {
    buffer[text.copy(buffer, size - 1)] = '\0';
  }
  return text.size();
}

}  // extern "C"
