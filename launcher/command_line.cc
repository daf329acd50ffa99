#include "launcher/command_line.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/nearest_word.h"
#include "launcher/option_values.h"

namespace muster {
namespace {

// "'muster run --help' lists the options".
std::string HelpHint(const CommandSpec& command, absl::string_view does) {
  return absl::StrCat("'muster ", command.name, " --help' ", does);
}

absl::Status Unknown(absl::string_view name, const CommandSpec& command) {
  std::vector<std::string> names = {"help"};
  for (const OptionSpec& spec : command.options) {
    if (spec.kind != OptionKind::kRefused) names.emplace_back(spec.name);
  }
  std::string nearest = NearestWord(std::string(name), names);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown option ", Quoted(absl::StrCat("--", name)),
                   nearest.empty() ? ": " + HelpHint(command, "lists the options")
                                   : absl::StrCat(": did you mean --", nearest, "?")));
}

std::vector<const OptionSpec*> StartingWith(absl::string_view prefix, bool in_torchrun,
                                            const CommandSpec& command) {
  std::vector<const OptionSpec*> found;
  for (const OptionSpec& spec : command.options) {
    if (spec.in_torchrun == in_torchrun && absl::StartsWith(spec.name, prefix)) {
      found.push_back(&spec);
    }
  }
  return found;
}

const OptionSpec* FindLetter(char letter, const CommandSpec& command) {
  for (const OptionSpec& spec : command.options) {
    if (spec.letter == letter) return &spec;
  }
  return nullptr;
}

bool LooksLikeOption(absl::string_view word) {
  return word.size() > 1 && word[0] == '-' && !absl::ascii_isdigit(word[1]) && word[1] != '.';
}

// Walks over the words before the program.
class Splitter {
 public:
  Splitter(const std::vector<std::string>& words, const CommandSpec& command)
      : words_(words), command_(command) {}

  absl::StatusOr<SplitLine> Split() {
    while (next_ < words_.size() && !line_.help) {
      const std::string& word = words_[next_];
      if (word == "--") {
        ++next_;
        break;
      }
      if (word.size() < 2 || word[0] != '-') {
        if (command_.ends_at_program) break;
        line_.program.push_back(words_[next_++]);
        continue;
      }
      ++next_;
      absl::Status taken =
          word[1] == '-' ? TakeLong(absl::string_view(word).substr(2)) : TakeLetters(word);
      if (!taken.ok()) return taken;
    }
    line_.program.insert(line_.program.end(), words_.begin() + static_cast<std::ptrdiff_t>(next_),
                         words_.end());
    return std::move(line_);
  }

 private:
  absl::Status TakeLong(absl::string_view word) {
    size_t equals = word.find('=');
    std::string name = absl::StrReplaceAll(word.substr(0, equals), {{"_", "-"}});
    std::optional<absl::string_view> value;
    if (equals != absl::string_view::npos) value = word.substr(equals + 1);
    if (name == "help") {
      line_.help = true;
      return absl::OkStatus();
    }
    absl::StatusOr<const OptionSpec*> spec = ResolveOption(name, command_);
    if (!spec.ok()) return spec.status();

    std::string full = absl::StrCat("--", (*spec)->name);
    if ((*spec)->kind == OptionKind::kSwitch) {
      if (value.has_value()) absl::StrAppend(&full, "=", value->empty() ? "''" : *value);
      line_.options.push_back(full);
      return absl::OkStatus();
    }
    line_.options.push_back(full);
    if (!value.has_value()) return TakeValue(full);
    line_.options.emplace_back(*value);
    return absl::OkStatus();
  }

  // -m, -r3, -r 3, -mr3.
  absl::Status TakeLetters(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      if (word[i] == 'h') {
        line_.help = true;
        return absl::OkStatus();
      }
      const OptionSpec* spec = FindLetter(word[i], command_);
      if (spec == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("unknown option ", Quoted(word), ": ",
                                                       HelpHint(command_, "lists the options")));
      }
      if (spec->kind == OptionKind::kSwitch) continue;
      line_.options.push_back(word);
      return i + 1 < word.size() ? absl::OkStatus() : TakeValue(word);
    }
    line_.options.push_back(word);
    return absl::OkStatus();
  }

  absl::Status TakeValue(absl::string_view option) {
    if (next_ == words_.size() || LooksLikeOption(words_[next_])) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, " needs a value: ", HelpHint(command_, "shows what it takes")));
    }
    line_.options.push_back(words_[next_++]);
    return absl::OkStatus();
  }

  const std::vector<std::string>& words_;
  const CommandSpec& command_;
  size_t next_ = 0;
  SplitLine line_;
};

}  // namespace

absl::StatusOr<const OptionSpec*> ResolveOption(absl::string_view name,
                                                const CommandSpec& command) {
  const OptionSpec* spec = FindSpec(name, command);
  for (bool in_torchrun : {true, false}) {
    if (spec != nullptr || name.empty()) break;
    std::vector<const OptionSpec*> found = StartingWith(name, in_torchrun, command);
    if (found.size() == 1) spec = found.front();
    if (found.size() > 1) {
      auto name_of = [](std::string* out, const OptionSpec* option) {
        absl::StrAppend(out, "--", option->name);
      };
      return absl::InvalidArgumentError(absl::StrCat("ambiguous option --", name, ": it could be ",
                                                     absl::StrJoin(found, ", ", name_of)));
    }
  }
  if (spec == nullptr) return Unknown(name, command);
  if (spec->kind == OptionKind::kRefused) {
    return absl::UnimplementedError(absl::StrCat("--", spec->name, " is refused, ", spec->help));
  }
  return spec;
}

absl::StatusOr<SplitLine> SplitCommandLine(const std::vector<std::string>& words,
                                           const CommandSpec& command) {
  return Splitter(words, command).Split();
}

}  // namespace muster
