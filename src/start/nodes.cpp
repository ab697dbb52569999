// `hpclaunch verify --doctor`: each node of the job examines itself, started by the job's launcher.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hpclaunch/check.h"
#include "hpclaunch/text.h"
#include "start/steps.h"

namespace hpclaunch::job {

namespace {

using Json = nlohmann::json;

constexpr double kGraceSeconds = 5;  // for a launcher to end its tasks
constexpr const char* kMark = "{\"hpclaunch_node\":";

Severity severity_of(const std::string& word) {
  return word == "error" ? Severity::error : word == "warning" ? Severity::warning : Severity::note;
}

Difference& finding_of(std::vector<Difference>& all, const std::string& id) {
  const auto found =
      std::ranges::find_if(all, [&](const Difference& one) { return one.what.id == id; });
  if (found != all.end()) return *found;
  all.emplace_back();
  return all.back();
}

// False: the line is somebody else's.
bool take(std::string_view line, int nodes, NodesExamined& examined, std::vector<bool>& answered) {
  const std::size_t at = line.find(kMark);  // launchers may write "0: " before it
  if (at == line.npos) return false;
  const Json document = Json::parse(line.substr(at), nullptr, false);
  if (!document.is_object()) return false;
  const int node = document.value("hpclaunch_node", -1);
  if (node < 0 || node >= nodes) return false;
  answered[static_cast<std::size_t>(node)] = true;
  for (const Json& row : document.value("rows", Json::array())) {
    const auto text = [&](const char* key) { return row.value(key, std::string()); };
    Difference& one = finding_of(examined.findings, text("id"));
    if (one.nodes.empty())
      one.what = {text("id"), severity_of(text("verdict")), text("message"), text("fix")};
    if (one.nodes.empty() || one.nodes.back() != node) one.nodes.push_back(node);
  }
  return true;
}

}  // namespace

std::string node_line(const std::vector<DoctorRow>& rows, const EnvSnapshot& env) {
  Json faults = Json::array();
  for (const DoctorRow& row : rows)
    if (row.fault)
      faults.push_back({{"verdict", to_string(row.fault->severity)},
                        {"id", row.fault->id},
                        {"message", row.fault->message},
                        {"fix", row.fault->fix}});
  const Json rows_of = {{"rows", std::move(faults)}};
  const std::string text = rows_of.dump(-1, ' ', true, Json::error_handler_t::replace);
  return fmt::format("{}{},{}\n", kMark, parse_natural(env.get("RANK")).value_or(0),
                     text.substr(1));
}

Result<NodesExamined> examine_nodes(const Prepared& prepared, bool fabric, double limit_seconds,
                                    const OtherLines& other) {
  const Plan& plan = prepared.plan;
  std::vector<std::string> command = {sys::own_directory() + "/hpclaunch", "doctor", "--node",
                                      "--json"};
  if (fabric) command.emplace_back("--fabric");
  const bool there = prepared.stage.method.empty();  // else the environment is not there yet
  if (there && !plan.launch.command.empty() && is_python(plan.launch.command.front()))
    command.insert(command.end(), {"--python", plan.launch.command.front()});
  const Result<NodeStep> step = node_step(prepared, std::move(command));
  if (!step) return step.error();
  NodesExamined examined;
  std::vector<bool> answered(static_cast<std::size_t>(plan.nodes()));
  const Result<sys::Ended> ended = sys::listen_to(
      step->argv, step->env, limit_seconds, kGraceSeconds, [&](std::string_view line, double) {
        if (!take(line, plan.nodes(), examined, answered)) other(line);
      });
  if (!ended) return ended.error();
  examined.interrupted_by = ended->interrupted_by;
  Difference silent;
  silent.what = {"no-answer", Severity::error,
                 ended->too_late
                     ? fmt::format("no answer within {} seconds", limit_seconds)
                     : fmt::format("no answer; the launcher ended with status {}", ended->status),
                 "hpclaunch has to be on a file system that all nodes have"};
  for (int node = 0; node < plan.nodes(); ++node)
    if (!answered[static_cast<std::size_t>(node)]) silent.nodes.push_back(node);
  examined.answered = plan.nodes() - static_cast<int>(silent.nodes.size());
  if (!silent.nodes.empty()) examined.findings.push_back(std::move(silent));
  for (Difference& one : examined.findings) std::ranges::sort(one.nodes);
  std::ranges::stable_sort(examined.findings, std::greater<>(),
                           [](const Difference& one) { return one.what.severity; });
  return examined;
}

Status ask_fabric(const Prepared& prepared, double limit_seconds, const OtherLines& other,
                  Diagnostics& diagnostics) {
  const Plan& plan = prepared.plan;
  const bool outside = plan.launch.image.empty();  // an image has libraries of its own
  if (!outside || !asks_for_fabric(launch_environment(plan, prepared.env))) return Done{};
  const Result<NodesExamined> nodes = examine_nodes(prepared, true, limit_seconds, other);
  if (!nodes) return nodes.error();
  if (nodes->interrupted_by != 0)
    return Error{ErrorKind::system,
                 fmt::format("preflight: interrupted by signal {}", nodes->interrupted_by)};
  for (const Difference& one : nodes->findings)
    if (one.what.severity >= Severity::warning)
      diagnostics.push_back({"preflight-" + one.what.id, one.what.severity,
                             fmt::format("{}: {}", where_text(plan, one), one.what.message),
                             one.what.fix});
  return Done{};
}

}  // namespace hpclaunch::job
