// Reads a text into the tree. What is not JSON the library explains.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "hpclaunch/json_reader.h"

namespace hpclaunch::json_reader {
namespace {

using nlohmann::json;

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

/// Stops at the first thing that is no JSON. The library takes several times as long, and does not say where it found
/// a value.
class Reader {
 public:
  Reader(std::string_view text, Context& context) : text_(text), context_(context) {
    if (text.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  bool read(Json& root) {
    if (value(root) && next() == '\0') return true;
    if (too_deep_) return false;
    std::size_t place = at_;  // that of a number which is too large, of which the library says none
    std::string message;
    try {
      const json whole = json::parse(text_, nullptr, true, true);
    } catch (const json::parse_error& error) {
      place = error.byte == 0 ? 0 : error.byte - 1;
      message = complaint(error.what());
    } catch (const json::exception& error) {
      message = complaint(error.what());
    }
    return broken(std::min(place, text_.size()), "broken JSON: " + message, hint_for(message));
  }

 private:
  /// The first byte of the next token; '\0' at the end. Blanks and comments are skipped.
  char next() {
    for (;;) {
      at_ = std::min(at_, text_.size());
      while (at_ < text_.size() &&
             (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
        ++at_;
      if (text_.substr(at_, 2) == "//")
        at_ = text_.find_first_of(std::string_view("\r\n\0", 3), at_);
      else if (text_.substr(at_, 2) == "/*" && text_.find("*/", at_ + 2) != std::string_view::npos)
        at_ = text_.find("*/", at_ + 2) + 2;
      else
        return at_ < text_.size() ? text_[at_] : '\0';
    }
  }

  bool take(char wanted) {
    if (next() != wanted) return false;
    ++at_;
    return true;
  }

  bool value(Json& made) {
    const char first = next();
    made.begin = at_;
    bool good = false;
    if (first == '{' || first == '[')
      good = list(first == '{' ? '}' : ']', made);
    else if (first == '"')
      good = string(made.text), made.kind = Json::Kind::string;
    else if (first == '-' || (first >= '0' && first <= '9'))
      good = number(made);
    else
      good = literal(made);
    made.end = at_;
    return good;
  }

  bool list(char end, Json& made) {
    constexpr std::size_t kMaxDepth = 32;  // readers of the tree recurse
    made.kind = end == '}' ? Json::Kind::object : Json::Kind::array;
    made.end = std::string::npos;  // until it is closed
    if (depth_ == kMaxDepth) {
      too_deep_ = true;
      return broken(at_, fmt::format("more than {} nested objects and arrays", kMaxDepth),
                    "remove the inner ones");
    }
    ++depth_;
    ++at_;
    for (bool first = true; !take(end); first = false) {
      if (!first && !take(',')) return false;
      Json& one = made.items.emplace_back();
      next();
      one.mark = at_;
      if (end == '}' && !(string(one.key) && take(':'))) return false;
      if (!value(one)) return false;
    }
    --depth_;
    if (end == '}') drop_repeated(made.items);
    return true;
  }

  /// The library reads what is not plain: escapes, bytes beyond ASCII.
  bool string(std::string& into) {
    if (next() != '"') return false;
    std::size_t end = at_ + 1;
    bool plain = true;
    for (; end < text_.size() && text_[end] != '"'; ++end) {
      const auto byte = static_cast<unsigned char>(text_[end]);
      if (byte >= ' ' && byte < 0x80 && byte != '\\') continue;
      plain = false;
      if (byte == '\\') ++end;
    }
    if (end >= text_.size()) return false;
    if (plain) {
      into = text_.substr(at_ + 1, end - at_ - 1);
    } else {
      const json read = json::parse(text_.substr(at_, end + 1 - at_), nullptr, false);
      if (!read.is_string()) return false;
      into = read.get_ref<const std::string&>();
    }
    at_ = end + 1;
    return true;
  }

  bool number(Json& made) {
    const std::size_t end = text_.find_first_not_of("0123456789+-.eE", at_);
    made.kind = Json::Kind::number;
    made.text = text_.substr(at_, std::min(end, text_.size()) - at_);
    if (!json::accept(made.text)) return false;
    at_ += made.text.size();
    const char* last = made.text.data() + made.text.size();
    const auto [stop, error] = std::from_chars(made.text.data(), last, made.whole);
    if (stop != last || error != std::errc()) return true;
    made.kind = Json::Kind::integer;
    made.text = std::to_string(made.whole);  // "-0" is 0
    return true;
  }

  bool literal(Json& made) {
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      made.kind = word == "null" ? Json::Kind::null : Json::Kind::boolean;
      made.truth = word == "true";
      at_ += word.size();
      return true;
    }
    return false;
  }

  void drop_repeated(std::vector<Json>& members) {
    std::vector<std::string_view> sorted;
    sorted.reserve(members.size());
    for (const Json& one : members) sorted.push_back(one.key);
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) == sorted.end()) return;
    std::set<std::string> keys;
    std::erase_if(members, [&](Json& one) {
      if (keys.insert(one.key).second) return false;
      Item(context_, &one)
          .fault(fmt::format("the key {} appears twice", shown(one.key)), "keep one of the two");
      return true;
    });
  }

  /// Nothing else is said of such a text.
  bool broken(std::size_t at, std::string message, std::string hint) {
    context_.take();
    context_.fault(context_.place(at), std::move(message), std::move(hint));
    return false;
  }

  std::string_view text_;
  Context& context_;
  std::size_t at_ = 0;  ///< behind the last token, or where the next one begins
  std::size_t depth_ = 0;
  bool too_deep_ = false;
};

}  // namespace

bool read_tree(std::string_view text, Context& context, Json& root) {
  return Reader(text, context).read(root);
}

}  // namespace hpclaunch::json_reader
