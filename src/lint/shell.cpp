#include "lint/shell.h"

#include <algorithm>
#include <array>
#include <span>

#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"
#include "lint/blocks.h"

namespace hpclaunch::lint {

namespace {

using Kind = Block::Kind;

// What a reserved word does to the blocks.
enum class Act : std::uint8_t { open, body, arm, close, pass };
struct Reserved {
  std::string_view word;
  Act act;
  Kind kind;
  bool test;  // commands behind it decide
};
constexpr Reserved kPosix[] = {
    {"if", Act::open, Kind::branch, true},   {"then", Act::body, Kind::branch, false},
    {"elif", Act::arm, Kind::branch, true},  {"else", Act::arm, Kind::branch, false},
    {"fi", Act::close, Kind::branch, false}, {"while", Act::open, Kind::loop, true},
    {"until", Act::open, Kind::loop, true},  {"do", Act::body, Kind::loop, false},
    {"done", Act::close, Kind::loop, false}, {"{", Act::open, Kind::group, false},
    {"}", Act::close, Kind::group, false},   {"esac", Act::close, Kind::choice, false},
    {"time", Act::pass, Kind::group, false}, {"!", Act::pass, Kind::group, false},
};
constexpr Reserved kCsh[] = {
    {"else", Act::arm, Kind::branch, false}, {"endif", Act::close, Kind::branch, false},
    {"end", Act::close, Kind::loop, false},  {"endsw", Act::close, Kind::choice, false},
    {"@", Act::pass, Kind::group, false},
};

class Reader : Blocks {
 public:
  explicit Reader(std::string_view text) : Blocks(text) {}

  Shell read() {
    find_lines();
    find_dialect();
    scan_ = Scanner(shell_.text, 0, shell_.text.size(), shell_.dialect);
    while (!scan_.ended()) step();
    finish();
    while (block_ != 0) close_block();
    for (Remark& remark : scan_.remarks) shell_.remarks.push_back(std::move(remark));
    return std::move(shell_);
  }

 private:
  void find_lines() {
    shell_.lines.push_back(0);
    for (std::size_t at = 0; (at = shell_.text.find('\n', at)) != std::string_view::npos;)
      shell_.lines.push_back(static_cast<std::uint32_t>(++at));
  }

  void find_dialect() {
    const std::string_view text = shell_.text;
    if (text.starts_with("#!")) shell_.shebang = trim(text.substr(2, text.find('\n') - 2));
    const std::string_view bang = shell_.shebang;
    const bool named = bang.find("csh") != std::string_view::npos;
    const bool looks =
        bang.empty() &&
        (text.starts_with("setenv ") || text.find("\nsetenv ") != std::string_view::npos) &&
        text.find("\nexport ") == std::string_view::npos;
    if (named || looks) shell_.dialect = Dialect::csh;
  }

  bool csh() const { return shell_.dialect == Dialect::csh; }

  // One thing: a newline, a comment, an operator or a word.
  void step() {
    scan_.skip_blanks();
    if (scan_.ended()) return;
    const char c = scan_.peek();
    if (c == '\n') return newline();
    if (c == '#') return comment();
    if (c == ';' || c == '&' || c == '|') return separator();
    if (c == '(' || c == ')') return parenthesis(c);
    if (c == '<' || c == '>' || (c == '&' && scan_.peek(1) == '>')) return redirect();
    word();
  }

  void newline() {
    finish();
    scan_.go(scan_.at() + 1);
    for (const auto& [command, index] : heredocs_) heredoc(command, index);
    heredocs_.clear();
  }

  void comment() {
    const std::size_t begin = scan_.at();
    scan_.skip_line();
    std::size_t end = scan_.at();
    while (end > begin && (shell_.text[end - 1] == '\r' || shell_.text[end - 1] == ' ')) --end;
    const std::size_t line = shell_.text.rfind('\n', begin) + 1;  // npos + 1 is 0
    const bool alone = begin == 0 || trim(shell_.text.substr(line, begin - line)).empty();
    if (begin == line || begin == 0) {
      const std::string_view text = shell_.text.substr(begin, end - begin);
      for (const Scheduler& system : rows<Scheduler>())
        for (const std::string_view sentinel : system.sentinels) {
          const char next = text.size() > sentinel.size() ? text[sentinel.size()] : ' ';
          if (!text.starts_with(sentinel) || (next != ' ' && next != '\t')) continue;
          directive(sentinel, begin, end);
          return;
        }
    }
    shell_.comments.push_back({span_of(begin, end), alone});
  }

  // Between [[ and ]], where && and || join conditions.
  bool in_conditions() const {
    return open_ && !csh() && !now_.words.empty() && shell_.at(now_.words.front().span) == "[[" &&
           shell_.at(now_.words.back().span) != "]]";
  }

  void separator() {
    const char c = scan_.peek();
    if ((scan_.sees("&&") || scan_.sees("||")) && in_conditions()) return scan_.go(scan_.at() + 2);
    if (c == '&' && scan_.peek(1) == '>') return redirect();
    Join join = Join::end;
    std::size_t size = 1;
    if (scan_.sees("&&"))
      join = Join::and_then, size = 2;
    else if (scan_.sees("||"))
      join = Join::or_else, size = 2;
    else if (scan_.sees(";;"))
      size = scan_.sees(";;&") ? 3 : 2;
    else if (c == '|')
      join = Join::pipe, size = scan_.sees("|&") ? 2 : 1;
    else if (c == '&')
      join = Join::background;
    const bool case_end = scan_.sees(";;") || scan_.sees(";&");
    finish(join);
    if (case_end) pattern_ = shell_.blocks[block_].kind == Kind::choice;
    scan_.go(scan_.at() + size);
  }

  void parenthesis(char c) {
    if (c == ')') {
      if (pattern_) {
        scan_.go(scan_.at() + 1);
        drop();
        pattern_ = false;
        ++shell_.blocks[block_].arm;
        return;
      }
      finish();
      if (shell_.blocks[block_].kind == Kind::subshell) close_block();
      scan_.go(scan_.at() + 1);
      return;
    }
    if (pattern_) return scan_.go(scan_.at() + 1);
    if (scan_.sees("((") && !open_) return skip_group();
    if (open_ && now_.words.size() == 1 && now_.assignments.empty() && !csh()) {
      const std::size_t close = shell_.text.find_first_not_of(" \t", scan_.at() + 1);
      if (close != std::string_view::npos && shell_.text[close] == ')') {
        scan_.go(close + 1);
        return begin_function(now_.words.front());
      }
    }
    if (open_) return skip_group();  // of csh, of [[ ]], or an array that is no assignment
    open_block(Kind::subshell, "(");
    scan_.go(scan_.at() + 1);
  }

  // ( ... ), <( ... ) as one word, which `opening` bytes begin.
  void skip_group(std::size_t opening = 1) {
    begin_command(scan_.at());
    const std::size_t begin = scan_.at();
    const std::size_t end = scan_.behind(begin + opening, ')');
    Word word;
    word.span = span_of(begin, end);
    word.parts.push_back({Part::Kind::command, true, false, word.span, {}, {}});
    now_.words.push_back(std::move(word));
    scan_.go(end);
  }

  void begin_function(const Word& name) {
    shell_.functions.push_back(
        {shell_.text.substr(name.span.begin, name.span.end - name.span.begin), name.span,
         shell_.commands.size(), shell_.commands.size()});
    drop();
    function_waits_ = true;
  }

  void redirect() {
    begin_command(scan_.at());
    const std::size_t begin = scan_.at();
    static constexpr std::string_view kOps[] = {"&>>", "<<<", "<<-", "&>", ">>", "<<", ">&",
                                                "<&",  "<>",  ">|",  "<(", ">(", "<",  ">"};
    for (const std::string_view op : kOps) {
      if (!scan_.sees(op)) continue;
      if (op.back() == '(') return skip_group(op.size());
      scan_.go(begin + op.size());
      scan_.skip_blanks();
      Redirect one{op, {}, {}, false};
      if (!scan_.ended() && scan_.peek() != '\n') {
        one.target = scan_.word();
        if (one.target.span.empty() && scan_.peek() != '\n') scan_.go(scan_.at() + 1);
      }
      for (const Part& part : one.target.parts) one.quoted = one.quoted || part.quoted;
      const bool here = op == "<<" || op == "<<-";
      if (here) heredocs_.emplace_back(shell_.commands.size(), now_.redirects.size());
      now_.redirects.push_back(std::move(one));
      return;
    }
  }

  // ---- words ----

  void word() {
    if (pattern_) {
      const Word word = scan_.word();
      if (literal(word) == "esac") {
        close_block();
        pattern_ = false;
      }
      if (word.span.empty()) scan_.go(scan_.at() + 1);
      return;
    }
    if (!csh() && !open_words() && assignment()) return;
    const std::size_t begin = scan_.at();
    Word word = scan_.word();
    if (word.span.empty()) return scan_.go(begin + 1);
    if (!open_words() && reserved(word)) return;
    begin_command(begin);
    // 2>file: the number is not a word of the command.
    const bool number = (scan_.peek() == '<' || scan_.peek() == '>') &&
                        parse_natural(shell_.at(word.span)).has_value();
    if (number) return;
    const std::string_view text = shell_.at(word.span);
    now_.words.push_back(std::move(word));
    if (now_.words.size() == 1 && now_.assignments.empty() && declares(text)) declaring_ = true;
  }

  static bool declares(std::string_view text) {
    return text == "export" || text == "declare" || text == "typeset" || text == "local" ||
           text == "readonly";
  }

  bool open_words() const { return open_ && !now_.words.empty() && !declaring_; }

  // NAME=value, NAME+=value, NAME[i]=value, NAME=(...). False: it is none, and nothing was read.
  bool assignment() {
    const std::size_t begin = scan_.at();
    std::size_t at = begin;
    const std::string_view text = shell_.text;
    if (at >= text.size() || !is_name_start(text[at])) return false;
    while (at < text.size() && is_name_char(text[at])) ++at;
    Assignment one;
    one.name = text.substr(begin, at - begin);
    one.name_span = span_of(begin, at);
    if (at < text.size() && text[at] == '[') {
      const std::size_t close = text.find_first_of("]\n", at);
      if (close == std::string_view::npos || text[close] != ']') return false;
      one.element = true;
      at = close + 1;
    }
    if (text.substr(at).starts_with("+=")) one.append = true, ++at;
    if (at >= text.size() || text[at] != '=') return false;
    begin_command(begin);
    scan_.go(++at);
    if (scan_.peek() == '(') {
      one.array = true;
      const std::size_t end = scan_.behind(at + 1, ')');
      items(one, at + 1, end > at + 1 && text[end - 1] == ')' ? end - 1 : end);
      scan_.go(end);
      one.value.span = span_of(at, end);
    } else {
      one.value = scan_.word();
    }
    one.span = span_of(begin, scan_.at());
    now_.assignments.push_back(std::move(one));
    return true;
  }

  void items(Assignment& one, std::size_t begin, std::size_t end) {
    Scanner inside(shell_.text, begin, end, Dialect::posix);
    while (!inside.ended()) {
      inside.skip_blanks();
      if (inside.ended()) return;
      if (inside.peek() == '#') {
        inside.skip_line();
        continue;
      }
      Word word = inside.word();
      if (word.span.empty())
        inside.go(inside.at() + 1);
      else
        one.items.push_back(std::move(word));
    }
  }

  // True when the word is not one of a command.
  bool reserved(const Word& word) {
    if (word.parts.size() != 1 || word.parts.front().quoted ||
        word.parts.front().kind != Part::Kind::text)
      return false;
    const std::string_view text = word.parts.front().text;
    if (csh() ? csh_heading(text) : heading(text, word)) return true;
    const std::span<const Reserved> table = csh() ? std::span<const Reserved>(kCsh) : kPosix;
    const auto row = std::ranges::find(table, text, &Reserved::word);
    if (row == table.end()) return false;
    switch (row->act) {
      case Act::open:
        open_block(function_waits_ && row->kind == Kind::group ? Kind::function : row->kind, text);
        test_ = row->test;
        break;
      case Act::body:
        test_ = false;
        break;
      case Act::arm:
        ++shell_.blocks[block_].arm;
        test_ = row->test;
        if (csh()) scan_.skip_line();
        break;
      case Act::close:
        finish();
        close_until(row->kind);
        break;
      case Act::pass:
        if (csh()) scan_.skip_line();
        break;
    }
    return true;
  }

  // `for NAME in WORDS`, `case WORD in`, `function NAME`: read here up to the body.
  bool heading(std::string_view text, const Word& word) {
    if (text == "function") {
      scan_.skip_blanks();
      const Word name = scan_.word();
      if (scan_.sees("()")) scan_.go(scan_.at() + 2);
      begin_function(name);
      return true;
    }
    if (text == "case") {
      open_block(Kind::choice, text);
      scan_.skip_blanks();
      scan_.word();
      for (int i = 0;
           i < 64 && (scan_.peek() == '\n' || scan_.peek() == ' ' || scan_.peek() == '\t'); ++i)
        scan_.go(scan_.at() + 1);
      if (const Word in = scan_.word(); literal(in) != "in")
        shell_.remarks.push_back({word.span, "case without in"});
      pattern_ = true;
      return true;
    }
    if (text != "for" && text != "select") return false;
    open_block(Kind::loop, text);
    begin_command(word.span.begin);
    now_.words.push_back(word);
    return true;
  }

  bool csh_heading(std::string_view text) {
    if (text != "if" && text != "foreach" && text != "while" && text != "switch") return false;
    const std::size_t line = scan_.at();
    scan_.skip_blanks();
    if (text == "foreach") scan_.word(), scan_.skip_blanks();
    if (scan_.peek() == '(') scan_.go(scan_.behind(scan_.at() + 1, ')'));
    scan_.skip_blanks();
    const std::size_t rest = scan_.at();
    const bool then = text != "if" || literal(scan_.word()) == "then";
    if (then) {
      open_block(text == "if" ? Kind::branch : text == "switch" ? Kind::choice : Kind::loop, text);
      if (text != "if") scan_.go(std::max(rest, line));
    } else {  // if (...) COMMAND
      scan_.go(rest);
      once_ = true;
    }
    return true;
  }
};

}  // namespace

Shell read_shell(std::string_view text) { return Reader(text).read(); }

Place place_of(const Shell& shell, std::uint32_t offset) {
  const auto next = std::ranges::upper_bound(shell.lines, offset);
  const std::uint32_t line = *std::prev(next);
  // Bytes 10xxxxxx continue a character of UTF-8.
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  const auto before = std::ranges::count_if(shell.text.substr(line, offset - line), begins);
  return {static_cast<int>(next - shell.lines.begin()), static_cast<int>(before) + 1};
}

}  // namespace hpclaunch::lint
