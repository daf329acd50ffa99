#include <muster/worker.h>

#include <array>
#include <charconv>

#include "worker_sdk/process_variable.h"

namespace muster {
namespace {

constexpr std::array kNeeded = {"RANK",        "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                "MASTER_ADDR", "MASTER_PORT"};

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  bool Has(const char* name) const { return environment_(name).has_value(); }
  std::string Text(const char* name) const { return environment_(name).value_or(""); }

  int64_t Number(const char* name, int64_t low, int64_t high) const {
    const std::string text = Text(name);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < low || number > high) {
      throw EnvironmentError(std::string(name) + "='" + text +
                                 "' in the environment is not a number from " +
                                 std::to_string(low) + " to " + std::to_string(high) +
                                 ": start this program with muster, or unset it",
                             {name});
    }
    return number;
  }

  int64_t NumberOr(const char* name, int64_t low, int64_t high, int64_t otherwise) const {
    return Has(name) ? Number(name, low, high) : otherwise;
  }

 private:
  const Environment& environment_;
};

// True if there is a launcher's environment, all of it.
bool IsComplete(const Reader& reader) {
  std::vector<std::string> there, missing;
  for (const char* name : kNeeded) (reader.Has(name) ? there : missing).push_back(name);
  if (there.empty()) return false;
  if (missing.empty()) return true;
  throw EnvironmentError(
      "the environment has " + Joined(there) + " but not " + Joined(missing) +
          ": start this program with muster, or unset all of them for a world of one",
      missing);
}

}  // namespace

Identity identity_from(const Environment& environment) {
  const Reader reader(environment);
  constexpr int64_t kMany = 1 << 20;
  Identity self;
  if (IsComplete(reader)) {
    self.launched = true;
    self.world_size = static_cast<int>(reader.Number("WORLD_SIZE", 1, kMany));
    self.rank = static_cast<int>(reader.Number("RANK", 0, self.world_size - 1));
    self.local_world_size = static_cast<int>(reader.Number("LOCAL_WORLD_SIZE", 1, self.world_size));
    self.local_rank = static_cast<int>(reader.Number("LOCAL_RANK", 0, self.local_world_size - 1));
    self.master_port = static_cast<uint16_t>(reader.Number("MASTER_PORT", 1, 65535));
    self.master_addr = reader.Text("MASTER_ADDR");
    if (self.master_addr.empty()) {
      throw EnvironmentError(
          "MASTER_ADDR in the environment is empty: it must say where rank 0 is reached",
          {"MASTER_ADDR"});
    }
    const int by_division = (self.world_size + self.local_world_size - 1) / self.local_world_size;
    self.nodes =
        static_cast<int>(reader.NumberOr("GROUP_WORLD_SIZE", 1, self.world_size, by_division));
    const int own = self.rank / self.local_world_size;
    self.node = static_cast<int>(reader.NumberOr("GROUP_RANK", 0, self.world_size - 1, own));
  }
  self.restart_count =
      static_cast<int>(reader.NumberOr("TORCHELASTIC_RESTART_COUNT", 0, INT32_MAX, 0));
  self.generation = reader.NumberOr("MUSTER_GENERATION", 0, INT64_MAX, self.restart_count);
  self.local_addr = reader.Text("MUSTER_LOCAL_ADDR");
  self.run_id = reader.Text("TORCHELASTIC_RUN_ID");
  return self;
}

Identity identity() { return identity_from(ProcessVariable); }

}  // namespace muster
