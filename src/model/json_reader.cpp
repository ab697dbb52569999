#include "hpclaunch/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/text.h"

namespace hpclaunch::json_reader {
namespace {

constexpr std::size_t kMaxProblems = 100;

bool is_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_control(char c) { return (c >= '\0' && c < ' ') || c == '\x7f'; }

bool is_variable(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return is_control(c) || c == ' ' || c == '=' || c == '$';
  });
}

}  // namespace

bool is_word(std::string_view text) {
  return !text.empty() && is_alnum(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_alnum(c) || std::string_view("._+-").find(c) != std::string_view::npos;
         });
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongest = 64;  // longer words are no misspellings and slow to compare
  if (word.size() > kLongest) return "";
  const auto meant = nearest(word, candidates);
  return meant ? fmt::format("did you mean \"{}\"?", *meant) : "";
}

std::string suggestion_or_all(std::string_view word, std::span<const std::string> known) {
  const std::string hint = suggestion(word, known);
  return hint.empty() ? fmt::format("one of {}", fmt::join(known, ", ")) : hint;
}

std::string suggestion_or_all(std::string_view word, std::span<const std::string_view> known) {
  return suggestion_or_all(word, std::vector<std::string>(known.begin(), known.end()));
}

// ---- Context ---------------------------------------------------------------------------------------

Context::Context(std::string_view text, std::string file) : file_(std::move(file)) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') line_starts_.push_back(i + 1);
}

SourceRef Context::place(std::size_t mark, std::string pointer) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), mark);
  const auto line = static_cast<std::size_t>(after - line_starts_.begin());
  const std::size_t column = mark - line_starts_[line - 1] + 1;
  return {file_, static_cast<int>(line), static_cast<int>(column), std::move(pointer)};
}

bool Context::full() const { return problems_.size() >= kMaxProblems; }

void Context::fault(std::size_t mark, std::string pointer, std::string message, std::string hint) {
  if (full()) return;
  problems_.push_back(
      {ErrorKind::invalid, std::move(message), std::move(hint), place(mark, std::move(pointer))});
}

void Context::fault(const Item& at, std::string message, std::string hint) {
  if (at) fault(at.json->mark, at.pointer, std::move(message), std::move(hint));
}

std::vector<Error> Context::take() {
  const bool cut = full();
  const auto at = [](const Error& error) {
    const SourceRef where = error.where.value_or(SourceRef{});
    return std::pair(where.line, where.column);
  };
  std::stable_sort(problems_.begin(), problems_.end(),
                   [&](const Error& a, const Error& b) { return at(a) < at(b); });
  if (cut) {
    problems_.push_back({ErrorKind::invalid,
                         "too many problems: the rest of the file was not reported",
                         "fix those above first", SourceRef{file_, 0, 0, ""}});
  }
  return std::move(problems_);
}

void Context::expected(const Item& at, std::string_view what, std::string hint) {
  fault(at, fmt::format("expected {}, found {}", what, noun(at.json->kind)), std::move(hint));
}

void Context::twice(const Item& at, const char* key, const std::string& name) {
  const Json* named = at.json->find(key);
  const Item place{named == nullptr ? at.json : named, at.pointer + step(key)};
  fault(place, fmt::format("two entries have the {} {}", key, shown(name)), "rename one of them");
}

std::string Context::string(const Item& at) {
  if (at.json->kind == Json::Kind::string) return at.json->text;
  const bool number = at.json->kind == Json::Kind::integer;
  expected(at, "a string",
           number ? fmt::format("write it in quotes: \"{}\"", at.json->text) : std::string());
  return {};
}

std::string Context::text(const Item& at) {
  std::string text = string(at);
  if (at.json->kind != Json::Kind::string) return text;
  if (text.empty()) {
    fault(at, "empty string", "fill it in, or omit the key");
  } else if (std::any_of(text.begin(), text.end(), is_control)) {
    fault(at, "this string contains a control character", "write one line of plain text");
  }
  return text;
}

std::string Context::text_of(const Item& at, std::string_view what, bool (*good)(std::string_view),
                             const char* hint) {
  std::string text = this->text(at);
  if (!text.empty() && !good(text)) fault(at, fmt::format("{} is not {}", shown(text), what), hint);
  return text;
}

std::string Context::word(const Item& at) {
  return text_of(at, "a valid name", is_word,
                 "use letters, digits, '-', '.', '_' and '+'; the first is a letter or a digit");
}

std::string Context::variable_name(const Item& at, std::string_view name) {
  if (!is_variable(name)) {
    fault(at, fmt::format("{} cannot be the name of a variable", shown(name)),
          "names have no '=', no '$' and no blanks, and are not empty");
  }
  return std::string(name);
}

std::string Context::choice(const Item& at, std::span<const std::string_view> known) {
  const std::size_t before = count();
  std::string name = text(at);
  if (count() != before || std::find(known.begin(), known.end(), name) != known.end()) return name;
  const std::vector<std::string> candidates(known.begin(), known.end());
  fault(at, fmt::format("{} is not one of {}", shown(name), fmt::join(known, ", ")),
        suggestion(name, candidates));
  return {};
}

int Context::whole(const Item& at, int min, int max) {
  const bool integer = at.json->kind == Json::Kind::integer;
  if (integer && at.json->whole >= min && at.json->whole <= max)
    return static_cast<int>(at.json->whole);
  const std::string found = integer ? at.json->text : std::string(noun(at.json->kind));
  fault(at, fmt::format("expected a whole number from {} to {}, found {}", min, max, found),
        at.json->kind == Json::Kind::string ? "write it without quotes" : "");
  return min;
}

bool Context::truth(const Item& at) {
  if (at.json->kind != Json::Kind::boolean) expected(at, "true or false");
  return at.json->truth;
}

CpuSet Context::cores(const Item& at) {
  if (at.json->kind != Json::Kind::string) {
    expected(at, "a list in a string", "write it like \"0-3,8\"");
    return {};
  }
  Result<CpuSet> set = CpuSet::parse(at.json->text);
  if (set) return *set;
  fault(at, set.error().message, "write it like \"0-3,8\"");
  return {};
}

std::vector<Item> Context::any_elements(const Item& at, std::string_view of_what) {
  if (at.json->kind != Json::Kind::array)
    expected(at, fmt::format("a list of {}", of_what), "put it in [ ]");
  std::vector<Item> items;
  items.reserve(at.json->items.size());
  for (std::size_t i = 0; i < at.json->items.size(); ++i)
    items.push_back({&at.json->items[i], at.pointer + step(i)});
  return items;
}

std::vector<Item> Context::elements(const Item& at, std::string_view of_what) {
  if (at.json->kind == Json::Kind::array && at.json->items.empty())
    fault(at, fmt::format("an empty list of {}", of_what), "fill it in, or omit the key");
  return any_elements(at, of_what);
}

std::vector<std::pair<std::string, Item>> Context::members(const Item& at,
                                                           std::string_view of_what) {
  if (at.json->kind != Json::Kind::object) {
    expected(at, fmt::format("an object of {}", of_what), "put it in { }");
    return {};
  }
  if (at.json->members.empty()) {
    fault(at, fmt::format("an empty object of {}", of_what), "fill it in, or omit the key");
  }
  std::vector<std::pair<std::string, Item>> members;
  members.reserve(at.json->members.size());
  for (const Member& member : at.json->members)
    members.emplace_back(member.key, Item{&member.value, at.pointer + step(member.key)});
  return members;
}

std::vector<std::string> Context::texts(const Item& at, std::string_view of_what) {
  std::vector<std::string> out;
  for (const Item& item : elements(at, of_what)) out.push_back(text(item));
  return out;
}

// ---- Object ----------------------------------------------------------------------------------------

Object::Object(Context& context, Item at) : context_(context), at_(std::move(at)) {
  if (at_.json->kind != Json::Kind::object) {
    context_.fault(at_, fmt::format("expected an object, found {}", noun(at_.json->kind)));
  }
}

bool Object::has(const char* key) const { return at_.json->find(key) != nullptr; }

Item Object::find(const char* key, Need need) {
  asked_.emplace(key);
  const Json* value = at_.json->find(key);
  if (value != nullptr) return {value, at_.pointer + step(key)};
  if (need == Need::required && at_.json->kind == Json::Kind::object) {
    context_.fault(at_, fmt::format("\"{}\" is missing", key), fmt::format("add \"{}\"", key));
  }
  return {};
}

std::vector<std::string> Object::variable_names(const char* key) {
  std::vector<std::string> names;
  for (const Item& item : elements(key, "names"))
    if (const std::string name = context_.text(item); !name.empty())
      names.push_back(context_.variable_name(item, name));
  return names;
}

void Object::need_one_of(std::initializer_list<const char*> keys, const char* message) {
  const bool found = std::any_of(keys.begin(), keys.end(), [&](const char* k) { return has(k); });
  if (!found && at_.json->kind == Json::Kind::object)
    context_.fault(at_, message, fmt::format("add one of: {}", fmt::join(keys, " ")));
}

void Object::refuse(const char* key, std::string_view because, std::string hint) {
  const Json* value = at_.json->find(key);
  if (value == nullptr) return;
  context_.fault({value, at_.pointer + step(key)},
                 fmt::format("\"{}\" has no effect here: {}", key, because), std::move(hint));
}

void Object::finish() {
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const Member& member : at_.json->members) {
    if (context_.full()) return;
    if (asked_.count(member.key) > 0) continue;
    std::string hint = suggestion(member.key, known);
    if (hint.empty()) hint = fmt::format("known: {}", fmt::join(known, ", "));
    context_.fault({&member.value, at_.pointer + step(member.key)},
                   fmt::format("unknown key {}", shown(member.key)), std::move(hint));
  }
}

std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 80;
  return fmt::format("\"{}\"", hpclaunch::shown(text, kShown));
}

}  // namespace hpclaunch::json_reader
