#pragma once
// Words of shell text. Nothing here calls itself: what is nested is passed over with a stack.
#include <string>
#include <string_view>
#include <utility>

#include "lint/shell.h"

namespace hpclaunch::lint {

/// A position in a text, and what reads words from there.
class Scanner {
 public:
  Scanner(std::string_view text, std::size_t begin, std::size_t end, Dialect dialect)
      : text_(text.substr(0, end)), at_(begin), dialect_(dialect) {}

  bool ended() const { return at_ >= text_.size(); }
  std::size_t at() const { return at_; }
  void go(std::size_t at) { at_ = at; }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool sees(std::string_view what) const {
    return text_.substr(std::min(at_, text_.size())).starts_with(what);
  }
  std::string_view text() const { return text_; }

  void skip_blanks();  ///< and continuations of lines
  void skip_line();    ///< to its newline
  Word word();         ///< up to a blank or an operator

  /// Behind the closing character that fits the opening one before `begin`; the end of the line, with a remark, where
  /// there is none.
  std::size_t behind(std::size_t begin, char close);

  std::vector<Remark> remarks;

 private:
  void add(Word& word, Part part);
  void quotes(Word& word);
  void dollar(Word& word, bool quoted);
  void braces(Word& word, bool quoted);
  std::size_t line_end(std::size_t from) const;

  std::string_view text_;
  std::size_t at_;
  Dialect dialect_;
  bool unclosed_ =
      false;  ///< something had no end: from now on, look for ends on the same line only
};

constexpr bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_name_char(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

}  // namespace hpclaunch::lint
