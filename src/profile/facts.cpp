#include "facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hpclaunch/late.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"
#include "profile/kinds.h"

namespace hpclaunch {
namespace {

using Scope = FactInfo::Scope;
using Known = FactInfo::Known;
using enum FactInfo::Scope;
using enum FactInfo::Kind;

constexpr std::array<std::string_view, 2> kYesNo = {"yes", "no"};
std::optional<std::string> look_up(const TextMap& facts, std::string_view name) {
  const auto found = facts.find(name);
  if (found == facts.end()) return std::nullopt;
  return found->second;
}

/// Calls `text` for each literal part and `fact` for each name in ${...}. The offset of a dollar sign that
/// starts neither ${...} nor $$, where it stops; npos when there is none.
template <class Text, class Fact>
std::size_t walk(std::string_view value, Text text, Fact fact) {
  std::size_t at = 0;
  while (at < value.size()) {
    const std::size_t dollar = std::min(value.find('$', at), value.size());
    text(value.substr(at, dollar - at));
    if (dollar == value.size()) break;
    at = dollar;
    if (value.substr(dollar, 2) == "$$") {
      text(value.substr(dollar, 1));
      at += 2;
      continue;
    }
    const std::size_t end = value.find('}', dollar);
    if (value.substr(dollar, 2) != "${" || end == std::string_view::npos) return dollar;
    fact(value.substr(dollar + 2, end - dollar - 2));
    at = end + 1;
  }
  return std::string_view::npos;
}

}  // namespace

std::span<const FactInfo> known_facts() {
  static const std::vector<std::string_view> job_or_none = [] {
    const std::span<const std::string_view> names = scheduler_names();
    std::vector<std::string_view> all(names.begin(), names.end());
    all.emplace_back("none");
    return all;
  }();
  static const FactInfo kFacts[] = {{"cores", rank, number},
                                    {"cores_divide", job, word, Known::rule, kYesNo},
                                    {"cpus", rank},
                                    {"device", rank, number},
                                    {"device_mode", job},
                                    {"devices", job, number},
                                    {"env.", group, text, Known::node},
                                    {"even", job, word, Known::binding, kYesNo},
                                    {"gpu_view", job, word, Known::stack, profile::kGpuViews},
                                    {"host.first", job},
                                    {"host.first.short", job},
                                    {"hosts", job},
                                    {"in_job", job, word, Known::node, kYesNo},
                                    {"job_id", job},
                                    {"job_memory", job},
                                    {"job_part", job, word, Known::stack, kYesNo},
                                    {"launcher", job, word, Known::stack, kLauncherNames},
                                    {"library.", group},
                                    {"live.cores", job, count},
                                    {"live.numa_nodes", job, count},
                                    {"local_rank", rank, number},
                                    {"min_cores", job, number, Known::rule},
                                    {"module.", group, version, Known::node},
                                    {"node_cpus", job, count},
                                    {"node_type", job},
                                    {"nodes", job, count},
                                    {"numa", rank},
                                    {"package", rank},
                                    {"proxies", job, word, Known::stack, kYesNo},
                                    {"ranks", job, count},
                                    {"ranks_per_device", job, number},
                                    {"ranks_per_node", job, count},
                                    {"role.", group, number},
                                    {"scheduler", job, word, Known::node, job_or_none},
                                    {"stack", job, text, Known::binding},
                                    {"subdevice", rank, number},
                                    {"unit", rank, number},
                                    {"units", job, number},
                                    {"user", job},
                                    {"value.", late, text, Known::rule},
                                    {"whole_node", job, word, Known::stack, kYesNo}};
  return kFacts;
}

const FactInfo* find_fact(std::string_view name) {
  for (const FactInfo& fact : known_facts()) {
    const bool group = fact.name.ends_with('.');
    const bool same =
        group ? name.starts_with(fact.name) && name.size() > fact.name.size() : name == fact.name;
    if (same) return &fact;
  }
  return nullptr;
}

std::optional<std::string> Facts::find(std::string_view name) const {
  if (auto found = look_up(rank, name)) return found;
  if (auto found = look_up(job, name)) return found;
  const auto after = [&](std::string_view group) { return name.substr(group.size()); };
  if (name.starts_with("env.")) {
    const std::string* value = env == nullptr ? nullptr : env->find(after("env."));
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  if (name.starts_with("module.")) return look_up(modules, after("module."));
  if (name.starts_with("value.")) return look_up(values, after("value."));
  return std::nullopt;
}

TextMap loaded_modules(const EnvSnapshot& env) {
  TextMap modules;
  const std::string loaded = env.get("LOADEDMODULES");
  for (const std::string_view module : split(loaded, ':')) {
    const std::size_t last = module.rfind('/');
    const std::size_t first = module.find('/');
    const auto version = [&](std::size_t slash) {
      return slash == std::string_view::npos ? std::string()
                                             : std::string(module.substr(slash + 1));
    };
    if (module.substr(0, first).empty()) continue;
    modules[std::string(module.substr(0, first))] = version(first);
    if (last != first) modules[std::string(module.substr(0, last))] = version(last);
  }
  return modules;
}

std::vector<std::string> facts_in(const Template& value) {
  std::vector<std::string> names;
  walk(
      value.text, [](std::string_view) {},
      [&](std::string_view name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
      });
  return names;
}

Result<std::string> expand(std::string_view text, const Facts& facts) {
  std::string out;
  std::string missing;
  const std::size_t broken = walk(
      text, [&](std::string_view piece) { out += piece; },
      [&](std::string_view name) {
        const auto value = facts.find(name);
        if (value)
          out += facts.late && name.starts_with("env.") ? stand_in(name.substr(4)) : *value;
        else if (missing.empty())
          missing = name;
      });
  if (broken != std::string_view::npos)
    return Error{ErrorKind::invalid,
                 fmt::format("a '$' in \"{}\" starts neither ${{fact}} nor $$", text),
                 "write $$ for a dollar sign"};
  if (missing.empty()) return out;
  return Error{ErrorKind::invalid, fmt::format("${{{}}} is not set", missing),
               missing.starts_with("env.") ? fmt::format("export {}", missing.substr(4)) : ""};
}

namespace profile {

bool is_rank_fact(const FactInfo& fact) {
  return fact.scope == Scope::rank || fact.name == "role.";
}

std::vector<std::string> fact_candidates(std::string_view word) {
  const std::size_t dot = word.find('.');
  std::vector<std::string> names;
  for (const FactInfo& fact : known_facts()) {
    std::string name(fact.name);
    if (name.ends_with('.')) name += dot == std::string_view::npos ? "NAME" : word.substr(dot + 1);
    names.push_back(std::move(name));
  }
  return names;
}

std::size_t broken_dollar(std::string_view text) {
  const auto ignore = [](std::string_view) {};
  return walk(text, ignore, ignore);
}

}  // namespace profile
}  // namespace hpclaunch
