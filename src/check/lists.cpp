#include "lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

// The CPUs of "1,4-7"; empty for text that is no such list.
std::vector<int> entries(std::string_view list) {
  std::vector<int> cpus;
  for (const std::string_view piece : split(list, ',')) {
    const Result<CpuSet> range = CpuSet::parse(trim(piece));
    if (!range) return {};
    for (const int cpu : range->to_vector()) cpus.push_back(cpu);
  }
  return cpus;
}

// Of the cores that a rank has a hardware thread of, all.
CpuSet whole_cores(const Topology& node, const CpuSet& cpus) {
  CpuSet whole = cpus;
  for (const Core& core : node.cores)
    if (core.pus.intersects(cpus)) whole |= core.pus;
  return whole;
}

// A variable with one CPU for each helper thread of each rank of a node.
struct HelperList {
  const char* name;
  const char* library;
  bool own_core = false;       // a thread shares a core with its own rank
  bool ranges = true;          // "4-7" is four CPUs
  std::string_view word = {};  // in place of a list
  const char* workers = "";    // variable with the threads of each rank; "" for one
};

// Sources: oneCCL src/common/env/env.cpp, parse_affinity (a list of any other length is an exception); Horovod
// horovod/common/utils/env_parser.cc and common.cc (an error in the log and no affinity; a range is cut at its dash).
constexpr HelperList kHelperLists[] = {
    {"CCL_WORKER_AFFINITY", "oneCCL", false, true, "auto", "CCL_WORKER_COUNT"},
    {"HOROVOD_THREAD_AFFINITY", "Horovod", true, false}};

// What is wrong with a list by itself, or for this node; "" for nothing.
std::string list_fault(const HelperList& list, const std::string& text,
                       const std::vector<int>& cpus, const Topology& node) {
  if (cpus.empty()) return fmt::format("{}=\"{}\" is not a list of CPUs", list.name, text);
  if (!list.ranges && text.find('-') != std::string::npos)
    return fmt::format("{}=\"{}\" has a range, and {} reads the first number only", list.name, text,
                       list.library);
  CpuSet missing;
  for (const int cpu : cpus) missing.add(cpu);
  missing -= node.all_pus();
  if (missing.empty() || node.cores.empty()) return "";
  return fmt::format("{} names {}, which the node does not have", list.name, cpus_text(missing));
}

// Threads on cores of ranks, or of other ranks where a thread shares a core with its own.
int busy_threads(const HelperList& list, const std::vector<int>& cpus, const Topology& node,
                 const NodeClass& kind) {
  int busy = 0;
  for (std::size_t r = 0; r < kind.ranks.size(); ++r) {
    const CpuSet cores = whole_cores(node, kind.ranks[r].cpus);
    for (std::size_t i = 0; i < cpus.size(); ++i)
      busy += cores.has(cpus[i]) && !(list.own_core && i == r) ? 1 : 0;
  }
  return busy;
}

void check_helpers(const HelperList& list, const Plan& plan, const Topology& node,
                   const EnvSnapshot& env, std::vector<Diagnostic>& diagnostics) {
  const std::string* text = everywhere(plan, env, list.name);
  if (text == nullptr || trim(*text).empty() || trim(*text) == list.word) return;
  const std::vector<int> cpus = entries(*text);
  const std::string* count = everywhere(plan, env, list.workers);
  const std::size_t workers = count == nullptr ? 1 : parse_natural(trim(*count)).value_or(1);
  const auto report = [&](const char* id, Severity severity, std::string message) {
    diagnostics.push_back({id, severity, std::move(message), fmt::format("--unset {}", list.name)});
  };
  if (std::string fault = list_fault(list, *text, cpus, node); !fault.empty())
    return report("list-invalid", Severity::warning, std::move(fault));
  for (const NodeClass& kind : plan.placement.classes) {
    const std::size_t ranks = kind.ranks.size();
    if (cpus.size() != ranks * workers)
      return report(
          "list-length", list.own_core ? Severity::warning : Severity::error,
          fmt::format("{} has {} {}, but {} needs {}: {} on a node with {} each", list.name,
                      cpus.size(), cpus.size() == 1 ? "entry" : "entries", list.library,
                      ranks * workers, counted(ranks, "rank"), counted(workers, "worker")));
    if (std::set<int>(cpus.begin(), cpus.end()).size() < cpus.size())
      return report(
          "list-repeats", Severity::warning,
          fmt::format("{} puts several threads of {} on one CPU", list.name, list.library));
    const int busy = busy_threads(list, cpus, node, kind);
    if (busy > 0 && plan.placement.bind_via != BindVia::none)
      return report("helper-cores", Severity::warning,
                    fmt::format("{} puts {} of {} threads of {} on cores of {}ranks", list.name,
                                busy, cpus.size(), list.library, list.own_core ? "other " : ""));
  }
}

// ---- engines of Intel GPUs -----------------------------------------------------------------------------------

constexpr const char* kEngines = "ZEX_NUMBER_OF_CCS";

// The devices that are named in "0:4,1:4"; what is wrong with the first bad entry in `fault`.
std::set<int> devices_named(const std::string& text, std::string& fault) {
  std::set<int> named;
  for (const std::string_view piece : split(text, ',')) {
    const std::vector<std::string_view> pair = split(trim(piece), ':');
    const auto device = parse_natural(pair.front());
    const auto engines = pair.size() == 2 ? parse_natural(pair.back()) : std::nullopt;
    if (!device || !engines || (*engines != 1 && *engines != 2 && *engines != 4))
      fault = fmt::format("\"{}\" is no DEVICE:ENGINES with 1, 2 or 4 engines", shown(piece));
    else if (!named.insert(static_cast<int>(*device)).second)
      fault = fmt::format("it names device {} twice", *device);
    if (!fault.empty()) break;
  }
  return named;
}

// The devices that a rank uses, by the driver's numbers: all cards, or behind a mask those that it leaves, from 0.
std::set<int> devices_used(const Plan& plan, const EnvSnapshot& env) {
  const Setting* mask = plan.find_env("ZE_AFFINITY_MASK");
  const bool masked =
      mask == nullptr ? env.has("ZE_AFFINITY_MASK") : !std::holds_alternative<Unset>(mask->value());
  std::set<int> all;
  std::size_t most = 0;
  for (const NodeClass& kind : plan.placement.classes)
    for (const RankPlan& rank : kind.ranks) {
      std::set<int> own;
      for (const Slot& unit : rank.slots) own.insert(unit.device);
      most = std::max(most, own.size());
      all.merge(own);
    }
  if (!masked) return all;
  const std::size_t visible = plan.placement.gpu_view == "all" ? all.size() : most;
  all.clear();
  for (int device = 0; device < static_cast<int>(visible); ++device) all.insert(device);
  return all;
}

// Source: intel/compute-runtime, parseCcsMode in os_agnostic_product_helper_pvc.inl: entries count cards, behind the
// mask; numbers that match none are passed over. Sites' pages count tiles under FLAT, so these may be named.
// GPUs of one tile may read a single number, as every GPU but the Max series does.
void check_engines(const Plan& plan, const Topology& node, const EnvSnapshot& env,
                   std::vector<Diagnostic>& diagnostics) {
  const std::string* text = everywhere(plan, env, kEngines);
  int cards = 0;
  int tiles = 0;
  for (const Device& device : node.devices) {
    if (device.vendor != "intel") continue;
    ++cards;
    tiles += std::max(1, device.subdevices);
  }
  if (text == nullptr || trim(*text).empty() || trim(*text) == "default" || cards == 0) return;
  if (tiles == cards && parse_natural(trim(*text))) return;
  std::string fault;
  const std::set<int> named = devices_named(*text, fault);
  const std::string* hierarchy = everywhere(plan, env, "ZE_FLAT_DEVICE_HIERARCHY");
  const int most = hierarchy != nullptr && *hierarchy == "COMPOSITE" ? cards : tiles;
  if (fault.empty() && *named.rbegin() >= most)
    fault = fmt::format("it names device {}, and the node has {}", *named.rbegin(),
                        counted(most, "device"));
  const auto report = [&](const char* id, const std::string& what) {
    diagnostics.push_back({id, Severity::warning,
                           fmt::format("{}=\"{}\": {}", kEngines, *text, what),
                           fmt::format("--unset {}", kEngines)});
  };
  if (!fault.empty()) return report("list-invalid", fault);
  std::vector<int> left_out;
  std::ranges::set_difference(devices_used(plan, env), named, std::back_inserter(left_out));
  if (!left_out.empty())
    report("list-partial", fmt::format("device{} {} of ranks {} not named, and {} one queue each",
                                       left_out.size() == 1 ? "" : "s", fmt::join(left_out, ","),
                                       left_out.size() == 1 ? "is" : "are",
                                       left_out.size() == 1 ? "keeps" : "keep"));
}

}  // namespace

void check_lists(const Plan& plan, const Topology& node, const EnvSnapshot& env,
                 std::vector<Diagnostic>& diagnostics) {
  for (const HelperList& list : kHelperLists) check_helpers(list, plan, node, env, diagnostics);
  check_engines(plan, node, env, diagnostics);
}

}  // namespace hpclaunch
