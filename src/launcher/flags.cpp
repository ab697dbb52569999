// Arguments of the user for the launcher, compared with the plan.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "hpclaunch/hosts.h"
#include "hpclaunch/programs.h"
#include "hpclaunch/text.h"
#include "launcher/line.h"

namespace hpclaunch {

namespace {

using launcher::launcher_binds;
using launcher::stretches;

struct Given : GivenOption {
  const Launcher* launcher = nullptr;
  std::string text;  // as typed, with its values

  bool is_flag() const { return option.takes == Takes::nothing || option.takes == Takes::joined; }
};

// Those that the launcher's grammar has.
std::vector<Given> read_flags(std::string_view name, const std::vector<std::string>& args) {
  const Launcher* launcher = find_launcher(name);
  if (launcher == nullptr || launcher->grammar.empty()) return {};
  std::vector<Given> found;
  for (GivenOption& one :
       read_options(grammars_of(launcher->grammar), args, 0, Strays::skip).options) {
    if (!one.known) continue;
    const auto begin = args.begin() + static_cast<std::ptrdiff_t>(one.first);
    const std::size_t words = one.end - one.first;
    std::string text = joined(std::span(begin, words), " ");
    found.push_back({std::move(one), launcher, std::move(text)});
  }
  return found;
}

std::string without_key(const std::string& value, std::string_view key) {
  return value.size() > key.size() && !key.empty() ? value.substr(key.size() + 1) : value;
}

// ---- one function for each kind of decision; nullopt: the flag agrees with the plan --------------------

using Found = std::optional<Diagnostic>;

struct Clash {
  std::string planned;
  std::string now;
  std::string effect;
  std::string fix;
  bool fatal = false;  // the job cannot run as planned
};

Diagnostic clash(const Given& given, const Clash& what) {
  return {"launcher-arg-clash", what.fatal ? Severity::error : Severity::warning,
          fmt::format("--launcher-arg {}: planned {}, now {}: {}", given.text, what.planned,
                      what.now, what.effect),
          what.fix};
}

constexpr std::string_view kPlanVariable = "HPCLAUNCH_PLAN";
constexpr const char* kKeepVariables = "--unset NAME for each variable to keep from the ranks";

Found counts(const Given& given, const Plan& plan) {
  const Decides decides = given.option.decides;
  const auto [planned, what, option] = decides == Decides::ranks
                                           ? std::tuple(plan.world_size(), "rank", "-n")
                                       : decides == Decides::per_node || decides == Decides::per_set
                                           ? std::tuple(plan.max_local_size(), "rank", "--ppn")
                                           : std::tuple(plan.nodes(), "node", "-N");
  const std::string value = given.value;
  if (parse_natural(value) == planned) return std::nullopt;
  return clash(
      given, {counted(planned, what), value.empty() ? "no number" : value,
              "ranks get wrong counts, and wait for one another or stop",
              fmt::format("{} {}, which hpclaunch plans with", option, value.empty() ? "N" : value),
              true});
}

std::string planned_nodes(const Plan& plan) {
  return fmt::format("{} from {}", counted(plan.nodes(), "node"), plan.hosts.names.front());
}

Found host_names(const Given& given, const Plan& plan) {
  const std::string list = given.value;
  HostNames names;
  if (const auto expanded = expand_hostlist(list); expanded && given.launcher->sorts_hosts) {
    names = *expanded;
    if (std::is_permutation(names.begin(), names.end(), plan.hosts.names.begin(),
                            plan.hosts.names.end()))
      return std::nullopt;
  } else {
    for (const std::string_view item : split(list, ',')) {
      const std::string name(item.substr(0, item.find(':')));
      if (names.empty() || names.back() != name) names.push_back(name);
    }
  }
  if (names == plan.hosts.names) return std::nullopt;
  return clash(
      given, {planned_nodes(plan), fmt::format("{}", fmt::join(names, ",")),
              "ranks start on other nodes, away from the rendezvous on " + plan.hosts.names.front(),
              "--hostfile FILE, which hpclaunch reads", true});
}

Found host_file(const Given& given, const Plan& plan) {
  if (!plan.hosts.file.empty() && given.value == plan.hosts.file) return std::nullopt;
  return clash(given,
               {planned_nodes(plan),
                given.is_flag()   ? "no rank on the launcher's own node"
                : given.has_value ? given.value
                                  : "nothing",
                fmt::format("the launcher chooses the nodes; the rendezvous needs the planned "
                            "order, with {} first",
                            plan.hosts.names.front()),
                "--hostfile FILE, which hpclaunch reads"});
}

Found binding(const Given& given, const Plan& plan) {
  const std::string value = without_key(given.value, given.option.key);
  const bool nothing = value == "none" || value == "off";
  const BindVia via = plan.placement.bind_via;
  const bool by_launcher = via == BindVia::launcher;
  if (nothing && !by_launcher) return std::nullopt;
  const bool strict = plan.supervision.verify == Verify::strict && by_launcher;
  return clash(given, {by_launcher            ? "a CPU list for each rank"
                       : via == BindVia::shim ? "no binding by the launcher"
                                              : "no binding",
                       nothing ? "no binding by the launcher" : "a binding of the launcher's own",
                       via == BindVia::none   ? "ranks are bound despite --bind-via none"
                       : via == BindVia::shim ? "the shim then binds each rank as planned"
                       : strict ? "with --verify strict, a rank with other CPUs does not start"
                       : plan.supervision.verify == Verify::off
                           ? "with --verify off, the shim does not compare"
                           : "the shim warns and rebinds each rank",
                       "--bind-via shim, --bind-via none or --cpus-per-rank N", strict});
}

Found step(const Given& given, const Plan& plan) {
  const bool by_launcher = launcher_binds(plan) && plan.placement.gpu_view != "launcher";
  return clash(given, {"the whole of each node", "fewer CPUs",
                       by_launcher ? "the launcher refuses planned CPUs outside of the step"
                                   : "the shim cannot bind ranks to CPUs outside of the step",
                       "--cpus-per-rank N", by_launcher && given.launcher->strict_step});
}

Found order(const Given& given, const Plan& plan) {
  const std::string value = given.value;
  const auto is = [&](std::string_view text) {
    return value == text || (value.starts_with(text) && value[text.size()] == ':');
  };
  const bool even = stretches(plan).size() == 1;
  // "block:cyclic" adds an order of CPUs inside a node, where the plan's masks decide.
  const bool packs = value.ends_with(",Pack") || value.ends_with(",pack");
  if (!given.option.harmless.empty() && is(given.option.harmless) && !packs) return std::nullopt;
  if (is("slot") || (even && is(fmt::format("ppr:{}:node", plan.max_local_size()))))
    return std::nullopt;
  if (given.is_flag() && plan.max_local_size() == 1) return std::nullopt;
  return clash(given, {"ranks in blocks, node by node", value.empty() ? "another order" : value,
                       "moved ranks get the CPUs, devices and local ranks of others", "omit it",
                       plan.nodes() > 1});
}

// As many devices as the plan uses, or more.
bool are_enough(const Given& given, const Plan& plan) {
  int last = -1;
  for (const NodeClass& one : plan.placement.classes)
    for (const RankPlan& rank : one.ranks)
      for (const Slot& unit : rank.slots) last = std::max(last, unit.device);
  const std::string value = given.value;
  for (const std::string_view item : split(value, ','))
    if (given.option.decides == Decides::node_gpus || item.starts_with("gpu:"))
      if (parse_natural(item.substr(item.rfind(':') + 1)).value_or(0) > last) return true;
  return false;
}

Found devices(const Given& given, const Plan& plan) {
  if (plan.placement.gpu_view.empty() || plan.placement.gpu_view == "launcher") return std::nullopt;
  if (given.option.decides != Decides::devices && are_enough(given, plan)) return std::nullopt;
  const std::string value = without_key(given.value, given.option.key);
  return clash(given,
               {"all devices of the node for every rank", value.empty() ? "others" : value,
                "ranks see fewer devices than planned, or in another order", "--gpu-view own"});
}

// "ALL", "ALL,A=1", "A,B". Values are not shown: they may be secrets.
Found some_variables(const Given& given, const Plan&) {
  const std::string value = given.value;
  const std::vector<std::string_view> items = split(value, ',');
  if (std::ranges::find(items, "ALL") != items.end()) return std::nullopt;
  const bool has_plan = std::ranges::find(items, kPlanVariable) != items.end();
  std::vector<std::string> shown;
  for (const std::string_view item : items) {
    const std::size_t equals = item.find('=');
    shown.push_back(std::string(item.substr(0, equals)) +
                    (equals == std::string_view::npos ? "" : "=<hidden>"));
  }
  const std::string text = fmt::format("{}", fmt::join(shown, ","));
  Given named = given;
  if (text != value) named.text.replace(named.text.rfind(value), value.size(), text);
  return clash(named, {"all variables", text,
                       has_plan ? "other variables of the plan do not reach the ranks"
                                : "the plan does not reach the ranks, and none of them starts",
                       kKeepVariables, !has_plan});
}

// The value is a name, or the beginning of names and a '*'; a flag without a value removes all.
Found no_variables(const Given& given, const Plan&) {
  const bool edits = given.option.decides == Decides::edit_env;  // with a '-' in front
  const std::string pattern = given.value.substr(edits ? 1 : 0);
  const std::size_t star = pattern.find('*');
  const bool meets = given.is_flag() || (star == std::string::npos
                                             ? pattern == kPlanVariable
                                             : kPlanVariable.starts_with(pattern.substr(0, star)));
  if (!meets) return std::nullopt;
  return clash(given, {"all variables", "none",
                       "the plan does not reach ranks on other nodes, and none of those starts",
                       kKeepVariables, true});
}

Found one_variable(const Given& given, const Plan& plan) {
  const std::string value = given.value;
  if (given.option.decides == Decides::edit_env && value.starts_with('-'))
    return no_variables(given, plan);
  const std::size_t equals = value.find('=');
  if (equals == std::string::npos) return std::nullopt;  // passed on as it is
  const std::string name = value.substr(0, equals);
  const bool secret = is_secret(name, value.substr(equals + 1));
  Given shown = given;
  if (secret) shown.text = given.text.substr(0, given.text.find(name)) + name + "=<hidden>";
  if (name == kPlanVariable)
    return clash(shown, {"HPCLAUNCH_PLAN", "another one", "no rank starts", "omit it", true});
  const Setting* setting = plan.find_env(name);
  if (setting == nullptr) return std::nullopt;
  if (!std::holds_alternative<std::string>(setting->value()) &&
      !std::holds_alternative<Unset>(setting->value()))
    return clash(shown, {name + " for each rank", "one value",
                         "the shim sets it at each rank, and yours is lost", "omit it"});
  const auto* planned = std::get_if<std::string>(&setting->value());
  const std::string theirs = value.substr(equals + 1);
  if (planned != nullptr && *planned == theirs) return std::nullopt;
  const auto show = [&](const std::string& text) {
    return fmt::format("{}={}", name, secret ? "<hidden>" : text);
  };
  return clash(shown, {planned == nullptr ? name + " unset" : show(*planned), show(theirs),
                       "explain and verify show the planned value, ranks get yours",
                       fmt::format("--set {}=...", name)});
}

Found on_failure(const Given& given, const Plan&) {
  if (!given.has_value && !given.option.harmless.empty()) return std::nullopt;  // switched on
  return clash(given, {"one failed rank stops the job", "another rule",
                       "other ranks may continue, or stop although none has failed", "omit it"});
}

struct Kind {
  Decides decides;
  Found (*compare)(const Given&, const Plan&);
  bool places = false;  // ranks, their nodes or CPUs: not kept for a start with another layout
};

constexpr Kind kKinds[] = {{Decides::ranks, counts, true},      {Decides::per_node, counts, true},
                           {Decides::nodes, counts, true},      {Decides::sets, counts, true},
                           {Decides::per_set, counts, true},    {Decides::hosts, host_names},
                           {Decides::host_file, host_file},     {Decides::binding, binding, true},
                           {Decides::step, step, true},         {Decides::order, order, true},
                           {Decides::devices, devices},         {Decides::node_gpus, devices},
                           {Decides::node_gres, devices},       {Decides::no_env, no_variables},
                           {Decides::some_env, some_variables}, {Decides::one_env, one_variable},
                           {Decides::edit_env, one_variable},   {Decides::failure, on_failure}};

// nullptr for Decides::nothing.
const Kind* kind_of(const Given& given) {
  for (const Kind& kind : kKinds)
    if (kind.decides == given.option.decides) return &kind;
  return nullptr;
}

Found compare(const Given& given, const Plan& plan) {
  const Option& option = given.option;
  if (!option.harmless.empty() && given.has_value &&
      without_key(given.value, option.key) == option.harmless)
    return std::nullopt;
  const Kind* kind = kind_of(given);
  return kind == nullptr ? std::nullopt : kind->compare(given, plan);
}

}  // namespace

std::vector<Diagnostic> arg_clashes(const Plan& plan) {
  std::vector<Diagnostic> clashes;
  for (const Given& given : read_flags(plan.launch.launcher, plan.launch.launcher_args))
    if (Found found = compare(given, plan)) clashes.push_back(std::move(*found));
  return clashes;
}

std::vector<std::string> without_placement(std::string_view launcher,
                                           std::vector<std::string> args) {
  std::vector<bool> places(args.size());
  for (const Given& given : read_flags(launcher, args))
    if (const Kind* kind = kind_of(given); kind != nullptr && kind->places)
      std::fill_n(places.begin() + static_cast<std::ptrdiff_t>(given.first),
                  given.end - given.first, true);
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < args.size(); ++i)
    if (!places[i]) kept.push_back(std::move(args[i]));
  return kept;
}

}  // namespace hpclaunch
