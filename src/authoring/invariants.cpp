#include "authoring/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "authoring/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr int kMostNodes = 20'000;  // that a size in a rule is tried at
constexpr int kEnoughExamples = 2;
constexpr int kRepeatEach = 5;  // every fifth rank count is planned twice

/// What was asked for, as it would be typed.
struct Asked {
  std::string stack;
  std::string mode;
  std::string view;
  int nodes = 1;
  int ranks = 1;

  std::string typed(const std::string& node_type) const {
    std::string text = fmt::format("--node-type {}", node_type);
    if (!stack.empty()) text += " --stack " + stack;
    if (!mode.empty()) text += " --device-mode " + mode;
    if (!view.empty()) text += " --gpu-view " + view;
    return text + fmt::format(" -N {} --ppn {}", nodes, ranks);
  }
};

template <class Entry>
std::vector<std::string> names_or_none(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.name);
  if (names.empty()) names.emplace_back();
  return names;
}

// The launcher's own view only where the site means it.
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

// Sizes at which a rule may begin or cease to hold.
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
class Holding {
 public:
  Holding(const Profile& profile, const NodeModel& model, const Launcher& launcher, LawCount& count)
      : bench_(make_bench(profile, model, launcher)), count_(count) {
    input_.node = model.topology;
    input_.profile = &profile;
    input_.profile_why = "named for the laws";
    input_.model = &model;
    input_.job.user = "user";
    input_.job.whole_allocation = true;
    input_.hosts_why = "made up";
    input_.launcher = launcher.traits();
    input_.launcher_why = "the profile's";
    input_.rendezvous = {"node00001", "the first host", candidate_ports(profile.name, 1, 0).front(),
                         "made up"};
    input_.options.command = {"python", "train.py"};
  }

  void all() {
    const Profile& profile = *bench_.profile;
    const std::vector<std::string> views = views_of(profile, *bench_.model);
    const int pus = bench_.model->topology.all_pus().count();
    for (const std::string& stack : names_or_none(profile.stacks))
      for (const std::string& mode : names_or_none(profile.device_modes)) {
        hosts(1);
        for (int ranks = 1; ranks <= pus; ++ranks)
          for (const std::string& view : views)
            one({stack, mode, view, 1, ranks}, view == views.front() && ranks % kRepeatEach == 1);
        if (!input_.launcher.multi_node) continue;
        const int devices = static_cast<int>(bench_.model->topology.devices.size());
        for (const int nodes : sizes_of(profile)) {
          hosts(nodes);
          for (const int ranks : {1, std::max(2, devices), std::max(3, 2 * devices)})
            one({stack, mode, views.front(), nodes, ranks}, true);
        }
      }
  }

 private:
  void hosts(int nodes) {
    input_.hosts.clear();
    for (int n = 1; n <= nodes; ++n) input_.hosts.push_back(fmt::format("node{:05}", n));
  }

  void one(const Asked& asked, bool twice) {
    input_.options.nodes = asked.nodes;
    input_.options.ranks_per_node = asked.ranks;
    input_.options.stack = asked.stack;
    input_.options.device_mode = asked.mode;
    input_.options.gpu_view = asked.view;
    const Result<Plan> plan = make_plan(input_);
    ++count_.plans;
    if (!plan) {
      ++count_.refused;
      ++count_.laws;
      if (plan.error().message.empty()) breach("refusal", "refused without a reason", asked);
      return;
    }
    if (says_far(*plan)) ++count_.far;
    const Result<Plan> again = twice ? make_plan(input_) : Result<Plan>(Error{});
    const LawCase one{asked.ranks, asked.nodes, asked.mode, &*plan, again ? &*again : nullptr};
    if (twice && !again) breach("repeatable", "the same input was refused", asked);
    for (const Law& law : kLaws) {
      if (law.needs_again && !again) continue;
      ++count_.laws;
      const std::string found = law.breach(bench_, one);
      if (!found.empty()) breach(law.name, found, asked);
    }
  }

  // The first examples stand for the rest, which are counted.
  void breach(const std::string& law, const std::string& found, const Asked& asked) {
    for (Check& check : count_.checks) {
      if (check.kind != "law" || check.name.substr(0, check.name.find(':')) != law) continue;
      const int earlier = ++breaches_[law];
      if (earlier <= kEnoughExamples)
        check.remarks.push_back({"law-" + law, Severity::error,
                                 fmt::format("{}: {}", asked.typed(bench_.model->name), found), "",
                                 check.where});
      else if (earlier == kEnoughExamples + 1)
        check.remarks.push_back({"law-" + law, Severity::error, "", "", check.where});
      if (earlier > kEnoughExamples)
        check.remarks.back().message =
            fmt::format("{} more plans for node type {} break this law",
                        grouped(earlier - kEnoughExamples), bench_.model->name);
    }
  }

  LawBench bench_;
  PlanInput input_;
  LawCount& count_;
  std::map<std::string, int> breaches_;
};

}  // namespace

LawCount hold_laws(const Profile& profile) {
  LawCount count;
  count.checks.push_back({"law", "refusal: a plan, or a reason why there is none", profile.where});
  for (const Law& law : kLaws)
    count.checks.push_back({"law", fmt::format("{}: {}", law.name, law.what), profile.where});
  const Launcher* launcher = find_launcher(profile.launcher.empty() ? "local" : profile.launcher);
  if (launcher == nullptr) {
    count.checks.front().remarks.push_back(
        {"law-refusal", Severity::error,
         fmt::format("the profile's launcher \"{}\" is not known", profile.launcher), "",
         profile.where});
    return count;
  }
  for (const NodeModel& model : profile.nodes) Holding(profile, model, *launcher, count).all();
  return count;
}

}  // namespace hpclaunch::cli
