// The page about a site: how to start, stacks, placement, settings, traps. `hpclaunch profile show` has the rest. Each
// section is Markdown that ends with a newline, or "" when the profile has nothing for it. Equal profiles give equal
// bytes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "authoring/command.h"
#include "authoring/markdown.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

using job::Prepared;
using markdown::code;
using markdown::paragraph;

// The one used when none is typed; "" without any.
std::string default_of(const auto& entries, const std::string& named) {
  return named.empty() && !entries.empty() ? entries.front().name : named;
}

std::string default_stack(const Profile& profile) {
  return default_of(profile.stacks, profile.stack);
}

std::string default_mode(const Profile& profile) {
  return default_of(profile.device_modes, profile.device_mode);
}

// The stacks that a condition names; none: it applies to all, or excludes some.
std::vector<std::string> stacks_of(const When& when) {
  for (const Test& test : when)
    if (test.fact == "stack" && test.op == Test::Op::eq) return test.values;
  return {};
}

// Whether it applies to the default stack.
bool is_default(const Profile& profile, const When& when) {
  const std::vector<std::string> stacks = stacks_of(when);
  return stacks.empty() || std::count(stacks.begin(), stacks.end(), default_stack(profile)) > 0;
}

using SharedProfile = std::shared_ptr<const Profile>;

// The plan for two nodes, in an empty environment.
Result<Prepared> plan_of(const SharedProfile& profile, Request asked = {}) {
  asked.nodes = 2;
  asked.command = {"python", "train.py"};
  return job::prepare(asked, job::made_up_world(profile), job::Purpose::show);
}

// Parts that are not empty, with blank lines between.
std::string sections(std::initializer_list<std::string> parts) {
  std::string out;
  for (const std::string& part : parts)
    if (!part.empty()) out += (out.empty() ? "" : "\n") + part;
  return out;
}

std::string with_stop(const std::string& sentence) {
  return sentence.empty() || sentence.back() == '.' ? sentence : sentence + ".";
}

std::string retirement(const Profile& profile) {
  if (!profile.retired) return "";
  const Retirement& end = *profile.retired;
  std::string text = fmt::format("> **Retired on {}.**", markdown::text(end.date));
  if (!end.successor.empty()) text += fmt::format(" Successor: {}.", markdown::text(end.successor));
  if (!end.origin.why.empty())
    text += fmt::format(" {}", markdown::link(markdown::text(end.origin.why), end.origin.source));
  return paragraph(with_stop(text), "> ");
}

std::string signals(const Profile& profile) {
  std::vector<std::string> proofs;
  for (const Signal& signal : profile.detect)
    if (signal.proves)
      proofs.push_back(signal.env.empty() ? "host " + code(signal.like)
                                          : code(signal.env + "=" + signal.like));
  const std::string option = code("--profile " + profile.name);
  if (proofs.empty()) return paragraph(fmt::format("Not detected automatically: type {}.", option));
  return paragraph(
      fmt::format("Detected by {}; elsewhere type {}.", joined(proofs, " or "), option));
}

std::string head(const Profile& profile, const std::set<std::string>& elsewhere) {
  std::string others;
  for (const std::string& site : elsewhere)
    others += (others.empty() ? "" : "\n") +
              paragraph(fmt::format("This page lists what differs from [{0}]({0}.md).", site));
  return sections({fmt::format("# {}\n", markdown::text(profile.name)),
                   paragraph(with_stop(markdown::text(profile.doc))), retirement(profile),
                   signals(profile), others});
}

// ---- start -------------------------------------------------------------------------------------------

std::string commands(const SharedProfile& shared) {
  const Profile& profile = *shared;
  std::string each = "in a job: one rank per device";
  if (const Result<Prepared> got = plan_of(shared)) {
    each = fmt::format("in a job: {} per node", counted(got->plan.max_local_size(), "rank"));
    const std::string mode = default_mode(profile);
    if (!mode.empty()) each += ", one per " + mode;
  }
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"hpclaunch run -- python train.py", each},
      {"hpclaunch run --dry-run -- python train.py", "print the script only"},
      {fmt::format("hpclaunch plan --profile {} -N 2 -- python train.py", profile.name),
       "from any machine"}};
  std::string out;
  for (const auto& [line, why] : lines)
    out += fmt::format("{:<{}}  # {}\n", line, lines.back().first.size(), why);
  return markdown::block("sh", out);
}

std::string stacks(const Profile& profile) {
  std::vector<std::vector<std::string>> rows = {{"`--stack`", "Selected by", "Software"}};
  const std::string first = default_stack(profile);
  for (const Stack& stack : profile.stacks) {
    std::vector<std::string> by;
    for (const When& one : stack.when) by.push_back(code(when_text(one)));
    if (stack.name == first) by.emplace_back("default");
    if (by.empty()) by.emplace_back("`--stack` only");
    rows.push_back({code(stack.name), joined(by, " or "), markdown::text(stack.doc)});
  }
  return markdown::table(rows);
}

std::string choices(const Profile& profile) {
  std::string out;
  for (const DeviceMode& mode : profile.device_modes) {
    const std::string doc = mode.doc.empty() ? mode.origin.why : mode.doc;
    out += paragraph(fmt::format("- `--device-mode` {}{}: {}", code(mode.name),
                                 mode.name == default_mode(profile) ? " (default)" : "",
                                 with_stop(markdown::text(doc))),
                     "  ");
  }
  if (std::ranges::any_of(profile.nodes,
                          [](const NodeModel& node) { return !node.topology.devices.empty(); }))
    out += paragraph(fmt::format("- `--gpu-view` {} (default).",
                                 code(profile.gpu_view.empty() ? "all" : profile.gpu_view)));
  return out;
}

std::string start(const SharedProfile& shared) {
  const Profile& profile = *shared;
  std::string more;
  if (std::ranges::count(builtin_profiles(), profile.name, &BuiltinProfile::name) > 0)
    more = fmt::format(
        "A job script with batch directives and modules: [{0}](../../examples/jobs/{0}). ",
        profile.name + ".sh");
  more += fmt::format("Every rule with its reason and source: {}.",
                      code("hpclaunch profile show " + profile.name));
  return sections(
      {"## Start\n", commands(shared), paragraph(more), stacks(profile), choices(profile)});
}

// ---- placement: the table of the default plan, and one line for each stack, mode and node type that differs

std::string reserved(const NodeModel& model) {
  std::string out;
  const auto add = [&](const std::string& what, const CpuSet& pus, const std::string& why) {
    const CoreSet cores = cores_of(model.topology, pus);
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
  if (model.count > 0) text += with_separators(model.count) + " nodes with ";
  text += markdown::text(node_text(model)) + ".";
  if (!model.doc.empty()) text += fmt::format(" {}.", markdown::text(model.doc));
  if (model.live) text += " Device locality is read from the node itself inside a job.";
  return text + reserved(model);
}

std::string nodes(const Profile& profile) {
  if (profile.nodes.size() == 1) return paragraph(node(profile.nodes.front(), false));
  std::string out = paragraph("Node types, the first is the default:") + "\n";
  for (const NodeModel& model : profile.nodes) out += paragraph("- " + node(model, true), "  ");
  return out;
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
  std::vector<std::string> lists = placement_of(plan).cpus;
  if (lists.size() <= kMost) return code(joined(lists, ":"));
  lists.resize(4);
  return code(fmt::format("{}:...", joined(lists, ":")));
}

std::string others(const SharedProfile& shared, const Prepared& first) {
  const Profile& profile = *shared;
  std::vector<std::vector<std::string>> rows = {
      {"With", "Ranks per node", "CPUs of local ranks 0, 1, ..."}};
  const auto add = [&](const char* option, std::string Request::*choice, const std::string& name) {
    Request asked;
    asked.*choice = name;
    const std::string with = code(fmt::format("{} {}", option, name));
    const Result<Prepared> got = plan_of(shared, asked);
    if (!got)
      rows.push_back({with, "", markdown::text(got.error().message)});
    else if (cpus_of(got->plan) != cpus_of(first.plan))
      rows.push_back({with, std::to_string(got->plan.max_local_size()), cpus_of(got->plan)});
  };
  for (const Stack& stack : profile.stacks)
    if (stack.name != default_stack(profile)) add("--stack", &Request::stack, stack.name);
  for (const DeviceMode& mode : profile.device_modes)
    if (mode.name != default_mode(profile)) add("--device-mode", &Request::device_mode, mode.name);
  for (std::size_t i = 1; i < profile.nodes.size(); ++i)
    add("--node-type", &Request::node_type, profile.nodes[i].name);
  return markdown::table(rows);
}

std::string bindings(const Profile& profile, const std::set<std::string>& elsewhere) {
  std::vector<std::vector<std::string>> rows = {{"CPU binding for", "Rule"}};
  for (const Binding& one : profile.bindings)
    if (elsewhere.count(one.origin.profile) == 0 && is_default(profile, one.when))
      rows.push_back({one.when.empty() ? "any ranks" : code(when_text(one.when)),
                      markdown::text(one.origin.why)});
  return markdown::table(rows);
}

// `elsewhere`: sites that the profile extends. Their entries are on their own pages.
std::string placement(const SharedProfile& shared, const std::set<std::string>& elsewhere) {
  const Profile& profile = *shared;
  if (profile.nodes.empty()) return "";
  const Result<Prepared> first = plan_of(shared);
  if (!first)
    return sections({"## Placement\n", nodes(profile),
                     paragraph("No plan: " + markdown::text(first.error().message) + ".")});
  Style style;
  style.width = 96;
  const std::string request =
      fmt::format("Request the job with {}.", markdown::codes(first->plan.launch.batch, "and"));
  return sections(
      {"## Placement\n", nodes(profile),
       markdown::block("text", render::rank_tables(first->plan, first->node, style).substr(1)),
       markdown::block("sh", launch_line(*first)),
       first->plan.launch.batch.empty() ? "" : paragraph(request), others(shared, *first),
       bindings(profile, elsewhere)});
}

// ---- settings and traps ------------------------------------------------------------------------------

std::string assignment(const Assignment& one) {
  std::string text = code(fmt::format("{}={}", one.name, one.value.text));
  if (one.value.each != Template::Each::once)
    text += one.value.each == Template::Each::rank ? " per rank" : " per unit";
  return text;
}

/// `NAME=value`, `--flag`, ... : one thing that a rule does.
struct Change {
  std::string action;  ///< as origin_of() takes it
  std::string text;
};

std::vector<Change> changes(const Rule& rule) {
  std::vector<Change> items;
  for (const Assignment& one : rule.defaults) items.push_back({one.name, assignment(one)});
  for (const Assignment& one : rule.require)
    items.push_back({one.name, assignment(one) + " (required)"});
  for (const Assignment& one : rule.prepend)
    items.push_back({one.name, "prepend " + assignment(one)});
  for (const std::string& name : rule.unset) items.push_back({name, "unset " + code(name)});
  for (const auto& [key, words] : {std::pair("launch", &rule.launch), {"batch", &rule.batch}})
    for (const auto& [program, flags] : *words)
      items.push_back(
          {key, fmt::format("{} {}", markdown::text(program), code(joined(flags, " ")))});
  if (rule.core_limit) items.push_back({"core_limit", code("ulimit -c " + *rule.core_limit)});
  for (const std::string& dir : rule.make_dirs)
    items.push_back({"make_dirs", "directory " + code(dir)});
  return items;
}

std::string condition(const Rule& rule) {
  When rest;
  for (const Test& test : rule.when)
    if (stacks_of(rule.when).empty() || test.fact != "stack") rest.push_back(test);
  return rest.empty() ? "" : code(when_text(rest));
}

std::string settings(const Profile& profile, const std::set<std::string>& elsewhere) {
  std::vector<std::vector<std::string>> rows = {{"Set", "When", "Why"}};
  std::map<std::string, std::vector<std::string>> by_stack;
  for (const Rule& rule : profile.rules) {
    const std::vector<Change> all = changes(rule);
    if (all.empty() || elsewhere.count(rule.origin.profile) > 0) continue;
    std::vector<std::string> texts;
    for (const Change& one : all) texts.push_back(one.text);
    const std::string together = joined(texts, ", ");
    if (!is_default(profile, rule.when))
      for (const std::string& stack : stacks_of(rule.when)) by_stack[stack].push_back(together);
    else if (rule.whys.empty())
      rows.push_back({together, condition(rule), markdown::text(rule.origin.why)});
    else
      for (const Change& one : all)
        rows.push_back(
            {one.text, condition(rule), markdown::text(origin_of(rule, one.action).why)});
  }
  std::string list;
  for (const auto& [stack, items] : by_stack)
    list +=
        paragraph(fmt::format("- With `--stack` {}: {}", code(stack), joined(items, ", ")), "  ");
  const std::string table = markdown::table(rows);
  if (table.empty() && list.empty()) return "";
  return sections(
      {"## Settings\n",
       paragraph("Your exported values and `--set` win, except over settings marked (required)."),
       table, list});
}

std::string traps(const Profile& profile, const std::set<std::string>& elsewhere) {
  std::string out;
  for (const Note& note : profile.notes)
    if (elsewhere.count(note.origin.profile) == 0)
      out += paragraph(
          fmt::format("- {}: {}",
                      markdown::link(markdown::text(note.title.empty() ? note.id : note.title),
                                     note.origin.source),
                      markdown::text(note.text)),
          "  ");
  return out.empty() ? "" : "## Traps and hints\n\n" + out;
}

std::string page_of(const SharedProfile& shared, const std::set<std::string>& elsewhere) {
  const Profile& profile = *shared;
  const std::string origin = fmt::format(
      "<!-- Generated by: hpclaunch profile page {}. Change the profile, not this page. -->\n",
      profile.name);
  return sections({origin, head(profile, elsewhere), start(shared), placement(shared, elsewhere),
                   settings(profile, elsewhere), traps(profile, elsewhere)});
}

}  // namespace

int profile_page(const Args& args, Session& session) {
  if (args.names.size() != 1)
    return report(session, Error{ErrorKind::usage,
                                 fmt::format("page takes one profile, not {}", args.names.size()),
                                 "hpclaunch profile page NAME"});
  Result<Profile> loaded = load_profile(args.names.front(), session.env);
  if (!loaded) return report(session, loaded.error());
  const auto profile = std::make_shared<const Profile>(*std::move(loaded));
  std::set<std::string> elsewhere;
  for (const std::string& base : profile->extends)
    if (const Result<Profile> site = load_profile(base, session.env); site && !site->part)
      elsewhere.insert(base);
  return print_all(session, page_of(profile, elsewhere));
}

}  // namespace hpclaunch::authoring
