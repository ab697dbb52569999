#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "cli/command.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr auto kReport = ExitRules::report;
constexpr auto kLaunch = ExitRules::launch;
constexpr const char* kRequired = "[OPTIONS] [--] PROGRAM|-m MODULE [ARG...]";
constexpr const char* kProgram = "[OPTIONS] [--] [PROGRAM|-m MODULE [ARG...]]";

constexpr std::array kCommands = {
    Command{"run", "start a program on every rank", kRequired, kLaunch, false, declare_run},
    Command{"torchrun", "take torchrun's command line", "[OPTIONS] SCRIPT [ARG...]", kLaunch, false,
            declare_torchrun},
    Command{"bind", "give one rank, started by another launcher, its place", kRequired, kLaunch,
            false, declare_bind},
    Command{"script", "print a batch script that runs a program", kRequired, kReport, false,
            declare_script},
    Command{"submit", "hand that script to the batch system", kRequired, kLaunch, false,
            declare_submit},
    Command{"plan", "show which rank gets which CPUs and variables", kProgram, kReport, false,
            declare_plan},
    Command{"env", "print the environment for a batch script", kProgram, kReport, false,
            declare_env},
    Command{"explain", "show why a variable or choice has its value", "[OPTIONS] [NAME...]",
            kReport, false, declare_explain},
    Command{"verify", "start the ranks and compare them with the plan", kProgram, kReport, false,
            declare_verify},
    Command{"doctor", "examine this machine and environment before a job", kProgram, kReport, false,
            declare_doctor},
    Command{"stacks", "show what the ranks of a running job do, and who hangs", "[OPTIONS] [JOB]",
            kReport, false, declare_stacks},
    Command{"lint", "find mistakes in batch scripts and environments", "[OPTIONS] FILE...", kReport,
            false, declare_lint},
    Command{"topo", "show the topology of this node", "[OPTIONS]", kReport, false, declare_topo},
    Command{"profile", "list, show, validate, test and create site profiles",
            "ACTION [OPTIONS] [NAME|FILE...]", kReport, false, declare_profile},
    Command{"report", "show how a job went", "[OPTIONS] [FILE|JOB]", kReport, false,
            declare_report},
    Command{"completion", "print shell completions", "bash|zsh|fish", kReport, false,
            declare_completion},
    Command{"launch-local", "start ranks on this machine", "[OPTIONS] -- SHIM PROGRAM [ARG...]",
            kLaunch, true, declare_launch_local},
    Command{"launch-ssh", "start ranks on other machines",
            "[OPTIONS] -- ssh [OPTION]... -- SHIM PROGRAM [ARG...]", kLaunch, true,
            declare_launch_ssh},
    Command{"man", "print the manual page", "", kReport, true, declare_man},
    Command{"complete", "print what a word can become", "-- WORD...", kReport, true,
            declare_complete},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

namespace {

std::string overview() {
  std::string text =
      "hpclaunch: start distributed PyTorch jobs with the right binding and environment\n\n"
      "Usage: hpclaunch COMMAND [OPTIONS]\n\nCommands:\n";
  for (const Command& command : commands())
    if (!command.hidden) text += fmt::format("  {:<11} {}\n", command.name, command.summary);
  text +=
      "\nOptions:\n  -h, --help     Show this help; hpclaunch COMMAND -h for a command\n"
      "  -V, --version  Show the version; with --json also build, oldest glibc and "
      "libraries\n\nExample: hpclaunch run -n 2 -- python3 train.py\n";
  return text;
}

// Of a terminal: COLUMNS where it is set, else what the terminal says.
std::optional<int> columns_of(const EnvSnapshot& env, int fd) {
  constexpr int kNarrowest = 40;
  constexpr int kMost = 10'000;
  if (isatty(fd) == 0) return std::nullopt;
  winsize size{};
  int columns = ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  if (const auto typed = parse_natural(env.get("COLUMNS"), kMost); typed && *typed > 0)
    columns = static_cast<int>(*typed);
  return columns == 0 ? Style{}.width : std::max(columns, kNarrowest);
}

// Unicode and colour need a terminal; files and pipes get plain bytes, the same everywhere.
Style style_of(const EnvSnapshot& env, std::optional<int> columns) {
  Style style;
  if (!columns) return style;
  const auto has = [](std::string_view text, std::initializer_list<std::string_view> parts) {
    return std::ranges::any_of(
        parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
  };
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (locale.empty()) locale = env.get(name);
  style.unicode = has(locale, {"UTF-8", "utf8"});
  const std::string term = env.get("TERM", "dumb");
  style.color = env.get("NO_COLOR").empty() && term != "dumb";
  style.rich = style.color && (has(term, {"256color", "direct", "kitty", "truecolor"}) ||
                               has(env.get("COLORTERM"), {"truecolor", "24bit"}));
  style.width = *columns;
  return style;
}

Error unknown_command(const std::string& word) {
  std::vector<std::string> known;
  for (const Command& command : commands())
    if (!command.hidden) known.emplace_back(command.name);
  std::string hint = "hpclaunch --help";
  if (const auto near = nearest(word, known)) hint = "hpclaunch " + *near;
  return Error{ErrorKind::usage, fmt::format("unknown command \"{}\"", word), hint};
}

int run_command(const Command& command, std::vector<std::string> words, Session& session) {
  session.exit_rules = command.exit_rules;
  Parser parser(command);
  const Runner runner = command.declare(parser);
  const Result<std::string> help = parser.parse(std::move(words));
  if (!help) return report(session, help.error());
  if (!help->empty())
    return print_all(session, help_text(parser.tree(), *help == "-h", session.style));
  return runner(session);
}

}  // namespace

int run_words(const std::vector<std::string>& words) {
  Session session;
  session.env = sys::environment();
  session.words = words;
  session.columns = columns_of(session.env, STDOUT_FILENO);
  session.err_columns = columns_of(session.env, STDERR_FILENO);
  session.style = style_of(session.env, session.columns);
  if (words.empty()) {
    std::fputs(overview().c_str(), stderr);
    return job::exit_status(ErrorKind::usage, ExitRules::report);
  }
  const std::string& first = words.front();
  if (first == "help" && words.size() == 2) return run_words({words[1], "--help"});
  if (first == "-h" || first == "--help" || first == "help") return print_all(session, overview());
  if (first == "-V" || first == "--version")
    return print_version(words.size() == 2 && words[1] == "--json", session);
  for (const Command& command : commands())
    if (first == command.name)
      return run_command(command, {words.begin() + 1, words.end()}, session);
  if (first.starts_with('-'))
    return report(session,
                  Error{ErrorKind::usage, fmt::format("unknown option {} before a command", first),
                        "hpclaunch --help"});
  return report(session, unknown_command(first));
}

}  // namespace hpclaunch::cli
