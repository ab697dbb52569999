// Options that a command does not have: what other programs call them, else the nearest one.
#include <fmt/format.h>

#include <algorithm>

#include "cli/parser.h"
#include "hpclaunch/frameworks.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

CommandGrammar::CommandGrammar(const CommandTree& command) {
  std::size_t count = 0;
  for (const OptionInfo& one : command.options) count += one.names.size();
  names.reserve(count);
  options.reserve(command.options.size());
  for (const OptionInfo& one : command.options) {
    const std::size_t first = names.size();
    names.insert(names.end(), one.names.begin(), one.names.end());
    const Takes takes = one.value_name.empty() ? Takes::nothing
                        : one.bare.empty()     ? Takes::value
                                               : Takes::joined;
    const bool module = one.names.size() == 1 && one.names.front() == "-m";
    options.push_back(
        {std::span(names).subspan(first), takes, module ? Decides::module : Decides::nothing});
  }
  grammar.options = options;
}

std::string Parser::meant(std::span<const std::string> words) const {
  return job::meant_option(words, [&](std::string_view name) {
    return std::ranges::any_of(tree_.options,
                               [&](const OptionInfo& option) { return option.named(name); });
  });
}

Error Parser::unknown(std::span<const std::string> words) const {
  const std::string& word = words.front();
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const OptionInfo& option : tree_.options)
    for (const std::string& one : option.names)
      if (one.starts_with("--")) known.push_back(one);
  std::string hint = fmt::format("hpclaunch {} --help", tree_.name);
  if (name == gone_.first)
    return Error{ErrorKind::usage, fmt::format("there is no option {} any more", name),
                 gone_.second};
  const bool is_long = name.starts_with("--");  // one letter is as near to any other
  if (const auto near = is_long ? nearest(name, known) : std::nullopt) hint = *near;
  if (const std::string foreign = meant(words); !foreign.empty()) hint = foreign;
  return Error{ErrorKind::usage, fmt::format("unknown option {}", name), hint};
}

// Options of other launchers before the program: "-np 4" would be -n with the value "p", and "-hosts" help.
Status Parser::refuse_foreign(const std::vector<std::string>& line) const {
  const CommandGrammar own(tree_);
  for (const GivenOption& one : read_options({&own.grammar}, line).options) {
    const auto words = std::span(line).subspan(one.first);
    const std::string name = words.front().substr(0, words.front().find('='));
    const bool is_own = std::ranges::any_of(
        tree_.options, [&](const OptionInfo& option) { return option.named(name); });
    if (const std::string foreign = is_own ? "" : meant(words); !foreign.empty())
      return Error{ErrorKind::usage, fmt::format("unknown option {}", name), foreign};
  }
  return Done{};
}

}  // namespace hpclaunch::cli
