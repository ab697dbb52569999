// Lines for the batch system: read by it, not by a shell.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/lint.h"
#include "hpclaunch/text.h"
#include "lint/asks.h"
#include "lint/engine.h"

namespace hpclaunch::lint {

namespace {

// "#SBATCH" for "#SBTACH", "#SBASH" and the like. A '#' on both sides makes two letters near enough in six.
std::optional<std::string> meant(std::string_view upper, bool joined) {
  static const std::vector<std::string> kMarks = {"#SBATCH", "#PBS", "#BSUB"};
  std::string word(upper);
  if (joined) word.insert(0, 1, '#');
  std::optional<std::string> near = nearest(word, kMarks);
  if (near) near->erase(0, 1);
  return near;
}

// "# SBATCH -N 4", "#SBATCH-N 4", "#SBTACH -N 4", "#sbatch -N 4": comments for the batch system.
void misspelt(const Script& script, const Comment& comment, Findings& findings) {
  static const std::vector<std::string> kWords = {"SBATCH", "PBS", "BSUB"};
  const std::string_view text = script.shell.at(comment.span);
  const bool at_start = comment.alone && (comment.span.begin == 0 ||
                                          script.shell.text[comment.span.begin - 1] == '\n');
  if (!at_start || text.starts_with("##")) return;
  const std::string_view body = trim(text.substr(1));
  const std::size_t end = std::min(body.find_first_of(" \t-"), body.size());
  const std::string_view word = body.substr(0, end);
  const std::string_view option = trim(body.substr(end));
  const bool has_option = option.size() > 1 && option.front() == '-' && option[1] != ' ';
  if (word.size() < 3 || word.front() == '#' || !has_option) return;
  const bool lower = std::ranges::none_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
  if (lower && text[1] != word.front()) return;  // "# bsub -n 8 job.sh": how to submit it
  std::string upper(word);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const bool exact = std::ranges::count(kWords, upper) > 0;
  const std::optional<std::string> near = exact             ? std::optional(upper)
                                          : word.size() > 4 ? meant(upper, text[1] == word.front())
                                                            : std::nullopt;
  if (!near) return;
  // Switched off on purpose where the same option is asked for in another line.
  const std::string name(option.substr(0, option.find_first_of("= \t")));
  const bool again =
      std::ranges::any_of(script.asks, [&](const Ask& one) { return one.name == name; });
  if (word == *near && again) return;
  Finding& finding = findings.add(
      "misspelt-directive", comment.span,
      fmt::format("\"{}\" does not begin a directive: the batch system ignores this line",
                  shown(text.substr(0, text.find(word) + word.size()))),
      fmt::format("#{} {}", *near, shown(option)));
  finding.edits = {{comment.span.begin, comment.span.end, fmt::format("#{} {}", *near, option)}};
  // "# SBATCH" is as often a directive that was switched off.
  if (word == *near && text[1] != word.front()) finding.diagnostic.severity = Severity::note;
}

// "!#SBATCH -N 4", "\\#SBATCH -N 4": a shell runs these lines.
void run_by_shell(const Script& script, const Command& command, Findings& findings) {
  if (command.words.empty()) return;
  const std::string_view word = script.shell.at(command.words.front().span);
  for (const std::string_view mark : {"#SBATCH", "#PBS", "#BSUB"}) {
    const std::size_t at = word.find(mark);
    if (at == word.npos || at == 0 || at > 2 || word.size() != at + mark.size()) continue;
    Finding& finding = findings.add(
        "misspelt-directive", command.span,
        fmt::format("\"{}\" does not begin a directive: the shell runs it as a command", word),
        std::string(script.shell.at(command.span).substr(at)));
    finding.edits = {{command.span.begin, command.span.begin + at, ""}};
  }
}

// Replaced by the batch system itself, in file names.
bool own_pattern(std::string_view sentinel, std::string_view text) {
  if (sentinel == "#$") return true;
  return sentinel == "#PBS" && (text.starts_with("$PBS_") || text.starts_with("${PBS_"));
}

void variables(const Script& script, const Directive& directive, Findings& findings) {
  const std::string_view body = script.shell.at(directive.body);
  const std::size_t at = body.find('$');
  if (at == body.npos || at + 1 >= body.size() || own_pattern(directive.sentinel, body.substr(at)))
    return;
  const char next = body[at + 1];
  if (next != '{' && next != '(' && !is_identifier(std::string_view(&next, 1))) return;
  findings.add(
      "variable-in-directive", span_of(directive.body.begin + at, directive.body.end),
      fmt::format("{} is not expanded: no shell reads directives", shown(body.substr(at))));
}

void repeated(const Script& script, Findings& findings) {
  std::map<std::string_view, const Ask*> first;
  for (const Ask& one : script.asks) {
    if (has_word(words_named("repeatable"), one.name)) continue;
    const auto [entry, added] = first.try_emplace(one.name, &one);
    if (added || entry->second->value == one.value || entry->second->system != one.system) continue;
    findings.add(
        "repeated-directive", one.span,
        fmt::format("{} is {} in line {} and {} here: the batch system keeps one of them", one.name,
                    shown(entry->second->value),
                    place_of(script.shell, entry->second->span.begin).line, shown(one.value)));
  }
}

std::string_view submit_command(std::string_view system) {
  return system == "flux" ? "flux batch" : "sbatch";
}

// sbatch and flux take an unambiguous beginning of an option.
void unknown_options(const Script& script, Findings& findings) {
  // A script may have directives for several systems; known are the options of this one.
  std::string_view system;
  std::vector<std::string> known;
  for (const Ask& one : script.asks) {
    if (one.system != system) known = known_options(system = one.system);
    if (known.empty() || !one.name.starts_with("--") || one.name.find('$') != std::string::npos ||
        std::ranges::count(known, one.name) > 0 || is_plugin_option(system, one.name))
      continue;
    if (one.name == "--") {
      findings.add("unknown-directive", one.span,
                   fmt::format("-- ends the options: {} is not read", shown(one.value)),
                   "--" + one.value);
      continue;
    }
    std::vector<std::string> longer;
    for (const std::string& name : known)
      if (name.starts_with(one.name)) longer.push_back(name);
    if (longer.size() == 1) continue;
    const std::optional<std::string> near = nearest(one.name, known);
    std::string text = fmt::format("{} has no option {}", submit_command(system), shown(one.name));
    if (!longer.empty())
      text = fmt::format("{} may be {} or {}: {} refuses it", one.name, longer[0], longer[1],
                         submit_command(system));
    else if (!near && system == "slurm")
      text += ", unless a plug-in of the site adds it";
    Finding& finding = findings.add("unknown-directive", one.span, text, near ? *near : "");
    if (text.ends_with("adds it")) finding.diagnostic.severity = Severity::note;
    if (near) finding.edits = {{one.span.begin, one.span.begin + one.name.size(), *near}};
  }
}

// qsub reads single letters, and calls the rest of the word their value.
void unknown_letters(const Script& script, Findings& findings) {
  constexpr std::string_view kOpenPbs = "aAcCefhIjJklmMNopPqrRSuvVWXz";
  constexpr std::string_view kTorque = "bBdDFiKLntTwx";
  const bool torque = for_torque(script);
  for (const Ask& one : script.asks) {
    if (one.system != "pbs" || one.name.starts_with("-l ")) continue;
    const char letter = one.name[1];
    const bool known = letter != '-' && kOpenPbs.find(letter) != kOpenPbs.npos;
    const bool of_torque = kTorque.find(letter) != kTorque.npos && one.name.size() == 2;
    if (known || (torque && of_torque)) continue;
    const std::string_view word = script.shell.at(one.span);
    const std::string_view name = word.substr(0, word.find_first_of("= "));
    const bool of_slurm = name == "--nodes" || name == "-n" || name == "-N";
    Finding& finding = findings.add(
        "unknown-directive", one.span,
        of_torque ? fmt::format("qsub of OpenPBS and PBS Professional has no option {}", one.name)
                  : fmt::format("qsub has no option {}", shown(name)),
        letter == 't'                ? "-J FIRST-LAST"
        : of_slurm                   ? "-l select=NODES"
        : word.starts_with("--time") ? "-l walltime=HH:MM:SS"
        : word.find('=') != word.npos && name.size() > 2 && name[1] != '-'
            ? fmt::format("-l {}", shown(word.substr(1)))
            : "");
    if (of_torque && letter != 'n' && letter != 't')
      finding.diagnostic.severity = Severity::warning;
  }
}

// "#SBATCH --account=my project": sbatch and qsub refuse a word that is not an option.
void stray_words(const Script& script, Findings& findings) {
  for (const auto& [directive, span] : script.strays) {
    const Directive& line = script.shell.directives[directive];
    if (line.sentinel != "#SBATCH" && (line.sentinel != "#PBS" || for_torque(script))) continue;
    const std::string_view word = script.shell.at(span);
    const std::string_view body = script.shell.at(line.body);
    if (line.late) continue;
    if (word == "hetjob" || word == "packjob" || body.find('<') != body.npos) continue;
    findings.add("unknown-directive", span,
                 fmt::format("\"{}\" is neither an option nor its value", shown(word)),
                 "remove it, put # before a comment, or quote a value with blanks");
  }
}

// "#PBS -j oe  # joined": qsub takes the comment for words of the line.
void pbs_comments(const Script& script, Findings& findings) {
  if (for_torque(script)) return;
  for (const Directive& line : script.shell.directives) {
    const Span rest = span_of(line.body.end, line.span.end);
    if (line.sentinel != "#PBS" || line.late || trim(script.shell.at(rest)).empty()) continue;
    Finding& finding = findings.add("unknown-directive", rest,
                                    "qsub reads a comment behind an option as a word, and stops",
                                    "write it in a line of its own");
    finding.edits = {{rest.begin, rest.end, ""}};
  }
}

// What sites have taken away.
void retired(const Script& script, Findings& findings) {
  for (const RetiredName& row : rows<RetiredName>()) {
    const auto report = [&](Span span) {
      findings.add("retired", span, fmt::format("{}: {}", row.name, row.what),
                   std::string(row.now));
    };
    for (const std::string_view option : row.options)
      if (const Ask* const one = script.ask({option}); one != nullptr && one->value == row.name) {
        report(one->span);
        break;
      }
    for (const Module& module : script.modules)
      if (row.module && module.verb == "load" &&
          module.name.substr(0, module.name.find('/')) == row.name)
        report(module.span);
  }
}

// One finding for all of them. SGE and LSF read every line.
void late(const Shell& shell, Findings& findings) {
  const Directive* first = nullptr;
  std::size_t count = 0;
  for (const Directive& one : shell.directives) {
    if (!one.late || one.sentinel == "#$" || one.sentinel == "#BSUB") continue;
    if (first == nullptr) first = &one;
    ++count;
  }
  if (first == nullptr) return;
  const std::string more = count > 1 ? fmt::format(" and {} more", count - 1) : "";
  findings.add(
      "late-directive", first->span,
      fmt::format("{} after the first command is ignored: this line{}", first->sentinel, more));
}

}  // namespace

void check_directives(const Script& script, Findings& findings) {
  const Shell& shell = script.shell;
  for (const Comment& comment : shell.comments) misspelt(script, comment, findings);
  for (const Command& command : shell.commands) run_by_shell(script, command, findings);
  late(shell, findings);
  for (const Directive& directive : shell.directives) variables(script, directive, findings);
  const bool below = std::ranges::any_of(shell.comments, [&](const Comment& one) {
    return shell.at(one.span).starts_with("#!/");  // a finding of its own
  });
  if (!shell.directives.empty() && shell.shebang.empty() && !below &&
      script.ask({"-S"}) == nullptr) {
    Finding& finding = findings.add("missing-shebang", shell.directives.front().span,
                                    "the first line does not name a shell", "#!/bin/bash");
    if (script.request.system == "slurm") finding.diagnostic.severity = Severity::error;
  }
  repeated(script, findings);
  retired(script, findings);
  unknown_options(script, findings);
  unknown_letters(script, findings);
  stray_words(script, findings);
  pbs_comments(script, findings);
}

}  // namespace hpclaunch::lint
