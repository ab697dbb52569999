// Programs that start processes themselves, by the data of profiles/programs/launchers.json.
#include "world/programs.h"

#include <fmt/format.h>

#include <algorithm>

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

// "-n" is n, "--nnodes=2" is nnodes and 2.
struct Option {
  std::string name;
  std::optional<std::string> value;
};

std::optional<Option> option_of(const std::string& word) {
  if (word.size() < 2 || word.front() != '-' || word == "--") return std::nullopt;
  const std::size_t begin = word.find_first_not_of('-');
  const std::size_t equals = word.find('=');
  if (begin == std::string::npos) return std::nullopt;
  Option option{word.substr(begin, equals == std::string::npos ? equals : equals - begin), {}};
  if (equals != std::string::npos) option.value = word.substr(equals + 1);
  const bool glued = begin == 1 && word.size() > 2 && word[2] >= '0' && word[2] <= '9';
  if (glued) option = {word.substr(1, 1), word.substr(2)};
  return option;
}

// One word of options: "-um": u is a flag, m takes the next word; "-oL": o takes L.
struct OptionWord {
  std::string name;   // of the option that may take a value
  std::string value;  // in the same word
  bool known = false;
  std::size_t takes = 0;  // words behind it
};

OptionWord read_options(const Wrapper& row, const std::string& word, const Option& option) {
  OptionWord read{option.name, option.value.value_or("")};
  const auto is_flag = [&](const std::string& name) { return has_word(row.flags, name); };
  const bool two = has_word(row.two_words, read.name);
  const bool letters = word[1] != '-' && !option.value && !two &&
                       !has_word(row.values, read.name) && !is_flag(read.name) &&
                       !parse_natural(read.name);
  if (letters) {
    std::size_t letter = 1;
    while (letter + 1 < word.size() && is_flag(word.substr(letter, 1))) ++letter;
    read.name = word.substr(letter, 1);
    read.value = word.substr(letter + 1);
  }
  const bool takes = has_word(row.values, read.name);
  if (takes && read.value.empty() && !option.value) read.takes = 1;
  if (two) read.takes = 2;
  const bool flag = is_flag(read.name) && read.value.empty();
  read.known = takes || two || flag || option.value || parse_natural(read.name);
  return read;
}

// What a program that execs another one says of it: where its words begin, the module of `python -m`, the text of
// `sh -c`.
struct Wrapped {
  // The end of the command behind an option that is not known: the next word may be its value.
  std::size_t at = 0;
  std::string module;
  std::string text;
};

Wrapped past_wrapper(const Wrapper& row, const Command& command, std::size_t at) {
  Wrapped found;
  while (at < command.size() && found.module.empty() && found.text.empty()) {
    const std::optional<Option> option = option_of(command[at]);
    if (!option) break;
    const OptionWord read = read_options(row, command[at], *option);
    if (!read.known) return {command.size(), "", ""};
    const bool next = read.takes > 0 && at + 1 < command.size();
    const std::string value = next ? command[at + 1] : read.value;
    if (!row.module.empty() && row.module == read.name) found.module = value;
    if (!row.text.empty() && row.text == read.name) found.text = value;
    at += 1 + read.takes;
  }
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
    const bool second = !wrapper->words.empty();
    if (second && !has_word(wrapper->words, next)) return std::nullopt;
    const std::size_t begin = at;
    interpreter = command.size();
    if (!wrapper->module.empty()) {
      python = command[at];
      interpreter = at;
    }
    const Wrapped wrapped = past_wrapper(*wrapper, command, at + (second ? 2 : 1));
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

// Gives `use` each option of the launcher and its value, which may be the next word. Returns where the program's words
// begin.
template <class Use>
std::size_t each_option(const Found& found, Use use) {
  const StartingProgram& row = *found.row;
  const Command& command = found.command;
  std::size_t at = found.args;
  while (at < command.size()) {
    const std::optional<Option> option = option_of(command[at]);
    if (!option) break;
    const std::string& name = option->name;
    use(name, option->value.value_or(at + 1 < command.size() ? command[at + 1] : ""));
    const bool flag =
        has_word(row.module_flags, name) || has_word(row.flags, name) || option->value;
    at += flag ? 1 : has_word(row.two_words, name) ? 3 : 2;
  }
  return std::min(at + (at < command.size() && command[at] == "--" ? 1 : 0), command.size());
}

constexpr std::pair<Words StartingProgram::*, const char*> kCounts[] = {
    {&StartingProgram::nodes, "-N"},
    {&StartingProgram::ranks, "-n"},
    {&StartingProgram::ranks_per_node, "--ppn"}};

// "hpclaunch run -N 2 --ppn 8 -- python train.py"
std::string meant(const Found& found) {
  const StartingProgram& row = *found.row;
  const Command& command = found.command;
  if (row.starts == StartingProgram::Starts::agent)
    return "hpclaunch run --agent --" + typed_words(command);
  std::string line = "hpclaunch run";
  bool module = false;
  bool is_program = row.interpreter.empty();
  const std::size_t at = each_option(found, [&](const auto& name, const auto& value) {
    module = module || has_word(row.module_flags, name);
    is_program = is_program || has_word(row.program_flags, name);
    for (const auto& [key, ours] : kCounts)
      if (has_word(row.*key, name) && parse_natural(value).value_or(0) > 0)
        line += fmt::format(" {} {}", ours, value);
  });
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
  each_option(found, [&](const auto& name, const auto& value) {
    knows = knows || has_word(found.row->settings, name);
    if (!has_word(found.row->nodes, name)) return;
    const std::size_t colon = value.find(':');
    const auto low = parse_natural(value.substr(0, colon));
    const auto high = colon == value.npos ? low : parse_natural(value.substr(colon + 1));
    knows = !low || !high || (*low <= nodes && nodes <= *high);
  });
  return knows;
}

}  // namespace

Command behind_wrappers(const Command& command) {
  std::size_t at = 0;
  while (at < command.size()) {
    const Wrapper* wrapper = find_wrapper(installed_name(command[at]));
    const bool runs_here = wrapper != nullptr && wrapper->module.empty() &&
                           wrapper->words.empty() && wrapper->text.empty();
    if (!runs_here) break;
    at = past_wrapper(*wrapper, command, at + 1).at;
  }
  return {command.begin() + static_cast<std::ptrdiff_t>(at), command.end()};
}

std::string meant_option(const std::string& word, const std::string& next) {
  const std::size_t begin = word.find_first_not_of('-');
  if (word.empty() || begin == 0 || begin == std::string::npos) return "";
  const std::size_t equals = word.find('=');
  const std::string value = equals == std::string::npos ? next : word.substr(equals + 1);
  const auto is =
      [&, name = replaced(word.substr(begin, equals - begin), {{'_', "-"}})](std::string_view one) {
        return replaced(one, {{'_', "-"}}) == name;
      };
  for (const StartingProgram& row : rows<StartingProgram>())
    for (const auto& [key, ours] : kCounts)
      if (std::ranges::any_of(row.*key, is))
        return fmt::format("{} {}", ours, parse_natural(value) ? value : "N");
  for (const ForeignOptions& row : rows<ForeignOptions>())
    if (std::ranges::any_of(row.names, is)) {
      std::string meant(row.meant);
      if (const std::size_t at = meant.find("{}"); at != std::string::npos)
        return meant.replace(at, 2, word);
      const bool alone = meant.starts_with('-') && meant.find(' ') == std::string::npos;
      return alone && !value.empty() ? meant + typed_words({value}) : meant;
    }
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
