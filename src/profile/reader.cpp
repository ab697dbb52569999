#include "reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/text.h"

namespace hpclaunch::profile {
namespace {

bool is_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool made_of(std::string_view text, std::string_view besides) {
  return !text.empty() && is_alnum(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_alnum(c) || besides.find(c) != std::string_view::npos;
         });
}

bool is_control(char c) { return (c >= '\0' && c < ' ') || c == '\x7f'; }

}  // namespace

bool is_profile_name(std::string_view text) {
  return made_of(text, ".-") && text != "none" && !text.ends_with(".json");
}

bool is_word(std::string_view text) { return made_of(text, "._+-"); }

bool is_variable(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return is_control(c) || c == ' ' || c == '=' || c == '$';
  });
}

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto year = parse_natural(text.substr(0, 4));
  const auto month = parse_natural(text.substr(5, 2));
  const auto day = parse_natural(text.substr(8, 2));
  if (!year || !month || !day || *year < 1970 || *month < 1 || *month > 12) return false;
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (*year % 4 == 0 && *year % 100 != 0) || *year % 400 == 0;
  return *day >= 1 && *day <= kDays[*month - 1] + (leap && *month == 2 ? 1 : 0);
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongest = 64;  // longer words are no misspellings and slow to compare
  if (word.size() > kLongest) return "";
  const auto meant = nearest(word, candidates);
  return meant ? fmt::format("did you mean \"{}\"?", *meant) : "";
}

std::string suggestion_or_all(std::string_view word, std::span<const std::string_view> known) {
  const std::vector<std::string> candidates(known.begin(), known.end());
  const std::string hint = suggestion(word, candidates);
  return hint.empty() ? fmt::format("one of {}", fmt::join(known, ", ")) : hint;
}

// ---- Context ---------------------------------------------------------------------------------------

void Context::fault(const Item& at, std::string message, std::string hint) {
  problems_.add(at.json->mark, at.pointer, std::move(message), std::move(hint));
}

void Context::expected(const Item& at, std::string_view what, std::string hint) {
  fault(at, fmt::format("expected {}, found {}", what, noun(at.json->kind)), std::move(hint));
}

void Context::twice(const Item& at, const char* key, const std::string& name) {
  const Json* named = at.json->find(key);
  const Item place{named == nullptr ? at.json : named, at.pointer + step(key)};
  fault(place, fmt::format("two entries have the {} {}", key, shown(name)), "rename one of them");
}

std::string Context::text(const Item& at) {
  if (at.json->kind != Json::Kind::string) {
    const bool number = at.json->kind == Json::Kind::integer;
    expected(at, "a string",
             number ? fmt::format("write it in quotes: \"{}\"", at.json->text) : std::string());
    return {};
  }
  const std::string& text = at.json->text;
  if (text.empty()) {
    fault(at, "empty string", "fill it in, or omit the key");
  } else if (std::any_of(text.begin(), text.end(), is_control)) {
    fault(at, "this string contains a control character", "write one line of plain text");
  }
  return text;
}

std::string Context::word(const Item& at) {
  std::string name = text(at);
  if (!name.empty() && !is_word(name)) {
    fault(at, fmt::format("{} is not a valid name", shown(name)),
          "use letters, digits, '-', '.', '_' and '+'; the first is a letter or a digit");
  }
  return name;
}

std::string Context::variable_name(const Item& at, std::string_view name) {
  if (!is_variable(name)) {
    fault(at, fmt::format("{} cannot be the name of a variable", shown(name)),
          "names have no '=', no '$' and no blanks, and are not empty");
  }
  return std::string(name);
}

std::string Context::choice(const Item& at, std::span<const std::string_view> known) {
  const std::size_t before = problems_.list().size();
  std::string name = text(at);
  if (problems_.list().size() != before ||
      std::find(known.begin(), known.end(), name) != known.end())
    return name;
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

std::string Context::core_limit(const Item& at) {
  constexpr std::size_t kDigits = 19;
  std::string limit = text(at);
  const bool number = limit.size() <= kDigits &&
                      limit.find_first_not_of("0123456789") == std::string::npos &&
                      (limit == "0" || limit[0] != '0');
  if (!limit.empty() && limit != "unlimited" && !number) {
    fault(at, fmt::format("{} is not a core file limit", shown(limit)),
          "write \"0\", a number of bytes, or \"unlimited\"");
  }
  return limit;
}

std::vector<Item> Context::elements(const Item& at, std::string_view of_what) {
  if (at.json->kind != Json::Kind::array) {
    expected(at, fmt::format("a list of {}", of_what), "put it in [ ]");
    return {};
  }
  if (at.json->items.empty()) {
    fault(at, fmt::format("an empty list of {}", of_what), "fill it in, or omit the key");
  }
  std::vector<Item> items;
  items.reserve(at.json->items.size());
  for (std::size_t i = 0; i < at.json->items.size(); ++i)
    items.push_back({&at.json->items[i], at.pointer + step(i)});
  return items;
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
  asked_.emplace_back(key);
  const Json* value = at_.json->find(key);
  if (value != nullptr) return {value, at_.pointer + step(key)};
  if (need == Need::required && at_.json->kind == Json::Kind::object) {
    context_.fault(at_, fmt::format("\"{}\" is missing", key), fmt::format("add \"{}\"", key));
  }
  return {};
}

std::string Object::text(const char* key, Need need) {
  const Item item = find(key, need);
  return item ? context_.text(item) : "";
}

std::string Object::word(const char* key, Need need) {
  const Item item = find(key, need);
  return item ? context_.word(item) : "";
}

std::string Object::choice(const char* key, std::span<const std::string_view> known, Need need) {
  const Item item = find(key, need);
  return item ? context_.choice(item, known) : "";
}

int Object::whole(const char* key, int min, int max, std::optional<int> otherwise) {
  const Item item = find(key, otherwise ? Need::optional : Need::required);
  return item ? context_.whole(item, min, max) : otherwise.value_or(min);
}

bool Object::truth(const char* key, bool otherwise) {
  const Item item = find(key);
  return item ? context_.truth(item) : otherwise;
}

std::vector<std::string> Object::texts(const char* key) {
  const Item item = find(key);
  if (!item) return {};
  return context_.texts(item, "strings");
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

std::vector<Item> Object::elements(const char* key, std::string_view of_what) {
  const Item item = find(key);
  if (!item) return {};
  return context_.elements(item, of_what);
}

Origin Object::origin(Need why) {
  Origin origin;
  origin.profile = context_.profile;
  origin.where = context_.place(at_);
  const auto check = [&](const char* key, bool good, const std::string& message, const char* hint) {
    if (!good) context_.fault(find(key), message, hint);
  };
  origin.why = text("why", why);
  check("why", !origin.why.ends_with('.'), "\"why\" ends with a full stop", "remove the full stop");
  origin.source = text("source");
  const bool url = origin.source.starts_with("https://") || origin.source.starts_with("http://");
  check("source", origin.source.empty() || (url && origin.source.find(' ') == std::string::npos),
        fmt::format("{} is not a URL", shown(origin.source)), "start it with https://");
  origin.checked = text("checked");
  check("checked", origin.checked.empty() || is_date(origin.checked),
        fmt::format("{} is not a date", shown(origin.checked)), "write YYYY-MM-DD");
  origin.printed = text("printed");
  origin.printed_why = text("printed_why");
  origin.disputed = text("disputed");
  if (!has("printed")) {
    refuse("printed_why", "\"printed\" is missing", "add \"printed\", or remove this");
  }
  return origin;
}

void Object::refuse(const char* key, std::string_view because, std::string hint) {
  const Json* value = at_.json->find(key);
  if (value == nullptr) return;
  context_.fault({value, at_.pointer + step(key)},
                 fmt::format("\"{}\" has no effect here: {}", key, because), std::move(hint));
}

void Object::finish() {
  std::sort(asked_.begin(), asked_.end());
  asked_.erase(std::unique(asked_.begin(), asked_.end()), asked_.end());
  for (const Member& member : at_.json->members) {
    if (context_.full()) return;
    if (std::binary_search(asked_.begin(), asked_.end(), member.key)) continue;
    std::string hint = suggestion(member.key, asked_);
    if (hint.empty()) hint = fmt::format("known: {}", fmt::join(asked_, ", "));
    context_.fault({&member.value, at_.pointer + step(member.key)},
                   fmt::format("unknown key {}", shown(member.key)), std::move(hint));
  }
}

}  // namespace hpclaunch::profile
