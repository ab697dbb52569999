#include "hpclaunch/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hpclaunch/text.h"

namespace hpclaunch::json_reader {
namespace {

constexpr std::size_t kMaxProblems = 100;

const Json kAbsent{};

bool is_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

bool is_variable(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return is_control(c) || c == ' ' || c == '=' || c == '$';
  });
}

/// One token of an RFC 6901 pointer with its '/' before it.
std::string step(std::string_view key) {
  std::string out = "/";
  for (const char c : key)
    if (c == '~' || c == '/')
      out += c == '~' ? "~0" : "~1";
    else
      out += c;
  return out;
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

std::string_view noun(Json::Kind kind) {
  constexpr std::string_view kNouns[] = {"null",     "true or false", "a number", "a number",
                                         "a string", "a list",        "an object"};
  return kNouns[static_cast<std::size_t>(kind)];
}

std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 80;
  return fmt::format("\"{}\"", hpclaunch::shown(text, kShown));
}

// ---- Context ---------------------------------------------------------------------------------------

Context::Context(std::string_view text, std::string file) : file_(std::move(file)) {
  for (std::size_t end = 0; (end = text.find('\n', end)) != std::string_view::npos;)
    line_starts_.push_back(++end);
  whole_ = read_tree(text, *this, root_);
}

SourceRef Context::place(std::size_t mark, std::string pointer) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), mark);
  const auto line = static_cast<std::size_t>(after - line_starts_.begin());
  const std::size_t column = mark - line_starts_[line - 1] + 1;
  return {file_, static_cast<int>(line), static_cast<int>(column), std::move(pointer)};
}

SourceRef Context::place(const Json& at) const {
  std::string pointer;
  for (const Json* way = &root_; way != &at;) {
    const auto next = std::ranges::upper_bound(way->items, at.mark, {}, &Json::end);
    pointer += way->kind == Json::Kind::object ? step(next->key)
                                               : fmt::format("/{}", next - way->items.begin());
    way = &*next;
  }
  return place(at.mark, std::move(pointer));
}

const Json& Context::follow(std::string_view pointer) const {
  const Json* at = &root_;
  for (const std::string_view step :
       split(pointer.substr(std::min<std::size_t>(1, pointer.size())), '/')) {
    const auto index = static_cast<std::size_t>(parse_natural(step).value_or(INT32_MAX));
    const auto next =
        at->kind == Json::Kind::object
            ? std::ranges::find(at->items, step, &Json::key)
            : at->items.begin() + static_cast<std::ptrdiff_t>(std::min(index, at->items.size()));
    if (next == at->items.end()) break;
    at = &*next;
  }
  return *at;
}

bool Context::full() const { return count() >= kMaxProblems; }

void Context::fault(SourceRef where, std::string message, std::string hint) {
  if (!full())
    problems_.push_back(
        {ErrorKind::invalid, std::move(message), std::move(hint), std::move(where)});
}

void Context::forget(const std::string& pointer, std::string_view key) {
  std::erase_if(problems_, [&](const Error& error) {
    const std::string_view at = error.where ? std::string_view(error.where->pointer) : "";
    if (!at.starts_with(pointer) || error.hint.starts_with("did you mean")) return false;
    const std::string_view rest = at.substr(pointer.size());
    const auto steps = std::ranges::count(rest, '/');
    return (rest.empty() || rest[0] == '/') && (steps < 2 || !error.hint.starts_with("add ")) &&
           error.hint.find(key) != std::string::npos;
  });
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

// ---- Item ------------------------------------------------------------------------------------------

const Json* Item::operator->() const { return json_ != nullptr ? json_ : &kAbsent; }

SourceRef Item::where() const { return context_->place(**this); }

void Item::fault(std::string message, std::string hint) const {
  if (json_ != nullptr) context_->fault(where(), std::move(message), std::move(hint));
}

void Item::expected(std::string_view what, std::string hint) const {
  if (json_ == nullptr) return;
  fault(fmt::format("expected {}, found {}", what, noun((*this)->kind)), std::move(hint));
}

Item Item::operator[](std::string_view key) const {
  if (json_ == nullptr) return *this;
  const bool object = json_->kind == Json::Kind::object;
  if (!object && json_->asked.empty()) expected("an object");
  json_->asked.push_back(key);
  const auto found = std::ranges::find(json_->items, key, &Json::key);
  return {*context_, object && found != json_->items.end() ? &*found : nullptr};
}

Item Item::need(std::string_view key) const {
  const Item found = (*this)[key];
  if (!found && (*this)->kind == Json::Kind::object)
    fault(fmt::format("\"{}\" is missing", key), fmt::format("add \"{}\"", key));
  return found;
}

std::string Item::string() const {
  const Json& json = **this;
  if (json.kind != Json::Kind::string)
    expected("a string", json.kind == Json::Kind::integer
                             ? fmt::format("write it in quotes: \"{}\"", json.text)
                             : "");
  return json.kind == Json::Kind::string ? json.text : "";
}

std::string Item::text() const {
  std::string text = string();
  if ((*this)->kind != Json::Kind::string) return text;
  if (text.empty()) {
    fault("empty string", "fill it in, or omit the key");
  } else if (std::any_of(text.begin(), text.end(), is_control)) {
    fault("this string contains a control character", "write one line of plain text");
  }
  return text;
}

std::string Item::text_of(std::string_view what, bool (*good)(std::string_view),
                          const char* hint) const {
  std::string text = this->text();
  if (!text.empty() && !good(text)) fault(fmt::format("{} is not {}", shown(text), what), hint);
  return text;
}

std::string Item::word() const {
  return text_of("a valid name", is_word,
                 "use letters, digits, '-', '.', '_' and '+'; the first is a letter or a digit");
}

std::string Item::variable(std::string name) const {
  const bool reported = name.empty() && !(*this)->key.empty();  // by text()
  if (json_ != nullptr && !is_variable(name) && !reported)
    fault(fmt::format("{} cannot be the name of a variable", shown(name)),
          "names have no '=', no '$' and no blanks, and are not empty");
  return name;
}

std::string Item::choice(std::span<const std::string_view> known) const {
  const std::size_t before = context_->count();
  std::string name = text();
  if (context_->count() != before || std::ranges::find(known, name) != known.end()) return name;
  fault(fmt::format("{} is not one of {}", shown(name), fmt::join(known, ", ")),
        suggestion(name, std::vector<std::string>(known.begin(), known.end())));
  return {};
}

int Item::whole(int min, int max, std::optional<int> otherwise) const {
  if (json_ == nullptr) return otherwise.value_or(min);
  const bool integer = json_->kind == Json::Kind::integer;
  if (integer && json_->whole >= min && json_->whole <= max) return static_cast<int>(json_->whole);
  const std::string found = integer ? json_->text : std::string(noun(json_->kind));
  fault(fmt::format("expected a whole number from {} to {}, found {}", min, max, found),
        json_->kind == Json::Kind::string ? "write it without quotes" : "");
  return min;
}

bool Item::truth(bool otherwise) const {
  if (json_ == nullptr) return otherwise;
  if (json_->kind != Json::Kind::boolean) expected("true or false");
  return json_->truth;
}

CpuSet Item::cores() const {
  if ((*this)->kind != Json::Kind::string) {
    expected("a list in a string", "write it like \"0-3,8\"");
    return {};
  }
  Result<CpuSet> set = CpuSet::parse((*this)->text);
  if (set) return *set;
  fault(set.error().message, "write it like \"0-3,8\"");
  return {};
}

std::vector<Item> Item::items() const {
  std::vector<Item> items;
  if (json_ == nullptr) return items;
  items.reserve(json_->items.size());
  for (Json& one : json_->items) items.emplace_back(*context_, &one);
  return items;
}

std::vector<Item> Item::filled(Json::Kind kind, std::string_view of_what) const {
  const bool list = kind == Json::Kind::array;
  if (json_ == nullptr) return {};
  if (json_->kind != kind)
    expected(fmt::format("{} of {}", noun(kind), of_what),
             list ? "put it in [ ]" : "put it in { }");
  else if (json_->items.empty())
    fault(fmt::format("an empty {} of {}", list ? "list" : "object", of_what),
          "fill it in, or omit the key");
  return json_->kind == kind ? items() : std::vector<Item>();
}

std::vector<Item> Item::elements(std::string_view of_what) const {
  return filled(Json::Kind::array, of_what);
}

std::vector<Item> Item::members(std::string_view of_what) const {
  return filled(Json::Kind::object, of_what);
}

std::vector<std::string> Item::texts(std::string_view of_what) const {
  std::vector<std::string> out;
  for (const Item& item : elements(of_what)) out.push_back(item.text());
  return out;
}

std::vector<Item> Item::entries(std::string_view name) const {
  std::set<std::string_view> seen;
  std::vector<Item> items = elements("objects");
  for (const Item& item : items)
    if (const Item at = item[name];
        at && at->kind == Json::Kind::string && !at->text.empty() && !seen.insert(at->text).second)
      at.fault(fmt::format("two entries have the {} {}", name, shown(at->text)),
               "rename one of them");
  return items;
}

bool need_schema(const Item& file) {
  const Item schema = file.need("schema");
  if (schema->kind == Json::Kind::integer && schema->whole == 1) return true;
  schema.fault("this program reads schema 1", "write \"schema\": 1");
  return false;
}

void Item::need_one_of(std::initializer_list<const char*> keys, const char* message) const {
  const bool found =
      std::any_of(keys.begin(), keys.end(), [&](const char* key) { return bool((*this)[key]); });
  if (!found && (*this)->kind == Json::Kind::object)
    fault(message, fmt::format("add one of: \"{}\"", fmt::join(keys, "\", \"")));
}

void Item::refuse(std::string_view key, std::string_view because, std::string hint) const {
  (*this)[key].fault(fmt::format("\"{}\" has no effect here: {}", key, because), std::move(hint));
}

void Item::finish() const {
  const std::vector<std::string_view>& asked = (*this)->asked;
  const bool read = (*this)->kind == Json::Kind::object && !asked.empty();
  for (const Item& one : items()) {
    if (context_->full()) return;
    one.finish();
    if (!read || std::ranges::find(asked, one->key) != asked.end()) continue;
    const std::set<std::string> names(asked.begin(), asked.end());
    const std::vector<std::string> known(names.begin(), names.end());
    std::string hint = suggestion(one->key, known);
    if (hint.empty())
      hint = fmt::format("known: {}", fmt::join(known, ", "));
    else
      context_->forget(where().pointer, fmt::format("\"{}\"", *nearest(one->key, known)));
    one.fault(fmt::format("unknown key {}", shown(one->key)), std::move(hint));
  }
}

}  // namespace hpclaunch::json_reader
