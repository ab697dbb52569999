// `hpclaunch script --plain`: the exports and the launch line for a job in which hpclaunch is not installed.
#include "world/plain.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

// As an expression of bash: the job's id where kJob stands for it.
std::string late_value(const std::string& value) {
  std::string text;
  std::size_t at = 0;
  for (std::size_t job; (job = value.find(kJob, at)) != std::string::npos; at = job + kJob.size())
    text += (job > at ? quote_sh(value.substr(at, job - at)) : "") + "\"$HPCLAUNCH_JOB\"";
  return at > 0 && at == value.size() ? text : text + quote_sh(value.substr(at));
}

// What the job exports counts where the plan yields to it, and stays behind what a rule puts in front.
void use_exports(const Plan& plan, const Profile& profile, std::vector<EnvChange>& changes) {
  for (EnvChange& change : changes) {
    const Setting* setting = plan.find_env(change.name);
    if (setting == nullptr || !change.value || !change.shell.empty()) continue;
    const Decision& last = setting->history.back();
    const auto puts_in_front = [&](const Rule& rule) {
      return rule.id == last.rule &&
             std::ranges::count(rule.prepend, change.name, &Assignment::name);
    };
    const std::string value = late_value(*change.value);
    if (std::ranges::any_of(profile.rules, puts_in_front))
      change.shell = fmt::format("{0}\"${{{1}:+:${1}}}\"", value, change.name);
    else if (last.layer == Layer::builtin || last.layer == Layer::profile_default)
      change.shell = fmt::format("${{{}-{}}}", change.name, value);
    else if (value != quote_sh(*change.value))
      change.shell = value;
  }
}

}  // namespace

Status check_plain(const Request& request) {
  const OutputOptions& output = request.output;
  for (const auto& [typed, option] : {std::pair(!request.stage.method.empty(), "--stage"),
                                      {!request.container.image.empty(), "--container"},
                                      {!request.signal.empty(), "--signal"},
                                      {!output.log_dir.empty(), "--log-dir"},
                                      {!output.report.empty(), "--report"},
                                      {request.max_restarts.value_or(0) > 0, "--max-restarts"},
                                      {output.label, "--label"},
                                      {request.mps == "on", "--mps on"},
                                      {request.supervise.value_or(false), "--supervise"},
                                      {request.launcher == kLocalLauncher, "--launcher local"}})
    if (typed)
      return Error{ErrorKind::usage, fmt::format("--plain: {} needs hpclaunch in the job", option),
                   "omit one of them"};
  return Done{};
}

Result<std::string> plain_launch(const Prepared& prepared, const Profile& profile,
                                 const Scheduler& system) {
  const auto shim = std::ranges::find(prepared.argv, prepared.shim);
  const std::string variable = prepared.launcher.launcher->traits.rank_var;
  if (shim == prepared.argv.end() || prepared.launcher.launcher->programs.empty())
    return Error{
        ErrorKind::unsupported,
        fmt::format("--plain: the launcher {} is hpclaunch itself", prepared.plan.launch.launcher),
        "--launcher NAME"};
  Result<std::string> ranks = render_rank_script(prepared.plan, variable);
  if (!ranks) return ranks.error();
  Result<ShellChanges> made = shell_changes(prepared, {true, false});
  if (!made) return made.error();
  std::erase_if(made->changes,
                [](const EnvChange& change) { return change.name == "HPCLAUNCH_PLAN"; });
  use_exports(prepared.plan, profile, made->changes);
  const Result<std::string> exports = render_env(EnvFormat::sh, made->changes, false);
  if (!exports) return exports.error();
  for (std::size_t at; (at = ranks->find(kJob)) != std::string::npos;)
    ranks->replace(at, kJob.size(), "\"$HPCLAUNCH_JOB\"");
  const std::string job =
      system.outer_variable.empty()
          ? std::string(system.job_variable)
          : fmt::format("{0}:-${1}", system.job_variable, system.outer_variable);
  std::vector<std::string> before(prepared.argv.begin(), shim);
  std::vector<std::string> after(shim + 1, prepared.argv.end());
  for (std::vector<std::string>* words : {&before, &after})
    for (std::string& word : *words) word = quote_sh(word);
  return fmt::format(
      "\nexport HPCLAUNCH_JOB=\"${{{}}}\"\n: \"${{HPCLAUNCH_JOB:?run this in a {} job}}\"\n{}{}\n# "
      "Every rank: what differs between ranks, then the program.\n"
      "rank_script=$(\n  cat <<'END_OF_RANK_SCRIPT'\n{}END_OF_RANK_SCRIPT\n)\n\n"
      "# The job ends with the exit status of this line.\n{} bash -c \"$rank_script\" rank {}\n",
      job, system.title, made->preamble, *exports, *ranks, joined(before, " "), joined(after, " "));
}

}  // namespace hpclaunch::job
