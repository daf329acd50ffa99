#ifndef MUSTER_BASE_ENV_H_
#define MUSTER_BASE_ENV_H_

#include <map>
#include <string>

namespace muster {

// A snapshot of environment variables: name to value. Code that decides gets one as an argument;
// only main() looks at the process's own.
using EnvMap = std::map<std::string, std::string>;

// From the form that main() and execve(2) use: "NAME=value" strings, ended by a null pointer. Of a
// name that occurs twice the first counts, as for getenv(3); strings without '=' are left out.
EnvMap EnvMapFrom(const char* const* environment);

// The value, or null when `name` is not set. A set, empty variable has the value "". Valid until
// `env` changes.
const std::string* FindVariable(const EnvMap& env, const std::string& name);

}  // namespace muster

#endif  // MUSTER_BASE_ENV_H_
