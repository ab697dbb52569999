// Programs that start processes themselves, by the data of profiles/programs/launchers.json.
#include "world/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hpclaunch/frameworks.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/programs.h"
#include "hpclaunch/render.h"
#include "hpclaunch/secret.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

using Command = std::vector<std::string>;

// "/usr/bin/python3.11" is python. A program outside a bin folder is the user's own: "".
std::string installed_name(const std::string& word) {
  const std::size_t slash = word.rfind('/');
  if (slash != std::string::npos && !word.substr(0, slash).ends_with("bin")) return "";
  std::string name = word.substr(slash + 1);
  if (!is_python(name)) return name;
  return name.substr(0, name.find_last_not_of("0123456789.-") + 1);
}

// What a program that execs another one says of it: where its words begin, the module of `python -m`, the text of
// `sh -c`.
struct Wrapped {
  // The end of the command behind an option that is not known: the next word may be its value.
  std::size_t at = 0;
  std::string module;
  std::string text;
};

Wrapped past_wrapper(const Wrapper& row, const Command& command, std::size_t program) {
  Wrapped found;
  const OptionLine line =
      read_options(grammars_of(row), command, program + (row.words.empty() ? 1 : 2));
  for (const GivenOption& one : line.options) {
    const std::string& word = command[one.first];
    const bool number = word[1] >= '0' && word[1] <= '9';  // nice -10
    if (!one.known && !number && word.find('=') == std::string::npos)
      return {command.size(), "", ""};
    if (one.is(Decides::module)) found.module = one.value;
    if (one.is(Decides::text)) found.text = one.value;
  }
  std::size_t at = line.rest;
  const auto is_own = [&] {
    return command[at] == "--" || (row.assignments && command[at].find('=') != std::string::npos);
  };
  while (at < command.size() && is_own()) ++at;
  at += static_cast<std::size_t>(row.skip);
  if (at < command.size() && command[at] == "--") ++at;  // ch-run IMAGE -- PROGRAM
  found.at = std::min(at, command.size());
  return found;
}

// The simple commands of a shell's text, without their quotes: enough to see what it starts.
std::vector<Command> commands_in(std::string text) {
  constexpr std::string_view kQuotes = "\"'", kEnds = ";&|\n(){}";
  std::erase_if(text, [&](char c) { return kQuotes.find(c) != std::string_view::npos; });
  for (char& c : text)
    if (kEnds.find(c) != std::string_view::npos) c = '\n';
  std::vector<Command> commands;
  for (const std::string_view line : split(text, '\n')) {
    Command words;
    for (const std::string_view word : split(line, ' ')) {
      const bool assignment = words.empty() && is_identifier(word.substr(0, word.find('='))) &&
                              word.find('=') != std::string_view::npos;
      if (!word.empty() && word != "exec" && !assignment) words.emplace_back(word);
    }
    if (!words.empty()) commands.push_back(std::move(words));
  }
  return commands;
}

struct Found {
  const StartingProgram* row = nullptr;
  Command command;        // that of `sh -c` where one has the launcher
  std::size_t begin = 0;  // of the launcher's words, an interpreter before it included
  std::size_t args = 0;
  std::string python = "python";
};

std::optional<Found> find_program(const Command& command) {
  std::string python = "python";
  std::size_t interpreter = command.size();  // where it stands, if the next words are its script
  for (std::size_t at = 0; at < command.size();) {
    const std::string name = installed_name(command[at]);
    const std::string next = at + 1 < command.size() ? command[at + 1] : "";
    bool known = false;
    for (const StartingProgram& row : rows<StartingProgram>()) {
      if (!has_word(row.programs, name)) continue;
      const Words words = words_of(row.words, name);
      const bool second = !words.empty();
      if (!second || has_word(words, next))
        return Found{&row, command, std::min(interpreter, at), at + (second ? 2 : 1), python};
      known = true;
    }
    if (known) return std::nullopt;
    const Wrapper* wrapper = find_wrapper(name);
    if (wrapper == nullptr) return std::nullopt;
    if (!wrapper->words.empty() && !has_word(wrapper->words, next)) return std::nullopt;
    const std::size_t begin = at;
    interpreter = command.size();
    if (is_python(name)) {
      python = command[at];
      interpreter = at;
    }
    const Wrapped wrapped = past_wrapper(*wrapper, command, at);
    at = wrapped.at;
    if (!wrapped.text.empty()) {
      for (const Command& inner : commands_in(wrapped.text))
        if (std::optional<Found> found = find_program(inner)) return found;
      return std::nullopt;
    }
    if (wrapped.module.empty()) continue;
    for (const StartingProgram& row : rows<StartingProgram>())
      if (has_word(row.modules, wrapped.module)) return Found{&row, command, begin, at, python};
    if (!has_word(wrapper->wrapping_modules, wrapped.module)) return std::nullopt;
    while (at < command.size() && (command[at].starts_with('-') || command[at] == "run")) ++at;
  }
  return std::nullopt;
}

// A word with a secret is not to be typed as it is shown.
std::string typed_words(const Command& words) {
  const Command shown = without_secrets(words);
  std::string line;
  for (std::size_t i = 0; i < words.size(); ++i)
    line += " " + (shown[i] == words[i] ? quote_sh(words[i]) : shown[i]);
  return line;
}

OptionLine options_in(const Found& found) {
  return read_options(grammars_of(found.row->name), found.command, found.args);
}

constexpr std::pair<Decides, const char*> kCounts[] = {
    {Decides::nodes, "-N"}, {Decides::ranks, "-n"}, {Decides::per_node, "--ppn"}};

// "hpclaunch run -N 2 --ppn 8 -- python train.py"
std::string meant(const Found& found) {
  const StartingProgram& row = *found.row;
  const Command& command = found.command;
  if (row.starts == StartingProgram::Starts::agent)
    return "hpclaunch run --agent --" + typed_words(command);
  std::string line = "hpclaunch run";
  bool module = false;
  bool is_program = row.interpreter.empty();
  const OptionLine typed = options_in(found);
  std::size_t at = typed.rest;
  for (const GivenOption& one : typed.options) {
    module = module || one.is(Decides::module);
    if (one.is(Decides::module) && one.has_value) at = one.value_word;
    is_program = is_program || one.is(Decides::program);
    for (const auto& [decides, ours] : kCounts)
      if (one.is(decides) && parse_natural(one.value).value_or(0) > 0)
        line += fmt::format(" {} {}", ours, one.value);
  }
  if (at == command.size()) return line + " -- PROGRAM";
  Command words(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(found.begin));
  if (!is_program) words.push_back(found.python);
  if (module) words.emplace_back("-m");
  words.insert(words.end(), command.begin() + static_cast<std::ptrdiff_t>(at), command.end());
  return line + " --" + typed_words(words);
}

// Its option for the number of nodes agrees: "4", "2:4", or text that only the job's shell knows; or a file may.
bool knows_nodes(const Found& found, int nodes) {
  bool knows = false;
  for (const GivenOption& one : options_in(found).options) {
    knows = knows || one.is(Decides::settings);
    if (!one.is(Decides::nodes)) continue;
    const std::size_t colon = one.value.find(':');
    const auto low = parse_natural(one.value.substr(0, colon));
    const auto high = colon == one.value.npos ? low : parse_natural(one.value.substr(colon + 1));
    knows = !low || !high || (*low <= nodes && nodes <= *high);
  }
  return knows;
}

// A value as hpclaunch reads it: "gpu:a100:4" is 4, Slurm's "30" are 30m; "" where it has none.
std::string value_of(const ForeignOptions& row, const std::string& value) {
  using enum ForeignOptions::Value;
  const auto colons = std::ranges::count(value, ':');
  const bool natural = parse_natural(value).has_value();
  if (row.value == count) {
    const std::string last = value.substr(value.find_last_of(":=") + 1);
    return parse_natural(last) ? last : "N";
  }
  if (row.value == minutes && colons == 1) return "0:" + value;
  if (row.value == hours && colons == 1) return value + ":00";
  if (natural && (row.value == minutes || row.value == hours)) return value + "m";
  if (natural && row.value == seconds) return value + "s";
  return value;
}

// Options that take other programs' options, and whose.
struct Passed {
  std::string_view ours;
  std::array<const char*, 3> programs;
};
constexpr Passed kPassed[] = {{"--batch", {"sbatch", "qsub of pbs", "flux batch"}},
                              {"--launcher-arg", {"srun", "mpiexec", "flux run"}}};

// "--launcher-arg=--mem=4G" of "--mem 4G": an option of `grammar` as words of ours.
std::string passed_on(std::string_view ours, const Grammars& grammars,
                      std::span<const std::string> words) {
  const OptionLine line = read_options(grammars, words);
  const GivenOption& one = line.options.front();
  const bool separate = one.has_value && one.value_word > 0;
  if (separate && one.name.starts_with("--") && one.option.takes == Takes::value)
    return fmt::format("{}={}", ours, quote_sh(one.name + "=" + one.value));
  if (ours == kPassed[0].ours)  // a directive is one word
    return fmt::format("{}={}", ours, quote_sh(joined(words.first(one.end), " ")));
  std::string text;
  for (std::size_t i = 0; i < one.end; ++i)
    text += fmt::format("{}{}={}", i > 0 ? " " : "", ours, quote_sh(words[i]));
  return text;
}

// The grammar of a program for `ours` that has the option, by its whole name.
Grammars grammar_with(std::string_view ours, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const Passed& one : kPassed)
    for (const char* program : one.programs) {
      const Grammars grammars = grammars_of(program);
      const std::vector<Option> named = options_named(grammars, name);
      const bool whole = grammars.front()->syntax == Syntax::words ||
                         (!named.empty() && std::ranges::count(named.front().names, name) > 0);
      if (named.size() == 1 && whole && ours == one.ours) return grammars;
    }
  return {};
}

}  // namespace

Command behind_wrappers(const Command& command) {
  std::size_t at = 0;
  while (at < command.size()) {
    const Wrapper* wrapper = find_wrapper(installed_name(command[at]));
    if (wrapper == nullptr || !wrapper->words.empty() || wrapper->interprets) break;
    at = past_wrapper(*wrapper, command, at).at;
  }
  return {command.begin() + static_cast<std::ptrdiff_t>(at), command.end()};
}

Grammars program_grammar(std::string_view name) { return grammars_of(name); }

std::string meant_option(std::span<const std::string> words,
                         const std::function<bool(std::string_view)>& has) {
  const std::string& word = words.front();
  const std::size_t begin = word.find_first_not_of('-');
  if (word.empty() || begin == 0 || begin == std::string::npos) return "";
  const std::size_t equals = word.find('=');
  const std::string name = replaced(word.substr(begin, equals - begin), {{'_', "-"}});
  const bool follows = words.size() > 1 && !words[1].starts_with('-');
  const std::string value = equals != std::string::npos ? word.substr(equals + 1)
                            : follows                   ? words[1]
                                                        : "";
  for (const ForeignOptions& row : rows<ForeignOptions>()) {
    const std::string_view ours = row.meant.substr(0, row.meant.find_first_of("= "));
    if (!has_word(row.names, name) || (ours.starts_with('-') && !has(ours))) continue;
    std::string meant(row.meant);
    if (meant.ends_with("={}")) return passed_on(ours, grammar_with(ours, word), words);
    const std::string own = value_of(row, value);
    const std::string shown = own.empty() ? "" : typed_words({own});  // with a blank in front
    if (const std::size_t at = meant.find("{}"); at != std::string::npos)
      return meant.replace(at, 2, own.empty() ? "VALUE" : shown.substr(1));
    return meant.find(' ') == std::string::npos ? meant + shown : meant;
  }
  for (const auto& [decides, ours] : kCounts)
    for (const StartingProgram& row : rows<StartingProgram>())
      for (const Option& one : options_of(grammars_of(row.name)))
        if (one.decides == decides && has(ours) &&
            std::ranges::any_of(one.names, [&](std::string_view other) {
              return other.substr(std::min(other.find_first_not_of('-'), other.size())) == name;
            }))
          return fmt::format("{} {}", ours, parse_natural(value) ? value : "N");
  for (const Passed& one : kPassed)
    if (const Grammars grammars = grammar_with(one.ours, word); has(one.ours) && !grammars.empty())
      return passed_on(one.ours, grammars, words);
  return "";
}

ProgramEnv agent_env(const Command& typed) {
  ProgramEnv env;
  if (const std::optional<Found> found = find_program(typed))
    for (const std::string_view one : found->row->agent_env)
      env.emplace_back(one, "--agent: the program reads it");
  return env;
}

Command agent_masks(const Command& typed) {
  const std::optional<Found> found = find_program(typed);
  if (!found) return {};
  return {found->row->agent_masks.begin(), found->row->agent_masks.end()};
}

std::vector<std::string> agent_command(const Command& typed, Command command) {
  const std::optional<Found> found = find_program(typed);
  // The text of `sh -c` is the user's own.
  if (!found || found->command != typed) return command;
  const auto list = [&](Words options) {
    std::string text;
    for (const std::string_view option : options) {
      const std::string_view name = option.substr(0, option.find('='));
      const bool given = std::ranges::any_of(typed, [&](const std::string& word) {
        return replaced(word.substr(0, word.find('=')), {{'_', "-"}}) ==
               replaced(name, {{'_', "-"}});
      });
      const std::string variable(option.substr(std::min(option.find('$'), option.size())));
      const std::string first = variable.substr(0, variable.find(':'));
      if (!given && first.empty()) text += fmt::format(" \"{}\"", option);
      if (!given && !first.empty())  // one that is not set has no option
        text += fmt::format(" ${{{}:+\"{}\"}}", first.substr(1), option);
    }
    return text;
  };
  const std::string all = list(found->row->agent_args);
  const std::string first = list(found->row->agent_first);
  const std::string others = list(found->row->agent_others);
  if ((all + first + others).empty()) return command;
  const auto split_at = command.begin() + static_cast<std::ptrdiff_t>(found->args);
  std::string front;
  for (const std::string& word : Command(command.begin(), split_at)) front += quote_sh(word) + " ";
  Command made = {
      "/bin/sh", "-c",
      fmt::format("if [ \"$NODE_RANK\" = 0 ]; then set --{} \"$@\"; else set --{} \"$@\"; fi\n"
                  "exec {}{} \"$@\"",
                  first, others, front.substr(0, front.size() - 1), all),
      "agent"};
  made.insert(made.end(), split_at, command.end());
  return made;
}

void check_program(const Request& request, const Plan& plan, Diagnostics& diagnostics) {
  const std::optional<Found> found = find_program(request.command);
  if (!found) return;
  const StartingProgram& row = *found->row;
  const bool agent = row.starts == StartingProgram::Starts::agent;
  const bool typed = request.ranks || request.ranks_per_node;
  const bool one_each = typed && plan.max_local_size() == 1;
  const std::string_view name = row.name;
  const bool told = !row.agent_env.empty() || !row.agent_args.empty();
  if (one_each && (agent || (request.agent && told))) return;
  if (one_each && !row.interpreter.empty()) {
    if (plan.nodes() < 2 || knows_nodes(*found, plan.nodes())) return;
    diagnostics.push_back(
        {"program-is-launcher", Severity::error,
         fmt::format("{} has no option for the job's {}: each node would train by itself", name,
                     counted(plan.nodes(), "node")),
         meant(*found)});
    return;
  }
  diagnostics.push_back(
      {"program-is-launcher", Severity::error,
       fmt::format("{} {}; hpclaunch would start it {}{}", name,
                   agent ? "serves a whole node" : "starts ranks itself",
                   counted(agent ? plan.max_local_size() : plan.world_size(), "time"),
                   agent ? " there" : ""),
       meant(*found)});
}

}  // namespace hpclaunch::job
