// Builds the tree from what the JSON library finds in the text. The library does not say where it found a value: that
// follows from how far it has read.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
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

/// Gives the library the text byte by byte, and remembers the place behind the last one.
struct Cursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** last;

  reference operator*() const { return *at; }
  Cursor& operator++() {
    *last = ++at;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at == other.at; }
};

/// Takes the library's events (json_sax), which come in the order of the text.
class Builder {
 public:
  Builder(std::string_view text, Context& context, Json& root)
      : text_(text), context_(context), root_(root) {
    if (text.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  bool read() {
    const char* end = text_.data() + text_.size();
    return json::sax_parse(Cursor{text_.data(), &read_}, Cursor{end, &read_}, this,
                           json::input_format_t::json, true, true);
  }

  bool null() { return open(Json::Kind::null), close(); }
  bool boolean(bool truth) { return open(Json::Kind::boolean).truth = truth, close(); }
  bool string(const std::string& text) { return open(Json::Kind::string).text = text, close(); }
  bool number_integer(json::number_integer_t /*value*/) { return number(); }
  bool number_unsigned(json::number_unsigned_t /*value*/) { return number(); }
  bool number_float(json::number_float_t /*value*/, const std::string& /*text*/) {
    return number();
  }
  bool binary(json::binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*size*/) { return start(Json::Kind::object); }
  bool start_array(std::size_t /*size*/) { return start(Json::Kind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(const std::string& text) {
    key_ = text;
    mark_ = next();
    at_ = behind();
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const json::exception& error) {
    constexpr int kOverflow = 406;  // "1e999", which is read to its end
    if (error.id == kOverflow) position = next() + 1;
    const std::string message = complaint(error.what());
    return broken(std::min(position == 0 ? 0 : position - 1, text_.size()),
                  "broken JSON: " + message, hint_for(message));
  }

 private:
  /// The place of the next token: blanks, comments, colons and commas are skipped.
  std::size_t next() {
    for (;;) {
      at_ = std::min(text_.find_first_not_of(" \t\r\n,:", at_), text_.size());
      if (text_.substr(at_, 2) == "//")
        at_ = text_.find_first_of(std::string_view("\r\n\0", 3), at_);
      else if (text_.substr(at_, 2) == "/*")
        at_ = text_.find("*/", at_ + 2) + 2;
      else
        return at_;
    }
  }

  std::size_t behind() const { return static_cast<std::size_t>(read_ - text_.data()); }

  Json& open(Json::Kind kind) {
    Json& made = open_.empty() ? root_ : open_.back()->items.emplace_back();
    made.kind = kind;
    made.begin = next();
    made.end = std::string::npos;  // until it is closed
    const bool member = !open_.empty() && open_.back()->kind == Json::Kind::object;
    made.mark = member ? mark_ : made.begin;
    if (member) made.key = std::move(key_);
    at_ = behind();
    open_.push_back(&made);
    return made;
  }

  bool close() {
    Json& made = *open_.back();
    made.end = at_ = behind();
    if (made.kind == Json::Kind::object) drop_repeated(made.items);
    open_.pop_back();
    return true;
  }

  void drop_repeated(std::vector<Json>& members) {
    std::set<std::string> keys;
    std::erase_if(members, [&](Json& one) {
      if (keys.insert(one.key).second) return false;
      Item(context_, &one)
          .fault(fmt::format("the key {} appears twice", shown(one.key)), "keep one of the two");
      return true;
    });
  }

  /// Depth is limited because readers of the tree recurse.
  bool start(Json::Kind kind) {
    constexpr std::size_t kMaxDepth = 32;
    if (open_.size() < kMaxDepth) return open(kind), true;
    return broken(next(), fmt::format("more than {} nested objects and arrays", kMaxDepth),
                  "remove the inner ones");
  }

  /// Nothing else is said of such a text.
  bool broken(std::size_t at, std::string message, std::string hint) {
    context_.take();
    context_.fault(context_.place(at), std::move(message), std::move(hint));
    return false;
  }

  /// The library has read one byte too many, or all of the text.
  bool number() {
    Json& made = open(Json::Kind::number);
    made.end = at_ = std::min(text_.find_first_not_of("0123456789+-.eE", made.begin), text_.size());
    made.text = text_.substr(made.begin, made.end - made.begin);
    const char* end = made.text.data() + made.text.size();
    const auto [stop, error] = std::from_chars(made.text.data(), end, made.whole);
    if (stop == end && error == std::errc()) {
      made.kind = Json::Kind::integer;
      made.text = std::to_string(made.whole);  // "-0" is 0
    }
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  Context& context_;
  Json& root_;
  const char* read_ = text_.data();
  std::vector<Json*>
      open_;  ///< from the root to the innermost; none of their lists grows but the last one's
  std::size_t at_ = 0;  ///< behind the last token
  std::string key_;
  std::size_t mark_ = 0;
};

}  // namespace

bool read_tree(std::string_view text, Context& context, Json& root) {
  return Builder(text, context, root).read();
}

}  // namespace hpclaunch::json_reader
