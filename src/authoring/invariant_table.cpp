// The invariants themselves.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "authoring/command.h"
#include "authoring/invariants.h"
#include "hpclaunch/check.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

const std::vector<RankPlan>& ranks_of(const Sample& one) {
  return one.plan->placement.classes.front().ranks;
}

// The first of the ranks of which `wrong` returns a text, and that.
template <class Wrong>
std::string wrong_rank(const Sample& one, Wrong wrong) {
  int number = 0;
  for (const RankPlan& rank : ranks_of(one)) {
    const std::string text = wrong(rank);
    if (!text.empty()) return fmt::format("rank {} {}", number, text);
    ++number;
  }
  return "";
}

std::string counts(InvariantContext&, const Sample& one) {
  const int nodes = *one.asked->nodes;
  const int ranks = *one.asked->ranks_per_node;
  const auto got = static_cast<int>(ranks_of(one).size());
  if (got == ranks && one.plan->even() && one.plan->nodes() == nodes) return "";
  return fmt::format("got {} on {}, requested {} on {}", counted(got, "rank"),
                     counted(one.plan->nodes(), "node"), counted(ranks, "rank"),
                     counted(nodes, "node"));
}

std::string cores_apart(InvariantContext& context, const Sample& one) {
  const Topology& node = context.model->topology;
  const CpuSet exist = node.all_pus();
  std::map<int, int> owner;
  int number = 0;
  for (const RankPlan& rank : ranks_of(one)) {
    if (rank.cpus.empty()) return fmt::format("rank {} has no core", number);
    if (const CpuSet more = rank.cpus - exist; !more.empty())
      return fmt::format("rank {} has CPU {}, which does not exist", number, more.first());
    for (const int core : cores_of(node, rank.cpus).to_vector())
      if (const auto [other, fresh] = owner.emplace(core, number); !fresh)
        return fmt::format("ranks {} and {} share the core of CPU {}", other->second, number,
                           (node.cores[core].pus & rank.cpus).first());
    ++number;
  }
  return "";
}

std::string reserved_free(InvariantContext& context, const Sample& one) {
  return wrong_rank(one, [&](const RankPlan& rank) {
    const CpuSet taken = rank.cpus & context.model->reserved;
    return taken.empty() ? "" : "has reserved CPUs " + taken.to_list();
  });
}

std::string near_device(InvariantContext& context, const Sample& one) {
  if (reports(*one.plan, "far-from-device")) return "";
  const CpuSet& allowed = context.model->topology.allowed;
  const CpuSet idle = allowed - cpus_of(ranks_of(one));
  return wrong_rank(one, [&](const RankPlan& rank) -> std::string {
    CpuSet all;
    bool known = true;
    for (const Slot& unit : rank.slots) {
      const Device* device = context.model->topology.find_device(unit.device);
      const CpuSet near = device == nullptr ? CpuSet{} : device->pus;
      all |= near;
      known = known && !near.empty();
      if (!near.intersects(rank.cpus) && (near & allowed).intersects(idle))
        return fmt::format("has CPUs {}, and none of the idle ones near its device {} ({})",
                           rank.cpus.to_list(), unit.device, near.to_list());
    }
    if (!known || all.contains(rank.cpus) || rank.cpus.contains(all & allowed)) return "";
    return fmt::format("has CPUs {}, but its devices are near {}, and the plan does not report it",
                       rank.cpus.to_list(), all.to_list());
  });
}

// Usable cores of which no rank has a hardware thread; with `near`, of those near some rank's devices.
int idle_cores(const Topology& node, const Sample& one, bool near) {
  CpuSet wanted = near ? CpuSet{} : node.allowed;
  for (const RankPlan& rank : ranks_of(one))
    for (const Slot& unit : rank.slots)
      if (const Device* device = node.find_device(unit.device)) wanted |= node.near(*device);
  const CoreSet used = cores_of(node, cpus_of(ranks_of(one)));
  return (cores_of(node, wanted & node.allowed) - used).count();
}

std::string several_devices(InvariantContext& context, const Sample& one) {
  if (one.asked->devices_per_rank.value_or(1) < 2) return "";
  const int idle = idle_cores(context.model->topology, one, true);
  return idle == 0 ? "" : fmt::format("{} near devices of ranks are idle", counted(idle, "core"));
}

// A rule with a rank for each device may keep cores for others; nothing else may without a word.
std::string idle_reported(InvariantContext& context, const Sample& one) {
  const Topology& node = context.model->topology;
  const int usable = cores_of(node, node.allowed).count();
  const int idle = idle_cores(node, one, false);
  const auto ranks = static_cast<int>(ranks_of(one).size());
  if (2 * idle < usable || usable < 2 * ranks || reports(*one.plan, "idle-cores")) return "";
  const Setting* binding = one.plan->find_choice("cpu-bind");
  const bool by_rule = binding != nullptr && !binding->history.back().rule.empty();
  if (by_rule && !one.asked->devices_per_rank && ranks >= units_of(context, one.asked->device_mode))
    return "";
  return fmt::format("{} of {} are idle, and the plan does not report it", idle,
                     counted(usable, "core"));
}

std::string own_device(InvariantContext& context, const Sample& one) {
  if (context.model->topology.devices.empty() || reports(*one.plan, "no-instances") ||
      one.asked->devices_per_rank == 0)
    return "";
  return wrong_rank(one, [](const RankPlan& rank) -> std::string {
    return rank.device() < 0 ? "has no device" : "";
  });
}

std::size_t pieces(const std::string& text, const std::string& join) {
  std::size_t found = 1;
  for (std::size_t at = text.find(join); at != std::string::npos;
       at = text.find(join, at + join.size()))
    ++found;
  return found;
}

std::string list_lengths(InvariantContext& context, const Sample& one) {
  for (const ListRule& list : context.lists) {
    const Setting* setting = one.plan->find_env(list.variable);
    if (setting == nullptr || setting->history.back().rule != list.rule) continue;
    const auto* text = std::get_if<std::string>(&setting->value());
    if (text == nullptr) continue;
    const int wanted =
        list.per_unit ? units_of(context, one.asked->device_mode) : *one.asked->ranks_per_node;
    const std::size_t got = pieces(*text, list.join);
    if (got != static_cast<std::size_t>(wanted))
      return fmt::format("{}={} has {} for {}", list.variable, *text,
                         counted(static_cast<long>(got), "item"),
                         counted(wanted, list.per_unit ? "unit" : "rank"));
  }
  return "";
}

// Values built from facts are known only in a plan.
std::string variables_known(InvariantContext& context, const Sample& one) {
  for (const Setting& setting : one.plan->environment.settings) {
    const auto* text = std::get_if<std::string>(&setting.value());
    const std::string value = text != nullptr ? *text : "";
    const auto [at, fresh] = context.known.emplace(setting.name + "=" + value, "");
    if (fresh) {
      const Diagnostic verdict = knowledge::check(setting.name, value);
      if (verdict.severity == Severity::error) at->second = verdict.message;
    }
    if (!at->second.empty()) return at->second;
  }
  return "";
}

std::string launch_line(InvariantContext& context, const Sample& one) {
  LauncherFacts facts;
  const auto programs = context.launcher->programs;
  facts.path = programs.empty() ? "hpclaunch" : std::string(programs.front());
  const Result<Argv> argv = context.launcher->render(*one.plan, facts, "hpclaunch-shim");
  if (!argv) return argv.error().message;
  if (argv->empty()) return "the launch line is empty";
  return one.plan->environment.wire.starts_with("hl2.") ? "" : "no message for the shim";
}

// Entries of the mask that the plan sets, else all units.
int visible_devices(const InvariantContext& context, const Sample& one) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}) {
    const Setting* mask = one.plan->find_env(name);
    if (mask == nullptr) continue;
    const auto* text = std::get_if<std::string>(&mask->value());
    if (text != nullptr) return static_cast<int>(split(*text, ',').size());
  }
  return units_of(context, one.asked->device_mode);
}

std::string local_rank(InvariantContext& context, const Sample& one) {
  const Setting* setting = one.plan->find_env("LOCAL_RANK");
  if (setting == nullptr) return "LOCAL_RANK is not set";
  if (one.plan->placement.gpu_view.empty()) return "";
  if (const auto* text = std::get_if<std::string>(&setting->value()))
    return *text == "0" ? "" : fmt::format("LOCAL_RANK is {} on every rank", *text);
  const int ranks = *one.asked->ranks_per_node;
  const int visible = visible_devices(context, one);
  if (ranks <= visible || reports(*one.plan, "shared-devices")) return "";
  return fmt::format(
      "LOCAL_RANK goes up to {}, but a rank sees {}, and the plan does not report it", ranks - 1,
      counted(visible, "device"));
}

std::string repeatable(InvariantContext&, const Sample& one) {
  const Environment& a = one.plan->environment;
  const Environment& b = one.again->environment;
  const auto alike = [](const Setting& x, const Setting& y) {
    return x.name == y.name && x.value() == y.value();
  };
  const bool same = a.wire == b.wire && std::ranges::equal(a.settings, b.settings, alike) &&
                    ranks_of(one) == one.again->placement.classes.front().ranks &&
                    one.plan->launch.batch == one.again->launch.batch;
  return same ? "" : "the same input gave a different plan";
}

// ---- the identity of a rank, docs/reference/identity.md ------------------------------------------------------

// What every rank has under every launcher.
constexpr IdentityVariables kAlways[] = {
    {Identity::rank, "RANK ROLE_RANK"},
    {Identity::local_rank, "LOCAL_RANK HPCLAUNCH_LOCAL_RANK"},
    {Identity::node, "GROUP_RANK NODE_RANK CROSS_RANK HPCLAUNCH_NODE"},
    {Identity::local_size, "LOCAL_WORLD_SIZE LOCAL_SIZE HPCLAUNCH_LOCAL_SIZE"},
    {Identity::ranks, "WORLD_SIZE ROLE_WORLD_SIZE"},
    {Identity::nodes, "GROUP_WORLD_SIZE CROSS_SIZE"}};

constexpr const char* kMisleading = "99999";

template <class Visit>
void each_name(std::span<const IdentityVariables> rows, Visit visit) {
  for (const IdentityVariables& row : rows)
    for (const std::string_view name : split(row.names, ' ')) visit(name, row.what);
}

// By the layout alone. nullopt: lists, which only must not be another launch's.
std::optional<int> truth(Identity what, const Plan& plan, const RankPlace& place) {
  const int in_order[] = {place.rank,       place.local,       place.node,
                          place.local_size, plan.world_size(), plan.nodes()};
  const auto at = static_cast<std::size_t>(what);
  return at < std::size(in_order) ? std::optional(in_order[at]) : std::nullopt;
}

std::string identity_on(const Sample& one, const RankPlace& place) {
  std::string wrong;
  const auto check = [&](std::string_view name, Identity what, bool needed) {
    const std::optional<std::string> found = value_at(*one.plan, *one.env, name, place);
    const std::optional<int> wanted = truth(what, *one.plan, place);
    const bool first_device =
        name == "LOCAL_RANK" && !one.plan->placement.gpu_view.empty() && found == "0";
    if (!wrong.empty() || first_device ||
        (found ? !wanted || *found == std::to_string(*wanted) : !needed))
      return;
    wrong = fmt::format("rank {} finds {}{}", place.rank, name, found ? "=" + *found : " not set");
    if (wanted) wrong += fmt::format(", which must be {}", *wanted);
  };
  each_name(kAlways, [&](auto name, Identity what) { check(name, what, true); });
  for (const Launcher& other : launchers()) {
    if (other.name == one.launcher->name) continue;  // it sets its own
    bool any = false;  // programs take the whole of a launcher's names, or none
    each_name(other.identity, [&](auto name, Identity) {
      any = any || value_at(*one.plan, *one.env, name, place);
    });
    each_name(other.identity, [&](auto name, Identity what) { check(name, what, any); });
  }
  return wrong;
}

// Names agree on every rank, whichever of them a program reads, and none is another launch's.
std::string identity(InvariantContext&, const Sample& one) {
  const Plan& plan = *one.plan;
  for (const RankPlace& place : rank_places(plan))
    if (std::string wrong = identity_on(one, place); !wrong.empty()) return wrong;
  std::set<std::string, std::less<>> by_launcher;
  each_name(one.launcher->identity, [&](auto name, Identity) { by_launcher.emplace(name); });
  for (const auto& [name, value] : one.env->values())
    if (value == kMisleading && !by_launcher.contains(name) &&
        value_at(*one.plan, *one.env, name, {}) == value)
      return fmt::format("ranks find {}={} of another launch", name, value);
  const std::string& own = one.launcher->traits.rank_var;
  if (own.empty() || std::ranges::count(plan.environment.removed, own) > 0)
    return fmt::format("the shim does not find the rank that {} sets", plan.launch.launcher);
  return value_at(*one.plan, *one.env, "TORCHELASTIC_RUN_ID", {})
             ? ""
             : "TORCHELASTIC_RUN_ID is not set";
}

// The literal part of a template, without its facts.
std::string literal_part(const Template& value) {
  Facts nothing;
  for (const std::string& fact : facts_in(value)) nothing.rank[fact] = "";
  const Result<std::string> text = expand(value.text, nothing);
  return text ? *text : value.text;
}

// Items that may contain the separator cannot be counted.
void add_lists(const Rule& rule, const std::vector<Assignment>& assignments,
               std::vector<ListRule>& lists) {
  for (const Assignment& one : assignments) {
    if (one.value.each == Template::Each::once || one.value.join.empty()) continue;
    const std::vector<std::string> facts = facts_in(one.value);
    const bool has_lists = std::find(facts.begin(), facts.end(), "cpus") != facts.end();
    const bool countable = literal_part(one.value).find(one.value.join) == std::string::npos &&
                           !(has_lists && (one.value.join == "," || one.value.join == "-"));
    if (countable)
      lists.push_back({rule.id, one.name, one.value.join, one.value.each == Template::Each::unit});
  }
}

}  // namespace

const std::array<Invariant, 13> kInvariants = {{
    {"counts", "as many ranks as requested", counts},
    {"cores-apart", "no core in two ranks", cores_apart},
    {"reserved-free", "no reserved core is used", reserved_free},
    {"near-device", "each rank is near its device, or the plan reports it", near_device},
    {"several-devices", "ranks of several devices share all cores near these", several_devices},
    {"idle-cores", "idle cores are reported, or kept by a rule with a rank for each device",
     idle_reported},
    {"own-device", "each rank has a device where the node has any", own_device},
    {"list-length", "lists of a rule have one item per rank or unit", list_lengths},
    {"known-variable", "every variable and value is known to the catalogue", variables_known},
    {"launch-line", "the launcher line and the shim's message can be rendered", launch_line},
    {"local-rank", "LOCAL_RANK is a visible device, or the plan reports it", local_rank},
    {"repeatable", "the same input gives the same plan", repeatable, Invariant::Of::pair},
    {"identity", "a rank has one identity under every launcher, in and out of a job", identity,
     Invariant::Of::identity},
}};

int units_of(const InvariantContext& context, const std::string& mode) {
  const DeviceMode* found = context.profile->find_mode(mode);
  int units = 0;
  for (const Device& device : context.model->topology.devices)
    units += found != nullptr && found->subdevices ? std::max(1, device.subdevices) : 1;
  return units;
}

EnvSnapshot misleading_environment(const Scheduler* system) {
  std::map<std::string, std::optional<std::string>> values = {{"TORCHELASTIC_RUN_ID", kMisleading}};
  const auto mislead = [&](std::string_view name, auto...) {
    if (!name.empty()) values[std::string(name.substr(0, name.find('*')))] = kMisleading;
  };
  each_name(kAlways, mislead);
  for (const Launcher& one : launchers()) {
    each_name(one.identity, mislead);
    for (const std::string_view name : split(one.rank_variables, ' ')) mislead(name);
  }
  if (system != nullptr) {
    const std::string_view hosts =
        system->hosts_variables.empty() ? system->hosts_file : system->hosts_variables.front();
    for (const std::string_view name : {system->job_variable, system->instance_variable, hosts})
      if (!name.empty()) values[std::string(name)] = "7";
  }
  return EnvSnapshot().with(values);
}

bool reports(const Plan& plan, std::string_view id) {
  return std::ranges::count(plan.explanation.reports, id, &Diagnostic::id) > 0;
}

InvariantContext make_context(const Profile& profile, const NodeModel& model,
                              const Launcher& launcher) {
  InvariantContext context;
  context.profile = &profile;
  context.model = &model;
  context.launcher = &launcher;
  for (const Rule& rule : profile.rules) {
    add_lists(rule, rule.defaults, context.lists);
    add_lists(rule, rule.require, context.lists);
  }
  return context;
}

}  // namespace hpclaunch::authoring
