#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/option_table.h"
#include "launcher/option_values.h"

namespace muster {
namespace {

// Of muster run: who is in, where they meet, how they know each other.
constexpr absl::string_view kOfRun[] = {
    "nproc-per-node", "virtual-local-rank", "nnodes",      "standalone",
    "rdzv-backend",   "rdzv-endpoint",      "rdzv-id",     "rdzv-conf",
    "node-rank",      "master-addr",        "master-port", "local-addr",
    "node-id",        "topology-key",       "tls-ca",      "tls-cert",
    "tls-key",        "tls-server-name",    "token-file",  "allowed-peers",
    "require-auth",   "log-level",          "dry-run"};

absl::Status OneOf(absl::string_view text, std::initializer_list<absl::string_view> words,
                   absl::string_view choice) {
  if (std::find(words.begin(), words.end(), text) != words.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is not a choice: give ", choice));
}

absl::Status CheckedOutput(absl::string_view text) {
  return OneOf(text, {"table", "json"}, "table or json");
}

absl::Status CheckedBackend(absl::string_view text) {
  return OneOf(text, {"auto", "gloo", "nccl"}, "auto, gloo or nccl");
}

absl::Status CheckedTorch(absl::string_view text) {
  return OneOf(text, {"auto", "yes", "no"}, "auto, yes or no");
}

absl::Status CheckedTimeout(absl::string_view text) { return ParsePositiveSpan(text).status(); }

constexpr OptionSpec kOwn[] = {
    {.name = "backend",
     .metavar = "auto|gloo|nccl",
     .default_text = "auto",
     .in_torchrun = false,
     .has_pet = false,
     .help = "What the job is going to use. auto: NCCL where a worker sees a GPU, else Gloo.",
     .check = CheckedBackend},
    {.name = "torch",
     .metavar = "auto|yes|no",
     .default_text = "auto",
     .in_torchrun = false,
     .has_pet = false,
     .help = "Whether LibTorch is checked too, by the program muster-check-torch. auto: where that "
             "is installed beside muster (docs/CHECK.md).",
     .check = CheckedTorch},
    {.name = "timeout",
     .metavar = "TIME",
     .default_text = "30s",
     .in_torchrun = false,
     .has_pet = false,
     .help = "How long each step may take: the nodes meet, the ranks reach rank 0, a measurement.",
     .check = CheckedTimeout},
    {.name = "output",
     .letter = 'o',
     .metavar = "table|json",
     .default_text = "table",
     .in_torchrun = false,
     .has_pet = false,
     .help = "A table for people, or JSON for programs (docs/CHECK.md).",
     .check = CheckedOutput},
};

std::vector<OptionSpec> AllOptions() {
  std::vector<OptionSpec> options;
  for (absl::string_view name : kOfRun) options.push_back(*FindSpec(name));
  options.insert(options.end(), std::begin(kOwn), std::end(kOwn));
  return options;
}

}  // namespace

const CommandSpec& CheckSpec() {
  static const std::vector<OptionSpec> kOptions = AllOptions();
  static const CommandSpec kSpec{
      .name = "check",
      .arguments = "",
      .help = "Tries whether a job could run: who meets whom, versions, network, an all-reduce",
      .options = kOptions,
      .exit_status =
          "0: no problem was found. 1: at least one was, and is printed with advice. 2: "
          "the command line\nis wrong. Others as of muster run: the nodes could not "
          "meet for a reason that is printed."};
  return kSpec;
}

}  // namespace muster
