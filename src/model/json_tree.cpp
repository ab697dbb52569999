// Builds the tree from the events of the JSON library, which have no places: those are found in the text.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <nlohmann/json.hpp>
#include <set>

#include "hpclaunch/json_reader.h"
#include "hpclaunch/text.h"

namespace hpclaunch::json_reader {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 32;  // nested objects and arrays

/// An iterator over a text that counts the bytes read.
class Counting {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Counting(const char* at, std::size_t* taken) : at_(at), taken_(taken) {}
  reference operator*() const { return *at_; }
  Counting& operator++() {
    ++*taken_;
    ++at_;
    return *this;
  }
  Counting operator++(int) {
    Counting before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Counting& other) const { return at_ == other.at_; }
  bool operator!=(const Counting& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* taken_;
};

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

/// Builds the tree from parser events. Depth is limited here, because readers of the tree recurse.
class Builder {
 public:
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  Builder(std::string_view text, const std::size_t& taken, Context& context)
      : text_(text), taken_(taken), context_(context) {}

  Json root;
  bool failed = false;

  bool null() { return value(Json::Kind::null, taken_ - 4) != nullptr; }
  bool boolean(bool truth) {
    value(Json::Kind::boolean, taken_ - (truth ? 4 : 5))->truth = truth;
    return true;
  }
  bool number_integer(number_integer_t number) { return whole(number); }
  bool number_unsigned(number_unsigned_t number) {
    if (number > static_cast<number_unsigned_t>(INT64_MAX))
      return number_float(0, std::to_string(number));
    return whole(static_cast<std::int64_t>(number));
  }
  bool number_float(number_float_t /*number*/, const string_t& written) {
    value(Json::Kind::number, number_start())->text = written;
    return true;
  }
  bool string(string_t& text) {
    value(Json::Kind::string, quote_start())->text = std::move(text);
    return true;
  }
  bool binary(binary_t& /*bytes*/) { return false; }
  bool start_object(std::size_t /*count*/) { return open(Json::Kind::object); }
  bool start_array(std::size_t /*count*/) { return open(Json::Kind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    key_ = std::move(name);
    key_mark_ = quote_start();
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const json::exception& error) {
    failed = true;
    const std::string message = complaint(error.what());
    context_.fault(std::min(position == 0 ? 0 : position - 1, text_.size()), "",
                   "broken JSON: " + message, hint_for(message));
    return false;
  }

 private:
  struct Open {
    Json* container;
    std::string pointer;
    std::set<std::string> keys;
  };

  bool whole(std::int64_t number) {
    Json* made = value(Json::Kind::integer, number_start());
    made->whole = number;
    made->text = std::to_string(number);
    return true;
  }

  /// Start of the string just read: its closing quote is the last byte read, and a
  /// quote inside a string stands behind an odd number of backslashes.
  std::size_t quote_start() const {
    std::size_t at = taken_ - 1;
    while (at > 0) {
      --at;
      if (text_[at] != '"') continue;
      std::size_t backslashes = 0;
      while (backslashes < at && text_[at - 1 - backslashes] == '\\') ++backslashes;
      if (backslashes % 2 == 0) break;
    }
    return at;
  }

  /// A number is known to end when the byte after it was taken (or the text ended).
  std::size_t number_start() const {
    constexpr std::string_view kDigits = "0123456789+-.eE";
    std::size_t at = taken_;
    if (at > 0 && kDigits.find(text_[at - 1]) == std::string_view::npos) --at;
    while (at > 0 && kDigits.find(text_[at - 1]) != std::string_view::npos) --at;
    return at;
  }

  /// The place for the next value: at the top, in the open array, or at the key that was just read.
  /// A repeated key is reported; its second value is dropped.
  Json* value(Json::Kind kind, std::size_t mark) {
    Json* made = &root;
    if (!open_.empty() && open_.back().container->kind == Json::Kind::array) {
      made = &open_.back().container->items.emplace_back();
    } else if (!open_.empty()) {
      Json& object = *open_.back().container;
      mark = key_mark_;
      if (!open_.back().keys.insert(key_).second) {
        context_.fault(mark, open_.back().pointer + step(key_),
                       fmt::format("the key {} appears twice", shown(key_)), "keep one of the two");
        made = &aside_.emplace_back();
      } else {
        made = &object.members.emplace_back(Member{key_, {}}).value;
      }
    }
    made->kind = kind;
    made->mark = mark;
    return made;
  }

  bool open(Json::Kind kind) {
    std::string pointer;
    if (!open_.empty()) {
      const Json& around = *open_.back().container;
      pointer = open_.back().pointer +
                (around.kind == Json::Kind::array ? step(around.items.size()) : step(key_));
    }
    if (open_.size() >= kMaxDepth) {
      failed = true;
      context_.fault(taken_ - 1, pointer,
                     fmt::format("more than {} nested objects and arrays", kMaxDepth),
                     "remove the inner ones");
      return false;
    }
    Json* made = value(kind, taken_ - 1);
    open_.push_back({made, std::move(pointer), {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::size_t& taken_;
  Context& context_;
  std::vector<Open> open_;
  std::string key_;
  std::size_t key_mark_ = 0;
  std::list<Json> aside_;
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
  return (json::json_pointer() / std::string(key)).to_string();
}

std::string step(std::size_t index) { return "/" + std::to_string(index); }

std::optional<Json> parse_tree(std::string_view text, Context& context) {
  std::size_t taken = 0;
  Builder builder(text, taken, context);
  const bool good =
      json::sax_parse(Counting(text.data(), &taken), Counting(text.data() + text.size(), &taken),
                      &builder, json::input_format_t::json, true, true);
  if (!good || builder.failed) return std::nullopt;
  return std::move(builder.root);
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
