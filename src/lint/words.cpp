#include "lint/words.h"

#include <algorithm>

namespace hpclaunch::lint {

namespace {

bool ends_word(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';' || c == '&' || c == '|' ||
         c == '<' || c == '>' || c == '(' || c == ')';
}

// What may follow the name in ${NAME...}: an operator, an index, or nothing.
bool is_operation(std::string_view rest) {
  return rest.empty() ||
         std::string_view(":-=+?#%/^,@[").find(rest.front()) != std::string_view::npos;
}

}  // namespace

std::size_t Scanner::line_end(std::size_t from) const {
  return std::min(text_.find('\n', std::min(from, text_.size())), text_.size());
}

void Scanner::skip_line() { at_ = line_end(at_); }

void Scanner::skip_blanks() {
  while (!ended()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r')
      ++at_;
    else if (sees("\\\n"))
      at_ += 2;
    else if (sees("\\\r\n"))
      at_ += 3;
    else
      return;
  }
}

std::size_t Scanner::behind(std::size_t begin, char close) {
  const std::size_t last = unclosed_ ? line_end(begin) : text_.size();
  std::string open(1, close);  // a stack of what must come
  std::size_t at = begin;
  while (at < last) {
    const char c = text_[at];
    const char wanted = open.back();
    if (c == wanted) {
      ++at;
      open.pop_back();
      if (open.empty()) return at;
      continue;
    }
    ++at;
    if (wanted == '\'') continue;
    if (c == '\\') {
      ++at;
      continue;
    }
    if (c == '$' && at < last && (text_[at] == '(' || text_[at] == '{')) {
      open += text_[at] == '(' ? ')' : '}';
      ++at;
    } else if (c == '`' || (c == '"' && wanted != '"')) {
      open += c;
    } else if (wanted == ')' && (c == '(' || c == '\'')) {
      open += c == '(' ? ')' : '\'';
    } else if (wanted == ')' && c == '#' && at >= 2 &&
               (text_[at - 2] == ' ' || text_[at - 2] == '\n')) {
      at = std::min(line_end(at), last);
    }
  }
  remarks.push_back(
      {span_of(begin - 1, line_end(begin)), std::string("no ") + close + " ends what begins here"});
  unclosed_ = true;
  return line_end(begin);
}

void Scanner::add(Word& word, Part part) {
  if (part.kind == Part::Kind::text && !word.parts.empty()) {
    Part& before = word.parts.back();
    const bool next = before.kind == Part::Kind::text && before.quoted == part.quoted &&
                      before.single == part.single && before.span.end == part.span.begin &&
                      before.text.data() + before.text.size() == part.text.data();
    if (next) {
      before.text = {before.text.data(), before.text.size() + part.text.size()};
      before.span.end = part.span.end;
      return;
    }
  }
  word.parts.push_back(part);
}

void Scanner::braces(Word& word, bool quoted) {
  const std::size_t begin = at_;
  at_ = behind(begin + 2, '}');
  const bool closed = text_[at_ - 1] == '}' && at_ > begin + 2;
  const std::string_view inside = text_.substr(begin + 2, at_ - begin - 2 - (closed ? 1 : 0));
  std::size_t name = 0;
  while (name < inside.size() && (inside[name] == '#' || inside[name] == '!') && name == 0) ++name;
  const std::size_t first = name;
  if (name < inside.size() && is_name_start(inside[name]))
    while (name < inside.size() && is_name_char(inside[name])) ++name;
  else if (name < inside.size() &&
           (inside[name] == '@' || inside[name] == '*' || inside[name] == '?' ||
            inside[name] == '$' || inside[name] == '-'))
    ++name;
  else
    while (name < inside.size() && inside[name] >= '0' && inside[name] <= '9') ++name;
  const bool special = first == 1 && name == 1;  // ${#}, ${!}
  const std::string_view rest = inside.substr(name);
  const bool good = closed && (name > first || special) && is_operation(rest);
  Part part{good ? Part::Kind::parameter : Part::Kind::bad,
            quoted,
            false,
            span_of(begin, at_),
            inside,
            {}};
  if (good && first == 0) {
    part.text = inside.substr(0, name);
    part.rest = rest;
  } else if (good) {  // a length, or a name in a variable: the value is not known
    part.text = inside.substr(first, name - first);
    part.rest = inside.substr(0, first);
  }
  word.parts.push_back(part);
}

void Scanner::dollar(Word& word, bool quoted) {
  const std::size_t begin = at_;
  // What is between `open` and `close`.
  const auto inside = [&](Part::Kind kind, std::size_t open, std::size_t close) {
    const std::size_t size = at_ - begin - std::min(at_ - begin, open + close);
    word.parts.push_back(
        {kind, quoted, false, span_of(begin, at_), text_.substr(begin + open, size), {}});
  };
  if (sees("$((")) {
    at_ = behind(begin + 3, ')');
    if (peek() == ')') ++at_;
    inside(Part::Kind::arithmetic, 3, 2);
  } else if (sees("$(")) {
    at_ = behind(begin + 2, ')');
    inside(Part::Kind::command, 2, 1);
  } else if (sees("${")) {
    braces(word, quoted);
  } else {
    std::size_t end = begin + 1;
    if (dialect_ == Dialect::csh && end < text_.size() && (text_[end] == '?' || text_[end] == '#'))
      ++end;
    const std::size_t name = end;
    if (end < text_.size() && is_name_start(text_[end]))
      while (end < text_.size() && is_name_char(text_[end])) ++end;
    else if (end < text_.size() &&
             std::string_view("0123456789@*#?$!-").find(text_[end]) != std::string_view::npos)
      ++end;
    at_ = end;
    if (end == begin + 1)
      return add(
          word, {Part::Kind::text, quoted, false, span_of(begin, end), text_.substr(begin, 1), {}});
    word.parts.push_back({Part::Kind::parameter, quoted, false, span_of(begin, end),
                          text_.substr(name, end - name),
                          text_.substr(begin + 1, name - begin - 1)});
  }
}

// A double quote and what is in it.
void Scanner::quotes(Word& word) {
  const std::size_t begin = at_;
  const std::size_t end = behind(begin + 1, '"');
  const std::size_t last = end > begin + 1 && text_[end - 1] == '"' ? end - 1 : end;
  at_ = begin + 1;
  if (at_ == last)  // "" is a word too
    add(word, {Part::Kind::text, true, false, span_of(begin, at_), text_.substr(at_, 0), {}});
  while (at_ < last) {
    const char c = text_[at_];
    if (c == '$') {
      dollar(word, true);
    } else if (c == '`') {
      const std::size_t first = at_ + 1;
      at_ = std::min(behind(first, '`'), last);
      word.parts.push_back({Part::Kind::command,
                            true,
                            false,
                            span_of(first - 1, at_),
                            text_.substr(first, at_ > first ? at_ - first - 1 : 0),
                            {}});
    } else {
      if (c == '\\' && at_ + 1 < last &&
          std::string_view("$`\"\\\n").find(text_[at_ + 1]) != std::string_view::npos) {
        if (text_[++at_] == '\n') {
          ++at_;
          continue;
        }
      }
      add(word, {Part::Kind::text, true, false, span_of(at_, at_ + 1), text_.substr(at_, 1), {}});
      ++at_;
    }
  }
  at_ = end;
}

Word Scanner::word() {
  Word word;
  const std::size_t begin = at_;
  while (!ended()) {
    const char c = text_[at_];
    if (ends_word(c)) {
      const bool pattern = c == '(' && at_ > begin &&
                           std::string_view("@!?*+").find(text_[at_ - 1]) != std::string_view::npos;
      if (!pattern) break;
      const std::size_t first = at_;
      at_ = behind(at_ + 1, ')');
      word.parts.push_back({Part::Kind::command, false, false, span_of(first, at_), {}, {}});
    } else if (c == '\'' || sees("$'")) {
      const std::size_t first = at_ + (c == '$' ? 2 : 1);
      const std::size_t end = behind(first, '\'');
      const bool closed = end > first && text_[end - 1] == '\'';
      word.parts.push_back({Part::Kind::text,
                            true,
                            true,
                            span_of(at_, end),
                            text_.substr(first, end - first - (closed ? 1 : 0)),
                            {}});
      at_ = end;
    } else if (c == '"' || sees("$\"")) {
      if (c == '$') ++at_;
      quotes(word);
    } else if (c == '$') {
      dollar(word, false);
    } else if (c == '`') {
      const std::size_t first = at_ + 1;
      at_ = behind(first, '`');
      word.parts.push_back({Part::Kind::command,
                            false,
                            false,
                            span_of(first - 1, at_),
                            text_.substr(first, at_ > first ? at_ - first - 1 : 0),
                            {}});
    } else if (c == '\\') {
      if (sees("\\\n") || sees("\\\r\n")) {
        if (at_ > begin) {
          at_ += peek(1) == '\n' ? 2 : 3;
          continue;
        }
        break;
      }
      add(word, {Part::Kind::text,
                 true,
                 false,
                 span_of(at_, std::min(at_ + 2, text_.size())),
                 text_.substr(std::min(at_ + 1, text_.size()), 1),
                 {}});
      at_ = std::min(at_ + 2, text_.size());
    } else {
      const std::size_t first = at_++;
      while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
      add(word, {Part::Kind::text,
                 false,
                 false,
                 span_of(first, at_),
                 text_.substr(first, at_ - first),
                 {}});
    }
  }
  word.span = span_of(begin, at_);
  return word;
}

std::vector<Word> words_in(std::string_view text, Span span) {
  Scanner scanner(text, span.begin, span.end, Dialect::posix);
  std::vector<Word> words;
  while (scanner.skip_blanks(), !scanner.ended()) {
    Word word = scanner.word();
    if (word.span.empty()) {  // an operator
      const auto at = static_cast<std::uint32_t>(scanner.at());
      scanner.go(scanner.at() + 1);
      if (words.empty() || words.back().span.end != at) words.push_back({{at, at}, {}});
      words.back().span.end = at + 1;
      words.back().parts.push_back(
          {Part::Kind::text, false, false, {at, at + 1}, text.substr(at, 1), {}});
      continue;
    }
    const bool joined = !words.empty() && words.back().span.end == word.span.begin;
    if (!joined) {
      words.push_back(std::move(word));
      continue;
    }
    words.back().span.end = word.span.end;
    words.back().parts.insert(words.back().parts.end(), word.parts.begin(), word.parts.end());
  }
  return words;
}

std::string literal(const Word& word, bool* plain) {
  std::string text;
  for (const Part& part : word.parts) {
    if (part.kind == Part::Kind::text)
      text += part.text;
    else if (plain != nullptr)
      *plain = false;
  }
  return text;
}

}  // namespace hpclaunch::lint
