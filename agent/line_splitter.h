#ifndef MUSTER_AGENT_LINE_SPLITTER_H_
#define MUSTER_AGENT_LINE_SPLITTER_H_

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Turns the bytes of one stream into prefixed whole lines. A line ends at '\n' only; every other
// byte (NUL, '\r') is passed on as it is. A beginning of a line is kept until its end comes, up to
// kLineBytesHeld; a longer line is passed on in pieces: its prefix once, then the bytes as they
// come. Pure.
class LineSplitter {
 public:
  static constexpr size_t kLineBytesHeld = 64 * 1024;

  // Appends to *out what can be shown now. Where `filters` are given, lines that contain one of
  // them are also appended to *matches, prefix included (of a line over kLineBytesHeld its first
  // bytes decide and are copied).
  void Feed(std::string_view data, std::string_view prefix, std::string* out);
  void FeedFiltered(std::string_view data, std::string_view prefix,
                    const std::vector<std::string>& filters, std::string* out,
                    std::string* matches);

  // The stream has ended: a line that lacks its '\n' is completed with one.
  void Finish(std::string_view prefix, std::string* out);

  // Lets others write: ends a line that is being passed on in pieces with '\n'. Its rest will look
  // like a line of its own.
  void Break(std::string* out);

  // A line has been shown in part: nobody else may write to the same place.
  bool in_long_line() const { return in_long_line_; }

  // Bytes held back.
  size_t held() const { return held_.size(); }

 private:
  void EndLine(std::string_view rest, std::string_view prefix, std::string* out);
  void Hold(std::string_view rest, std::string_view prefix, std::string* out);

  std::string held_;
  bool in_long_line_ = false;
};

}  // namespace muster

#endif  // MUSTER_AGENT_LINE_SPLITTER_H_
