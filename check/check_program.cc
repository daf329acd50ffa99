#include "check/check_program.h"

#include <muster/worker.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/duration_text.h"
#include "base/env.h"
#include "base/event_loop.h"
#include "base/host_port.h"
#include "base/local_addresses.h"
#include "base/port_user.h"
#include "base/print_out.h"
#include "check/channel.h"
#include "check/machine.h"
#include "check/meeting.h"
#include "check/part.h"
#include "check/report.h"

namespace muster::check {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDialTime = 5s;    // long enough for a packet that is lost once
constexpr Duration kAnswerTime = 5s;  // for the way of an answer

struct Arguments {
  Duration timeout = 30s;
  bool json = false;
  std::string backend = "auto";
  std::string torch;
  std::string master;  // HOST:PORT; empty: this is a rank
  bool lonely = false;
  std::string option;
  bool here = false;
};

std::optional<Arguments> ParseArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--here") {
      arguments.here = true;
      continue;
    }
    if (++i == argc) return std::nullopt;
    const std::string value = argv[i];
    if (word == "--timeout") {
      const std::optional<Duration> timeout = ParseDuration(value);
      if (!timeout) return std::nullopt;
      arguments.timeout = *timeout;
    } else if (word == "--output") {
      arguments.json = value == "json";
    } else if (word == "--backend") {
      arguments.backend = value;
    } else if (word == "--torch") {
      arguments.torch = value;
    } else if (word == "--unreached" || word == "--lonely") {
      arguments.master = value;
      arguments.lonely = word == "--lonely";
    } else if (word == "--option") {
      arguments.option = value;
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

int Usage() {
  std::fputs("muster: this program is started by 'muster check': use that\n", stderr);
  return kExitUsage;
}

// Prints what was found; the exit code.
int Print(bool json, const Observed& observed, const std::vector<Finding>& findings) {
  const int printed =
      PrintOut(json ? ReportJson(observed, findings) : ReportTable(observed, findings));
  if (printed != 0) return printed;
  return HasProblem(findings) ? kExitProblem : kExitClear;
}

class Program {
 public:
  Program(Arguments arguments, Identity identity, const EnvMap& env, const TorchParts* torch)
      : arguments_(std::move(arguments)),
        identity_(std::move(identity)),
        torch_(torch),
        began_(EventLoop::Now()),
        facts_(CollectFacts(identity_, env, arguments_.backend)) {
    if (facts_.address.empty() && !facts_.master_addresses.empty()) {
      facts_.address = RouteAddress(facts_.master_addresses.front());
      facts_.node_addresses = ResolvedAddresses(facts_.address);
    }
    facts_.torch = arguments_.torch;
    if (torch_ == nullptr) return;
    facts_.libtorch = torch_->libtorch;
    facts_.nccl = NcclVersion(torch_->nccl_library);
  }

  int Run() {
    Listener worker = Listen(0);
    facts_.port = worker.port;
    if (worker.error != 0) {
      return Alone({{Severity::kProblem, NodeText(facts_),
                     absl::StrCat("cannot listen on any port: ", std::strerror(worker.error)),
                     "raise the limit of descriptors (ulimit -n), or free ports"}});
    }
    Part part(&facts_, std::move(worker), identity_.world_size, torch_);
    return identity_.rank == 0 ? RunHost(&part) : RunGuest(&part);
  }

 private:
  std::string key() const { return absl::StrCat(identity_.run_id, " ", identity_.generation); }

  // What this rank knows without the others.
  int Alone(const std::vector<Finding>& findings) {
    Observed own;
    own.facts = {facts_};
    return Print(arguments_.json, own, findings);
  }

  int RunHost(Part* part) {
    Observed observed;
    observed.world_size = identity_.world_size;
    observed.master_addr = identity_.master_addr;
    observed.master_port = identity_.master_port;
    Listener listener = Listen(identity_.master_port);
    if (listener.error != 0) {
      const PortUser user = FindPortUser(identity_.master_port);
      return Alone({{Severity::kProblem, NodeText(facts_),
                     absl::StrCat("cannot listen at MASTER_PORT ", identity_.master_port, ": ",
                                  std::strerror(listener.error),
                                  user.text.empty() ? "" : " (" + user.text + ")"),
                     "choose another --master-port, or end what listens there"}});
    }
    Host host(std::move(listener), identity_.world_size, key());
    observed.facts = {facts_};
    // Longer than the others try: who does not get here has said why when this ends the job.
    const Time enough = began_ + arguments_.timeout + kAnswerTime;
    for (const auto& [rank, fields] : host.Gather(enough)) {
      std::optional<Facts> facts = FactsFrom(fields);
      if (facts) observed.facts.push_back(*std::move(facts));
    }
    host.Close();
    Measure(&host, part, &observed);
    const std::vector<Finding> findings = FindingsOf(observed);
    const int code = Print(arguments_.json, observed, findings);
    Fields end = OrderFields(Order::kEnd);
    end.emplace_back("code", absl::StrCat(code));
    end.emplace_back("count", CountText(findings));
    end.emplace_back("host", facts_.host);
    host.Tell(end, EventLoop::Now() + kAnswerTime);
    host.Collect(EventLoop::Now() + kAnswerTime);  // until they have gone
    return code;
  }

  // What each rank has to say to an order, itself among them.
  std::map<int, Fields> Ask(Host* host, Part* part, const Fields& order, Duration timeout) {
    host->Tell(order, EventLoop::Now() + kAnswerTime);
    Fields own = part->Do(*OrderFrom(order), order, timeout);
    std::map<int, Fields> answers = host->Collect(EventLoop::Now() + timeout + kAnswerTime);
    answers[0] = std::move(own);
    return answers;
  }

  void Measure(Host* host, Part* part, Observed* observed) {
    const int size = identity_.world_size;
    const Fields dial = OrderFields(Order::kDial, observed->facts);
    observed->failed_dials = FailedDialsFrom(Ask(host, part, dial, kDialTime));
    const bool is_whole = static_cast<int>(observed->facts.size()) == size;
    if (!is_whole || !observed->failed_dials.empty()) return;
    if (size > 1) {
      AllReduce ring = AllReduceFrom(Ask(host, part, OrderFields(Order::kForm), arguments_.timeout),
                                     size, "TCP");
      if (ring.failed_rank < 0) {
        ring = AllReduceFrom(Ask(host, part, OrderFields(Order::kSum), arguments_.timeout), size,
                             "TCP");
      }
      observed->all_reduces.push_back(ring);
    }
    const bool is_torch =
        std::all_of(observed->facts.begin(), observed->facts.end(), [&](const Facts& facts) {
          return !facts.libtorch.empty() && facts.libtorch == facts_.libtorch &&
                 facts.backend == facts_.backend;
        });
    if (!is_torch) return;
    observed->all_reduces.push_back(
        AllReduceFrom(Ask(host, part, OrderFields(Order::kTorch), arguments_.timeout), size,
                      "LibTorch, " + facts_.backend));
  }

  int RunGuest(Part* part) {
    Joined joined = Join(identity_.master_addr, identity_.master_port, ToFields(facts_), key(),
                         identity_.rank, began_ + arguments_.timeout);
    if (!joined.channel) return Unheard(joined);
    while (true) {
      // Rank 0 is silent while it waits for others, and while it measures.
      const Time deadline = EventLoop::Now() + arguments_.timeout * 2 + kDialTime + kAnswerTime;
      const std::optional<Fields> fields = joined.channel->Receive(deadline);
      const std::optional<Order> order = fields ? OrderFrom(*fields) : std::nullopt;
      if (!order) {
        return Alone({{Severity::kProblem, absl::StrCat("rank ", identity_.rank),
                       "rank 0 was reached, and has ended or said nothing more",
                       "read what is printed on the node of rank 0"}});
      }
      if (*order == Order::kEnd) return Ended(*fields);
      const Duration timeout = *order == Order::kDial ? kDialTime : arguments_.timeout;
      joined.channel->Send(part->Do(*order, *fields, timeout), EventLoop::Now() + kAnswerTime);
    }
  }

  int Ended(const Fields& end) {
    const int code = static_cast<int>(WholeNumber(FirstOf(end, "code")).value_or(kExitProblem));
    if (code != kExitClear && identity_.local_rank == 0 && identity_.node != 0) {
      const std::string line =
          absl::StrCat("muster: check: ", std::string(FirstOf(end, "count")),
                       ", printed by rank 0 on ", std::string(FirstOf(end, "host")), "\n");
      std::fputs(line.c_str(), stderr);
    }
    // The code is rank 0's alone: the launcher need not stop anybody.
    return kExitClear;
  }

  int Unheard(const Joined& joined) {
    Unreached unreached;
    unreached.what = "rank 0";
    unreached.host = identity_.master_addr;
    unreached.port = identity_.master_port;
    unreached.option = "MASTER_ADDR";
    unreached.resolve_problem = joined.resolve_problem;
    unreached.attempts = joined.attempts;
    unreached.spans_hosts = identity_.nodes > 1 && !IsLoopbackHost(facts_.address);
    const int code = Alone(FindingsOf(facts_, unreached));
    std::fflush(stdout);
    // Else the launcher would stop rank 0 before it has printed what it knows.
    poll(nullptr, 0, MillisecondsTo(EventLoop::Now() + arguments_.timeout + 2 * kAnswerTime));
    return code;
  }

  const Arguments arguments_;
  const Identity identity_;
  const TorchParts* torch_;
  const Time began_;
  Facts facts_;
};

std::vector<Finding> Explanation(const Facts& own, const Arguments& arguments,
                                 const HostPort& endpoint) {
  Unreached master;
  master.what = "the master";
  master.host = endpoint.host;
  master.port = endpoint.port;
  master.option = arguments.option;
  master.should_be_here = arguments.here;
  for (const std::string& address : ResolvedAddresses(endpoint.host, &master.resolve_problem)) {
    master.attempts.push_back({address, 0});
  }
  if (arguments.lonely) return LonelyFindings(own, master);
  for (Attempt& attempt : master.attempts) {
    const Time deadline = EventLoop::Now() + kDialTime;
    attempt.error = Dial({{attempt.address, endpoint.port}}, deadline)[0].error;
  }
  return FindingsOf(own, master);
}

// This node has met nobody.
int Explain(const Arguments& arguments, const EnvMap& env) {
  const absl::StatusOr<HostPort> master = ParseHostPort(arguments.master, 0);
  if (!master.ok()) return Usage();
  Observed observed;
  Facts& own = observed.facts.emplace_back(CollectFacts(Identity(), env, arguments.backend));
  own.node = -1;
  return Print(arguments.json, observed, Explanation(own, arguments, *master));
}

}  // namespace

int CheckProgram(int argc, char** argv, const TorchParts* torch) {
  const EnvMap env = EnvMapFrom(environ);
  std::optional<Arguments> arguments = ParseArguments(argc, argv);
  if (!arguments) return Usage();
  if (!arguments->master.empty()) return Explain(*arguments, env);
  try {
    Identity self = identity();
    if (!self.launched) return Usage();
    return Program(*std::move(arguments), std::move(self), env, torch).Run();
  } catch (const Error& error) {
    std::fprintf(stderr, "muster: %s\n", error.what());
    return kExitUsage;
  }
}

}  // namespace muster::check
