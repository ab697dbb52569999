#include "cli/parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr double kDay = 86400;

// What CLI11 calls an option, and the user reads: its first long name, else the first one.
std::string shown_name(const std::string& spec) {
  const std::vector<std::string_view> all = split(spec, ',');
  const auto is_long = [](std::string_view name) { return name.starts_with("--"); };
  const auto found = std::ranges::find_if(all, is_long);
  return std::string(found == all.end() ? all.front() : *found);
}

// CLI11 itself reads "010" as octal, and accepts "nan" in any range.
CLI::Validator whole_number(const std::string& name, int low, int high) {
  return CLI::Validator(
      [name, low, high](const std::string& text) {
        const std::optional<long> value = parse_natural(text, high);
        const bool octal = text.size() > 1 && text.front() == '0';
        if (value && *value >= low && !octal) return std::string{};
        return fmt::format("{} must be an integer from {} to {}, not \"{}\"", name, low, high,
                           text);
      },
      "");
}

CLI::Validator seconds_of_a_day(const std::string& name) {
  return CLI::Validator(
      [name](const std::string& text) {
        const std::size_t other = text.find_first_not_of("0123456789.");
        double value = -1;
        const bool number = other == std::string::npos && CLI::detail::lexical_cast(text, value);
        if (number && value >= 0 && value <= kDay) return std::string{};
        return fmt::format("{} must be a number of seconds from 0 to {}, not \"{}\"", name, kDay,
                           text);
      },
      "");
}

CLI::Validator one_of(const std::string& name, const std::vector<std::string>& choices) {
  return CLI::Validator(
      [name, choices](const std::string& text) {
        if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string{};
        const auto near = nearest(text, choices);
        return fmt::format("invalid value \"{}\" for {} ({}){}", text, name, joined(choices, ", "),
                           near ? fmt::format("; did you mean {}?", *near) : "");
      },
      "");
}

// Whether CLI11 has to know the option: it may be in the line, also among letters, as in "-vn4".
bool is_typed(const OptionInfo& option, const std::vector<std::string>& line) {
  const auto typed = [&](const std::string& word) {
    return std::ranges::any_of(option.names, [&](const std::string& name) {
      if (name.starts_with("--")) return word.substr(0, word.find('=')) == name;
      return word.starts_with('-') && !word.starts_with("--") &&
             word.find(name[1]) != std::string::npos;
    });
  };
  return option.positional() || std::ranges::any_of(line, typed);
}

// "-n" at the end of the line: CLI11's message does not name the option.
std::optional<std::string> without_value(const CommandTree& command, const std::string& last) {
  for (const OptionInfo& option : command.options)
    if (!option.value_name.empty() && option.named(last))
      return fmt::format("{} needs a value ({})", last, option.value_name);
  return std::nullopt;
}

// CLI11 takes any next word for a value: "--svg -n 2" would draw into a file "-n".
CLI::Validator some_value(const std::string& name, const CommandTree& command) {
  return CLI::Validator(
      [name, &command](const std::string& value) -> std::string {
        if (value.empty()) return name + " needs a value, not an empty one";
        for (const OptionInfo& option : command.options)
          if (option.named(value.substr(0, value.find('='))))
            return fmt::format("{} needs a value, not the option {}", name, value);
        return "";
      },
      "");
}

// Our validators name the option in their sentences; CLI11 writes it before them, too.
std::string sentence(const CLI::ParseError& error) {
  const std::string text = error.what();
  const bool ours = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr;
  return ours ? text.substr(text.find(": ") + 2) : text;
}

// Scripts append options to a line that may have them already: the last one wins.
CLI::Option* last_wins(CLI::Option* option) {
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// An option with one value; `check` makes its validator, which is not cheap.
template <class Value, class Check>
auto declaring(const std::string& spec, Value& value, Check check) {
  return [spec, &value, check](CLI::App& app) -> CLI::Option* {
    return last_wins(app.add_option(spec, value))->check(check(shown_name(spec)));
  };
}

}  // namespace

Parser::Parser(const Command& command) {
  tree_.name = command.name;
  tree_.summary = command.summary;
  tree_.usage = command.usage;
  describe("-h,--help", "", "-h: short help; --help: all options", [](CLI::App&) {});
}

OptionInfo& Parser::describe(const std::string& spec, const std::string& value_name,
                             const std::string& help, Declare declare) {
  OptionInfo& info = tree_.options.emplace_back();
  for (const std::string_view name : split(spec, ','))
    if (name.starts_with('-')) info.names.emplace_back(name);
  info.value_name = value_name;
  info.description = help;
  info.group = group_;
  info.shared = shared_;
  info.rare = rare_;
  declare_.push_back(std::move(declare));
  return info;
}

void Parser::group(const std::string& name, bool shared, bool rare) {
  group_ = name;
  shared_ = shared;
  rare_ = rare;
}

void Parser::flag(const std::string& spec, bool& value, const std::string& help) {
  describe(spec, "", help, [spec, &value](CLI::App& app) { app.add_flag(spec, value); });
}

void Parser::number(const std::string& spec, std::optional<int>& value,
                    const std::string& value_name, int low, int high, const std::string& help) {
  describe(spec, value_name, help, declaring(spec, value, [low, high](const std::string& name) {
             return whole_number(name, low, high);
           }));
}

void Parser::seconds(const std::string& spec, double& value, const std::string& help) {
  describe(spec, "SECONDS", help, declaring(spec, value, seconds_of_a_day)).default_text =
      fmt::format("{}", value);
}

void Parser::text(const std::string& spec, std::string& value, const std::string& value_name,
                  const std::string& help, const std::string& bare) {
  const auto declare =
      declaring(spec, value, [this](const std::string& name) { return some_value(name, tree_); });
  OptionInfo& info = describe(spec, value_name, help, [declare, bare](CLI::App& app) {
    CLI::Option* option = declare(app);
    if (!bare.empty()) option->expected(0, 1)->default_str(bare);
  });
  info.default_text = value;
  info.bare = bare;
}

void Parser::marked(const std::string& spec, const std::string& other, char mark,
                    std::string& value, const std::string& value_name, const std::string& help) {
  describe(spec, value_name, help, [this, spec, other, mark, &value](CLI::App& app) {
    const auto store = [mark, &value](const std::string& text) { value = mark + text; };
    CLI::Option* one = last_wins(app.add_option_function<std::string>(spec, store));
    one->check(some_value(shown_name(spec), tree_));
    if (CLI::Option* second = app.get_option_no_throw(other)) one->excludes(second);
  });
}

void Parser::path(const std::string& spec, std::string& value, const std::string& value_name,
                  const std::string& help, Absolute absolute) {
  text(spec, value, value_name, help);
  tree_.options.back().absolute = absolute;
}

void Parser::choice(const std::string& spec, std::string& value, const std::string& value_name,
                    const std::vector<std::string>& choices, const std::string& help) {
  choice_of(spec, value, value_name, choices, help,
            [&value, choices](std::size_t index) { value = choices[index]; });
}

void Parser::choice_of(const std::string& spec, const std::string& preset,
                       const std::string& value_name, const std::vector<std::string>& choices,
                       const std::string& help, const std::function<void(std::size_t)>& take) {
  const auto found = [choices, take](const std::string& text) {
    const auto at = std::find(choices.begin(), choices.end(), text);
    take(static_cast<std::size_t>(at - choices.begin()));
  };
  OptionInfo& info = describe(spec, value_name, help, [spec, choices, found](CLI::App& app) {
    last_wins(app.add_option_function<std::string>(spec, found))
        ->check(one_of(shown_name(spec), choices));
  });
  info.default_text = preset;
  info.choices = choices;
}

void Parser::assignments(const std::string& spec, std::vector<TypedVariable>& values,
                         const std::string& value_name, const std::string& help) {
  const auto take = [spec, &values](const std::vector<std::string>& typed) {
    for (const std::string& text : typed)
      values.push_back({text.substr(0, text.find('=')), text.substr(text.find('=') + 1), spec});
  };
  const auto check = [spec](const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals != 0 && equals != std::string::npos) return std::string();
    return fmt::format("{} must be NAME=VALUE, not \"{}\"", shown_name(spec), text);
  };
  describe(spec, value_name, help, [spec, take, check](CLI::App& app) {
    app.add_option_function<std::vector<std::string>>(spec, take)
        ->allow_extra_args(false)
        ->check(CLI::Validator(check, ""));
  }).repeatable = true;
}

void Parser::yes_no(const std::string& yes, const std::string& no, std::optional<bool>& value,
                    const std::string& yes_help, const std::string& no_help) {
  describe(yes, "", yes_help, [yes, &value](CLI::App& app) {
    app.add_flag_callback(yes, [&value] { value = true; });
  });
  describe(no, "", no_help, [yes, no, &value](CLI::App& app) {
    CLI::Option* one = app.add_flag_callback(no, [&value] { value = false; });
    if (CLI::Option* other = app.get_option_no_throw(yes)) one->excludes(other);
  });
}

void Parser::list(const std::string& spec, std::vector<std::string>& values,
                  const std::string& value_name, const std::string& help) {
  describe(spec, value_name, help, [spec, &values](CLI::App& app) {
    app.add_option(spec, values)->allow_extra_args(false);
  }).repeatable = true;
}

void Parser::paths(const std::string& spec, std::vector<std::string>& values,
                   const std::string& value_name, const std::string& help, Absolute absolute) {
  list(spec, values, value_name, help);
  tree_.options.back().absolute = absolute;
}

void Parser::words(std::vector<std::string>& values, const std::string& value_name,
                   const std::string& help) {
  describe("words", value_name, help, [&values](CLI::App& app) {
    app.add_option("words", values);
  }).repeatable = true;
}

void Parser::word(std::string& value, const std::string& value_name,
                  const std::vector<std::string>& choices, const std::string& help) {
  describe("word", value_name, help, [value_name, &value, choices](CLI::App& app) {
    app.add_option(value_name, value)->required()->check(one_of(value_name, choices));
  }).choices = choices;
}

void Parser::takes_program(std::vector<std::string>& program, bool required) {
  program_ = &program;
  program_required_ = required;
  OptionInfo& info =
      describe("-m", "MODULE", "Start a Python module as the program", [](CLI::App&) {});
  info.shared = false;
  info.rare = true;
}

void Parser::foreign(const std::string& spec, std::string_view value, std::string_view help) {
  describe(spec, std::string(value), std::string(help), [](CLI::App&) {});
}

void Parser::takes_line(Rewrite read, std::vector<std::string>& program) {
  rewrite_ = std::move(read);
  program_ = &program;
  program_required_ = true;
}

void Parser::footer(const std::string& text) { tree_.footer = text; }

Result<std::string> Parser::parse(std::vector<std::string> line) {
  CLI::App app("", tree_.name);
  app.allow_extras();  // so that we can name the nearest one
  app.prefix_command(program_ != nullptr);
  std::string help;
  app.set_help_flag();
  for (const char* name : {"-h", "--help"})
    app.add_flag_callback(name, [&help, name] { throw CLI::CallForHelp(help = name, 0); });
  for (std::size_t i = 0; i < declare_.size(); ++i)
    if (is_typed(tree_.options[i], line)) declare_[i](app);
  const bool asks = !line.empty() && (line.front() == "-h" || line.front() == "--help");
  if (rewrite_ && !asks) {
    Result<std::vector<std::string>> own = rewrite_(line);
    if (!own) return own.error();
    line = *std::move(own);
  } else if (program_ != nullptr)
    if (const Status ours = refuse_foreign(line); !ours) return ours.error();
  const std::string last = line.empty() ? "" : line.back();
  typed_ = line;
  std::reverse(line.begin(), line.end());  // CLI11 takes them from the back
  try {
    app.parse(line);
  } catch (const CLI::CallForHelp&) {
    return help;
  } catch (const CLI::ParseError& error) {
    const bool mismatch = dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
    const auto lacking = mismatch ? without_value(tree_, last) : std::nullopt;
    return Error{ErrorKind::usage, lacking.value_or(sentence(error)),
                 fmt::format("hpclaunch {} --help", tree_.name)};
  }
  keep_shared(app);
  if (const Status taken = take_program(app.remaining()); !taken) return taken.error();
  return help;
}

void Parser::keep_shared(const CLI::App& app) {
  for (const OptionInfo& one : tree_.options) {
    const CLI::Option* option = one.shared ? app.get_option_no_throw(one.names.back()) : nullptr;
    if (option == nullptr || option->count() == 0) continue;
    std::vector<std::string> values = option->results();
    if (!one.repeatable) values = {values.back()};
    if (one.value_name.empty()) values = {""};
    for (const std::string& value : values) shared_typed_.emplace_back(&one, value);
  }
}

bool Parser::needs_value(const std::string& word) const {
  return std::ranges::any_of(tree_.options, [&](const OptionInfo& option) {
    return option.named(word) && !option.value_name.empty() && option.bare.empty();
  });
}

std::vector<std::string> Parser::shared_words(std::string_view except) const {
  std::vector<std::string> words;
  for (const auto& [option, typed] : shared_typed_) {
    const std::string& name = option->names.back();
    if (name == except) continue;
    const std::string value = option->absolute == nullptr ? typed : option->absolute(typed);
    const bool dash = value.starts_with('-');  // would be taken for an option
    words.push_back(dash ? fmt::format("{}={}", name, value) : name);
    if (!dash && !value.empty()) words.push_back(value);
  }
  return words;
}

// What is left of the line: options that do not exist, or the program.
Status Parser::take_program(std::vector<std::string> rest) {
  const std::string first = rest.empty() ? "" : rest.front();
  const bool module = program_ != nullptr && first == "-m";
  if (first.starts_with('-') && first != "-" && first != "--" && !module) return unknown(rest);
  if (program_ == nullptr && !rest.empty())
    return Error{ErrorKind::usage, fmt::format("unexpected argument \"{}\"", first),
                 fmt::format("hpclaunch {} --help", tree_.name)};
  if (first == "--") rest.erase(rest.begin());
  if (rest.empty() && program_required_)
    return Error{ErrorKind::usage, "PROGRAM is missing",
                 fmt::format("hpclaunch {} {}", tree_.name, tree_.usage)};
  if (program_ != nullptr) *program_ = std::move(rest);
  return Done{};
}

}  // namespace hpclaunch::cli
