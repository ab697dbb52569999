#include "authoring/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "authoring/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

constexpr int kMostNodes = 20'000;  // highest node count that is tried
constexpr int kEveryCount = 32;     // up to here every rank count is tried
constexpr int kEnoughExamples = 2;
constexpr int kRepeatEach = 16;  // as many rank counts of which one is planned twice

std::string typed(const Request& asked) {
  const auto text = [](std::optional<int> number) { return number ? fmt::to_string(*number) : ""; };
  const std::pair<const char*, std::string> options[] = {
      {"--node-type", asked.node_type},
      {" --launcher", asked.launcher},
      {" --stack", asked.stack},
      {" --device-mode", asked.device_mode},
      {" --gpu-view", asked.gpu_view},
      {" --devices-per-rank", text(asked.devices_per_rank)},
      {" -N", text(asked.nodes)},
      {" -n", text(asked.ranks)},
      {" --ppn", text(asked.ranks_per_node)}};
  std::string line;
  for (const auto& [option, value] : options)
    if (!value.empty()) line += fmt::format("{} {}", option, value);
  return line;
}

// The view `launcher` only where the profile uses it.
std::vector<std::string> views_of(const Profile& profile, const NodeModel& model) {
  if (model.topology.devices.empty()) return {""};
  std::vector<std::string> views = {"all", "own"};
  bool asked = profile.gpu_view == "launcher";
  for (const Rule& rule : profile.rules)
    for (const Test& test : rule.when)
      asked = asked || (test.fact == "gpu_view" &&
                        std::count(test.values.begin(), test.values.end(), "launcher") > 0);
  if (asked) views.emplace_back("launcher");
  return views;
}

// Numbers at which a rule may start or stop to apply.
std::set<int> turning_points(const Profile& profile, std::string_view fact, long most) {
  std::set<int> points;
  const auto add = [&](const When& when) {
    for (const Test& test : when) {
      if (test.fact != fact) continue;
      for (const std::string& value : test.values)
        if (const auto number = parse_natural(value, most - 1))
          for (const long n : {*number, *number + 1})
            if (n > 1) points.insert(static_cast<int>(n));
    }
  };
  for (const Rule& rule : profile.rules) add(rule.when);
  for (const Binding& binding : profile.bindings) add(binding.when);
  return points;
}

// Every rank count of a small node. Above kEveryCount those that share the units evenly, and those at which the width of
// an equal share of the cores changes: as many as the square root of the cores, where each count would make the whole
// sweep cubic.
std::set<int> rank_counts(const Profile& profile, const Topology& node, int units) {
  const int pus = node.all_pus().count();
  std::set<int> counts = turning_points(profile, "ranks_per_node", pus);
  for (int ranks = 1; ranks <= std::min(pus, kEveryCount); ++ranks) counts.insert(ranks);
  const int usable = cores_of(node, node.allowed).count();
  for (const int all : {usable, static_cast<int>(node.cores.size()), pus})
    for (int width = 1; all / width > kEveryCount; ++width)
      for (const int ranks : {all / width, all / width + 1, all / width / units * units})
        if (ranks > 0 && ranks <= pus) counts.insert(ranks);
  return counts;
}

/// All plans for one kind of node.
class Sweep {
 public:
  Sweep(const std::shared_ptr<const Profile>& shared, const NodeModel& model,
        const Launcher& launcher, Suite& suite)
      : shared_(shared), context_(make_context(*shared, model, launcher)), suite_(suite) {
    const Profile& profile = *shared;
    input_.node = model.topology;
    input_.profile = &profile;
    input_.profile_why = "named for the invariants";
    input_.model = &model;
    input_.job.user = "user";
    input_.job.whole_allocation = true;
    input_.hosts_why = "made up";
    input_.launcher = launcher.traits;
    input_.launcher_why = "the profile's";
    input_.rendezvous = {"node00001", "the first host", candidate_ports(profile.name, 1, 0).front(),
                         "made up"};
    input_.request = asked_;
    input_.command = {"python", "train.py"};
    asked_->node_type = model.name;
  }

  void all() {
    const Profile& profile = *context_.profile;
    const std::vector<std::string> views = views_of(profile, *context_.model);
    std::set<int> sizes = turning_points(profile, "nodes", kMostNodes);
    if (sizes.empty()) sizes.insert(2);
    const bool small = context_.model->topology.all_pus().count() <= kEveryCount;
    std::vector<std::string> stacks = names_of(profile.stacks);
    std::vector<std::string> modes = names_of(profile.device_modes);
    for (std::vector<std::string>* names : {&stacks, &modes})
      if (names->empty()) names->emplace_back();
    for (const std::string& stack : stacks)
      for (const std::string& mode : modes) {
        asked_->stack = stack;
        asked_->device_mode = mode;
        hosts(1);
        const int units = units_of(context_, mode);
        for (const int ranks : rank_counts(profile, context_.model->topology, std::max(1, units)))
          for (const std::string& view : views)  // views differ in what of the units a rank sees
            if (small || view == views.front() || ranks <= 2 * units || ranks % units == 0)
              one(ranks, view, view == views.front() && ranks % kRepeatEach == 1);
        for (int each = 2; each <= units; ++each)  // the last: one process that has the node
          for (int ranks = 1; ranks * each <= units; ++ranks) one(ranks, "", false, each);
        for (int ranks = 1; ranks <= units; ++ranks) one(ranks, "", false, 0);  // CPUs alone
        if (!input_.launcher.multi_node) continue;
        const int devices = static_cast<int>(context_.model->topology.devices.size());
        for (const int nodes : sizes) {
          hosts(nodes);
          for (const int ranks : {1, std::max(2, devices), std::max(3, 2 * devices)})
            one(ranks, views.front(), true);
        }
      }
  }

  // A few shapes under every launcher, outside of jobs and in one of the profile's batch system.
  void identities(const Scheduler* system) {
    if (system != nullptr) job_ = fmt::format(" (in a {} job)", system->title);
    const EnvSnapshot env = misleading_environment(system);
    CaseWorld said;
    said.env.insert(env.values().begin(), env.values().end());
    const int most = context_.model->topology.allowed.count() > 1 ? 2 : 1;
    Request asked;
    asked.node_type = context_.model->name;
    asked.command = input_.command;
    for (const Launcher& launcher : launchers())
      for (const auto& [nodes, ranks] : {std::pair(1, most), {2, 2 * most}, {2, most + 1}}) {
        if (nodes > 1 && !launcher.traits.multi_node) continue;
        asked.nodes = nodes;
        asked.ranks = ranks;
        asked.launcher = launcher.name;
        const auto got = job::prepare(asked, job::made_up_world(shared_, said), job::Purpose::show);
        if (got)
          check(Invariant::Of::identity, {&asked, &got->plan, nullptr, &launcher, &env});
        else
          refused(got.error(), asked);
      }
  }

 private:
  void refused(const Error& error, const Request& asked) {
    ++suite_.plans;
    ++suite_.refused;
    ++suite_.invariants;
    if (error.message.empty()) add_violation("refusal", "refused without a reason", asked);
  }

  void check(Invariant::Of of, const Sample& one) {
    if (of != Invariant::Of::pair) ++suite_.plans;
    for (const Invariant& invariant : kInvariants) {
      if (invariant.of != of) continue;
      ++suite_.invariants;
      const std::string found = invariant.violation(context_, one);
      if (!found.empty()) add_violation(invariant.name, found, *one.asked);
    }
  }

  void hosts(int nodes) {
    asked_->nodes = nodes;
    input_.hosts = {};
    for (int n = 1; n <= nodes; ++n) input_.hosts.push_back(fmt::format("node{:05}", n));
  }

  void one(int ranks, const std::string& view, bool twice, std::optional<int> devices = {}) {
    Request& asked = *asked_;
    asked.ranks_per_node = ranks;
    asked.gpu_view = view;
    asked.devices_per_rank = devices;
    const Result<Plan> plan = make_plan(input_);
    if (!plan) return refused(plan.error(), asked);
    if (reports(*plan, "far-from-device")) ++suite_.far;
    check(Invariant::Of::plan, {&asked, &*plan});
    if (!twice) return;
    const Result<Plan> again = make_plan(input_);
    if (again)
      check(Invariant::Of::pair, {&asked, &*plan, &*again});
    else
      add_violation("repeatable", "the second plan of the same input was refused", asked);
  }

  // Two examples are printed, the rest are counted.
  void add_violation(const std::string& invariant, const std::string& found, const Request& asked) {
    Check& check = *std::ranges::find_if(suite_.checks, [&](const Check& one) {
      return one.kind == "invariant" && one.name.starts_with(invariant + ":");
    });
    const int earlier = ++violations_[invariant] - kEnoughExamples;
    if (earlier <= 1)
      check.diagnostics.push_back({"invariant-" + invariant, Severity::error,
                                   fmt::format("{}{}: {}", typed(asked), job_, found), "",
                                   check.where});
    if (earlier > 0)
      check.diagnostics.back().message =
          fmt::format("{} more plans for node type {} violate this invariant",
                      with_separators(earlier), context_.model->name);
  }

  std::shared_ptr<const Profile> shared_;
  InvariantContext context_;
  PlanInput input_;
  std::shared_ptr<Request> asked_ = std::make_shared<Request>();  ///< of `input_`
  Suite& suite_;
  std::map<std::string, int> violations_;
  std::string job_;  ///< the batch system of identities, for people
};

}  // namespace

void check_invariants(const std::shared_ptr<const Profile>& shared, Suite& suite) {
  const Profile& profile = *shared;
  const std::size_t first = suite.checks.size();
  suite.checks.push_back(
      {"invariant", "refusal: a plan, or a reason for the refusal", profile.where});
  for (const Invariant& invariant : kInvariants)
    suite.checks.push_back(
        {"invariant", fmt::format("{}: {}", invariant.name, invariant.what), profile.where});
  const Launcher* launcher =
      find_launcher(profile.launcher.empty() ? kLocalLauncher : profile.launcher);
  if (launcher == nullptr) {
    suite.checks[first].diagnostics.push_back(
        {"invariant-refusal", Severity::error,
         fmt::format("unknown launcher \"{}\"", profile.launcher), "", profile.where});
    return;
  }
  for (const NodeModel& model : profile.nodes) {
    Sweep sweep(shared, model, *launcher, suite);
    sweep.all();
    sweep.identities(nullptr);
    if (const Scheduler* own = find_row<Scheduler>(profile.scheduler)) sweep.identities(own);
  }
}

}  // namespace hpclaunch::authoring
