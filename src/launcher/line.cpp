#include "launcher/line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "hpclaunch/programs.h"
#include "hpclaunch/text.h"

namespace hpclaunch::launcher {

namespace {

Error unsupported(std::string message, std::string hint) {
  return {ErrorKind::unsupported, std::move(message), std::move(hint)};
}

std::size_t ranks_of(const Plan& plan, const NodeRun& run) {
  return plan.placement.classes[run.node_class].ranks.size();
}

// Round robin over the nodes, without those whose granted CPUs are used up.
bool is_round_robin(const Plan& plan) {
  std::vector<std::pair<int, int>> nodes;  // granted threads, ranks
  int most = 0;
  for (const NodeRun& run : plan.placement.layout) {
    const int granted = plan.placement.classes[run.node_class].granted;
    const int ranks = static_cast<int>(ranks_of(plan, run));
    if (granted == 0 || ranks > granted) return false;
    nodes.insert(nodes.end(), static_cast<std::size_t>(run.nodes), {granted, ranks});
    most = std::max(most, ranks);
  }
  bool last_round_over = false;  // no node after this one gets a rank of that round
  for (const auto& [granted, ranks] : nodes) {
    const bool full = ranks == granted;
    if (ranks < most - 1 && !full) return false;
    if (last_round_over && ranks == most) return false;
    if (ranks == most - 1 && !full) last_round_over = true;
  }
  return true;
}

// For natural order, in which digits count as a number: each number with its length in front.
std::string sort_key(std::string_view name) {
  std::string key;
  while (!name.empty()) {
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    std::string_view part = name.substr(0, std::max<std::size_t>(digits, 1));
    name.remove_prefix(part.size());
    part.remove_prefix(std::min(part.find_first_not_of('0'), digits));
    if (digits > 0) key += {'0', static_cast<char>(part.size())};
    key += part;
  }
  return key;
}

}  // namespace

Line::Line(const Plan& plan, Argv start, std::string_view grammar)
    : plan_(plan),
      argv_(std::move(start)),
      grammars_(grammars_of(grammar)),
      given_(plan.launch.profile_args) {
  given_.insert(given_.end(), plan.launch.launcher_args.begin(), plan.launch.launcher_args.end());
  options_ = read_options(grammars_, given_, 0, Strays::skip).options;
}

bool Line::given(Names names, std::string_view key) const {
  return std::ranges::any_of(options_, [&](const GivenOption& one) {
    return std::ranges::any_of(names, [&](auto name) { return has_name(grammars_, one, name); }) &&
           (key.empty() || has_key(one.value, key));
  });
}

void Line::add(Argv words, Names unless) {
  if (!given(unless)) add(std::move(words));
}

void Line::require(const Status& status) {
  if (status_) status_ = status;
}

void Line::add_hosts(const HostOption& option, const std::string& list) {
  const bool fits = list.size() <= kMaxArgument;
  const bool joined = option.list.ends_with('=') || option.list.ends_with(':');
  if (fits && joined) return add({std::string(option.list) + list});
  if (fits) return add({std::string(option.list), list});
  const bool names_suffice = !option.with_counts || stretches(plan_).size() == 1;
  if (names_suffice && !option.file.empty() && !plan_.hosts.file.empty())
    return add({std::string(option.file), plan_.hosts.file});
  require(unsupported(
      fmt::format("the list of {} hosts is longer than one argument can be ({} bytes){}",
                  plan_.nodes(), kMaxArgument,
                  names_suffice ? "" : ", and a file of hosts has no numbers of ranks"),
      !option.hint.empty() ? std::string(option.hint)
      : names_suffice
          ? "write the hosts to a file, one per line, and pass --hostfile FILE"
          : fmt::format("{}, and --hostfile FILE with one host per line", even_counts(plan_))));
}

void Line::add_variables() {
  for (const std::string& name : plan_.environment.forward)
    if (name != "HPCLAUNCH_CHANNEL" || plan_.supervision.supervise) add({"-x", name});
}

void Line::split_given(Names names) {
  for (auto one = options_.rbegin(); one != options_.rend(); ++one) {
    const bool joined = one->has_value && one->value_word == one->first;
    if (!joined || !one->name.starts_with("--") ||
        std::ranges::none_of(names, [&](auto name) { return has_name(grammars_, *one, name); }))
      continue;
    const auto at = given_.begin() + static_cast<std::ptrdiff_t>(one->first);
    *at = one->name;
    given_.insert(at + 1, one->value);
  }
}

Result<Argv> Line::finish(const std::string& shim, std::string_view separator) {
  for (const std::string& host : plan_.hosts.names.samples())
    if (host.find(':') != std::string::npos)
      require(unsupported(
          fmt::format(
              "the host {} is an IPv6 address, and {} reads what follows a \":\" as a count", host,
              plan_.launch.launcher),
          "write host names or IPv4 addresses to the host file"));
  if (!status_) return status_.error();
  add(given_);
  if (!separator.empty()) add({std::string(separator)});
  add({shim});
  add(plan_.launch.command);
  return std::move(argv_);
}

std::vector<Conflicting> one_by_one(const std::vector<Conflicting>& rows) {
  std::vector<Conflicting> all;
  for (const Conflicting& row : rows)
    for (const std::string_view name : split(row.name, ' ')) {
      all.push_back(row);
      all.back().name = name;
    }
  return all;
}

bool launcher_binds(const Plan& plan) {
  const std::vector<NodeClass>& classes = plan.placement.classes;
  return plan.placement.bind_via == BindVia::launcher && classes.size() == 1 &&
         std::ranges::none_of(classes.front().ranks, &CpuSet::empty, &RankPlan::cpus);
}

std::string join_sets(const Plan& plan, std::string_view separator,
                      std::string (*text)(const CpuSet&)) {
  std::vector<std::string> sets;
  for (const RankPlan& rank : plan.placement.classes.front().ranks) sets.push_back(text(rank.cpus));
  return fmt::format("{}", fmt::join(sets, separator));
}

std::string cpu_list(const CpuSet& cpus) { return cpus.to_list(); }

std::string host_list(const Plan& plan) {
  return fmt::format("{}", fmt::join(plan.hosts.names, ","));
}

std::string host_texts(const Plan& plan, const HostText& text) {
  std::vector<std::string> words;
  for (const NodeRun& run : plan.placement.layout)
    for (int n = 0; n < run.nodes; ++n)
      words.push_back(text(plan.hosts.names[words.size()], ranks_of(plan, run)));
  return fmt::format("{}", fmt::join(words, ","));
}

std::string host_counts(const Plan& plan) {
  return host_texts(plan, [](std::string_view host, std::size_t ranks) {
    return fmt::format("{}:{}", host, ranks);
  });
}

std::string host_of_ranks(const Plan& plan) {
  return host_texts(plan, [](std::string_view host, std::size_t ranks) {
    return fmt::format("{}", fmt::join(std::vector(ranks, host), ","));
  });
}

std::vector<Stretch> stretches(const Plan& plan) {
  std::vector<Stretch> result;
  for (const NodeRun& run : plan.placement.layout) {
    const int ranks = static_cast<int>(ranks_of(plan, run));
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

Status check_filled(const Plan& plan, std::string_view program, std::string_view instead) {
  const std::vector<Stretch> layout = stretches(plan);
  const bool even = layout.size() == 1;
  const bool rest_at_the_end =
      layout.size() == 2 && layout[1].nodes == 1 && layout[1].ranks < layout[0].ranks;
  if (even || rest_at_the_end) return Done{};
  return unsupported(
      fmt::format("{} fills node after node and cannot start {}", program, in_words(layout)),
      fmt::format("{}; or {}", even_counts(plan), instead));
}

bool is_even(const Plan& plan) {
  const std::vector<Stretch> layout = stretches(plan);
  const int more = plan.world_size() % plan.nodes();  // so many nodes have one rank more
  return layout.size() == 1 ||
         (layout.size() == 2 && layout[0].nodes == more && layout[0].ranks == layout[1].ranks + 1);
}

std::vector<int> places_of(const Plan& plan) {
  const HostNames& hosts = plan.hosts.names;
  const std::vector<int>& own = plan.hosts.places;
  if (own.empty() && (plan.hosts.whole_allocation || plan.hosts.invented)) return {};
  std::vector<std::string> keys;
  if (own.empty())
    for (const std::string& host : hosts) keys.push_back(sort_key(host));
  std::vector<int> order(hosts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) {
    const auto at = static_cast<std::size_t>(a);
    const auto other = static_cast<std::size_t>(b);
    return own.empty() ? keys[at] < keys[other] : own[at] < own[other];
  });
  if (std::ranges::is_sorted(order)) return {};
  std::vector<int> places(order.size());
  for (int place = 0; const int host : order) places[static_cast<std::size_t>(host)] = place++;
  return places;
}

Status check_even(const Plan& plan, std::string_view program) {
  const std::vector<Stretch> layout = stretches(plan);
  if (is_even(plan) || is_round_robin(plan)) return Done{};
  const bool granted = std::ranges::any_of(plan.placement.classes,
                                           [](const NodeClass& one) { return one.granted > 0; });
  return unsupported(
      fmt::format("{} distributes ranks evenly and cannot start {}", program, in_words(layout)),
      granted ? "use the same number of ranks on each node: --ppn N"
              : fmt::format("{}; or omit the ranks per node", even_counts(plan)));
}

Status check_order_of_srun(const Plan& plan, std::string_view who, std::string_view instead) {
  const HostNames& hosts = plan.hosts.names;
  std::size_t at = 1;
  while (at < hosts.size() && sort_key(hosts[at - 1]) <= sort_key(hosts[at])) ++at;
  if (at >= hosts.size()) return Done{};
  return unsupported(fmt::format("{} orders nodes by name and would put {} before {}", who,
                                 hosts[at], hosts[at - 1]),
                     std::string(instead));
}

}  // namespace hpclaunch::launcher
