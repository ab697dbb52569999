#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/pipeline.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  LaunchArgs launch;
  bool json = false;
};

std::string as_json(const Prepared& prepared) {
  auto document = nlohmann::ordered_json::parse(plan_to_json(prepared.plan));
  document["argv"] = prepared.argv;
  auto findings = nlohmann::ordered_json::array();
  for (const Finding& finding : prepared.findings)
    findings.push_back({{"rule", finding.rule},
                        {"severity", to_string(finding.severity)},
                        {"message", finding.message},
                        {"fix", finding.fix}});
  document["findings"] = std::move(findings);
  constexpr int kIndent = 2;
  return document.dump(kIndent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

int plan(Args& args, const Parser& parser, Session& session) {
  Result<std::vector<std::string>> program = parser.program(false);
  if (!program) return report(session, program.error());
  args.launch.command = std::move(*program);
  const Result<Prepared> prepared = prepare(args.launch, session, Purpose::show);
  if (!prepared) return report(session, prepared.error());
  if (!args.json) report(session, prepared->findings);
  const std::string text =
      args.json ? as_json(*prepared)
                : plan_table(prepared->plan, prepared->node, prepared->argv, session.style);
  if (!print(session, text)) return exit_status(ErrorKind::system, session.exit_rules);
  const bool remarks =
      std::any_of(prepared->findings.begin(), prepared->findings.end(),
                  [](const Finding& finding) { return finding.severity != Severity::note; });
  return remarks ? 1 : 0;
}

}  // namespace

Runner declare_plan(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.group("Output");
  parser.flag("--json", args->json, "Everything that was decided, for programs");
  parser.takes_program();
  parser.footer(
      "Exit status: 0 a plan with nothing to remark, 1 a plan with warnings or errors, 2 no\n"
      "plan.");
  return [args, &parser](Session& session) { return plan(*args, parser, session); };
}

}  // namespace hpclaunch::cli
