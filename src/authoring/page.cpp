// The page about a site: how to start, stacks, placement, settings, traps. At most two screens; what is longer
// is shown by `hpclaunch profile show`.
#include "authoring/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "authoring/command.h"
#include "authoring/markdown.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

using markdown::code;
using markdown::paragraph;

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
  return "\n" + paragraph(with_stop(text), "> ");
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
      fmt::format("Detected by {}; elsewhere type {}.", fmt::join(proofs, " or "), option));
}

std::string head(const Profile& profile, const std::set<std::string>& elsewhere) {
  std::string out = fmt::format("# {}\n\n{}", markdown::text(profile.name),
                                paragraph(with_stop(markdown::text(profile.doc))));
  out += retirement(profile) + "\n" + signals(profile);
  for (const std::string& site : elsewhere)
    out += "\n" + paragraph(fmt::format("This page lists what differs from [{0}]({0}.md).", site));
  return out;
}

// ---- start -------------------------------------------------------------------------------------------

std::string commands(const Profile& profile) {
  std::string each = "in a job: one rank per device";
  if (const Result<job::Prepared> got = page::plan_of(profile, {})) {
    each = fmt::format("in a job: {} per node", counted(got->plan.max_local_size(), "rank"));
    const std::string mode = page::default_mode(profile);
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

bool is_builtin(const Profile& profile) {
  const auto builtin = builtin_profiles();
  return std::any_of(builtin.begin(), builtin.end(),
                     [&](const BuiltinProfile& one) { return one.name == profile.name; });
}

std::string stacks(const Profile& profile) {
  markdown::Table table({"`--stack`", "Selected by", "Software"});
  const std::string first = page::default_stack(profile);
  for (const Stack& stack : profile.stacks) {
    std::vector<std::string> by;
    for (const When& one : stack.when) by.push_back(code(when_text(one)));
    if (stack.name == first) by.emplace_back("default");
    if (by.empty()) by.emplace_back("`--stack` only");
    table.row(
        {code(stack.name), fmt::format("{}", fmt::join(by, " or ")), markdown::text(stack.doc)});
  }
  return table.str();
}

std::string choices(const Profile& profile) {
  std::string out;
  for (const DeviceMode& mode : profile.device_modes) {
    const std::string doc = mode.doc.empty() ? mode.origin.why : mode.doc;
    out += paragraph(fmt::format("- `--device-mode` {}{}: {}", code(mode.name),
                                 mode.name == page::default_mode(profile) ? " (default)" : "",
                                 with_stop(markdown::text(doc))),
                     "  ");
  }
  const bool has_devices =
      std::any_of(profile.nodes.begin(), profile.nodes.end(),
                  [](const auto& node) { return !node.topology.devices.empty(); });
  if (has_devices)
    out += paragraph(fmt::format("- `--gpu-view` {} (default).",
                                 code(profile.gpu_view.empty() ? "all" : profile.gpu_view)));
  return out;
}

std::string start(const Profile& profile) {
  std::string out = "## Start\n\n" + commands(profile);
  std::string more;
  if (is_builtin(profile))
    more = fmt::format(
        "A job script with batch directives and modules: [{0}](../../examples/jobs/{0}). ",
        profile.name + ".sh");
  more += fmt::format("Every rule with its reason and source: {}.",
                      code("hpclaunch profile show " + profile.name));
  out += "\n" + paragraph(more);
  for (const std::string& part : {stacks(profile), choices(profile)})
    if (!part.empty()) out += "\n" + part;
  return out;
}

// ---- settings and traps ------------------------------------------------------------------------------

std::string assignment(const Assignment& one) {
  std::string text = code(fmt::format("{}={}", one.name, one.value.text));
  if (one.value.each != Template::Each::once)
    text += one.value.each == Template::Each::rank ? " per rank" : " per unit";
  return text;
}

// `NAME=value`, `--flag`, ... : all that a rule changes.
std::string changes(const Rule& rule) {
  std::vector<std::string> items;
  for (const Assignment& one : rule.defaults) items.push_back(assignment(one));
  for (const Assignment& one : rule.require) items.push_back(assignment(one) + " (required)");
  for (const Assignment& one : rule.prepend) items.push_back("prepend " + assignment(one));
  for (const std::string& name : rule.unset) items.push_back("unset " + code(name));
  for (const auto* words : {&rule.launch, &rule.batch})
    for (const auto& [program, flags] : *words)
      items.push_back(fmt::format("{} {}", markdown::text(program),
                                  code(fmt::format("{}", fmt::join(flags, " ")))));
  if (rule.core_limit) items.push_back(code("ulimit -c " + *rule.core_limit));
  for (const std::string& dir : rule.make_dirs) items.push_back("directory " + code(dir));
  return fmt::format("{}", fmt::join(items, ", "));
}

std::string condition(const Rule& rule) {
  When rest;
  for (const Test& test : rule.when)
    if (page::stacks_of(rule.when).empty() || test.fact != "stack") rest.push_back(test);
  return rest.empty() ? "" : code(when_text(rest));
}

std::string settings(const Profile& profile, const std::set<std::string>& elsewhere) {
  markdown::Table table({"Set", "When", "Why"});
  std::map<std::string, std::vector<std::string>> by_stack;
  for (const Rule& rule : profile.rules) {
    const std::string what = changes(rule);
    if (what.empty() || elsewhere.count(rule.origin.profile) > 0) continue;
    if (page::is_default(profile, rule.when))
      table.row({what, condition(rule), markdown::text(page::gist(rule.origin.why, ".;,"))});
    else
      for (const std::string& stack : page::stacks_of(rule.when)) by_stack[stack].push_back(what);
  }
  std::string list;
  for (const auto& [stack, items] : by_stack)
    list += markdown::paragraph(
        fmt::format("- With `--stack` {}: {}", code(stack), fmt::join(items, ", ")), "  ");
  const std::string rows = table.str();
  if (rows.empty() && list.empty()) return "";
  return "## Settings\n\n" +
         markdown::paragraph(
             "Your exported values and `--set` win, except over settings marked (required).") +
         (rows.empty() ? "" : "\n" + rows) + (list.empty() ? "" : "\n" + list);
}

std::string traps(const Profile& profile, const std::set<std::string>& elsewhere) {
  std::string out;
  for (const Note& note : profile.notes)
    if (elsewhere.count(note.origin.profile) == 0)
      out += markdown::paragraph(
          fmt::format("- {}: {}",
                      markdown::link(markdown::text(note.title.empty() ? note.id : note.title),
                                     note.origin.source),
                      markdown::text(page::gist(note.text))),
          "  ");
  return out.empty() ? "" : "## Traps and hints\n\n" + out;
}

std::string page_of(const Profile& profile, const std::set<std::string>& elsewhere) {
  std::string out = fmt::format(
      "<!-- Generated by: hpclaunch profile page {}. Change the profile, not this page. -->\n\n",
      profile.name);
  out += head(profile, elsewhere);
  for (const std::string& part : {start(profile), page::placement(profile, elsewhere),
                                  settings(profile, elsewhere), traps(profile, elsewhere)})
    if (!part.empty()) out += "\n" + part;
  return out;
}

}  // namespace

std::string page::default_stack(const Profile& profile) {
  if (!profile.stack.empty() || profile.stacks.empty()) return profile.stack;
  return profile.stacks.front().name;
}

std::string page::default_mode(const Profile& profile) {
  if (!profile.device_mode.empty() || profile.device_modes.empty()) return profile.device_mode;
  return profile.device_modes.front().name;
}

std::string page::gist(const std::string& text, const char* stops) {
  constexpr std::size_t kEnough = 45;  // bytes
  for (std::size_t at = text.find_first_of(stops); at != std::string::npos;
       at = text.find_first_of(stops, at + 1))
    if (at >= kEnough && text.substr(at + 1, 1) == " ") return text.substr(0, at);
  return text;
}

std::vector<std::string> page::stacks_of(const When& when) {
  for (const Test& test : when)
    if (test.fact == "stack" && test.op == Test::Op::eq) return test.values;
  return {};
}

bool page::is_default(const Profile& profile, const When& when) {
  const std::vector<std::string> stacks = stacks_of(when);
  return stacks.empty() || std::count(stacks.begin(), stacks.end(), default_stack(profile)) > 0;
}

int profile_page(const Args& args, Session& session) {
  if (args.names.size() != 1)
    return report(session, Error{ErrorKind::usage,
                                 fmt::format("page takes one profile, not {}", args.names.size()),
                                 "hpclaunch profile page NAME"});
  const Result<Profile> profile = load_profile(args.names.front(), session.env);
  if (!profile) return report(session, profile.error());
  std::set<std::string> elsewhere;
  for (const std::string& base : profile->extends)
    if (const Result<Profile> site = load_profile(base, session.env); site && !site->part)
      elsewhere.insert(base);
  return print(session, page_of(*profile, elsewhere))
             ? 0
             : exit_status(ErrorKind::system, session.exit_rules);
}

}  // namespace hpclaunch::authoring
