#pragma once
// The fields of each part of a profile, in the order of the manual: key, member, kind, whether it must be given, and
// what it says. Reader, writer, schema and manual follow from this; what several keys say together is in checks.cpp.
#include <tuple>
#include <type_traits>

#include "hpclaunch/profile.h"
#include "profile/kinds.h"
#include "profile/node_text.h"

namespace hpclaunch::profile {

/// The keys of which an object must have one; none: it may be empty.
template <class Part>
inline constexpr std::initializer_list<const char*> kOneOf = {};
template <>
inline constexpr std::initializer_list<const char*> kOneOf<Share> = {"cores", "core_memory_mb"};
template <>
inline constexpr std::initializer_list<const char*> kOneOf<JobNeeds> = {
    "account", "filesystems", "constraint", "local", "queues"};
template <>
inline constexpr std::initializer_list<const char*> kOneOf<Modules> = {"purge", "use", "load",
                                                                       "conda"};
template <>
inline constexpr std::initializer_list<const char*> kOneOf<Rule> = {
    "default", "require",    "prepend",   "unset", "launch",
    "batch",   "core_limit", "make_dirs", "report"};
template <>
inline constexpr std::initializer_list<const char*> kOneOf<Case> = {
    "refused",  "argv",   "argv_has", "argv_lacks", "cpus",      "devices", "set",
    "per_rank", "absent", "batch",    "core_limit", "make_dirs", "reports"};

void fields(Same<Origin> auto& origin, auto visit, Need why, bool reasons) {
  if (reasons)
    visit("why", origin.why, kSentence, why, "Why this is so, in one sentence without a full stop");
  visit("source", origin.source, kUrl, may, "Where it was read");
  visit("checked", origin.checked, kDate, may,
        "Date of the last comparison with the source; `validate` warns after 18 months");
  visit("printed", origin.printed, kLine, may,
        "What the source prints, where that is a mistake; the profile does what was meant");
  visit("printed_why", origin.printed_why, kLine, may, "Why the printed form fails");
  if (reasons) visit("disputed", origin.disputed, kLine, may, "What another source says");
}

void fields(Same<Retirement> auto& retired, auto visit) {
  visit("date", retired.date, kDate, must, "When");
  visit("successor", retired.successor, kProfileName, may,
        "Profile of the system that took its place");
  visit("", retired.origin, Inline{}, may, "");
}

void fields(Same<Signal> auto& signal, auto visit) {
  visit("env", signal.env, Variable{}, may, "Name of a variable that `like` matches");
  visit("like", signal.like, kPattern, may, "Pattern for its value; letter case counts");
  visit("host", signal.like, kPattern, may,
        "Instead of `env`: pattern for the name of this machine or of a node, whole or up to the "
        "first dot; letter case does not count");
  visit("proves", signal.proves, Flag{}, may,
        "`false`: supports a proof, and is none; other sites use such names");
}

void fields(Same<Share> auto& share, auto visit) {
  constexpr Whole kMemory{1, kMostMemory};
  visit("cores", share.cores, Whole{1, CpuSet::kCapacity}, may, "Cores that go with a device");
  visit("exact", share.exact, Flag{}, may, "A job with devices gets no other number of cores");
  visit("memory_mb", share.memory_mb, kMemory, may,
        "MiB that go with a device; none is asked for without it");
  visit("core_memory_mb", share.core_memory_mb, kMemory, may,
        "MiB that go with a core in jobs without devices; without it these get whole nodes");
  visit("devices", share.counts, List<Whole>{{1, CpuSet::kCapacity}, "numbers"}, may,
        "Numbers of devices that a part may have; any without it");
}

void fields(Same<Queue> auto& queue, auto visit) {
  constexpr long kMinute = 60;
  constexpr int kMostMinutes = 1'000'000;
  visit("name", queue.name, kOptionValue, may,
        "Name of the queue; jobs of these sizes need none without it");
  visit("option", queue.option, Choice{kQueueOptions}, may,
        "Option that names it, where that is not the batch system's usual one");
  visit("nodes", std::tie(queue.least_nodes, queue.most_nodes), Range{kMostNodes}, may,
        "Fewest and most nodes; `null`: no limit");
  visit("minutes", std::tie(queue.least_seconds, queue.most_seconds), Range{kMostMinutes, kMinute},
        may, "Shortest and longest time limit; `null`: no limit");
  visit("node_types", queue.node_types, List<Form>{kWord, "node types", true}, may,
        "It takes jobs on these node models alone; on any without it");
  visit("share", queue.share, Object{}, may, "Jobs that name it share nodes so");
  visit("", queue.origin, Inline{}, may, "");
}

void fields(Same<JobNeeds> auto& job, auto visit) {
  visit("account", job.account, kOptionValue, may,
        "Stands for the account, which is mandatory here, in scripts until one is named");
  visit("filesystems", job.filesystems, kOptionValue, may, "File systems of a job that names none");
  visit("constraint", job.constraint, kOptionValue, may, "Kind of node of a job that names none");
  visit("local", job.local, Templated{{}, true}, may,
        "Directory on a disk of each node, where `run --stage` puts copies if it is there");
  visit("queues", job.queues, Entries{""}, may,
        "Queues and the jobs that they take; the first that fits is used, and a queue may have "
        "several entries");
}

/// "defaults": members of the profile.
template <class P>
struct Defaults {
  P& profile;
};
template <class P>
void fields(const Defaults<P>& defaults, auto visit) {
  constexpr int kMostRanks = 1024;
  P& profile = defaults.profile;
  visit("ranks_per_device", profile.ranks_per_device, Whole{1, kMostRanks}, may,
        "Ranks that share a unit");
  visit("gpu_view", profile.gpu_view, Choice{kGpuViews}, may,
        "`own`: a rank sees its own device; `all`: it sees all; `launcher`: the launcher's flags "
        "decide");
  visit("device_mode", profile.device_mode, kWord, may, "Name of a device mode; the first without");
  visit("stack", profile.stack, kWord, may, "Name of a stack; the first without");
  visit("fill", profile.fill, Choice{kFills}, may, "Which devices fewer ranks than devices get");
  visit("mps", profile.mps, Choice{kOnOff}, may,
        "`on`: NVIDIA's MPS is started where ranks share a device");
}

void fields(Same<Modules> auto& modules, auto visit) {
  visit("purge", modules.purge, Flag{}, may, "`module purge` first");
  visit("use", modules.use, List<Form>{kFolder, "directories"}, may,
        "Directories for `module use`");
  visit("load", modules.load, List<Form>{kModule, "modules"}, may, "Modules, loaded in this order");
  visit("conda", modules.conda, kConda, may, "Conda environment to activate: a name or a path");
}

void fields(Same<Stack> auto& stack, auto visit) {
  visit("name", stack.name, kWord, must, "What `--stack` takes");
  visit("doc", stack.doc, kLine, may, "One line for people");
  visit("when", stack.when, List<Condition>{{{.never = "stack"}}, "conditions"}, may,
        "Chosen when one of them holds and `--stack` was not typed");
  visit("modules", stack.modules, Object{}, may, "Modules that make the stack");
  visit("", stack.origin, Inline{}, may, "");
}

void fields(Same<DeviceMode> auto& mode, auto visit) {
  visit("name", mode.name, kWord, must, "What `--device-mode` takes");
  visit("doc", mode.doc, kLine, may, "One line for people");
  visit("unit", mode.subdevices, Choice{kUnits}, must,
        "What one rank gets: a whole device, or a part of one");
  visit("mask", mode.mask, Variable{}, may,
        "Variable that shows devices to a process; the vendor's own without it");
  visit("mask_item", mode.mask_item, Templated{{.rank = true}}, may,
        "One entry of the mask; `${unit}` without it");
  visit("", mode.origin, Inline{}, may, "");
}

void fields(Same<Binding::Role> auto& role, auto visit) {
  constexpr std::size_t kBase = 0;
  visit("from", role.from_base, Choice{kRoleOrigins, kBase}, may,
        "`base`: counted from the rank's base; `group`: from the first core of its group");
  visit("first", role.first, Whole{}, must, "Offset of the first rank's helper");
  visit("stride", role.stride, Whole{}, may, "From one rank's helper to the next; with `group`");
}

void fields(Same<Binding> auto& binding, auto visit) {
  visit("id", binding.id, kWord, must, "Its name in explanations; replaces an inherited one");
  visit("when", binding.when, Condition{}, may, "Always without it");
  visit("per", binding.per, Choice{kGroups}, may, "What a group is");
  visit("first", binding.first, Whole{}, may, "Base of the group's first rank");
  visit("stride", binding.stride, Whole{}, may, "From one base to the next");
  visit("cores", std::tie(binding.low, binding.high), Width{}, may,
        "The rank's cores, counted from its base; required without `split`");
  visit("siblings", binding.siblings, Flag{}, may,
        "All hardware threads of each core, or only the first of each");
  visit("at_least", binding.at_least, Whole{}, may, "No base is below this");
  visit("at", binding.at, Bases{}, may,
        "Bases instead of `first` and `stride`: one list for all groups, or one for each");
  visit("split", binding.split, Flag{}, may,
        "Instead of `stride` and `cores`: cores from `first` to the end of the group, "
        "floor(cores / R) each");
  visit("across", binding.across, Flag{}, may,
        "With `split`: each rank gets its share of every group, as where all devices lie beside "
        "one");
  visit("groups", binding.groups, List<Whole>{{}, "groups", true}, may,
        "Order in which groups are filled; all, ascending, without it");
  visit("interleave", binding.interleave, Flag{}, may, "Rank i goes to group i mod groups");
  visit("roles", binding.roles, Roles{}, may, "Cores for helper threads, for `${role.NAME}`");
  visit("", binding.origin, Inline{}, must, "");
}

void fields(Same<Report> auto& report, const Allowed& allowed, auto visit) {
  visit("severity", report.severity, Choice{kSeverities}, must, "How grave it is");
  visit("message", report.message, Templated{allowed}, must, "What is the matter");
  visit("fix", report.fix, kLine, may, "What to type");
}

void fields(Same<Rule> auto& rule, auto visit) {
  visit("id", rule.id, kWord, must, "Its name in explanations; replaces an inherited one");
  visit("when", rule.when, Condition{{.late = true}}, may, "Always without it");
  const Allowed allowed{.late = is_late(rule.when)};
  visit("default", rule.defaults, Values{allowed.late}, may,
        "Variables that yield to what was exported");
  visit("require", rule.require, Values{allowed.late}, may,
        "Variables that override what was exported, with a warning");
  visit("prepend", rule.prepend, Values{allowed.late}, may,
        "Put before what was exported, with `:` between");
  visit("unset", rule.unset, List<Variable>{{}, "names"}, may,
        "Variables to remove, exported ones too");
  visit("launch", rule.launch, Words{kLauncherNames, allowed}, may, "Flags by launcher");
  visit("batch", rule.batch, Words{scheduler_names(), allowed}, may,
        "What the job must be submitted with, by batch system");
  visit("core_limit", rule.core_limit, kCoreLimit, may, "`ulimit -c` of every rank");
  visit("make_dirs", rule.make_dirs, List<Templated>{{allowed, true}, "folders"}, may,
        "Node-local folders that the ranks make");
  visit("report", rule.report, ReportOf{allowed}, may, "What the user reads");
  visit("why", std::tie(rule.origin.why, rule.whys), Reasons{kSentence}, must,
        "Why this is so: a sentence without a full stop, or an object with one for each variable, "
        "and for launch, batch, core_limit and make_dirs");
  visit("", rule.origin, Inline{.reasons = false}, must, "");
  visit("disputed", std::tie(rule.origin.disputed, rule.disputes), Reasons{kSentence}, may,
        "What another source says, of all or, in an object, of some of it");
}

void fields(Same<SiteContainer> auto& container, auto visit) {
  visit("engine", container.name, Choice{engine_names()}, must,
        "The engine, as in `--container-engine`");
  visit("options", container.options, List<Form>{kEngineOption, "options"}, may,
        "Options, values joined with `=`, in place of those that hpclaunch passes for devices");
  visit("binds", container.binds, List<Form>{kBind, "directories"}, may,
        "Paths of the host that ranks need, `/SRC` or `/SRC:/DST`, without variables");
  visit("", container.origin, Inline{}, must, "");
}

void fields(Same<Note> auto& note, auto visit) {
  visit("id", note.id, kWord, must, "Its name; replaces an inherited one");
  visit("title", note.title, kLine, must, "A heading");
  visit("text", note.text, kLine, must, "A paragraph");
  visit("", note.origin, Inline{}, may, "");
}

void fields(Same<Case> auto& one, auto visit) {
  visit("name", one.name, kLine, must, "What the case shows");
  visit("doc", one.doc, kLine, may, "More about it");
  visit("options", one.options, List<Form>{kLine, "strings"}, may,
        "Options as typed after `hpclaunch run`");
  visit("env", one.env, Variables{}, may, "What is exported");
  visit("hosts", one.hosts, List<Form>{kLine, "strings"}, may,
        "Hosts of the job; made up where fewer than nodes");
  visit("programs", one.programs, Named{}, may,
        "Programs on PATH; of an object the values are what `NAME --version` prints");
  visit("files", one.files, Named{}, may,
        "Files that are there; of an object the values are their texts");
  visit("launcher_version", one.launcher_version, kLine, may, "Version of the launcher");
  visit("user", one.user, kLine, may, "Login name");
  visit("job_id", one.job_id, kLine, may, "Makes it a job of the profile's batch system");
  visit("program", one.program, List<Form>{kLine, "strings"}, may,
        "The program; `python train.py` without it");
  visit("argv", one.argv, List<Form>{kLine, "strings"}, may,
        "The whole launch line before the shim, its program by base name");
  visit("argv_has", one.argv_has, List<Form>{kLine, "strings"}, may,
        "Each is one argument of the launch line");
  visit("argv_lacks", one.argv_lacks, List<Form>{kLine, "strings"}, may,
        "None is an argument of the launch line");
  visit("cpus", one.cpus, kLists, may, "CPU lists of the first node's ranks, `:` between");
  visit("devices", one.devices, kLists, may, "Units of the first node's ranks, `:` between");
  visit("set", one.set, Variables{}, may, "Variables with the same value on every rank");
  visit("per_rank", one.per_rank, Variables{}, may, "Values on the first node, `:` between ranks");
  visit("absent", one.absent, List<Variable>{{}, "names"}, may,
        "Variables that the plan leaves out or removes");
  visit("batch", one.batch, List<Form>{kLine, "strings", false, true}, may,
        "Directives; an empty list: none");
  visit("core_limit", one.core_limit, kCoreLimit, may, "Limit of core files");
  visit("make_dirs", one.make_dirs, List<Form>{kLine, "strings", false, true}, may,
        "Folders that are made; an empty list: none");
  visit("reports", one.reports, List<Form>{kLine, "strings", false, true}, may,
        "Ids of rules that report; an empty list: none");
  visit("refused", one.refused, kLine, may, "Part of the message with which the plan is refused");
  visit("", one.origin, Inline{}, may, "");
}

void fields(Same<Profile> auto& profile, auto visit) {
  visit("$schema", std::ignore, Ignored{}, may, "Where the schema is, for editors");
  visit("schema", std::ignore, Version{}, must, "Version of the format");
  visit("name", profile.name, kProfileName, must, "The file is NAME.json");
  visit("doc", profile.doc, kLine, may, "One line for people");
  visit("part", profile.part, Flag{}, may, "A building block that is only extended, never matched");
  visit("extends", profile.extends, List<Form>{kProfileName, "names", true}, may,
        "Profiles that this one builds on, merged left to right, its own entries last");
  visit("retired", profile.retired, Object{}, may, "The system is gone");
  visit("launcher", profile.launcher, Choice{kLauncherNames}, may, "Launcher that the site uses");
  visit("scheduler", profile.scheduler, Choice{scheduler_names()}, may, "Batch system of the site");
  visit("lsf_launch_node", profile.lsf_launch_node, Flag{}, may,
        "`true`: the first host of an LSF job is a launch node, which runs no ranks");
  visit("job", profile.job, Object{}, may,
        "What every batch job needs, beside `batch` of the rules");
  visit("example_host", profile.example_host, kLine, may,
        "A compute node as the batch system names it: the first host in plans made outside a job");
  visit("defaults", Defaults<std::remove_reference_t<decltype(profile)>>{profile}, Object{}, may,
        "What is used when nothing was typed");
  visit("detect", profile.detect, Entries{""}, may, "How the site is recognised");
  visit("nodes", profile.nodes, Entries{"name"}, may, "Kinds of nodes; the first is the default");
  visit("stacks", profile.stacks, Entries{"name"}, may,
        "Software stacks; the first is the default");
  visit("device_modes", profile.device_modes, Entries{"name"}, may,
        "What a rank can get of the devices; the first is the default");
  visit("bindings", profile.bindings, Entries{"id"}, may,
        "Cores of the ranks; the last that holds and fits is used");
  visit("rules", profile.rules, Entries{"id"}, may,
        "Variables, flags and directives; all that hold apply, in order");
  visit("containers", profile.containers, Entries{"engine"}, may,
        "Container engines of the site; the first that is there is used");
  visit("notes", profile.notes, Entries{"id"}, may, "For people");
  visit("expect", profile.expect, Entries{"name"}, may, "Golden cases for `profile test`");
}

}  // namespace hpclaunch::profile
