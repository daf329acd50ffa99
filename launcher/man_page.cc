#include "launcher/man_page.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/document_text.h"
#include "base/version.h"
#include "launcher/option_table.h"

namespace muster {
namespace {

constexpr OptionGroup kGroups[] = {OptionGroup::kWorkers,  OptionGroup::kNodes,
                                   OptionGroup::kFailures, OptionGroup::kOutput,
                                   OptionGroup::kSecurity, OptionGroup::kOther};

void AppendOption(const OptionSpec& spec, std::string* out) {
  absl::StrAppend(out, ".TP\n");
  if (spec.letter != 0) {
    absl::StrAppend(out, RoffBold(absl::StrCat("-", std::string(1, spec.letter))), ", ");
  }
  absl::StrAppend(out, RoffBold(absl::StrCat("--", spec.name)));
  if (*spec.metavar != 0) absl::StrAppend(out, " \\fI", Roff(spec.metavar), "\\fR");
  absl::StrAppend(out, "\n", Roff(spec.help), "\n");
  const absl::string_view preset = *spec.default_note != 0 ? spec.default_note : spec.default_text;
  if (!preset.empty()) absl::StrAppend(out, "Default: ", Roff(preset), ".\n");
  std::string variables = PetVariable(spec);
  if (*spec.variable != 0) absl::StrAppend(&variables, ", ", spec.variable);
  if (!variables.empty()) absl::StrAppend(out, "Variable: ", RoffBold(variables), ".\n");
}

}  // namespace

std::string ManPage() {
  std::string out = absl::StrCat(
      R"(.\" Made from launcher/option_table.cc by `bazel run //launcher:commands_document -- man`.
.TH MUSTER\-RUN 1 "" "muster )",
      kVersion, R"(" "User Commands"
.SH NAME
muster\-run \- start a distributed training job, or one node of it
.SH SYNOPSIS
.B muster run
.RI [ OPTIONS ] " PROGRAM " [ ARGUMENTS ...]
.br
.B torchrun
.RI [ OPTIONS ] " PROGRAM " [ ARGUMENTS ...]
.SH DESCRIPTION
Starts PROGRAM once for each worker of this node, tells each worker who it is (RANK, LOCAL_RANK,
WORLD_SIZE, MASTER_ADDR, MASTER_PORT and torchrun's other variables), and keeps the job running:
when a worker or a node fails, all workers start again, as long as the job's restart budget lasts.
.PP
PROGRAM runs under Python when it ends in .py, when it is a file that is not executable, and with
.BR \-m ;
everything else is executed itself. What follows PROGRAM, or
.BR \-\- ,
is its own and is not looked at.
.SH OPTIONS
Long options may have underscores for dashes and may be abbreviated while that is unambiguous. The
command line wins over a PET_ variable, that over another variable, this over what Slurm or
Kubernetes say, and this over the default. A time is in seconds or has a unit: 30, 0.5, 500ms, 5m,
1h.
)");
  for (OptionGroup group : kGroups) {
    absl::StrAppend(&out, ".SS ", GroupTitle(group), "\n");
    for (const OptionSpec& spec : RunOptions()) {
      if (spec.group == group && spec.kind != OptionKind::kRefused) AppendOption(spec, &out);
    }
    if (group == OptionGroup::kOther) {
      absl::StrAppend(&out, ".TP\n", RoffBold("-h"), ", ", RoffBold("--help"),
                      "\nPrint all options.\n");
    }
  }
  absl::StrAppend(&out, R"(.SH EXIT STATUS
The code of the worker that failed first, or 128 and the number of the signal that ended it. 0: the
job succeeded. 143: also where an operator stopped the job, or drained it and its workers came to no
commit point in time (muster drain --at-most). muster's own: 2 the command line is wrong, 69 no
master, 70 a fault in muster, 71 no process can be made, 73 a log cannot be written, 75 the
rendezvous timed out, 77 refused, 78 it does not work here, 126 and 127 the program cannot be
executed or found.
.SH ENVIRONMENT
Each option's variable is given with it. Within a step of Slurm the number of nodes, the job's id,
the rank and the endpoint come from SLURM_NNODES, SLURM_JOB_ID, SLURM_NODEID and
SLURM_JOB_NODELIST; in an indexed job of Kubernetes the rank comes from JOB_COMPLETION_INDEX.
.B \-\-dry\-run
shows each value with its source.
.SH EXAMPLES
.nf
muster run \-\-nproc\-per\-node gpu ./trainer \-\-lr 0.1
muster run \-\-nnodes 2 \-\-rdzv\-endpoint host1 \-\-rdzv\-id digits train.py
srun \-N 4 \-\-ntasks\-per\-node=1 muster run \-\-nproc\-per\-node 8 train.py
.fi
)");
  return out;
}

std::string CommandManPage(const CommandSpec& command) {
  const std::string title = absl::StrCat("muster-", command.name);
  std::string arguments = " [ OPTIONS ]";
  if (*command.arguments != 0) absl::StrAppend(&arguments, " \" ", Roff(command.arguments), "\"");
  std::string out = absl::StrCat(
      ".\\\" Made from launcher/*_options.cc by `bazel run //launcher:commands_document -- man ",
      command.name, "`.\n.TH ", Roff(absl::AsciiStrToUpper(title)), " 1 \"\" \"muster ", kVersion,
      "\" \"User Commands\"\n.SH NAME\n", Roff(title), " \\- ", Roff(command.help),
      "\n.SH SYNOPSIS\n.B muster ", command.name, "\n.RI", arguments, "\n.SH OPTIONS\n");
  for (const OptionSpec& spec : command.options) AppendOption(spec, &out);
  absl::StrAppend(&out, ".TP\n", RoffBold("-h"), ", ", RoffBold("--help"),
                  "\nPrint all options.\n.SH EXIT STATUS\n", command.exit_status,
                  "\n.SH SEE ALSO\n.BR muster\\-run (1)\n");
  return out;
}

}  // namespace muster
