// A text that is made before its job runs: what only the job knows is found by the shell that runs the text.
#include "hpclaunch/late.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hpclaunch/hosts.h"
#include "hpclaunch/render.h"
#include "hpclaunch/secret.h"
#include "hpclaunch/text.h"
#include "world/later.h"

namespace hpclaunch::job {

namespace {

constexpr const char* kLibexec = "HPCLAUNCH_LIBEXEC";

/// How a shell finds what a stand-in is for.
struct Finding {
  std::string variable;  ///< that has it then
  std::string sh;        ///< lines
  std::string command;   ///< of any other shell, whose output it is
  bool words = false;    ///< the output may have blanks or patterns, and `command` has no '$'
  std::string option;    ///< that makes it known
};

// As find_batch has it.
Finding job_id(const Scheduler& system) {
  const std::string name(system.job_variable);
  const std::string outside = fmt::format("?run this in a {} job", system.title);
  Finding job{"HPCLAUNCH_JOB", "", "env printenv " + name, true, "--job-id ID"};
  if (system.outer_variable.empty()) {
    job.sh = fmt::format("HPCLAUNCH_JOB=${{{}:{}}}\n", name, outside);
  } else {
    job.sh =
        fmt::format("HPCLAUNCH_JOB=${{{}-${{{}:{}}}}}\n", name, system.outer_variable, outside);
    job.command += fmt::format(" {} | head -n 1", system.outer_variable);
  }
  if (system.task_variable.empty()) return job;
  const auto in_array = [&](const char* id, const std::string& task) {
    return fmt::format(fmt::runtime(system.task_form), id, task);
  };
  job.sh += fmt::format("case ${{{}:-0}} in 0 | *[!0-9]*) ;; *) HPCLAUNCH_JOB=\"{}\" ;; esac\n",
                        system.task_variable,
                        in_array("${HPCLAUNCH_JOB}", fmt::format("${}", system.task_variable)));
  job.command = fmt::format("env printenv {} {} | sed 'N; s/\\n\\([1-9][0-9]*\\).*/{}/; s/\\n.*//'",
                            name, system.task_variable, in_array("", "\\1"));
  return job;
}

// What is put into HPCLAUNCH_PLAN must not end a field or an item of it.
Finding escaped(const Finding& plain) {
  constexpr const char* kEscape = "sed 's/%/%25/g; s,/,%2F,g; s/:/%3A/g; s/=/%3D/g'";
  const std::string name =
      plain.variable.starts_with("HPCLAUNCH_") ? plain.variable : "HPCLAUNCH_" + plain.variable;
  Finding made{name + "_ESCAPED", "", "", true, plain.option};
  made.sh = fmt::format("{}=$(printf '%s' \"${}\" | {})\n", made.variable, plain.variable, kEscape);
  made.command = fmt::format(
      "{} | {}", plain.command.empty() ? "env printenv " + plain.variable : plain.command, kEscape);
  return made;
}

/// Expressions of one kind of shell, and the lines that come before them.
class Shell {
 public:
  Shell(const Late& late, EnvFormat format) : late_(late), format_(format) {}

  const std::string& lines() const { return lines_; }

  /// For a text in double quotes.
  std::string use(const std::string& name, std::set<std::string>& options) {
    const bool posix = format_ == EnvFormat::sh;
    const std::string plain = name.substr(1);
    if (name.front() == ':' && posix) {
      options.insert(fmt::format("--set {}=VALUE", plain));
      return fmt::format("${{{0}:+:${0}}}", plain);
    }
    const Finding found = find(name);
    if (!found.option.empty()) options.insert(found.option);
    if (found.sh.empty() && found.command.empty())
      return posix && name != "HOME" && name != "PWD"
                 ? fmt::format("${{{}?is not set in this job}}", name)
                 : "$" + name;
    if (name.front() == '%' && posix) (void)use(plain, options);
    if (name == kShortHost) (void)use(kFirstHost, options);
    if (known_.insert(name).second) lines_ += posix ? found.sh : line(found);
    return "$" + found.variable;
  }

 private:
  Finding find(const std::string& name) const {
    if (name == "USER")
      return {"HPCLAUNCH_USER", "HPCLAUNCH_USER=${USER:-${LOGNAME:-uid$(id -u)}}\n", "id -un",
              false, "--user NAME"};
    if (name == "UID") return {"HPCLAUNCH_UID", "HPCLAUNCH_UID=$(id -u)\n", "id -u", false, ""};
    if (late_.system != nullptr && name == late_.system->job_variable) return job_id(*late_.system);
    if (name == kFirstHost)
      return {name,
              fmt::format("{0}=$({1})\n: \"${{{0}:?run this in a {2}}}\"\n", name,
                          late_.system->first_host, late_.job),
              std::string(late_.system->first_host), false, "--hostfile FILE"};
    if (name == kShortHost)
      return {name, fmt::format("{}=${{{}%%.*}}\n", name, kFirstHost),
              fmt::format("echo ${} | sed 's/[.].*//'", kFirstHost), false, "--hostfile FILE"};
    if (name == kLibexec)
      return {name,
              "if ! HPCLAUNCH_LIBEXEC=$(readlink -f \"$(command -v hpclaunch)\"); then\n"
              "  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2\n"
              "  exit 127\nfi\n"
              "HPCLAUNCH_LIBEXEC=${HPCLAUNCH_LIBEXEC%/bin/*}/libexec/hpclaunch\n",
              "", false, ""};
    if (name.front() == '+')
      return {"HPCLAUNCH_SIGNAL_TIME",
              fmt::format("HPCLAUNCH_SIGNAL_TIME=$(($(date +%s) + {}))\n", name.substr(1)),
              fmt::format("date -d '{} seconds' +%s", name.substr(1)), false, ""};
    if (name.front() == '%') return escaped(find(name.substr(1)));
    if (name.front() == ':')
      return {"HPCLAUNCH_BEHIND_" + name.substr(1), "",
              fmt::format("env printenv {} | sed -n 's/^./:&/p'", name.substr(1)), true,
              fmt::format("--set {}=VALUE", name.substr(1))};
    return {name, "", "", false, ""};
  }

  // An empty one of the job's own is said, and does not end the user's shell.
  std::string line(const Finding& found) const {
    const std::string outside =
        found.variable == "HPCLAUNCH_JOB" || found.variable == kFirstHost ? late_.job : "";
    std::string text;
    if (format_ == EnvFormat::csh)
      text = fmt::format("set {0} = {2}`{1}`{2} ;\n", found.variable, found.command,
                         found.words ? "\"" : "");
    else
      text = fmt::format("set -g {} ({}) ;\n", found.variable, found.command);
    if (outside.empty()) return text;
    return text + fmt::format(fmt::runtime(format_ == EnvFormat::csh
                                               ? "if ( \"${0}\" == \"\" ) sh -c {1} ;\n"
                                               : "test -n \"${0}\"; or sh -c {1} ;\n"),
                              found.variable,
                              fmt::format("'echo \"hpclaunch: run this in a {}\" >&2'", outside));
  }

  const Late& late_;
  EnvFormat format_;
  std::set<std::string> known_;
  std::string lines_;
};

bool is_given(const Decision& decision) {
  return decision.layer == Layer::command_line || decision.layer == Layer::environment;
}

void show(std::string& text) {
  if (has_late(text)) text = late_shown(text);
}

void show(Setting& setting) {
  for (Decision& one : setting.history) {
    if (auto* text = std::get_if<std::string>(&one.value); text != nullptr && !is_given(one))
      show(*text);
    if (auto* ranks = std::get_if<PerRank>(&one.value))
      for (std::vector<std::string>& items : ranks->items)
        std::ranges::for_each(items, [](auto& item) { show(item); });
    show(one.why);
    show(one.condition);
  }
}

}  // namespace

const Scheduler* later_system(const Request& request, const Profile& profile) {
  if (const Scheduler* named = find_row<Scheduler>(profile.scheduler)) return named;
  const std::string& launcher = request.launcher.empty() ? profile.launcher : request.launcher;
  for (const Scheduler& one : rows<Scheduler>())
    if (!launcher.empty() && one.launcher == launcher) return &one;
  return nullptr;
}

void make_late(const Request& request, const Profile& profile, JobFacts& facts) {
  facts.later = true;
  if (request.user.empty()) facts.user = stand_in("USER");
  if (const Scheduler* system = later_system(request, profile); request.job_id.empty() && system)
    facts.id = stand_in(system->job_variable);
}

// A machine that submits to the batch system has the installation of the job.
std::string later_shim(const Request& request, const Site& site, const World& world) {
  if (!site.facts.later) return "";
  const Scheduler* system = later_system(request, *site.profile());
  const bool here = system != nullptr && world.program(system->program());
  return here ? "" : stand_in(kLibexec) + "/hpclaunch-shim";
}

Prepared with_late(const Request& request, const Site& site, Prepared prepared) {
  Plan& plan = prepared.plan;
  if (!plan.hosts.later) return prepared;
  Late& late = prepared.late;
  late.system = later_system(request, *site.profile());
  if (late.system != nullptr) late.job = fmt::format("{} job", late.system->title);
  late.hosts = {plan.hosts.names.front()};
  if (plan.nodes() > 1) late.hosts.push_back(plan.hosts.names[1]);
  const auto conditional = [](const auto& one) { return !one.when.empty(); };
  if (const Setting* stack = plan.find_choice("stack");
      stack != nullptr && request.stack.empty() &&
      std::ranges::any_of(site.profile()->stacks, conditional))
    late.options.push_back("--stack " + value_on(stack->value(), {}));
  if (site.model != nullptr && request.node_type.empty() &&
      std::ranges::any_of(site.profile()->nodes, conditional))
    late.options.push_back("--node-type " + site.model->name);
  late.wire = plan.environment.wire;
  late.argv = prepared.argv;
  for (const Setting& setting : plan.environment.settings) {
    const auto* text = std::get_if<std::string>(&setting.value());
    if (text != nullptr && !is_given(setting.history.back()))
      late.values[setting.name] = with_first_host(*text, late.hosts.front());
  }
  for (Setting& setting : plan.environment.settings) show(setting);
  for (Setting& setting : plan.explanation.choices) show(setting);
  for (std::vector<std::string>* list :
       {&plan.environment.make_dirs, &plan.launch.batch, &plan.launch.profile_args, &prepared.argv})
    for (std::string& text : *list) show(text);
  for (std::string* text :
       {&plan.environment.wire, &plan.launch.directory, &plan.supervision.output.log_dir})
    show(*text);
  for (std::vector<Diagnostic>* list : {&plan.explanation.reports, &prepared.diagnostics})
    for (Diagnostic& one : *list) show(one.message), show(one.fix);
  for (IdleRule& one : plan.explanation.idle) show(one.needs);
  for (OutsideRule& one : plan.explanation.outside) show(one.tests);
  return prepared;
}

namespace {

bool names(const std::string& text, const std::string& host) {
  return text.find(short_host(host)) != std::string::npos;
}

// The hosts of a job are not known to its text, but for the first one.
Status check_hosts(const Prepared& prepared, bool argv) {
  constexpr const char* kUnknownAddress = "the address of rank 0 is known only in the job";
  const Late& late = prepared.late;
  const auto has_one = [&](const std::string& text) {
    return std::ranges::any_of(late.hosts, [&](const auto& host) { return names(text, host); });
  };
  const bool command = late.system != nullptr && !late.system->first_host.empty();
  const auto first = [](const std::string& text) {
    return text.find(kFirstHost) != std::string::npos || text.find(kShortHost) != std::string::npos;
  };
  std::string what;
  if (argv && std::ranges::any_of(late.argv, has_one))
    what = fmt::format("the launch line of {} has host names, known only in the job",
                       prepared.plan.launch.launcher);
  for (const auto& [name, value] : late.values) {
    const bool others = late.hosts.size() > 1 && names(value, late.hosts.back());
    if (others && what.empty()) what = name + " has host names, known only in the job";
    if (first(value) && !command && what.empty()) what = kUnknownAddress;
  }
  if (what.empty() && !command && first(late.wire)) what = kUnknownAddress;
  if (what.empty() && has_one(late.wire))
    what = "HPCLAUNCH_PLAN has host names, known only in the job";
  if (what.empty()) return Done{};
  return Error{ErrorKind::unsupported, what,
               "run this command in the job, or pass --hostfile FILE"};
}

// HPCLAUNCH_PLAN: what is between two '^' is a stand-in, which is escaped.
std::string wire_value(std::string_view wire) {
  std::string text;
  bool inside = false;
  for (const std::string_view part : split(wire, '^')) {
    if (!text.empty()) text += '^';
    text += inside ? stand_in("%" + std::string(part)) : std::string(part);
    inside = !inside;
  }
  return text;
}

// The text does not depend on what is exported where it is made, as far as the job exports it too.
void add_exports(const Plan& plan, std::vector<EnvChange>& changes) {
  for (const Setting& setting : plan.environment.settings) {
    const auto* text = std::get_if<std::string>(&setting.value());
    if (setting.history.back().layer != Layer::environment || text == nullptr ||
        is_secret(setting.name, *text))
      continue;
    changes.push_back({setting.name, *text, "environment: as where this was made"});
  }
  std::ranges::sort(changes, {}, &EnvChange::name);
}

void use_late(const Prepared& prepared, Shell& shell, std::vector<EnvChange>& changes) {
  const Late& late = prepared.late;
  for (EnvChange& change : changes) {
    const Setting* setting = prepared.plan.find_env(change.name);
    const auto kept = late.values.find(change.name);
    std::string value = kept == late.values.end() ? "" : kept->second;
    if (setting == nullptr) value = wire_value(late.wire);
    if (setting != nullptr && change.value)
      change.yields = setting->history.back().layer < Layer::profile_require;
    if (!change.value || !has_late(value) || change.prints != EnvChange::Prints::value) continue;
    std::set<std::string> options;
    change.late = late_parts(value);
    for (LatePart& part : change.late)
      if (part.late) part.text = shell.use(part.text, options);
    change.fix = fmt::format("{}", fmt::join(options, " "));
  }
}

// Words of the launch line, but those that were typed.
void use_late(const Prepared& prepared, Shell& shell, ShellChanges& made) {
  made.argv = prepared.late.argv;
  std::set<std::string> options;
  for (const std::string& word : made.argv) {
    if (!has_late(word) || std::ranges::count(prepared.plan.launch.command, word) > 0 ||
        std::ranges::count(prepared.plan.launch.launcher_args, word) > 0)
      continue;
    std::vector<LatePart>& parts = made.words[word] = late_parts(word);
    for (LatePart& part : parts)
      if (part.late) part.text = shell.use(part.text, options);
  }
}

}  // namespace

std::vector<std::string> late_notes(const Prepared& prepared) {
  constexpr const char* kUndecided = "Decided without the job's environment";
  std::vector<std::string> notes;
  const Plan& plan = prepared.plan;
  if (!plan.hosts.later) return notes;
  if (!prepared.late.job.empty())
    notes.push_back(fmt::format("Made outside a job: run it in a {}, which names its first host",
                                prepared.late.job));
  if (!plan.launch.image.empty())
    notes.push_back("In the image the values of this text count before what the job exports");
  if (prepared.container.engine != nullptr && !prepared.container.engine->limit.empty())
    notes.push_back("Limits are left out: hpclaunch run gives the container those of the job");
  std::vector<std::string> exported;
  for (const Setting& setting : plan.environment.settings)
    if (setting.history.back().layer == Layer::environment) exported.push_back(setting.name);
  if (!exported.empty())
    notes.push_back(fmt::format("As exported where this was made, unless the job exports it: {}",
                                fmt::join(exported, ", ")));
  for (const OutsideRule& one : plan.explanation.outside)
    notes.push_back(fmt::format("{}: rule {} {} ({})", kUndecided, one.rule,
                                one.holds ? "holds" : "does not hold", one.tests));
  for (const std::string& option : prepared.late.options)
    notes.push_back(fmt::format("{}: {}", kUndecided, option));
  return notes;
}

Result<ShellChanges> shell_changes(const Prepared& prepared, ShellNeeds needs) {
  ShellChanges made{"", environment_changes(prepared.plan), prepared.argv, {}};
  const bool late = prepared.plan.hosts.later;
  if (late) add_exports(prepared.plan, made.changes);
  for (EnvChange& change : made.changes) {
    const std::string value = change.value.value_or("");
    const bool secret = is_secret(change.name, value);
    if (secret && !needs.show_secrets && !value.empty())
      change.prints = EnvChange::Prints::reference;
  }
  if (late) {
    if (const Status good = check_hosts(prepared, needs.argv); !good) return good.error();
    Shell shell(prepared.late, needs.format);
    use_late(prepared, shell, made.changes);
    if (needs.argv) use_late(prepared, shell, made);
    made.preamble = shell.lines() + without_own(prepared.late, made.changes, needs.format);
    if (needs.format == EnvFormat::sh && !made.preamble.empty())
      made.preamble = "# What only the job knows.\n" + made.preamble + "\n";
  }
  if (needs.argv && !needs.show_secrets)
    made.words.merge(
        secret_references(made.argv, prepared.env, "export it first, its value is not printed"));
  if (needs.argv && !prepared.foreign.empty())
    made.preamble = remove_foreign(prepared.foreign) + made.preamble;
  made.preamble = prepared.activation + made.preamble;
  return made;
}

}  // namespace hpclaunch::job
