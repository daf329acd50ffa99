#ifndef MUSTER_RENDEZVOUS_MUSTERD_TABLE_H_
#define MUSTER_RENDEZVOUS_MUSTERD_TABLE_H_

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <span>
#include <string>

#include "rendezvous/musterd_config.h"

// The one list of musterd's options. The command line, the MUSTERD_ variables, the file of
// --config, --help, the man page, docs/MUSTERD.md and --check-config come from it. Pure.

namespace muster {

enum class MusterdGroup { kListening, kState, kSecurity, kElection, kLimits, kLog, kActions };

struct MusterdOption {
  const char* name;  // without dashes; the entry of the file has the same name
  MusterdGroup group;
  const char* metavar = "";  // empty: a switch
  const char* default_text = "";
  const char* default_note = "";  // what is shown instead of default_text
  const char* variable = "";      // one more environment variable, after MUSTERD_<NAME>
  const char* help = "";
  // Checks the text, which is not empty, and puts its value into the config. Null: an action, for
  // the command line only.
  absl::Status (*set)(absl::string_view text, MusterdConfig* config) = nullptr;

  bool is_switch() const { return *metavar == 0; }
};

// In the order of --help.
std::span<const MusterdOption> MusterdOptions();

// "MUSTERD_TLS_CERT" for tls-cert; empty for an action.
std::string MusterdVariable(const MusterdOption& option);

const char* GroupTitle(MusterdGroup group);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MUSTERD_TABLE_H_
