#ifndef MUSTER_EXAMPLES_SHARED_INPUT_ERROR_H_
#define MUSTER_EXAMPLES_SHARED_INPUT_ERROR_H_

#include <stdexcept>
#include <string>

namespace examples {

// What the user gave is wrong: one line, and the exit code for it. All ranks find the same.
class InputError : public std::runtime_error {
 public:
  InputError(int code, const std::string& what) : std::runtime_error(what), code(code) {}
  int code;
};

// The line names the flag.
class UsageError : public InputError {
 public:
  explicit UsageError(const std::string& what) : InputError(2, what) {}
};

}  // namespace examples

#endif  // MUSTER_EXAMPLES_SHARED_INPUT_ERROR_H_
