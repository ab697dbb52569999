// A batch script: directives from what was typed, the profile and its rules; modules; and `hpclaunch run`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "hpclaunch/batch.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/paths.h"
#include "hpclaunch/render.h"
#include "hpclaunch/secret.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "world/activate.h"
#include "world/directives.h"
#include "world/site.h"

namespace hpclaunch::job {

namespace {

constexpr long kDefaultSeconds = 1800;

struct Draft {
  const Scheduler* system = nullptr;
  ChosenProfile chosen;
  JobOptions options;
  JobNeeds needs;                                            // of the profile, for this node type
  const Stack* stack = nullptr;                              // of the profile
  Modules modules;                                           // of the stack, which the script loads
  std::vector<std::string> versions;                         // of --module, for some of `modules`
  std::optional<Prepared> prepared;                          // where the profile knows the nodes
  std::vector<std::string> directives;                       // without sentinel
  std::vector<std::pair<std::string, std::string>> reasons;  // directives of a rule, and why
  Diagnostics diagnostics;

  const Profile* profile() const { return chosen.profile.get(); }
};

bool on_path(const Scheduler& system, const World& world) {
  return world.program(system.program()).has_value();
}

Result<const Scheduler*> choose_system(const BatchRequest& wanted, const World& world,
                                       const Profile* profile) {
  const std::string name =
      wanted.scheduler.empty() && profile != nullptr ? profile->scheduler : wanted.scheduler;
  if (const Scheduler* named = find_row<Scheduler>(name)) return named;
  if (const Scheduler* here = installed(world)) return here;
  for (const Scheduler& one : rows<Scheduler>())
    if (on_path(one, world)) return &one;
  return Error{ErrorKind::usage, "no batch system found (looked for sbatch, qsub, flux, bsub)",
               "--profile NAME of a site, or --scheduler slurm"};
}

Status find_system(const Request& request, const BatchRequest& wanted, const World& world,
                   Draft& draft) {
  Result<ChosenProfile> chosen =
      choose_profile(request.profile, world, {world.host},
                     request.profile.empty() && wanted.scheduler.empty(), draft.diagnostics);
  if (!chosen) return chosen.error();
  draft.chosen = std::move(*chosen);
  if (const Profile* profile = draft.profile(); profile != nullptr && profile->retired) {
    const Retirement& end = *profile->retired;
    return Error{ErrorKind::usage, fmt::format("{} was retired on {}", profile->name, end.date),
                 end.successor.empty() ? "hpclaunch profile list" : "--profile " + end.successor};
  }
  const Result<const Scheduler*> system = choose_system(wanted, world, draft.profile());
  if (!system) return system.error();
  draft.system = *system;
  return Done{};
}

// "train" of "python3 -u src/train.py": what every batch system takes for a name.
std::string job_name(const std::vector<std::string>& command) {
  constexpr std::size_t kMost = 15;  // what qstat shows, and what older PBS takes
  const auto script =
      std::ranges::find_if(command, [](const std::string& word) { return word.ends_with(".py"); });
  std::string name = script == command.end() ? command.front() : *script;
  name = name.substr(name.rfind('/') + 1);
  name = name.substr(0, std::min(name.find('.'), kMost));
  for (char& c : name)
    if (!consists_of(std::string_view(&c, 1), "_-")) c = '_';
  const bool letter = !name.empty() && consists_of(name.substr(0, 1), "") && name.front() > '9';
  return letter ? name : "job";
}

// What decides about directives: the site's nodes, in a job with these modules.
Result<Prepared> planned(const Request& request, const std::shared_ptr<const Profile>& profile,
                         const std::vector<std::string>& modules) {
  CaseWorld job;
  job.env["LOADEDMODULES"] = joined(modules, ":");
  if (!profile->example_host.empty()) job.hosts = {profile->example_host};
  Request asked = before_the_job(request);
  asked.modules.clear();
  return prepare(asked, made_up_world(profile, job), Purpose::show);
}

// The stack that is planned with the typed modules alone: its modules are what the job loads before them.
Result<const Stack*> stack_of(const Request& request,
                              const std::shared_ptr<const Profile>& shared) {
  const Profile& profile = *shared;
  if (profile.stacks.empty()) return nullptr;
  const auto conditional = [](const Stack& stack) { return !stack.when.empty(); };
  const std::string& name = request.stack.empty() ? profile.stack : request.stack;
  if (!request.stack.empty() || profile.nodes.empty() ||
      std::ranges::none_of(profile.stacks, conditional)) {
    const Stack* const named = profile.find_stack(name);
    return named != nullptr || !name.empty() ? named : &profile.stacks.front();
  }
  std::vector<std::string> typed;
  if (!loads_none(request)) typed = request.modules;
  const Result<Prepared> prepared = planned(request, shared, typed);
  if (!prepared) return prepared.error();
  const auto* planned = std::get_if<std::string>(&prepared->plan.find_choice("stack")->value());
  return planned == nullptr ? nullptr : profile.find_stack(*planned);
}

// Another version that was typed stands in a module's place, before an environment is activated: two of them conflict.
// hpclaunch run loads the other ones.
void choose_modules(const Request& request, Draft& draft) {
  if (draft.stack == nullptr || loads_none(request)) return;
  const auto name = [](const std::string& module) { return module.substr(0, module.find('/')); };
  draft.modules = draft.stack->modules;
  for (std::string& one : draft.modules.load) {
    const auto typed = std::ranges::find(request.modules, name(one), name);
    if (typed == request.modules.end()) continue;
    one = *typed;
    draft.versions.push_back(*typed);
  }
  if (!draft.versions.empty())
    for (const std::string& folder : request.module_folders)
      draft.modules.use.push_back(absolute_path(folder));
  if (request.modules.empty() && module_lines(draft.modules).empty())
    draft.diagnostics.push_back(
        {"stack-without-modules", Severity::note,
         fmt::format("the profile of {} has no modules for stack {}: the script loads none",
                     draft.profile()->name, draft.stack->name),
         "--module NAME, or --module none"});
}

Status plan_job(const Request& request, Draft& draft) {
  const Profile* profile = draft.profile();
  draft.options.nodes = requested_nodes(request);
  draft.options.memory = request.job_memory;
  draft.options.devices = request.job_devices.value_or(0);
  if (profile != nullptr) {
    draft.needs = profile->job;
    const Result<const Stack*> stack = stack_of(request, draft.chosen.profile);
    if (!stack) return stack.error();
    draft.stack = *stack;
    choose_modules(request, draft);
  }
  if (profile == nullptr || profile->nodes.empty()) return Done{};
  std::vector<std::string> loaded = draft.modules.load;
  if (!loads_none(request))
    std::ranges::copy_if(request.modules, std::back_inserter(loaded), [&](const std::string& one) {
      return std::ranges::count(draft.versions, one) == 0;
    });
  Result<Prepared> prepared = planned(request, draft.chosen.profile, loaded);
  if (!prepared) return prepared.error();
  std::ranges::copy(prepared->diagnostics, std::back_inserter(draft.diagnostics));
  draft.options.nodes = prepared->plan.nodes();
  draft.options.devices = 0;  // rules say how
  const Result<const NodeModel*> model = choose_model(request, profile, EnvSnapshot{}, {});
  if (model && *model != nullptr) draft.needs = needs_on(profile->job, (*model)->name);
  draft.prepared = std::move(*prepared);
  return Done{};
}

void check_queue(const std::string& profile, const JobNeeds& needs, const JobOptions& options,
                 Diagnostics& diagnostics) {
  std::vector<std::string> limits;
  std::vector<std::string> names;
  for (const Queue& queue : needs.queues) {
    if (!queue.name.empty() && std::ranges::count(names, queue.name) == 0)
      names.push_back(queue.name);
    if (queue.name != options.queue) continue;
    if (takes(queue, options.nodes, options.seconds)) return;
    limits.push_back(limits_text(queue));
  }
  if (!limits.empty())
    diagnostics.push_back({"queue-limit", Severity::warning,
                           fmt::format("queue {} may refuse {} for {}: it takes {}", options.queue,
                                       counted(options.nodes, "node"), clock_text(options.seconds),
                                       joined(limits, "; ")),
                           "omit -q for a queue that fits"});
  else if (!names.empty())
    diagnostics.push_back({"queue-unknown", Severity::note,
                           fmt::format("the profile of {} does not list queue {} ({})", profile,
                                       options.queue, joined(names, ", "))});
}

Status choose_options(const BatchRequest& wanted, const EnvSnapshot& env, Purpose purpose,
                      Draft& draft) {
  JobOptions& options = draft.options;
  options.seconds = kDefaultSeconds;
  if (!wanted.time.empty()) {
    const Result<long> typed = parse_time_limit(wanted.time);
    if (!typed) return typed.error();
    options.seconds = *typed;
  } else {
    if (const std::vector<Queue>& queues = draft.needs.queues; !queues.empty())
      options.seconds =
          std::max(kDefaultSeconds,
                   std::ranges::min_element(queues, {}, &Queue::least_seconds)->least_seconds);
    draft.diagnostics.push_back(
        {"time-limit-default", Severity::note,
         fmt::format("no --time: the job ends after {} minutes", options.seconds / 60),
         "-t 1:30:00"});
  }
  const Directives& known = draft.system->directives;
  if (known.reservation == known.queue && options.queue.empty())
    options.queue = std::exchange(options.reservation, "");
  if (const Profile* profile = draft.profile()) {
    if (const Status added = add_job_needs(draft.needs, options); !added) return added.error();
    if (!wanted.job.queue.empty())
      check_queue(profile->name, draft.needs, options, draft.diagnostics);
  }
  if (!wanted.job.account.empty() || options.account.empty()) return Done{};
  if (env.has(draft.system->account_variable))
    options.account.clear();
  else
    draft.diagnostics.push_back({"account-missing",
                                 purpose == Purpose::start ? Severity::error : Severity::warning,
                                 fmt::format("{} needs an account; the script has {}",
                                             draft.profile()->name, options.account),
                                 "-A ACCOUNT"});
  return Done{};
}

// Rules first: of two equal options the later one counts.
Status make_directives(const Request& request, const World& world, Draft& draft) {
  for (const auto& [option, file] :
       {std::pair{"--output", &draft.options.output}, std::pair{"--error", &draft.options.error}})
    if (const Status named = name_in_directory(*draft.system, option, world, *file); !named)
      return named.error();
  const Directives& known = draft.system->directives;
  const std::string_view memory = known.memory.substr(0, known.memory.find('{'));
  const std::vector<std::string>& typed = draft.options.batch;
  if (draft.prepared)
    for (const std::string& directive : draft.prepared->plan.launch.batch) {
      if (!draft.options.memory.empty() && directive.starts_with(memory)) continue;
      if (gives_way(draft.system->name, directive, typed)) continue;
      draft.directives.push_back(directive);
      const Setting* choice =
          draft.prepared->plan.find_choice("batch " + directive.substr(0, directive.find('=')));
      const std::string why = choice == nullptr ? "" : choice->history.back().why;
      if (!draft.reasons.empty() && draft.reasons.back().second == why)
        draft.reasons.back().first += ", " + directive;
      else if (!why.empty())
        draft.reasons.emplace_back(directive, why);
    }
  std::vector<std::string> nodes;
  if (draft.profile() == nullptr)
    nodes = node_directives(*draft.system, request, draft.options, draft.diagnostics);
  Result<std::vector<std::string>> own = job_directives(*draft.system, draft.options);
  if (!own) return own.error();
  if (!known.always.empty()) own->emplace_back(known.always);
  if (!known.join.empty() && draft.options.error.empty()) own->emplace_back(known.join);
  std::ranges::copy(nodes, std::back_inserter(*own));
  std::ranges::remove_copy_if(
      *own, std::back_inserter(draft.directives),
      [&](const std::string& one) { return is_replaced(draft.system->name, one, typed); });
  std::ranges::copy(typed, std::back_inserter(draft.directives));
  const std::string_view option = known.live.substr(0, known.live.find(' '));
  if (!option.empty() && std::ranges::none_of(draft.directives, [&](const std::string& one) {
        return one.starts_with(option);
      }))
    draft.directives.emplace_back(known.live);
  return check_directives(*draft.system, draft.directives);
}

// In lines of a page's width.
std::string comment(const std::string& line) {
  constexpr int kWidth = 110;
  const std::string safe = render::printable(line);
  const std::vector<std::string_view> words = split(safe, ' ');
  std::string text;
  for (const std::string& part : render::fill({words.begin(), words.end()}, kWidth)) {
    const bool directive = part.starts_with("flux:") || part.starts_with("FLUX:");
    text += (directive ? "# and " : "# ") + part + "\n";
  }
  return text;
}

// A secret is not written into a file that others may read: the job has it in its environment.
std::string script_words(const std::vector<std::string>& words, const EnvSnapshot& env) {
  const auto secrets =
      secret_references(words, env, "export it in the job, a secret is not written here");
  std::string text;
  for (const std::string& word : words) {
    const auto made = secrets.find(word);
    text += (text.empty() ? "" : " ") +
            (made == secrets.end() ? quote_sh(word) : late_word(made->second));
  }
  return text;
}

std::string heading(const Draft& draft, const BatchRequest& wanted, const EnvSnapshot& env) {
  const JobOptions& options = draft.options;
  std::string what = fmt::format(
      "{}: {}, at most {}",
      draft.profile() != nullptr ? draft.profile()->name : std::string(draft.system->title),
      counted(options.nodes, "node"), clock_text(options.seconds));
  if (!options.queue.empty()) what += ", queue " + options.queue;
  if (draft.prepared)
    what += fmt::format(", {}", counted(draft.prepared->plan.world_size(), "rank"));
  std::string text = "#!/bin/bash -l\n" + comment(what);
  text += comment("Written by: " + script_words(wanted.typed, env));
  text += comment(fmt::format("Submit with: {} FILE", draft.system->submit));
  for (const auto& [directives, why] : draft.reasons)
    text += comment(fmt::format("{}: {}", directives, why));
  if (draft.prepared)
    for (const OutsideRule& one : draft.prepared->plan.explanation.outside)
      if (one.of_script)
        text += comment(fmt::format("Decided without the job's environment: rule {} {} ({})",
                                    one.rule, one.holds ? "holds" : "does not hold", one.tests));
  return text;
}

std::string body(const Draft& draft, const Request& request, const BatchRequest& wanted,
                 const World& world) {
  const Scheduler& system = *draft.system;
  std::string text;
  const auto line = [&](std::string_view before, std::string_view words) {
    if (!words.empty()) text += fmt::format("\n{}{}\n", before, words);
  };
  line("", system.enter_directory);
  line("# A job submitted with --export=NONE would keep its variables from the ranks.\n",
       system.clean_environment);
  Modules quoted = draft.modules;
  for (std::vector<std::string>* words : {&quoted.use, &quoted.load})
    for (std::string& word : *words) word = quote_sh(word);
  std::vector<std::string> modules = module_lines(quoted);
  for (std::string& one : modules) one += " || exit 1";
  if (!modules.empty())
    line(fmt::format("# Stack {} of {}.\n", draft.stack->name, draft.profile()->name),
         joined(modules, "\n"));
  // Another machine has its own installation.
  const bool here = on_path(system, world);
  if (!here)
    text +=
        "\ncommand -v hpclaunch >/dev/null || {\n"
        "  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2\n"
        "  exit 127\n"
        "}\n";
  std::vector<std::string> words = {here ? world.installation + "/hpclaunch" : "hpclaunch", "run"};
  for (std::size_t i = 0; i < wanted.run_words.size(); ++i)
    if (wanted.run_words[i] == "--module" &&
        std::ranges::count(draft.versions, wanted.run_words[i + 1]) > 0)
      ++i;
    else
      words.push_back(wanted.run_words[i]);
  words.emplace_back("--");
  std::ranges::copy(request.command, std::back_inserter(words));
  line("# The job ends with the exit status of this line. hpclaunch plan shows what it does.\n",
       script_words(words, world.env));
  return text;
}

}  // namespace

Result<BatchScript> batch_script(const Request& request, const BatchRequest& wanted,
                                 const EnvSnapshot& env, Purpose purpose) {
  const World world = this_world(env);
  Draft draft;
  draft.options = wanted.job;
  if (const Status good = request.job_memory.empty() ? Done{} : check_memory(request.job_memory);
      !good)
    return good.error();
  if (const Status good = check_activation(request, world); !good) return good.error();
  if (const Status found = find_system(request, wanted, world, draft); !found) return found.error();
  if (const Status planned = plan_job(request, draft); !planned) return planned.error();
  if (const Status chosen = choose_options(wanted, env, purpose, draft); !chosen)
    return chosen.error();
  if (draft.options.name.empty()) draft.options.name = job_name(request.command);
  if (const Status made = make_directives(request, world, draft); !made) return made.error();
  BatchScript script;
  script.text = heading(draft, wanted, env);
  for (const std::string& one : draft.directives)
    script.text += fmt::format("{} {}\n", draft.system->sentinels.front(), one);
  script.body = script.text.size();
  script.text += body(draft, request, wanted, world);
  script.scheduler = draft.system;
  script.name = draft.options.name;
  script.output = draft.options.output;
  script.error = draft.options.error;
  script.diagnostics = std::move(draft.diagnostics);
  return script;
}

}  // namespace hpclaunch::job
