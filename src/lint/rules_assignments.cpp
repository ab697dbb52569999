// Settings that do not reach the program: not exported, too late, or replaced by another one.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"
#include "lint/engine.h"
#include "lint/words.h"

namespace hpclaunch::lint {

namespace {

using How = Setting::How;

// Where each variable is referred to: commands, ascending.
using Uses = std::map<std::string_view, std::vector<std::size_t>, std::less<>>;

void add_uses(const Shell& shell, Span span, std::size_t command, Uses& uses) {
  const std::string_view text = shell.at(span);
  for (std::size_t at = 0; (at = text.find('$', at)) != text.npos;) {
    ++at;
    if (at < text.size() && text[at] == '{') ++at;
    while (at < text.size() && (text[at] == '#' || text[at] == '!')) ++at;
    std::size_t end = at;
    if (end < text.size() && is_name_start(text[end]))
      while (end < text.size() && is_name_char(text[end])) ++end;
    if (end > at) uses[text.substr(at, end - at)].push_back(command);
    at = end;
  }
}

bool prints(const Shell& shell, const Command& command) {
  if (command.words.empty()) return false;
  const std::string_view name = shell.at(command.words.front().span);
  return name == "echo" || name == "printf";
}

// `printed`: also those in echo and printf, which show a value and do nothing with it.
Uses find_uses(const Shell& shell, bool printed) {
  Uses uses;
  for (std::size_t i = 0; i < shell.commands.size(); ++i) {
    if (!printed && shell.commands[i].redirects.empty() && prints(shell, shell.commands[i]))
      continue;
    add_uses(shell, shell.commands[i].span, i, uses);
    for (const Redirect& one : shell.commands[i].redirects) add_uses(shell, one.body, i, uses);
  }
  return uses;
}

bool used_between(const Uses& uses, std::string_view name, std::size_t first, std::size_t last) {
  const auto found = uses.find(name);
  if (found == uses.end()) return false;
  const auto at = std::ranges::upper_bound(found->second, first);
  return at != found->second.end() && *at <= last;
}

// A library reads it from its environment. Batch systems and shells export some names by themselves.
bool read_by_library(std::string_view name) {
  const auto variable = knowledge::find(name);
  if (has_word(words_named("inherited"), name)) return false;
  return variable && variable->direction == knowledge::Direction::input;
}

// torchrun reads its options, and gives these to its workers by itself.
bool reads(const Script& script, std::size_t launch, std::string_view name) {
  if (!has_word(words_named("of workers"), name)) return true;
  return std::ranges::none_of(script.launches, [&](const Launch& one) {
    if (one.kind != "torchrun") return false;
    const Launch* outer = &one;
    while (outer->outer != Setting::kNone && outer != &script.launches[launch])
      outer = &script.launches[outer->outer];
    return outer == &script.launches[launch];
  });
}

void not_exported(const Script& script, const Uses& uses, Findings& findings) {
  for (std::size_t i = 0; i < script.settings.size(); ++i) {
    const Setting& one = script.settings[i];
    if (one.how != How::assigned || one.exported || one.local || one.array ||
        !read_by_library(one.name))
      continue;
    if (uses.contains(one.name)) continue;  // also above it: in a loop, that comes later
    // A later change decides; or a launch that is not given it.
    if (script.last(one.name, script.settings.size()) != &one) continue;
    bool wanted = false;
    for (std::size_t at = 0; at < script.launches.size() && !wanted; ++at)
      wanted = script.launches[at].settings_before > i &&
               script.given(one.name, script.launches[at]) == nullptr &&
               reads(script, at, one.name);
    if (!wanted && !(script.launches.empty() && !script.shell.directives.empty())) continue;
    Finding& finding =
        findings.add("not-exported", one.name_span,
                     fmt::format("{} is assigned and not exported: no program sees it", one.name),
                     fmt::format("export {}=...", one.name));
    const Command& command = script.shell.commands[one.command];
    if (command.words.empty() && command.assignments.size() == 1) {
      finding.edits = {{command.span.begin, command.span.begin, "export "}};
      finding.certain = true;
    }
  }
}

// export MASTER_ADDR=$MASTER_ADDR, where the script has set master_addr.
void to_itself(const Script& script, Findings& findings) {
  for (std::size_t i = 0; i < script.shell.commands.size(); ++i)
    for (const Assignment& one : script.shell.commands[i].assignments) {
      const std::vector<Part>& parts = one.value.parts;
      if (one.append || parts.size() != 1) continue;
      const Part& part = parts.front();
      if (part.kind != Part::Kind::parameter || part.text != one.name || !part.rest.empty())
        continue;
      const auto own = script.by_name.find(one.name);
      if (own == script.by_name.end() || script.settings[own->second.front()].command < i) continue;
      for (const auto& [name, indices] : script.by_name)
        if (name != one.name && to_lower(name) == to_lower(one.name) &&
            script.settings[indices.front()].command < i)
          findings.add(
              "self-assignment", one.name_span,
              fmt::format(
                  "{} is set to its own value, and this script sets {} in line {}", one.name, name,
                  place_of(script.shell, script.settings[indices.front()].name_span.begin).line),
              fmt::format("{}=${}", one.name, name));
    }
}

// A launch begins behind the first of two settings and before the second.
bool starts_between(const std::vector<Launch>& launches, std::size_t first, std::size_t second) {
  const auto next = std::ranges::upper_bound(launches, first, {}, &Launch::settings_before);
  return next != launches.end() && next->settings_before <= second;
}

void repeated(const Script& script, const Uses& uses, Findings& findings) {
  for (const auto& [name, indices] : script.by_name) {
    if (indices.size() < 2 || !knowledge::find(name)) continue;
    const Setting* before = nullptr;
    std::size_t before_index = 0;
    for (const std::size_t index : indices) {
      const Setting& one = script.settings[index];
      const bool plain = one.exported && !one.conditional && !one.local && one.value.known() &&
                         !one.value_span.empty() && !one.append && one.launch == Setting::kNone &&
                         (one.how == How::exported || one.how == How::assigned);
      const bool same_run =
          before != nullptr && !starts_between(script.launches, before_index, index);
      const bool differs = plain && same_run && before->value.text != one.value.text &&
                           before->command < one.command &&
                           !used_between(uses, name, before->command, one.command);
      if (differs)
        findings.add("repeated-setting", one.name_span,
                     fmt::format("{} was set to {} in line {}; only this value, {}, counts", name,
                                 shown_value(name, before->value.text),
                                 place_of(script.shell, before->name_span.begin).line,
                                 shown_value(name, one.value.text)));
      before = plain ? &one : nullptr;
      before_index = index;
    }
  }
}

// A command after which a program may still start.
bool may_start_programs(const Shell& shell, const Command& command) {
  return !command.words.empty() &&
         !has_word(words_named("quiet"), shell.at(command.words.front().span));
}

void too_late(const Script& script, Findings& findings) {
  const Shell& shell = script.shell;
  if (script.launches.empty()) return;
  std::size_t last = shell.commands.size();  // the first command behind which nothing starts
  while (last > 0 && !may_start_programs(shell, shell.commands[last - 1])) --last;
  std::size_t settings = 0;
  for (const Launch& launch : script.launches)
    settings = std::max(settings, launch.settings_before);
  for (std::size_t i = settings; i < script.settings.size(); ++i) {
    const Setting& one = script.settings[i];
    const bool sets = one.how == How::exported && one.launch == Setting::kNone &&
                      shell.commands[one.command].function == 0;
    if (!sets || one.command < last || !knowledge::find(one.name)) continue;
    findings.add("set-after-launch", one.name_span,
                 fmt::format("{} is set after the last launch: no program sees it", one.name));
  }
}

// Modules of these names set variables of communication libraries.
bool sets_variables(const Module& module) {
  const std::string name = to_lower(module.name);
  return module.verb == "load" &&
         std::ranges::any_of(words_named("stacks"), [&](std::string_view one) {
           const std::string stack = to_lower(one);
           return name == stack || name.starts_with(stack + "/") || name.starts_with(stack + "-");
         });
}

void before_module(const Script& script, Findings& findings) {
  for (const Setting& one : script.settings) {
    const bool stack = begins_with_one(words_named("stack prefixes"), one.name);
    const bool logs =
        one.name.find("DEBUG") != one.name.npos || one.name.find("LOG") != one.name.npos;
    if (!stack || logs || one.how != How::exported || one.local || one.value_span.empty()) continue;
    const auto behind = std::ranges::upper_bound(script.modules, one.command, {}, &Module::command);
    const auto later = std::find_if(behind, script.modules.end(), sets_variables);
    if (later == script.modules.end() || !knowledge::find(one.name)) continue;
    const std::vector<std::size_t>& all = script.by_name.find(one.name)->second;
    const auto after = std::ranges::upper_bound(
        all, later->command, {}, [&](std::size_t index) { return script.settings[index].command; });
    if (after != all.end()) continue;
    findings.add(
        "export-before-module", one.name_span,
        fmt::format("{} is set before \"module load {}\" in line {}, which may set it too",
                    one.name, shown(later->name), place_of(script.shell, later->span.begin).line));
  }
}

}  // namespace

void check_assignments(const Script& script, Findings& findings) {
  const Uses uses = find_uses(script.shell, true);
  not_exported(script, find_uses(script.shell, false), findings);
  to_itself(script, findings);
  repeated(script, uses, findings);
  too_late(script, findings);
  before_module(script, findings);
}

}  // namespace hpclaunch::lint
