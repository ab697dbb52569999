// Where ranks go: the table of the default plan, and one line for each stack, mode and node type that differs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "authoring/command.h"
#include "authoring/markdown.h"
#include "authoring/page.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring::page {

namespace {

using job::Prepared;
using markdown::code;

std::string reserved(const NodeModel& model) {
  std::string out;
  const auto add = [&](const std::string& what, const CpuSet& pus, const std::string& why) {
    CpuSet cores;
    for (std::size_t c = 0; c < model.topology.cores.size(); ++c)
      if (model.topology.cores[c].pus.intersects(pus)) cores.add(static_cast<int>(c));
    out += fmt::format(" {} {}{}{}.", what, cores.to_list(), why.empty() ? "" : ": ",
                       markdown::text(why));
  };
  if (!model.reserved.empty()) add("Reserved cores", model.reserved, model.reserved_why);
  for (const ServiceCores& service : model.services)
    add("Service " + markdown::text(service.name) + " on cores", service.pus, service.why);
  return out;
}

std::string node(const NodeModel& model, bool named) {
  std::string text = named ? code(model.name) + ": " : "";
  if (model.count > 0) text += grouped(model.count) + " nodes with ";
  text += markdown::text(node_text(model)) + ".";
  if (!model.doc.empty()) text += fmt::format(" {}.", markdown::text(model.doc));
  if (model.live) text += " Device locality is read from the node itself inside a job.";
  return text + reserved(model);
}

std::string nodes(const Profile& profile) {
  if (profile.nodes.size() == 1) return markdown::paragraph(node(profile.nodes.front(), false));
  std::string out = markdown::paragraph("Node types, the first is the default:") + "\n";
  for (const NodeModel& model : profile.nodes)
    out += markdown::paragraph("- " + node(model, true), "  ");
  return out;
}

// The table of ranks alone: a plan without variables and command has nothing after it.
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

// "4-7:8-11", as launchers write it; the first few of many.
std::string cpus_of(const Plan& plan) {
  constexpr std::size_t kMost = 16;
  std::vector<std::string> lists;
  for (const RankPlan& rank : plan.classes.front().ranks) lists.push_back(rank.cpus.to_list());
  if (lists.size() <= kMost) return code(fmt::format("{}", fmt::join(lists, ":")));
  lists.resize(4);
  return code(fmt::format("{}:...", fmt::join(lists, ":")));
}

std::string others(const Profile& profile, const Prepared& first) {
  markdown::Table table({"With", "Ranks per node", "CPUs of local ranks 0, 1, ..."});
  const auto add = [&](const std::string& option, const Ask& ask) {
    const Result<Prepared> got = plan_of(profile, ask);
    if (!got)
      table.row({code(option), "", markdown::text(got.error().message)});
    else if (cpus_of(got->plan) != cpus_of(first.plan))
      table.row({code(option), std::to_string(got->plan.max_local_size()), cpus_of(got->plan)});
  };
  for (const Stack& stack : profile.stacks)
    if (stack.name != default_stack(profile)) add("--stack " + stack.name, {.stack = stack.name});
  for (const DeviceMode& mode : profile.device_modes)
    if (mode.name != default_mode(profile)) add("--device-mode " + mode.name, {.mode = mode.name});
  for (std::size_t i = 1; i < profile.nodes.size(); ++i)
    add("--node-type " + profile.nodes[i].name, {.node_type = profile.nodes[i].name});
  return table.str();
}

std::string bindings(const Profile& profile, const std::set<std::string>& elsewhere) {
  markdown::Table table({"CPU binding for", "Rule"});
  for (const Binding& one : profile.bindings)
    if (elsewhere.count(one.origin.profile) == 0 && is_default(profile, one.when))
      table.row({one.when.empty() ? "any ranks" : code(when_text(one.when)),
                 markdown::text(gist(one.origin.why, ".;,"))});
  return table.str();
}

}  // namespace

Result<Prepared> plan_of(const Profile& profile, const Ask& ask) {
  Request args;
  args.nodes = 2;
  args.stack = ask.stack;
  args.device_mode = ask.mode;
  args.node_type = ask.node_type;
  args.command = {"python", "train.py"};
  return job::prepare_elsewhere(args, EnvSnapshot({"USER=user"}), profile, {});
}

std::string placement(const Profile& profile, const std::set<std::string>& elsewhere) {
  if (profile.nodes.empty()) return "";
  std::string out = "## Placement\n\n" + nodes(profile);
  const Result<Prepared> first = plan_of(profile, {});
  if (!first)
    return out + "\n" +
           markdown::paragraph("No plan: " + markdown::text(first.error().message) + ".");
  out += "\n" + markdown::block("text", rank_table(*first));
  out += "\n" + markdown::block("sh", launch_line(*first));
  if (!first->plan.batch.empty())
    out += "\n" + markdown::paragraph(fmt::format("Request the job with {}.",
                                                  markdown::codes(first->plan.batch, "and")));
  for (const std::string& part : {others(profile, *first), bindings(profile, elsewhere)})
    if (!part.empty()) out += "\n" + part;
  return out;
}

}  // namespace hpclaunch::authoring::page
