#pragma once
// Command lines of other programs: launchers, directives of batch systems, torchrun, engines. One reader for all; what
// differs is a grammar, which is data. Pure.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hpclaunch {

/// How a program reads its options.
enum class Syntax {
  getopt,    ///< "-n 4", "-n4", "-lN1", "--ntasks 4", "--ntasks=4"
  words,     ///< whole words with one dash or two: "-np 4", "--np=4"
  argparse,  ///< as getopt; '_' in a name is '-', and a value does not begin with '-' but as a number
};

/// What follows the name of an option.
enum class Takes {
  nothing,
  joined,  ///< nothing, or a value in the same word: "--exclusive=user", "-K1"
  value,
  pair,  ///< a name and a value, in two words or as "NAME=VALUE": "-genv A B"
};

/// What an option decides: of the plan, or of what the words behind it are.
enum class Decides {
  nothing,
  ranks,      ///< the number of ranks
  per_node,   ///< the number of ranks on a node
  nodes,      ///< the number of nodes
  sets,       ///< the number of resource sets of jsrun, one for each node
  per_set,    ///< the number of ranks in one
  hosts,      ///< which nodes, by name
  host_file,  ///< which nodes, by a file
  binding,    ///< the CPUs of a rank
  step,       ///< the CPUs of the step: fewer than the node has
  order,      ///< the node of each rank
  devices,    ///< which GPUs a rank sees
  node_gpus,  ///< which GPUs the step has on a node: "4", "a100:4"
  node_gres,  ///< the same as "gpu:4", "gpu:a100:4", "nic:1,gpu:4"
  no_env,     ///< that variables are not passed on
  some_env,   ///< which variables are passed on, by name; "ALL" for all
  one_env,    ///< the value of one variable
  edit_env,   ///< the same; with a '-' in front, a pattern of variables that are not passed on
  failure,    ///< what one failed rank does to the others
  settings,   ///< a file that may decide any of these
  module,     ///< the program is a Python module
  program,    ///< the program is no Python script
  text,       ///< the value is a shell's text, and the program
};

/// One option with all its names. {{"--ntasks", "-n"}, Takes::value, Decides::ranks}
struct Option {
  std::span<const std::string_view> names;  ///< with their dashes; without in Syntax::words
  Takes takes = Takes::value;
  Decides decides = Decides::nothing;
  std::string_view harmless = {};  ///< a value that agrees with every plan
  std::string_view key = {};       ///< only with "KEY" or "KEY=..." as its value (flux -o)

  std::string_view name() const { return names.empty() ? std::string_view() : names.front(); }
};

/// The options of one program.
struct Grammar {
  using Names = std::span<const std::span<const std::string_view>>;  ///< of each option

  std::string_view name;  ///< "srun"
  Syntax syntax = Syntax::getopt;
  /// An unambiguous beginning of a long name is accepted. False also where not all names are known.
  bool abbreviates = false;
  Takes unknown = Takes::value;  ///< an option of another name; a value does not begin with '-'
  std::span<const std::string_view> family = {};  ///< grammars that have more of its options
  std::span<const Option> options = {};
  Names flags = {}, joined = {}, values = {}, pairs = {};  ///< those that decide nothing
};

/// A program's own grammar first, then those of its family. None: the options of the program are not known.
using Grammars = std::vector<const Grammar*>;

/// An option as it is given. "--nta 4": name "--nta", value "4"
struct GivenOption {
  std::string name;   ///< as typed, with its dashes
  std::string value;  ///< "A=B" of a pair
  bool has_value = false;
  bool known = false;  ///< else the grammar has none of the name, or several
  Option option = {};
  std::size_t first = 0, end = 0;  ///< its words: [first, end)
  std::size_t value_word = 0;      ///< where the value begins: its word,
  std::size_t value_at = 0;        ///< and the byte of it

  bool is(Decides what) const { return option.decides == what; }
};

struct OptionLine {
  std::vector<GivenOption> options;  ///< in order; of "-lN1" two
  std::size_t rest = 0;              ///< where the program's own words begin
  bool dashes = false;               ///< "--" stands before them
  std::vector<std::size_t> strays;   ///< words between options, with Strays::skip
};

enum class Strays {
  end,   ///< the first word that is no option begins the rest
  skip,  ///< options may follow it: a list of arguments, a directive
};

/// Options from `words[from]` on. The value of Decides::module or text is the last one.
OptionLine read_options(const Grammars& grammars, std::span<const std::string> words,
                        std::size_t from = 0, Strays strays = Strays::end);

/// The option of that name, else those that it abbreviates, each once. `value` where options differ by key.
std::vector<Option> options_named(const Grammars& grammars, std::string_view name,
                                  std::string_view value = {});

/// All of them.
std::vector<Option> options_of(const Grammars& grammars);

/// `name` is as in the grammar: the option's, or as it is typed where that is not known.
bool has_name(const Grammars& grammars, const GivenOption& given, std::string_view name);

/// "KEY" or "KEY=..."
bool has_key(std::string_view value, std::string_view key);

}  // namespace hpclaunch
