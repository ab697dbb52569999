#include "support/json_position.h"

#include <algorithm>
#include <string>

#include "hpclaunch/text.h"

namespace hpclaunch {
namespace {

/// Walks over JSON that a parser has accepted; otherwise it stops at the end of the text.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  std::size_t at = 0;

  char peek() {
    skip_blanks();
    return at < text_.size() ? text_[at] : '\0';
  }

  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at;
    return true;
  }

  /// The raw text between the quotes, escapes as written.
  std::string_view string() {
    const std::size_t begin = at + 1;
    for (at = begin; at < text_.size() && text_[at] != '"'; ++at) {
      if (text_[at] == '\\') ++at;
    }
    const std::size_t end = std::min(at, text_.size());
    at = std::min(end + 1, text_.size());
    return text_.substr(std::min(begin, end), end - std::min(begin, end));
  }

  void skip_value() {
    int depth = 0;
    do {
      const char c = peek();
      if (c == '\0') return;
      if (c == '"') {
        string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at;
      if (depth == 0 && c != '}' && c != ']') skip_scalar();
    } while (depth > 0);
  }

 private:
  void skip_scalar() {
    while (at < text_.size() &&
           std::string_view(",]} \t\r\n/").find(text_[at]) == std::string_view::npos) {
      ++at;
    }
  }

  void skip_blanks() {
    while (at < text_.size()) {
      if (std::string_view(" \t\r\n").find(text_[at]) != std::string_view::npos) {
        ++at;
      } else if (text_.substr(at, 2) == "//") {
        at = std::min(text_.find('\n', at), text_.size());
      } else if (text_.substr(at, 2) == "/*") {
        const std::size_t end = text_.find("*/", at + 2);
        at = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
};

std::string token_text(std::string_view token) {
  std::string out;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size()) {
      out += token[++i] == '1' ? '/' : '~';
    } else {
      out += token[i];
    }
  }
  return out;
}

/// Steps from the start of an object to its member `key`; sets `mark` to the key and stops before
/// the value. A key that was written with escapes is not found.
bool enter_object(Walker& walker, const std::string& key, std::size_t& mark) {
  walker.take('{');
  while (walker.peek() == '"') {
    const std::size_t begin = walker.at;
    const bool found = walker.string() == key;
    walker.take(':');
    if (found) {
      mark = begin;
      return true;
    }
    walker.skip_value();
    walker.take(',');
  }
  return false;
}

bool enter_array(Walker& walker, const std::string& token, std::size_t& mark) {
  const auto index = parse_natural(token);
  if (!index) return false;
  walker.take('[');
  for (long i = 0; i < *index; ++i) {
    if (walker.peek() == ']' || walker.peek() == '\0') return false;
    walker.skip_value();
    walker.take(',');
  }
  if (walker.peek() == ']' || walker.peek() == '\0') return false;
  mark = walker.at;
  return true;
}

}  // namespace

TextPosition position_of(std::string_view text, std::size_t offset) {
  TextPosition position;
  for (const char c : text.substr(0, std::min(offset, text.size()))) {
    position.column = c == '\n' ? 1 : position.column + 1;
    if (c == '\n') ++position.line;
  }
  return position;
}

TextPosition position_of_pointer(std::string_view text, std::string_view pointer) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  Walker walker(text);
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) walker.at = kByteOrderMark.size();
  walker.peek();
  std::size_t mark = walker.at;
  if (!pointer.empty()) {
    for (const std::string_view token : split(pointer.substr(1), '/')) {
      const std::string key = token_text(token);
      const bool found = walker.peek() == '{'
                             ? enter_object(walker, key, mark)
                             : walker.peek() == '[' && enter_array(walker, key, mark);
      if (!found) break;
    }
  }
  return position_of(text, mark);
}

}  // namespace hpclaunch
