#ifndef MUSTER_AGENT_LINE_SPLITTER_H_
#define MUSTER_AGENT_LINE_SPLITTER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Lines to copy: those that contain one of `needles`.
struct LineFilter {
  const std::vector<std::string>* needles = nullptr;  // not owned
  std::string* matches = nullptr;                     // not owned; whole lines, with prefix
};

// Turns the bytes of one stream into prefixed whole lines. A line ends at '\n', or at a '\r' that
// no
// '\n' follows, as progress bars end theirs (a '\r' without a text before it is left out); every
// other byte is passed on as it is. A beginning of a line is kept until its end comes, up to
// kLineBytesHeld; a longer line is passed on in pieces: its prefix once, then the bytes as they
// come. Pure.
class LineSplitter {
 public:
  static constexpr size_t kLineBytesHeld = 64 * 1024;

  // Appends to *out what can be shown now, and to the filter's matches the lines that match. Of a
  // line that is passed on in pieces, only the first piece is looked at and copied.
  void Feed(std::string_view data, std::string_view prefix, std::string* out,
            const LineFilter* filter = nullptr);

  // The stream has ended: a line that lacks its '\n' is completed with one.
  void Finish(std::string_view prefix, std::string* out, const LineFilter* filter = nullptr);

  // Lets others write: ends a line that is being passed on in pieces with '\n'. Its rest will look
  // like a line of its own.
  void Break(std::string* out);

  // A line has been shown in part: nobody else may write to the same place.
  bool in_long_line() const { return in_long_line_; }

  // Bytes held back.
  size_t held() const { return held_.size(); }

 private:
  void FeedLines(std::string_view data, std::string_view prefix, std::string* out,
                 const LineFilter* filter);
  void EndAtReturn(std::string_view prefix, std::string* out, const LineFilter* filter);
  void Emit(std::string_view rest, std::string_view prefix, std::string* out,
            const LineFilter* filter);

  std::string held_;
  bool ended_at_return_ = false;  // the last byte was the '\r' that ended a line
  bool in_long_line_ = false;
};

// The last `lines` lines of `text`. `cut`: text is the end of a longer one, so that its first line,
// when there are others, is not a whole one. A line break at the end is not kept.
std::string_view LastLines(std::string_view text, int lines, bool cut);

}  // namespace muster

#endif  // MUSTER_AGENT_LINE_SPLITTER_H_
