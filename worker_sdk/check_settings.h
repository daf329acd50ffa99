#ifndef MUSTER_WORKER_SDK_CHECK_SETTINGS_H_
#define MUSTER_WORKER_SDK_CHECK_SETTINGS_H_

#include <muster/check_options.h>
#include <muster/worker.h>

#include <string>

namespace muster {

// A variable that is 1 or 0; `otherwise` where it is not set, or empty. Throws EnvironmentError for
// another value.
bool SwitchedOn(const char* name, bool otherwise, const Environment& environment);
bool SwitchedOn(const char* name, bool otherwise);

// `options` as the environment has them. Throws EnvironmentError for a value that is none.
CheckOptions WithEnvironment(CheckOptions options, const Environment& environment);
CheckOptions WithEnvironment(CheckOptions options);

// "every step", "every 100 steps".
std::string EveryText(const CheckOptions& options);

// What the ranks must agree on; empty with the defaults.
std::string CheckText(const CheckOptions& options);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECK_SETTINGS_H_
