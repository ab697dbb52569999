// The plan against what the ranks report: differences collected, sorted, condensed, and where they are.
#include "compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

// srun describes each step with the variables that preset its options.
bool is_for_launcher(const Setting& setting) {
  return std::holds_alternative<Unset>(setting.value()) &&
         setting.history.back().layer == Layer::computed && !is_placement_variable(setting.name);
}

namespace check {

namespace {

constexpr const char* kSearched[] = {"CONDA_PREFIX", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH",
                                     "VIRTUAL_ENV"};

void sort_once(std::vector<int>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

Job job_of(const Plan& plan, const Topology& node, const Observed& seen) {
  Job job{plan, node, seen};
  for (const std::string& host : plan.hosts.names) job.hosts.insert(short_host(host));
  job.facts_of.resize(plan.hosts.names.size());
  for (const RankSeen& one : seen.reports) {
    if (!one.found->facts || static_cast<std::size_t>(one.rank) >= job.seats.size()) continue;
    const int index = job.seats[one.rank].node;
    const NodeFacts* const facts = &*one.found->facts;
    const NodeFacts*& first = job.facts_of[index];
    if (first == nullptr) first = facts;
    job.facts[one.host] = facts;
  }
  return job;
}

}  // namespace

Difference different(std::string kind, std::string planned, std::string found, std::string cause,
                     std::string fix, Severity severity) {
  return {{std::move(kind), severity, std::move(cause), std::move(fix)},
          std::move(planned),
          std::move(found)};
}

void Differences::add(const Difference& one, int node, int rank) {
  Key key{one.what.id, one.what.severity, one.planned, one.found, one.what.message, one.what.fix};
  Difference& same = found_.try_emplace(std::move(key), one).first->second;
  if (rank >= 0) same.ranks.push_back(rank);
  same.nodes.push_back(node);
  ++added_;
}

std::vector<Difference> Differences::finish() && {
  std::vector<Difference> all;
  all.reserve(found_.size());
  for (auto& [key, difference] : found_) {
    sort_once(difference.ranks);
    sort_once(difference.nodes);
    all.push_back(std::move(difference));
  }
  const auto first = [](const std::vector<int>& numbers) {
    return numbers.empty() ? -1 : numbers.front();
  };
  std::ranges::stable_sort(all, {}, [&](const Difference& one) {
    return std::tuple(std::string_view(one.what.id), first(one.nodes), first(one.ranks));
  });
  return all;
}

bool is_search_path(std::string_view name) { return std::ranges::count(kSearched, name) > 0; }

const std::string* Subject::value(const std::string& name) const {
  const auto at = report.values.find(name);
  return at == report.values.end() ? nullptr : &at->second;
}

}  // namespace check

namespace {

using check::Differences;
using check::different;

// Why a rank or node did not report, as far as the launcher's exit shows.
Difference missing_report(const Observed& seen) {
  std::string cause = "the launcher started fewer ranks than requested";
  std::string fix =
      "compare the launcher's arguments (hpclaunch run --dry-run) with the job's size";
  if (seen.too_late) {
    cause = fmt::format("they did not start within {} seconds", seen.limit_seconds);
    fix = "read the messages above, or allow more time with --timeout";
  } else if (seen.launcher_status != 0) {
    cause = fmt::format(
        "they failed, or were stopped with one that failed: the launcher exited with status {}",
        seen.launcher_status);
    fix = "the first message above says what failed";
  } else if (seen.garbled > 0) {
    cause = fmt::format("{} could not be read: mixed with other output",
                        counted(seen.garbled, "report"));
    fix = "keep the launcher from writing to standard output, or try again";
  }
  return different(seen.one_per_node ? "node-silent" : "rank-silent", "a report", "none",
                   std::move(cause), std::move(fix));
}

// Ranks without a report, and with several; `times`: the reports of each rank. True when all have one.
bool compare_counts(const check::Job& job, const std::vector<int>& times, Differences& out) {
  bool all_here = true;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const int own = job.plan.hosts.own;
    if (own >= 0 && job.seats[i].node != own) continue;
    const int rank = job.seen.one_per_node ? -1 : static_cast<int>(i);
    if (times[i] > 1 && rank >= 0)
      out.add(different("rank-twice", "one process", fmt::format("{} processes", times[i]),
                        "several processes have this rank: the launcher does not belong to the "
                        "job's batch system",
                        "choose another launcher with --launcher NAME"),
              job.seats[i].node, rank);
    if (times[i] > 0) continue;
    all_here = false;
    out.add(missing_report(job.seen), job.seats[i].node, rank);
  }
  return all_here;
}

std::string host_names(const Plan& plan, const std::vector<int>& nodes) {
  constexpr std::size_t kMost = 8;
  if (nodes.size() == plan.hosts.names.size() && nodes.size() > 2)
    return fmt::format("all {} nodes", with_separators(static_cast<long>(nodes.size())));
  std::string text;
  for (std::size_t i = 0; i < nodes.size() && i < kMost; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", plan.hosts.names[nodes[i]]);
  if (nodes.size() > kMost)
    text += fmt::format(", ... ({} nodes)", with_separators(static_cast<long>(nodes.size())));
  return text;
}

struct Cover {
  std::set<int> locals;
  bool whole_nodes = true;  // every rank of each of the nodes
};

Cover cover_of(const std::vector<RankPlace>& seats, const Difference& difference) {
  Cover cover;
  long needed = 0;
  int node = -1;
  for (const int rank : difference.ranks) {
    const RankPlace& seat = seats[rank];
    cover.locals.insert(seat.local);
    if (seat.node != node) needed += seat.local_size;
    node = seat.node;
  }
  cover.whole_nodes = needed == static_cast<long>(difference.ranks.size());
  return cover;
}

}  // namespace

std::vector<RankPlace> rank_places(const Plan& plan, bool one_per_node) {
  std::vector<RankPlace> places;
  places.reserve(static_cast<std::size_t>(plan.world_size()));
  int node = 0;
  for (const NodeRun& run : plan.placement.layout) {
    const auto& ranks = plan.placement.classes[run.node_class].ranks;
    const int size = one_per_node ? 1 : static_cast<int>(ranks.size());
    for (int n = 0; n < run.nodes; ++n, ++node)
      for (int local = 0; local < size; ++local)
        places.push_back({static_cast<int>(places.size()), node, run.node_class, local, size});
  }
  return places;
}

std::string where_text(const Plan& plan, const Difference& difference) {
  const std::vector<int>& ranks = difference.ranks;
  if (ranks.empty())
    return difference.nodes.empty() ? "the launcher" : host_names(plan, difference.nodes);
  const std::string on = " on " + host_names(plan, difference.nodes);
  constexpr int kMostPieces = 6;
  std::string which = (ranks.size() == 1 ? "rank " : "ranks ") + ranges(ranks, kMostPieces) + on;
  if (static_cast<int>(ranks.size()) == plan.world_size() && ranks.size() > 1)
    return fmt::format("all {} ranks", with_separators(static_cast<long>(ranks.size())));
  if (difference.nodes.size() == 1) return which;
  const Cover cover = cover_of(rank_places(plan), difference);
  if (cover.whole_nodes) return "all ranks" + on;
  if (cover.locals.size() == 1) return fmt::format("local rank {}{}", *cover.locals.begin(), on);
  return which;
}

std::vector<Difference> condense(const std::vector<Difference>& differences, std::size_t most) {
  std::vector<Difference> out;
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (auto first = differences.begin(); first != differences.end();) {
    const auto end = std::find_if(first, differences.end(),
                                  [&](const auto& one) { return one.what.id != first->what.id; });
    if (static_cast<std::size_t>(end - first) <= most) {
      out.insert(out.end(), first, end);
      first = end;
      continue;
    }
    Difference& one = out.emplace_back(*first);
    std::set<std::string> planned;
    std::set<std::string> found;
    for (; first != end; ++first) {
      planned.insert(first->planned);
      found.insert(first->found);
      append(one.ranks, first->ranks);
      append(one.nodes, first->nodes);
    }
    check::sort_once(one.ranks);
    check::sort_once(one.nodes);
    const auto count_others = [](std::string& text, std::size_t values) {
      if (values > 1) text += fmt::format(" (and {} others)", values - 1);
    };
    count_others(one.planned, planned.size());
    count_others(one.found, found.size());
  }
  return out;
}

std::vector<std::string> names_to_report(const Plan& plan, const EnvSnapshot& env) {
  std::vector<std::string> names;
  for (const Setting& setting : plan.environment.settings)
    if (is_identifier(setting.name) &&
        std::ranges::count(plan.environment.launcher_only, setting.name) == 0)
      names.push_back(setting.name);
  for (const char* name : check::kSearched)
    if (plan.find_env(name) == nullptr && env.has(name)) names.emplace_back(name);
  return names;
}

bool program_failed(const Observed& seen) {
  return std::ranges::any_of(seen.reports, [](const RankSeen& one) {
    const std::optional<Examined>& after = one.found->after;
    return after && after->ran >= 0 && after->exit != 0;
  });
}

bool Comparison::as_planned() const {
  return std::ranges::all_of(
      differences, [](const Difference& one) { return one.what.severity == Severity::note; });
}

Comparison compare(const Plan& plan, const Topology& node, const Observed& seen) {
  const check::Job job = check::job_of(plan, node, seen);
  Differences out;
  std::vector<int> times(job.seats.size());
  // Reports without a difference, in a place of a node: equal ones there have none on other nodes.
  std::set<std::tuple<int, int, const RankReport*>> passed;
  for (const RankSeen& one : seen.reports) {
    const auto rank = static_cast<std::size_t>(one.rank);
    if (rank >= job.seats.size()) continue;  // the shim lets none of these through
    const RankPlace& seat = job.seats[rank];
    const bool first = ++times[rank] == 1 && !seen.one_per_node;
    const std::tuple key{seat.node_class, seat.local, one.found.get()};
    const std::string host = plan.hosts.names[seat.node];
    if (!one.found->facts && passed.count(key) > 0 && same_host(host, one.host)) continue;
    const auto& ranks = plan.placement.classes[seat.node_class].ranks;
    const RankReport report = complete(plan, seen, seat, *one.found);
    const check::Subject subject{job, plan, seat, ranks, one.host, report, out};
    check::compare_node(subject);
    const int before = out.added();
    if (first) check::compare_rank(subject);
    if (first && out.added() == before) passed.insert(key);
  }
  check::compare_clocks(job, out);
  const bool all_here = compare_counts(job, times, out);
  Comparison result;
  result.differences = std::move(out).finish();
  if (seen.one_per_node) return result;
  if (all_here && seen.launcher_status != 0 && !program_failed(seen))
    result.differences.push_back(
        different("launcher-status", "0", fmt::format("{}", seen.launcher_status),
                  "the launcher failed although all ranks succeeded", "read its messages above"));

  std::vector<bool> good(job.seats.size(), true);
  for (const Difference& difference : result.differences)
    for (const int rank :
         difference.what.severity == Severity::note ? std::vector<int>() : difference.ranks)
      good[rank] = false;
  const auto [first, count] = plan.own_ranks();
  const auto begin = good.begin() + first;
  result.ranks_as_planned = static_cast<int>(std::count(begin, begin + count, true));
  return result;
}

}  // namespace hpclaunch
