#include "launcher/help_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/document_text.h"
#include "launcher/option_table.h"

namespace muster {
namespace {

constexpr OptionGroup kGroups[] = {OptionGroup::kWorkers,  OptionGroup::kNodes,
                                   OptionGroup::kFailures, OptionGroup::kOutput,
                                   OptionGroup::kSecurity, OptionGroup::kOther};

std::string DefaultText(const OptionSpec& spec) {
  if (*spec.default_note != 0) return spec.default_note;
  return spec.default_text;
}

// "  -r, --redirects STREAMS".
std::string Left(const OptionSpec& spec) {
  std::string letter =
      spec.letter == 0 ? "    " : absl::StrCat("-", std::string(1, spec.letter), ", ");
  return absl::StrCat("  ", letter, "--", spec.name, *spec.metavar == 0 ? "" : " ", spec.metavar);
}

void AppendOption(const OptionSpec& spec, std::string* out) {
  std::string help = spec.help;
  if (!DefaultText(spec).empty()) absl::StrAppend(&help, " [", DefaultText(spec), "]");
  AppendHelpEntry(Left(spec), help, out);
}

void AppendHead(std::string* out) {
  absl::StrAppend(out, "| option | default | variable | meaning |\n| --- | --- | --- | --- |\n");
}

void AppendRow(const OptionSpec& spec, std::string* out) {
  std::string option = absl::StrCat("--", spec.name, *spec.metavar == 0 ? "" : " ", spec.metavar);
  std::string letter =
      spec.letter == 0 ? "" : absl::StrCat("`-", std::string(1, spec.letter), "`, ");
  std::string variable = CodeCell(PetVariable(spec));
  if (*spec.variable != 0) absl::StrAppend(&variable, ", ", CodeCell(spec.variable));
  std::string preset =
      *spec.default_note != 0 ? Cell(spec.default_note) : CodeCell(spec.default_text);
  absl::StrAppend(out, "| ", letter, CodeCell(option), " | ", preset, " | ", variable, " | ",
                  Cell(spec.help), spec.in_torchrun ? "" : " *", " |\n");
}

void AppendTable(OptionGroup group, std::string* out) {
  absl::StrAppend(out, "\n## ", GroupTitle(group), "\n\n");
  AppendHead(out);
  for (const OptionSpec& spec : RunOptions()) {
    if (spec.group == group && spec.kind != OptionKind::kRefused) AppendRow(spec, out);
  }
}

// "muster stop [OPTIONS] JOB".
std::string UsageText(const CommandSpec& command) {
  return absl::StrCat("muster ", command.name, " [OPTIONS]", *command.arguments == 0 ? "" : " ",
                      command.arguments);
}

void AppendSection(const CommandSpec& command, std::string* out) {
  absl::StrAppend(out, "\n# muster ", command.name, "\n\n`", UsageText(command), "`\n\n",
                  command.help, ".\n\n");
  AppendHead(out);
  for (const OptionSpec& spec : command.options) AppendRow(spec, out);
}

}  // namespace

std::string HelpText() {
  return R"(muster starts distributed training jobs and keeps them running.

  muster run [OPTIONS] PROGRAM [ARGUMENTS...]   run a job, or one node of it
  muster run --help                             all options
  muster status [OPTIONS] [JOB]                 what a master's jobs are doing, and why
  muster stop [OPTIONS] JOB                     end a job on all its nodes
  muster drain [OPTIONS] JOB                    end a job, or a node of it, at a commit point
  muster check [OPTIONS]                        whether a job could run: nodes, network, versions
  muster version                                print the version
  muster help [COMMAND]                         print this text, or that of a command

Called by the name torchrun, muster behaves as `muster run`.
Exit codes: docs/EXIT_CODES.md. 2 means that the command line is wrong.
)";
}

std::string RunHelpText() {
  std::string out =
      "muster run [OPTIONS] PROGRAM [ARGUMENTS...]\n\n"
      "Starts PROGRAM once for each worker of this node and keeps the job running. What ends in "
      ".py "
      "or\nis not executable runs under Python. What follows PROGRAM, or --, is its own.\n\n"
      "Long options may have underscores for dashes and may be abbreviated. Each can be given as "
      "a\n"
      "variable, too: --max-restarts is PET_MAX_RESTARTS. Defaults are in brackets.\n";
  for (OptionGroup group : kGroups) {
    absl::StrAppend(&out, "\n", GroupTitle(group), "\n");
    for (const OptionSpec& spec : RunOptions()) {
      if (spec.group == group && spec.kind != OptionKind::kRefused) AppendOption(spec, &out);
    }
    if (group == OptionGroup::kOther)
      absl::StrAppend(&out, "  -h, --help", std::string(22, ' '), "Print this text.\n");
  }
  return out;
}

std::string CommandHelpText(const CommandSpec& command) {
  std::string out = absl::StrCat(UsageText(command), "\n\n", command.help, ".\n\n");
  for (const OptionSpec& spec : command.options) AppendOption(spec, &out);
  absl::StrAppend(&out, "  -h, --help", std::string(22, ' '), "Print this text.\n");
  return out;
}

std::string CommandsDocument() {
  std::string out = R"(# Commands

<!-- Made from launcher/option_table.cc by `bazel run //launcher:commands_document`. -->

| command | does |
| --- | --- |
| `muster run [OPTIONS] PROGRAM [ARGUMENTS...]` | runs a job, or one node of it |
| `muster status [OPTIONS] [JOB]` | prints what a master's jobs are doing, and why |
| `muster stop [OPTIONS] JOB` | ends a job on all its nodes |
| `muster drain [OPTIONS] JOB` | lets a job, or one node of it, end at a commit point |
| `muster check [OPTIONS]` | tries whether a job could run on these nodes |
| `muster version` | prints the version |
| `muster help [COMMAND]` | prints a short text, or all options of a command |

Called by the name `torchrun`, muster behaves as `muster run`. Exit codes:
[EXIT_CODES.md](EXIT_CODES.md).

# muster run

* What follows PROGRAM belongs to it and is not looked at. `--` before PROGRAM is dropped.
* `--max-restarts 3`, `--max_restarts 3`, `--max-restarts=3` and an unambiguous abbreviation
  (`--max-r 3`) are the same. Of an option that is given twice the last counts. A switch can be
  turned off: `--standalone=no`.
* The command line wins over the `PET_` variable, that over another variable, this over what the
  cluster's scheduler says, this over the default. A switch as a variable is a number (0: off) or
  `true`, `yes`, `on`, `false`, `no`, `off`. A `PET_` or `MUSTER_` variable that is set and empty is
  an error, and so is an option with an empty value that says nothing.
* A TIME is seconds or has a unit: `30`, `0.5`, `500ms`, `5m`, `1h`.
* `--dry-run` prints the plan, each value with where it comes from.
* Options marked * are not torchrun's.

PROGRAM runs under Python when it ends in `.py`, when it is a file that is not executable, and with
`-m`: as `PYTHON -u PROGRAM`, where PYTHON is the variable `PYTHON_EXEC`, else the first `python3`
on `PATH`. Everything else is executed itself. A name without a slash that is no file here is looked
for on `PATH`.

Within a step of Slurm (`srun`) of several nodes, and without `--standalone`, options that nobody
gave come from Slurm: `--nnodes` from `SLURM_STEP_NUM_NODES`, `SLURM_NNODES` or
`SLURM_JOB_NUM_NODES`, `--rdzv-id` from `SLURM_JOB_ID`, `--node-rank` and the node's id from
`SLURM_NODEID`, `--rdzv-endpoint` from the first host of `SLURM_STEP_NODELIST` or
`SLURM_JOB_NODELIST`. In an indexed job of Kubernetes `--node-rank` and the node's id come from
`JOB_COMPLETION_INDEX`.

`cpu` and `auto` count the CPUs of the affinity mask, at most those of the cgroup's CPU limit
(rounded down). `gpu` and `auto` count what `CUDA_VISIBLE_DEVICES` leaves of the driver's GPUs:
indices, UUIDs, MIG devices.

`--numa-binding` takes a worker's NUMA node from its GPU: local rank n has the n-th visible GPU.
Where there is no GPU, or its node is not known, the local ranks go round the NUMA nodes. With
`exclusive` the workers of a NUMA node share its cores evenly, the lower ranks get the remainder;
with `core-complex` they go round its L3 caches.
)";
  for (OptionGroup group : kGroups) AppendTable(group, &out);
  absl::StrAppend(&out, "\n## Refused\n\n");
  for (const OptionSpec& spec : RunOptions()) {
    if (spec.kind != OptionKind::kRefused) continue;
    absl::StrAppend(&out, "* ", CodeCell(absl::StrCat("--", spec.name)), ": ", spec.help, ".\n");
  }
  absl::StrAppend(&out, "\nWhat differs from torchrun: [COMPAT.md](COMPAT.md).\n");
  for (const CommandSpec& command : CommandSpecs()) AppendSection(command, &out);
  absl::StrAppend(&out,
                  "\nWhat status, stop and drain print, and their exit codes: "
                  "[STATUS.md](STATUS.md). What check "
                  "finds: [CHECK.md](CHECK.md).\n");
  return out;
}

}  // namespace muster
