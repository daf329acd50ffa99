#include "check/findings.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/host_port.h"

namespace muster::check {
namespace {

using Findings = std::vector<Finding>;

constexpr auto kProblem = Severity::kProblem;
constexpr auto kRemark = Severity::kRemark;

// The first rank of each node speaks for it.
std::vector<const Facts*> NodesOf(const Observed& observed) {
  std::map<int, const Facts*> nodes;
  for (const Facts& facts : observed.facts) nodes.try_emplace(facts.node, &facts);
  std::vector<const Facts*> list;
  for (const auto& [node, facts] : nodes) list.push_back(facts);
  return list;
}

std::string RanksText(const std::set<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(ranks, ", "));
}

std::string AdviceOn(int error) {
  switch (error) {
    case ETIMEDOUT:
      return "nothing comes back: let TCP through between these hosts, in their firewalls and the "
             "cloud's; workers listen on ports of net.ipv4.ip_local_port_range";
    case ECONNREFUSED:
      return "the host answers and the port is closed: a firewall rejects it, or the address is "
             "another host's: give the right one with --local-addr";
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "there is no way to that address: give one that the others can reach with "
             "--local-addr, or correct the routes";
    default:
      return "see to the network between these hosts, or give another address with --local-addr";
  }
}

void AddMissing(const Observed& observed, Findings* findings) {
  std::set<int> missing;
  for (int rank = 0; rank < observed.world_size; ++rank) missing.insert(rank);
  for (const Facts& facts : observed.facts) missing.erase(facts.rank);
  if (missing.empty()) return;
  findings->push_back(
      {kProblem, RanksText(missing),
       absl::StrCat(missing.size() == 1 ? "has" : "have", " not reached rank 0 at MASTER_ADDR ",
                    observed.master_addr, ", port ", observed.master_port),
       "read what they print on their nodes; rank 0's host must let that port in"});
}

const Facts* FactsOf(const Observed& observed, int rank) {
  for (const Facts& facts : observed.facts) {
    if (facts.rank == rank) return &facts;
  }
  return nullptr;
}

void AddDials(const Observed& observed, Findings* findings) {
  // By node that dials, node that is dialled, address and error.
  std::map<std::tuple<int, int, std::string, int>, std::set<int>> ports;
  std::map<int, const Facts*> nodes;
  for (const FailedDial& dial : observed.failed_dials) {
    const Facts* from = FactsOf(observed, dial.from);
    const Facts* to = FactsOf(observed, dial.to);
    if (from == nullptr || to == nullptr) continue;
    nodes[from->node] = from;
    nodes[to->node] = to;
    ports[{from->node, to->node, dial.address, dial.error}].insert(dial.port);
  }
  for (const auto& [key, closed] : ports) {
    const auto& [from, to, address, error] = key;
    findings->push_back({kProblem, NodeText(*nodes[from]),
                         absl::StrCat("cannot reach ", NodeText(*nodes[to]), " at ", address,
                                      ", worker ", closed.size() == 1 ? "port " : "ports ",
                                      absl::StrJoin(closed, ", "), ": ", std::strerror(error)),
                         AdviceOn(error)});
  }
}

bool SpansHosts(const std::vector<const Facts*>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const Facts* node) { return node->address != nodes[0]->address; });
}

// "10.0.0.2, fd00::2", for advice.
std::string AddressesOf(const Facts& node) {
  std::vector<std::string> addresses;
  for (const Interface& interface : node.interfaces) {
    for (const std::string& address : interface.addresses) {
      if (!IsLoopbackHost(address)) addresses.push_back(address);
    }
  }
  return addresses.empty() ? "none but loopback's" : absl::StrJoin(addresses, ", ");
}

// Gloo binds its sockets to it: NAT is no excuse.
void AddLocalAddress(const Facts& node, Findings* findings) {
  if (node.address.empty()) return;
  const auto& found = node.node_addresses;
  if (found.empty()) {
    findings->push_back({kProblem, NodeText(node),
                         absl::StrCat("--local-addr ", node.address, " is not known here"),
                         "correct the name, or give an IP address"});
    return;
  }
  const bool is_own = std::any_of(found.begin(), found.end(), [&](const std::string& address) {
    // Of link-local addresses ("fe80::1%eth0") no list is kept.
    return IsLoopbackHost(address) || absl::StrContains(address, '%') ||
           InterfaceOf(node, address) != nullptr;
  });
  if (is_own) return;
  findings->push_back(
      {kProblem, NodeText(node),
       absl::StrCat("--local-addr ", node.address, " is no address of this host"),
       absl::StrCat("give one of its own, by which the others reach it, or leave it away; it has ",
                    AddressesOf(node))});
}

void AddAddresses(const Observed& observed, const std::vector<const Facts*>& nodes,
                  Findings* findings) {
  for (size_t i = 1; i < nodes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (nodes[i]->address != nodes[j]->address || nodes[i]->host == nodes[j]->host) continue;
      findings->push_back(
          {kProblem, NodeText(*nodes[i]),
           absl::StrCat("has the same address as ", NodeText(*nodes[j]), ": ", nodes[i]->address),
           "give each node one that is its own, with --local-addr"});
      break;
    }
  }
  const Facts* zero = FactsOf(observed, 0);
  if (zero == nullptr || !SpansHosts(nodes)) return;
  const auto& found = zero->master_addresses;
  const bool is_own = std::any_of(found.begin(), found.end(), [zero](const std::string& address) {
    return InterfaceOf(*zero, address) != nullptr;
  });
  const bool is_loopback = std::any_of(found.begin(), found.end(), IsLoopbackHost);
  if (is_loopback) {
    findings->push_back(
        {kRemark, NodeText(*zero),
         absl::StrCat("MASTER_ADDR ", observed.master_addr,
                      " is a loopback address on the host of rank 0: ", absl::StrJoin(found, ", ")),
         "take its name off the loopback line of /etc/hosts"});
  } else if (!is_own) {
    findings->push_back(
        {kRemark, NodeText(*zero),
         absl::StrCat("MASTER_ADDR ", observed.master_addr, " is no address of the host of rank 0"),
         "fine behind NAT; else give an address of that host"});
  }
}

void AddAllReduces(const Observed& observed, Findings* findings) {
  for (const AllReduce& one : observed.all_reduces) {
    if (one.failed_rank < 0) continue;
    findings->push_back(
        {kProblem, absl::StrCat("rank ", one.failed_rank),
         absl::StrCat("the all-reduce over ", one.transport, " failed: ", one.failure),
         "mend what is found above first; else this transport does not work here"});
  }
}

std::string Targets(const Unreached& unreached) {
  return absl::StrCat(unreached.what, " at ", unreached.option, " ", unreached.host, ", port ",
                      unreached.port);
}

Finding NoWay(const Facts& own, const Unreached& unreached, const Attempt& attempt) {
  const Interface* lo = InterfaceOf(own, attempt.address);
  const bool is_here = IsLoopbackHost(attempt.address) || lo != nullptr;
  if (attempt.error == 0) {
    return {kProblem, NodeText(own),
            absl::StrCat("what listens at ", unreached.option, " ", unreached.host, ", port ",
                         unreached.port, " (", attempt.address,
                         "), takes connections and does not answer as a muster master"),
            absl::StrCat("correct ", unreached.option,
                         ", or end what listens there; where it is a master, it is stopped, has "
                         "just ended, or only one side has TLS: see the line above on stderr")};
  }
  if (attempt.error == EPROTO) {
    return {
        kProblem, NodeText(own),
        absl::StrCat("something listens at ", unreached.option, " ", unreached.host, ", port ",
                     unreached.port, " (", attempt.address, "), and it is not ", unreached.what),
        absl::StrCat("correct ", unreached.option, ", or choose a port that nobody else uses")};
  }
  Finding finding{kProblem, NodeText(own),
                  absl::StrCat("cannot reach ", Targets(unreached), " (", attempt.address,
                               "): ", std::strerror(attempt.error)),
                  ""};
  if (IsLoopbackHost(attempt.address) && unreached.spans_hosts && !unreached.should_be_here) {
    finding.advice = absl::StrCat(
        "that is this host itself: give an address of the other host, or "
        "take the name off the loopback line of /etc/hosts");
  } else if (is_here && !unreached.should_be_here) {
    finding.advice = absl::StrCat(
        "that address is this host's own, and nobody listens there: "
        "correct ",
        unreached.option);
  } else if (attempt.error == ECONNREFUSED) {
    finding.advice = absl::StrCat(
        "the host answers and nobody listens: start the check there, or "
        "correct ",
        unreached.option, " and the port");
  } else if (attempt.error == EHOSTUNREACH || attempt.error == ENETUNREACH) {
    finding.advice = absl::StrCat("no host answers at that address: correct ", unreached.option);
  } else {
    finding.advice = absl::StrCat("nothing comes back: correct ", unreached.option,
                                  ", or let TCP port ", unreached.port, " in on that host");
  }
  return finding;
}

}  // namespace

std::string NodeText(const Facts& facts) {
  if (facts.node < 0) return facts.host;
  return absl::StrCat("node ", facts.node, " (", facts.host, ")");
}

bool HasProblem(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == kProblem; });
}

std::string CountText(const Findings& findings) {
  const auto problems = std::count_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == kProblem;
  });
  const auto remarks = static_cast<std::ptrdiff_t>(findings.size()) - problems;
  std::vector<std::string> parts;
  if (problems > 0)
    parts.push_back(absl::StrCat(problems, problems > 1 ? " problems" : " problem"));
  if (remarks > 0) parts.push_back(absl::StrCat(remarks, remarks > 1 ? " remarks" : " remark"));
  return parts.empty() ? "nothing found" : absl::StrJoin(parts, ", ");
}

Findings FindingsOf(const Observed& observed) {
  Findings findings;
  const std::vector<const Facts*> nodes = NodesOf(observed);
  AddMissing(observed, &findings);
  AddDials(observed, &findings);
  for (const Facts* node : nodes) AddLocalAddress(*node, &findings);
  AddAddresses(observed, nodes, &findings);
  AddDifferences(nodes, &findings);
  for (const Facts* node : nodes) AddMachineFindings(*node, SpansHosts(nodes), &findings);
  AddGpuFindings(observed.facts, &findings);
  AddAllReduces(observed, &findings);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& one, const Finding& other) {
    return one.severity < other.severity;
  });
  return findings;
}

Findings LonelyFindings(const Facts& own, const Unreached& master) {
  const bool is_meant = IsLoopbackHost(master.host);
  for (const Attempt& attempt : master.attempts) {
    if (is_meant || !IsLoopbackHost(attempt.address)) continue;
    return {{kProblem, NodeText(own),
             absl::StrCat(master.option, " ", master.host, " is this host itself here (",
                          attempt.address, "): it has hosted a master that no other host reaches"),
             "take the name off the loopback line of /etc/hosts, or give an IP address"}};
  }
  return {{kProblem, NodeText(own), absl::StrCat("too few nodes have come to ", Targets(master)),
           "start the check on all nodes within --timeout, with the same --rdzv-id; a node that "
           "does not reach the master says so itself"}};
}

Findings FindingsOf(const Facts& own, const Unreached& unreached) {
  Findings findings;
  if (!unreached.resolve_problem.empty()) {
    findings.push_back({kProblem, NodeText(own),
                        absl::StrCat(unreached.option, " ", unreached.host,
                                     " is not known here: ", unreached.resolve_problem),
                        "correct the name, or give an IP address"});
  }
  const bool has_it =
      std::any_of(unreached.attempts.begin(), unreached.attempts.end(), [&](const Attempt& one) {
        return IsLoopbackHost(one.address) || InterfaceOf(own, one.address) != nullptr;
      });
  if (unreached.should_be_here && !unreached.attempts.empty() && !has_it) {
    findings.push_back(
        {kProblem, NodeText(own),
         absl::StrCat(unreached.option, " ", unreached.host,
                      " is no address of this host, where it should be"),
         absl::StrCat("give the address by which the others reach it; it has ", AddressesOf(own))});
  } else {
    for (const Attempt& attempt : unreached.attempts) {
      findings.push_back(NoWay(own, unreached, attempt));
    }
  }
  AddMachineFindings(own, unreached.spans_hosts, &findings);
  return findings;
}

}  // namespace muster::check
