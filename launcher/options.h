#ifndef MUSTER_LAUNCHER_OPTIONS_H_
#define MUSTER_LAUNCHER_OPTIONS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/env.h"
#include "launcher/option_table.h"

namespace muster {

// Where a value comes from; a later one wins over an earlier one.
enum class Source { kDefault, kScheduler, kVariable, kPet, kCommandLine };

// The value of one option, checked (OptionSpec::check).
struct Setting {
  std::string text;
  Source source = Source::kDefault;
  std::string from;  // "--nnodes", "PET_NNODES", "LOGLEVEL", "default": for messages
};

// What the command line and the environment of one command say.
class Options {
 public:
  // The setting of an option of the table; a name that is not in it ends the process.
  const Setting& at(absl::string_view name) const;
  // Its text.
  const std::string& text(absl::string_view name) const { return at(name).text; }
  bool on(absl::string_view name) const;  // of a switch
  // True when somebody chose the value, be it the default's. A scheduler does not choose.
  bool given(absl::string_view name) const { return at(name).source > Source::kScheduler; }

  void Set(absl::string_view name, Setting setting) {
    settings_[std::string(name)] = std::move(setting);
  }

  bool help = false;
  std::string program;  // or the first argument of another command; empty: none given
  std::vector<std::string> arguments;

 private:
  std::map<std::string, Setting, std::less<>> settings_;
};

// Reads the words behind the command. The command line wins over PET_ variables, these over the
// other variables, these over defaults. With --help only `help` counts. InvalidArgument and
// Unimplemented, in one line that names the option or variable; see launcher/command_line.h. An
// empty PET_ variable is an error.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& words, const EnvMap& env,
                                     const CommandSpec& command = RunSpec());

// One line for each PET_ variable that belongs to no option: a typing error would be silent.
std::vector<std::string> UnknownPetVariables(const EnvMap& env);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_OPTIONS_H_
