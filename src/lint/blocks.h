#pragma once
// The command that is being read, the blocks around it, and what is taken by whole lines.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/text.h"
#include "lint/words.h"

namespace hpclaunch::lint {

class Blocks {
 protected:
  using Kind = Block::Kind;
  explicit Blocks(std::string_view text) : scan_(text, 0, text.size(), Dialect::posix) {
    shell_.text = text;
    shell_.blocks.push_back({});
  }

  void directive(std::string_view sentinel, std::size_t begin, std::size_t end) {
    const bool late = !shell_.commands.empty() || open_;
    std::size_t body = begin + sentinel.size();
    while (body < end && (shell_.text[body] == ' ' || shell_.text[body] == '\t')) ++body;
    // A comment at its end, outside of quotes.
    std::size_t last = end;
    char quote = 0;
    for (std::size_t i = body; i < end; ++i) {
      const char c = shell_.text[i];
      if (quote != 0)
        quote = c == quote ? '\0' : quote;
      else if (c == '"' || c == '\'')
        quote = c;
      else if (c == '#' && (i == body || shell_.text[i - 1] == ' ' || shell_.text[i - 1] == '\t')) {
        last = i;
        break;
      }
    }
    while (last > body && (shell_.text[last - 1] == ' ' || shell_.text[last - 1] == '\t')) --last;
    shell_.directives.push_back({shell_.text.substr(begin, sentinel.size()), span_of(begin, end),
                                 span_of(body, last), late});
  }

  void heredoc(std::size_t command, std::size_t index) {
    if (command >= shell_.commands.size() || index >= shell_.commands[command].redirects.size())
      return;
    Redirect& one = shell_.commands[command].redirects[index];
    const std::string end = literal(one.target);
    const std::size_t begin = scan_.at();
    std::size_t line = begin;
    while (line < shell_.text.size()) {
      const std::size_t stop = std::min(shell_.text.find('\n', line), shell_.text.size());
      std::string_view text = shell_.text.substr(line, stop - line);
      if (one.op == "<<-") text.remove_prefix(std::min(text.find_first_not_of('\t'), text.size()));
      if (text.ends_with('\r')) text.remove_suffix(1);
      if (text == end && !heredoc_lost_) {
        one.body = span_of(begin, line);
        return scan_.go(stop);
      }
      if (heredoc_lost_) break;
      line = stop + 1;
    }
    // Looked for once to the end of the text; then no more, so that reading stays linear.
    heredoc_lost_ = true;
    shell_.remarks.push_back(
        {one.target.span, "no line \"" + shown(end) + "\" ends what begins here"});
  }

  void begin_command(std::size_t begin) {
    if (open_) return;
    open_ = true;
    now_ = {};
    now_.span.begin = static_cast<std::uint32_t>(begin);
    now_.block = block_;
  }

  void drop() {
    open_ = false;
    declaring_ = false;
    now_ = {};
  }

  void finish(Join join = Join::end) {
    if (!open_) return;
    std::size_t end = scan_.at();
    // A blank or a backslash behind the last word, not one that it ends with: "a\ ".
    std::uint32_t last = now_.span.begin;
    if (!now_.words.empty()) last = std::max(last, now_.words.back().span.end);
    if (!now_.assignments.empty()) last = std::max(last, now_.assignments.back().span.end);
    if (!now_.redirects.empty()) last = std::max(last, now_.redirects.back().target.span.end);
    while (end > last &&
           std::string_view(" \t\r\n\\").find(shell_.text[end - 1]) != std::string_view::npos)
      --end;
    now_.span.end = static_cast<std::uint32_t>(end);
    now_.conditional =
        may_not_run_[block_] || once_ || after_ == Join::and_then || after_ == Join::or_else;
    now_.subshell =
        lost_[block_] || after_ == Join::pipe || join == Join::pipe || join == Join::background;
    now_.test = test_;
    now_.join = join;
    now_.function = functions_open_.empty() ? 0 : functions_open_.back() + 1;
    after_ = join;
    once_ = false;
    if (!now_.words.empty() || !now_.assignments.empty() || !now_.redirects.empty())
      shell_.commands.push_back(std::move(now_));
    drop();
  }

  void open_block(Kind kind, std::string_view keyword) {
    finish();
    if (function_waits_) functions_open_.push_back(shell_.functions.size() - 1);
    const Kind real = function_waits_ ? Kind::function : kind;
    function_waits_ = false;
    shell_.blocks.push_back({real, block_, static_cast<std::uint32_t>(scan_.at()), keyword, 0});
    may_not_run_.push_back(may_not_run_[block_] || real == Kind::branch || real == Kind::loop ||
                           real == Kind::choice || after_ == Join::and_then ||
                           after_ == Join::or_else);
    lost_.push_back(lost_[block_] || real == Kind::subshell);
    block_ = shell_.blocks.size() - 1;
    after_ = Join::end;
  }

  void close_block() {
    const Block& block = shell_.blocks[block_];
    if (block.kind == Kind::function && !functions_open_.empty()) {
      shell_.functions[functions_open_.back()].last = shell_.commands.size();
      functions_open_.pop_back();
    }
    block_ = block.parent;
    test_ = false;
    after_ = Join::end;
  }

  // A stray `fi` closes nothing; a `done` closes what was left open inside of its loop.
  void close_until(Kind kind) {
    const auto fits = [&](std::size_t index) {
      const Kind is = shell_.blocks[index].kind;
      return is == kind || (kind == Kind::group && is == Kind::function);
    };
    std::size_t found = block_;
    for (int up = 0; found != 0 && up < 32 && !fits(found); ++up)
      found = shell_.blocks[found].parent;
    if (found == 0 || !fits(found)) {
      shell_.remarks.push_back({span_of(scan_.at() - 1, scan_.at()), "this closes nothing"});
      return;
    }
    while (block_ != found) close_block();
    close_block();
  }

  Shell shell_;
  Scanner scan_;
  Command now_;
  bool open_ = false;       // a command is being read
  bool declaring_ = false;  // its words are assignments too: export A=1 B=2
  bool pattern_ = false;    // of a case
  bool test_ = false;
  bool once_ = false;
  bool function_waits_ = false;  // for its body
  bool heredoc_lost_ = false;
  Join after_ = Join::end;  // what stands before this command
  std::size_t block_ = 0;
  std::vector<bool> may_not_run_ = {false};  // by block
  std::vector<bool> lost_ = {false};
  std::vector<std::size_t> functions_open_;
  std::vector<std::pair<std::size_t, std::size_t>>
      heredocs_;  // command and redirect that wait for their text
};

}  // namespace hpclaunch::lint
