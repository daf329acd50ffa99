#include "examples/shared/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace examples {
namespace {

template <class T>
T Read(const std::string& flag, const std::string& text, T low, const char* expected) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool good = error == std::errc() && end == text.data() + text.size() && value >= low;
  if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(value);
  if (!good) throw UsageError(flag + " '" + text + "' is not " + expected);
  return value;
}

}  // namespace

void Flags::Count(const std::string& flag, int64_t& target, int64_t low, const char* expected) {
  flags_[flag].set = [&target, flag, low, expected](const std::string& text) {
    target = Read<int64_t>(flag, text, low, expected);
  };
}

void Flags::Number(const std::string& flag, double& target, double low, const char* expected) {
  flags_[flag].set = [&target, flag, low, expected](const std::string& text) {
    target = Read<double>(flag, text, low, expected);
  };
}

void Flags::Seed(const std::string& flag, uint64_t& target) {
  flags_[flag].set = [&target, flag](const std::string& text) {
    target = Read<uint64_t>(flag, text, 0, "a number from 0 on");
  };
}

void Flags::Path(const std::string& flag, std::filesystem::path& target) {
  flags_[flag].set = [&target, flag](const std::string& text) {
    if (text.empty()) throw UsageError(flag + " needs a name");
    target = text;
  };
}

void Flags::Choice(const std::string& flag, std::string& target, std::vector<std::string> choices) {
  flags_[flag].set = [&target, flag, choices = std::move(choices)](const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      std::string all;
      for (const std::string& choice : choices) all += (all.empty() ? "" : ", ") + choice;
      throw UsageError(flag + " '" + text + "' is none of " + all);
    }
    target = text;
  };
}

void Flags::Switch(const std::string& flag, bool& target, bool value) {
  flags_[flag] = {true, [&target, value](const std::string&) { target = value; }};
}

bool Flags::Parse(const std::vector<std::string>& arguments) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "-h" || argument == "--help") return false;
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto found = flags_.find(name);
    if (found == flags_.end()) throw UsageError("unknown argument '" + argument + "'");
    const Flag& flag = found->second;
    if (flag.alone) {
      if (equals != std::string::npos) throw UsageError(name + " takes no value");
      flag.set("");
    } else if (equals != std::string::npos) {
      flag.set(argument.substr(equals + 1));
    } else if (++i < arguments.size()) {
      flag.set(arguments[i]);
    } else {
      throw UsageError(name + " needs a value");
    }
  }
  return true;
}

}  // namespace examples
