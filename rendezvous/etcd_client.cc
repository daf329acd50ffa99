#include "rendezvous/etcd_client.h"

#include <absl/strings/str_cat.h>

#include <utility>
#include <vector>

#include "rendezvous/credential_files.h"
#include "rendezvous/etcd_call.h"
#include "rendezvous/grpc_runtime.h"

namespace muster {
namespace {

namespace etcd = etcdserverpb;

// Finds members that vanished without a word while a watch waits. etcd allows a ping every 5 s.
constexpr int kKeepAliveTimeMs = 10'000;
constexpr int kKeepAliveTimeoutMs = 5'000;
// How long a member may take to answer a connection, and how soon it is tried again.
constexpr int kReconnectMinMs = 2'000;
constexpr int kReconnectFirstMs = 100;
constexpr int kReconnectMaxMs = 1'000;

absl::Status ReadPem(const std::string& path, std::string* text) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> content = ReadCredentialFile(path);
  if (!content.ok()) return content.status();
  if (content->empty()) return absl::FailedPreconditionError(absl::StrCat(path, " is empty"));
  *text = *std::move(content);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(const EtcdOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions pem;
  absl::Status status = ReadPem(options.ca_file, &pem.pem_root_certs);
  if (status.ok()) status = ReadPem(options.cert_file, &pem.pem_cert_chain);
  if (status.ok()) status = ReadPem(options.key_file, &pem.pem_private_key);
  if (!status.ok()) return status;
  return grpc::SslCredentials(pem);
}

std::shared_ptr<grpc::Channel> Channel(const HostPort& endpoint,
                                       const std::shared_ptr<grpc::ChannelCredentials>& how) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepAliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepAliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMinMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectFirstMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(-1);  // the state of all jobs
  return grpc::CreateCustomChannel(ToString(endpoint), how, arguments);
}

// A call with one request and one answer.
template <typename Request, typename Response>
class PlainCall final : public EtcdCall {
 public:
  // As the methods of gRPC's async stubs.
  using Method = std::function<void(const EtcdMember&, grpc::ClientContext*, const Request*,
                                    Response*, std::function<void(grpc::Status)>)>;

  PlainCall(std::shared_ptr<EtcdSession> session, Request request, Method method,
            EtcdClient::Done<Response> done)
      : EtcdCall(std::move(session), /*is_endless=*/false),
        request_(std::move(request)),
        method_(std::move(method)),
        done_(std::move(done)) {}

 private:
  void Start(const EtcdMember& member, grpc::ClientContext* context, OnDone on_done) override {
    response_.Clear();
    method_(member, context, &request_, &response_, std::move(on_done));
  }

  void Finish(const absl::Status& status) override {
    if (status.ok()) {
      done_(std::move(response_));
    } else {
      done_(status);
    }
  }

  const Request request_;
  const Method method_;
  const EtcdClient::Done<Response> done_;
  Response response_;
};

// The stream of a watch, until the first events. Deletes itself.
class WatchStream final : public grpc::ClientBidiReactor<etcd::WatchRequest, etcd::WatchResponse> {
 public:
  WatchStream(const EtcdMember& member, grpc::ClientContext* context,
              const etcd::WatchRequest* request, etcd::WatchResponse* response,
              std::function<void(const grpc::Status&)> on_done)
      : context_(context), response_(response), on_done_(std::move(on_done)) {
    member.watch->async()->Watch(context_, this);
    StartWrite(request);
    StartRead(response_);
    StartCall();
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (response_->events().empty() && !response_->canceled()) {
      StartRead(response_);
      return;
    }
    has_result_ = true;
    context_->TryCancel();
  }

  void OnDone(const grpc::Status& status) override {
    const auto on_done = std::move(on_done_);
    const grpc::Status result = has_result_ ? grpc::Status::OK : Unfinished(status);
    delete this;
    on_done(result);
  }

  // A member that ends the stream in good order goes away.
  static grpc::Status Unfinished(const grpc::Status& status) {
    return status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the watch ended") : status;
  }

  grpc::ClientContext* const context_;
  etcd::WatchResponse* const response_;
  std::function<void(const grpc::Status&)> on_done_;
  bool has_result_ = false;
};

class WatchCall final : public EtcdCall {
 public:
  WatchCall(std::shared_ptr<EtcdSession> session, const std::string& key, int64_t revision,
            EtcdClient::Done<etcd::WatchResponse> done)
      : EtcdCall(std::move(session), /*is_endless=*/true), done_(std::move(done)) {
    request_.mutable_create_request()->set_key(key);
    request_.mutable_create_request()->set_start_revision(revision + 1);
  }

 private:
  void Start(const EtcdMember& member, grpc::ClientContext* context, OnDone on_done) override {
    new WatchStream(member, context, &request_, &response_, std::move(on_done));
  }

  void Finish(const absl::Status& status) override {
    if (!status.ok()) return done_(status);
    if (!response_.canceled()) return done_(std::move(response_));
    if (response_.compact_revision() != 0) {
      return done_(absl::OutOfRangeError("etcd: the changes have been compacted"));
    }
    done_(absl::UnavailableError(
        absl::StrCat("etcd: the watch was cancelled: ", response_.cancel_reason())));
  }

  const EtcdClient::Done<etcd::WatchResponse> done_;
  etcd::WatchRequest request_;
  etcd::WatchResponse response_;
};

// Waits for an answer that another thread brings.
template <typename Response>
class Answer {
 public:
  EtcdClient::Done<Response> Taker() {
    return [this](absl::StatusOr<Response> response) {
      MutexLock lock(&mutex_);
      response_ = std::move(response);
      is_there_ = true;
      changed_.SignalAll();
    };
  }

  absl::StatusOr<Response> Take() {
    MutexLock lock(&mutex_);
    while (!is_there_) changed_.Wait(&mutex_);
    return std::move(response_);
  }

 private:
  Mutex mutex_;
  Condition changed_;
  bool is_there_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<Response> response_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

struct EtcdClient::State : EtcdSession {
  using EtcdSession::EtcdSession;
};

absl::StatusOr<std::unique_ptr<EtcdClient>> EtcdClient::Make(const EtcdOptions& options) {
  if (options.endpoints.empty()) return absl::InvalidArgumentError("etcd: no endpoint is given");
  const auto credentials = Credentials(options);
  if (!credentials.ok()) return credentials.status();
  PrepareGrpc();
  std::vector<EtcdMember> members;
  for (const HostPort& endpoint : options.endpoints) {
    const std::shared_ptr<grpc::Channel> channel = Channel(endpoint, *credentials);
    members.push_back({ToString(endpoint), etcd::KV::NewStub(channel),
                       etcd::Lease::NewStub(channel), etcd::Watch::NewStub(channel),
                       etcd::Auth::NewStub(channel)});
  }
  auto state = std::make_shared<State>(options, std::move(members));
  return std::unique_ptr<EtcdClient>(new EtcdClient(std::move(state)));
}

EtcdClient::EtcdClient(std::shared_ptr<State> state) : state_(std::move(state)) {}

EtcdClient::~EtcdClient() {
  state_->Cancel();
  state_->AwaitEnd();
}

void EtcdClient::Cancel() { state_->Cancel(); }

void EtcdClient::Range(const etcd::RangeRequest& request, Done<etcd::RangeResponse> done) {
  const auto method = [](const EtcdMember& member, auto... arguments) {
    member.kv->async()->Range(std::move(arguments)...);
  };
  std::make_shared<PlainCall<etcd::RangeRequest, etcd::RangeResponse>>(state_, request, method,
                                                                       std::move(done))
      ->Run();
}

void EtcdClient::Txn(const etcd::TxnRequest& request, Done<etcd::TxnResponse> done) {
  const auto method = [](const EtcdMember& member, auto... arguments) {
    member.kv->async()->Txn(std::move(arguments)...);
  };
  std::make_shared<PlainCall<etcd::TxnRequest, etcd::TxnResponse>>(state_, request, method,
                                                                   std::move(done))
      ->Run();
}

void EtcdClient::LeaseGrant(const etcd::LeaseGrantRequest& request,
                            Done<etcd::LeaseGrantResponse> done) {
  const auto method = [](const EtcdMember& member, auto... arguments) {
    member.lease->async()->LeaseGrant(std::move(arguments)...);
  };
  std::make_shared<PlainCall<etcd::LeaseGrantRequest, etcd::LeaseGrantResponse>>(
      state_, request, method, std::move(done))
      ->Run();
}

void EtcdClient::LeaseRevoke(const etcd::LeaseRevokeRequest& request,
                             Done<etcd::LeaseRevokeResponse> done) {
  const auto method = [](const EtcdMember& member, auto... arguments) {
    member.lease->async()->LeaseRevoke(std::move(arguments)...);
  };
  std::make_shared<PlainCall<etcd::LeaseRevokeRequest, etcd::LeaseRevokeResponse>>(
      state_, request, method, std::move(done))
      ->Run();
}

void EtcdClient::LeaseKeepAlive(const etcd::LeaseKeepAliveRequest& request,
                                Done<etcd::LeaseKeepAliveResponse> done) {
  const auto method = [](const EtcdMember& member, auto... arguments) {
    member.lease->async()->LeaseKeepAlive(std::move(arguments)...);
  };
  std::make_shared<PlainCall<etcd::LeaseKeepAliveRequest, etcd::LeaseKeepAliveResponse>>(
      state_, request, method, std::move(done))
      ->Run();
}

void EtcdClient::AwaitChange(const std::string& key, int64_t revision,
                             Done<etcd::WatchResponse> done) {
  std::make_shared<WatchCall>(state_, key, revision, std::move(done))->Run();
}

absl::StatusOr<etcd::RangeResponse> EtcdClient::RangeAndWait(const etcd::RangeRequest& request) {
  Answer<etcd::RangeResponse> answer;
  Range(request, answer.Taker());
  return answer.Take();
}

absl::StatusOr<etcd::TxnResponse> EtcdClient::TxnAndWait(const etcd::TxnRequest& request) {
  Answer<etcd::TxnResponse> answer;
  Txn(request, answer.Taker());
  return answer.Take();
}

absl::StatusOr<etcd::LeaseGrantResponse> EtcdClient::LeaseGrantAndWait(
    const etcd::LeaseGrantRequest& request) {
  Answer<etcd::LeaseGrantResponse> answer;
  LeaseGrant(request, answer.Taker());
  return answer.Take();
}

std::string AfterPrefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');  // all keys, in etcd's words
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

}  // namespace muster
