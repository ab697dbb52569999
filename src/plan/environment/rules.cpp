#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "hpclaunch/hosts.h"
#include "hpclaunch/late.h"
#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/node_ranks.h"
#include "plan/environment/environment.h"

namespace hpclaunch {

namespace {

using RankFacts = std::map<std::string, std::string, std::less<>>;

RankFacts facts_of(const RankPlan& rank, std::size_t local_rank) {
  RankFacts facts = {{"local_rank", std::to_string(local_rank)},
                     {"cpus", rank.cpus.to_list()},
                     {"cores", std::to_string(rank.cores)},
                     {"package", std::to_string(rank.package)},
                     {"numa", std::to_string(rank.numa)}};
  if (!rank.slots.empty()) {
    facts["unit"] = std::to_string(rank.unit());
    facts["device"] = std::to_string(rank.device());
    facts["subdevice"] = std::to_string(std::max(0, rank.slots.front().part));
  }
  for (const auto& [name, pu] : rank.roles) facts["role." + name] = std::to_string(pu);
  return facts;
}

bool differs_by_rank(const Template& value) {
  const auto of_rank = [](const std::string& name) {
    const auto fact = std::ranges::find(known_facts(), name, &FactInfo::name);
    return name.starts_with("role.") ||
           (fact != known_facts().end() && fact->scope == FactInfo::Scope::rank);
  };
  return value.each == Template::Each::once && std::ranges::any_of(facts_in(value), of_rank);
}

// The values of the ranks of one class of nodes.
Result<std::vector<std::string>> of_class(const Template& value, const NodeClass& node,
                                          const Slots& slots, const Facts& job) {
  const bool by_rank = differs_by_rank(value);
  const bool once = value.each == Template::Each::once && !by_rank;
  const auto usual = job.job.find("ranks_per_node");
  if (once && usual != job.job.end() && usual->second == std::to_string(node.ranks.size())) {
    Result<std::string> item = expand(value.text, job);
    if (!item) return item.error();
    return std::vector<std::string>(node.ranks.size(), *item);
  }
  Facts facts = job;
  set_ranks_per_node(std::ssize(node.ranks), facts);
  std::vector<RankFacts> each;
  if (once) each.emplace_back();
  for (std::size_t r = 0; r < node.ranks.size(); ++r)
    if (value.each == Template::Each::rank || by_rank) each.push_back(facts_of(node.ranks[r], r));
  for (int u = 0; u < slots.total; ++u)
    if (value.each == Template::Each::unit) each.push_back({{"unit", std::to_string(u)}});
  std::vector<std::string> items;
  for (RankFacts& one : each) {
    facts.rank = std::move(one);
    Result<std::string> item = expand(value.text, facts);
    if (!item) return item.error();
    items.push_back(std::move(*item));
  }
  if (by_rank) return items;
  return std::vector<std::string>(node.ranks.size(),
                                  fmt::format("{}", fmt::join(items, value.join)));
}

// A constant where every rank gets the same, else one value per rank.
// Errors: `invalid`, naming the fact that is not set.
Result<Value> evaluate(const Template& value, const Facts& job, const Slots& slots,
                       const Placement& placement) {
  const bool plain =
      value.each == Template::Each::once && value.text.find('$') == std::string::npos;
  if (plain && !placement.classes.empty()) return Value(value.text);
  PerRank values;
  for (const NodeClass& node : placement.classes) {
    Result<std::vector<std::string>> items = of_class(value, node, slots.of(node.grant), job);
    if (!items) return items.error();
    values.items.push_back(std::move(*items));
  }
  return constant_or_per_rank(std::move(values));
}

struct Applying {
  const PlanInput& input;
  const Rule& rule;
  const Facts& facts;
  const Slots& slots;
  const Placement& placement;
  Settled& made;
  EnvSettings& settings;
  std::string condition;  // of the rule, as it was met

  void all() {
    assign(rule.defaults, Layer::profile_default);
    assign(rule.require, Layer::profile_require);
    for (const Assignment& one : rule.prepend) prepend(one);
    for (const std::string& name : rule.unset) decide(name, Layer::profile_require, Unset{});
    flags();
    directives();
    if (rule.core_limit) {
      made.environment.core_limit = *rule.core_limit;
      choose("core-limit", *rule.core_limit, "core_limit");
    }
    for (const std::string& dir : rule.make_dirs) directory(dir);
    if (rule.report) report();
  }

  void decide(const std::string& name, Layer layer, Value value) {
    settings.add(
        name, decided_by_rule(layer, std::move(value), rule.id, origin_of(rule, name), condition));
  }

  // Choices of one name gather in one setting: the last one holds.
  void choose(const std::string& name, const std::string& value, const char* action) {
    Decision decision =
        decided_by_rule(Layer::profile_default, value, rule.id, origin_of(rule, action), condition);
    for (Setting& setting : made.said.choices)
      if (setting.name == name) return setting.history.push_back(std::move(decision));
    made.said.choices.push_back(Setting{name, {std::move(decision)}});
  }

  // What was made; nullopt, with a report, where a fact is not set.
  template <class Item>
  std::optional<Item> reported(Result<Item> result, const std::string& what) {
    if (result) return std::move(*result);
    made.said.reports.push_back(
        {rule.id, Severity::warning,
         fmt::format("rule {} does not set {}: {}", rule.id, what, result.error().message),
         result.error().hint});
    return std::nullopt;
  }

  std::optional<std::string> expanded(const std::string& text, const std::string& what) {
    return reported(expand(text, facts), what);
  }

  std::optional<Value> value_of(const Assignment& one) {
    return reported(evaluate(one.value, facts, slots, placement), one.name);
  }

  void assign(const std::vector<Assignment>& assignments, Layer layer) {
    for (const Assignment& one : assignments)
      if (const std::optional<Value> value = value_of(one)) decide(one.name, layer, *value);
  }

  void prepend(const Assignment& one) {
    const std::optional<Value> value = value_of(one);
    const auto* text = value ? std::get_if<std::string>(&*value) : nullptr;
    if (text == nullptr) return;
    const std::string* old = settings.so_far(one.name);
    if (facts.late && (old == nullptr || old == facts.env->find(one.name)))
      return decide(one.name, Layer::profile_require, *text + stand_in_behind(one.name));
    if (old == nullptr || old->empty()) return decide(one.name, Layer::profile_require, *text);
    if (*old == *text || old->starts_with(*text + ":")) return;  // it is in front already
    decide(one.name, Layer::profile_require, *text + ":" + *old);
  }

  void flags() {
    const auto found = rule.launch.find(input.launcher.name);
    if (found == rule.launch.end()) return;
    for (const std::string& flag : found->second) {
      const std::optional<std::string> text = expanded(flag, "launcher flag " + flag);
      if (!text) continue;
      const std::string name = text->substr(0, text->find('='));
      auto& args = made.args;
      const auto same = [&](const std::string& a) { return a.substr(0, a.find('=')) == name; };
      if (name.starts_with("-") && name != "-o") std::erase_if(args, same);
      args.push_back(*text);
      choose(name, *text, "launch");
    }
  }

  void directives() {
    for (const auto& [scheduler, list] : rule.batch)
      if (facts.find("scheduler") == scheduler || facts.find("scheduler") == "none")
        for (const std::string& text : list) {
          const auto directive = expanded(text, "directive " + text);
          if (!directive) continue;
          if (std::ranges::count(made.batch, *directive) == 0) made.batch.push_back(*directive);
          choose("batch " + directive->substr(0, directive->find('=')), *directive, "batch");
        }
  }

  void directory(const std::string& dir) {
    const std::optional<std::string> path = expanded(dir, "directory " + dir);
    if (!path) return;
    auto& dirs = made.environment.make_dirs;
    if (std::ranges::count(dirs, *path) == 0) dirs.push_back(*path);
    choose("directories", fmt::format("{}", fmt::join(dirs, " ")), "make_dirs");
  }

  void report() {
    Facts known = facts;
    known.late = false;
    const auto text = [&](const std::string& wanted) {
      const Result<std::string> whole = expand(wanted, known);
      return whole ? *whole : wanted;
    };
    made.said.reports.push_back({rule.id, severity_from(rule.report->severity),
                                 text(rule.report->message), text(rule.report->fix)});
  }
};

// A job has variables, modules and libraries of its own.
void note_outside(const Rule& rule, const Facts& facts, std::vector<OutsideRule>& found) {
  const auto outside = [](const Test& test) {
    return std::ranges::any_of(std::array{"env.", "library.", "module.", "value."},
                               [&](const char* group) { return test.fact.starts_with(group); });
  };
  if (std::ranges::none_of(rule.when, outside)) return;
  When of_job, others;
  for (const Test& test : rule.when) (outside(test) ? of_job : others).push_back(test);
  const bool sets = !rule.defaults.empty() || !rule.require.empty() || !rule.prepend.empty() ||
                    !rule.unset.empty() || !rule.launch.empty() || rule.core_limit ||
                    !rule.make_dirs.empty();
  if (!(sets || !rule.batch.empty()) || !holds(others, facts)) return;
  const bool now = holds(of_job, facts);
  found.push_back(
      {rule.id, now ? met(of_job, facts) : unmet(of_job, facts), now, !rule.batch.empty()});
}

void note_idle_rule(const Rule& rule, const Facts& facts, std::vector<IdleRule>& idle) {
  for (const std::string& name : variables_of(rule))
    idle.push_back(
        {name, rule.id, rule.origin.profile, rule.origin.where, unmet(rule.when, facts)});
}

}  // namespace

Result<std::optional<Setting>> decide_stack(const PlanInput& input, const Facts& facts) {
  const std::string& wanted = input.request->stack;
  if (input.profile == nullptr || input.profile->stacks.empty()) {
    if (wanted.empty()) return std::optional<Setting>();
    return request_error(fmt::format("--stack {}: the profile has no stacks", wanted),
                         "omit it, or choose a profile with --profile");
  }
  const Profile& profile = *input.profile;
  Setting setting{"stack", {}};
  const Stack* standard = profile.find_stack(profile.stack);
  if (standard == nullptr) standard = &profile.stacks.front();
  setting.history.push_back(decided_by_rule(Layer::profile_default, standard->name, standard->name,
                                            standard->origin, ""));
  if (setting.history.back().why.empty())
    setting.history.back().why = standard->doc + "; the default of " + profile.name;
  for (const Stack& stack : profile.stacks) {
    const auto when =
        std::ranges::find_if(stack.when, [&](const When& one) { return holds(one, facts); });
    if (when == stack.when.end()) continue;
    setting.history.push_back(decided_by_rule(Layer::environment, stack.name, stack.name,
                                              stack.origin, met(*when, facts)));
    setting.history.back().why = stack.doc;
    break;
  }
  if (!wanted.empty()) {
    if (profile.find_stack(wanted) == nullptr)
      return request_error(fmt::format("{} has no stack \"{}\"", profile.name, wanted),
                           suggest("--stack", wanted, names_of(profile.stacks)));
    setting.history.push_back(decided(Layer::command_line, wanted, "--stack"));
  }
  return std::optional<Setting>(std::move(setting));
}

Decision decided_by_rule(Layer layer, Value value, const std::string& id, const Origin& origin,
                         std::string condition) {
  Decision decision(layer, std::move(value), {}, {});
  static_cast<Origin&>(decision) = origin;
  decision.rule = id;
  decision.condition = std::move(condition);
  return decision;
}

void set_ranks_per_node(std::ptrdiff_t ranks, Facts& facts) {
  facts.job["ranks_per_node"] = std::to_string(ranks);
}

Facts early_facts(const PlanInput& input, const Slots& slots, const Counts& counts) {
  const int nodes = counts.nodes.value;
  const int most = counts.most();
  Facts facts;
  facts.env = &input.env;
  facts.modules = loaded_modules(input.env);
  const auto set = [&](const char* name, const auto& value) {
    facts.job[name] = fmt::format("{}", value);
  };
  set("nodes", nodes);
  set("ranks", counts.ranks.value);
  set_ranks_per_node(most, facts);
  set("units", slots.total);
  set("devices", slots.devices);
  set("device_mode", slots.mode);
  set("gpu_view", slots.view);
  set("ranks_per_device", slots.filled > 0   ? std::min(slots.filled, most)
                          : slots.total == 0 ? 0
                                             : (most + slots.total - 1) / slots.total);
  set("launcher", input.launcher.name);
  set("scheduler", input.job.scheduler);
  set("in_job", input.job.scheduler == "none" ? "no" : "yes");
  set("job_id", input.job.id);
  set("user", input.job.user);
  set("whole_node",
      nameless_cores(input, nodes) && !can_count_through(input, nodes) ? "no" : "yes");
  set("node_cpus", input.node.allowed.count());
  set("job_part", input.job_part ? "yes" : "no");
  if (!input.job_part || !input.job_memory.empty())
    set("job_memory", input.job_part ? input.job_memory : "0");
  set("node_type", input.model != nullptr ? input.model->name : std::string("live"));
  const std::string& first = input.hosts.front();
  set("host.first", first);
  set("host.first.short", first.substr(0, first.find('.')));
  constexpr int kMostNames = 512;  // an environment variable has 128 KiB at most
  std::string names;
  for (int n = 0; n < std::min(nodes, kMostNames); ++n)
    names += (n > 0 ? "," : "") + short_host(input.hosts[n]);
  set("hosts", names);
  set("proxies", has_proxies(input) ? "yes" : "no");
  for (const auto& [name, file] : input.libraries) facts.job["library." + name] = file;
  if (input.live) {
    set("live.numa_nodes", input.live->numa_nodes.size());
    set("live.cores", input.live->cores.size());
  }
  return facts;
}

void add_placed_facts(const PlanInput& input, int nodes, const Placement& placement, Facts& facts) {
  int fewest = 0;
  int most = 0;
  for (const NodeClass& one : placement.classes)
    for (const RankPlan& rank : one.ranks) {
      fewest = fewest == 0 ? rank.cores : std::min(fewest, rank.cores);
      most = std::max(most, rank.cores);
    }
  int usable = cores_of(input.node, input.node.allowed).count();
  if (knows_amounts(input, nodes))
    usable = granted_cores(input.node, placement.classes.front().granted);
  const bool divide =
      placement.even() && fewest == most && fewest * placement.max_local_size() == usable;
  facts.job["min_cores"] = std::to_string(fewest);
  facts.job["cores_divide"] = divide ? "yes" : "no";
}

void apply_rules(const PlanInput& input, Facts facts, bool late, const Slots& slots,
                 const Placement& placement, Settled& made, EnvSettings& settings) {
  if (input.profile == nullptr) return;
  const std::vector<Rule>& rules = input.profile->rules;
  const auto in_turn = [&](const Rule& rule) { return is_late(rule.when) == late; };
  if (std::ranges::none_of(rules, in_turn)) return;
  facts.late = input.job.later;
  if (late) {
    facts.values = input.env.values();
    for (const Setting& setting : settings.finish()) {
      const auto* text = std::get_if<std::string>(&setting.value());
      facts.values.erase(setting.name);
      if (text != nullptr) facts.values[setting.name] = *text;
    }
  }
  for (const Rule& rule : rules) {
    if (!in_turn(rule)) continue;
    if (input.job.scheduler == "none") note_outside(rule, facts, made.said.outside);
    if (holds(rule.when, facts))
      Applying{input, rule, facts, slots, placement, made, settings, met(rule.when, facts)}.all();
    else
      note_idle_rule(rule, facts, made.said.idle);
  }
}

}  // namespace hpclaunch
