#include "authoring/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "authoring/command.h"
#include "authoring/markdown.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

using markdown::code;
using markdown::paragraph;

std::string with_stop(const std::string& sentence) {
  return sentence.empty() || sentence.back() == '.' ? sentence : sentence + ".";
}

std::string retirement(const Profile& profile) {
  if (!profile.retired) return "";
  const Retirement& end = *profile.retired;
  std::string said = fmt::format("> **Retired on {}.**", markdown::text(end.date));
  if (!end.successor.empty())
    said +=
        fmt::format(" Its successor is [{}]({}.md).", markdown::text(end.successor), end.successor);
  if (!end.origin.why.empty())
    said += fmt::format(" {}", markdown::link(markdown::text(end.origin.why), end.origin.source));
  if (!end.origin.checked.empty()) said += fmt::format(" (compared on {})", end.origin.checked);
  return paragraph(with_stop(said), "> ");
}

std::string signal_text(const Signal& signal) {
  return signal.env.empty() ? fmt::format("a host named {}", code(signal.like))
                            : fmt::format("{} = {}", code(signal.env), code(signal.like));
}

std::string signals(const Profile& profile) {
  std::string proofs;
  std::string hints;
  for (const Signal& signal : profile.detect) {
    std::string& list = signal.proves ? proofs : hints;
    list += fmt::format("{}{}", list.empty() ? "" : "; ", signal_text(signal));
  }
  if (proofs.empty() && hints.empty())
    return paragraph(fmt::format("Nothing tells hpclaunch that it is here: type {}.",
                                 code("--profile " + profile.name)));
  std::string text;
  if (!proofs.empty()) text = fmt::format("Recognised by any of: {}.", proofs);
  if (!hints.empty())
    text += fmt::format("{}Others may have these as well, so they count as hints only: {}.",
                        text.empty() ? "" : " ", hints);
  return paragraph(text);
}

std::string head(const Profile& profile) {
  std::string out = fmt::format("# {}\n\n{}", markdown::text(profile.name),
                                paragraph(with_stop(markdown::text(profile.doc))));
  const std::string retired = retirement(profile);
  if (!retired.empty()) out += "\n" + retired;
  out += "\n" + signals(profile);
  std::string made = profile.launcher.empty() ? ""
                                              : fmt::format("Ranks are started by the launcher {}.",
                                                            code(profile.launcher));
  if (!profile.extends.empty())
    made += fmt::format(" The profile builds on {}.", markdown::codes(profile.extends, "and"));
  return made.empty() ? out : fmt::format("{}\n{}", out, paragraph(made));
}

// ---- what to type --------------------------------------------------------------------------------------

std::string typed(const std::vector<std::pair<std::string, std::string>>& lines) {
  constexpr std::size_t kMost = 70;
  std::size_t width = 0;
  for (const auto& [line, why] : lines)
    if (line.size() <= kMost) width = std::max(width, line.size());
  std::string out;
  for (const auto& [line, why] : lines) out += fmt::format("{:<{}}  # {}\n", line, width, why);
  return markdown::block("sh", out);
}

std::string commands_to_type(const Profile& profile) {
  std::string each = "one rank for each device";
  if (const Result<Prepared> got = page::plan_of(profile, {})) {
    each = counted(got->plan.max_local_size(), "rank") + " on every node";
    const Setting* mode = got->plan.find_choice("device-mode");
    const auto* name = mode == nullptr ? nullptr : std::get_if<std::string>(&mode->value());
    if (name != nullptr && profile.find_mode(*name) != nullptr) each += ", one per " + *name;
  }
  std::vector<std::pair<std::string, std::string>> lines = {
      {"hpclaunch run -- python train.py", "inside a job: " + each},
      {"hpclaunch run --dry-run -- python train.py", "print the script that would run"},
  };
  for (const Stack& stack : profile.stacks)
    if (stack.name != profile.stack && profile.stacks.size() > 1) {
      lines.emplace_back(fmt::format("hpclaunch run --stack {} -- python train.py", stack.name),
                         "another stack");
      break;
    }
  lines.emplace_back(
      fmt::format("hpclaunch plan --profile {} -N 2 -- python train.py", profile.name),
      "look at it from anywhere");
  lines.emplace_back(fmt::format("hpclaunch explain --profile {}", profile.name),
                     "every setting with its reason");
  std::string out = typed(lines);
  const auto builtin = builtin_profiles();
  if (std::any_of(builtin.begin(), builtin.end(),
                  [&](const BuiltinProfile& one) { return one.name == profile.name; }))
    out += fmt::format(
        "\nA whole job script, with the batch directives and modules, is "
        "[examples/jobs/{0}.sh](../../examples/jobs/{0}.sh).\n",
        profile.name);
  return out;
}

std::string stacks(const Profile& profile) {
  markdown::Table table({"`--stack`", "What it is", "Taken when", "Source, last compared"});
  const std::string first = !profile.stack.empty()   ? profile.stack
                            : profile.stacks.empty() ? ""
                                                     : profile.stacks.front().name;
  for (const Stack& stack : profile.stacks) {
    std::string taken;
    for (const When& one : stack.when)
      taken += fmt::format("{}{}", taken.empty() ? "" : "; or ", page::when(one));
    if (stack.name == first)
      taken += taken.empty() ? "nothing else holds" : "; or nothing else holds";
    if (taken.empty()) taken = "asked for";
    table.row({code(stack.name), markdown::text(stack.doc), taken,
               stack.origin.source.empty() ? "" : page::origin(stack.name, stack.origin)});
  }
  return table.str();
}

std::string modes(const Profile& profile) {
  markdown::Table table({"`--device-mode`", "A rank gets", "What it is"});
  const std::string first = !profile.device_mode.empty()   ? profile.device_mode
                            : profile.device_modes.empty() ? ""
                                                           : profile.device_modes.front().name;
  for (const DeviceMode& mode : profile.device_modes) {
    const std::string why = mode.doc.empty() ? mode.origin.why : mode.doc;
    table.row({code(mode.name) + (mode.name == first ? " (the default)" : ""),
               mode.subdevices ? "a part of a device" : "a device", markdown::text(why)});
  }
  return table.str();
}

std::string views(const Profile& profile) {
  const bool has_devices =
      std::any_of(profile.nodes.begin(), profile.nodes.end(),
                  [](const NodeModel& n) { return !n.topology.devices.empty(); });
  if (!has_devices) return "";
  return paragraph(fmt::format(
      "What a rank sees of the GPUs: `--gpu-view all` (every one, its own at `LOCAL_RANK`), `own` "
      "(its "
      "own only, as device 0) or `launcher` (what the launcher leaves it). The default here is {}.",
      code(profile.gpu_view.empty() ? "all" : profile.gpu_view)));
}

std::string what_to_type(const Profile& profile) {
  std::string out = "## What to type\n\n" + commands_to_type(profile);
  for (const std::string& part : {stacks(profile), modes(profile), views(profile)})
    if (!part.empty()) out += "\n" + part;
  return out;
}

// ---- the rest ------------------------------------------------------------------------------------------

std::string notes(const Profile& profile) {
  std::string out;
  for (const Note& note : profile.notes) {
    out += fmt::format("{}### {}\n\n{}", out.empty() ? "" : "\n",
                       markdown::text(note.title.empty() ? note.id : note.title),
                       paragraph(fmt::format("{} ({})", markdown::text(note.text),
                                             page::origin(note.id, note.origin))));
  }
  return out.empty() ? "" : "## Notes\n\n" + out;
}

std::string cases(const Profile& profile) {
  const std::string how = code("hpclaunch profile test " + profile.name);
  const auto count = static_cast<long>(profile.expect.size());
  const std::string text =
      count == 0
          ? fmt::format(
                "No cases are written down; {} holds the profile against the laws of every plan.",
                how)
          : fmt::format(
                "{} of what must come out, most of them from the site's own pages, {} in the "
                "profile: {} compares them, and holds every plan against the laws.",
                counted(count, "case"), count == 1 ? "stands" : "stand", how);
  return "## How this is tested\n\n" + paragraph(text);
}

std::string page_of(const Profile& profile) {
  std::string out = fmt::format(
      "<!-- Generated by: hpclaunch profile page {}. Change the profile, not this page. -->\n\n",
      profile.name);
  out += head(profile);
  for (const std::string& part :
       {what_to_type(profile), page::nodes(profile), page::placements(profile),
        page::bindings(profile), page::settings(profile), page::requests(profile),
        page::warnings(profile), page::corrections(profile), page::disputes(profile),
        notes(profile), cases(profile)})
    if (!part.empty()) out += "\n" + part;
  return out;
}

}  // namespace

int profile_page(const ProfileArgs& args, Session& session) {
  if (args.names.size() != 1)
    return report(session,
                  Error{ErrorKind::usage,
                        fmt::format("page wants one profile, and {} are named", args.names.size()),
                        "hpclaunch profile page NAME"});
  const Result<Profile> profile = load_profile(args.names.front(), session.env);
  if (!profile) return report(session, profile.error());
  if (!print(session, page_of(*profile))) return exit_status(ErrorKind::system, session.exit_rules);
  return 0;
}

}  // namespace hpclaunch::cli
