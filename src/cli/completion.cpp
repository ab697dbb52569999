// Shell completions, made from the option tree.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"

namespace hpclaunch::cli {

namespace {

// What compgen lists for the option's value; "" for anything.
std::string bash_values(const OptionInfo& option) {
  if (!option.choices.empty()) return fmt::format("-W \"{}\"", fmt::join(option.choices, " "));
  return option.value_name == "FILE" ? "-f" : option.value_name == "DIR" ? "-d" : "";
}

std::string bash() {
  std::vector<std::string> commands;
  std::string cases;
  std::string values;
  for (const CommandTree& command : option_tree()) {
    commands.push_back(command.name);
    std::vector<std::string> words;
    for (const OptionInfo& option : command.options) {
      const auto& shown = option.positional() ? option.choices : option.names;
      words.insert(words.end(), shown.begin(), shown.end());
      const std::string listed = bash_values(option);
      for (const std::string& name : option.names)
        if (!listed.empty() && name.starts_with("--"))
          values += fmt::format("    {}:{}) COMPREPLY=($(compgen {} -- \"$current\")); return ;;\n",
                                command.name, name, listed);
    }
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name, fmt::join(words, " "));
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
                     fmt::join(commands, " "), values, cases);
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

std::string zsh_values(const OptionInfo& option) {
  if (!option.choices.empty())
    return fmt::format(":{}:({})", option.value_name, fmt::join(option.choices, " "));
  if (option.value_name == "FILE") return ":FILE:_files";
  if (option.value_name == "DIR") return ":DIR:_files -/";
  return option.value_name.empty() ? "" : fmt::format(":{}:", without_brackets(option.value_name));
}

std::string zsh() {
  std::string commands;
  std::string cases;
  for (const CommandTree& command : option_tree()) {
    commands += "    " + quoted(command.name + ":" + command.summary) + "\n";
    cases += fmt::format("    {})\n      _arguments -S \\\n", command.name);
    for (const OptionInfo& option : command.options)
      for (const std::string& name : option.names)
        cases += "        " +
                 quoted(fmt::format("{}{}[{}]{}", option.repeatable ? "*" : "", name,
                                    without_brackets(option.description), zsh_values(option))) +
                 " \\\n";
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
      for (const std::string& name : option.names)
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
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

}  // namespace

Runner declare_completion(Parser& parser) {
  auto shell = std::make_shared<std::string>();
  parser.word(*shell, "SHELL", {"bash", "zsh", "fish"}, "bash, zsh or fish");
  parser.footer(
      "bash: source <(hpclaunch completion bash); fish: hpclaunch completion fish | source;\n"
      "zsh: write it to _hpclaunch in a directory of $fpath. cmake --install installs all three.");
  return [shell](Session& session) {
    return print_all(session, *shell == "bash" ? bash() : *shell == "zsh" ? zsh() : fish());
  };
}

}  // namespace hpclaunch::cli
