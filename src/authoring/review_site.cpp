// `profile validate`: conditions that no job of the profile meets, words that are no options, interfaces that no node
// of it has.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "authoring/review.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/programs.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

using Op = Test::Op;
using Kind = FactInfo::Kind;

// ---- conditions ------------------------------------------------------------------------------------

/// What a fact can be in a job of the profile. No limit and no words: anything.
struct Domain {
  long least = 0;
  long most = -1;  // -1: unknown
  std::vector<std::string> words = {};
};

/// `node`: of the job; nullptr where nothing is known of it.
Domain domain_of(const FactInfo& fact, const Profile& whole, const NodeModel* node) {
  Domain domain;
  domain.least = fact.kind == Kind::count ? 1 : 0;
  const auto is = [&](std::string_view name) { return fact.name == name; };
  const auto number = [](std::size_t size) { return static_cast<long>(size); };
  domain.words.assign(fact.words.begin(), fact.words.end());
  if (is("stack")) domain.words = names_of(whole.stacks);
  if (is("device_mode")) domain.words = names_of(whole.device_modes);
  if (is("node_type") && node == nullptr && !whole.part && !whole.nodes.empty())
    domain.words = {"live"};
  if (node == nullptr) return domain;
  const std::vector<Device>& devices = node->topology.devices;
  if (is("node_type")) domain.words = {node->name};
  if (is("devices")) domain.most = number(devices.size());
  if (node->live) return domain;  // the node itself may have partitions, and other cores
  if (is("min_cores")) domain.most = number(node->topology.cores.size());
  if (is("units"))
    domain.most =
        number(devices.size()) * (devices.empty() ? 1 : std::max(1, devices[0].subdevices));
  return domain;
}

/// Values to try on tests of one fact; nullopt where no number of them proves that none holds.
std::optional<std::vector<std::string>> candidates(const FactInfo& fact, const Domain& domain,
                                                   const std::vector<Test>& tests) {
  std::vector<std::string> values = domain.words;
  if (!values.empty()) {
    values.emplace_back();  // not decided
    return values;
  }
  const auto has = [&](Op op) { return std::ranges::count(tests, op, &Test::op) > 0; };
  const bool patterns = has(Op::like) || has(Op::unlike);
  if (fact.kind >= Kind::number) {
    constexpr long kPatterns = 99'999;  // far enough for a pattern of numbers
    const long last = domain.most < 0 ? kPatterns : domain.most;
    std::set<long> numbers = {domain.least, last};
    for (const Test& test : tests)
      for (const std::string& text : test.values)
        if (const auto number = parse_natural(text))
          numbers.insert({*number - 1, *number, *number + 1});
    for (long n = domain.least; patterns && n <= last; ++n) numbers.insert(n);
    for (const long n : numbers)
      if (n >= domain.least && (domain.most < 0 || n <= domain.most))
        values.push_back(std::to_string(n));
    return values;
  }
  for (const Test& test : tests)
    if (test.op == Op::eq) return test.values;
  if (patterns || !(has(Op::lt) || has(Op::le) || has(Op::gt) || has(Op::ge))) return std::nullopt;
  values = {"0"};
  for (const Test& test : tests)  // a version, and one that is just above it
    for (const std::string& text : test.values)
      values.insert(values.end(), {text, text + ".0.0.1"});
  return values;
}

bool can_hold(const FactInfo& fact, const Domain& domain, const std::vector<Test>& tests,
              FactInfo::Known step) {
  const bool known = fact.known <= step;
  const bool may_lack = !known || fact.scope != FactInfo::Scope::job || fact.name == "stack" ||
                        fact.name.starts_with("live.");
  if (!known || std::ranges::count(tests, Op::is_unset, &Test::op) > 0)
    return may_lack && std::ranges::all_of(tests, [](const Test& test) {
             return test.op == Op::is_unset || test.op == Op::ne || test.op == Op::unlike;
           });
  const auto values = candidates(fact, domain, tests);
  return !values || std::ranges::any_of(*values, [&](const std::string& value) {
    Facts facts;
    facts.rank[tests.front().fact] = value;
    return holds(tests, facts);
  });
}

using Grouped = std::map<std::string, std::vector<Test>>;

/// The fact whose tests no node's job meets; "" where those of each fact can hold, and not together.
std::string culprit(const Grouped& by_fact, const Profile& whole,
                    const std::vector<const NodeModel*>& nodes, FactInfo::Known step) {
  for (const auto& [name, tests] : by_fact)
    if (std::ranges::none_of(nodes, [&, &name = name, &tests = tests](const NodeModel* node) {
          const FactInfo& fact = *find_fact(name);
          return can_hold(fact, domain_of(fact, whole, node), tests, step);
        }))
      return name;
  return "";
}

std::string advice(const FactInfo& fact, const Profile& whole,
                   const std::vector<const NodeModel*>& nodes, FactInfo::Known step) {
  static constexpr std::array<std::string_view, 3> kSteps = {"a node type", "a stack", "a binding"};
  if (fact.known > step)
    return fmt::format("it is not known when {} is chosen: use it in rules",
                       kSteps[static_cast<std::size_t>(step)]);
  Domain all;
  for (const NodeModel* node : nodes) {
    const Domain one = domain_of(fact, whole, node);
    all.least = one.least;
    all.most = std::max(all.most, one.most);
    all.words.insert(all.words.end(), one.words.begin(), one.words.end());
  }
  std::ranges::sort(all.words);
  all.words.erase(std::unique(all.words.begin(), all.words.end()), all.words.end());
  if (!all.words.empty()) return fmt::format("one of {}", fmt::join(all.words, ", "));
  if (all.most >= 0) return fmt::format("write a number from {} to {}", all.least, all.most);
  return fmt::format("{}change one of the tests, or remove the entry",
                     all.least > 0 ? "it is 1 or more: " : "");
}

}  // namespace

void review_conditions(const Profile& profile, const Profile& whole,
                       std::vector<Diagnostic>& diagnostics) {
  for (const OwnEntry& entry : own_entries(profile))
    for (const auto& [place, when] : entry.conditions) {
      Grouped by_fact;
      for (const Test& test : *when) by_fact[test.fact].push_back(test);
      std::vector<const NodeModel*> nodes;
      if (!profile.part)  // another profile may give a part other nodes
        for (const NodeModel& node : whole.nodes) nodes.push_back(&node);
      if (nodes.empty() || by_fact.contains("node_type")) nodes.push_back(nullptr);
      const bool possible = std::ranges::any_of(nodes, [&](const NodeModel* node) {
        return culprit(by_fact, whole, {node}, entry.step).empty();
      });
      if (possible) continue;
      const std::string name = culprit(by_fact, whole, nodes, entry.step);
      diagnostics.push_back(about(entry.what, *entry.origin, "never-holds", Severity::warning,
                                  fmt::format("no job of this profile satisfies {}",
                                              when_text(name.empty() ? *when : by_fact[name])),
                                  name.empty() ? "change one of the tests, or remove the entry"
                                               : advice(*find_fact(name), whole, nodes, entry.step),
                                  name.empty() ? place : place + "/" + name));
    }
}

// ---- words of a launcher or batch system -----------------------------------------------------------

namespace {

/// "" for an option of the system, else what to write instead; "?" where that is not known. `system`: nullptr for words
/// of a launch line.
std::string correction(std::string_view text, const Scheduler* system) {
  for (const Scheduler& one : rows<Scheduler>())
    if (const std::string_view sentinel = one.sentinels.front(); text.starts_with(sentinel))
      return std::string(trim(text.substr(sentinel.size())));
  const std::size_t end = std::min(text.find_first_of(" ="), text.size());
  const Grammars grammars = grammars_of(system == nullptr ? "" : system->grammar);
  const std::vector<Option> options = options_of(grammars);
  const bool long_names =
      std::ranges::any_of(options, [](const Option& one) { return one.name().starts_with("--"); });
  if (!text.starts_with('-')) {
    const bool is_long =
        system == nullptr || long_names || system->directives.name.starts_with("--");
    // A resource, where one option is for all of them: "-l walltime={}".
    const std::string_view time = system == nullptr ? "" : system->directives.time;
    const bool resource = !is_long && time.find('=') != time.npos && text.substr(end, 1) == "=";
    return fmt::format("{}{}",
                       resource             ? time.substr(0, time.find(' ') + 1)
                       : is_long && end > 1 ? "--"
                                            : "-",
                       text);
  }
  if (system == nullptr) {  // one option is one word
    const bool two = text.starts_with("--") && text.substr(end, 1) == " ";
    return two ? replaced(std::string(text), {{' ', "="}}) : "";
  }
  const auto takes_value = [](const Option& one) { return one.takes == Takes::value; };
  if (std::ranges::none_of(options, takes_value)) return "";  // not known
  if (!text.starts_with("--"))
    return options_named(grammars, text.substr(0, 2)).empty() &&
                   options_named(grammars, text.substr(0, end)).empty()
               ? "?"
               : "";
  if (!long_names) return "?";
  const std::string_view name = text.substr(2, end - 2);
  std::vector<std::string> names;
  for (const std::string_view grammar : {system->grammar, system->plugins})
    for (const Option& one : options_of(grammars_of(grammar)))
      for (const std::string_view long_name : one.names)
        if (long_name.starts_with("--")) names.emplace_back(long_name.substr(2));
  if (std::ranges::any_of(names, [&](const auto& one) { return one.starts_with(name); })) return "";
  const auto near = nearest(name, names);
  if (!near) return "";  // of a plug-in of the site
  return fmt::format("--{}{}", *near, text.substr(end));
}

}  // namespace

void review_options(const Profile& profile, const Profile&, std::vector<Diagnostic>& diagnostics) {
  for (const Rule& rule : profile.rules) {
    const auto judge = [&](const std::string& text, const std::string& name,
                           const Scheduler* system, const std::string& below) {
      const std::string instead = text.starts_with("${") ? "" : correction(text, system);
      if (instead.empty()) return;
      std::string fix = fmt::format("write \"{}\"", instead);
      if (instead == "?")
        fix = fmt::format("man {}", replaced(std::string(system->submit), {{' ', "-"}}));
      // A site's plug-ins add options, and none without a dash.
      const Severity severity = text.starts_with('-') ? Severity::warning : Severity::error;
      diagnostics.push_back(
          about("rule " + rule.id, rule.origin, "not-an-option", severity,
                fmt::format("\"{}\" is not an option of {}", shown(text, 80),
                            system == nullptr ? name : std::string(system->submit)),
                std::move(fix), below));
    };
    for (const auto& [name, texts] : rule.batch)
      for (std::size_t i = 0; i < texts.size(); ++i)
        judge(texts[i], name, find_row<Scheduler>(name), fmt::format("/batch/{}/{}", name, i));
    for (const auto& [name, words] : rule.launch)
      for (std::size_t i = 0; i < words.size(); ++i)  // "--pmi", "pmix" are two words
        if (i == 0 || words[i].starts_with('-') || words[i - 1].find('=') != std::string::npos)
          judge(words[i], name, nullptr, fmt::format("/launch/{}/{}", name, i));
  }
}

// ---- network interfaces ----------------------------------------------------------------------------

namespace {

/// Variables that name network interfaces. The first row that matches counts.
struct NicVariable {
  const char* pattern;
  bool adapter;  // Nic::fabric or Nic::name, else Nic::name alone
  bool begins;   // also beginnings of names
};
constexpr NicVariable kNicVariables[] = {{"GLOO_SOCKET_IFNAME", false, false},
                                         {"TP_SOCKET_IFNAME", false, false},
                                         {"*_IFNAME", false, true},
                                         {"*_IFACE", false, true},
                                         {"*_HCA", true, true},
                                         {"*_HCA_LIST", true, true},
                                         {"*_NET_DEVICES", true, true},
                                         {"FI_*_DEVICE_NAME", true, true}};

const NicVariable* find_nic_variable(const std::string& name) {
  const auto found = std::ranges::find_if(kNicVariables, [&](const NicVariable& one) {
    return fnmatch(one.pattern, name.c_str(), 0) == 0;
  });
  const auto variable = knowledge::find(name);
  const bool other = variable && variable->type == knowledge::Type::boolean;
  return found == std::end(kNicVariables) || other ? nullptr : &*found;
}

/// Of all nodes on which the rule may hold; none where one of them does not tell.
std::vector<std::string> nic_names(const Rule& rule, const Profile& whole, bool adapter) {
  std::vector<std::string> names;
  for (const NodeModel& node : whole.nodes) {
    Facts facts;
    facts.job["node_type"] = node.name;
    if (std::ranges::any_of(rule.when, [&](const Test& test) {
          return test.fact == "node_type" && !holds(test, facts);
        }))
      continue;
    if (node.live || node.topology.nics.empty()) return {};
    for (const Nic& nic : node.topology.nics) {
      if ((adapter ? nic.fabric : nic.name).empty()) return {};
      for (const std::string& name : {adapter ? nic.fabric : nic.name, nic.name})
        if (!name.empty() && std::ranges::count(names, name) == 0) names.push_back(name);
    }
  }
  return names;
}

/// The first name in a list that is none of these; "" where there is none. "=" is for whole names, "^" for all others,
/// ":1" a port.
std::string stranger(std::string_view value, const std::vector<std::string>& names, bool begins) {
  static constexpr std::array<std::string_view, 5> kAny = {"", "lo", "all", "any", "auto"};
  if (value.starts_with('^')) return "";
  if (value.starts_with('=')) {
    value.remove_prefix(1);
    begins = false;
  }
  for (const std::string_view piece : split(value, ',')) {
    const std::string_view name = trim(piece.substr(0, piece.find(':')));
    const auto same = [&](const std::string& known) {
      return known == name || (begins && known.starts_with(name));
    };
    if (std::ranges::count(kAny, name) == 0 && std::ranges::none_of(names, same))
      return std::string(name);
  }
  return "";
}

}  // namespace

void review_interfaces(const Profile& profile, const Profile& whole,
                       std::vector<Diagnostic>& diagnostics) {
  for (const Rule& rule : profile.rules)
    for (const auto& [key, assignments] :
         {std::pair("default", &rule.defaults), std::pair("require", &rule.require)})
      for (const Assignment& one : *assignments) {
        const NicVariable* variable = find_nic_variable(one.name);
        if (variable == nullptr || profile.part || !is_constant(one.value)) continue;
        const std::vector<std::string> names = nic_names(rule, whole, variable->adapter);
        const std::string missing =
            names.empty() ? "" : stranger(one.value.text, names, variable->begins);
        if (missing.empty()) continue;
        diagnostics.push_back(about(
            "rule " + rule.id, rule.origin, "unknown-interface", Severity::warning,
            fmt::format("{} names \"{}\", which is not a network interface of the nodes", one.name,
                        shown(missing, 80)),
            fmt::format("one of {}; or add it to \"nics\" of the node", fmt::join(names, ", ")),
            fmt::format("/{}/{}", key, one.name)));
      }
}

}  // namespace hpclaunch::authoring
