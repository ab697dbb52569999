// Mistakes of shell text that a shell does not report, or reports in the job only.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"
#include "lint/counts.h"
#include "lint/words.h"

namespace hpclaunch::lint {

namespace {

void bad_parts(const Word& word, const Shell& shell, Findings& findings) {
  for (const Part& part : word.parts)
    if (part.kind == Part::Kind::bad)
      findings.add("bad-substitution", part.span,
                   fmt::format("{} is not a valid expansion: the shell stops here",
                               shown(shell.at(part.span))));
}

// NAME=a;b where the rest was meant as part of the value.
void semicolon(const Shell& shell, std::size_t index, Findings& findings) {
  const Command& one = shell.commands[index];
  if (one.assignments.empty() || index + 1 >= shell.commands.size()) return;
  const Assignment& last = one.assignments.back();
  const Command& next = shell.commands[index + 1];
  const bool joined = last.span.end == one.span.end && next.span.begin == one.span.end + 1 &&
                      one.span.end < shell.text.size() && shell.text[one.span.end] == ';';
  if (!joined || next.words.size() != 1 || !next.assignments.empty()) return;
  const std::string_view rest = shell.at(next.words.front().span);
  const bool part = rest.find(':') != rest.npos || knowledge::find(last.name).has_value();
  if (!part || rest.find('/') != rest.npos) return;
  Finding& finding =
      findings.add("unquoted-semicolon", last.span,
                   fmt::format("the value of {} ends at ';', and {} is run as a command", last.name,
                               shown(rest)),
                   fmt::format("{}='...;{}'", last.name, shown(rest)));
  const bool plain = std::ranges::all_of(
      last.value.parts, [](const Part& p) { return p.kind == Part::Kind::text && !p.quoted; });
  if (!plain || next.join != Join::end) return;
  finding.edits = {{last.value.span.begin, last.value.span.begin, "'"},
                   {next.words.front().span.end, next.words.front().span.end, "'"}};
  finding.certain = true;
}

bool looks_like_variable(std::string_view name) {
  return is_identifier(name) && name.size() > 1 && consists_of(name, "_") &&
         std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

// NAME =value, NAME = value, NAME= value, export NAME = value
void blanks(const Shell& shell, const Command& command, Findings& findings) {
  if (shell.dialect == Dialect::csh) return;
  const auto text = [&](std::size_t i) { return shell.at(command.words[i].span); };
  const bool exports = !command.words.empty() && text(0) == "export";
  for (std::size_t i = exports ? 1 : 0; i + 1 < command.words.size() && i < (exports ? 64u : 1u);
       ++i) {
    if (!text(i + 1).starts_with('=') || text(i + 1).starts_with("==")) continue;
    if (exports ? !is_identifier(text(i)) : !looks_like_variable(text(i))) continue;
    Finding& finding = findings.add(
        "blank-at-equals", span_of(command.words[i].span.begin, command.words[i + 1].span.end),
        fmt::format("blank before the '=' of {}: {}", text(i),
                    exports ? "nothing is assigned" : "it is run as a command"),
        fmt::format("{}=...", text(i)));
    std::size_t to = command.words[i + 1].span.end;
    if (text(i + 1) == "=" && i + 2 < command.words.size()) to = command.words[i + 2].span.begin;
    std::string equals(text(i + 1));
    finding.edits = {{command.words[i].span.end, to, equals}};
    finding.certain = exports || knowledge::find(text(i)).has_value();
    return;
  }
  if (command.assignments.empty() || command.words.size() != (exports ? 2u : 1u)) return;
  const Assignment& last = command.assignments.back();
  const Word& word = command.words.back();
  const bool value =
      parse_natural(shell.at(word.span)).has_value() && last.value.parts.empty() && !last.array;
  if (!value || word.span.begin < last.span.end) return;
  Finding& finding =
      findings.add("blank-at-equals", span_of(last.span.begin, word.span.end),
                   fmt::format("blank after the '=' of {}: its value is empty", last.name),
                   fmt::format("{}={}", last.name, shell.at(word.span)));
  finding.edits = {{last.span.end, word.span.begin, ""}};
  finding.certain = true;
}

// let NRANKS=$A*$B: 1 where the result is 0, which ends a script under set -e.
void let(const Shell& shell, const Command& command, bool stops, Findings& findings) {
  if (command.words.size() < 2 || shell.at(command.words.front().span) != "let") return;
  if (command.join == Join::or_else || command.test) return;
  const Word& word = command.words[1];
  const std::string_view text = shell.at(word.span);
  const bool pattern = shell.at(command.span).find('*') != std::string_view::npos;
  if (!stops && !pattern) return;
  const std::size_t equals = text.find('=');
  const bool assigns = command.words.size() == 2 && equals != text.npos &&
                       is_identifier(text.substr(0, equals)) &&
                       text.find_first_of("\"'") == text.npos;
  Finding& finding = findings.add(
      "let-command", command.span,
      stops ? "let fails where its result is 0, and set -e then ends the script"
            : "the shell takes an unquoted * behind let for a pattern of file names",
      assigns ? fmt::format("{}=$(({}))", text.substr(0, equals), text.substr(equals + 1))
              : "NAME=$((EXPRESSION))");
  if (stops) finding.diagnostic.severity = Severity::warning;
  if (!assigns) return;
  finding.edits = {{command.span.begin, word.span.end, finding.diagnostic.fix}};
  finding.certain = true;
}

bool is_option(const Shell& shell, const Command& command) {
  if (command.words.empty() || !command.assignments.empty()) return false;
  const std::string_view text = shell.at(command.words.front().span);
  return text.size() > 1 && text[0] == '-' && (text[1] == '-' || is_name_start(text[1]));
}

// A command whose name is an option: the line above it was to continue here. The first of several says it for all.
void lost_continuation(const Shell& shell, std::size_t index, Findings& findings) {
  const Command& command = shell.commands[index];
  if (!is_option(shell, command) || (index > 0 && is_option(shell, shell.commands[index - 1])))
    return;
  const Span name = command.words.front().span;
  const std::string_view text = shell.at(name);
  const std::size_t line = shell.text.rfind('\n', name.begin);
  if (line == shell.text.npos || line == 0) return;
  const std::size_t start = shell.text.rfind('\n', line - 1) + 1;  // npos + 1 is 0
  std::string_view before = trim(shell.text.substr(start, line - start));
  const std::size_t slash = before.find("\\ ");
  const char* why = "the line above does not end in \\";
  if (before.starts_with('#'))
    why = "the comment above ends the command";
  else if (before.ends_with('\\') || slash != before.npos)
    why = "the \\ of the line above is not its last character";
  findings.add(
      "lost-continuation", name,
      fmt::format("{} is run as a command: {}", shown(text.substr(0, text.find('='))), why));
}

// srun -n 8 \, an empty line, and the program behind it.
void ends_before_program(const Script& script, Findings& findings) {
  for (const Launch& launch : script.launches) {
    const Command& command = script.shell.commands[launch.command];
    const std::string_view rest = script.shell.text.substr(command.span.end);
    const std::size_t slash = rest.find_first_not_of(" \t");
    if (!starts_ranks(launch) || !launch.inner.empty() || launch.options.empty() ||
        launch.outer != Setting::kNone || slash == rest.npos ||
        !rest.substr(slash).starts_with("\\\n"))
      continue;
    findings.add(
        "lost-continuation", launch.span,
        fmt::format("{} starts no program: the line behind its last \\ is empty", launch.program));
  }
}

// [ $N > 0 ] writes a file of that name.
void redirect_in_test(const Shell& shell, const Command& command, Findings& findings) {
  if (command.words.empty() || shell.at(command.words.front().span) != "[") return;
  for (const Redirect& one : command.redirects) {
    const std::string_view target = shell.at(one.target.span);
    if ((one.op != ">" && one.op != "<") || target.empty() || target.starts_with("/dev/")) continue;
    const std::string_view better = one.op == ">" ? "-gt" : "-lt";
    findings.add("redirect-in-test", command.span,
                 fmt::format("{} in [ ] {} {} instead of comparing", one.op,
                             one.op == ">" ? "writes the file" : "reads the file", shown(target)),
                 fmt::format("[ ... {} {} ]", better, shown(target)));
  }
}

// Characters of typeset text, which shells and batch systems do not read as - " ' and blank.
void typeset_characters(const Shell& shell, Findings& findings) {
  static constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
      {"\xE2\x80\x93", "-"}, {"\xE2\x80\x94", "--"}, {"\xE2\x80\x9C", "\""}, {"\xE2\x80\x9D", "\""},
      {"\xE2\x80\x98", "'"}, {"\xE2\x80\x99", "'"},  {"\xC2\xA0", " "}};
  const auto report = [&](Span span) {
    const std::string_view text = shell.at(span);
    for (const auto& [sign, ascii] : kSigns) {
      const std::size_t at = text.find(sign);
      const bool dash = ascii.front() == '-';
      if (at == text.npos || (dash && at != 0 && text[at - 1] != ' ')) continue;
      if (dash && at + sign.size() >= text.size()) continue;  // a dash between words
      const Span place = span_of(span.begin + at, span.begin + at + sign.size());
      Finding& finding = findings.add(
          "typeset-character", place,
          fmt::format("\"{}\" is a typographic character, not {}",
                      sign == "\xC2\xA0" ? "no-break space" : sign, ascii == " " ? "blank" : ascii),
          fmt::format("type {}", ascii == " " ? "a blank" : ascii));
      finding.edits = {{place.begin, place.end, std::string(ascii)}};
      return;
    }
  };
  if (!shell.shebang.empty()) report(span_of(2, 2 + shell.text.substr(2).find_first_of("\r\n")));
  for (const Directive& one : shell.directives) report(one.body);
  for (const Command& command : shell.commands) {
    const std::string_view name =
        command.words.empty() ? std::string_view() : shell.at(command.words.front().span);
    if (name == "echo" || name == "printf") continue;
    const auto check = [&](const Word& word) {
      for (const Part& part : word.parts)
        if (part.kind == Part::Kind::text && !part.quoted) report(part.span);
    };
    for (const Word& word : command.words) check(word);
    for (const Assignment& one : command.assignments) check(one.value);
  }
}

// "#!/bash/bin", "#!bin/bash": the system finds no such interpreter.
void shebang(const Shell& shell, Findings& findings) {
  const std::string_view path = shell.shebang.substr(0, shell.shebang.find_first_of(" \t"));
  if (path.empty()) {
    for (const Comment& comment : shell.comments)
      if (comment.alone && shell.at(comment.span).starts_with("#!/"))
        return static_cast<void>(findings.add(
            "bad-shebang", comment.span, "#! counts only as the first two characters of the file",
            "move this line to the top"));
    return;
  }
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const bool known = has_one_in_it(words_named("interpreters"), name);
  if (path.front() == '/' && known && consists_of(name, ".+-_")) return;
  findings.add("bad-shebang", span_of(0, 2 + path.size()),
               path.front() == '/' ? fmt::format("{} is not a shell", shown(path))
                                   : fmt::format("{} is not an absolute path", shown(path)));
}

void line_ends(const Shell& shell, Findings& findings) {
  const std::size_t first = shell.text.find("\r\n");
  if (first == shell.text.npos) return;
  Finding& finding = findings.add("crlf", span_of(first, first + 1),
                                  "lines end with \\r\\n (Windows): the shell reads \\r as text");
  for (std::size_t at = first; at != shell.text.npos; at = shell.text.find("\r\n", at + 2))
    finding.edits.push_back({at, at + 1, ""});
  finding.certain = true;
}

}  // namespace

void check_shell(const Script& script, Findings& findings) {
  const Shell& shell = script.shell;
  line_ends(shell, findings);
  shebang(shell, findings);
  typeset_characters(shell, findings);
  ends_before_program(script, findings);
  bool stops = false;  // at the first failure
  for (std::size_t i = 0; i < shell.commands.size(); ++i) {
    const Command& command = shell.commands[i];
    if (command.words.size() > 1 && shell.at(command.words[0].span) == "set")
      stops = stops || shell.at(command.words[1].span).starts_with("-e") ||
              shell.at(command.span).find("errexit") != std::string_view::npos;
    let(shell, command, stops, findings);
    for (const Word& word : command.words) bad_parts(word, shell, findings);
    for (const Assignment& one : command.assignments) {
      bad_parts(one.value, shell, findings);
      for (const Word& item : one.items) bad_parts(item, shell, findings);
    }
    lost_continuation(shell, i, findings);
    redirect_in_test(shell, command, findings);
    semicolon(shell, i, findings);
    blanks(shell, command, findings);
  }
}

}  // namespace hpclaunch::lint
