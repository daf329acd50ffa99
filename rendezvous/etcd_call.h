#ifndef MUSTER_RENDEZVOUS_ETCD_CALL_H_
#define MUSTER_RENDEZVOUS_ETCD_CALL_H_

#include <absl/status/status.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "proto/etcd.grpc.pb.h"
#include "rendezvous/etcd_options.h"

// The inside of EtcdClient: which member a call is made to, with which token, and how often.

namespace muster {

// One member of the etcd.
struct EtcdMember {
  std::string name;  // "host:port"
  std::unique_ptr<etcdserverpb::KV::Stub> kv;
  std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  std::unique_ptr<etcdserverpb::Watch::Stub> watch;
  std::unique_ptr<etcdserverpb::Auth::Stub> auth;
};

// What all calls of a client share. Thread-safe.
class EtcdSession {
 public:
  EtcdSession(const EtcdOptions& options, std::vector<EtcdMember> members)
      : options_(options), members_(std::move(members)) {}

  const EtcdOptions& options() const { return options_; }
  size_t size() const { return members_.size(); }
  const EtcdMember& Current();
  // Later calls go to another member, if `failed` is still the current one.
  void PassOver(const EtcdMember& failed);

  // The token to be sent; empty: none is there yet, or none is needed.
  std::string Token();
  bool NeedsToken();
  void SetToken(const std::string& token);
  void Forget(const std::string& token);
  void DoWithoutTokens();  // etcd asks nobody who they are

  // A call counts from Enter to Leave; each attempt announces its context. False: cancelled.
  void Enter();
  void Leave();
  bool Begin(grpc::ClientContext* context);
  void End(grpc::ClientContext* context);
  void Cancel();
  void AwaitEnd();

 private:
  const EtcdOptions options_;
  const std::vector<EtcdMember> members_;
  Mutex mutex_;
  Condition changed_;
  size_t current_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  bool without_tokens_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);
};

// One call, over as many attempts as it takes.
class EtcdCall : public std::enable_shared_from_this<EtcdCall> {
 public:
  // `is_endless`: a call that waits for something to happen; it has no deadline and one attempt.
  EtcdCall(std::shared_ptr<EtcdSession> session, bool is_endless)
      : session_(std::move(session)), is_endless_(is_endless) {}
  virtual ~EtcdCall() = default;

  void Run();

 protected:
  using OnDone = std::function<void(const grpc::Status&)>;

  // Makes one attempt. The context has deadline and token; it and the call live until `on_done`.
  virtual void Start(const EtcdMember& member, grpc::ClientContext* context, OnDone on_done) = 0;
  // Called once, last.
  virtual void Finish(const absl::Status& status) = 0;

 private:
  void Attempt();
  void Authenticate();
  void Prepare();
  void OnAuthenticated(const grpc::Status& status);
  void OnAttempted(const grpc::Status& status);
  void TryNext(const absl::Status& status);
  void End(const absl::Status& status);

  const std::shared_ptr<EtcdSession> session_;
  const bool is_endless_;
  RealClock clock_;
  Time deadline_{};
  size_t attempts_left_ = 0;
  bool has_renewed_token_ = false;
  const EtcdMember* member_ = nullptr;            // of the attempt under way
  std::unique_ptr<grpc::ClientContext> context_;  // likewise
  std::string token_;                             // likewise
  etcdserverpb::AuthenticateRequest login_;
  etcdserverpb::AuthenticateResponse logged_in_;
};

// etcd's answer as a status of EtcdClient.
absl::Status EtcdStatus(const std::string& member, const grpc::Status& status);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ETCD_CALL_H_
