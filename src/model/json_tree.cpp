// Builds the tree in two passes: the JSON library checks the text, then the places of all values are read from text
// that is known to be JSON.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "hpclaunch/json_reader.h"
#include "hpclaunch/text.h"

namespace hpclaunch::json_reader {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 32;  // nested objects and arrays

/// The parser's own words for what it met, without its address and without what may be unprintable.
std::string complaint(const std::string& what) {
  const std::size_t column = what.find("column ");
  const std::size_t begin =
      column == std::string::npos ? std::string::npos : what.find(": ", column);
  std::string message = begin == std::string::npos ? what : what.substr(begin + 2);
  message.resize(std::min(message.find("; last read: '"), message.size()));
  constexpr std::string_view kPrefix = "syntax error while parsing ";
  if (message.starts_with(kPrefix)) message.erase(0, kPrefix.size());
  for (char& c : message) {
    if (c < ' ' || c > '~') c = '?';
  }
  return message;
}

std::string hint_for(const std::string& message) {
  const auto has = [&](std::string_view part) { return message.find(part) != std::string::npos; };
  if (has("unexpected '}'") || has("unexpected ']'")) {
    return "remove the comma before it, or add what is missing";
  }
  if (has("unexpected end of input")) return "close every bracket, brace and quote";
  if (has("unexpected string literal") || has("unexpected '{'") || has("unexpected '['")) {
    return "put a comma between two values, and a colon between a key and its value";
  }
  if (has("UTF-8")) return "save the file as UTF-8";
  if (has("invalid literal")) return "write texts in double quotes";
  return "";
}

/// The first bracket inside kMaxDepth others, in any text; npos for none.
std::size_t too_deep(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const std::string_view two = text.substr(at, 2);
    if (c == '"')
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    else if (two == "//")
      at = std::min(text.find_first_of("\r\n", at), text.size());
    else if (two == "/*")
      at = std::min(text.find("*/", at + 2), text.size() - 1) + 1;
    else if (c == '}' || c == ']')
      depth -= depth > 0 ? 1 : 0;
    else if ((c == '{' || c == '[') && ++depth > kMaxDepth)
      return at;
  }
  return std::string_view::npos;
}

/// Reports the first error of the text; true without one. Depth is limited because readers of the tree recurse.
bool check(std::string_view text, Context& context) {
  if (const std::size_t at = too_deep(text); at != std::string_view::npos) {
    context.fault(at, "", fmt::format("more than {} nested objects and arrays", kMaxDepth),
                  "remove the inner ones");
    return false;
  }
  if (json::accept(text, true)) return true;  // makes no tree
  std::string what;
  std::size_t position = 0;
  try {
    return !json::parse(text, nullptr, true, true).is_discarded();
  } catch (const json::parse_error& error) {
    what = error.what();
    position = error.byte;
  } catch (const json::out_of_range& error) {  // number overflow parsing '1e999'
    what = error.what();
    const std::size_t quote = std::min(what.find('\''), what.size() - 1);
    position = text.find(what.substr(quote + 1, what.size() - quote - 2)) + 1;
  }
  const std::string message = complaint(what);
  context.fault(std::min(position == 0 ? 0 : position - 1, text.size()), "",
                "broken JSON: " + message, hint_for(message));
  return false;
}

/// Reads correct JSON by recursive descent.
class Scanner {
 public:
  Scanner(std::string_view text, Context& context) : text_(text), context_(context) {
    skip(text.starts_with("\xEF\xBB\xBF") ? 3 : 0);
  }

  Json root() { return value(at_); }

 private:
  /// `bytes`, then blanks and comments.
  void skip(std::size_t bytes) {
    for (at_ += bytes;;) {
      at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
      if (text_.substr(at_, 2) == "//")
        at_ = text_.find_first_of(std::string_view("\r\n\0", 3), at_);
      else if (text_.substr(at_, 2) == "/*")
        at_ = text_.find("*/", at_ + 2) + 2;
      else
        return;
    }
  }

  std::string string() {
    const std::size_t begin = at_;
    while (text_[++at_] != '"')
      if (text_[at_] == '\\') ++at_;
    const std::string_view quoted = text_.substr(begin, ++at_ - begin);
    if (quoted.find('\\') != std::string_view::npos) return json::parse(quoted).get<std::string>();
    return std::string(quoted.substr(1, quoted.size() - 2));
  }

  void number(Json& made) {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_not_of("0123456789+-.eE", at_), text_.size());
    made.kind = Json::Kind::number;
    made.text = text_.substr(begin, at_ - begin);
    const char* end = made.text.data() + made.text.size();
    const auto [stop, error] = std::from_chars(made.text.data(), end, made.whole);
    if (stop != end || error != std::errc()) return;
    made.kind = Json::Kind::integer;
    made.text = std::to_string(made.whole);  // "-0" is 0
  }

  Json value(std::size_t mark) {
    Json made;
    made.mark = mark;
    made.begin = at_;
    const char first = text_[at_];
    if (first == '{' || first == '[') {
      made.kind = first == '{' ? Json::Kind::object : Json::Kind::array;
      container(made);
    } else if (first == '"') {
      made.kind = Json::Kind::string;
      made.text = string();
    } else if (first == 't' || first == 'f' || first == 'n') {
      made.kind = first == 'n' ? Json::Kind::null : Json::Kind::boolean;
      made.truth = first == 't';
      at_ += first == 'f' ? 5 : 4;
    } else {
      number(made);
    }
    made.end = at_;
    return made;
  }

  /// Of a repeated key the first value is kept.
  void container(Json& made) {
    const bool object = made.kind == Json::Kind::object;
    const std::size_t outer = pointer_.size();
    std::set<std::string> keys;
    for (skip(1); text_[at_] != (object ? '}' : ']');) {
      const std::size_t mark = at_;
      const std::string key = object ? string() : "";
      if (object) {
        skip(0);
        skip(1);  // the colon
      }
      pointer_ += object ? step(key) : step(made.items.size());
      Json inner = value(mark);
      if (!object)
        made.items.push_back(std::move(inner));
      else if (keys.insert(key).second)
        made.members.push_back({key, std::move(inner)});
      else
        context_.fault(mark, pointer_, fmt::format("the key {} appears twice", shown(key)),
                       "keep one of the two");
      pointer_.resize(outer);
      skip(0);
      if (text_[at_] == ',') skip(1);
    }
    ++at_;
  }

  std::string_view text_;
  Context& context_;
  std::size_t at_ = 0;
  std::string pointer_;
};

}  // namespace

const Json* Json::find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

std::string_view noun(Json::Kind kind) {
  constexpr std::string_view kNouns[] = {"null",     "true or false", "a number", "a number",
                                         "a string", "a list",        "an object"};
  return kNouns[static_cast<std::size_t>(kind)];
}

std::string step(std::string_view key) {
  if (key.find_first_of("~/") == std::string_view::npos) return "/" + std::string(key);
  return (json::json_pointer() / std::string(key)).to_string();
}

std::string step(std::size_t index) { return "/" + std::to_string(index); }

std::optional<Json> parse_tree(std::string_view text, Context& context) {
  if (!check(text, context)) return std::nullopt;
  return Scanner(text, context).root();
}

const Json& follow(const Json& root, std::string_view pointer) {
  const Json* at = &root;
  const std::vector<std::string_view> steps = split(pointer, '/');
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const Json* next = at->find(steps[i]);
    const auto index = parse_natural(steps[i]);
    if (index && static_cast<std::size_t>(*index) < at->items.size())
      next = &at->items[static_cast<std::size_t>(*index)];
    if (next == nullptr) break;
    at = next;
  }
  return *at;
}

}  // namespace hpclaunch::json_reader
