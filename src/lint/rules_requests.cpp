// Options of a job and its steps that exclude or need one another: the rows of profiles/programs/requests.json.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "hpclaunch/launcher.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"
#include "lint/counts.h"

namespace hpclaunch::lint {

namespace {

constexpr std::string_view kOldest = "22.05";  // a later version is named

// Options with their places.
struct Given {
  std::vector<GivenOption> options;
  std::vector<Span> spans;
  void add(const std::string& name, const std::string& value, Span span) {
    options.push_back({name, value});
    spans.push_back(span);
  }
};

// "--mem=4G", "-r n"
std::string written(const GivenOption& option) {
  const bool is_long = option.name.starts_with("--");
  return option.value.empty()
             ? option.name
             : fmt::format("{}{}{}", option.name, is_long ? '=' : ' ', shown(option.value, 30));
}

// "sbatch refuses them", "Slurm 26.05 and newer refuse them"
std::string effect(std::string_view program, const BrokenRelation& one) {
  const bool late = compare_versions(one.since.empty() ? kOldest : one.since, kOldest) > 0;
  const std::string who =
      late ? fmt::format("{} from version {} on", program, one.since) : std::string(program);
  return one.ignored ? who + " ignores the first" : who + " refuses them";
}

void report(std::string_view program, const Given& given, const std::vector<BrokenRelation>& broken,
            Findings& findings) {
  for (const BrokenRelation& one : broken) {
    const std::string first = written(given.options[one.first]);
    if (one.second == BrokenRelation::kNone) {
      findings.add("option-needs", given.spans[one.first],
                   fmt::format("{} needs {}, which this script does not have", first,
                               one.needed.size() == 1
                                   ? one.needed.front()
                                   : fmt::format("one of {}", fmt::join(one.needed, ", "))));
      continue;
    }
    const std::string second = written(given.options[one.second]);
    Finding& finding = findings.add(
        "options-exclude", given.spans[std::max(one.first, one.second)],
        fmt::format("{} and {} exclude each other: {}", first, second, effect(program, one)),
        fmt::format("omit {} or {}", first, second));
    if (one.ignored || finding.diagnostic.message.find(" from version ") != std::string::npos)
      finding.diagnostic.severity = Severity::warning;
  }
}

// The directives of one system; those of a heterogeneous job for each component.
std::vector<Given> requests(const Script& script, std::string_view system) {
  std::vector<Given> all(1);
  std::vector<std::size_t> ends;
  for (const auto& [directive, span] : script.strays)
    if (const auto word = script.shell.at(span); word == "hetjob" || word == "packjob")
      ends.push_back(directive);
  all.resize(ends.size() + 1);
  for (const Ask& ask : script.asks) {
    if (ask.system != system || script.shell.directives[ask.directive].late) continue;
    const auto component = static_cast<std::size_t>(
        std::ranges::count_if(ends, [&](std::size_t end) { return end < ask.directive; }));
    all[component].add(ask.name, ask.value, ask.span);
  }
  return all;
}

bool has_variable(const Script& script, std::string_view name) {
  return script.by_name.find(name) != script.by_name.end();
}

// What is asked of the steps of one system: looked up once for all of a script.
struct Steps {
  Relations alone, mixed;
  std::optional<Given> job;  // options that a row is about, each once; nullopt: of several jobs

  Steps(const Script& script, std::string_view name) : alone(name, "step"), mixed(name, "mixed") {
    const std::vector<Given> jobs = requests(script, name);
    if (script.request.system != name || jobs.size() > 1) return;
    job.emplace();
    for (std::size_t i = 0; i < jobs.front().options.size(); ++i) {
      const GivenOption& one = jobs.front().options[i];
      const bool known = std::ranges::any_of(job->options, [&](const GivenOption& other) {
        return other.name == one.name && other.value == one.value;
      });
      if (!known && mixed.concerns(one)) job->add(one.name, one.value, jobs.front().spans[i]);
    }
  }

  void check(const Script& script, const Launch& launch, Findings& findings) const {
    Given step;
    for (const Option& one : launch.options)
      if (GivenOption given{one.name, one.value.text()};
          alone.concerns(given) || mixed.concerns(given))
        step.add(given.name, given.value, one.span);
    if (step.options.empty()) return;
    const auto broken = alone.broken(
        step.options, 0, [&](std::string_view name) { return has_variable(script, name); });
    report(launch.program, step, broken, findings);
    if (!job) return;
    Given both = *job;
    const std::size_t first = both.options.size();
    for (std::size_t i = 0; i < step.options.size(); ++i)
      both.add(step.options[i].name, step.options[i].value, step.spans[i]);
    auto between = mixed.broken(both.options, first);
    std::erase_if(between, [&](const BrokenRelation& one) {
      return std::ranges::count(broken, one.id, &BrokenRelation::id) > 0;
    });
    report(launch.program, both, between, findings);
  }
};

void steps(const Script& script, Findings& findings) {
  if (script.launches.empty()) return;
  const Steps slurm(script, "slurm");
  const Steps flux(script, "flux");
  for (const Launch& launch : script.launches)
    if (is_slurm(launch) || launch.kind == "flux run")
      (is_slurm(launch) ? slurm : flux).check(script, launch, findings);
}

// sbatch in a job hands the job's SLURM_* on, and srun of the new job reads them as options.
void submits(const Script& script, Findings& findings) {
  if (script.request.system != "slurm") return;
  for (const Command& command : script.shell.commands) {
    std::string_view program;
    for (const Word& word : command.words) {
      const std::string_view text = script.shell.at(word.span);
      const std::string_view name = text.substr(text.rfind('/') + 1);
      // A script that removes any of them has thought of it.
      if (text.find("SLURM_") != text.npos && (program == "unset" || program == "env")) return;
      if (program.empty()) program = name;
    }
    if (program == "sbatch")
      findings.add(
          "submit-in-job", command.words.front().span,
          "sbatch inside a job hands the SLURM_* variables of this job on to the next one",
          "unset $(compgen -v SLURM_ | grep -vx SLURM_CONF) before it, or hpclaunch submit");
  }
}

}  // namespace

void check_requests(const Script& script, Findings& findings) {
  for (const Scheduler& one : rows<Scheduler>()) {
    const Relations relations(one.name, "job");
    for (const Given& given : requests(script, one.name))
      report(one.program(), given,
             relations.broken(given.options, 0,
                              [&](std::string_view name) { return has_variable(script, name); }),
             findings);
  }
  steps(script, findings);
  submits(script, findings);
}

}  // namespace hpclaunch::lint
