#include "launcher/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/nearest_word.h"
#include "launcher/command_line.h"
#include "launcher/option_values.h"

namespace muster {
namespace {

absl::Status In(absl::string_view place, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(place, ": ", status.message()));
}

// Gives CLI11 the table and takes back what the words set. CLI11 reports by exceptions and with
// texts of its own; both end here.
class Cli {
 public:
  explicit Cli(const CommandSpec& command) {
    app_.set_help_flag();
    for (const OptionSpec& spec : command.options) {
      if (spec.kind == OptionKind::kRefused) continue;
      std::string names = absl::StrCat("--", spec.name);
      if (spec.letter != 0) names = absl::StrCat("-", std::string(1, spec.letter), ",", names);
      CLI::Option* option =
          spec.kind == OptionKind::kSwitch ? app_.add_flag(names) : app_.add_option(names);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      options_.emplace_back(&spec, option);
    }
  }

  absl::Status Parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    try {
      app_.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(error.what());
    }
    return absl::OkStatus();
  }

  // Calls take(spec, text) for each option that was set, in the table's order; ends at a failure.
  template <typename Take>
  absl::Status ForEach(const Take& take) const {
    for (const auto& [spec, option] : options_) {
      if (option->count() == 0) continue;
      absl::Status taken = take(*spec, option->results().back());
      if (!taken.ok()) return taken;
    }
    return absl::OkStatus();
  }

 private:
  CLI::App app_;
  std::vector<std::pair<const OptionSpec*, CLI::Option*>> options_;
};

absl::Status SetChecked(const OptionSpec& spec, Setting setting, Options* options) {
  if (spec.check != nullptr) {
    absl::Status checked = spec.check(setting.text);
    if (!checked.ok()) return In(setting.from, checked);
  }
  options->Set(spec.name, std::move(setting));
  return absl::OkStatus();
}

// What a script gives for a variable that it has not set: never what it means.
absl::Status GivenAndEmpty(const OptionSpec& spec) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--", spec.name, " is empty: give ",
      spec.kind == OptionKind::kSwitch ? "yes or no" : spec.metavar, ", or leave it out"));
}

absl::Status SetAndEmpty(absl::string_view variable) {
  return absl::InvalidArgumentError(
      absl::StrCat(variable, " is set and empty: give it a value or unset it"));
}

absl::Status SetFromVariables(const EnvMap& env, const CommandSpec& command, Options* options) {
  for (const OptionSpec& spec : command.options) {
    const std::string pet_name = PetVariable(spec);
    const std::string* pet = pet_name.empty() ? nullptr : FindVariable(env, pet_name);
    if (spec.kind == OptionKind::kRefused) {
      if (pet == nullptr) continue;
      return absl::UnimplementedError(absl::StrCat(pet_name, " is refused, ", spec.help));
    }
    options->Set(spec.name, {spec.default_text, Source::kDefault, "default"});
    const std::string* other = *spec.variable == 0 ? nullptr : FindVariable(env, spec.variable);
    absl::Status set;
    if (pet != nullptr && pet->empty()) {
      set = SetAndEmpty(pet_name);
    } else if (pet != nullptr) {
      set = SetChecked(spec, {*pet, Source::kPet, pet_name}, options);
    } else if (other != nullptr && other->empty() && absl::StartsWith(spec.variable, "MUSTER_")) {
      set = SetAndEmpty(spec.variable);
    } else if (other != nullptr && !other->empty()) {
      set = SetChecked(spec, {*other, Source::kVariable, spec.variable}, options);
    }
    if (!set.ok()) return set;
  }
  return absl::OkStatus();
}

}  // namespace

const Setting& Options::at(absl::string_view name) const {
  auto it = settings_.find(name);
  if (it == settings_.end()) std::abort();
  return it->second;
}

bool Options::on(absl::string_view name) const {
  const std::string& value = text(name);
  return !value.empty() && ParseSwitch(value).value();
}

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& words, const EnvMap& env,
                                     const CommandSpec& command) {
  absl::StatusOr<SplitLine> line = SplitCommandLine(words, command);
  if (!line.ok()) return line.status();
  Options options;
  options.help = line->help;
  if (options.help) return options;

  absl::Status set = SetFromVariables(env, command, &options);
  if (!set.ok()) return set;
  Cli cli(command);
  absl::Status parsed = cli.Parse(std::move(line->options));
  if (!parsed.ok()) return parsed;
  parsed = cli.ForEach([&options](const OptionSpec& spec, const std::string& text) {
    // CLI11 has this text for an empty value of a switch.
    const bool is_empty = text.empty() || (spec.kind == OptionKind::kSwitch && text == "''");
    if (is_empty && !spec.may_be_empty) return GivenAndEmpty(spec);
    return SetChecked(spec, {text, Source::kCommandLine, absl::StrCat("--", spec.name)}, &options);
  });
  if (!parsed.ok()) return parsed;

  if (!line->program.empty()) {
    options.program = line->program.front();
    if (options.program.empty() && !command.ends_at_program) {
      return absl::InvalidArgumentError(absl::StrCat(
          "muster ", command.name, ": an argument is empty: ",
          *command.arguments == 0 ? "" : "give the name of a job, or ", "leave it out"));
    }
    options.arguments.assign(line->program.begin() + 1, line->program.end());
  }
  return options;
}

std::vector<std::string> UnknownPetVariables(const EnvMap& env) {
  constexpr absl::string_view kPet = "PET_";
  std::vector<std::string> names;  // of the options: what they have in common makes nothing near
  for (const OptionSpec& spec : RunOptions()) {
    if (spec.has_pet) names.push_back(PetVariable(spec).substr(kPet.size()));
  }
  std::vector<std::string> lines;
  for (auto it = env.lower_bound(std::string(kPet));
       it != env.end() && absl::StartsWith(it->first, kPet); ++it) {
    const std::string name = it->first.substr(kPet.size());
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::string nearest = NearestWord(name, names);
    lines.push_back(
        absl::StrCat(it->first, " belongs to no option and is ignored",
                     nearest.empty() ? "" : absl::StrCat(": did you mean ", kPet, nearest, "?")));
  }
  return lines;
}

}  // namespace muster
