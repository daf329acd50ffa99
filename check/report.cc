#include "check/report.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/one_line.h"
#include "base/table_text.h"

namespace muster::check {
namespace {

using Row = std::vector<std::string>;

std::string OrDash(const std::string& text) { return text.empty() ? "-" : OneLine(text); }

std::string RankTable(const std::vector<Facts>& ranks) {
  std::vector<Row> rows = {{"RANK", "NODE", "HOST", "ADDRESS", "INTERFACE", "MTU", "BACKEND",
                            "GPUS", "MUSTER", "LIBTORCH", "NCCL", "DRIVER"}};
  for (const Facts& facts : ranks) {
    const Interface* interface = InterfaceOf(facts, facts.address);
    rows.push_back({absl::StrCat(facts.rank), absl::StrCat(facts.node), OrDash(facts.host),
                    OrDash(facts.address), OrDash(interface == nullptr ? "" : interface->name),
                    interface == nullptr ? "-" : absl::StrCat(interface->mtu),
                    OrDash(facts.backend), absl::StrCat(facts.gpus), OrDash(facts.muster),
                    OrDash(facts.libtorch), OrDash(facts.nccl), OrDash(facts.driver)});
  }
  return AlignedColumns(rows);
}

// Whether a way of NCCL's is open, and what closed it.
std::string Way(const Facts& facts, const std::string& variable) {
  const std::string value = VariableOf(facts, variable);
  return value.empty() || value == "0" ? "on" : absl::StrCat("off (", variable, ")");
}

std::string InfinibandWay(const Facts& facts) {
  if (facts.infiniband.empty()) return "no device";
  return absl::StrCat(Way(facts, "NCCL_IB_DISABLE"), ": ", absl::StrJoin(facts.infiniband, ", "));
}

std::string Variables(const Facts& facts) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : facts.variables) texts.push_back(name + "=" + value);
  return OneLine(absl::StrJoin(texts, " "));
}

std::string NodeTable(const std::vector<Facts>& ranks) {
  std::vector<Row> rows = {{"NODE", "P2P", "INFINIBAND", "VARIABLES"}};
  std::set<int> seen;
  for (const Facts& facts : ranks) {
    if (!seen.insert(facts.node).second) continue;
    const std::string p2p = facts.all_gpus < 2 ? "no two GPUs" : Way(facts, "NCCL_P2P_DISABLE");
    rows.push_back(
        {absl::StrCat(facts.node), p2p, OneLine(InfinibandWay(facts)), OrDash(Variables(facts))});
  }
  return AlignedColumns(rows);
}

// "61 us", "1.20 ms".
std::string TimeText(double seconds) {
  if (seconds < 1e-3) return absl::StrFormat("%.0f us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.2f ms", seconds * 1e3);
  return absl::StrFormat("%.2f s", seconds);
}

std::string AllReduceTable(const Observed& observed) {
  std::vector<Row> rows = {{"ALL-REDUCE", "RANKS", "LATENCY", "BANDWIDTH"}};
  for (const AllReduce& one : observed.all_reduces) {
    Row row = {one.transport, absl::StrCat(observed.world_size), "failed"};
    if (one.failed_rank < 0) {
      row.back() = TimeText(one.latency_s);
      // A rank alone has no links.
      row.push_back(one.bandwidth > 0 ? absl::StrFormat("%.2f GB/s", one.bandwidth / 1e9) : "-");
    }
    rows.push_back(std::move(row));
  }
  std::string text = "\n";
  if (rows.size() > 1) text += AlignedColumns(rows);
  const bool has_torch = std::any_of(observed.facts.begin(), observed.facts.end(),
                                     [](const Facts& facts) { return !facts.libtorch.empty(); });
  if (rows.size() == 1 && observed.world_size > 1) {
    text += "No all-reduce is measured as long as ranks do not reach each other.\n";
  }
  if (!has_torch) text += "LibTorch is not checked: see --torch.\n";
  return text == "\n" ? "" : text;
}

std::string OwnTable(const Facts& own) {
  std::vector<Row> rows = {{"HOST", "INTERFACE", "MTU", "ADDRESSES"}};
  for (const Interface& interface : own.interfaces) {
    rows.push_back({OrDash(own.host), OrDash(interface.name), absl::StrCat(interface.mtu),
                    OrDash(absl::StrJoin(interface.addresses, " "))});
  }
  return AlignedColumns(rows);
}

std::string FindingLines(const std::vector<Finding>& findings) {
  std::string text = absl::StrCat("\n", CountText(findings), "\n");
  for (const Finding& finding : findings) {
    const char* word = finding.severity == Severity::kProblem ? "problem" : "remark ";
    absl::StrAppend(&text, word, "  ", OneLine(finding.where), finding.where.empty() ? "" : ": ",
                    OneLine(finding.what), "\n         -> ", OneLine(finding.advice), "\n");
  }
  return text;
}

// {"key": value, ...} of what the ranks send each other: a key that comes again is a list there.
std::string FactsJson(const Facts& facts) {
  const std::set<std::string> lists = {"infiniband",     "host_address", "node_address",
                                       "master_address", "interface",    "variable"};
  const std::set<std::string> texts = {"host",     "address", "backend", "muster",
                                       "libtorch", "torch",   "nccl",    "driver"};
  std::vector<std::string> members;
  std::map<std::string, std::vector<std::string>> listed;
  for (const std::string& key : lists) listed[key];
  for (const auto& [key, value] : ToFields(facts)) {
    if (lists.contains(key)) {
      listed[key].push_back(JsonString(value));
    } else {
      members.push_back(
          absl::StrCat(JsonString(key), ":", texts.contains(key) ? JsonString(value) : value));
    }
  }
  for (const auto& [key, values] : listed) {
    members.push_back(absl::StrCat(JsonString(key), ":[", absl::StrJoin(values, ","), "]"));
  }
  return absl::StrCat("{", absl::StrJoin(members, ","), "}");
}

std::string AllReduceJson(const AllReduce& one) {
  std::string text = absl::StrCat("{\"transport\":", JsonString(one.transport));
  if (one.failed_rank >= 0) {
    return absl::StrCat(text, ",\"failed_rank\":", one.failed_rank,
                        ",\"failure\":", JsonString(one.failure), "}");
  }
  return absl::StrCat(text, absl::StrFormat(",\"latency_s\":%.9f,\"bytes_per_second\":%.0f}",
                                            one.latency_s, one.bandwidth));
}

std::string FindingJson(const Finding& finding) {
  return absl::StrCat(
      "{\"severity\":", finding.severity == Severity::kProblem ? "\"problem\"" : "\"remark\"",
      ",\"where\":", JsonString(finding.where), ",\"what\":", JsonString(finding.what),
      ",\"advice\":", JsonString(finding.advice), "}");
}

// "[a,b]" of what `text` makes of each.
template <typename Item, typename Text>
std::string ListJson(const std::vector<Item>& items, const Text& text) {
  return absl::StrCat(
      "[",
      absl::StrJoin(items, ",",
                    [&](std::string* out, const Item& item) { out->append(text(item)); }),
      "]");
}

}  // namespace

std::string ReportTable(const Observed& observed, const std::vector<Finding>& findings) {
  if (observed.world_size == 0) {
    return absl::StrCat(OwnTable(observed.facts.front()), FindingLines(findings));
  }
  return absl::StrCat(RankTable(observed.facts), "\n", NodeTable(observed.facts),
                      AllReduceTable(observed), FindingLines(findings));
}

std::string ReportJson(const Observed& observed, const std::vector<Finding>& findings) {
  return absl::StrCat("{\"world_size\":", observed.world_size,
                      ",\"master_addr\":", JsonString(observed.master_addr),
                      ",\"master_port\":", observed.master_port,
                      ",\"ranks\":", ListJson(observed.facts, FactsJson),
                      ",\"all_reduces\":", ListJson(observed.all_reduces, AllReduceJson),
                      ",\"findings\":", ListJson(findings, FindingJson), "}\n");
}

}  // namespace muster::check
