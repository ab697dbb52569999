// The local launcher as a command line: what a dry run prints in place of mpiexec.

#include <fmt/format.h>

#include "cli/command.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  std::optional<int> ranks, first, all;
  OutputOptions output;
  std::string signal;
  std::vector<std::string> words;  // the shim, the program, its arguments
};

// "SIGUSR1@1732212345": signal and UNIX time, as run --dry-run prints them.
Result<TimeLimitSignal> limit_signal(const std::string& text) {
  if (text.empty()) return TimeLimitSignal{};
  const std::size_t at = text.find('@');
  const std::optional<long> when =
      at == std::string::npos ? std::nullopt : parse_natural(text.substr(at + 1), 100'000'000'000);
  for (const SignalName& one : kTimeLimitSignals)
    if (when && time_limit_signal_name(one.number) == text.substr(0, at))
      return TimeLimitSignal{one.number, *when};
  return Error{ErrorKind::usage,
               fmt::format("launch-local: --notice must be SIGNAL@TIME, not \"{}\"", text),
               "use the line that hpclaunch run --dry-run prints"};
}

int launch(const Args& args, Session& session) {
  if (args.words.size() < 2)
    return report(session, Error{ErrorKind::usage, "launch-local: SHIM and PROGRAM are required",
                                 "use the line that hpclaunch run --dry-run prints"});
  Plan plan;
  const auto add_node = [&](int ranks) {  // with those before this one, and behind it, as one each
    plan.placement.layout.push_back({static_cast<int>(plan.placement.classes.size()), 1});
    plan.placement.classes.push_back(
        NodeClass{std::vector<RankPlan>(static_cast<std::size_t>(ranks))});
    plan.hosts.names.push_back(sys::host_name());
  };
  const int ranks = args.ranks.value_or(1), first = args.first.value_or(0);
  if (first > 0) add_node(first);
  if (args.first) plan.hosts.own = plan.nodes();
  add_node(ranks);
  if (const int behind = args.all.value_or(0) - first - ranks; behind > 0) add_node(behind);
  plan.launch.launcher = kLocalLauncher;
  plan.supervision.output = args.output;
  const Result<TimeLimitSignal> signal = limit_signal(args.signal);
  if (!signal) return report(session, signal.error());
  plan.supervision.time_limit_signal = *signal;
  plan.launch.command.assign(args.words.begin() + 1, args.words.end());
  const Result<sys::Ending> ending = sys::run_local(plan, session.env, args.words.front(), {});
  return ending ? ending->status : report(session, ending.error());
}

}  // namespace

Runner declare_launch_local(Parser& parser) {
  auto args = std::make_shared<Args>();
  parser.number("-n,--ranks", args->ranks, "N", 1, 1'000'000, "Number of ranks");
  parser.number("--first-rank", args->first, "N", 0, 1'000'000, "Number of the first one");
  parser.number("--of", args->all, "N", 1, 1'000'000, "Ranks of all nodes together");
  parser.flag("--label", args->output.label, "Prefix output lines with the rank");
  parser.text("--local-ranks-filter", args->output.shown_ranks, "LIST", "Show these ranks only");
  parser.text("--log-dir", args->output.log_dir, "DIR", "Write one log file per rank to DIR");
  parser.seconds("--grace", args->output.grace_seconds, "Seconds between SIGTERM and SIGKILL");
  parser.text("--notice", args->signal, "SIGNAL@TIME",
              "Send SIGNAL to every rank at this UNIX time");
  parser.takes_program(args->words, true);
  return [args](Session& session) { return launch(*args, session); };
}

}  // namespace hpclaunch::cli
