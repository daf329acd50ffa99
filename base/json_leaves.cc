#include "base/json_leaves.h"

#include <cstdint>
#include <cstdlib>
#include <utility>

namespace muster {
namespace {

constexpr int kDepthMax = 32;
constexpr size_t kLeavesMax = 1000;

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xC0 | code >> 6));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | code >> 12));
    out->push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | code >> 18));
    out->push_back(static_cast<char>(0x80 | (code >> 12 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

// Recursive descent; every function returns false where the text ends early or is not JSON.
class Reader {
 public:
  Reader(std::string_view text, JsonLeaves* leaves) : rest_(text), leaves_(leaves) {}

  bool Document() {
    if (!Value("", 0)) return false;
    SkipBlanks();
    return rest_.empty();
  }

 private:
  bool Value(const std::string& path, int depth) {
    SkipBlanks();
    if (rest_.empty() || depth > kDepthMax) return false;
    if (rest_[0] == '{') return Object(path, depth);
    if (rest_[0] == '[') return Array(path, depth);
    std::string text;
    const bool is_string = rest_[0] == '"';
    const bool complete = is_string ? String(&text) : Word(&text);
    const bool is_null = !is_string && text == "null";
    if (!text.empty() || (is_string && complete)) {
      if (leaves_->values.size() >= kLeavesMax) return false;
      if (!is_null) leaves_->values.emplace(path, std::move(text));
    }
    return complete;
  }

  bool Object(const std::string& path, int depth) {
    rest_.remove_prefix(1);
    if (Take('}')) return true;
    do {
      SkipBlanks();
      std::string key;
      if (!String(&key) || !Take(':')) return false;
      if (!Value(path.empty() ? key : path + "." + key, depth + 1)) return false;
    } while (Take(','));
    return Take('}');
  }

  bool Array(const std::string& path, int depth) {
    rest_.remove_prefix(1);
    if (Take(']')) return true;
    int index = 0;
    do {
      const std::string name = std::to_string(index++);
      if (!Value(path.empty() ? name : path + "." + name, depth + 1)) return false;
    } while (Take(','));
    return Take(']');
  }

  bool String(std::string* out) {
    if (rest_.empty() || rest_[0] != '"') return false;
    rest_.remove_prefix(1);
    while (!rest_.empty()) {
      const char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (c != '\\') {
        out->push_back(c);
      } else if (!Escape(out)) {
        return false;
      }
    }
    return false;
  }

  bool Escape(std::string* out) {
    if (rest_.empty()) return false;
    const char c = rest_[0];
    rest_.remove_prefix(1);
    switch (c) {
      case 'n':
        out->push_back('\n');
        return true;
      case 't':
        out->push_back('\t');
        return true;
      case 'r':
        out->push_back('\r');
        return true;
      case 'b':
        out->push_back('\b');
        return true;
      case 'f':
        out->push_back('\f');
        return true;
      case 'u':
        return UnicodeEscape(out);
      default:
        out->push_back(c);
        return c == '"' || c == '\\' || c == '/';
    }
  }

  bool UnicodeEscape(std::string* out) {
    uint32_t code = 0;
    if (!FourDigits(&code)) return false;
    uint32_t low = 0;
    if (code >= 0xD800 && code < 0xDC00 && rest_.substr(0, 2) == "\\u") {
      rest_.remove_prefix(2);
      if (!FourDigits(&low)) return false;
      code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                                           : 0xFFFD;
    } else if (code >= 0xD800 && code < 0xE000) {
      code = 0xFFFD;
    }
    AppendUtf8(code, out);
    return true;
  }

  bool FourDigits(uint32_t* code) {
    if (rest_.size() < 4) return false;
    const std::string digits(rest_.substr(0, 4));
    if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return false;
    *code = static_cast<uint32_t>(strtoul(digits.c_str(), nullptr, 16));
    rest_.remove_prefix(4);
    return true;
  }

  // A number, true, false or null; numbers are not checked further.
  bool Word(std::string* out) {
    const size_t size = rest_.find_first_not_of("+-.0123456789abcdefghijklmnopqrstuvwxyzE");
    const std::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(word.size());
    const bool number = !word.empty() && (word[0] == '-' || (word[0] >= '0' && word[0] <= '9'));
    if (!number && word != "true" && word != "false" && word != "null") return false;
    *out = word;
    return true;
  }

  void SkipBlanks() {
    const size_t blanks = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(blanks == std::string_view::npos ? rest_.size() : blanks);
  }

  bool Take(char c) {
    SkipBlanks();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view rest_;
  JsonLeaves* leaves_;
};

}  // namespace

JsonLeaves ReadJsonLeaves(std::string_view text) {
  JsonLeaves leaves;
  leaves.complete = Reader(text, &leaves).Document();
  return leaves;
}

}  // namespace muster
