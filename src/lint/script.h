#pragma once
// What a batch script asks for and does, as far as its text says: the request to the batch system, the state of
// variables along the script, modules, and launches with their environment. Rules (src/lint/rules*.cpp) read this.
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/programs.h"
#include "lint/shell.h"

namespace hpclaunch::lint {

using Names = std::initializer_list<std::string_view>;

/// A value, as far as the text says it.
struct Value {
  enum class Kind : std::uint8_t {
    known,  ///< `text`
    unknown,  ///< depends on what the text does not say; `text` has what is known, '\x01' for the rest
    node_lines,  ///< lines of the batch system's host file
    hostname,    ///< name or address of the machine that runs the script
  };
  Kind kind = Kind::known;
  std::string text = {};
  bool known() const { return kind == Kind::known; }
};

/// One change of a variable.
struct Setting {
  enum class How : std::uint8_t {
    assigned,  ///< NAME=value, also set of csh
    exported,  ///< export, setenv, declare -x
    unset,
    inline_,  ///< NAME=value COMMAND, env NAME=value COMMAND
    option,   ///< -x NAME=value, --env, --export=NAME=value of a launcher
    read,     ///< for NAME in, read NAME, getopts: value unknown
  };
  std::string name;
  Value value;
  How how = How::assigned;
  bool exported = false;     ///< programs started behind it see it
  bool conditional = false;  ///< may not happen
  bool local = false;        ///< ends before the next command: in a subshell or pipe
  bool append = false;
  bool array = false;
  std::vector<Value> items = {};  ///< of an array
  std::size_t command = 0;        ///< index in Shell::commands
  Span name_span;
  Span value_span;  ///< empty where no value is written (export NAME)
  std::size_t launch =
      kNone;  ///< inline_ and option: the launch that it is for, kNone: another command
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
};

/// A word behind its replacements: "${ARGS[@]}" is as many words as the array has.
struct Text {
  Value value;
  Span span;            ///< where it is written in the command (of the reference, not of the array)
  bool direct = false;  ///< written just so: a fix may replace `span`
  const std::string& text() const { return value.text; }
};

struct Option {
  std::string name;  ///< with its dashes as typed: "--cpu-bind", "-n"
  Text value;        ///< "" for a flag
  bool has_value = false;
  Span span;  ///< of the name
};

/// A program that starts processes, or an environment for one (a container).
struct Launch {
  std::string
      kind;  ///< row of profiles/programs/launchers.json: "srun", "mpiexec", "torchrun", "flux run", "container"
  const ContainerEngine* engine = nullptr;  ///< of kind "container"
  std::string program;                      ///< as typed, without folder: "mpirun"
  std::size_t command = 0;
  Span span;                                   ///< of the program word
  std::vector<Text> words = {};                ///< all, the program first
  std::vector<Option> options = {};            ///< of the launcher
  std::vector<Text> inner = {};                ///< the program that it starts, with its arguments
  std::size_t outer = Setting::kNone;          ///< the launch around it, index in Script::launches
  std::size_t settings_before = 0;             ///< number of Script::settings when it starts
  std::vector<std::size_t> own_settings = {};  ///< indices of those that are for it alone
  bool background = false;

  /// The last of the options with one of `names`; nullptr: none.
  const Option* option(Names names) const;
};

struct Module {
  std::string verb;  ///< load, unload, purge, reset, restore, swap, use
  std::string name;  ///< "frameworks/2025.2.0"; may hold '\x01' where unknown
  std::size_t command = 0;
  Span span;
  bool conditional = false;
};

/// An option of a directive.
struct Ask {
  std::string_view system;  ///< whose directive it is: "slurm", "pbs"
  std::string name;   ///< "--nodes", "-l", "-N"; of -l of PBS: "-l select", "-l walltime", ...
  std::string value;  ///< "" for a flag
  Span span;          ///< of the whole option
  Span value_span;
  std::size_t directive = 0;
};

/// Same questions whatever the system; "" and 0: not asked, or not a plain number.
struct RequestOfJob {
  std::string system;  ///< scheduler's name: "slurm", "pbs"; "" for none
  long nodes = 0;
  long tasks = 0;
  long tasks_per_node = 0;
  long cpus_per_task = 0;
  std::string gpus_per_node, gpus_per_task, gpus;  ///< "4", "a100:4"
  std::string exported, constraint;
};

struct Script {
  std::string file;
  Shell shell;
  RequestOfJob request;
  std::vector<Ask> asks;
  /// The first word of a directive that is neither option nor value, with the index of the directive.
  std::vector<std::pair<std::size_t, Span>> strays;
  std::vector<Setting> settings;  ///< in the order in which they happen
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_name;  ///< indices of settings
  std::vector<Module> modules;
  std::vector<Launch> launches;

  /// The last change of `name` before the first `settings_before`; nullptr: none. Local ones and those of a single
  /// command are passed over.
  const Setting* last(std::string_view name, std::size_t settings_before) const;
  /// What a launch is given for `name`: its own inline value or option, else what is exported; nullptr: nothing.
  const Setting* given(std::string_view name, const Launch& launch) const;
  /// The value that programs find behind the last line, as knowledge::Lookup has it.
  std::optional<std::string> exported(std::string_view name) const;
  /// The last ask with one of `names`; nullptr: none.
  const Ask* ask(Names names) const;
};

/// `text` begins with one of a list of profiles/programs/words.json: of words_named("stack prefixes").
bool begins_with_one(Words words, std::string_view text);
bool has_one_in_it(Words words, std::string_view text);  ///< anywhere

/// `text` must outlive the answer.
Script read_script(std::string_view text, std::string file);

/// Lines NAME=VALUE, as `env` and .env files have them: all exported, nothing replaced.
Script read_dump(std::string_view text, std::string file);

}  // namespace hpclaunch::lint
