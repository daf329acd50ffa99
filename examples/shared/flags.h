#ifndef MUSTER_EXAMPLES_SHARED_FLAGS_H_
#define MUSTER_EXAMPLES_SHARED_FLAGS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "examples/shared/input_error.h"

namespace examples {

// The flags of a program, and the variables that they set: `--flag value` or `--flag=value`;
// switches stand alone. Of a flag that is given twice the last one counts. It refers to the
// variables. No LibTorch here.
class Flags {
 public:
  // `expected` ends the error "--flag 'text' is not …".
  void Count(const std::string& flag, int64_t& target, int64_t low, const char* expected);
  void Number(const std::string& flag, double& target, double low, const char* expected);
  void Seed(const std::string& flag, uint64_t& target);
  void Path(const std::string& flag, std::filesystem::path& target);
  void Choice(const std::string& flag, std::string& target, std::vector<std::string> choices);
  void Switch(const std::string& flag, bool& target, bool value = true);

  // False if --help or -h is among them. Throws UsageError.
  bool Parse(const std::vector<std::string>& arguments) const;

 private:
  struct Flag {
    bool alone = false;
    std::function<void(const std::string& text)> set;
  };
  std::map<std::string, Flag> flags_;
};

}  // namespace examples

#endif  // MUSTER_EXAMPLES_SHARED_FLAGS_H_
