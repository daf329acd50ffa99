#include "rendezvous/musterd_documents.h"

#include <absl/strings/str_cat.h>

#include "base/document_text.h"
#include "base/version.h"
#include "rendezvous/musterd_table.h"

namespace muster {
namespace {

constexpr MusterdGroup kGroups[] = {MusterdGroup::kListening, MusterdGroup::kState,
                                    MusterdGroup::kSecurity,  MusterdGroup::kElection,
                                    MusterdGroup::kLimits,    MusterdGroup::kLog,
                                    MusterdGroup::kActions};

std::string NameAndValue(const MusterdOption& option) {
  return absl::StrCat("--", option.name, option.is_switch() ? "" : " ", option.metavar);
}

// As the reader is to see it; empty: there is none.
std::string DefaultOf(const MusterdOption& option) {
  return *option.default_note != 0 ? option.default_note : option.default_text;
}

void AppendTable(MusterdGroup group, std::string* out) {
  absl::StrAppend(out, "\n## ", GroupTitle(group), "\n\n",
                  "| option | default | variable | meaning |\n| --- | --- | --- | --- |\n");
  for (const MusterdOption& option : MusterdOptions()) {
    if (option.group != group) continue;
    std::string variable = CodeCell(MusterdVariable(option));
    if (*option.variable != 0) absl::StrAppend(&variable, ", ", CodeCell(option.variable));
    const std::string preset =
        *option.default_note != 0 ? Cell(option.default_note) : CodeCell(option.default_text);
    absl::StrAppend(out, "| ", CodeCell(NameAndValue(option)), " | ", preset, " | ", variable,
                    " | ", Cell(option.help), " |\n");
  }
}

void AppendRoff(const MusterdOption& option, std::string* out) {
  absl::StrAppend(out, ".TP\n", RoffBold(absl::StrCat("--", option.name)));
  if (!option.is_switch()) absl::StrAppend(out, " \\fI", Roff(option.metavar), "\\fR");
  absl::StrAppend(out, "\n", Roff(option.help), "\n");
  if (!DefaultOf(option).empty()) {
    absl::StrAppend(out, "Default: ", Roff(DefaultOf(option)), ".\n");
  }
  if (!MusterdVariable(option).empty()) {
    absl::StrAppend(out, "Variable: ", RoffBold(MusterdVariable(option)));
    if (*option.variable != 0) absl::StrAppend(out, ", ", RoffBold(option.variable));
    absl::StrAppend(out, ".\n");
  }
}

}  // namespace

std::string MusterdHelp() {
  std::string out =
      "musterd [OPTIONS]\n\n"
      "A standing master: the jobs of a cluster meet at it, many at once, each by its --rdzv-id.\n"
      "Each option can be a variable or an entry of the file of --config, too: --log-level is\n"
      "MUSTERD_LOG_LEVEL and log-level = VALUE. Defaults are in brackets.\n";
  for (const MusterdGroup group : kGroups) {
    absl::StrAppend(&out, "\n", GroupTitle(group), "\n");
    for (const MusterdOption& option : MusterdOptions()) {
      if (option.group != group) continue;
      std::string help = option.help;
      if (!DefaultOf(option).empty()) absl::StrAppend(&help, " [", DefaultOf(option), "]");
      AppendHelpEntry(absl::StrCat("  ", NameAndValue(option)), help, &out);
    }
  }
  return out;
}

std::string MusterdManPage() {
  std::string out = absl::StrCat(
      R"(.\" Made by `bazel run //rendezvous:musterd_document -- man`.
.TH MUSTERD 8 "" "muster )",
      kVersion, R"(" "System Administration"
.SH NAME
musterd \- standing master of distributed training jobs
.SH SYNOPSIS
.B musterd
.RI [ OPTIONS ]
.SH DESCRIPTION
The nodes of a job meet at a master, which says who is a member, which ranks they have and when a
generation begins. musterd is a master of its own for many jobs at once, each named by the
\-\-rdzv\-id of its nodes; they reach it at the \-\-rdzv\-endpoint. A musterd that ends touches no
worker: agents come back to the next one.
.SH OPTIONS
The command line wins over a variable, that over the file of
.BR \-\-config ,
this over the default. An entry of the file is a line NAME = VALUE, NAME being the option without
its dashes; a switch is true or false there. An empty value is an error, that of a variable too.
)");
  for (const MusterdGroup group : kGroups) {
    absl::StrAppend(&out, ".SS ", GroupTitle(group), "\n");
    for (const MusterdOption& option : MusterdOptions()) {
      if (option.group == group) AppendRoff(option, &out);
    }
  }
  absl::StrAppend(&out, R"(.SH SIGNALS
.TP
SIGTERM, SIGINT
Stop: agents are told to come back later. The second one ends musterd at once.
.TP
SIGHUP
Read certificates, keys and tokens again. (They are noticed by themselves, too: this says what is in
force, or what is wrong.)
.SH EXIT STATUS
0: stopped by SIGTERM or SIGINT. 2: an option is wrong. 65: what is in --state-dir is damaged or of
a newer version. 69: it cannot listen. 70, 71: a fault in musterd, no thread or memory. 73:
--state-dir, --incident-log or standard output cannot be made or written. 75: another master works
on --state-dir, or its disk is full. 78: it refuses to work like this, or a file that it is to read
(--config, a certificate, key, token or password) is not there or cannot be used. 143, 130: a second
signal.
.SH SEE ALSO
.BR muster\-run (1)
)");
  return out;
}

std::string MusterdDocument() {
  std::string out = R"(# musterd: options

<!-- Made from rendezvous/musterd_table.cc by `bazel run //rendezvous:musterd_document`. -->

`musterd [OPTIONS]`. Installing and running it: [OPERATIONS.md](OPERATIONS.md).

* The command line wins over the variable, that over the file of `--config`, this over the default.
* An entry of the file is a line `NAME = VALUE`, NAME being the option without its dashes. A value
  may be in quotes; `#` begins a comment. A switch is `true` or `false`, there and as a variable.
* An empty value is an error, that of a variable too: leave out what is not meant.
* An unknown option or entry is an error that names the nearest known one, an unknown `MUSTERD_`
  variable a warning.
* A TIME is seconds or has a unit: `30`, `0.5`, `500ms`, `5m`, `1h`.
)";
  for (const MusterdGroup group : kGroups) AppendTable(group, &out);
  return out;
}

std::string MusterdSettingsText(const MusterdCommand& command) {
  std::string out;
  for (const MusterdOption& option : MusterdOptions()) {
    if (option.set == nullptr) continue;
    const MusterdSetting& setting = command.settings.at(option.name);
    if (setting.text.empty()) {
      absl::StrAppend(&out, "# ", option.name, ": ", *option.default_note == 0 ? "none" : "",
                      option.default_note, "\n");
    } else {
      absl::StrAppend(&out, option.name, " = ", setting.text, "  # ", setting.from, "\n");
    }
  }
  return out;
}

}  // namespace muster
