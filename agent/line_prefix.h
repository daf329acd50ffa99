#ifndef MUSTER_AGENT_LINE_PREFIX_H_
#define MUSTER_AGENT_LINE_PREFIX_H_

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// What the macros of a prefix template stand for, but for ${time}.
struct PrefixValues {
  std::string role_name;
  std::string local_rank;
  std::string rank;
  std::string hostname;  // short
  std::string node;
  std::string generation;
  std::string pid;
};

// The text before each line of a tee'd stream: a template with ${role_name} ${local_rank} ${rank}
// ${hostname} ${node} ${generation} ${pid} ${time}. Anything else, also an unknown macro or a lone
// '$', is text. Pure.
class LinePrefix {
 public:
  explicit LinePrefix(std::string_view text_template);

  bool has_time() const { return has_time_; }
  bool has_pid() const { return has_pid_; }
  const std::vector<std::string>& unknown_macros() const {
    return unknown_;
  }  // "${nmae}", each once

  // `time` is used only where has_time().
  std::string Expand(const PrefixValues& values, std::string_view time) const;

 private:
  struct Piece {
    std::string text;  // verbatim, when `value` is null and it is not the time
    std::string PrefixValues::*value = nullptr;  // a macro
    bool is_time = false;
  };

  std::vector<Piece> pieces_;
  std::vector<std::string> unknown_;
  bool has_time_ = false;
  bool has_pid_ = false;
};

}  // namespace muster

#endif  // MUSTER_AGENT_LINE_PREFIX_H_
