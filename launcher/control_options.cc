#include <iterator>

#include "absl/strings/str_cat.h"
#include "launcher/option_table.h"
#include "launcher/option_values.h"

// The options of the commands that speak to a master, and the list of all commands besides run.

namespace muster {
namespace {

template <auto Parse>
absl::Status Checked(absl::string_view text) {
  return Parse(text).status();
}

absl::Status CheckedOutput(absl::string_view text) {
  if (text == "table" || text == "wide" || text == "json") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is not a choice: give table, wide or json"));
}

constexpr OptionSpec kEndpoint{
    .name = "rdzv-endpoint",
    .metavar = "HOST[:PORT],...",
    .default_note = "localhost; port 29400",
    .help =
        "Where the master listens, as the job's agents are told. Of several the one that serves "
        "is asked.",
};
constexpr OptionSpec kTimeout{
    .name = "timeout",
    .metavar = "TIME",
    .default_text = "5s",
    .has_pet = false,
    .help = "How long the master may take to answer.",
    .check = Checked<ParsePositiveSpan>,
};
constexpr OptionSpec kOutput{
    .name = "output",
    .letter = 'o',
    .metavar = "table|wide|json",
    .default_text = "table",
    .has_pet = false,
    .help =
        "A table for people, one with addresses and incidents, or JSON for programs "
        "(docs/STATUS.md).",
    .check = CheckedOutput,
};
constexpr OptionSpec kWatch{
    .name = "watch",
    .letter = 'w',
    .kind = OptionKind::kSwitch,
    .has_pet = false,
    .help = "Print it again after each change, until the job has ended.",
    .check = Checked<ParseSwitch>,
};
constexpr OptionSpec kLocal{
    .name = "local",
    .kind = OptionKind::kSwitch,
    .has_pet = false,
    .help = "Ask no master but your launchers on this machine: also jobs of one node.",
    .check = Checked<ParseSwitch>,
};
constexpr OptionSpec kReconnect{
    .name = "reconnect",
    .metavar = "TIME",
    .default_text = "1h",
    .has_pet = false,
    .help = "With --watch: how long to look for a master that has gone. 0: not at all.",
    .check = Checked<ParseSpan>,
};

constexpr OptionSpec kTlsCa{.name = "tls-ca",
                            .metavar = "FILE",
                            .variable = "MUSTER_TLS_CA",
                            .help = "Talk over TLS to a master with a certificate of this CA."};
constexpr OptionSpec kTlsCert{.name = "tls-cert",
                              .metavar = "FILE",
                              .variable = "MUSTER_TLS_CERT",
                              .help = "Certificate to show to a master that asks."};
constexpr OptionSpec kTlsKey{.name = "tls-key",
                             .metavar = "FILE",
                             .variable = "MUSTER_TLS_KEY",
                             .help = "The key of that certificate."};
constexpr OptionSpec kTlsServerName{.name = "tls-server-name",
                                    .metavar = "NAME",
                                    .default_note = "the endpoint's host",
                                    .help = "Name that the master's certificate must have."};
constexpr OptionSpec kTokenFile{.name = "token-file",
                                .metavar = "FILE",
                                .variable = "MUSTER_TOKEN_FILE",
                                .help = "File with the token that the master wants."};

constexpr OptionSpec kNode{
    .name = "node",
    .metavar = "NAME",
    .default_note = "all: the whole job",
    .has_pet = false,
    .help = "Take only this node out; the job goes on without it.",
};
constexpr OptionSpec kAtMost{
    .name = "at-most",
    .metavar = "TIME",
    .default_note = "the job's join_timeout",
    .has_pet = false,
    .help =
        "Workers that have come to no commit point after so long are stopped. Every launcher of a "
        "whole job then returns 143, as after muster stop.",
    .check = Checked<ParsePositiveSpan>,
};

constexpr OptionSpec kStatusOptions[] = {kEndpoint,  kLocal,         kOutput,   kWatch,
                                         kReconnect, kTimeout,       kTlsCa,    kTlsCert,
                                         kTlsKey,    kTlsServerName, kTokenFile};
constexpr OptionSpec kStopOptions[] = {kEndpoint, kTimeout,       kTlsCa,    kTlsCert,
                                       kTlsKey,   kTlsServerName, kTokenFile};
constexpr OptionSpec kDrainOptions[] = {kEndpoint, kNode,   kAtMost,        kTimeout,  kTlsCa,
                                        kTlsCert,  kTlsKey, kTlsServerName, kTokenFile};

constexpr char kExitStatus[] =
    "0: done. 1: there is no such job, or it has ended. 2: the command line is wrong. 69: no "
    "master\nanswers. 73: standard output cannot be written. 77: the master does not know who "
    "asks. 78: what\nlistens there is not a master, only one of the two speaks TLS, or a file of "
    "credentials cannot be\nused.";

}  // namespace

std::span<const CommandSpec> CommandSpecs() {
  static const CommandSpec kCommands[] = {
      {.name = "status",
       .arguments = "[JOB]",
       .help = "Prints what a master's jobs are doing, and why",
       .options = kStatusOptions,
       .exit_status = kExitStatus},
      {.name = "stop",
       .arguments = "JOB",
       .help = "Ends a job on all its nodes: its workers are stopped, every launcher returns 143",
       .options = kStopOptions,
       .exit_status = kExitStatus},
      {.name = "drain",
       .arguments = "JOB",
       .help = "Lets a job, or one node of it, end at a commit point of its workers",
       .options = kDrainOptions,
       .exit_status = kExitStatus},
      CheckSpec(),
  };
  return kCommands;
}

}  // namespace muster
