// The report of a rank as lines that every launcher passes on, and back.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/rank_report.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

using Json = nlohmann::ordered_json;

static void to_json(Json& out, const Interface& one) {
  out = {{"name", one.name}, {"up", one.up}, {"addresses", one.addresses}};
}

static void from_json(const Json& from, Interface& one) {
  from.at("name").get_to(one.name);
  from.at("up").get_to(one.up);
  from.at("addresses").get_to(one.addresses);
}

static void to_json(Json& out, const Room& room) {
  out = {{"path", room.path}, {"problem", room.problem}, {"free_bytes", room.free_bytes}};
}

static void to_json(Json& out, const ThreadGroup& one) {
  out = {{"name", one.name},
         {"child", one.child},
         {"threads", one.threads},
         {"each", one.each},
         {"cpus", one.cpus}};
}

static void to_json(Json& out, const ChangedVariable& one) {
  out = {{"name", one.name}, {"child", one.child}, {"set", one.set}, {"processes", one.processes}};
  if (!one.value.empty()) out["value"] = one.value;
}

namespace {

// One list of members for both directions: `each` gets a key and the member.
template <class Report, class Each>
void members(Report& report, Each each) {
  each("launcher_local_rank", report.launcher_local_rank);
  each("cpus", report.cpus);
  each("cpus_given", report.cpus_given);
  each("cpuset", report.cpuset);
  each("memory_policy", report.memory_policy);
  each("memory_nodes", report.memory_nodes);
  each("memory_allowed", report.memory_allowed);
  each("devices", report.devices);
  each("refused", report.refused);
  each("values", report.values);
  each("limits", report.limits);
  each("import_problem", report.import_problem);
}

template <class Facts, class Each>
void fact_members(Facts& facts, Each each) {
  each("online", facts.online);
  each("numa", facts.numa);
  each("gpus", facts.gpus);
  each("fabrics", facts.fabrics);
  each("interfaces", facts.interfaces);
  each("master", facts.master);
  each("master_problem", facts.master_problem);
  each("master_resolves", facts.master_resolves);
  each("host_resolves", facts.host_resolves);
  each("program_problem", facts.program_problem);
}

// Numbers.
template <class After, class Each>
void after_members(After& after, Each each) {
  each("threads", after.threads);
  each("processes", after.processes);
  each("more_threads", after.more_threads);
  each("more_variables", after.more_variables);
  each("more_processes", after.more_processes);
  each("hidden", after.hidden);
  each("no_children", after.no_children);
  each("ran", after.ran);
  each("exit", after.exit);
  each("signal", after.signal);
}

// Empty text, empty lists and -1 are omitted.
template <class T>
void put(Json& into, const char* key, const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    if (value != T(-1)) into[key] = value;
  } else {
    if (!value.empty()) into[key] = value;
  }
}

Json facts_json(const NodeFacts& facts) {
  Json out = Json::object();
  const auto add = [&](const char* key, const auto& value) { put(out, key, value); };
  fact_members(facts, add);
  add("port_problem", facts.port_problem);
  add("rooms", facts.rooms);
  return out;
}

Json after_json(const Examined& after) {
  Json out = Json::object();
  after_members(after, [&](const char* key, int value) {
    const bool always = key == std::string_view("threads") || key == std::string_view("exit");
    if (value > 0 || (always && value == 0)) out[key] = value;
  });
  put(out, "groups", after.groups);
  put(out, "changes", after.changes);
  return out;
}

// Throws for a number with a fraction or an exponent where a whole one belongs: the library would cast it.
template <class T>
void take(const Json& from, const char* key, T& value) {
  if (!from.contains(key)) return;
  if constexpr (std::is_same_v<T, int>)
    value = static_cast<int>(from.at(key).get_ref<const Json::number_integer_t&>());
  else
    value = from.at(key).get<T>();
}

// What system calls say is a number.
std::string problem_of(const Json& from) {
  int error = 0;
  take(from, "errno", error);
  return error == 0 ? "" : std::strerror(error);
}

NodeFacts read_facts(const Json& from) {
  NodeFacts facts;
  fact_members(facts, [&](const char* key, auto& value) { take(from, key, value); });
  std::ranges::sort(facts.gpus);
  std::ranges::sort(facts.fabrics);
  if (from.contains("port")) facts.port_problem = problem_of(from.at("port"));
  for (const Json& one : from.value("rooms", Json::array()))
    facts.rooms.push_back({one.at("path").get<std::string>(), problem_of(one),
                           one.at("free_bytes").get<unsigned long long>()});
  return facts;
}

Examined read_after(const Json& from) {
  Examined after;
  from.at("threads").get_to(after.threads);
  after_members(after, [&](const char* key, int& value) { take(from, key, value); });
  for (const Json& one : from.value("groups", Json::array())) {
    ThreadGroup& group = after.groups.emplace_back();
    one.at("name").get_to(group.name);
    take(one, "threads", group.threads);
    take(one, "each", group.each);
    take(one, "cpus", group.cpus);
    group.child = one.contains("child");
  }
  for (const Json& one : from.value("changes", Json::array())) {
    ChangedVariable& change = after.changes.emplace_back();
    one.at("name").get_to(change.name);
    take(one, "value", change.value);
    take(one, "processes", change.processes);
    change.child = one.contains("child");
    change.set = one.contains("set");
  }
  return after;
}

RankReport read_report(const Json& json) {
  RankReport report;
  members(report, [&](const char* key, auto& value) { take(json, key, value); });
  take(json, "variables", report.variables);
  report.imported = json.contains("before");
  if (report.imported) {
    take(json.at("before"), "cpus", report.cpus_before);
    take(json.at("before"), "cpus_given", report.cpus_given);
    take(json.at("before"), "variables", report.variables_before);
  }
  if (json.contains("facts")) report.facts = read_facts(json.at("facts"));
  if (json.contains("after")) report.after = read_after(json.at("after"));
  return report;
}

// `text` up to the next `end`, which goes too.
std::string_view take_word(std::string_view& text, char end) {
  const std::string_view word = text.substr(0, text.find(end));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

}  // namespace

std::string fingerprint(std::string_view value) { return fmt::format("{:08x}", fnv1a(value)); }

std::optional<Result<RankSeen>> ReportPieces::take(std::string_view line, bool& was_piece) {
  const std::size_t mark = line.rfind(kReportMark);
  was_piece = mark != std::string_view::npos;
  if (!was_piece) return std::nullopt;
  std::string_view rest = line.substr(mark + kReportMark.size());
  constexpr long kMost = 10'000;  // pieces of one report
  const std::string_view sender = take_word(rest, ' ');
  const std::optional<long> number = parse_natural(take_word(rest, '/'), kMost);
  const std::optional<long> count = parse_natural(take_word(rest, ' '), kMost);
  const std::optional<long> size =
      parse_natural(take_word(rest, ' '), static_cast<long>(kReportPiece));
  if (!number || !count || !size || *number < 1 || *number > *count ||
      static_cast<std::size_t>(*size) > rest.size())
    return read(sender, "");
  const std::string_view piece = rest.substr(0, static_cast<std::size_t>(*size));
  if (*count == 1) return read(sender, piece);
  std::map<int, std::string>& parts = parts_[std::string(sender)];
  parts[static_cast<int>(*number)] = piece;
  if (parts.size() < static_cast<std::size_t>(*count)) return std::nullopt;
  std::string whole;
  for (const auto& [place, text] : parts) whole += text;
  parts_.erase(parts_.find(sender));
  return read(sender, whole);
}

// Most reports differ in the clock alone, which comes first: the rest is read once.
Result<RankSeen> ReportPieces::read(std::string_view sender, std::string_view object) {
  const Error garbled{ErrorKind::invalid, "a rank's report was cut or mixed with other output"};
  constexpr std::string_view kClock = "{\"clock\":";
  RankSeen seen;
  seen.host = take_word(sender, ':');
  const std::optional<long> pid = parse_natural(take_word(sender, ':'));
  const std::optional<long> rank = parse_natural(sender, std::numeric_limits<int>::max());
  if (!pid || !rank) return garbled;
  seen.pid = static_cast<int>(*pid);
  seen.rank = static_cast<int>(*rank);
  std::string_view common = object;
  if (object.starts_with(kClock)) {
    common.remove_prefix(kClock.size());
    const auto [end, error] =
        std::from_chars(common.data(), common.data() + common.size(), seen.clock);
    if (error != std::errc()) return garbled;
    common.remove_prefix(static_cast<std::size_t>(end - common.data()));
    if (const auto at = known_.find(common); at != known_.end()) {
      seen.found = at->second;
      return seen;
    }
  }
  const Json json = Json::parse(object, nullptr, false);
  if (!json.is_object()) return garbled;
  try {
    seen.found = std::make_shared<const RankReport>(read_report(json));
  } catch (const Json::exception&) {
    return garbled;
  }
  if (!seen.found->facts && common.size() < object.size()) known_[std::string(common)] = seen.found;
  return seen;
}

std::string report_to_json(const RankSeen& seen, const RankPlace& place, const RankReport& report,
                           const std::string& module) {
  Json out = {{"host", seen.host},
              {"pid", seen.pid},
              {"rank", seen.rank},
              {"local_rank", place.local},
              {"local_size", place.local_size},
              {"node", place.node}};
  const auto add = [&](const char* key, const auto& value) { put(out, key, value); };
  members(report, add);
  add("clock", seen.clock);
  add("module", module);
  add("cpus_before", report.cpus_before);
  if (report.facts) out["facts"] = facts_json(*report.facts);
  if (report.after) out["after"] = after_json(*report.after);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const std::vector<std::string_view>& placement_variables() {
  static const std::vector<std::string_view> kAll = [] {
    std::vector<std::string_view> all = split(
        "RANK,LOCAL_RANK,WORLD_SIZE,LOCAL_WORLD_SIZE,LOCAL_SIZE,GROUP_RANK,GROUP_WORLD_SIZE,"
        "NODE_RANK,CROSS_RANK,CROSS_SIZE,MASTER_ADDR,MASTER_PORT,HPCLAUNCH_LOCAL_RANK,"
        "HPCLAUNCH_LOCAL_SIZE,HPCLAUNCH_NODE,GOMP_CPU_AFFINITY,KMP_AFFINITY,KMP_HW_SUBSET,OMP_*",
        ',');
    std::ranges::copy(kInterfaceVariables, std::back_inserter(all));
    std::ranges::copy(device_variables(), std::back_inserter(all));
    return all;
  }();
  return kAll;
}

bool is_placement_variable(std::string_view name) {
  return name.starts_with("OMP_") ||
         std::ranges::find(placement_variables(), name) != placement_variables().end();
}

std::string interface_problem(std::string_view variable, std::string_view value,
                              const std::vector<Interface>& interfaces) {
  const bool nccl = variable == "NCCL_SOCKET_IFNAME";
  if (nccl && value.starts_with('^')) return "";  // all but these
  const bool exact = !nccl || value.starts_with('=');
  if (nccl && exact) value.remove_prefix(1);
  std::string first;  // problem; NCCL needs one usable interface, the others need all
  bool found = false;
  for (const std::string_view piece : split(value, ',')) {
    const std::string_view name = trim(piece);
    if (name.empty() || name == "lo") {
      found = found || name == "lo";
      continue;
    }
    std::string why = "no interface " + std::string(name) + (exact ? "" : "*");
    bool usable = false;
    for (const Interface& one : interfaces) {
      if (exact ? one.name != name : !one.name.starts_with(name)) continue;
      if (one.up && !one.addresses.empty())
        usable = true;
      else
        why = one.name + (one.up ? " has no address" : " is down");
    }
    found = found || usable;
    if (!usable && first.empty()) first = std::move(why);
  }
  return nccl && found ? "" : first;
}

}  // namespace hpclaunch
