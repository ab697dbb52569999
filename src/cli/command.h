#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "cli/parser.h"
#include "hpclaunch/prepared.h"
#include "hpclaunch/session.h"

namespace hpclaunch::cli {

using job::ExitRules;
using job::Prepared;
using job::print_all;
using job::Purpose;
using job::report;
using job::Session;

/// Runs a parsed command; returns the exit status.
using Runner = std::function<int(Session&)>;

/// One subcommand. `declare` adds its options to `parser` and returns what runs after parsing.
struct Command {
  const char* name;
  const char* summary;  ///< one line for `hpclaunch --help`
  const char* usage;    ///< what follows the name in the usage line
  ExitRules exit_rules;
  bool hidden;  ///< started by hpclaunch itself: not in help and completion
  Runner (*declare)(Parser& parser);
};

/// The options that run, plan, env, explain and verify share: they fill one Request.
void declare_launch_options(Parser& parser, Request& request);

/// What only a job knows of itself, for plans that are made before it.
void declare_later_job(Parser& parser, Request& request);

/// What `run` takes, and torchrun's line with it.
struct RunArgs {
  Request launch;
  bool dry_run = false;
  bool verbose = false;
  bool show_secrets = false;
  bool preflight = false;
  std::string profile_start;  ///< file; "-" for none, "" where it is not typed
  /// Diagnostics that come before the plan's own.
  std::function<std::vector<Diagnostic>(const Prepared&)> compare = {};
};

void declare_run_options(Parser& parser, RunArgs& args);

int run(const RunArgs& args, Session& session);  ///< the exit status

/// Errors: `usage` where --stage was typed for a command that starts no program of the user.
Status without_stage(const Request& request, const char* command);

std::string plan_document(const Prepared& prepared);  ///< what `plan --json` prints

int print_version(bool json, Session& session);  ///< the exit status

/// An indented label and, from `column` on, the words of `text`.
std::string entry(const std::string& label, std::string_view text, int column, const Style& style);

/// A decision of a plan that is no variable, as `explain` takes it.
struct ChoiceName {
  const char* name;
  const char* what;
};
std::span<const ChoiceName> choice_names();

/// {"id", "severity", "message", "fix"} for each, as every --json has them.
nlohmann::ordered_json json_of(const std::vector<Diagnostic>& diagnostics);

Error stopped(const char* what);  ///< "not started": because of errors, without --force

/// Copies lines of a launcher to session.err.
job::OtherLines other_lines(const Session& session);

/// --svg and --picture.
struct PictureArgs {
  std::string svg;  ///< a file, "-" for stdout, "" not typed
  bool terminal = false;
};
void declare_picture(Parser& parser, PictureArgs& args);
/// `others`: kinds of output beside a picture. Errors: `usage` for more than one kind in all, or a file that cannot
/// be created.
Status check_picture(const PictureArgs& args, int others);
/// Writes the document where --svg says; returns the exit status.
int write_svg(const PictureArgs& args, const std::string& document, Session& session);

// Embedded: packaging/completion and docs/man.
extern const char* const kBash;
extern const char* const kZsh;
extern const char* const kFish;
extern const char* const kManual;

/// In the order of `hpclaunch --help`.
std::span<const Command> commands();

/// All that the program does for the words after its name, such as {"plan", "-n", "2"}: output on stdout and stderr.
/// Returns the exit status. A command that starts a launcher may replace this process instead.
int run_words(const std::vector<std::string>& words);

Runner declare_run(Parser& parser);
Runner declare_torchrun(Parser& parser);
Runner declare_bind(Parser& parser);
Runner declare_script(Parser& parser);
Runner declare_submit(Parser& parser);
Runner declare_plan(Parser& parser);
Runner declare_env(Parser& parser);
Runner declare_explain(Parser& parser);
Runner declare_lint(Parser& parser);
Runner declare_topo(Parser& parser);
Runner declare_profile(Parser& parser);
Runner declare_completion(Parser& parser);
Runner declare_complete(Parser& parser);
Runner declare_launch_local(Parser& parser);
Runner declare_launch_ssh(Parser& parser);
Runner declare_stacks(Parser& parser);
Runner declare_verify(Parser& parser);
Runner declare_doctor(Parser& parser);
Runner declare_report(Parser& parser);
Runner declare_man(Parser& parser);

}  // namespace hpclaunch::cli
