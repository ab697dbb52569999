#pragma once
// Batch systems as data: how each is recognised, what it grants, what can be asked of it. Nothing here
// runs a command or opens a file; job does, and hands the text back to the functions below.
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/diagnostic.h"
#include "hpclaunch/env.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/request.h"
#include "hpclaunch/result.h"
#include "hpclaunch/rows.h"

namespace hpclaunch {

/// Cores of a host as hwloc counts them, and its devices. {0-23, 2-3}
struct HostGrant {
  CpuSet cores;
  CpuSet devices;
  friend bool operator==(const HostGrant&, const HostGrant&) = default;
};

/// The hosts of a job or a host file, and what each is granted.
struct HostList {
  HostNames names;  ///< launch order, each once; never empty
  std::string why;  ///< where they come from
  std::string
      file;  ///< absolute path of a file with exactly these names, one per line; "" for none
  std::vector<int> slots;  ///< ranks of each host; empty: unknown for at least one
  std::string slots_why;
  bool slots_are_cores = false;  ///< slots count cores: no number of ranks where devices are
  bool allocation = false;       ///< the batch system's own list, which its launcher has too
  bool invented = false;         ///< stand-ins: the job will have others
  std::vector<int> granted;      ///< CPUs of each host as the batch system counts; empty: unknown
  std::vector<int> granted_in_all = {};  ///< with a host file: of every host of the job
  std::string granted_why;
  std::vector<HostGrant> grants = {};    ///< of each host, by name; empty: unknown
  std::string grants_by = {};            ///< what says so: "flux resource R"
  std::vector<int> places = {};          ///< as Hosts::places
  int own = -1;                          ///< as Hosts::own
  std::vector<Diagnostic> reports = {};  ///< lists that are not those of its hosts
};

/// What a batch system says about the end of the job.
struct TimeLeft {
  std::optional<long> seconds;  ///< nullopt: unlimited
  std::string
      since;  ///< `seconds` count from this local time ("Sat Nov 21 13:12:27 2026"); "": now
};

/// What a job has of its nodes, as counts.
struct JobGrants {
  std::map<std::string, int> cpus;  ///< by host
  bool whole = false;               ///< no other job is on these nodes
  std::string why;                  ///< "exec_host=n1/0*2, place=free"
};

/// A node as the batch system counts it: {32, false}.
struct NodeShare {
  int cpus = 0;            ///< 0: not said
  bool exclusive = false;  ///< one job has all of it
};

/// How a system's batch script spells options: the text of a directive, with {} for the value; "": it has none. One that
/// begins with ':' is added to the value of `nodes`, one with '[' to that of `name`.
struct Directives {
  std::string_view nodes = {};
  std::string_view time = {};
  std::string (*time_text)(long seconds) = nullptr;  ///< the value of `time`; none: clock_text
  std::string_view account = {};
  std::string_view queue = {};
  std::string_view name = {};
  std::string_view output = {};
  std::string_view filesystems = {};
  std::string_view constraint = {};
  std::string_view devices = {};  ///< on each node
  std::string_view memory = {};   ///< of each node, of "124G"
  std::string_view dependency = {};
  std::string_view array = {};
  std::string_view reservation = {};
  std::string_view exclude = {};
  std::string_view mail = {};
  std::string_view error = {};
  std::string_view always = {};  ///< needs no value
  std::string_view join = {};    ///< the same, where no file for errors is named
  // Where no profile says how:
  std::string_view spread = {};     ///< each node another host
  std::string_view cpus = {};       ///< of each node, where a job has one CPU of it unasked
  std::string_view ranks = {};      ///< places for them on each node
  std::string_view whole = {};      ///< all of each node, for such a system
  std::string_view live = {};       ///< the output grows while the job runs
  std::string_view in_folder = {};  ///< file of the output in a directory, without its ending
};
void fields(Directives& row, auto&& field) {
  field("nodes", row.nodes);
  field("time", row.time);
  field("time_text", row.time_text);
  field("account", row.account);
  field("queue", row.queue);
  field("name", row.name);
  field("output", row.output);
  field("filesystems", row.filesystems);
  field("constraint", row.constraint);
  field("devices", row.devices);
  field("memory", row.memory);
  field("dependency", row.dependency);
  field("array", row.array);
  field("reservation", row.reservation);
  field("exclude", row.exclude);
  field("mail", row.mail);
  field("error", row.error);
  field("always", row.always);
  field("join", row.join);
  field("spread", row.spread);
  field("cpus", row.cpus);
  field("ranks", row.ranks);
  field("whole", row.whole);
  field("live", row.live);
  field("in_folder", row.in_folder);
}

/// What a batch system says of a job that was submitted.
struct JobState {
  enum class Phase { waiting, running, ended };
  Phase phase = Phase::waiting;
  std::string name;                ///< in the system's word: "PENDING"
  std::string why = {};            ///< why it waits, or why it ended; "" where it does not say
  std::string starts = {};         ///< expected start; "": unknown
  std::string queue = {};          ///< where it waits; "": not said
  std::string output = {};         ///< path of the job's output; "": not said
  std::optional<int> status = {};  ///< of an ended job, as a shell has it; nullopt: it has none
  bool never = false;  ///< waits, and cannot start as it was submitted: "PartitionTimeLimit"
};

/// "3 of 12": where `id` stands among `ids`, one on each line; "" where it does not.
std::string place_in_queue(std::string_view ids, std::string_view id);

/// A command that asks for a job's state, and what reads its answer. nullopt: the answer says nothing.
struct StateQuestion {
  Words command;  ///< "{job}" is the job id
  std::optional<JobState> (*read)(std::string_view text) = nullptr;
  std::string_view off = {};  ///< in the answer where it is switched off, and is not asked again
};
void fields(StateQuestion& row, auto&& field) {
  field("command", row.command, Field::command);
  field("read", row.read, Field::required);
  field("off", row.off);
}

/// Part of a message of a submit command, and what to do then.
struct SubmitHint {
  std::string_view message;
  std::string_view hint;
};
void fields(SubmitHint& row, auto&& field) {
  field("message", row.message, Field::unique);
  field("hint", row.hint, Field::required);
}

/// A variable that a batch system sets in its jobs by itself, so that its value is not the user's.
struct OwnVariable {
  std::string_view name;          ///< "OMP_NUM_THREADS"
  std::string_view same_as = {};  ///< only where it has the value of this one: "NCPUS"; "": any
  Words beside = {};              ///< only where one of these is set
  std::string_view value = {};    ///< only with this value: "PCI_BUS_ID"
  std::string_view unless = {};   ///< not where the job asked for it by this resource: "ompthreads"
  bool devices = false;  ///< a list of devices: only with as many as the job is known to have
};
void fields(OwnVariable& row, auto&& field) {
  field("name", row.name, Field::unique);
  field("same_as", row.same_as);
  field("beside", row.beside);
  field("value", row.value);
  field("unless", row.unless);
  field("devices", row.devices);
}

/// One batch system: a row of profiles/programs/batch-systems.json. What reads an answer of its own is a function of
/// src/scheduler, by name.
struct Scheduler {
  std::string_view name;                    ///< as profiles spell it: "pbs"
  std::string_view title;                   ///< "PBS"
  std::string_view job_variable;            ///< holds the job id; set in every job
  std::string_view task_variable = {};      ///< number, from 1, of this job in an array of jobs
  std::string_view task_form = {};          ///< "{}[{}]": job id of such a job, by both
  std::string_view instance_variable = {};  ///< set in every instance of a nested system (Flux)
  std::string_view outer_variable = {};     ///< job id where job_variable is not set
  bool nested = false;                      ///< runs inside another system's job
  bool common_variable = false;  ///< other programs set job_variable too: hosts must be named

  std::string_view hosts_file = {};      ///< variable: path of a file with the hosts
  bool one_per_line = false;             ///< that file has a name per line, nothing else
  Words hosts_variables = {};            ///< variables that list the hosts
  Words ask_hosts = {};                  ///< command that prints the hosts
  Words ask_grants = {};                 ///< the same with grants; asked first
  Words ask_job = {};                    ///< command that prints an instance's job id
  std::string_view nodes_variable = {};  ///< number of nodes
  bool launch_node = false;              ///< the first host may be a launch node that runs no ranks
  /// `text`: output of ask_grants or ask_hosts, or content of the file `path`; both "" where variables say it all. nullptr: `text` is
  /// read by hosts_from_text.
  /// Errors: `usage` for a component that must be named; `unsupported`, `invalid` for a bad list.
  Result<HostList> (*hosts)(const EnvSnapshot& env, const Request& request, const std::string& text,
                            const std::string& path) = nullptr;

  std::string_view cpus_variable = {};  ///< CPUs on each node: "4(x2),3"
  bool slurm_devices = false;           ///< kSlurmGpuLists and kSlurmGpuCount have the devices here
  std::span<const OwnVariable> own_variables = {};  ///< set by itself in a job
  std::string_view end_variable = {};               ///< end of the allocation, UNIX time
  Words ask_time_left = {};                         ///< command; "{job}" is the job id
  std::optional<TimeLeft> (*time_left)(std::string_view text) = nullptr;  ///< reads its output
  /// Reads the same answer. A system has it that confines no job to the CPUs that it counts.
  std::optional<JobGrants> (*grants)(std::string_view text) = nullptr;
  Words ask_node = {};  ///< with it: command; "{host}" is a node
  NodeShare (*node)(std::string_view text) = nullptr;

  std::string_view launcher = {};  ///< its own launcher
  /// TMPDIR of the tasks that it starts ends with it and the job id; ssh finds none on other nodes.
  std::string_view task_folder = {};
  std::string_view broadcast = {};  ///< program that copies a file to all nodes of the job
  Words remote_start = {};          ///< in place of ssh, Hydra's word for it, our script around it
  Words sentinels;           ///< what a directive begins with, the one to write first: "#PBS"
  std::string_view grammar;  ///< of its directives, in profiles/programs/grammars.json: "sbatch"
  std::string_view plugins = {};  ///< the same, of options that plug-ins of sites add: Pyxis
  Words keyed;  ///< options that may be given again, with another key: "-l" of "-l select=2"
  /// Options that ask for the same, so that one replaces another: {"--gpus-per-node", "--gres=gpu"}.
  std::span<const Words> same;
  Directives directives = {};
  std::string_view allocate = {};  ///< command for an interactive job; {} stands for its options
  std::string_view submit = {};    ///< command that queues a script
  std::string_view submit_options =
      {};  ///< with them it reads the script from stdin and prints the job id alone
  bool submits_stdin = true;                ///< false: it needs a file
  std::string_view account_variable = {};   ///< names the account where no option does
  std::string_view enter_directory = {};    ///< line of a script: goes to where it was submitted
  std::string_view clean_environment = {};  ///< line of a script: undoes --export=NONE for steps
  std::span<const StateQuestion> ask_state = {};  ///< the first that answers
  /// Prints the ids of the jobs that wait in "{queue}", the next one first.
  Words ask_queue = {};
  std::string_view unknown_job = {};  ///< in the answer for a job that it has forgotten
  std::string_view output_name = {};  ///< its file, where no option names one: "{name}.o{number}"
  std::string_view output_in = {};    ///< in a directory, which it takes for the output: "{id}.OU"
  bool forgets = false;  ///< may forget a job at its end: one that is followed prints its status
  std::string_view killed = {};   ///< how it begins a line of the output about a job that it ended
  Words on_first_node = {};       ///< before a command: runs it on the first node of "{job}"
  std::string_view cancel = {};   ///< command, before the job id
  std::string_view requeue = {};  ///< command, before the job id: it waits again, and starts anew
  std::string_view first_host = {};  ///< shell command in a job's script: prints its first host
  /// With `submit` on PATH and one of these files (the first may be named by `configured_by`) this machine
  /// belongs to such a system.
  std::string_view configured_by = {};
  Words configurations = {};
  std::string_view daemon = {};  ///< process that signals all processes of a job: "slurmstepd"
  /// Line of a configuration with the ports on which programs beside the ranks' may listen: "NAME=60001-63000".
  std::string_view ports_setting = {};
  std::string_view inherited_prefix = {};  ///< of its variables that harm another's job
  std::string_view inherited_why = {};
  std::span<const SubmitHint> hints = {};

  /// "flux" of "flux batch".
  std::string program() const { return std::string(submit.substr(0, submit.find(' '))); }
};
void fields(Scheduler& row, auto&& field) {
  field("name", row.name, Field::unique);
  field("title", row.title, Field::required);
  field("job_variable", row.job_variable, Field::required);
  field("task_variable", row.task_variable);
  field("task_form", row.task_form);
  field("instance_variable", row.instance_variable);
  field("outer_variable", row.outer_variable);
  field("nested", row.nested);
  field("common_variable", row.common_variable);
  field("hosts_file", row.hosts_file);
  field("one_per_line", row.one_per_line);
  field("hosts_variables", row.hosts_variables);
  field("ask_hosts", row.ask_hosts, Field::command);
  field("ask_grants", row.ask_grants, Field::command);
  field("ask_job", row.ask_job, Field::command);
  field("nodes_variable", row.nodes_variable);
  field("launch_node", row.launch_node);
  field("hosts", row.hosts);
  field("cpus_variable", row.cpus_variable);
  field("slurm_devices", row.slurm_devices);
  field("own_variables", row.own_variables);
  field("end_variable", row.end_variable);
  field("ask_time_left", row.ask_time_left, Field::command);
  field("time_left", row.time_left);
  field("grants", row.grants);
  field("ask_node", row.ask_node, Field::command);
  field("node", row.node);
  field("launcher", row.launcher);
  field("task_folder", row.task_folder);
  field("broadcast", row.broadcast);
  field("remote_start", row.remote_start);
  field("sentinels", row.sentinels, Field::required);
  field("grammar", row.grammar, Field::required);
  field("plugins", row.plugins);
  field("keyed", row.keyed);
  field("same", row.same);
  field("directives", row.directives);
  field("allocate", row.allocate, Field::required);
  field("submit", row.submit, Field::required);
  field("submit_options", row.submit_options);
  field("submits_stdin", row.submits_stdin);
  field("account_variable", row.account_variable);
  field("enter_directory", row.enter_directory);
  field("clean_environment", row.clean_environment);
  field("ask_state", row.ask_state);
  field("ask_queue", row.ask_queue, Field::command);
  field("unknown_job", row.unknown_job);
  field("output_name", row.output_name);
  field("output_in", row.output_in);
  field("forgets", row.forgets);
  field("killed", row.killed);
  field("on_first_node", row.on_first_node, Field::command);
  field("cancel", row.cancel, Field::required);
  field("requeue", row.requeue);
  field("first_host", row.first_host);
  field("configured_by", row.configured_by);
  field("configurations", row.configurations);
  field("daemon", row.daemon);
  field("ports_setting", row.ports_setting);
  field("inherited_prefix", row.inherited_prefix);
  field("inherited_why", row.inherited_why);
  field("hints", row.hints);
}

template <>
std::span<const Scheduler> rows<Scheduler>();  ///< innermost first

/// The job that this process is in. One value, found once; everything else reads it.
struct BatchJob {
  const Scheduler* scheduler = nullptr;     ///< nullptr: outside a job
  const Scheduler* outer = nullptr;         ///< of the job that a nested system runs in
  std::vector<const Scheduler*> inherited;  ///< recognised by variables of the submitting shell
  std::string id = "0";
  std::string key;                   ///< different for each job and instance; "" outside a job
  int cpus = 0;                      ///< CPUs of the first node; 0: unknown
  std::size_t devices = 0;           ///< devices of this node; 0: unknown
  bool devices_listed = false;       ///< which ones is known too
  std::optional<long long> ends_at;  ///< UNIX time, where a variable holds it
  std::string said;                  ///< answer to ask_time_left; "": not asked

  std::string name() const { return scheduler == nullptr ? "none" : std::string(scheduler->name); }
};

/// The innermost system whose job id and hosts are both named, else the innermost whose job id is: a
/// PBS job submitted from a Slurm job's shell inherits SLURM_JOB_ID, and is a PBS job.
BatchJob find_batch(const EnvSnapshot& env);

/// Why a variable of `env` is the batch system's, by name: "PBS sets it to NCPUS". What the user exports over such a value
/// with the same text cannot be told from it.
std::map<std::string, std::string> set_by_batch(const BatchJob& job, const EnvSnapshot& env);

/// True where the description of a job (qstat -f) has a resource that it asked for: "ompthreads".
bool asked_for(std::string_view description, std::string_view resource);

/// True when the environment, or a command that it names, gives the hosts of such a job.
bool names_hosts(const Scheduler& scheduler, const EnvSnapshot& env);

/// A host file's text (parse_host_file). `what` names it in the reasons.
Result<HostList> hosts_from_text(const std::string& text, const std::string& file,
                                 const std::string& what);

/// expand_hostlist. Errors: also `invalid` for what is not a host.
Result<HostNames> hosts_from_list(std::string_view list);

HostList hosts_from_names(HostNames names, std::string why);  ///< each name once, in order

/// Removes the launch node of an LSF job: where the profile says there is one; where it says nothing,
/// when jsrun is here and the first host has one slot and every other the same larger number.
void drop_launch_node(std::optional<bool> by_profile, bool jsrun_here, HostList& hosts);

/// "HH:MM:SS", "MM:SS", with "D-" or "D:" in front of three: the forms of Slurm and PBS. In seconds.
/// nullopt for anything else, also for a bare number: Slurm reads minutes, PBS seconds.
std::optional<long> parse_duration(std::string_view text);

/// What --time takes: "H:MM:SS", "D-HH:MM:SS", "90m", "1h30m", "2d"; in seconds. Errors: `usage`, with what was probably
/// meant: batch systems differ about bare numbers and "30:00".
Result<long> parse_time_limit(const std::string& text);

/// "124G", "32000M" of 1024 KiB, ... Errors: `usage`.
Status check_memory(const std::string& text);

std::string clock_text(long seconds);  ///< "1:30:00"

/// Each as a directive without its sentinel, and as the submit command takes it. Errors: `unsupported` for an option
/// that the system does not have, `usage` for a value that cannot stand in a directive. `options.batch` is checked only.
Result<std::vector<std::string>> job_directives(const Scheduler& scheduler,
                                                const JobOptions& options);

/// The job id in the output of the submit command: "123.server", "Job <123> is ...", "123;cluster". "": there is none.
std::string submitted_job(std::string_view output);

}  // namespace hpclaunch
