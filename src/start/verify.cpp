// Starts a report on each rank, or on each node, in place of the program, and compares what comes
// back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"
#include "hpclaunch/wire.h"
#include "start/steps.h"

namespace hpclaunch::job {

namespace {

constexpr double kGraceSeconds = 5;  // for a launcher to end its ranks

// Python's first thread imports and then starts the shim again, with the mask and environment that the import
// leaves. argv[1] is the module, the rest the command.
constexpr const char* kImport =
    "import importlib, os, sys\n"
    "problem = ''\n"
    "try:\n"
    "    importlib.import_module(sys.argv[1])\n"
    "except BaseException as error:\n"
    "    problem = '%s: %s' % (type(error).__name__, error)\n"
    "    problem = problem.replace('\\n', ' ')[:300]\n"
    "os.execv(sys.argv[2], sys.argv[2:] + [problem])\n";

// What the shim gets in place of the program, which it only looks for; without one, itself. `python` is "" where no
// module is imported first.
std::vector<std::string> report_command(const Plan& plan, const std::string& python,
                                        const std::string& module, const std::string& shim) {
  const std::string program = plan.launch.command.empty() ? shim : plan.launch.command.front();
  if (python.empty()) return {program};
  return {python, "-c", kImport, module, shim, program};
}

// What a rank sees of its node where it gets all of the planned one, and our limits.
RankReport usual_report(const Plan& plan, const Topology& node) {
  RankReport usual;
  usual.cpuset = node.allowed.to_list();
  usual.memory_policy = "default";
  CpuSet memory;
  for (const NumaNode& numa : node.numa_nodes) memory.add(numa.os_index);
  usual.memory_allowed = memory.to_list();
  for (const Device& device : node.devices) ++usual.devices[device.vendor];
  usual.limits = sys::limits();
  if (!plan.environment.core_limit.empty()) usual.limits["core"] = plan.environment.core_limit;
  return usual;
}

// The same as the shim writes it (src/shim/report.h): members of an object, each with a comma before it.
std::string usual_text(const RankReport& usual) {
  nlohmann::ordered_json common = {{"cpuset", usual.cpuset},
                                   {"memory_policy", usual.memory_policy},
                                   {"memory_allowed", usual.memory_allowed}};
  for (const DeviceVendor& vendor : device_vendors())
    if (const auto at = usual.devices.find(std::string(vendor.name)); at != usual.devices.end())
      common["devices"][at->first] = at->second;
  common["limits"] = usual.limits;
  const std::string text = common.dump();
  return "," + text.substr(1, text.size() - 2);
}

// The fields of HPCLAUNCH_PLAN by which the shim compares (docs/reference/shim.md).
std::string report_fields(const Plan& plan, const Topology& node, const Observed& seen) {
  std::map<std::string, std::vector<std::string>> fields;
  const auto expect = [&](const std::string& name, const std::string& value) {
    fields["same"].push_back(fmt::format("{}*{}", name, wire_mark(value, 5)));
  };
  for (const std::string& name : names_to_report(plan, seen.env)) {
    const Setting* const setting = plan.find_env(name);
    if (!is_identifier(name)) continue;
    if (setting == nullptr)
      fields["present"].push_back(name);
    else if (const auto* text = std::get_if<std::string>(&setting->value()))
      expect(name, *text);
    else if (std::holds_alternative<Unset>(setting->value()) && !is_for_launcher(*setting))
      fields["absent"].push_back(name);
  }
  for (const auto& [name, value] : seen.env.values())
    if (is_placement_variable(name) && is_identifier(name) && plan.find_env(name) == nullptr)
      expect(name, value);
  const auto& shown = placement_variables();
  fields["show"].assign(shown.begin(), shown.end());
  for (const DeviceVendor& vendor : device_vendors())
    fields["devices"].push_back(fmt::format(
        "{}*{}", vendor.name, vendor.device_file.empty() ? vendor.pci_id : vendor.device_file));
  std::set<std::string> addresses;
  for (const Device& device : node.devices)
    if (!device.pci.empty()) addresses.insert(wire_escape("/" + device.pci));
  if (!addresses.empty()) fields["gpus"] = {addresses.begin(), addresses.end()};
  fields["usual"] = {wire_mark(usual_text(seen.usual), 5)};
  if (!seen.module.empty()) fields["import"] = {"first"};
  if (!seen.after.empty()) {
    fields["after"] = {seen.after};
    fields["stay"] = {plan.supervision.termination.fails_fast ? "exit" : "kill"};
  }
  std::string text;
  for (const auto& [key, items] : fields) text += fmt::format(":{}={}", key, fmt::join(items, "/"));
  return text;
}

}  // namespace

Plan one_rank_per_node(const Plan& plan) {
  Plan one = plan;
  one.placement.classes = {NodeClass{{RankPlan{}}}};
  one.placement.layout = {NodeRun{0, plan.nodes()}};
  one.placement.bind_via = BindVia::none;
  one.placement.shared_cpus = false;
  one.environment.core_limit.clear();
  one.environment.make_dirs.clear();
  for (auto* args : {&one.launch.launcher_args, &one.launch.profile_args})
    *args = without_placement(one.launch.launcher, std::move(*args));
  std::erase_if(one.environment.settings, [](const Setting& setting) {
    return std::holds_alternative<PerRank>(setting.value()) || setting.name == kStartFolder;
  });
  return one;
}

namespace {

// A node may have another name than in the host list: then its addresses decide. A look-up may take
// seconds where a name service does not answer, so their number and time are limited.
void look_up_hosts(const Plan& plan, Observed& seen) {
  constexpr int kMost = 32;
  constexpr double kSeconds = 5;
  const double start = sys::wall_clock();
  int asked = 0;
  const std::vector<RankPlace> places = rank_places(plan, seen.one_per_node);
  for (const RankSeen& one : seen.reports) {
    const auto rank = static_cast<std::size_t>(one.rank);
    if (!one.found->facts || rank >= places.size()) continue;
    const std::string planned(plan.hosts.names[static_cast<std::size_t>(places[rank].node)]);
    if (same_host(planned, one.host)) continue;
    if (++asked > kMost || sys::wall_clock() - start > kSeconds) return;
    if (const Result<std::vector<std::string>> found = sys::resolve(planned); found)
      seen.addresses[planned] = {found->begin(), found->end()};
  }
}

// The launch line for `plan`, whose command is a report_command.
Result<Argv> report_line_of(Plan plan, const Prepared& prepared, Observed& seen) {
  const LauncherTraits& traits = prepared.launcher.launcher->traits;
  plan.supervision.verify = Verify::warn;
  plan.supervision.output = OutputOptions{false, "", kGraceSeconds};
  plan.supervision.supervise = false;
  plan.environment.removed.clear();  // variables that are set again are to be seen
  plan.supervision.time_limit_signal = {};
  const EnvSnapshot env = seen.env;
  seen.env = launch_environment(plan, env);
  seen.usual = usual_report(plan, prepared.node);
  Result<std::string> wire = encode_wire(
      plan, {traits.rank_var, seen.counts_locals ? traits.local_rank_var : "", !traits.built_in},
      nullptr, report_fields(plan, prepared.node, seen));
  if (!wire) return wire.error();
  plan.environment.wire = std::move(*wire);
  seen.env = launch_environment(plan, env);
  return launch_line(prepared.container, prepared.launcher, prepared.shim, plan);
}

// Of which no rank has reported; "" for none.
std::string missing_nodes(const Plan& plan, const Observed& seen) {
  Difference missing;
  const std::vector<RankPlace> places = rank_places(plan, seen.one_per_node);
  std::set<int> known;
  for (const RankSeen& one : seen.reports)
    if (static_cast<std::size_t>(one.rank) < places.size())
      known.insert(places[static_cast<std::size_t>(one.rank)].node);
  for (int node = 0; node < plan.nodes(); ++node)
    if (!known.contains(node) && (plan.hosts.own < 0 || node == plan.hosts.own))
      missing.nodes.push_back(node);
  return missing.nodes.empty() ? "" : where_text(plan, missing);
}

// How long the program may run before its report; without a limit to its end.
double program_seconds(const std::string& after) {
  constexpr double kYears = 1e9;
  return after == "end" ? kYears : static_cast<double>(parse_natural(after).value_or(0));
}

// `result.seen` says what is asked of the ranks.
Result<Verification> collect(const Plan& plan, const Prepared& prepared, Verification result,
                             double limit_seconds, const OtherLines& other) {
  Observed& seen = result.seen;
  Result<Argv> argv = report_line_of(plan, prepared, seen);
  if (!argv) return argv.error();
  result.argv = std::move(*argv);
  if (const int start = plan.supervision.output.start_seconds.value_or(0); start > 0)
    limit_seconds = std::min<double>(limit_seconds, start);
  limit_seconds += program_seconds(seen.after);
  seen.limit_seconds = limit_seconds;
  ReportPieces pieces;
  bool empty_line = false;  // of a shim before its report, or of a program
  const auto take = [&](std::string_view line, double at) {
    bool was_piece = false;
    std::optional<Result<RankSeen>> report = pieces.take(line, was_piece);
    if (std::exchange(empty_line, line.empty() && !seen.after.empty()) && !was_piece) other("");
    if (empty_line) return;
    if (!report) {
      if (!was_piece) other(line);
    } else if (*report) {
      seen.reports.push_back(std::move(**report));
      seen.arrivals.push_back(at);
    } else {
      ++seen.garbled;
    }
  };
  const auto late = [&] {
    if (const std::string nodes = missing_nodes(plan, seen); !nodes.empty())
      other(fmt::format("hpclaunch: still waiting for {}, {} s after the start", nodes,
                        sys::kStartPatience / 1000));
  };
  const auto all_here = [&] {  // after a failure the launcher ends the job itself
    return seen.reports.size() >= static_cast<std::size_t>(plan.own_ranks().second) &&
           !program_failed(seen);
  };
  const bool stops = !seen.after.empty() && seen.after != "end";
  const Result<sys::Ended> ended =
      sys::listen_to(result.argv, seen.env, limit_seconds, kGraceSeconds, take,
                     seen.after.empty() ? late : std::function<void()>(),
                     stops ? all_here : std::function<bool()>());
  if (!ended) return ended.error();
  result.ended = *ended;
  seen.garbled += pieces.unfinished();
  seen.launcher_status = ended->enough ? 0 : ended->status;
  seen.too_late = ended->too_late;
  return result;
}

// `who`: "no rank", "preflight: no node".
Error no_report(const Verification& result, const std::string& who) {
  const std::string& module = result.seen.module;
  const double limit = result.seen.limit_seconds;
  if (!module.empty())
    return Error{
        ErrorKind::system,
        fmt::format("{} reported after \"import {}\" within {} seconds (launcher status {})", who,
                    module, limit, result.ended.status),
        "hpclaunch verify without --import, or --timeout SECONDS"};
  if (result.ended.too_late)
    return Error{ErrorKind::system,
                 fmt::format("{} reported within {} seconds; stopped the launcher", who, limit),
                 fmt::format("{}; messages of the launcher are above",
                             result.seen.one_per_node ? "hpclaunch run without --preflight"
                                                      : "a larger --timeout, and --start-timeout")};
  return Error{
      ErrorKind::system,
      fmt::format("{} reported; the launcher exited with status {}", who, result.ended.status),
      "see its messages above; hpclaunch run --dry-run shows the launch line"};
}

// Every rank of `plan` reports in place of its program.
Result<Verification> ask_ranks(Plan plan, const Prepared& prepared, Verification asked,
                               const std::string& python, double limit_seconds,
                               const OtherLines& other, const char* nobody) {
  if (asked.seen.after.empty())
    plan.launch.command = report_command(plan, python, asked.seen.module, prepared.shim);
  Result<Verification> result = collect(plan, prepared, std::move(asked), limit_seconds, other);
  if (!result || result->ended.interrupted_by != 0) return result;
  if (result->seen.reports.empty()) return no_report(*result, nobody);
  look_up_hosts(prepared.plan, result->seen);
  result->comparison = compare(prepared.plan, prepared.node, result->seen);
  return result;
}

// The interpreter that was named, else the one on PATH, of the image where there is one.
Result<std::string> python_for(const Plan& plan, const EnvSnapshot& env) {
  const std::vector<std::string>& command = plan.launch.command;
  if (!command.empty() && is_python(command.front())) return command.front();
  if (!plan.launch.image.empty()) return std::string("python3");
  return sys::find_program("python3", env.get("PATH"));
}

}  // namespace

Status check_time(const ReportTime& time, const std::vector<std::string>& program) {
  constexpr long kDay = 86'400;
  if (time.after.empty()) return Done{};
  const std::optional<long> seconds = parse_natural(time.after, kDay);
  if (time.after != "end" && seconds.value_or(0) < 1)
    return Error{ErrorKind::usage,
                 fmt::format("--after must be a number of seconds from 1 to {}, or end, not \"{}\"",
                             kDay, time.after),
                 "hpclaunch verify --after 30 -- PROGRAM"};
  if (!time.module.empty())
    return Error{ErrorKind::usage, "only one of --after and --import is accepted",
                 "omit --import: --after starts the program itself"};
  if (program.empty())
    return Error{ErrorKind::usage, "--after needs a program",
                 fmt::format("hpclaunch verify --after {} -- PROGRAM", time.after)};
  return Done{};
}

Result<Verification> verify(const Prepared& prepared, const ReportTime& time,
                            const OtherLines& other) {
  const Plan& plan = prepared.plan;
  const EnvSnapshot& env = prepared.env;
  if (!time.after.empty() && plan.supervision.mps)
    return Error{ErrorKind::unsupported, "--after does not start the daemons of --mps",
                 "hpclaunch verify --after without --mps"};
  Verification asked;
  asked.seen.env = env;
  asked.seen.module = time.module;
  asked.seen.after = time.after;
  asked.seen.counts_locals = !prepared.launcher.launcher->traits.local_rank_var.empty();
  Result<std::string> python = std::string();
  if (!time.module.empty()) python = python_for(plan, env);
  if (!python) return python.error();
  return ask_ranks(plan, prepared, std::move(asked), *python, time.limit_seconds, other, "no rank");
}

Result<Prepared> with_container_tried(Prepared prepared) {
  Result<ContainerUse> made = with_bind_targets(std::move(prepared.container));
  if (!made) return made.error();
  prepared.container = *std::move(made);
  if (const Status tried = try_container(prepared); !tried) return tried.error();
  return prepared;
}

Status try_container(const Prepared& prepared) {
  constexpr double kSeconds = 120;  // a squashed image may be unpacked
  const ContainerUse& use = prepared.container;
  if (use.engine == nullptr || use.program.empty() || !prepared.plan.hosts.first_is_here)
    return Done{};
  Plan plan = one_rank_per_node(prepared.plan);
  plan.launch.command = report_command(plan, "", "", prepared.shim);
  Observed seen;
  seen.env = prepared.env;
  seen.one_per_node = true;
  if (const Result<Argv> line = report_line_of(plan, prepared, seen); !line) return line.error();
  Argv argv = container_words(use);
  argv.insert(argv.end(), {prepared.shim, plan.launch.command.front()});
  const LauncherTraits& traits = prepared.launcher.launcher->traits;
  const EnvSnapshot env = seen.env.with({{traits.rank_var, "0"}});
  const Result<sys::Captured> tried = sys::capture(argv, kSeconds, &env);
  if (!tried) return tried.error();
  ReportPieces pieces;
  for (const std::string_view line : split(tried->out, '\n')) {
    bool was_piece = false;
    const std::optional<Result<RankSeen>> report = pieces.take(line, was_piece);
    if (!report || !*report) continue;
    const std::optional<NodeFacts>& facts = (*report)->found->facts;
    const std::string problem = facts ? facts->program_problem : "";
    if (problem.empty()) return Done{};
    return Error{problem.ends_with("does not exist") ? ErrorKind::program_not_found
                                                     : ErrorKind::not_executable,
                 fmt::format("{} in image \"{}\"", problem, use.image),
                 "a program of the image, or bind its directory with --container-bind"};
  }
  return Error{ErrorKind::system,
               fmt::format("{} cannot start a container of \"{}\" (status {}): {}",
                           use.engine->name, use.image, tried->status, tried->complaint()),
               "hpclaunch run --dry-run shows the line; check the engine's options in it"};
}

Result<std::vector<Diagnostic>> preflight(const Prepared& prepared, double limit_seconds,
                                          const OtherLines& other) {
  constexpr std::size_t kRowsPerKind = 8;
  Verification asked;
  asked.seen.env = prepared.env;
  asked.seen.one_per_node = true;
  Plan plan = one_rank_per_node(prepared.plan);
  if (!prepared.stage.method.empty()) plan.launch.command.clear();  // it is not there yet
  const Result<Verification> result = ask_ranks(std::move(plan), prepared, std::move(asked), "",
                                                limit_seconds, other, "preflight: no node");
  if (!result) return result.error();
  if (result->ended.interrupted_by != 0)
    return Error{ErrorKind::system,
                 fmt::format("preflight: interrupted by signal {}", result->ended.interrupted_by)};
  std::vector<Diagnostic> diagnostics;
  for (const Difference& one : condense(result->comparison.differences, kRowsPerKind))
    diagnostics.push_back(
        {"preflight-" + one.what.id, one.what.severity,
         fmt::format("{}: planned {}, found {}: {}", where_text(prepared.plan, one), one.planned,
                     one.found, one.what.message),
         one.what.fix});
  const bool all_there = std::ranges::none_of(
      diagnostics, [](const Diagnostic& one) { return one.id == "preflight-node-silent"; });
  const Status answered =
      all_there ? ask_fabric(prepared, limit_seconds, other, diagnostics) : Done{};
  if (!answered) return answered.error();
  return diagnostics;
}

}  // namespace hpclaunch::job
