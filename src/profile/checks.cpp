// What the values of a profile must look like, and what several keys of an object say together.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/programs.h"
#include "hpclaunch/text.h"
#include "profile/reader.h"

namespace hpclaunch {

bool is_pci_address(std::string_view text) {
  return text.find(':') == 4 && is_pci_place(text, false) && text.back() <= '7';
}

bool is_profile_name(std::string_view text) {
  return json_reader::is_word(text) && text.find_first_of("_+") == std::string_view::npos &&
         text != "none" && !text.ends_with(".json");
}

namespace profile {

// ---- texts -----------------------------------------------------------------------------------------------

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

bool is_core_limit(std::string_view text) {
  constexpr std::size_t kDigits = 18;  // what the shim reads
  return text == "unlimited" || text == "0" ||
         (text.size() <= kDigits && text[0] != '0' &&
          text.find_first_not_of("0123456789") == std::string_view::npos);
}

bool is_url(std::string_view text) {
  return (text.starts_with("https://") || text.starts_with("http://")) &&
         text.find(' ') == std::string_view::npos;
}

bool is_module(std::string_view text) {
  return !text.starts_with('-') && consists_of(text, "._+-/=");
}

bool is_folder(std::string_view text) {
  return text.starts_with('/') && consists_of(text, "._+-/=,:@%");
}

bool is_option_value(std::string_view text) {
  return !text.starts_with('-') && consists_of(text, "._+-/=:,@%&|[]()* ");
}

std::span<const std::string_view> engine_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const ContainerEngine& one : rows<ContainerEngine>())
      if (one.refused.empty()) names.push_back(one.name);
    return names;
  }();
  return kNames;
}

bool is_engine_option(std::string_view text) { return text.starts_with('-'); }

bool are_lists(std::string_view text) {
  return std::ranges::all_of(split(text, ':'),
                             [](std::string_view list) { return bool(CpuSet::parse(list)); });
}

bool is_pci_root(std::string_view text) { return text.find(':') == 4 && is_pci_place(text, true); }

// ---- objects ---------------------------------------------------------------------------------------------

void check(const Item& at, const Origin& origin) {
  if (origin.why.ends_with('.'))
    at["why"].fault("\"why\" ends with a full stop", "remove the full stop");
  if (!at["printed"])
    at.refuse("printed_why", "\"printed\" is missing", "add \"printed\", or remove this");
}

void check(const Item& at, const Signal& signal) {
  const Item env = at["env"];
  const Item host = at["host"];
  if (env && !at["like"]) (void)at.need("like");
  if (host && env) host.fault("\"host\" and \"env\" are both given", "make it two entries");
  if (host && !env) at.refuse("like", "\"host\" is the pattern", "remove it");
  if (host && !env && signal.proves && !signal.like.empty() &&
      signal.like.find_first_not_of("*?") == std::string::npos)
    host.fault(fmt::format("{} matches every machine", shown(signal.like)),
               "name what only this site has");
  if (!host && !env && at->kind == Json::Kind::object)
    at.fault("neither \"env\" nor \"host\" is given",
             R"(write {"env": "NAME", "like": "pattern"} or {"host": "pattern"})");
  if (signal.like.size() > kMaxPattern)
    at.fault(fmt::format("the pattern has more than {} bytes", kMaxPattern));
}

void check(const Item& at, const Share& /*share*/) {
  at.need_one_of(kOneOf<Share>, "nothing is shared");
}

void check(const Item& at, const JobNeeds& /*job*/) {
  at.need_one_of(kOneOf<JobNeeds>, "\"job\" is empty");
}

void check(const Item& at, const Modules& /*modules*/) {
  at.need_one_of(kOneOf<Modules>, "\"modules\" is empty");
}

void check(const Item& at, const NicText& /*nic*/) {
  if (at["numa"] && at["cores"])
    at.fault("the interface has both \"numa\" and \"cores\"",
             "\"cores\" is for interfaces near several NUMA nodes; remove one of them");
  if (!at["name"] && !at["fabric"] && at->kind == Json::Kind::object)
    at.fault("the interface has no name", R"(add "name" or "fabric")");
}

void check(const Item& at, const Binding::Role& role) {
  const bool valid = !at["from"] || std::ranges::count(kRoleOrigins, at["from"]->text) > 0;
  if (role.from_base && valid)
    at.refuse("stride", "the rank's base moves already", "add \"from\": \"group\"");
}

void check(const Item& at, const Binding& binding) {
  const auto refuse = [&](std::initializer_list<const char*> keys, const char* because) {
    for (const char* key : keys) at.refuse(key, because, "remove one of the two");
  };
  const Item split = at["split"];
  const bool unsplit = !binding.split && (!split || split->kind == Json::Kind::boolean);
  if (binding.across && unsplit)
    at["across"].fault("\"across\" says how cores are split", "add \"split\": true");
  if (unsplit && !at["cores"] && at->kind == Json::Kind::object)
    at.fault("\"cores\" is missing", R"(add "cores" or "split")");
  if (!binding.at.empty()) refuse({"first", "stride", "at_least"}, "\"at\" names every base");
  if (binding.across)
    refuse({"groups", "interleave", "roles"}, "with \"across\" each rank has cores of every group");
  if (binding.split)
    refuse({"stride", "cores", "at", "at_least"}, "\"split\" shares all cores evenly");
}

/// A rule that sets a variable in one way and also in another contradicts itself.
void check(const Item& at, const Rule& rule) {
  std::vector<std::string> known = variables_of(rule);
  for (const char* key : {"launch", "batch", "core_limit", "make_dirs"})
    if (at[key]) known.emplace_back(key);
  for (const char* key : {"why", "disputed"})
    for (const Item& one : at[key].items())
      if (std::ranges::find(known, one->key) == known.end())
        one.fault(fmt::format("the rule does nothing with {}", shown(one->key)),
                  suggestion_or_all(one->key, known));
  for (const std::string& one : known)
    if (!rule.whys.empty() && !rule.whys.contains(one))
      at["why"].fault(fmt::format("no reason for {}", shown(one)),
                      fmt::format("add \"{}\": \"...\", or write one sentence for all", one));
  std::map<std::string, std::string> seen;
  for (const char* verb : {"default", "require", "prepend", "unset"})
    for (const Item& one : at[verb].items()) {
      const std::string& name = one->key.empty() ? one->text : one->key;
      const auto [first, added] = seen.emplace(name, verb);
      if (!added)
        one.fault(fmt::format("{} is in both \"{}\" and \"{}\"", shown(name), first->second, verb),
                  "make it two rules, or remove one");
    }
  at.need_one_of(kOneOf<Rule>, "the rule does nothing");
}

void check(const Item& at, const Case& /*one*/) {
  at.need_one_of(kOneOf<Case>, "the case compares nothing");
  const auto given =
      std::ranges::count_if(kOneOf<Case>, [&](const char* key) { return bool(at[key]); });
  if (at["refused"] && given > 1)
    at.fault("a refused case has nothing else to compare", "keep \"refused\" alone");
}

void check(const Item& at, Profile& profile) {
  if (profile.part) at.refuse("detect", "a part matches no site", "remove \"detect\" or \"part\"");
  const auto keep = [&](const Item& reference) {
    if (reference) profile.places[reference.where().pointer] = reference.where();
  };
  for (const Item& base : at["extends"].items()) keep(base);
  if (const Item retired = at["retired"]) keep(retired["successor"]);
  if (const Item defaults = at["defaults"])
    for (const char* key : {"device_mode", "stack"}) keep(defaults[key]);
}

void check(const Item& at, NodeShape& shape, std::size_t problems_before) {
  shape.good = at.context().count() == problems_before;
  if (!shape.good) return;
  const long pus = static_cast<long>(shape.cores()) * shape.threads_per_core;
  if (pus > CpuSet::kCapacity) {
    at.fault(fmt::format("the node has {} hardware threads, and {} is the limit", pus,
                         CpuSet::kCapacity),
             "check packages, numa_per_package, cores_per_numa and threads_per_core");
    shape.good = false;
  } else if (shape.l3_per_numa > 0 && shape.cores_per_numa % shape.l3_per_numa != 0) {
    at["l3_per_numa"].fault(fmt::format("{} cores do not divide evenly among {} caches",
                                        shape.cores_per_numa, shape.l3_per_numa),
                            "leave \"l3_per_numa\" out when caches differ in size");
    shape.l3_per_numa = 0;
  }
}

}  // namespace profile
std::vector<std::string> variables_of(const Rule& rule) {
  std::vector<std::string> names;
  for (const auto* list : {&rule.defaults, &rule.require, &rule.prepend})
    for (const Assignment& one : *list) names.push_back(one.name);
  names.insert(names.end(), rule.unset.begin(), rule.unset.end());
  return names;
}

Origin origin_of(const Rule& rule, std::string_view action) {
  Origin origin = rule.origin;
  if (const auto why = rule.whys.find(action); why != rule.whys.end()) origin.why = why->second;
  if (const auto other = rule.disputes.find(action); other != rule.disputes.end())
    origin.disputed = other->second;
  return origin;
}

}  // namespace hpclaunch
