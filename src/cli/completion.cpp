// Shell completions, made from the option tree.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"

namespace hpclaunch::cli {

namespace {

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandTree& command : option_tree()) names.push_back(command.name);
  return names;
}

std::vector<std::string> spellings(const CommandTree& command) {
  std::vector<std::string> words;
  for (const OptionInfo& option : command.options) {
    for (const std::string& name : option.short_names) words.push_back("-" + name);
    for (const std::string& name : option.long_names) words.push_back("--" + name);
    if (option.positional) words.insert(words.end(), option.choices.begin(), option.choices.end());
  }
  return words;
}

std::string bash() {
  std::string cases;
  std::string values;
  for (const CommandTree& command : option_tree()) {
    cases +=
        fmt::format("    {}) words=\"{}\" ;;\n", command.name, fmt::join(spellings(command), " "));
    for (const OptionInfo& option : command.options)
      for (const std::string& name : option.long_names) {
        if (!option.choices.empty())
          values += fmt::format(
              "    {}:--{}) COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n",
              command.name, name, fmt::join(option.choices, " "));
        else if (option.value_name == "FILE")
          values +=
              fmt::format("    {}:--{}) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n",
                          command.name, name);
        else if (option.value_name == "DIR")
          values +=
              fmt::format("    {}:--{}) COMPREPLY=($(compgen -d -- \"$current\")); return ;;\n",
                          command.name, name);
      }
  }
  return fmt::format(R"(# bash completion for hpclaunch; written by: hpclaunch completion bash
_hpclaunch() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}" words="" i
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$current"))
    return
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [ "${{COMP_WORDS[i]}}" = "--" ]; then
      COMPREPLY=($(compgen -f -- "$current"))
      [ $((i + 1)) -eq "$COMP_CWORD" ] && COMPREPLY+=($(compgen -c -- "$current"))
      return
    fi
  done
  case "$command:$previous" in
{}  esac
  case "$command" in
{}  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$words --" -- "$current")) ;;
    *)
      if [ "$command" = completion ]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
      else
        COMPREPLY=($(compgen -c -f -- "$current"))
      fi ;;
  esac
}}
complete -o filenames -o bashdefault -F _hpclaunch hpclaunch
)",
                     fmt::join(command_names(), " "), values, cases);
}

// For zsh and fish: single quotes closed, escaped and opened again.
std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4)
    text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

std::string without_brackets(std::string text) {
  for (char& c : text)
    if (c == '[' || c == ']' || c == ':') c = ' ';
  return text;
}

std::string zsh() {
  std::string commands;
  std::string cases;
  for (const CommandTree& command : option_tree()) {
    commands += "    " + quoted(command.name + ":" + command.summary) + "\n";
    cases += fmt::format("    {})\n      _arguments -S \\\n", command.name);
    for (const OptionInfo& option : command.options) {
      std::string action;
      if (!option.choices.empty())
        action = fmt::format(":{}:({})", option.value_name, fmt::join(option.choices, " "));
      else if (option.value_name == "FILE")
        action = ":FILE:_files";
      else if (option.value_name == "DIR")
        action = ":DIR:_files -/";
      else if (!option.value_name.empty())
        action = fmt::format(":{}:", without_brackets(option.value_name));
      std::vector<std::string> words;
      for (const std::string& name : option.short_names) words.push_back("-" + name);
      for (const std::string& name : option.long_names) words.push_back("--" + name);
      for (const std::string& word : words)
        cases += "        " +
                 quoted(fmt::format("{}{}[{}]{}", option.repeatable ? "*" : "", word,
                                    without_brackets(option.description), action)) +
                 " \\\n";
    }
    cases += command.name == "completion" ? "        '1:shell:(bash zsh fish)' ;;\n"
                                          : "        '*::program:_normal' ;;\n";
  }
  return fmt::format(R"(#compdef hpclaunch
# zsh completion for hpclaunch; written by: hpclaunch completion zsh
_hpclaunch() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
_hpclaunch "$@"
)",
                     commands, cases);
}

std::string fish() {
  std::string text =
      "# fish completion for hpclaunch; written by: hpclaunch completion fish\n"
      "complete -c hpclaunch -n __fish_use_subcommand -f\n";
  for (const CommandTree& command : option_tree()) {
    text += fmt::format("complete -c hpclaunch -n __fish_use_subcommand -a {} -d {}\n",
                        command.name, quoted(command.summary));
    for (const OptionInfo& option : command.options) {
      std::string line =
          fmt::format("complete -c hpclaunch -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : option.short_names) line += " -s " + name;
      for (const std::string& name : option.long_names) line += " -l " + name;
      if (!option.choices.empty())
        line += fmt::format(" -x -a {}", quoted(fmt::format("{}", fmt::join(option.choices, " "))));
      else if (option.value_name == "FILE" || option.value_name == "DIR")
        line += " -r -F";
      else if (!option.value_name.empty())
        line += " -x";
      text += line + " -d " + quoted(option.description) + "\n";
    }
  }
  text +=
      "complete -c hpclaunch -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n";
  return text;
}

struct Args {
  std::string shell;
};

int completion(const Args& args, Session& session) {
  const std::string text = args.shell == "bash" ? bash() : args.shell == "zsh" ? zsh() : fish();
  return print_all(session, text);
}

}  // namespace

Runner declare_completion(Parser& parser) {
  auto args = std::make_shared<Args>();
  parser.word(args->shell, "SHELL", {"bash", "zsh", "fish"}, "bash, zsh or fish");
  parser.footer(
      "bash: source <(hpclaunch completion bash); fish: hpclaunch completion fish | source;\n"
      "zsh: write it to _hpclaunch in a directory of $fpath. cmake --install installs all three.");
  return [args](Session& session) { return completion(*args, session); };
}

}  // namespace hpclaunch::cli
