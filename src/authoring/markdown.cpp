#include "authoring/markdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring::markdown {

namespace {

constexpr std::string_view kMarkup = "\\`*[]<>|&~$!";
constexpr std::size_t kWidth = 100;

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return is_upper(c) || (c >= 'a' && c <= 'z'); }
bool is_word(char c) { return is_letter(c) || is_digit(c); }
bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

// An underscore inside a word is only itself.
bool needs_escape(std::string_view text, std::size_t i) {
  if (kMarkup.find(text[i]) != std::string_view::npos) return true;
  if (text[i] != '_') return false;
  return i == 0 || i + 1 == text.size() || !is_word(text[i - 1]) || !is_word(text[i + 1]);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (needs_escape(text, i)) out += '\\';
    out += is_control(text[i]) ? ' ' : text[i];
  }
  return out;
}

std::string entities(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '_' || kMarkup.find(c) != std::string_view::npos
               ? fmt::format("&#{};", static_cast<int>(c))
               : std::string(1, is_control(c) ? ' ' : c);
  return out;
}

bool is_address(std::string_view text) {
  return text.starts_with("https://") || text.starts_with("http://");
}

std::string safe_address(std::string_view address) {
  std::string out;
  for (const char c : address)
    out += is_word(c) || std::string_view("-._~:/?#@!$&'*+,;=%").find(c) != std::string_view::npos
               ? std::string(1, c)
               : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

// NAME_OF_A_VARIABLE
bool is_variable(std::string_view word) {
  return word.find('_') != std::string_view::npos && is_upper(word.front()) &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return is_upper(c) || is_digit(c) || c == '_'; });
}

bool is_code(std::string_view word) {
  if (word.size() < 2) return false;
  if (word.front() == '-') return is_letter(word[1]) || (word[1] == '-' && word.size() > 3);
  if (word.front() == '/' || word.front() == '$') return is_letter(word[1]) || word[1] == '{';
  if (is_variable(word)) return true;
  const std::size_t sign = word.find('=');
  return sign != 0 && sign != std::string_view::npos && is_letter(word.front());
}

// A word without the punctuation around it.
struct Piece {
  std::string_view before;
  std::string_view core;
  std::string_view after;
};

Piece take_apart(std::string_view word) {
  const std::size_t begin = std::min(word.find_first_not_of("(\"'"), word.size());
  const std::size_t end = std::max(begin, word.find_last_not_of(".,;:)\"'") + 1);
  return {word.substr(0, begin), word.substr(begin, end - begin), word.substr(end)};
}

// Escapes a first word that starts a list, a heading or a quotation.
std::string as_line(const std::string& text) {
  const std::string word = text.substr(0, text.find(' '));
  if (word.empty()) return text;
  if (word.find_first_not_of("-+=#>~") == std::string::npos) return "\\" + text;
  const std::size_t end = word.find_first_not_of("0123456789");
  const bool counts = end != 0 && end + 1 == word.size() && (word[end] == '.' || word[end] == ')');
  return counts ? text.substr(0, end) + "\\" + text.substr(end) : text;
}

// Words of Markdown; a code span and a link are one.
std::vector<std::string> words_of(const std::string& markdown) {
  std::vector<std::string> words(1);
  bool is_span = false;
  for (std::size_t i = 0; i < markdown.size(); ++i) {
    const char c = markdown[i];
    const bool is_escaped = i > 0 && markdown[i - 1] == '\\' && !is_span;
    if (c == '`' && !is_escaped) is_span = !is_span;
    if (c == ' ' && !is_span) {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

}  // namespace

std::string text(std::string_view plain) {
  std::string out;
  std::string run;  // code words that stand together
  const auto flush = [&] {
    if (!run.empty()) out += code(run);
    run.clear();
  };
  std::string clean(plain);
  std::replace_if(clean.begin(), clean.end(), is_control, ' ');
  bool first = true;
  for (const std::string_view word : split(clean, ' ')) {
    const Piece piece = take_apart(word);
    const bool is_span = !piece.core.empty() && is_code(piece.core);
    if (is_span && !run.empty() && piece.before.empty()) {
      run += ' ';
      run += piece.core;
    } else {
      flush();
      if (!first) out += ' ';
      out += escaped(piece.before);
      if (is_span)
        run = piece.core;
      else if (is_address(piece.core))
        out += "<" + safe_address(piece.core) + ">";
      else
        out += escaped(piece.core);
    }
    first = false;
    if (!piece.after.empty() || !is_span) flush();
    out += escaped(piece.after);
  }
  flush();
  return as_line(out);
}

std::string code(std::string_view plain) {
  if (plain.empty()) return "(empty)";
  const bool simple = plain.find_first_of("`|\\") == std::string_view::npos &&
                      plain.front() != ' ' && plain.back() != ' ' &&
                      std::none_of(plain.begin(), plain.end(), is_control);
  return simple ? fmt::format("`{}`", plain) : fmt::format("<code>{}</code>", entities(plain));
}

std::string codes(const std::vector<std::string>& plain, std::string_view last_word) {
  std::string out;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (i > 0) out += i + 1 == plain.size() ? fmt::format(" {} ", last_word) : ", ";
    out += code(plain[i]);
  }
  return out;
}

std::string link(const std::string& label, std::string_view address) {
  if (address.empty()) return label;
  if (!is_address(address)) return fmt::format("{} ({})", label, code(address));
  return fmt::format("[{}]({})", label, safe_address(address));
}

std::string paragraph(const std::string& markdown, const std::string& indent) {
  std::string out;
  for (const std::string& line :
       render::fill(words_of(markdown), static_cast<int>(kWidth - indent.size())))
    out += out.empty() ? line : fmt::format("\n{}{}", indent, as_line(line));
  return out + "\n";
}

std::string block(std::string_view language, const std::string& lines) {
  std::size_t longest = 2;
  std::size_t here = 0;
  for (const char c : lines) {
    here = c == '`' ? here + 1 : 0;
    longest = std::max(longest, here);
  }
  const std::string fence(longest + 1, '`');
  return fmt::format("{}{}\n{}{}\n", fence, language, lines, fence);
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  if (rows.size() < 2) return "";
  std::string out;
  for (const std::vector<std::string>& cells : rows) {
    for (const std::string& cell : cells)
      out += fmt::format("| {}{}", cell, cell.empty() ? "" : " ");
    out += "|\n";
    if (&cells != &rows.front()) continue;
    for (std::size_t i = 0; i < cells.size(); ++i) out += "| --- ";
    out += "|\n";
  }
  return out;
}

}  // namespace hpclaunch::authoring::markdown
