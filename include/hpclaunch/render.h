#pragma once
// Values to text for people, shells and programs. All pure.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/late.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/topology.h"

namespace hpclaunch {

/// What a terminal can show. Defaults: plain bytes for a file or a pipe.
struct Style {
  bool unicode = false;
  bool color = false;
  int width = 100;    ///< columns
  bool rich = false;  ///< `color` has 256 of them
};

namespace render {

/// One line that cannot move the cursor: control bytes and bytes that are not UTF-8 become \n, \t,
/// \r or \xHH; C1 controls and the marks that reorder text (U+202A.. and the like) are written by
/// bytes as well. Everything else, a backslash too, stays.
std::string printable(std::string_view text);

/// Of plan_table: ranks -> CPUs, one table per kind of node; classes that are laid out alike share one.
std::string rank_tables(const Plan& plan, const Topology& node, const Style& style);

/// The pieces in lines of at most `width` columns, with `glue` between those of a line; a wider piece gets a
/// line. Never empty.
std::vector<std::string> fill(const std::vector<std::string>& pieces, int width,
                              std::string_view glue = " ");

}  // namespace render

enum class EnvFormat { sh, csh, fish, dotenv, json, lmod };

std::optional<EnvFormat> env_format_from(std::string_view name);

/// One variable to set (value) or to remove (nullopt).
struct EnvChange {
  std::string name;
  std::optional<std::string> value;
  /// Printed on a line before it where the format has comments; newlines become spaces, other
  /// control bytes \xHH; "" for none.
  std::string comment;
  enum class Prints { value, reference, inherited };  ///< a secret's value is not printed
  Prints prints = Prints::value;
  bool yields = false;  ///< a shell that has a value keeps it
  /// Where a shell makes the value: text, and what stands in its double quotes, as "$USER". Empty: `value`.
  std::vector<LatePart> late = {};
  std::string fix = {};  ///< options that make such a value known; "" none
};

/// One word for the shell's command line: evaluating it gives the bytes back, any but NUL. Plain words
/// stay bare; "" becomes ''. `csh` guards '!' and newline too.
std::string quote_sh(std::string_view value);
std::string quote_csh(std::string_view value);
std::string quote_fish(std::string_view value);
/// The same for a POSIX shell of a word that it makes.
std::string late_word(const std::vector<LatePart>& parts);

/// A text that, evaluated by that shell or read by that program, makes the changes, byte for byte
/// and in their order; docs/reference/plan.md says how each is to be read. sh prints `export NAME=value` and
/// `unset NAME`; csh and fish end each line in " ;", so that it outlives an eval that joins lines.
/// Errors: `unsupported`, naming the variable, when the format cannot represent it: a name that is no
/// identifier or that the shell keeps for itself, bytes that are not UTF-8 in json and dotenv, and
/// what readers of dotenv disagree about, removal among it; a value that only a shell can make.
Result<std::string> render_env(EnvFormat format, const std::vector<EnvChange>& changes,
                               bool comments);

/// A POSIX shell script that does what `run` does: the changes, then `exec` of the argv.
/// `needs`: further remarks for a reader; they become comments at the top. `preamble`: lines of sh before the
/// changes, which use what they set. `late`: words of argv that the shell makes, as EnvChange::late.
/// Errors: `usage` when argv is empty; `unsupported` as render_env.
Result<std::string> render_script(const std::vector<EnvChange>& changes,
                                  const std::vector<std::string>& argv, bool comments,
                                  const std::vector<std::string>& needs = {},
                                  std::string_view preamble = {},
                                  const std::map<std::string, std::vector<LatePart>>& late = {});

/// The machine as a text tree: packages, NUMA nodes, caches, cores, PUs, memory, and what is
/// allowed.
std::string topology_tree(const Topology& topology, const Style& style);

/// The plan as a screen for people: ranks -> CPUs, the variables that a plain launch does not set, and the command
/// line (the plan's own command when `argv` is empty); `verbose`: all variables with their reasons and the whole
/// command. No line is wider than style.width, if that is 60 or more; what is cut is marked with its length.
/// `topology` names what a rank spans and may be empty. `above`: lines before it on the screen.
std::string plan_table(const Plan& plan, const Topology& topology,
                       const std::vector<std::string>& argv, const Style& style,
                       bool verbose = false, int above = 0);

/// Before a start: one line about the job, one with the launch command; words above 120 columns are cut.
std::string launch_text(const Plan& plan, const std::vector<std::string>& argv);

/// Hardware threads that a picture marks beside those of ranks.
struct PictureMarks {
  struct Service {
    std::string name;
    CpuSet pus;
    std::string why;
  };
  CpuSet reserved;  ///< for the system, not for ranks
  std::string reserved_why;
  std::vector<Service> services;  ///< used by a service only while it runs
};

/// The machine as one SVG document that needs nothing beside it: packages, NUMA nodes, shared caches,
/// cores with their hardware threads, devices, NICs and links, each where it is near; light or dark as
/// the reader's screen is; `title` and `desc` describe it in words. Equal input gives equal bytes.
std::string topology_svg(const Topology& topology);

/// The same for each kind of node in the plan, with its ranks over it; a rank that is far from its
/// device is marked by a line, a hatch and the word.
std::string plan_svg(const Plan& plan, const Topology& topology, const PictureMarks& marks);

/// The same two for a terminal: no line is wider than style.width, if that is 60 or more.
std::string topology_picture(const Topology& topology, const Style& style);
std::string plan_picture(const Plan& plan, const Topology& topology, const PictureMarks& marks,
                         const Style& style);

/// Rows in columns, the first one as heads. Cells are broken at blanks where the lines would be wider
/// than style.width; every row has as many cells as the first.
std::string grid(const std::vector<std::vector<std::string>>& rows, const Style& style);

/// `text` in lines of style.width columns that begin with `lead`, the later ones with as many blanks.
std::string paragraph(std::string_view lead, std::string_view text, const Style& style);

/// The history of the named settings (choices or variables), newest first: the value, overridden
/// ones, reasons. All of them when `names` is empty; a name that is neither prints nothing. What the user
/// exported or typed for a secret name (is_secret) is shown as "<hidden>".
std::string explain(const Plan& plan, const std::vector<std::string>& names, const Style& style);

/// A value in one line: constants as they are but for control bytes and bytes that are not UTF-8
/// (\n, \t, \r, \xHH), per-rank items "a / b / c" with " | " between node classes, rank facts
/// "<rank>", '' for an empty text, "(unset)".
std::string value_text(const Value& value);

}  // namespace hpclaunch
