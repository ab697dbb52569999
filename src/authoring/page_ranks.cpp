// Where ranks go: drawn for the default job, and by number of ranks.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "authoring/markdown.h"
#include "authoring/page.h"
#include "authoring/show.h"

namespace hpclaunch::cli::page {

namespace {

constexpr int kMostRanks = 512;  // more CPUs than any node of today has

// The table of ranks alone: a plan without variables and command has nothing behind it.
std::string rank_table(const Prepared& prepared) {
  Plan bare = prepared.plan;
  bare.env.clear();
  bare.command.clear();
  Style style;
  style.width = 96;
  const std::string all = plan_table(bare, prepared.node, {}, style);
  const std::size_t blank = all.find("\n\n");
  return blank == std::string::npos ? all : all.substr(blank + 2);
}

std::string launch_line(const Prepared& prepared) {
  constexpr std::size_t kWidth = 96;
  std::string out;
  std::string line;
  for (const std::string& word : prepared.argv) {
    const std::string quoted = quote_sh(word);
    if (!line.empty() && line.size() + quoted.size() > kWidth) {
      out += line + " \\\n";
      line = "   ";
    }
    line += line.empty() ? quoted : " " + quoted;
  }
  return out + line + "\n";
}

std::vector<std::string> stack_names(const Profile& profile) {
  std::vector<std::string> names;
  for (const Stack& stack : profile.stacks) names.push_back(stack.name);
  if (names.empty()) names.emplace_back();
  const auto first = std::find(names.begin(), names.end(), profile.stack);
  if (first != names.end()) std::rotate(names.begin(), first, first + 1);
  return names;
}

// ---- the default job -----------------------------------------------------------------------------------

struct Shown {
  std::string stack;
  std::string table;
  std::string line;
};

std::string needs(const Plan& plan) {
  if (plan.batch.empty()) return "";
  return fmt::format("\n{}",
                     markdown::paragraph(fmt::format("The job must have been asked for with {}.",
                                                     markdown::codes(plan.batch, "and"))));
}

std::string placement(const Profile& profile, const std::string& stack,
                      std::vector<Shown>& before) {
  const Result<Prepared> got = plan_of(profile, {.stack = stack});
  if (!got) return markdown::paragraph("No plan: " + markdown::text(got.error().message) + ".");
  const Shown now{stack, rank_table(*got), launch_line(*got)};
  const auto same = std::find_if(before.begin(), before.end(),
                                 [&](const Shown& one) { return one.table == now.table; });
  const bool same_line = same != before.end() && same->line == now.line;
  std::string out;
  if (same_line)
    out = markdown::paragraph(
        fmt::format("Ranks and launch line as with {}.", markdown::code(same->stack)));
  else if (same != before.end())
    out = markdown::paragraph(
        fmt::format("Ranks as with {}; the launch line:", markdown::code(same->stack)));
  else
    out = markdown::block("text", now.table);
  if (!same_line) out += "\n" + markdown::block("sh", now.line);
  before.push_back(now);
  return out + needs(got->plan);
}

// ---- by number of ranks --------------------------------------------------------------------------------

/// One mode and one view of devices.
struct Way {
  std::string mode;
  std::string view;
};

const std::string kNoBinding =
    "no binding: cores are shared evenly, near the rank's device where its place is known";

struct Outcome {
  std::string by;  // Markdown; "" when refused
  int cores = 0;   // of the rank that has fewest
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
using Outcomes = std::vector<Outcome>;  // [ranks - 1]

Outcome outcome(const Profile& profile, const Ask& ask) {
  const Result<Prepared> got = plan_of(profile, ask);
  if (!got) return {};
  const Setting* bind = got->plan.find_choice("cpu-bind");
  if (bind == nullptr) return {};
  const Decision& holds = bind->history.back();
  Outcome out{holds.rule.empty() ? kNoBinding : markdown::code(holds.rule), 0};
  for (const RankPlan& rank : got->plan.classes.front().ranks)
    out.cores = out.cores == 0 ? rank.cores : std::min(out.cores, rank.cores);
  return out;
}

Outcomes outcomes(const Profile& profile, const std::string& stack, const Way& way) {
  const int most = std::min(kMostRanks, profile.nodes.front().topology.all_pus().count());
  Outcomes all;
  for (int ranks = 1; ranks <= most; ++ranks)
    all.push_back(outcome(profile, {stack, way.mode, way.view, "", ranks, 1}));
  return all;
}

std::string range(int low, int high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
}

std::string outcome_table(const Outcomes& all) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<int>> counts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].by.empty()) continue;
    if (counts.count(all[i].by) == 0) order.push_back(all[i].by);
    counts[all[i].by].push_back(static_cast<int>(i) + 1);
  }
  std::stable_partition(order.begin(), order.end(),
                        [](const std::string& by) { return by != kNoBinding; });
  markdown::Table table({"Ranks on a node", "Cores for each", "By"});
  for (const std::string& by : order) {
    int low = 0;
    int high = 0;
    for (const int ranks : counts[by]) {
      const int cores = all[static_cast<std::size_t>(ranks) - 1].cores;
      low = low == 0 ? cores : std::min(low, cores);
      high = std::max(high, cores);
    }
    const bool others = by == kNoBinding && order.size() > 1;
    table.row(
        {others ? fmt::format("others up to {}", counts[by].back()) : number_ranges(counts[by]),
         range(low, high), by});
  }
  const std::string rows = table.str();
  return rows.empty() ? "Every number of ranks is refused.\n" : rows;
}

std::vector<Way> ways(const Profile& profile) {
  const bool by_view =
      std::any_of(profile.bindings.begin(), profile.bindings.end(), [](const Binding& b) {
        return std::any_of(b.when.begin(), b.when.end(),
                           [](const Test& t) { return t.fact == "gpu_view"; });
      });
  std::vector<std::string> modes;
  for (const DeviceMode& mode : profile.device_modes) modes.push_back(mode.name);
  if (modes.empty()) modes.emplace_back();
  std::vector<Way> all;
  for (const std::string& mode : modes) {
    if (!by_view) all.push_back({mode, ""});
    if (by_view)
      for (const char* view : {"own", "all", "launcher"}) all.push_back({mode, view});
  }
  return all;
}

// Stacks and ways that are alike.
struct Group {
  std::vector<std::string> stacks;
  std::vector<Way> ways;
  Outcomes outcomes;
};

bool has(const std::vector<std::string>& list, const std::string& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

std::vector<Group> groups(const Profile& whole) {
  Profile profile =
      whole;  // bindings ask nothing of these, and there are thousands of plans to make
  profile.rules.clear();
  profile.notes.clear();
  profile.expect.clear();
  std::vector<Group> all;
  for (const Way& way : ways(profile)) {
    std::vector<Group> of_way;
    for (const std::string& stack : stack_names(profile)) {
      Outcomes found = outcomes(profile, stack, way);
      const auto same = std::find_if(of_way.begin(), of_way.end(),
                                     [&](const Group& g) { return g.outcomes == found; });
      if (same != of_way.end())
        same->stacks.push_back(stack);
      else
        of_way.push_back({{stack}, {way}, std::move(found)});
    }
    for (Group& group : of_way) {
      const auto same = std::find_if(all.begin(), all.end(), [&](const Group& g) {
        return g.stacks == group.stacks && g.outcomes == group.outcomes;
      });
      if (same != all.end())
        same->ways.push_back(way);
      else
        all.push_back(std::move(group));
    }
  }
  return all;
}

std::string title(const Profile& profile, const Group& group) {
  std::string out;
  if (group.stacks.size() < profile.stacks.size())
    out += fmt::format("{} {}", group.stacks.size() == 1 ? "Stack" : "Stacks",
                       markdown::codes(group.stacks, "and"));
  if (group.ways.size() == ways(profile).size()) return out;
  std::vector<std::string> modes;
  std::vector<std::string> views;
  for (const Way& way : group.ways) {
    if (!way.mode.empty() && !has(modes, way.mode)) modes.push_back(way.mode);
    if (!way.view.empty() && !has(views, way.view)) views.push_back(way.view);
  }
  const auto add = [&](std::string_view what, const std::vector<std::string>& names) {
    if (!names.empty())
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", what, markdown::codes(names, "and"));
  };
  if (profile.device_modes.size() > 1)
    add(modes.size() == 1 ? "device mode" : "device modes", modes);
  add(views.size() == 1 ? "GPU view" : "GPU views", views);
  return out;
}

std::string rules_of_bindings(const Profile& profile) {
  markdown::Table table({"Binding", "When", "Cores, counted from the first of the group", "Why"});
  for (const Binding& one : profile.bindings)
    table.row({origin(one.id, one.origin), when(one.when), markdown::text(binding_text(one)),
               markdown::text(one.origin.why)});
  return table.str();
}

}  // namespace

Result<Prepared> plan_of(const Profile& profile, const Ask& ask) {
  Request args;
  args.nodes = ask.nodes;
  args.ranks_per_node = ask.ranks_per_node;
  args.stack = ask.stack;
  args.device_mode = ask.mode;
  args.gpu_view = ask.view;
  args.node_type = ask.node_type;
  args.command = {"python", "train.py"};
  return prepare_elsewhere(args, EnvSnapshot({"USER=user"}), profile, {});
}

std::string placements(const Profile& profile) {
  if (profile.nodes.empty()) return "";
  std::string out = "## Where ranks go\n\n";
  out += markdown::paragraph(
      "`hpclaunch run -- python train.py` on two nodes, here called node00001 "
      "and node00002, with nothing else typed or exported.");
  std::vector<Shown> before;
  const std::vector<std::string> names = stack_names(profile);
  for (const std::string& stack : names) {
    if (profile.stacks.size() > 1)
      out += fmt::format("\n### With {}{}\n", markdown::code(stack),
                         &stack == &names.front() ? " (the default)" : "");
    out += "\n" + placement(profile, stack, before);
  }
  for (std::size_t i = 1; i < profile.nodes.size(); ++i) {
    const std::string& type = profile.nodes[i].name;
    const Result<Prepared> got = plan_of(profile, {.node_type = type});
    out += fmt::format("\n### On node type {}\n\n", markdown::code(type));
    out += got ? markdown::block("text", rank_table(*got))
               : markdown::paragraph("No plan: " + markdown::text(got.error().message) + ".");
  }
  return out;
}

std::string bindings(const Profile& profile) {
  if (profile.nodes.empty()) return "";
  std::string out = "## CPUs by number of ranks\n\n";
  out +=
      markdown::paragraph("Which rule binds how many ranks on a node. Other numbers are refused.");
  for (const Group& group : groups(profile)) {
    const std::string head = title(profile, group);
    out += fmt::format("\n{}{}", head.empty() ? "" : head + ":\n\n", outcome_table(group.outcomes));
  }
  const std::string rules = rules_of_bindings(profile);
  return rules.empty() ? out : fmt::format("{}\nThe bindings:\n\n{}", out, rules);
}

}  // namespace hpclaunch::cli::page
