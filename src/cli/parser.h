#pragma once
// What a command takes, declared once: the parser, --help, the manual page and the completions all read it.
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "hpclaunch/render.h"
#include "hpclaunch/result.h"

namespace hpclaunch::cli {

struct Command;

/// One option or positional word, as people see it.
struct OptionInfo {
  std::vector<std::string> names = {};  ///< as typed: "-n", "--ranks"; none for a positional word
  std::string value_name = {};          ///< "" for a flag
  std::string bare = {};                ///< the value when none is given; "": one must be
  std::string description = {};
  std::string default_text = {};  ///< "" when there is none to show
  std::string group = {};
  std::vector<std::string> choices = {};  ///< the values it takes, when they are a closed list
  bool repeatable = false;
  bool shared = false;   ///< by the commands that plan
  bool is_text = false;  ///< takes any text but an option of the command
  /// Reads one typed value. What is wrong with it, "" for nothing.
  std::function<std::string(const std::string&)> take = {};

  std::string value() const { return bare.empty() ? value_name : "[" + value_name + "]"; }
  bool positional() const { return names.empty(); }
  const std::string& title() const;  ///< in messages
};

// How an option is read, for Parser::add. Values are written to the variable, which must outlive the parser.
OptionInfo flag(bool& value);
OptionInfo number(std::optional<int>& value, const std::string& value_name, int low, int high);
OptionInfo seconds(double& value);  ///< 0 to a day
/// Refused when empty, or an option of the command. `bare`: the value of the option alone; "": it needs one.
OptionInfo text(std::string& value, const std::string& value_name, const std::string& bare = "");
OptionInfo list(std::vector<std::string>& values,
                const std::string& value_name);  ///< once per value
/// NAME=VALUE, once per pair.
OptionInfo assignments(std::vector<std::pair<std::string, std::string>>& values,
                       const std::string& value_name);
/// One of two flags that contradict each other; nullopt when neither is typed.
OptionInfo yes_no(std::optional<bool>& value, bool given, const std::string& other);
/// `use` gets the index of the choice.
OptionInfo choice_of(const std::string& value_name, const std::vector<std::string>& choices,
                     const std::string& preset, const std::function<void(std::size_t)>& use);
OptionInfo choice(std::string& value, const std::string& value_name,
                  const std::vector<std::string>& choices);
/// The same for the values of an enumeration, which to_string names.
template <class Value, class Enum>  // Value: Enum or std::optional<Enum>
OptionInfo named(Value& value, const std::string& value_name, std::initializer_list<Enum> values) {
  std::vector<std::string> names;
  for (const Enum one : values) names.emplace_back(to_string(one));
  std::string preset;
  if constexpr (std::is_same_v<Value, Enum>) preset = to_string(value);
  const std::vector<Enum> all(values);
  return choice_of(value_name, names, preset,
                   [&value, all](std::size_t index) { value = all[index]; });
}

/// One command with everything it takes.
struct CommandTree {
  std::string name;
  std::string summary;
  std::string usage;  ///< what follows the name
  std::string footer;
  std::vector<OptionInfo> options;  ///< in the order of declaration, --help first

  const OptionInfo* find(std::string_view word) const;  ///< "-n"; nullptr: there is none
};

/// Declare first, then parse once, then ask. Scripts append options to a line that may have them already: the last one
/// wins.
class Parser {
 public:
  explicit Parser(const Command& command);

  void group(const std::string& name, bool shared = false);  ///< of the options that follow
  /// `names`: all spellings, "-n,--ranks"; "" for a positional word, which is required unless it is a list.
  void add(std::string_view names, OptionInfo option, const std::string& help);
  /// The command line may end in `[--] PROGRAM [ARG...]`, of which nothing is read as ours; where that
  /// is `required`, it must.
  void takes_program(std::vector<std::string>& program, bool required = false);
  void footer(const std::string& text);

  /// The help that was asked for instead, "-h" or "--help"; "" for none. Errors: `usage`, with the nearest
  /// option for one that does not exist.
  Result<std::string> parse(const std::vector<std::string>& line);

  const CommandTree& tree() const { return tree_; }

 private:
  struct Typed {
    using Value = std::pair<const OptionInfo*, std::string>;
    std::vector<Value> values;
    std::vector<std::string> rest;  ///< that no option takes
    std::string help;
  };
  Error usage(const std::string& problem, const std::string& hint = "") const;
  Error unknown(const std::string& word) const;
  Status sort(const std::vector<std::string>& line, Typed& typed) const;
  Status sort_option(std::string word, const std::vector<std::string>& line, std::size_t& at,
                     Typed& typed) const;
  Status take_program(std::vector<std::string> rest);

  CommandTree tree_;
  std::string group_ = "Options";
  bool shared_ = false;
  std::vector<std::string>* program_ = nullptr;
  bool program_required_ = false;
};

/// The text of `hpclaunch COMMAND --help`; `brief`: that of -h, one screen.
std::string help_text(const CommandTree& command, bool brief, const Style& style);

}  // namespace hpclaunch::cli
