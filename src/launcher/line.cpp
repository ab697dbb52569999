#include "launcher/line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/text.h"

namespace hpclaunch::line {

std::vector<std::string> given_args(const Plan& plan) {
  std::vector<std::string> args = plan.profile_args;
  args.insert(args.end(), plan.launcher_args.begin(), plan.launcher_args.end());
  return args;
}

bool gives(const std::vector<std::string>& args, std::initializer_list<std::string_view> names) {
  const auto meets = [](std::string_view arg, std::string_view name) {
    if (!arg.starts_with(name)) return false;
    const bool is_letter = name.size() == 2;  // its value may follow at once
    return is_letter || arg.size() == name.size() || arg[name.size()] == '=';
  };
  return std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return meets(arg, name); });
  });
}

bool gives_key(const std::vector<std::string>& args, std::string_view letter, std::string_view word,
               std::string_view key) {
  const auto is_key = [&](std::string_view text) {
    return text.starts_with(key) && (text.size() == key.size() || text[key.size()] == '=');
  };
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::string_view arg = args[i];
    if (arg == letter || arg == word) {
      if (i + 1 < args.size() && is_key(args[i + 1])) return true;
    } else if (arg.starts_with(word) && arg.size() > word.size() && arg[word.size()] == '=') {
      if (is_key(arg.substr(word.size() + 1))) return true;
    } else if (arg.starts_with(letter) && is_key(arg.substr(letter.size()))) {
      return true;
    }
  }
  return false;
}

bool gives_word(const std::vector<std::string>& args,
                std::initializer_list<std::string_view> names) {
  return std::any_of(args.begin(), args.end(), [&](std::string_view arg) {
    if (!arg.starts_with('-')) return false;
    arg.remove_prefix(arg.starts_with("--") ? 2 : 1);
    const std::string_view word = arg.substr(0, arg.find('='));
    return std::find(names.begin(), names.end(), word) != names.end();
  });
}

bool launcher_binds(const Plan& plan) {
  if (plan.bind_via != BindVia::launcher || plan.classes.size() != 1) return false;
  const std::vector<RankPlan>& ranks = plan.classes.front().ranks;
  return std::none_of(ranks.begin(), ranks.end(),
                      [](const RankPlan& rank) { return rank.cpus.empty(); });
}

std::string join_sets(const Plan& plan, std::string_view separator,
                      std::string (*text)(const CpuSet&)) {
  std::vector<std::string> sets;
  for (const RankPlan& rank : plan.classes.front().ranks) sets.push_back(text(rank.cpus));
  return fmt::format("{}", fmt::join(sets, separator));
}

Result<std::string> host_list(const Plan& plan, std::string_view hint) {
  std::string hosts = fmt::format("{}", fmt::join(plan.hosts, ","));
  if (hosts.size() <= kMaxArgument) return hosts;
  return Error{ErrorKind::unsupported,
               fmt::format("the list of {} hosts is longer than one argument may be ({} bytes)",
                           plan.nodes(), kMaxArgument),
               std::string(hint)};
}

std::string host_counts(const Plan& plan) {
  std::string list;
  std::size_t host = 0;
  for (const NodeRun& run : plan.layout) {
    const auto ranks = plan.classes[static_cast<std::size_t>(run.node_class)].ranks.size();
    for (int n = 0; n < run.nodes; ++n, ++host)
      list += fmt::format("{}{}:{}", list.empty() ? "" : ",", plan.hosts[host], ranks);
  }
  return list;
}

Result<Argv> hosts_or_file(const Plan& plan, const HostWords& words, const std::string& list) {
  if (list.size() <= kMaxArgument) return Argv{std::string(words.list_option), list};
  const bool even = stretches(plan).size() == 1;
  if (even && !plan.hosts_file.empty())
    return Argv{std::string(words.file_option), plan.hosts_file};
  return Error{
      ErrorKind::unsupported,
      fmt::format("the list of {} hosts is longer than one argument may be ({} bytes){}",
                  plan.nodes(), kMaxArgument,
                  even ? "" : ", and a file of hosts cannot say that their ranks differ"),
      even ? "write the hosts into a file, one on a line, and pass --hostfile FILE"
           : fmt::format("{}, and --hostfile FILE with one host on a line", even_counts(plan))};
}

Status refuse_log_dir(const Plan& plan, std::string_view launcher, std::string_view instead) {
  if (plan.output.log_dir.empty()) return Done{};
  std::string hint = "leave --log-dir out";
  if (!instead.empty()) hint += fmt::format(", or pass {}", instead);
  return Error{ErrorKind::unsupported,
               fmt::format("{} cannot write a log file per rank and keep the output", launcher),
               std::move(hint)};
}

std::vector<Stretch> stretches(const Plan& plan) {
  std::vector<Stretch> result;
  for (const NodeRun& run : plan.layout) {
    const auto& node_class = plan.classes[static_cast<std::size_t>(run.node_class)];
    const int ranks = static_cast<int>(node_class.ranks.size());
    if (!result.empty() && result.back().ranks == ranks)
      result.back().nodes += run.nodes;
    else
      result.push_back({run.nodes, ranks});
  }
  return result;
}

std::string in_words(const std::vector<Stretch>& layout) {
  std::string text;
  for (const Stretch& part : layout) {
    const std::string nodes =
        part.nodes == 1 ? "1 node" : fmt::format("each of {} nodes", part.nodes);
    text += text.empty() ? fmt::format("{} on {}", counted(part.ranks, "rank"), nodes)
                         : fmt::format(", then {} on {}", part.ranks, nodes);
  }
  return text;
}

std::string even_counts(const Plan& plan) {
  const int nodes = plan.nodes();
  const int low = plan.world_size() / nodes;
  return fmt::format("-n {} or -n {} ({} or {} ranks on each of {} nodes)", nodes * low,
                     nodes * (low + 1), low, low + 1, nodes);
}

namespace {

// Ranks counted out node by node in turn, where a node whose grant is full is passed over.
bool counted_out(const Plan& plan) {
  std::vector<std::pair<int, int>> nodes;  // granted threads, ranks
  for (const NodeRun& run : plan.layout) {
    const NodeClass& one = plan.classes[static_cast<std::size_t>(run.node_class)];
    nodes.insert(nodes.end(), static_cast<std::size_t>(run.nodes),
                 {one.granted, static_cast<int>(one.ranks.size())});
  }
  int most = 0;
  for (const auto& [granted, ranks] : nodes) {
    if (granted == 0 || ranks > granted) return false;
    most = std::max(most, ranks);
  }
  bool last_round_over = false;  // after the last rank nobody gets one of that round
  for (const auto& [granted, ranks] : nodes) {
    const bool full = ranks == granted;
    if (ranks < most - 1 && !full) return false;
    if (last_round_over && ranks == most) return false;
    if (ranks == most - 1 && !full) last_round_over = true;
  }
  return true;
}

}  // namespace

Status check_filled(const Plan& plan, std::string_view launcher, std::string_view instead) {
  const std::vector<Stretch> layout = stretches(plan);
  const bool even = layout.size() == 1;
  const bool rest_at_the_end =
      layout.size() == 2 && layout[1].nodes == 1 && layout[1].ranks < layout[0].ranks;
  if (even || rest_at_the_end) return Done{};
  return Error{
      ErrorKind::unsupported,
      fmt::format("{} fills node after node, it cannot start {}", launcher, in_words(layout)),
      fmt::format("{}; or {}", even_counts(plan), instead)};
}

Status check_spread(const Plan& plan, std::string_view launcher) {
  const std::vector<Stretch> layout = stretches(plan);
  const int more = plan.world_size() % plan.nodes();  // so many nodes have one rank more
  const bool even = layout.size() == 1;
  const bool spread =
      layout.size() == 2 && layout[0].nodes == more && layout[0].ranks == layout[1].ranks + 1;
  if (even || spread || counted_out(plan)) return Done{};
  const bool granted = std::any_of(plan.classes.begin(), plan.classes.end(),
                                   [](const NodeClass& one) { return one.granted > 0; });
  return Error{
      ErrorKind::unsupported,
      fmt::format("{} spreads ranks evenly, it cannot start {}", launcher, in_words(layout)),
      granted ? "ask for the same number of ranks on each node: --ppn N"
              : fmt::format("{}; or leave the ranks per node to it", even_counts(plan))};
}

namespace {

// Names as people order them: digits by their number, all else by its letters.
bool comes_before(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto take_number = [&](std::string_view& text) {
    std::size_t end = 0;
    while (end < text.size() && is_digit(text[end])) ++end;
    std::string_view number = text.substr(0, end);
    text.remove_prefix(end);
    number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
    return number;
  };
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_number(a);
      const std::string_view y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else if (a.front() != b.front()) {
      return a.front() < b.front();
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() && !b.empty();
}

}  // namespace

Status check_order_of_srun(const Plan& plan, std::string_view who, std::string_view instead) {
  for (std::size_t i = 1; i < plan.hosts.size(); ++i)
    if (comes_before(plan.hosts[i], plan.hosts[i - 1]))
      return Error{ErrorKind::unsupported,
                   fmt::format("{} orders nodes by name, it would put {} before {}", who,
                               plan.hosts[i], plan.hosts[i - 1]),
                   std::string(instead)};
  return Done{};
}

Result<Argv> finish(Argv argv, const Plan& plan, const std::string& separator,
                    const std::string& shim) {
  const bool begins_another =
      plan.launcher != "flux" &&
      std::find(plan.command.begin(), plan.command.end(), ":") != plan.command.end();
  if (begins_another)
    return Error{ErrorKind::unsupported,
                 "the program has an argument \":\", where the launcher takes what follows for "
                 "another program",
                 "write the command into a script and start that"};
  const auto address = std::find_if(plan.hosts.begin(), plan.hosts.end(), [](const auto& host) {
    return host.find(':') != std::string::npos;
  });
  if (address != plan.hosts.end())
    return Error{
        ErrorKind::unsupported,
        fmt::format(
            "{} takes what follows a \":\" for a count, and the host {} is an address of IPv6",
            plan.launcher, *address),
        "write host names or addresses of IPv4 into the host file"};
  const std::vector<std::string> given = given_args(plan);
  argv.insert(argv.end(), given.begin(), given.end());
  if (!separator.empty()) argv.push_back(separator);
  argv.push_back(shim);
  argv.insert(argv.end(), plan.command.begin(), plan.command.end());
  return argv;
}

}  // namespace hpclaunch::line
