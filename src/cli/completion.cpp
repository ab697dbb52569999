// Shell completions. The scripts of packaging/completion ask `hpclaunch complete -- WORD...` what the last word can become: a line for
// each, with a tab before its description; "@files" and "@directories" leave it to the shell.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cli/command.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/launcher_traits.h"
#include "hpclaunch/site_profiles.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

using Words = std::vector<std::string>;

// The words that can stand somewhere, each with a tab and its description.
struct Offers {
  std::string begins;  ///< only those
  std::string lead;    ///< before each: "--profile="
  std::string text = {};

  void add(std::string_view word, std::string_view what = "") {
    if (!word.starts_with(begins)) return;
    text += fmt::format("{}{}{}{}\n", lead, word, what.empty() ? "" : "\t", what);
  }
  void shell(std::string_view directive) { text += fmt::format("{}\n", directive); }
};

Words profile_names(const EnvSnapshot& env) {
  Words names;
  if (const auto profiles = job::list_profiles(env))
    for (const job::ProfileEntry& one : *profiles) names.push_back(one.name);
  return names;
}

// Those that --profile takes: sites, and no parts that only other profiles use.
std::vector<Profile> sites(const Words& names, const EnvSnapshot& env) {
  std::vector<Profile> out;
  for (const std::string& name : names)
    if (Result<Profile> profile = job::load_profile(name, env); profile && !profile->part)
      out.push_back(std::move(*profile));
  return out;
}

void add_sites(const EnvSnapshot& env, Offers& offers) {
  Words names = profile_names(env);
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(offers.begins); });
  for (const Profile& site : sites(names, env)) offers.add(site.name, site.doc);
  offers.shell("@files");
}

// What the typed profile, else each site, has of that kind; a name that several have is offered once.
template <class Member>
void add_parts(const Words& line, const EnvSnapshot& env, Member member, Offers& offers) {
  const auto typed = std::ranges::find(line, "--profile");
  const bool one = typed != line.end() && typed + 1 != line.end();
  std::map<std::string, Words> owners;
  for (const Profile& site : sites(one ? Words{*(typed + 1)} : profile_names(env), env))
    for (const auto& part : site.*member) owners[part.name].push_back(site.name);
  for (const auto& [name, names] : owners) offers.add(name, hpclaunch::joined(names, ", "));
}

void add_variables(std::string_view suffix, Offers& offers) {
  for (std::size_t i = 0; i < knowledge::count(); ++i) {
    const knowledge::Variable variable = knowledge::at(i);
    offers.add(fmt::format("{}{}", variable.name, suffix), variable.what);
  }
}

void add_values(const OptionInfo& option, const Words& line, const EnvSnapshot& env,
                Offers& offers) {
  const std::string& name = option.positional() ? option.value_name : option.names.back();
  for (const std::string& choice : option.choices) offers.add(choice);
  if (name == "--profile") return offers.add("none", "no profile"), add_sites(env, offers);
  if (name == "--stack") return add_parts(line, env, &Profile::stacks, offers);
  if (name == "--node-type") return add_parts(line, env, &Profile::nodes, offers);
  if (name == "--device-mode") return add_parts(line, env, &Profile::device_modes, offers);
  if (name == "--set") return add_variables("=", offers);
  if (name == "NAME")
    for (const ChoiceName& choice : choice_names()) offers.add(choice.name, choice.what);
  if (name == "--unset" || name == "NAME") add_variables("", offers);
  if (name == "--launcher")
    for (const std::string_view launcher : kLauncherNames) offers.add(launcher);
  if (option.value_name == "FILE") offers.shell("@files");
  if (option.value_name == "DIR") offers.shell("@directories");
}

const OptionInfo* find_option(const CommandTree& tree, std::string_view name) {
  const auto found = std::ranges::find_if(tree.options, [&](const OptionInfo& option) {
    return std::ranges::count(option.names, name) > 0;
  });
  return found == tree.options.end() || found->value_name.empty() ? nullptr : &*found;
}

// `line`: the words of the command before `current`.
void complete_command(const Command& command, const Words& line, const std::string& current,
                      const EnvSnapshot& env, Offers& offers) {
  Parser parser(command);
  command.declare(parser);
  const CommandTree& tree = parser.tree();
  const OptionInfo* waiting = nullptr;  // for its value
  std::size_t words = 0;                // that are no option and no value
  for (const std::string& word : line) {
    if (word == "--") return offers.shell("@files");
    const bool value = std::exchange(waiting, nullptr) != nullptr;
    if (!value && word.starts_with('-')) waiting = find_option(tree, word);
    if (!value && !word.starts_with('-')) ++words;
  }
  const bool takes_program = tree.usage.find("PROGRAM") != std::string::npos;
  if (takes_program && words > 0) return offers.shell("@files");
  const std::size_t equals = current.starts_with("--") ? current.find('=') : std::string::npos;
  if (equals != std::string::npos) {
    offers = {current.substr(equals + 1), current.substr(0, equals + 1)};
    waiting = find_option(tree, current.substr(0, equals));
  }
  if (waiting != nullptr) return add_values(*waiting, line, env, offers);
  std::vector<const OptionInfo*> positional;
  for (const OptionInfo& option : tree.options) {
    if (option.positional()) positional.push_back(&option);
    for (const std::string& name : option.names)
      if (current.starts_with('-')) offers.add(name, option.description);
  }
  if (current.starts_with('-')) return;
  if (takes_program) offers.shell("@files");
  if (positional.empty()) return;
  const OptionInfo& here = *positional[std::min(words, positional.size() - 1)];
  if (here.choices.empty() && std::string_view(command.name) == "profile") {
    for (const std::string& name : profile_names(env)) offers.add(name);
    return offers.shell("@files");
  }
  if (words == 0 || here.repeatable) add_values(here, line, env, offers);
}

// bash breaks "--profile=au" into three words.
Words joined(const Words& typed) {
  Words words;
  for (std::size_t i = 0; i < typed.size(); ++i)
    if (typed[i] != "=" || i == 0)
      words.push_back(typed[i]);
    else if (i + 1 == typed.size())
      words.emplace_back();
  return words;
}

int complete(const Words& typed, Session& session) {
  Words words = joined(typed);
  if (words.empty()) words.emplace_back();
  const std::string current = words.back();
  words.pop_back();
  Offers offers{current, ""};
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    if (words.empty())
      offers.add(command.name, command.summary);
    else if (words.front() == command.name)
      complete_command(command, {words.begin() + 1, words.end()}, current, session.env, offers);
  }
  if (words.empty())
    for (const char* option : {"--help", "--version"}) offers.add(option);
  return print_all(session, offers.text);
}

}  // namespace

Runner declare_completion(Parser& parser) {
  auto shell = std::make_shared<std::string>();
  parser.word(*shell, "SHELL", {"bash", "zsh", "fish"}, "bash, zsh or fish");
  parser.footer(
      "bash: source <(hpclaunch completion bash); fish: hpclaunch completion fish | source;\n"
      "zsh: write it to _hpclaunch in a directory of $fpath. cmake --install installs all three.\n"
      "Exit status: 0 printed, 2 not.");
  return [shell](Session& session) {
    return print_all(session, *shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
  };
}

Runner declare_complete(Parser& parser) {
  auto words = std::make_shared<Words>();
  parser.takes_program(*words);
  return [words](Session& session) { return complete(*words, session); };
}

}  // namespace hpclaunch::cli
