#include "base/env.h"

#include <string_view>

namespace muster {

EnvMap EnvMapFrom(const char* const* environment) {
  EnvMap env;
  if (environment == nullptr) return env;
  for (; *environment != nullptr; ++environment) {
    std::string_view entry = *environment;
    size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    env.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return env;
}

const std::string* FindVariable(const EnvMap& env, const std::string& name) {
  auto it = env.find(name);
  return it == env.end() ? nullptr : &it->second;
}

}  // namespace muster
