// What a typed flag means beside the plan.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"
#include "launcher/flag_table.h"
#include "launcher/line.h"

namespace hpclaunch {

namespace {

struct Given {
  const Flag* flag = nullptr;
  std::string text;  // as typed, with what follows it
  std::optional<std::string>
      value;              // none where it takes none or nothing follows; "A=B" of two words
  std::size_t first = 0;  // of the arguments that it takes, and the one behind the last
  std::size_t end = 0;
};

// "-n", "-n3", "--ntasks=3": the name and what is joined to it.
struct Split {
  std::string name;
  std::optional<std::string> joined;
};

Split split_flag(const std::string& arg, const FlagTable& table) {
  const std::size_t equals = arg.find('=');
  const bool is_long = arg.starts_with("--");
  if (table.words) {
    const std::size_t from = is_long ? 2 : 1;
    if (equals == std::string::npos) return {arg.substr(from), std::nullopt};
    return {arg.substr(from, equals - from), arg.substr(equals + 1)};
  }
  if (!is_long) {
    const std::size_t letter = arg.find_first_not_of(table.switches, 1);
    if (letter == std::string::npos) return {arg.substr(0, 2), std::nullopt};
    const std::string name = {'-', arg[letter]};
    if (letter + 1 == arg.size()) return {name, std::nullopt};
    return {name, arg.substr(letter + 1)};
  }
  if (is_long && equals != std::string::npos)
    return {arg.substr(0, equals), arg.substr(equals + 1)};
  return {arg, std::nullopt};
}

bool has_key(std::string_view value, std::string_view key) {
  return value.starts_with(key) && (value.size() == key.size() || value[key.size()] == '=');
}

const Flag* find_flag(std::span<const Flag> flags, std::string_view name, std::string_view value) {
  for (const Flag& one : flags)
    if (one.name == name && (one.key.empty() || has_key(value, one.key))) return &one;
  return nullptr;
}

// "--distrib". The launcher itself refuses what several names begin with.
const Flag* find_shortened(const FlagTable& table, std::string_view name) {
  if (table.switches.empty() || !name.starts_with("--")) return nullptr;
  const Flag* found = nullptr;
  for (const Flag& one : table.flags) {
    if (!one.name.starts_with(name)) continue;
    if (found != nullptr) return nullptr;
    found = &one;
  }
  return found;
}

// The flags of the table among `args`, each with its values.
std::vector<Given> read_flags(const FlagTable& table, const std::vector<std::string>& args) {
  std::vector<Given> found;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!args[i].starts_with('-') || args[i].size() < 2) continue;
    const Split split = split_flag(args[i], table);
    const std::string* next = i + 1 < args.size() ? &args[i + 1] : nullptr;
    const std::string value = split.joined ? *split.joined : next != nullptr ? *next : "";
    const Flag* flag = find_flag(table.flags, split.name, value);
    if (flag == nullptr) flag = find_flag(table.family, split.name, value);
    if (flag == nullptr) flag = find_shortened(table, split.name);
    if (flag == nullptr) continue;
    Given given{flag, args[i], split.joined, i, 0};
    // A switch that may carry a value ("-K", "-K0") has it joined or not at all.
    const bool optional_value = flag->name == "-K" || flag->name == "--kill-on-bad-exit";
    if (!split.joined && flag->words > 0 && !optional_value && next != nullptr) {
      given.value = *next;
      given.text += " " + *next;
      ++i;
      if (flag->words == 2 && next->find('=') == std::string::npos && i + 1 < args.size()) {
        *given.value += "=" + args[++i];
        given.text += " " + args[i];
      }
    }
    given.end = i + 1;
    found.push_back(std::move(given));
  }
  return found;
}

std::string bare(const std::string& value, std::string_view key) {
  return value.size() > key.size() && !key.empty() ? value.substr(key.size() + 1) : value;
}

// ---- one function for each thing that can be decided; nullopt: it agrees with the plan ------------------

using Found = std::optional<ArgClash>;

ArgClash clash(const Given& given, std::string ours, std::string holds, std::string follows,
               std::string instead, bool fatal) {
  return {given.text,         std::move(ours),    std::move(holds),
          std::move(follows), std::move(instead), fatal};
}

Found counts(const Given& given, int ours, std::string_view what, std::string_view option) {
  const std::string value = given.value.value_or("");
  if (parse_natural(value) == ours) return std::nullopt;
  return clash(
      given, counted(ours, what), value.empty() ? "nothing" : value,
      "ranks are told counts that are not so, and wait for one another or stop",
      fmt::format("{} {}, which hpclaunch plans with", option, value.empty() ? "N" : value), true);
}

Found host_names(const Given& given, const Plan& plan) {
  const std::string list = given.value.value_or("");
  std::vector<std::string> names;
  const Result<std::vector<std::string>> expanded = expand_hostlist(list);
  if (expanded && plan.launcher == "slurm") {  // which takes "n[1-2]" and keeps an order of its own
    names = *expanded;
    std::vector<std::string> ours = plan.hosts;
    std::sort(names.begin(), names.end());
    std::sort(ours.begin(), ours.end());
    if (names == ours) return std::nullopt;
    names = *expanded;
  } else {
    for (const std::string_view item : split(list, ',')) {
      const std::string name(item.substr(0, item.find(':')));
      if (names.empty() || names.back() != name) names.push_back(name);
    }
  }
  if (names == plan.hosts) return std::nullopt;
  return clash(given, fmt::format("{} from {}", counted(plan.nodes(), "node"), plan.hosts.front()),
               fmt::format("{}", fmt::join(names, ",")),
               "ranks start on other nodes than planned, and meet nobody at " + plan.hosts.front(),
               "--hostfile FILE, which hpclaunch reads", true);
}

Found host_file(const Given& given, const Plan& plan) {
  if (given.value && !plan.hosts_file.empty() && *given.value == plan.hosts_file)
    return std::nullopt;
  return clash(
      given, fmt::format("{} from {}", counted(plan.nodes(), "node"), plan.hosts.front()),
      given.flag->words == 0 ? "no rank on the launcher's own node"
                             : given.value.value_or("nothing"),
      fmt::format("the launcher chooses the nodes; unless they are the plan's in its order, "
                  "with {} first, the ranks do not meet",
                  plan.hosts.front()),
      "--hostfile FILE, which hpclaunch reads", false);
}

Found binding(const Given& given, const Plan& plan) {
  const std::string value = bare(given.value.value_or(""), given.flag->key);
  const bool nothing = value == "none" || value == "off";
  const bool by_launcher = plan.bind_via == BindVia::launcher;
  if (nothing && !by_launcher) return std::nullopt;
  const std::string ours = by_launcher                      ? "a list with the CPUs of each rank"
                           : plan.bind_via == BindVia::shim ? "no binding by the launcher"
                                                            : "no binding at all";
  const bool strict = plan.verify == Verify::strict && by_launcher;
  const std::string follows =
      plan.bind_via == BindVia::none   ? "ranks are bound although nobody was to bind them"
      : plan.bind_via == BindVia::shim ? "the shim binds each rank to the plan's CPUs after that"
      : strict                     ? "with --verify strict a rank bound otherwise does not start"
      : plan.verify == Verify::off ? "with --verify off nobody compares"
                                   : "the shim compares, says so, and mends each rank";
  return clash(given, ours,
               nothing ? "no binding by the launcher" : "the launcher's own reading of it", follows,
               "--bind-via shim, --bind-via none or --cpus-per-rank N", strict);
}

Found step(const Given& given, const Plan& plan) {
  const bool by_launcher = line::launcher_binds(plan) && plan.gpu_view != "launcher";
  return clash(given, "the whole of each node", "fewer CPUs",
               by_launcher ? "the launcher refuses CPUs of the plan that are not among them"
                           : "the shim cannot bind ranks to CPUs that are not among them",
               "--cpus-per-rank N", by_launcher && plan.launcher == "slurm");
}

Found order(const Given& given, const Plan& plan) {
  const std::string value = given.value.value_or("");
  const auto is = [&](std::string_view text) {
    return value == text || (value.starts_with(text) && value[text.size()] == ':');
  };
  const bool even = line::stretches(plan).size() == 1;
  // "block:cyclic" says in addition how CPUs are dealt inside a node, where the plan's masks hold.
  const bool packs = value.ends_with(",Pack") || value.ends_with(",pack");
  if (!given.flag->harmless.empty() && is(given.flag->harmless) && !packs) return std::nullopt;
  if (is("slot") || (even && is(fmt::format("ppr:{}:node", plan.max_local_size()))))
    return std::nullopt;
  if (given.flag->words == 0 && plan.max_local_size() == 1) return std::nullopt;
  return clash(given, "ranks in blocks, node after node", value.empty() ? "another order" : value,
               "ranks that sit elsewhere have the CPUs, devices and local numbers of another",
               "leave it out", plan.nodes() > 1);
}

// "4", "gpu:4", "gpu:a100:4", "nic:1,gpu:4": as many as the plan has devices in use, or more.
bool are_enough(const Given& given, const Plan& plan) {
  if (!given.value) return false;
  int last = -1;
  for (const NodeClass& one : plan.classes)
    for (const RankPlan& rank : one.ranks) {
      last = std::max(last, rank.device);
      for (const UnitRef& unit : rank.more_units) last = std::max(last, unit.device);
    }
  for (const std::string_view item : split(*given.value, ','))
    if (given.flag->name == "--gpus-per-node" || item.starts_with("gpu:"))
      if (parse_natural(item.substr(item.rfind(':') + 1)).value_or(0) > last) return true;
  return false;
}

Found devices(const Given& given, const Plan& plan) {
  if (plan.gpu_view.empty() || plan.gpu_view == "launcher") return std::nullopt;
  const bool counts_node = given.flag->name == "--gres" || given.flag->name == "--gpus-per-node";
  if (counts_node && are_enough(given, plan)) return std::nullopt;
  return clash(given, "the devices of the node for every rank",
               bare(given.value.value_or(""), given.flag->key),
               "ranks see fewer devices than the plan's numbers count, or in another order",
               "--gpu-view own", false);
}

// "ALL", "ALL,A=1", "A,B"
Found some_variables(const Given& given) {
  const std::string value = given.value.value_or("");
  bool plan_goes = false;
  for (const std::string_view item : split(value, ',')) {
    if (item == "ALL") return std::nullopt;
    plan_goes = plan_goes || item == "HPCLAUNCH_PLAN";
  }
  std::string shown;  // values may be secrets
  for (const std::string_view item : split(value, ',')) {
    if (!shown.empty()) shown += ',';
    shown += item.substr(0, item.find('='));
    if (item.find('=') != std::string_view::npos) shown += "=<hidden>";
  }
  Given named = given;
  if (shown != value) named.text = fmt::format("{} {}", given.flag->name, shown);
  return clash(named, "all variables", shown,
               plan_goes ? "variables of the plan that are not among them do not reach the ranks"
                         : "the plan does not reach the ranks, and none of them starts",
               "--unset NAME for each that shall not be passed on", !plan_goes);
}

Found no_variables(const Given& given) {
  if (given.flag->words > 0) {  // a name, or a pattern: what is before its first '*'
    constexpr std::string_view kPlan = "HPCLAUNCH_PLAN";
    std::string value = given.value.value_or("");
    if (value.starts_with('-')) value.erase(0, 1);  // Flux: --env=-PATTERN
    const std::size_t star = value.find('*');
    const bool meets =
        star == std::string::npos ? value == kPlan : kPlan.starts_with(value.substr(0, star));
    if (!meets) return std::nullopt;
  }
  return clash(given, "all variables", "none",
               "the plan does not reach ranks on other nodes, and none of those starts",
               "--unset NAME for each that shall not be passed on", true);
}

Found one_variable(const Given& given, const Plan& plan) {
  const std::string value = given.value.value_or("");
  if (plan.launcher == "flux" && value.starts_with('-')) return no_variables(given);
  const std::size_t equals = value.find('=');
  if (equals == std::string::npos) return std::nullopt;  // passed on as it is
  const std::string name = value.substr(0, equals);
  const std::string theirs = value.substr(equals + 1);
  const Setting* setting = plan.find_env(name);
  const bool is_plan = name == "HPCLAUNCH_PLAN";
  if (!is_plan && setting == nullptr) return std::nullopt;
  const auto* ours = is_plan ? nullptr : std::get_if<std::string>(&setting->value());
  if (ours != nullptr && *ours == theirs) return std::nullopt;
  const bool by_rank = !is_plan && (std::holds_alternative<PerRank>(setting->value()) ||
                                    std::holds_alternative<RankFact>(setting->value()));
  const bool secret = is_secret(name);
  ArgClash found = clash(
      given,
      is_plan           ? "the plan in HPCLAUNCH_PLAN"
      : by_rank         ? name + " for each rank"
      : ours == nullptr ? name + " unset"
                        : fmt::format("{}={}", name, secret ? "<hidden>" : *ours),
      by_rank ? name + " for each rank" : fmt::format("{}={}", name, secret ? "<hidden>" : theirs),
      is_plan   ? "no rank starts"
      : by_rank ? "the shim sets it at each rank, yours is lost"
                : "explain and verify show the plan's value, ranks have yours",
      is_plan || by_rank ? "leave it out" : fmt::format("--set {}=...", name), is_plan);
  if (secret) found.flag = given.text.substr(0, given.text.find(name)) + name + "=<hidden>";
  return found;
}

Found on_failure(const Given& given) {
  return clash(given, "one failing rank ends the job", "another rule",
               "the other ranks may go on, or be ended although none has failed", "leave it out",
               false);
}

Found errors(const Given& given, const Plan& plan) {
  if (!plan.supervise) return std::nullopt;
  const bool copies =
      given.flag->name == "output-filename";  // of Open MPI, which else shows it, too
  if (copies && given.value.value_or("").find(":nocopy") == std::string::npos) return std::nullopt;
  return clash(
      given, "the ranks' standard error read by hpclaunch", given.value.value_or("a file"),
      "hpclaunch does not hear how ranks end: their first failure stays unknown, and a job that "
      "ended well counts as lost",
      "--no-supervise, or redirect inside the program", false);
}

Found judge(const Given& given, const Plan& plan) {
  const Flag& flag = *given.flag;
  const bool switched_on = flag.decides == Decides::failure && flag.words > 0 && !given.value;
  if (switched_on) return std::nullopt;
  if (!flag.harmless.empty() && given.value && bare(*given.value, flag.key) == flag.harmless)
    return std::nullopt;
  switch (flag.decides) {
    case Decides::ranks:
      return counts(given, plan.world_size(), "rank", "-n");
    case Decides::per_node:
      return counts(given, plan.max_local_size(), "rank", "--ppn");
    case Decides::nodes:
      return counts(given, plan.nodes(), "node", "-N");
    case Decides::hosts:
      return host_names(given, plan);
    case Decides::host_file:
      return host_file(given, plan);
    case Decides::binding:
      return binding(given, plan);
    case Decides::step:
      return step(given, plan);
    case Decides::order:
      return order(given, plan);
    case Decides::devices:
      return devices(given, plan);
    case Decides::no_env:
      return no_variables(given);
    case Decides::some_env:
      return some_variables(given);
    case Decides::one_env:
      return one_variable(given, plan);
    case Decides::failure:
      return on_failure(given);
    case Decides::errors:
      return errors(given, plan);
    case Decides::nothing:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::vector<ArgClash> arg_clashes(const Plan& plan) {
  std::vector<ArgClash> clashes;
  const FlagTable* table = find_flags(plan.launcher);
  if (table == nullptr) return clashes;
  for (const Given& given : read_flags(*table, plan.launcher_args))
    if (Found found = judge(given, plan)) clashes.push_back(std::move(*found));
  return clashes;
}

std::vector<std::string> without_placement(std::string_view launcher,
                                           std::vector<std::string> args) {
  const FlagTable* table = find_flags(launcher);
  if (table == nullptr) return args;
  const std::vector<Given> all = read_flags(*table, args);
  for (auto given = all.rbegin(); given != all.rend(); ++given) {
    const Decides what = given->flag->decides;
    const bool places = what == Decides::ranks || what == Decides::per_node ||
                        what == Decides::nodes || what == Decides::binding ||
                        what == Decides::step || what == Decides::order;
    if (places)
      args.erase(args.begin() + static_cast<std::ptrdiff_t>(given->first),
                 args.begin() + static_cast<std::ptrdiff_t>(given->end));
  }
  return args;
}

}  // namespace hpclaunch
