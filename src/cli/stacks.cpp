// hpclaunch stacks: what the ranks of a running job do.
#include "hpclaunch/stacks.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "hpclaunch/running.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  std::vector<std::string> jobs;
  std::optional<int> rank;
  bool all_threads = false;
  bool json = false;
};

// The same question on the first node of the job.
int ask_there(const Args& args, const Error& error, Session& session) {
  const std::string& job = args.jobs.front();
  std::vector<std::string> words = {"stacks"};
  if (args.rank) words.insert(words.end(), {"--rank", fmt::format("{}", *args.rank)});
  if (args.all_threads) words.emplace_back("--all-threads");
  if (args.json) words.emplace_back("--json");
  words.push_back(job);
  const std::vector<std::string> line = job::elsewhere(session.env, job, words);
  if (line.empty()) return report(session, error);
  constexpr double kLimit = 60;
  const Result<sys::Captured> done = sys::capture(line, kLimit, &session.env);
  if (!done) return report(session, done.error());
  fmt::print(session.err, "{}", done->err);
  const int status = print_all(session, done->out);
  return status != 0 ? status : done->status;
}

int stacks(const Args& args, Session& session) {
  if (args.jobs.size() > 1)
    return report(session, Error{ErrorKind::usage, "stacks takes one job at a time",
                                 "hpclaunch stacks " + args.jobs.front()});
  const std::string which = args.jobs.empty() ? "" : args.jobs.front();
  const Result<job::Look> look = job::look_at(which, args.all_threads);
  if (!look && !which.empty() && look.error().kind == ErrorKind::not_found)
    return ask_there(args, look.error(), session);
  if (!look) return report(session, look.error());
  const int ranks = static_cast<int>(look->now.ranks.size());
  if (args.rank && *args.rank >= ranks)
    return report(session, Error{ErrorKind::usage,
                                 fmt::format("the launch has no rank {}: it has {}", *args.rank,
                                             counted(look->launch.ranks, "rank")),
                                 fmt::format("--rank {}", ranks - 1)});
  const stacks::Verdict verdict =
      stacks::judge(look->before, look->now, look->sequences, look->sequences_before);
  if (args.json) return print_all(session, stacks::to_json(look->now, &verdict));
  stacks::TreeOptions options;
  options.width = session.style.width;
  options.all_threads = args.all_threads;
  options.rank = args.rank.value_or(-1);
  std::string text = fmt::format("{}, {}, process {}\n\n", look->launch.program,
                                 counted(look->launch.ranks, "rank"), look->launch.pid);
  text += stacks::tree_text(look->now, options);
  const std::string said = args.rank ? std::string() : stacks::text(verdict, session.style.width);
  if (!said.empty()) text += "\n" + said;
  return print_all(session, text);
}

}  // namespace

Runner declare_stacks(Parser& parser) {
  auto args = std::make_shared<Args>();
  constexpr int kMostRanks = 100'000'000;
  parser.group("What is shown");
  parser.number("--rank", args->rank, "N", 0, kMostRanks, "Only this rank");
  parser.flag("--all-threads", args->all_threads, "All threads and processes, not the main ones");
  parser.flag("--json", args->json, "Print the stacks and the verdict as JSON");
  parser.words(args->jobs, "JOB", "Job id, or process ID of hpclaunch; default: what runs here");
  parser.footer(
      "Example: hpclaunch stacks 4711\n"
      "Exit status: 0 shown, 2 no such launch.");
  return [args](Session& session) { return stacks(*args, session); };
}

}  // namespace hpclaunch::cli
