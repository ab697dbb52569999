#pragma once
// What a command takes, declared once: the parser, --help, the manual page and the completions all read
// it. CLI11 does the parsing and stays inside parser.cpp, because every file that includes it takes
// several seconds to compile.
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "hpclaunch/grammar.h"
#include "hpclaunch/paths.h"
#include "hpclaunch/render.h"
#include "hpclaunch/request.h"
#include "hpclaunch/result.h"

namespace CLI {
class App;
}

namespace hpclaunch::cli {

struct Command;

/// A value as another directory takes it; hpclaunch/paths.h has them.
using Absolute = std::string (*)(const std::string& value);

/// One option or positional word, as people see it.
struct OptionInfo {
  std::vector<std::string> names;  ///< as typed: "-n", "--ranks"; none for a positional word
  std::string value_name;          ///< "" for a flag
  std::string bare;                ///< the value when none is given; "": one must be
  std::string description;
  std::string default_text;  ///< "" when there is none to show
  std::string group;
  std::vector<std::string> choices;  ///< the values it takes, when they are a closed list
  bool repeatable = false;
  Absolute absolute = nullptr;  ///< where a value is a path, or may be one
  bool shared = false;          ///< by the commands that plan
  bool rare = false;            ///< not described in the brief help

  std::string value() const { return bare.empty() ? value_name : "[" + value_name + "]"; }
  bool positional() const { return names.empty(); }
  bool named(std::string_view word) const {
    return std::find(names.begin(), names.end(), word) != names.end();
  }
};

/// One command with everything it takes.
struct CommandTree {
  std::string name;
  std::string summary;
  std::string usage;  ///< what follows the name
  std::string footer;
  bool brief_own = false;           ///< the brief help leaves out shared options
  std::vector<OptionInfo> options;  ///< in the order of declaration, --help first
};

/// The options of a command as a grammar, which has views into the tree.
struct CommandGrammar {
  explicit CommandGrammar(const CommandTree& command);
  CommandGrammar(const CommandGrammar&) = delete;
  CommandGrammar& operator=(const CommandGrammar&) = delete;

  std::vector<std::string_view> names;
  std::vector<Option> options;
  Grammar grammar;
};

/// Declare first, then parse once, then ask. Values are written where the declaration said, so what was
/// declared must live as long as the parser. Specs are CLI11's: "-n,--ranks". CLI11 gets only the options
/// that are typed: all of them would cost a twentieth of a dry run.
class Parser {
 public:
  explicit Parser(const Command& command);
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  /// Of the options that follow; `rare`: the brief help names them only.
  void group(const std::string& name, bool shared = false, bool rare = false);
  void brief_own() { tree_.brief_own = true; }
  void flag(const std::string& spec, bool& value, const std::string& help);
  void number(const std::string& spec, std::optional<int>& value, const std::string& value_name,
              int low, int high, const std::string& help);
  /// 1 to `high`, or `word`, which stands for `meaning`.
  void number_or(const std::string& spec, const std::string& word, int meaning,
                 std::optional<int>& value, const std::string& value_name, int high,
                 const std::string& help);
  /// "4" is `most` alone; "2:4" both.
  void range(const std::string& spec, std::optional<int>& least, std::optional<int>& most,
             const std::string& value_name, int high, const std::string& help);
  void seconds(const std::string& spec, double& value, const std::string& help);  ///< 0 to a day
  /// A value that is empty, or an option of the command, is refused. `bare`: what the option without one means.
  void text(const std::string& spec, std::string& value, const std::string& value_name,
            const std::string& help, const std::string& bare = "");
  /// The same, stored behind `mark`; not beside the option `other`.
  void marked(const std::string& spec, const std::string& other, char mark, std::string& value,
              const std::string& value_name, const std::string& help);
  /// Text that is a path. `absolute` tells it from a name, where it may be one.
  void path(const std::string& spec, std::string& value, const std::string& value_name,
            const std::string& help, Absolute absolute = job::absolute_path);
  void choice(const std::string& spec, std::string& value, const std::string& value_name,
              const std::vector<std::string>& choices, const std::string& help);
  /// The same for the values of an enumeration, which to_string names.
  template <class Value, class Enum>  // Value: Enum or std::optional<Enum>
  void named(const std::string& spec, Value& value, const std::string& value_name,
             std::initializer_list<Enum> values, const std::string& help) {
    std::vector<std::string> names;
    for (const Enum one : values) names.emplace_back(to_string(one));
    std::string preset;
    if constexpr (std::is_same_v<Value, Enum>) preset = to_string(value);
    const std::vector<Enum> all(values);
    choice_of(spec, preset, value_name, names, help,
              [&value, all](std::size_t index) { value = all[index]; });
  }
  void list(const std::string& spec, std::vector<std::string>& values,
            const std::string& value_name,
            const std::string& help);  ///< once per value
  void paths(const std::string& spec, std::vector<std::string>& values,
             const std::string& value_name, const std::string& help,
             Absolute absolute = job::absolute_path);
  void assignments(const std::string& spec, std::vector<TypedVariable>& values,
                   const std::string& value_name,
                   const std::string& help);  ///< NAME=VALUE, once per pair
  /// Two flags that contradict each other; nullopt when neither is typed.
  void yes_no(const std::string& yes, const std::string& no, std::optional<bool>& value,
              const std::string& yes_help, const std::string& no_help);
  void words(std::vector<std::string>& values, const std::string& value_name,
             const std::string& help);
  void word(std::string& value, const std::string& value_name,
            const std::vector<std::string>& choices,
            const std::string& help);  ///< required
  /// The command line may end in `[--] PROGRAM [ARG...]`, of which nothing is read as ours; where that
  /// is `required`, it must.
  void takes_program(std::vector<std::string>& program, bool required = false);
  /// An option that takes_line reads.
  void foreign(const std::string& spec, std::string_view value, std::string_view help);
  /// The whole command line but -h and --help is read by `read`, which returns the options of this command in it, and
  /// the program behind "--".
  using Rewrite = std::function<Result<std::vector<std::string>>(const std::vector<std::string>&)>;
  void takes_line(Rewrite read, std::vector<std::string>& program);
  void footer(const std::string& text);

  /// An option that there was: what to type for it.
  void gone(std::string name, std::string instead) {
    gone_ = {std::move(name), std::move(instead)};
  }

  /// The help that was asked for instead, "-h" or "--help"; "" for none. Errors: `usage`, with the nearest
  /// option for one that does not exist.
  Result<std::string> parse(std::vector<std::string> line);

  const CommandTree& tree() const { return tree_; }

  /// The command line that was parsed.
  const std::vector<std::string>& typed() const { return typed_; }
  /// `word` is an option whose value is the next word.
  bool needs_value(const std::string& word) const;
  /// Its shared options but `except`, for a command line in another directory: spelled in full, paths absolute; of a
  /// repeated one the value that counts.
  std::vector<std::string> shared_words(std::string_view except) const;

 private:
  using Declare = std::function<void(CLI::App&)>;
  OptionInfo& describe(const std::string& spec, const std::string& value_name,
                       const std::string& help, Declare declare);
  void choice_of(const std::string& spec, const std::string& preset, const std::string& value_name,
                 const std::vector<std::string>& choices, const std::string& help,
                 const std::function<void(std::size_t)>& take);
  std::string meant(std::span<const std::string> words) const;
  Error unknown(std::span<const std::string> words) const;
  Status refuse_foreign(const std::vector<std::string>& line) const;
  Status take_program(std::vector<std::string> rest);
  void keep_shared(const CLI::App& app);

  CommandTree tree_;
  std::vector<Declare> declare_;  ///< of each option in tree_
  std::string group_ = "Options";
  bool shared_ = false;
  bool rare_ = false;
  std::vector<std::string>* program_ = nullptr;
  bool program_required_ = false;
  Rewrite rewrite_;
  std::pair<std::string, std::string> gone_;
  std::vector<std::string> typed_;
  std::vector<std::pair<const OptionInfo*, std::string>> shared_typed_;  ///< each with its value
};

/// The text of `hpclaunch COMMAND --help`; `brief`: that of -h, one screen.
std::string help_text(const CommandTree& command, bool brief, const Style& style);

}  // namespace hpclaunch::cli
