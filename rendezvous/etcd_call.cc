#include "rendezvous/etcd_call.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <utility>

#include "rendezvous/credential_files.h"

namespace muster {
namespace {

// Of the time that a call has, what one of several members gets.
constexpr double kShareOfAttempt = 0.4;

gpr_timespec In(Duration span) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(span).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(micros, GPR_TIMESPAN));
}

// The member cannot serve this now; another one may.
bool IsOfThisMember(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
}

bool IsOldToken(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         absl::StrContains(status.error_message(), "revision of auth store is old");
}

// The first line of the file.
absl::StatusOr<std::string> ReadPassword(const std::string& path) {
  absl::StatusOr<std::string> text = ReadCredentialFile(path);
  if (!text.ok()) return text;
  std::string line = text->substr(0, text->find('\n'));
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

}  // namespace

absl::Status EtcdStatus(const std::string& member, const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  std::string words(absl::StripPrefix(status.error_message(), "etcdserver: "));
  std::replace(words.begin(), words.end(), '\n', ' ');
  const std::string text = absl::StrCat("etcd at ", member, ": ", words);
  const bool is_login = absl::StrContains(words, "user name is empty") ||
                        absl::StrContains(words, "invalid user ID or password") ||
                        absl::StrContains(words, "authentication failed");
  if (is_login) return absl::UnauthenticatedError(text);
  if (absl::StrContains(words, "too large")) return absl::ResourceExhaustedError(text);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::UnavailableError(absl::StrCat("etcd at ", member, ": no answer in time"));
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), text);
}

const EtcdMember& EtcdSession::Current() {
  MutexLock lock(&mutex_);
  return members_[current_];
}

void EtcdSession::PassOver(const EtcdMember& failed) {
  MutexLock lock(&mutex_);
  if (&members_[current_] == &failed) current_ = (current_ + 1) % members_.size();
}

std::string EtcdSession::Token() {
  MutexLock lock(&mutex_);
  return token_;
}

bool EtcdSession::NeedsToken() {
  MutexLock lock(&mutex_);
  return !options_.user.empty() && token_.empty() && !without_tokens_;
}

void EtcdSession::SetToken(const std::string& token) {
  MutexLock lock(&mutex_);
  token_ = token;
}

void EtcdSession::Forget(const std::string& token) {
  MutexLock lock(&mutex_);
  if (token_ == token) token_.clear();
}

void EtcdSession::DoWithoutTokens() {
  MutexLock lock(&mutex_);
  without_tokens_ = true;
}

void EtcdSession::Enter() {
  MutexLock lock(&mutex_);
  ++calls_;
}

void EtcdSession::Leave() {
  MutexLock lock(&mutex_);
  --calls_;
  changed_.SignalAll();
}

bool EtcdSession::Begin(grpc::ClientContext* context) {
  MutexLock lock(&mutex_);
  if (!cancelled_) contexts_.insert(context);
  return !cancelled_;
}

void EtcdSession::End(grpc::ClientContext* context) {
  MutexLock lock(&mutex_);
  contexts_.erase(context);
}

void EtcdSession::Cancel() {
  MutexLock lock(&mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* context : contexts_) context->TryCancel();
}

void EtcdSession::AwaitEnd() {
  MutexLock lock(&mutex_);
  while (calls_ > 0) changed_.Wait(&mutex_);
}

void EtcdCall::Run() {
  session_->Enter();
  deadline_ = is_endless_ ? kNever : clock_.Now() + session_->options().timeout;
  attempts_left_ = is_endless_ ? 1 : session_->size();
  Attempt();
}

void EtcdCall::Prepare() {
  member_ = &session_->Current();
  context_ = std::make_unique<grpc::ClientContext>();
  const Duration timeout = session_->options().timeout;
  const Duration left = deadline_ == kNever ? Duration::max() : deadline_ - clock_.Now();
  const auto share = std::chrono::duration_cast<Duration>(timeout * kShareOfAttempt);
  if (!is_endless_) context_->set_deadline(In(session_->size() > 1 ? std::min(left, share) : left));
  token_ = session_->Token();
  if (!token_.empty()) context_->AddMetadata("token", token_);
  // A member that is cut off from the others would let a watch wait for ever.
  if (is_endless_) context_->AddMetadata("hasleader", "true");
}

void EtcdCall::Attempt() {
  if (session_->NeedsToken()) {
    Authenticate();
    return;
  }
  Prepare();
  if (!session_->Begin(context_.get())) return End(absl::CancelledError("etcd: cancelled"));
  Start(*member_, context_.get(),
        [self = shared_from_this()](const grpc::Status& status) { self->OnAttempted(status); });
}

void EtcdCall::Authenticate() {
  const absl::StatusOr<std::string> password = ReadPassword(session_->options().password_file);
  if (!password.ok()) return End(password.status());
  login_.set_name(session_->options().user);
  login_.set_password(*password);
  member_ = &session_->Current();
  context_ = std::make_unique<grpc::ClientContext>();
  context_->set_deadline(In(session_->options().timeout));
  if (!session_->Begin(context_.get())) return End(absl::CancelledError("etcd: cancelled"));
  member_->auth->async()->Authenticate(
      context_.get(), &login_, &logged_in_,
      [self = shared_from_this()](const grpc::Status& status) { self->OnAuthenticated(status); });
}

void EtcdCall::OnAuthenticated(const grpc::Status& status) {
  session_->End(context_.get());
  if (status.ok()) {
    session_->SetToken(logged_in_.token());
    return Attempt();
  }
  if (absl::StrContains(status.error_message(), "authentication is not enabled")) {
    session_->DoWithoutTokens();
    return Attempt();
  }
  const absl::Status problem = EtcdStatus(member_->name, status);
  if (IsOfThisMember(status)) return TryNext(problem);
  End(problem);
}

void EtcdCall::OnAttempted(const grpc::Status& status) {
  session_->End(context_.get());
  const absl::Status result = EtcdStatus(member_->name, status);
  if (IsOfThisMember(status)) return TryNext(result);
  if (!token_.empty() && IsOldToken(status) && !std::exchange(has_renewed_token_, true)) {
    session_->Forget(token_);
    return Attempt();
  }
  End(result);
}

void EtcdCall::TryNext(const absl::Status& status) {
  session_->PassOver(*member_);
  if (--attempts_left_ == 0 || clock_.Now() >= deadline_) return End(status);
  Attempt();
}

void EtcdCall::End(const absl::Status& status) {
  Finish(status);
  session_->Leave();
}

}  // namespace muster
