#include "rendezvous/musterd_config.h"

#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/nearest_word.h"
#include "base/value_text.h"
#include "rendezvous/musterd_table.h"

namespace muster {
namespace {

using Settings = std::map<std::string, MusterdSetting>;

constexpr size_t kFileBytesMax = 1 << 20;

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

std::string DidYouMean(const std::string& name, const std::vector<std::string>& known,
                       absl::string_view dashes, absl::string_view otherwise) {
  const std::string nearest = NearestWord(name, known);
  return nearest.empty() ? std::string(otherwise)
                         : absl::StrCat("did you mean ", dashes, nearest, "?");
}

absl::Status IsEmpty(const MusterdOption& option, const std::string& from) {
  return Bad(from, " is empty: give ", option.is_switch() ? "true or false" : option.metavar,
             ", or leave it out");
}

// The option of this name, or the only one that begins so.
absl::StatusOr<const MusterdOption*> Resolve(const std::string& name) {
  std::vector<const MusterdOption*> found;
  std::vector<std::string> names;
  for (const MusterdOption& option : MusterdOptions()) {
    if (name == option.name) return &option;
    names.emplace_back(option.name);
    if (!name.empty() && absl::StartsWith(option.name, name)) found.push_back(&option);
  }
  if (found.size() == 1) return found.front();
  if (!found.empty()) {
    const auto name_of = [](std::string* out, const MusterdOption* option) {
      absl::StrAppend(out, "--", option->name);
    };
    return Bad("ambiguous option --", name, ": it could be ", absl::StrJoin(found, ", ", name_of));
  }
  return Bad("unknown option ", Quoted(absl::StrCat("--", name)), ": ",
             DidYouMean(name, names, "--", "'musterd --help' lists the options"));
}

absl::StatusOr<Settings> ReadWords(const std::vector<std::string>& words) {
  Settings settings;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] == "-h" ? "--help" : words[i];
    if (!absl::StartsWith(word, "--") || word == "--") {
      return Bad("unexpected word ", Quoted(word), ": musterd takes options only, see --help");
    }
    const size_t equals = word.find('=');
    const std::string name = absl::StrReplaceAll(word.substr(2, equals - 2), {{"_", "-"}});
    const absl::StatusOr<const MusterdOption*> option = Resolve(name);
    if (!option.ok()) return option.status();
    const std::string full = absl::StrCat("--", (*option)->name);
    std::string value = equals == std::string::npos ? "true" : word.substr(equals + 1);
    if (equals == std::string::npos && !(*option)->is_switch()) {
      if (i + 1 == words.size() || absl::StartsWith(words[i + 1], "--")) {
        return Bad(full, " needs a value: ", (*option)->metavar);
      }
      value = words[++i];
    }
    if (value.empty()) return IsEmpty(**option, full);
    settings[(*option)->name] = {std::move(value), full};
  }
  return settings;
}

Settings ReadVariables(const EnvMap& env) {
  Settings settings;
  for (const MusterdOption& option : MusterdOptions()) {
    for (const std::string& name : {MusterdVariable(option), std::string(option.variable)}) {
      const std::string* value = name.empty() ? nullptr : FindVariable(env, name);
      if (value != nullptr) settings.emplace(option.name, MusterdSetting{*value, name});
    }
  }
  return settings;
}

// Nothing for a text whose quotes do not close, or with something behind them.
std::optional<std::string> Unquoted(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty() || (text[0] != '"' && text[0] != '\'')) {
    const size_t comment = text.find(" #");
    return std::string(absl::StripAsciiWhitespace(text.substr(0, comment)));
  }
  const size_t end = text.find(text[0], 1);
  if (end == absl::string_view::npos) return std::nullopt;
  const absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(end + 1));
  if (!rest.empty() && rest[0] != '#') return std::nullopt;
  return std::string(text.substr(1, end - 1));
}

absl::Status ReadLine(absl::string_view line, const std::string& place, Settings* settings) {
  const size_t equals = line.find('=');
  if (equals == absl::string_view::npos) {
    return Bad(place, ": ", Quoted(line), " is not NAME = VALUE");
  }
  const std::string name =
      absl::StrReplaceAll(absl::StripAsciiWhitespace(line.substr(0, equals)), {{"_", "-"}});
  std::vector<std::string> known;
  bool is_known = false;
  for (const MusterdOption& option : MusterdOptions()) {
    if (option.set == nullptr) continue;
    known.emplace_back(option.name);
    is_known = is_known || name == option.name;
  }
  if (!is_known) {
    return Bad(place, ": unknown entry ", Quoted(name), ": ",
               DidYouMean(name, known, "", absl::StrCat("known are ", absl::StrJoin(known, ", "))));
  }
  const std::optional<std::string> value = Unquoted(line.substr(equals + 1));
  if (!value.has_value()) return Bad(place, ": the quotes of ", name, " do not match");
  if (value->empty()) return Bad(place, ": ", name, " has no value: give one or drop the line");
  const auto [before, is_new] = settings->emplace(name, MusterdSetting{*value, place});
  if (is_new) return absl::OkStatus();
  return Bad(place, ": ", name, " is there already (", before->second.from, "): drop one");
}

absl::StatusOr<Settings> ReadFile(const std::string& path, const FileReader& read_file) {
  const absl::StatusOr<std::string> text = read_file(path);
  if (!text.ok()) return text.status();
  if (text->size() > kFileBytesMax) return Bad(path, " is over 1 MiB: not a configuration");
  if (text->find('\0') != std::string::npos) return Bad(path, " is not a text");
  Settings settings;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::string place = absl::StrCat(path, ":", ++number);
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (absl::Status read = ReadLine(line, place, &settings); !read.ok()) return read;
  }
  return settings;
}

// Variables of musterd that belong to no option. Kubernetes makes some of its own for a service of
// this name.
std::vector<std::string> UnknownVariables(const EnvMap& env) {
  std::vector<std::string> known;
  for (const MusterdOption& option : MusterdOptions()) {
    if (option.set != nullptr) known.push_back(MusterdVariable(option));
  }
  std::vector<std::string> warnings;
  for (const auto& [name, value] : env) {
    if (!absl::StartsWith(name, "MUSTERD_") || absl::StartsWith(name, "MUSTERD_PORT") ||
        absl::StartsWith(name, "MUSTERD_SERVICE_") ||
        std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    warnings.push_back(absl::StrCat(name, " belongs to no option and is ignored: ",
                                    DidYouMean(name, known, "", "see musterd --help")));
  }
  return warnings;
}

// Whether what is said of etcd fits together.
absl::Status CheckElection(const Settings& settings, const MusterdConfig& config) {
  const MusterdSetting& state_dir = settings.at("state-dir");
  if (config.is_elected() && !state_dir.text.empty()) {
    return Bad(state_dir.from, ": masters that are elected keep the jobs' state in etcd (",
               settings.at("etcd-endpoints").from, "): leave out one of them");
  }
  if (config.is_elected()) return CheckEtcdOptions(config.election.etcd);
  for (const char* name : {"etcd-ca", "etcd-cert", "etcd-key", "etcd-user", "etcd-password-file"}) {
    const MusterdSetting& setting = settings.at(name);
    if (!setting.text.empty()) {
      return Bad(setting.from, " has no meaning without --etcd-endpoints");
    }
  }
  return absl::OkStatus();
}

MusterdAction ActionOf(const Settings& words) {
  if (words.count("help") != 0) return MusterdAction::kHelp;
  if (words.count("version") != 0) return MusterdAction::kVersion;
  return words.count("check-config") != 0 ? MusterdAction::kCheck : MusterdAction::kServe;
}

}  // namespace

absl::StatusOr<MusterdCommand> ReadMusterdCommand(const std::vector<std::string>& words,
                                                  const EnvMap& env, const FileReader& read_file) {
  absl::StatusOr<Settings> settings = ReadWords(words);
  if (!settings.ok()) return settings.status();
  MusterdCommand command;
  command.action = ActionOf(*settings);
  if (command.action == MusterdAction::kHelp || command.action == MusterdAction::kVersion) {
    return command;
  }
  settings->merge(ReadVariables(env));
  if (const auto config = settings->find("config"); config != settings->end()) {
    absl::StatusOr<Settings> file = ReadFile(config->second.text, read_file);
    if (!file.ok()) return file.status();
    settings->merge(*file);
  }
  for (const MusterdOption& option : MusterdOptions()) {
    if (option.set == nullptr) continue;
    const auto [entry, is_default] =
        settings->emplace(option.name, MusterdSetting{option.default_text, "default"});
    if (entry->second.text.empty()) {
      if (is_default) continue;
      return IsEmpty(option, entry->second.from);
    }
    const absl::Status set = option.set(entry->second.text, &command.config);
    if (!set.ok()) return Bad(entry->second.from, ": ", set.message());
  }
  command.settings = *std::move(settings);
  command.warnings = UnknownVariables(env);
  const absl::Status fits = CheckSecurity(command.config.security, command.config.listen);
  if (!fits.ok()) return fits;
  const absl::Status elects = CheckElection(command.settings, command.config);
  if (!elects.ok()) return elects;
  return command;
}

}  // namespace muster
