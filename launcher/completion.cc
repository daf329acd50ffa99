#include "launcher/completion.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

constexpr absl::string_view kCommands = "run status stop drain check version help";

std::vector<const OptionSpec*> Offered() {
  std::vector<const OptionSpec*> specs;
  for (const OptionSpec& spec : RunOptions()) {
    if (spec.kind != OptionKind::kRefused) specs.push_back(&spec);
  }
  return specs;
}

bool TakesFolder(const OptionSpec& spec) { return absl::string_view(spec.metavar) == "DIR"; }

// The first sentence of the help, without its full stop.
std::string Short(const OptionSpec& spec) {
  absl::string_view help = spec.help;
  const size_t end = std::min(help.find(". "), help.find(": "));
  std::string text(help.substr(0, end));
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

// Within single quotes of a shell.
std::string SingleQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// "--redirects|-r".
std::string BashPattern(const OptionSpec& spec) {
  std::string letter = spec.letter == 0 ? "" : absl::StrCat("|-", std::string(1, spec.letter));
  return absl::StrCat("--", spec.name, letter);
}

struct BashWords {
  std::string values;    // a branch of a case statement for each option that takes a value
  std::string switches;  // "|--standalone|..."
  std::string all = "--help";
};

BashWords WordsForBash() {
  BashWords words;
  for (const OptionSpec* spec : Offered()) {
    absl::StrAppend(&words.all, " --", spec->name);
    if (spec->kind == OptionKind::kSwitch) {
      absl::StrAppend(&words.switches, "|", BashPattern(*spec));
      continue;
    }
    const std::vector<std::string> listed = ListedValues(*spec);
    std::string how = ":";
    if (TakesFolder(*spec)) how = "COMPREPLY=($(compgen -d -- \"$2\"))";
    if (!listed.empty()) {
      how = absl::StrCat("COMPREPLY=($(compgen -W '", absl::StrJoin(listed, " "), "' -- \"$2\"))");
    }
    absl::StrAppend(&words.values, "    ", BashPattern(*spec), ") ", how, " ;;\n");
  }
  return words;
}

std::string BashScript() {
  const BashWords words = WordsForBash();
  return absl::StrCat(R"(# bash completion of muster: source this file, or put it as "muster" into
# ~/.local/share/bash-completion/completions.

# Completes the value "$2" of the option "$1"; fails when that takes none.
_muster_value() {
  case ${1//_/-} in
)",
                      words.values, R"(    *) return 1 ;;
  esac
}

_muster() {
  local current=${COMP_WORDS[COMP_CWORD]} at=1 word value ended=
  COMPREPLY=()
  if [[ ${COMP_WORDS[0]##*/} != torchrun ]]; then
    if ((COMP_CWORD == 1)); then
      COMPREPLY=($(compgen -W ')",
                      kCommands, R"(' -- "$current"))
      return
    fi
    [[ ${COMP_WORDS[1]} == run ]] || return
    at=2
  fi
  while ((at < COMP_CWORD)); do
    word=${COMP_WORDS[at]}
    case ${word//_/-} in
      -h|--help)",
                      words.switches, R"() at=$((at + 1)) ;;
      --) at=$((at + 1)) ended=1; break ;;
      -*)
        # "--option value", or "--option=value", which bash cuts at the sign.
        value=$((at + 1))
        if [[ ${COMP_WORDS[value]} == = ]]; then
          [[ $current == = ]] && current=
          ((value == COMP_CWORD)) || value=$((value + 1))
        fi
        if ((value >= COMP_CWORD)); then
          _muster_value "$word" "$current"
          return
        fi
        at=$((value + 1)) ;;
      *) break ;;
    esac
  done
  if [[ ! $ended && $current == -* ]] && ((at == COMP_CWORD)); then
    COMPREPLY=($(compgen -W ')",
                      words.all, R"(' -- "${current//_/-}"))
  elif ((at == COMP_CWORD)); then
    COMPREPLY=($(compgen -c -f -- "$current"))
  elif declare -F _command_offset >/dev/null; then
    _command_offset "$at"
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}

complete -F _muster muster torchrun
)");
}

// Within a specification of _arguments.
std::string ZshText(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string ZshSpec(const OptionSpec& spec) {
  const bool is_switch = spec.kind == OptionKind::kSwitch;
  std::string text = absl::StrCat("[", ZshText(Short(spec)), "]");
  if (!is_switch) {
    const std::vector<std::string> listed = ListedValues(spec);
    absl::StrAppend(&text, ":", ZshText(spec.metavar), ":");
    if (TakesFolder(spec)) absl::StrAppend(&text, "_directories");
    if (!listed.empty()) absl::StrAppend(&text, "(", absl::StrJoin(listed, " "), ")");
  }
  std::string line = absl::StrCat(
      "    ", SingleQuoted(absl::StrCat("--", spec.name, is_switch ? "" : "=", text)), " \\\n");
  if (spec.letter == 0) return line;
  return absl::StrCat(
      line, "    ",
      SingleQuoted(absl::StrCat("-", std::string(1, spec.letter), is_switch ? "" : "+", text)),
      " \\\n");
}

std::string ZshScript() {
  std::string specs;
  for (const OptionSpec* spec : Offered()) absl::StrAppend(&specs, ZshSpec(*spec));
  return absl::StrCat(R"(#compdef muster torchrun
# zsh completion of muster: put this file as "_muster" into a folder of $fpath.

_muster() {
  if [[ ${words[1]:t} != torchrun ]]; then
    if (( CURRENT == 2 )); then
      compadd )",
                      kCommands, R"(
      return
    fi
    [[ $words[2] == run ]] || return
    shift words
    (( CURRENT-- ))
  fi
  _arguments -s -S -A '-*' \
    '(-h --help)'{-h,--help}'[Print a help text]' \
)",
                      specs, R"(    '*::program:_normal'
}

if [[ $funcstack[1] == _muster ]]; then
  _muster "$@"
else
  compdef _muster muster torchrun
fi
)");
}

std::string FishScript() {
  std::string text =
      R"(# fish completion of muster: put this file as "muster.fish" into
# ~/.config/fish/completions.

# Whether options of muster run stand here: before the program.
function __muster_options
    set -l words (commandline -opc)
    set -l name (string replace -r '.*/' '' -- $words[1])
    if test "$name" != torchrun
        test "$words[2]" = run; or return 1
        set -e words[2]
    end
    set -l skip 0
    for word in $words[2..-1]
        if test $skip = 1
            set skip 0
        else if not string match -q -- '-*' $word; or test "$word" = --
            return 1
        else if string match -qr -- '^(VALUES)$' (string replace -a _ - -- $word)
            set skip 1
        end
    end
    return 0
end

complete -c muster -n '__fish_use_subcommand' -f -a 'COMMANDS'
)";
  std::vector<std::string> with_value;
  for (const OptionSpec* spec : Offered()) {
    if (spec->kind == OptionKind::kValue) with_value.push_back(BashPattern(*spec));
  }
  text = absl::StrReplaceAll(text,
                             {{"VALUES", absl::StrJoin(with_value, "|")}, {"COMMANDS", kCommands}});
  for (absl::string_view program : {"muster", "torchrun"}) {
    absl::StrAppend(&text, "complete -c ", program,
                    " -n __muster_options -s h -l help -d 'Print a help text'\n");
    for (const OptionSpec* spec : Offered()) {
      absl::StrAppend(&text, "complete -c ", program, " -n __muster_options",
                      spec->letter == 0 ? "" : absl::StrCat(" -s ", std::string(1, spec->letter)),
                      " -l ", spec->name);
      const std::vector<std::string> listed = ListedValues(*spec);
      if (TakesFolder(*spec)) absl::StrAppend(&text, " -x -a '(__fish_complete_directories)'");
      if (!listed.empty()) absl::StrAppend(&text, " -x -a '", absl::StrJoin(listed, " "), "'");
      if (spec->kind == OptionKind::kValue && listed.empty() && !TakesFolder(*spec)) {
        absl::StrAppend(&text, " -x");
      }
      absl::StrAppend(&text, " -d ", SingleQuoted(Short(*spec)), "\n");
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> ListedValues(const OptionSpec& spec) {
  std::vector<std::string> values;
  for (absl::string_view word : absl::StrSplit(spec.metavar, '|')) {
    const bool is_word = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return absl::ascii_islower(static_cast<unsigned char>(c)) ||
             absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-';
    });
    if (is_word) values.emplace_back(word);
  }
  return values;
}

std::string CompletionScript(absl::string_view shell) {
  if (shell == "bash") return BashScript();
  if (shell == "zsh") return ZshScript();
  if (shell == "fish") return FishScript();
  std::abort();
}

}  // namespace muster
