#include "hpclaunch/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "hpclaunch/text.h"
#include "hpclaunch/verify.h"

namespace hpclaunch::cli {

namespace {

constexpr int kAreaColumn = 17;

struct Args {
  Request launch;
  job::DoctorSubject subject;
  bool node = false;
  bool json = false;
};

bool at_least(const job::DoctorRow& row, Severity severity) {
  return row.fault && row.fault->severity >= severity;
}

std::string as_json(const std::vector<job::DoctorRow>& rows) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const job::DoctorRow& row : rows) {
    Json one = {{"area", row.area}, {"verdict", row.fault ? to_string(row.fault->severity) : "ok"}};
    if (row.fault) {
      one["id"] = row.fault->id;
      one["message"] = row.fault->message;
      one["fix"] = row.fault->fix;
    } else {
      one["found"] = row.found;
    }
    list.push_back(std::move(one));
  }
  return Json{{"schema", 1}, {"rows", std::move(list)}}.dump(2, ' ', false,
                                                             Json::error_handler_t::replace) +
         "\n";
}

std::string as_text(const std::vector<job::DoctorRow>& rows, const Style& style) {
  std::string text;
  for (const job::DoctorRow& row : rows) {
    if (!row.fault) {
      text += entry(row.area, row.found, kAreaColumn, style);
      continue;
    }
    text += entry(row.area,
                  fmt::format("{}: {} [{}]", to_string(row.fault->severity), row.fault->message,
                              row.fault->id),
                  kAreaColumn, style);
    if (!row.fault->fix.empty()) text += entry("", "try: " + row.fault->fix, kAreaColumn, style);
  }
  const auto faults =
      std::ranges::count_if(rows, [](const auto& row) { return at_least(row, Severity::warning); });
  return text + (faults == 0 ? "\nnothing wrong was found\n"
                             : fmt::format("\n{}\n", counted(faults, "finding")));
}

int doctor(const Args& args, Session& session) {
  const std::vector<job::DoctorRow> rows =
      args.node ? job::examine_node(session.env, args.subject)
                : job::examine(args.launch, session.env, args.subject);
  const std::string text = !args.json  ? as_text(rows, session.style)
                           : args.node ? job::node_line(rows, session.env)
                                       : as_json(rows);
  const int status = print_all(session, text);
  if (args.node && args.json) return status;  // findings are an answer, not a failure of the launch
  const bool wrong =
      std::ranges::any_of(rows, [](const auto& row) { return at_least(row, Severity::warning); });
  return status == 0 && wrong ? 1 : status;
}

}  // namespace

Runner declare_doctor(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.group("Examination");
  parser.text("--python", args->subject.python, "PATH",
              "The Python whose torch is examined; default: the program, else python3");
  parser.flag("--json", args->json, "Print the rows as JSON");
  parser.group("Examination", false, true);
  parser.flag("--network", args->subject.network, "Try to connect to the proxies that are set");
  parser.flag("--fabric", args->subject.fabric,
              "Only the network's libraries and providers; no Python but a named one");
  parser.flag("--node", args->node, "This node alone, no plan; with --json findings in a line");
  parser.takes_program(args->launch.command);
  parser.footer(
      "Torch is not imported; without --network the network is not touched.\nExit status: 0 "
      "nothing wrong, 1 "
      "warnings or errors.");
  return [args](Session& session) { return doctor(*args, session); };
}

}  // namespace hpclaunch::cli
