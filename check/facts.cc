#include "check/facts.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

namespace muster::check {
namespace {

// Calls visit(key, member) for each member that is a number or a text.
template <typename AnyFacts, typename Visit>
void ForEachScalar(AnyFacts& facts, Visit&& visit) {
  visit("rank", facts.rank);
  visit("local_rank", facts.local_rank);
  visit("workers", facts.workers);
  visit("node", facts.node);
  visit("host", facts.host);
  visit("address", facts.address);
  visit("port", facts.port);
  visit("backend", facts.backend);
  visit("muster", facts.muster);
  visit("libtorch", facts.libtorch);
  visit("torch", facts.torch);
  visit("nccl", facts.nccl);
  visit("driver", facts.driver);
  visit("gpus", facts.gpus);
  visit("all_gpus", facts.all_gpus);
  visit("shared_memory", facts.shared_memory);
  visit("locked_memory", facts.locked_memory);
}

// And for each list of texts.
template <typename AnyFacts, typename Visit>
void ForEachList(AnyFacts& facts, Visit&& visit) {
  visit("infiniband", facts.infiniband);
  visit("host_address", facts.host_addresses);
  visit("node_address", facts.node_addresses);
  visit("master_address", facts.master_addresses);
}

// "eth0 1500 10.0.0.1 fd00::1": names of interfaces have no blanks.
std::string InterfaceText(const Interface& interface) {
  std::string text = interface.name + " " + std::to_string(interface.mtu);
  for (const std::string& address : interface.addresses) text += " " + address;
  return text;
}

std::optional<Interface> InterfaceFrom(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (words.size() < 2) return std::nullopt;
  const std::optional<long long> mtu = WholeNumber(words[1]);
  if (!mtu || *mtu < 0 || *mtu > std::numeric_limits<int>::max()) return std::nullopt;
  return Interface{words[0], static_cast<int>(*mtu), {words.begin() + 2, words.end()}};
}

// Takes one field into the member that has its key. False: the value will not do.
class Taker {
 public:
  Taker(const std::string& key, const std::string& value) : key_(key), value_(value) {}

  void operator()(std::string_view key, std::string& member) {
    if (key == key_) member = value_;
  }
  template <typename Number>
  requires std::is_integral_v<Number>
  void operator()(std::string_view key, Number& member) {
    if (key != key_) return;
    const std::optional<long long> number = WholeNumber(value_);
    fits_ = number && std::in_range<Number>(*number) && *number >= -1;
    if (fits_) member = static_cast<Number>(*number);
  }
  void operator()(std::string_view key, std::vector<std::string>& member) {
    if (key == key_) member.push_back(value_);
  }
  bool fits() const { return fits_; }

 private:
  const std::string& key_;
  const std::string& value_;
  bool fits_ = true;
};

bool TakeField(const std::string& key, const std::string& value, Facts* facts) {
  if (key == "interface") {
    std::optional<Interface> interface = InterfaceFrom(value);
    if (!interface) return false;
    facts->interfaces.push_back(*std::move(interface));
    return true;
  }
  if (key == "variable") {
    const size_t equals = value.find('=');
    if (equals == value.npos) return false;
    facts->variables[value.substr(0, equals)] = value.substr(equals + 1);
    return true;
  }
  Taker taker(key, value);
  ForEachScalar(*facts, taker);
  ForEachList(*facts, taker);
  return taker.fits();
}

}  // namespace

Fields ToFields(const Facts& facts) {
  Fields fields;
  ForEachScalar(facts, [&fields]<typename Member>(const char* key, const Member& member) {
    if constexpr (std::is_integral_v<Member>) {
      fields.emplace_back(key, std::to_string(member));
    } else {
      fields.emplace_back(key, member);
    }
  });
  ForEachList(facts, [&fields](const char* key, const std::vector<std::string>& list) {
    for (const std::string& text : list) fields.emplace_back(key, text);
  });
  for (const Interface& interface : facts.interfaces) {
    fields.emplace_back("interface", InterfaceText(interface));
  }
  for (const auto& [name, value] : facts.variables) {
    fields.emplace_back("variable", name + "=" + value);
  }
  return fields;
}

std::optional<Facts> FactsFrom(const Fields& fields) {
  Facts facts;
  for (const auto& [key, value] : fields) {
    if (!TakeField(key, value, &facts)) return std::nullopt;
  }
  return facts;
}

const Interface* InterfaceOf(const Facts& facts, const std::string& address) {
  for (const Interface& interface : facts.interfaces) {
    const auto& own = interface.addresses;
    if (std::find(own.begin(), own.end(), address) != own.end()) return &interface;
  }
  return nullptr;
}

std::string VariableOf(const Facts& facts, const std::string& name) {
  const auto found = facts.variables.find(name);
  return found == facts.variables.end() ? "" : found->second;
}

}  // namespace muster::check
