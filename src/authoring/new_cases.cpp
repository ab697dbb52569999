// Section "expect": golden cases with today's plans, so that a change is noticed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "authoring/command.h"
#include "authoring/new.h"
#include "hpclaunch/job.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

/// A command line; 0 ranks: not given.
struct Question {
  int nodes = 1;
  int ranks = 0;
  std::string mode;
};

std::string options_of(const Question& question) {
  std::string options = fmt::format("\"-N\", \"{}\"", question.nodes);
  if (question.ranks > 0) options += fmt::format(", \"--ppn\", \"{}\"", question.ranks);
  if (!question.mode.empty()) options += fmt::format(", \"--device-mode\", \"{}\"", question.mode);
  return options;
}

std::string name_of(const Question& question) {
  std::string name = question.nodes == 1 ? "one node" : fmt::format("{} nodes", question.nodes);
  if (question.ranks == 0)
    name += ", defaults";
  else
    name.append(", ")
        .append(counted(question.ranks, "rank"))
        .append(question.nodes > 1 ? " each" : "");
  return question.mode.empty() ? name : name + ", device mode " + question.mode;
}

std::string case_text(const Question& question, const job::Prepared& prepared) {
  std::vector<std::string> cpus;
  std::vector<std::string> units;
  for (const RankPlan& rank : prepared.plan.classes.front().ranks) {
    cpus.push_back(rank.cpus.to_list());
    if (rank.unit >= 0) units.push_back(std::to_string(rank.unit));
  }
  std::string text = fmt::format("    {{\n      \"name\": \"{}\",\n      \"options\": [{}],\n",
                                 name_of(question), options_of(question));
  text += fmt::format("      \"cpus\": \"{}\"", fmt::join(cpus, ":"));
  if (units.size() == cpus.size())
    text += fmt::format(",\n      \"devices\": \"{}\"", fmt::join(units, ":"));
  std::vector<std::string> set;
  for (const Setting& setting : prepared.plan.env) {
    const auto* value = std::get_if<std::string>(&setting.value());
    const Layer layer = setting.history.back().layer;
    const bool by_rule = layer == Layer::profile_default || layer == Layer::profile_require;
    if (by_rule && value != nullptr)
      set.push_back(fmt::format("\"{}\": {}", setting.name, json_text(*value)));
  }
  if (!set.empty()) text += fmt::format(",\n      \"set\": {{{}}}", fmt::join(set, ", "));
  return text + "\n    }";
}

std::vector<Question> questions(const Fresh& fresh, const Profile& profile) {
  const auto cores = static_cast<int>(fresh.node.cores.size());
  std::set<int> with_cores;
  for (const Core& core : fresh.node.cores) with_cores.insert(core.numa);
  std::set<int> ranks = {1, static_cast<int>(fresh.node.packages.size()),
                         static_cast<int>(with_cores.size())};
  int units = static_cast<int>(fresh.node.devices.size());
  for (const int each : {1, 2}) ranks.insert(each * units);
  if (fresh.has_tiles) ranks.insert(units * fresh.node.devices.front().subdevices);
  std::vector<Question> asked = {Question{}};
  for (const int count : ranks)
    if (count > 0 && count <= cores) asked.push_back({1, count, ""});
  if (fresh.has_tiles) asked.push_back({1, 0, "gpu"});
  const Launcher* launcher = find_launcher(profile.launcher.empty() ? "local" : profile.launcher);
  if (launcher != nullptr && launcher->traits.multi_node) asked.push_back({2, 0, ""});
  return asked;
}

Result<Profile> read_back(const std::string& unfinished, const EnvSnapshot& env) {
  // A placeholder for the cases.
  const ParsedProfile parsed =
      parse_profile(unfinished + "  \"expect\": [{\"name\": \"x\", \"cpus\": \"0\"}]\n}\n", "new");
  if (!parsed.problems.empty()) return parsed.problems.front();
  return resolve_profile(parsed.profile,
                         [&](const std::string& name) { return load_profile(name, env); });
}

}  // namespace

Result<std::string> expect_section(const Fresh& fresh, const std::string& unfinished,
                                   const EnvSnapshot& env) {
  const Result<Profile> profile = read_back(unfinished, env);
  if (!profile) return profile.error();
  std::vector<std::string> cases;
  for (const Question& question : questions(fresh, *profile)) {
    Request args;
    args.nodes = question.nodes;
    if (question.ranks > 0) args.ranks_per_node = question.ranks;
    args.device_mode = question.mode;
    args.command = {"python", "train.py"};
    const Result<job::Prepared> prepared =
        job::prepare_elsewhere(args, EnvSnapshot(), *profile, {});
    if (prepared) cases.push_back(case_text(question, *prepared));
  }
  if (cases.empty())
    return Error{ErrorKind::invalid, "no plan is possible for this node", "hpclaunch topo"};
  const bool numbered = node_model_text(fresh.node).numbered;
  return prose(
             "Golden cases for \"hpclaunch profile test\" (docs/reference/profile-format.md, "
             "expect): the plans of "
             "the day when this was written. After an intended change, write the new results.",
             2) +
         (numbered ? "" : prose("CPU numbers are the model's, not this node's.", 2)) +
         fmt::format("  \"expect\": [\n{}\n  ]\n}}\n", fmt::join(cases, ",\n"));
}

}  // namespace hpclaunch::authoring
