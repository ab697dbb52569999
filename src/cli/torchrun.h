#pragma once
// torchrun's command line: its options as a table, and what is typed of them.
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace hpclaunch::cli {

/// One option of torchrun 1.9 to 2.12, or of torch.distributed.launch.
struct TorchrunOption {
  enum class How {
    applied,  ///< by apply_torchrun
    common,   ///< the same, and in the brief help
    silent,   ///< has nothing to do here
    said,     ///< the same, and `text` says it
    refused,  ///< `text` is the reason
  };
  std::string_view name;   ///< "nproc-per-node"; typed as nproc_per_node as well
  std::string_view value;  ///< its name in the help; "" for a flag
  std::string_view what;   ///< for the help; "" where `run` has it as well, or it is too rare
  How how = How::applied;
  std::string_view text = {};
  bool has_default = true;  ///< PET_NAME is its default
};

std::span<const TorchrunOption> torchrun_options();

struct TorchrunLine {
  std::map<std::string, std::string, std::less<>> values;  ///< by name; of a flag "1"
  std::vector<std::string> own;                            ///< options of `hpclaunch run`
  std::vector<std::string> program;  ///< script, module or program, and its arguments
  bool lost_dashes = false;          ///< as torchrun, without the "--" right behind the script

  bool has(std::string_view name) const { return values.contains(name); }
  std::string get(std::string_view name) const;  ///< "" for none
};

/// As argparse reads it: prefixes, "-r3", "-mr 3", and PET_* of `env` for what is not typed. Options of `run` are those of
/// `own`. Errors: `usage`.
Result<TorchrunLine> read_torchrun(const std::vector<std::string>& words, const CommandTree& own,
                                   const EnvSnapshot& env);

/// What the line means for a launch. Errors: `usage`; `unsupported` for what cannot be done here.
Status apply_torchrun(const TorchrunLine& line, const EnvSnapshot& env, Request& request,
                      std::vector<Diagnostic>& notes);

/// Where the plan's nodes differ from those of the line.
std::vector<Diagnostic> compare_torchrun(const TorchrunLine& line, const Prepared& prepared);

}  // namespace hpclaunch::cli
