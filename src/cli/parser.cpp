#include "cli/parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "cli/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr double kDay = 86400;

// "--" too: where an option may stand, no value begins.
bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

}  // namespace

const OptionInfo* CommandTree::find(std::string_view word) const {
  const auto found = std::ranges::find_if(options, [&](const OptionInfo& option) {
    return std::ranges::count(option.names, word) > 0;
  });
  return found == options.end() ? nullptr : &*found;
}

const std::string& OptionInfo::title() const {
  const auto found =
      std::ranges::find_if(names, [](const std::string& name) { return name.starts_with("--"); });
  return found == names.end() ? value_name : *found;
}

OptionInfo flag(bool& value) {
  return {.take = [&value](const std::string&) {
    value = true;
    return "";
  }};
}

OptionInfo number(std::optional<int>& value, const std::string& value_name, int low, int high) {
  return {.value_name = value_name,
          .take = [&value, low, high](const std::string& text) -> std::string {
            const std::optional<long> found = parse_natural(text, high);
            const bool octal = text.size() > 1 && text.front() == '0';
            if (!found || *found < low || octal)
              return fmt::format("must be an integer from {1} to {2}, not \"{0}\"", text, low,
                                 high);
            value = static_cast<int>(*found);
            return "";
          }};
}

OptionInfo seconds(double& value) {
  return {.value_name = "SECONDS",
          .default_text = fmt::format("{}", value),
          .take = [&value](const std::string& text) -> std::string {
            char* end = nullptr;
            const double found = std::strtod(text.c_str(), &end);
            const bool number = text.find_first_not_of("0123456789.") == std::string::npos &&
                                end != text.c_str() && *end == '\0';
            if (!number || found > kDay)
              return fmt::format("must be a number of seconds from 0 to {1}, not \"{0}\"", text,
                                 kDay);
            value = found;
            return "";
          }};
}

OptionInfo text(std::string& value, const std::string& value_name, const std::string& bare) {
  return {.value_name = value_name,
          .bare = bare,
          .default_text = value,
          .is_text = true,
          .take = [&value](const std::string& text) {
            value = text;
            return text.empty() ? "the value must not be empty" : "";
          }};
}

OptionInfo choice_of(const std::string& value_name, const std::vector<std::string>& choices,
                     const std::string& preset, const std::function<void(std::size_t)>& use) {
  return {.value_name = value_name,
          .default_text = preset,
          .choices = choices,
          .take = [choices, use](const std::string& text) -> std::string {
            const auto at = std::ranges::find(choices, text);
            if (at == choices.end()) {
              const auto near = nearest(text, choices);
              return fmt::format("invalid value \"{}\" ({}){}", text, fmt::join(choices, ", "),
                                 near ? fmt::format("; did you mean {}?", *near) : "");
            }
            use(static_cast<std::size_t>(at - choices.begin()));
            return "";
          }};
}

OptionInfo choice(std::string& value, const std::string& value_name,
                  const std::vector<std::string>& choices) {
  return choice_of(value_name, choices, value,
                   [&value, choices](std::size_t index) { value = choices[index]; });
}

OptionInfo list(std::vector<std::string>& values, const std::string& value_name) {
  return {.value_name = value_name, .repeatable = true, .take = [&values](const std::string& text) {
            values.push_back(text);
            return "";
          }};
}

OptionInfo assignments(std::vector<std::pair<std::string, std::string>>& values,
                       const std::string& value_name) {
  return {.value_name = value_name,
          .repeatable = true,
          .take = [&values](const std::string& text) -> std::string {
            const std::size_t equals = text.find('=');
            if (equals == 0 || equals == std::string::npos)
              return fmt::format("must be NAME=VALUE, not \"{}\"", text);
            values.emplace_back(text.substr(0, equals), text.substr(equals + 1));
            return "";
          }};
}

OptionInfo yes_no(std::optional<bool>& value, bool given, const std::string& other) {
  return {.take = [&value, given, other](const std::string&) -> std::string {
    if (value && *value != given) return "excludes " + other;
    value = given;
    return "";
  }};
}

Parser::Parser(const Command& command) {
  tree_.name = command.name;
  tree_.summary = command.summary;
  tree_.usage = command.usage;
  add("-h,--help", {}, "Show a short help, or all options");
}

void Parser::group(const std::string& name, bool shared) {
  group_ = name;
  shared_ = shared;
}

void Parser::add(std::string_view names, OptionInfo option, const std::string& help) {
  for (const std::string_view name : split(names, ','))
    if (!name.empty()) option.names.emplace_back(name);
  option.description = help;
  option.group = group_;
  option.shared = shared_;
  tree_.options.push_back(std::move(option));
}

void Parser::takes_program(std::vector<std::string>& program, bool required) {
  program_ = &program;
  program_required_ = required;
}

void Parser::footer(const std::string& text) { tree_.footer = text; }

Error Parser::usage(const std::string& problem, const std::string& hint) const {
  return Error{ErrorKind::usage, fmt::format("{}: {}", tree_.name, problem),
               hint.empty() ? fmt::format("hpclaunch {} --help", tree_.name) : hint};
}

Error Parser::unknown(const std::string& word) const {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const OptionInfo& option : tree_.options)
    for (const std::string& one : option.names)
      if (one.starts_with("--")) known.push_back(one);
  const bool is_long = name.starts_with("--");  // one letter is as near to any other
  const auto near = is_long ? nearest(name, known) : std::nullopt;
  return usage(fmt::format("unknown option {}", name), near.value_or(""));
}

Result<std::string> Parser::parse(const std::vector<std::string>& line) {
  Typed typed;
  if (const Status sorted = sort(line, typed); !sorted) return sorted.error();
  if (!typed.help.empty()) return typed.help;
  for (const auto& [option, value] : typed.values) {
    const bool lost = option->is_text && tree_.find(value.substr(0, value.find('='))) != nullptr;
    const std::string problem =
        lost ? fmt::format("needs a value, not the option {}", value) : option->take(value);
    if (!problem.empty()) return usage(fmt::format("{}: {}", option->title(), problem));
  }
  for (const OptionInfo& option : tree_.options)
    if (option.positional() && !option.repeatable &&
        std::ranges::count(typed.values, &option, &Typed::Value::first) == 0)
      return usage(option.value_name + " is required");
  if (const Status taken = take_program(std::move(typed.rest)); !taken) return taken.error();
  return std::string();
}

// Which word is for which option; no value is read.
Status Parser::sort(const std::vector<std::string>& line, Typed& typed) const {
  const auto end = tree_.options.end();
  auto place = std::find_if(tree_.options.begin(), end, std::mem_fn(&OptionInfo::positional));
  for (std::size_t at = 0; at < line.size();) {
    const std::string& word = line[at++];
    const bool is_last = word == "--" || (program_ != nullptr && !is_option(word));
    if (is_last) {
      typed.rest.insert(typed.rest.end(), &word, line.data() + line.size());
      return Done{};
    }
    if (is_option(word)) {
      if (Status found = sort_option(word, line, at, typed); !found) return found;
    } else if (place == end) {
      typed.rest.push_back(word);
    } else {
      typed.values.emplace_back(&*place, word);
      if (!place->repeatable)
        place = std::find_if(place + 1, end, std::mem_fn(&OptionInfo::positional));
    }
  }
  return Done{};
}

// "--name=value", "--name value", or letter by letter, "-vn4". `at`: of the next word.
Status Parser::sort_option(std::string word, const std::vector<std::string>& line, std::size_t& at,
                           Typed& typed) const {
  const bool letters = !word.starts_with("--");
  while (!word.empty()) {
    const std::string name = word.substr(0, letters ? 2 : word.find('='));
    const OptionInfo* option = tree_.find(name);
    if (option == nullptr) {
      typed.rest.push_back(word);
      return Done{};
    }
    const bool joined = word.size() > name.size();
    std::string value = joined ? word.substr(name.size() + (letters ? 0 : 1)) : "";
    word.clear();
    if (option->value_name.empty()) {
      if (joined && !letters) return usage(name + " takes no value");
      if (joined) word = "-" + value;
      if (option == &tree_.options.front()) typed.help = name;
    } else if (!joined && at < line.size() && (option->bare.empty() || !is_option(line[at]))) {
      value = line[at++];
    } else if (!joined && option->bare.empty()) {
      return usage(fmt::format("{} needs a value ({})", name, option->value_name));
    } else if (!joined) {
      value = option->bare;
    }
    typed.values.emplace_back(option, std::move(value));
  }
  return Done{};
}

// What is left of the line: options that do not exist, or the program.
Status Parser::take_program(std::vector<std::string> rest) {
  const std::string first = rest.empty() ? "" : rest.front();
  if (is_option(first) && first != "--") return unknown(first);
  if (program_ == nullptr && !rest.empty())
    return usage(fmt::format("unexpected argument \"{}\"", first));
  if (first == "--") rest.erase(rest.begin());
  if (rest.empty() && program_required_)
    return usage("PROGRAM is missing", fmt::format("hpclaunch {} {}", tree_.name, tree_.usage));
  if (program_ != nullptr) *program_ = std::move(rest);
  return Done{};
}

}  // namespace hpclaunch::cli
