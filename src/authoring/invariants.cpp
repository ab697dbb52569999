#include "authoring/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "authoring/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

constexpr int kMostNodes = 20'000;  // highest node count that is tried
constexpr int kEnoughExamples = 2;
constexpr int kRepeatEach = 5;  // every fifth rank count is planned twice

/// What was asked for, as it would be typed.
struct Asked {
  std::string stack;
  std::string mode;
  std::string view;
  int nodes = 1;
  int ranks = 1;
  int devices = 1;  // of each rank

  std::string typed(const std::string& node_type) const {
    std::string text = fmt::format("--node-type {}", node_type);
    if (!stack.empty()) text += " --stack " + stack;
    if (!mode.empty()) text += " --device-mode " + mode;
    if (!view.empty()) text += " --gpu-view " + view;
    if (devices > 1) text += fmt::format(" --devices-per-rank {}", devices);
    return text + fmt::format(" -N {} --ppn {}", nodes, ranks);
  }
};

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

// Node counts at which a rule may start or stop to apply.
std::set<int> sizes_of(const Profile& profile) {
  std::set<int> sizes;
  const auto add = [&](const When& when) {
    for (const Test& test : when) {
      if (test.fact != "nodes") continue;
      for (const std::string& value : test.values)
        if (const auto number = parse_natural(value, kMostNodes - 1))
          for (const long n : {*number, *number + 1})
            if (n > 1) sizes.insert(static_cast<int>(n));
    }
  };
  for (const Rule& rule : profile.rules) add(rule.when);
  for (const Binding& binding : profile.bindings) add(binding.when);
  if (sizes.empty()) sizes.insert(2);
  return sizes;
}

/// All plans for one kind of node.
class Sweep {
 public:
  Sweep(const Profile& profile, const NodeModel& model, const Launcher& launcher,
        InvariantCount& count)
      : context_(make_context(profile, model, launcher)), count_(count) {
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
    input_.request.command = {"python", "train.py"};
  }

  void all() {
    const Profile& profile = *context_.profile;
    const std::vector<std::string> views = views_of(profile, *context_.model);
    const int pus = context_.model->topology.all_pus().count();
    std::vector<std::string> stacks = names_of(profile.stacks);
    std::vector<std::string> modes = names_of(profile.device_modes);
    for (std::vector<std::string>* names : {&stacks, &modes})
      if (names->empty()) names->emplace_back();
    for (const std::string& stack : stacks)
      for (const std::string& mode : modes) {
        hosts(1);
        for (int ranks = 1; ranks <= pus; ++ranks)
          for (const std::string& view : views)
            one({stack, mode, view, 1, ranks}, view == views.front() && ranks % kRepeatEach == 1);
        const int units = units_of(context_, mode);
        for (int each = 2; each <= units; ++each)  // the last: one process that has the node
          for (int ranks = 1; ranks * each <= units; ++ranks)
            one({stack, mode, "", 1, ranks, each}, false);
        if (!input_.launcher.multi_node) continue;
        const int devices = static_cast<int>(context_.model->topology.devices.size());
        for (const int nodes : sizes_of(profile)) {
          hosts(nodes);
          for (const int ranks : {1, std::max(2, devices), std::max(3, 2 * devices)})
            one({stack, mode, views.front(), nodes, ranks}, true);
        }
      }
  }

 private:
  void hosts(int nodes) {
    input_.hosts = {};
    for (int n = 1; n <= nodes; ++n) input_.hosts.push_back(fmt::format("node{:05}", n));
  }

  void one(const Asked& asked, bool twice) {
    input_.request.nodes = asked.nodes;
    input_.request.ranks_per_node = asked.ranks;
    input_.request.stack = asked.stack;
    input_.request.device_mode = asked.mode;
    input_.request.gpu_view = asked.view;
    input_.request.devices_per_rank.reset();
    if (asked.devices > 1) input_.request.devices_per_rank = asked.devices;
    const Result<Plan> plan = make_plan(input_);
    ++count_.plans;
    if (!plan) {
      ++count_.refused;
      ++count_.checked;
      if (plan.error().message.empty()) add_violation("refusal", "refused without a reason", asked);
      return;
    }
    if (reports(*plan, "far-from-device")) ++count_.far;
    const Result<Plan> again = twice ? make_plan(input_) : Result<Plan>(Error{});
    const Sample one{asked.ranks, asked.nodes, asked.mode, &*plan, again ? &*again : nullptr};
    if (twice && !again)
      add_violation("repeatable", "the second plan of the same input was refused", asked);
    for (const Invariant& invariant : kInvariants) {
      if (invariant.needs_again && !again) continue;
      ++count_.checked;
      const std::string found = invariant.violation(context_, one);
      if (!found.empty()) add_violation(invariant.name, found, asked);
    }
  }

  // Two examples are printed, the rest are counted.
  void add_violation(const std::string& invariant, const std::string& found, const Asked& asked) {
    Check& check = *std::ranges::find_if(
        count_.checks, [&](const Check& one) { return one.name.starts_with(invariant + ":"); });
    const int earlier = ++violations_[invariant] - kEnoughExamples;
    if (earlier <= 1)
      check.diagnostics.push_back({"invariant-" + invariant, Severity::error,
                                   fmt::format("{}: {}", asked.typed(context_.model->name), found),
                                   "", check.where});
    if (earlier > 0)
      check.diagnostics.back().message =
          fmt::format("{} more plans for node type {} violate this invariant",
                      with_separators(earlier), context_.model->name);
  }

  InvariantContext context_;
  PlanInput input_;
  InvariantCount& count_;
  std::map<std::string, int> violations_;
};

}  // namespace

InvariantCount check_invariants(const Profile& profile) {
  InvariantCount count;
  count.checks.push_back(
      {"invariant", "refusal: a plan, or a reason for the refusal", profile.where});
  for (const Invariant& invariant : kInvariants)
    count.checks.push_back(
        {"invariant", fmt::format("{}: {}", invariant.name, invariant.what), profile.where});
  const Launcher* launcher = find_launcher(profile.launcher.empty() ? "local" : profile.launcher);
  if (launcher == nullptr) {
    count.checks.front().diagnostics.push_back(
        {"invariant-refusal", Severity::error,
         fmt::format("unknown launcher \"{}\"", profile.launcher), "", profile.where});
    return count;
  }
  for (const NodeModel& model : profile.nodes) Sweep(profile, model, *launcher, count).all();
  return count;
}

}  // namespace hpclaunch::authoring
