#include "worker_sdk/check_settings.h"

#include <charconv>

#include "worker_sdk/process_variable.h"

namespace muster {
namespace {

[[noreturn]] void Refuse(const char* name, const std::string& value, const char* needed) {
  throw EnvironmentError(std::string(name) + "='" + value + "' in the environment is not " +
                             needed + ": correct it, or unset it",
                         {name});
}

}  // namespace

bool SwitchedOn(const char* name, bool otherwise, const Environment& environment) {
  const auto value = environment(name);
  if (!value || value->empty()) return otherwise;
  if (*value != "0" && *value != "1") Refuse(name, *value, "1 or 0");
  return *value == "1";
}

bool SwitchedOn(const char* name, bool otherwise) {
  return SwitchedOn(name, otherwise, ProcessVariable);
}

CheckOptions WithEnvironment(CheckOptions options, const Environment& environment) {
  options.on(SwitchedOn("MUSTER_CHECK", options.on(), environment));
  if (const auto every = environment("MUSTER_CHECK_EVERY"); every && !every->empty()) {
    int64_t steps = 0;
    const char* end = every->data() + every->size();
    const auto [stop, error] = std::from_chars(every->data(), end, steps);
    if (error != std::errc() || stop != end || steps < 1) {
      Refuse("MUSTER_CHECK_EVERY", *every, "a number of steps, 1 or more");
    }
    options.every(steps);
  }
  if (options.every() < 1) {
    throw Error("CheckOptions: every(" + std::to_string(options.every()) + ") must be 1 or more");
  }
  return options;
}

CheckOptions WithEnvironment(CheckOptions options) {
  return WithEnvironment(options, ProcessVariable);
}

std::string EveryText(const CheckOptions& options) {
  if (options.every() == 1) return "every step";
  return "every " + std::to_string(options.every()) + " steps";
}

std::string CheckText(const CheckOptions& options) {
  std::string text;
  if (options.on()) text += " with a check " + EveryText(options);
  if (!options.warn_of_same_batch()) text += " with no warning of a same batch";
  return text;
}

}  // namespace muster
