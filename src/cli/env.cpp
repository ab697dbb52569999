#include <fmt/format.h>

#include "cli/command.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  Request launch;
  std::string format = "sh";
  bool verbose = false;
  bool show_secrets = false;
};

// The text may go to a file: a secret that the caller exports is left out, another one is refused.
Status keep_secrets(std::vector<EnvChange>& changes, const EnvSnapshot& exported) {
  for (EnvChange& change : changes) {
    if (change.prints == EnvChange::Prints::value) continue;
    if (!exported.has(change.name) || exported.get(change.name) != *change.value)
      return Error{ErrorKind::unsupported,
                   fmt::format("the value of {} is secret and is not printed", change.name),
                   fmt::format("export {} and omit its --set, or --show-secrets", change.name)};
    change.prints = EnvChange::Prints::inherited;
  }
  return Done{};
}

int env(const Args& args, Session& session) {
  if (const Status good = without_stage(args.launch, "env"); !good)
    return report(session, good.error());
  const Result<Prepared> prepared =
      job::prepare(args.launch, job::this_world(session.env), Purpose::show);
  if (!prepared) return report(session, prepared.error());
  report(session, prepared->diagnostics);
  if (any_from(Severity::error, prepared->diagnostics) && !args.launch.force)
    return report(session, stopped("no environment printed"));
  const EnvFormat format = *env_format_from(args.format);
  Result<job::ShellChanges> made =
      job::shell_changes(*prepared, {false, args.show_secrets, format});
  if (!made) return report(session, made.error());
  if (!prepared->activation.empty() && args.format != "sh")
    return report(session,
                  Error{ErrorKind::unsupported,
                        "--module, --conda and --venv are lines of a POSIX shell", "--format sh"});
  if (const Status kept = keep_secrets(made->changes, session.env); !kept)
    return report(session, kept.error());
  const Result<std::string> text = render_env(format, made->changes, args.verbose);
  if (!text) return report(session, text.error());
  std::string notes;
  for (const std::string& note : job::late_notes(*prepared))
    if (format == EnvFormat::sh)
      notes += "# " + render::printable(note) + "\n";
    else
      report(session, {{"later-job", Severity::note, note, ""}});
  return print_all(session, notes + made->preamble + *text);
}

}  // namespace

Runner declare_env(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.group("Output");
  parser.choice("--format", args->format, "FORMAT", {"sh", "csh", "fish", "dotenv", "json", "lmod"},
                "Output format");
  parser.flag("-v,--verbose", args->verbose, "Add the reason of each variable as a comment");
  parser.group("Output", false, true);
  parser.flag("--show-secrets", args->show_secrets,
              "Print the values of tokens, keys and passwords");
  declare_later_job(parser, args->launch);
  parser.flag("--force", args->launch.force, "Print in spite of errors");
  parser.takes_program(args->launch.command);
  parser.footer(
      "hpclaunch-shim sets the variables that differ by rank, from HPCLAUNCH_PLAN.\n"
      "Exit status: 0 printed, 2 no plan, an error, or a value not expressible.");
  return [args](Session& session) { return env(*args, session); };
}

}  // namespace hpclaunch::cli
