// Look-ups in a script that was read, and the simplest script of all: a list of variables.
#include <algorithm>

#include "hpclaunch/text.h"
#include "lint/script.h"

namespace hpclaunch::lint {

// Many rules ask, of every launch.
template <class One>
static const One* last_named(const std::vector<One>& all, Names names) {
  for (auto one = all.rbegin(); one != all.rend(); ++one)
    if (std::ranges::count(names, one->name) > 0) return &*one;
  return nullptr;
}

const Setting* Script::last(std::string_view name, std::size_t settings_before) const {
  const auto found = by_name.find(name);
  if (found == by_name.end()) return nullptr;
  auto at = std::ranges::lower_bound(found->second, settings_before);
  while (at != found->second.begin())
    if (const Setting& one = settings[*--at]; !one.local && one.launch == Setting::kNone)
      return &one;
  return nullptr;
}

const Setting* Script::given(std::string_view name, const Launch& launch) const {
  const auto found = by_name.find(name);
  if (found == by_name.end()) return nullptr;
  for (auto own = launch.own_settings.rbegin(); own != launch.own_settings.rend(); ++own)
    if (settings[*own].name == name) return &settings[*own];
  const Setting* one = last(name, launch.settings_before);
  return one != nullptr && one->exported && one->how != Setting::How::unset ? one : nullptr;
}

std::optional<std::string> Script::exported(std::string_view name) const {
  const Setting* const one = last(name, settings.size());
  if (one == nullptr || !one->exported || one->how == Setting::How::unset) return std::nullopt;
  return one->value.known() ? one->value.text : std::string(1, '\x01');
}

const Ask* Script::ask(Names names) const { return last_named(asks, names); }

const Option* Launch::option(Names names) const { return last_named(options, names); }

bool begins_with_one(Words words, std::string_view text) {
  return std::ranges::any_of(words, [&](std::string_view one) { return text.starts_with(one); });
}

bool has_one_in_it(Words words, std::string_view text) {
  return std::ranges::any_of(words,
                             [&](std::string_view one) { return text.find(one) != text.npos; });
}

Script read_dump(std::string_view text, std::string file) {
  Script script;
  script.file = std::move(file);
  script.shell.text = text;
  std::size_t at = 0;
  for (std::string_view line : split(text, '\n')) {
    script.shell.lines.push_back(static_cast<std::uint32_t>(at));
    const std::size_t begin = at;
    at += line.size() + 1;
    std::size_t name = line.starts_with("export ") ? 7 : 0;
    if (line.starts_with("declare -x ")) name = 11;
    const std::size_t equals = line.find('=', name);
    if (equals == line.npos || !is_identifier(line.substr(name, equals - name))) continue;
    Setting one;
    one.name = line.substr(name, equals - name);
    one.how = Setting::How::exported;
    one.exported = true;
    one.name_span = span_of(begin + name, begin + equals);
    std::string_view value = trim(line.substr(equals + 1));
    one.value_span = span_of(begin + equals + 1, begin + line.size());
    const bool quoted = value.size() > 1 && (value.front() == '"' || value.front() == '\'') &&
                        value.back() == value.front();
    one.value.text = quoted ? value.substr(1, value.size() - 2) : value;
    script.by_name[one.name].push_back(script.settings.size());
    script.settings.push_back(std::move(one));
  }
  return script;
}

}  // namespace hpclaunch::lint
