// run --profile-start: what the ranks have written about their start, gathered after the job, and what it means.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "hpclaunch/check.h"
#include "hpclaunch/run_record.h"
#include "hpclaunch/text.h"
#include "start/steps.h"

namespace hpclaunch::job {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kGatherSeconds = 60;
constexpr double kGraceSeconds = 5;
constexpr std::string_view kMark = "hpclaunch-start ";
constexpr const char* kTitles[] = {"launch to exec",   "exec to Python",
                                   "import torch",     "init_process_group",
                                   "first collective", "exec to first output"};
constexpr std::size_t kImport = 2;  // of kStartPhases

// Once on every node. awk and find may not be on the PATH of the program.
constexpr const char* kGather =
    "PATH=$PATH:/usr/bin:/bin\n"
    "find /dev/shm -maxdepth 1 -name \"hpclaunch-start-$(id -u)-*\" -user \"$(id -u)\" -mtime +0"
    " -exec rm -rf {} + 2>/dev/null\n"
    "cd \"$1\" 2>/dev/null || exit 0\n"
    "awk '{ print \"hpclaunch-start\", FILENAME, $0 }' [0-9]*\n"
    "sed -n 's/^imported [^ ]* [^ ]* [^ ]* //p' [0-9]* | sort -u | while IFS= read -r path; do\n"
    "  printf 'hpclaunch-start fs %s %s\\n' \"$(stat -f -c %T \"$path\")\" \"$path\"\n"
    "done\n"
    "cd / && rm -rf \"$1\"\n";

double number(std::string_view word) { return std::strtod(std::string(word).c_str(), nullptr); }

// One word and its values, of a file that the shim and sitecustomize.py have written.
struct RankFile {
  RankStart& rank;
  std::optional<double> exec = {}, import = {};

  void set(const char* phase, double seconds) {
    const auto at = std::ranges::find(kStartPhases, std::string_view(phase));
    rank.seconds.at(static_cast<std::size_t>(at - std::begin(kStartPhases))) = seconds;
  }
  void take(std::string_view line, double started) {
    const auto words = split(line, ' ');
    const std::string_view word = words.front();
    const auto value = [&](std::size_t at) { return at < words.size() ? number(words[at]) : 0.0; };
    const double at = value(1);
    if (word == "host") rank.host = words.back();
    if (word == "exec") {
      exec = at;
      set("launch", value(2) - started);
    }
    if (word == "python") rank.python = true;
    if (word == "import") import = at;
    if (word == "rendezvous" || word == "collective") set(std::string(word).c_str(), value(2) - at);
    if (word == "python" && exec) set("interpreter", at - *exec);
    if (word == "output" && exec) set("output", at - *exec);
    if (word != "imported" || !import || words.size() < 5) return;
    set("import", at - *import);
    rank.ran = value(2);
    rank.delayed = value(3);
    rank.import_from = joined(std::vector(words.begin() + 4, words.end()), " ");
  }
};

// Ranks with a value, the slowest first.
std::vector<int> slowest_first(const StartProfile& profile, std::size_t phase) {
  std::vector<int> order;
  for (int rank = 0; rank < static_cast<int>(profile.ranks.size()); ++rank)
    if (profile.ranks[static_cast<std::size_t>(rank)].seconds[phase]) order.push_back(rank);
  std::ranges::stable_sort(order, [&](int a, int b) {
    return profile.ranks[static_cast<std::size_t>(a)].seconds[phase] >
           profile.ranks[static_cast<std::size_t>(b)].seconds[phase];
  });
  return order;
}

std::string place_of(const StartProfile& profile, int rank) {
  return fmt::format("rank {} on {}", rank, profile.ranks[static_cast<std::size_t>(rank)].host);
}

// A copy on each node cannot save more than what the slowest rank waited for its files.
Diagnostic staging_advice(const StartProfile& profile, const Prepared& prepared, int slowest) {
  constexpr double kWorth = 1;  // seconds, and of the import a quarter
  constexpr double kShare = 0.25;
  const RankStart& rank = profile.ranks[static_cast<std::size_t>(slowest)];
  const double took = *rank.seconds[kImport];
  double without = 0;  // the slowest import, had no rank waited
  for (const RankStart& one : profile.ranks)
    if (one.seconds[kImport]) without = std::max(without, *one.seconds[kImport] - one.waited());
  const double saved = std::max(0.0, took - without);
  const auto type = profile.file_systems.find(rank.import_from);
  std::string message = fmt::format(
      "import torch took {:.2f} s at {}: {:.2f} s running, {:.2f} s waiting for a processor, "
      "{:.2f} s waiting for files ({}{})",
      took, place_of(profile, slowest), rank.ran.value_or(0), rank.delayed.value_or(0),
      rank.waited(), rank.import_from,
      type == profile.file_systems.end() ? "" : fmt::format(", {}", type->second));
  const std::string& staged = prepared.stage.method;
  if (!staged.empty())
    return {"start-import", Severity::note, fmt::format("{}; staged by {}", message, staged)};
  if (saved < kWorth || saved < kShare * took)
    return {"start-import", Severity::note,
            fmt::format("{}: staging would save at most {:.2f} s", message, saved)};
  return {"start-import", Severity::warning,
          fmt::format("{}: staging would save up to {:.2f} s", message, saved),
          prepared.useful_stage};
}

void advise(const Prepared& prepared, StartProfile& profile) {
  const auto known =
      std::ranges::count_if(profile.ranks, [](const RankStart& one) { return !one.host.empty(); });
  const auto missing = static_cast<long>(profile.ranks.size()) - known;
  if (missing > 0)
    profile.diagnostics.push_back(
        {"start-unknown", Severity::warning,
         fmt::format("no times of {}: not started, or no place in /dev/shm",
                     counted(missing, "rank")),
         "read the messages of the launch above"});
  if (const std::vector<int> imports = slowest_first(profile, kImport); !imports.empty())
    return profile.diagnostics.push_back(staging_advice(profile, prepared, imports.front()));
  const bool python = std::ranges::any_of(profile.ranks, &RankStart::python);
  if (known > 0)
    profile.diagnostics.push_back(
        {"start-unseen", Severity::note,
         python
             ? "no rank finished import torch"
             : "no rank started Python (or with -S, -I or -E, which skip sitecustomize): exec and "
               "first output only"});
}

std::string seconds_text(const std::optional<double>& value) {
  return value ? fmt::format("{:9.3f}", *value) : fmt::format("{:>9}", "-");
}

// For each node its slowest rank of every phase; the node with the slowest sum first.
struct NodeStart {
  std::string host;
  std::array<std::optional<double>, kStartPhaseCount> seconds = {};
  double sum() const {
    return std::accumulate(seconds.begin(), seconds.end() - 1, 0.0,
                           [](double all, const auto& one) { return all + one.value_or(0); });
  }
};

std::vector<NodeStart> by_node(const StartProfile& profile, const Plan& plan) {
  std::vector<NodeStart> nodes(static_cast<std::size_t>(plan.nodes()));
  const std::vector<RankPlace> places = rank_places(plan);
  for (std::size_t rank = 0; rank < profile.ranks.size() && rank < places.size(); ++rank) {
    NodeStart& node = nodes[static_cast<std::size_t>(places[rank].node)];
    if (node.host.empty())
      node.host = plan.hosts.names[static_cast<std::size_t>(places[rank].node)];
    for (std::size_t p = 0; p < kStartPhaseCount; ++p)
      node.seconds[p] = std::max(node.seconds[p], profile.ranks[rank].seconds[p]);
  }
  std::ranges::stable_sort(nodes, std::greater(), &NodeStart::sum);
  return nodes;
}

}  // namespace

double RankStart::waited() const {
  const std::optional<double>& took = seconds[kImport];
  return took && ran && delayed ? std::max(0.0, *took - *ran - *delayed) : 0;
}

StartProfile start_profile(const Prepared& prepared, const sys::Ending& ending,
                           const std::function<void(std::string_view line)>& other) {
  StartProfile profile;
  profile.ranks.resize(static_cast<std::size_t>(prepared.plan.world_size()));
  const std::string& folder = prepared.plan.environment.make_dirs.back();
  std::map<long, RankFile> files;
  const auto take = [&](std::string_view line, double) {
    const std::size_t mark = line.find(kMark);
    if (mark == std::string_view::npos) return other(line);
    line.remove_prefix(mark + kMark.size());
    const std::string_view who = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(who.size() + 1, line.size()));
    if (who == "fs") {
      const std::size_t blank = line.find(' ');
      if (blank != std::string_view::npos)
        profile.file_systems[std::string(line.substr(blank + 1))] = line.substr(0, blank);
      return;
    }
    const auto rank = parse_natural(who, static_cast<long>(profile.ranks.size()) - 1);
    if (!rank || line.empty()) return;
    RankStart& one = profile.ranks[static_cast<std::size_t>(*rank)];
    files.try_emplace(*rank, RankFile{one}).first->second.take(line, ending.started);
  };
  const Result<NodeStep> step =
      node_step(prepared, {"/bin/sh", "-c", kGather, "hpclaunch-start", folder});
  if (step) {
    const Result<sys::Ended> ended =
        sys::listen_to(step->argv, step->env, kGatherSeconds, kGraceSeconds, take);
    if (!ended || ended->too_late || ended->interrupted_by != 0)
      profile.diagnostics.push_back(
          {"start-gathering", Severity::warning,
           ended ? fmt::format("the times were not gathered from every node within {:g} s",
                               kGatherSeconds)
                 : ended.error().message,
           fmt::format("they may still be in {} of a node", folder)});
  }
  advise(prepared, profile);
  return profile;
}

std::string start_profile_text(const StartProfile& profile, const Plan& plan) {
  constexpr std::size_t kMostNodes = 10;
  std::string text =
      fmt::format("hpclaunch: start of {} on {}, in seconds\n  {:<22}  fastest   median  slowest\n",
                  counted(plan.world_size(), "rank"), counted(plan.nodes(), "node"), "");
  for (std::size_t p = 0; p < kStartPhaseCount; ++p) {
    const std::vector<int> order = slowest_first(profile, p);
    const auto at = [&](std::size_t place) {
      return profile.ranks[static_cast<std::size_t>(order[place])].seconds[p];
    };
    if (order.empty()) continue;
    text += fmt::format("  {:<22}{}{}{}  {}\n", kTitles[p], seconds_text(at(order.size() - 1)),
                        seconds_text(at(order.size() / 2)), seconds_text(at(0)),
                        place_of(profile, order.front()));
  }
  if (plan.nodes() > 1) {
    text += fmt::format("  {:<22}", "slowest rank of a node");
    for (const char* phase : {"launch", "exec", "import", "init", "collect.", "output"})
      text += fmt::format("{:>9}", phase);
    text += "\n";
    const std::vector<NodeStart> nodes = by_node(profile, plan);
    for (std::size_t n = 0; n < std::min(nodes.size(), kMostNodes); ++n) {
      text += fmt::format("  {:<22}", nodes[n].host);
      for (const auto& value : nodes[n].seconds) text += seconds_text(value);
      text += "\n";
    }
    if (nodes.size() > kMostNodes)
      text += fmt::format("  and {}, which were faster\n",
                          counted(static_cast<long>(nodes.size() - kMostNodes), "other node"));
    text += "  launch to exec compares the clocks of two nodes; all else is measured on one\n";
  }
  return text;
}

std::string start_profile_json(const StartProfile& profile, const Plan& plan) {
  const auto rounded = [](const std::optional<double>& value) {
    constexpr double kMicro = 1e6;
    return value ? Json(std::round(*value * kMicro) / kMicro) : Json(nullptr);
  };
  Json out = {{"schema", 1}, {"launcher", plan.launch.launcher}, {"nodes", plan.nodes()}};
  out["ranks"] = Json::array();
  for (std::size_t rank = 0; rank < profile.ranks.size(); ++rank) {
    const RankStart& one = profile.ranks[rank];
    Json entry = {{"rank", rank}, {"host", one.host.empty() ? Json(nullptr) : Json(one.host)}};
    for (std::size_t p = 0; p < kStartPhaseCount; ++p)
      entry[kStartPhases[p]] = rounded(one.seconds[p]);
    entry["import_ran"] = rounded(one.ran);
    entry["import_delayed"] = rounded(one.delayed);
    entry["import_waited"] = one.ran ? rounded(one.waited()) : Json(nullptr);
    entry["import_from"] = one.import_from.empty() ? Json(nullptr) : Json(one.import_from);
    out["ranks"].push_back(std::move(entry));
  }
  out["slowest"] = Json::object();
  for (std::size_t p = 0; p < kStartPhaseCount; ++p)
    if (const std::vector<int> order = slowest_first(profile, p); !order.empty())
      out["slowest"][kStartPhases[p]] = order.front();
  out["file_systems"] = profile.file_systems;
  out["diagnostics"] = Json::array();
  for (const Diagnostic& one : profile.diagnostics)
    out["diagnostics"].push_back({{"id", one.id},
                                  {"severity", to_string(one.severity)},
                                  {"message", one.message},
                                  {"fix", one.fix}});
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hpclaunch::job
