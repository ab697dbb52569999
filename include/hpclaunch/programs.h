#pragma once
// Rows about programs, of profiles/programs/. docs/reference/programs.md describes the keys.
#include "hpclaunch/grammar.h"
#include "hpclaunch/rows.h"

namespace hpclaunch {

void fields(Option& row, auto&& field) {
  constexpr std::string_view kTakes[] = {"nothing", "joined", "value", "pair"};
  constexpr std::string_view kDecides[] = {
      "nothing",   "ranks",     "per_node", "nodes",    "sets",    "per_set",
      "hosts",     "host_file", "binding",  "step",     "order",   "devices",
      "node_gpus", "node_gres", "no_env",   "some_env", "one_env", "edit_env",
      "failure",   "settings",  "module",   "program",  "text"};
  field("names", row.names, Field::required);
  field("takes", row.takes, kTakes);
  field("decides", row.decides, kDecides);
  field("harmless", row.harmless);
  field("key", row.key);
}

/// Rows of profiles/programs/grammars.json, and parts of others.
void fields(Grammar& row, auto&& field) {
  constexpr std::string_view kSyntaxes[] = {"getopt", "words", "argparse"};
  constexpr std::string_view kTakes[] = {"nothing", "joined", "value", "pair"};
  field("name", row.name);
  field("syntax", row.syntax, kSyntaxes);
  field("abbreviates", row.abbreviates);
  field("unknown", row.unknown, kTakes);
  field("family", row.family);
  field("options", row.options);
  field("flags", row.flags);
  field("joined", row.joined);
  field("values", row.values);
  field("pairs", row.pairs);
}
template <>
std::span<const Grammar> rows<Grammar>();

/// Of "srun", "mpiexec", "sbatch", ...; empty: the options of that program are not known.
Grammars grammars_of(std::string_view program);

/// A program that starts processes of its own: torchrun, srun, vllm serve. `name` is its grammar's.
struct StartingProgram {
  std::string_view name;
  Words programs, modules;
  std::span<const NamedWords> words;  ///< by program: the second word that makes it one
  enum class Starts { ranks, agent } starts = Starts::ranks;
  std::string_view interpreter;  ///< of the program behind its options
  Words agent_env, agent_masks, agent_args, agent_first, agent_others;
};
void fields(StartingProgram& row, auto&& field) {
  constexpr std::string_view kStarts[] = {"ranks", "agent"};
  field("name", row.name, Field::unique);
  field("programs", row.programs);
  field("modules", row.modules);
  field("words", row.words);
  field("starts", row.starts, kStarts, Field::required);
  field("interpreter", row.interpreter);
  field("agent_env", row.agent_env);
  field("agent_masks", row.agent_masks);
  field("agent_args", row.agent_args);
  field("agent_first", row.agent_first);
  field("agent_others", row.agent_others);
}
template <>
std::span<const StartingProgram> rows<StartingProgram>();

/// Options of other launchers and batch systems, and what to type instead.
struct ForeignOptions {
  Words names;
  std::string_view meant;
  /// How the value is meant: "a100:4" counts 4; a number is minutes or seconds, "1:30" minutes or hours.
  enum class Value { text, count, minutes, hours, seconds } value = Value::text;
};
void fields(ForeignOptions& row, auto&& field) {
  constexpr std::string_view kValues[] = {"text", "count", "minutes", "hours", "seconds"};
  field("names", row.names, Field::required);
  field("meant", row.meant, Field::required);
  field("value", row.value, kValues);
}
template <>
std::span<const ForeignOptions> rows<ForeignOptions>();

/// An MPI library by the names that programs are linked with.
struct MpiNames {
  std::string_view name, title;
  Words libraries, srun;
};
void fields(MpiNames& row, auto&& field) {
  field("name", row.name, Field::required);
  field("title", row.title, Field::unique);
  field("libraries", row.libraries, Field::required);
  field("srun", row.srun, Field::required);
}
template <>
std::span<const MpiNames> rows<MpiNames>();

/// Programs that exec another one: env, python, nsys.
struct Wrapper {
  Words programs, words;
  int skip = 0;
  bool assignments = false;
  bool interprets = false;  ///< what follows the options is a script
  Words wrapping_modules;
  Grammar grammar;
};
void fields(Wrapper& row, auto&& field) {
  field("programs", row.programs);
  field("words", row.words);
  field("skip", row.skip);
  field("assignments", row.assignments);
  field("interprets", row.interprets);
  field("wrapping_modules", row.wrapping_modules);
  field("grammar", row.grammar);
}
template <>
std::span<const Wrapper> rows<Wrapper>();
/// nullptr: it is none. Container engines are.
const Wrapper* find_wrapper(std::string_view program);
Grammars grammars_of(const Wrapper& row);

/// A container engine. "{}" stands for a value, "{from}" and "{to}" for a bind's.
struct ContainerEngine {
  static constexpr std::string_view kValue[] = {"{}"};
  std::string_view name;  ///< as in --container-engine
  Words programs;         ///< to look for on PATH, best first
  /// srun enters the container itself, and these are options of it: one that `srun --help` has where it can.
  std::string_view srun_option;
  std::string_view refused;  ///< why it cannot run ranks; "" where it can
  Words start;               ///< what follows the program
  Words image = kValue;
  bool image_first = false;    ///< before the options
  Words directory;             ///< as `image`, for an unpacked one; empty where it takes none
  Words files;                 ///< endings of image files that it is preferred for
  Words names;                 ///< beginnings of names that it takes; "*": any
  Words lookup;                ///< arguments with which it succeeds for a name that is there
  Words bind;                  ///< empty: binds are declared elsewhere, where `elsewhere` says
  std::string_view elsewhere;  ///< "\"mounts\" of the environment file"
  bool sees_host = false;      ///< the shim and the working directory are inside without a bind
  Words env;                   ///< passes a variable by its name; empty: all are inherited
  Words patterns;              ///< of the variables that launchers give, where `env` takes such
  Words limit;                 ///< keeps a resource limit: "{name}", "{soft}" and "{hard}"
  Words shares;                ///< directories that are the host's anyway
  Words write;                 ///< needed where a target of a bind is not in the image
  std::span<const NamedWords> devices;  ///< options for those of a vendor: {"nvidia", {"--nv"}}
  /// Options and variables of which one shows devices, or folders, of the host; empty: it shows them anyway.
  Words shows_devices, shows_folders;
  std::string_view shell;  ///< that it needs in the image
  Wrapper line;            ///< how its own command line is read
};
void fields(ContainerEngine& row, auto&& field) {
  field("name", row.name, Field::unique);
  field("programs", row.programs);
  field("srun_option", row.srun_option);
  field("refused", row.refused);
  field("start", row.start, Field::command);
  field("image", row.image, Field::command);
  field("image_first", row.image_first);
  field("directory", row.directory, Field::command);
  field("files", row.files);
  field("names", row.names);
  field("lookup", row.lookup, Field::command);
  field("bind", row.bind, Field::command);
  field("elsewhere", row.elsewhere);
  field("sees_host", row.sees_host);
  field("env", row.env, Field::command);
  field("patterns", row.patterns);
  field("limit", row.limit, Field::command);
  field("shares", row.shares);
  field("write", row.write, Field::command);
  field("devices", row.devices);
  field("shows_devices", row.shows_devices);
  field("shows_folders", row.shows_folders);
  field("shell", row.shell);
  field("line", row.line);
}
/// In the order of preference where several are there.
template <>
std::span<const ContainerEngine> rows<ContainerEngine>();
const ContainerEngine* engine_of(std::string_view program);  ///< nullptr: it is none

/// Names of a vendor's GPU models, as batch systems have them.
struct GpuModels {
  std::string_view vendor;
  Words names;
};
void fields(GpuModels& row, auto&& field) {
  field("vendor", row.vendor, Field::unique);
  field("names", row.names, Field::required);
}
template <>
std::span<const GpuModels> rows<GpuModels>();

/// The product name of an accelerator, by its place in pci.ids: "10de:2330".
struct PciModel {
  std::string_view id, name;
};
void fields(PciModel& row, auto&& field) {
  field("id", row.id, Field::unique);
  field("name", row.name, Field::required);
}
template <>
std::span<const PciModel> rows<PciModel>();

/// Whose GPUs a request names: "nvidia" for "gpu:b200:4", "nvidia_a100-sxm4-40gb"; "" where it names no model.
std::string_view gpu_vendor(std::string_view request);

/// What --for NAME adds.
struct Framework {
  std::string_view name, title;
  Words env, env_outside_slurm, needs;
  std::string_view note, source;
};
void fields(Framework& row, auto&& field) {
  field("name", row.name, Field::unique);
  field("title", row.title, Field::required);
  field("env", row.env);
  field("env_outside_slurm", row.env_outside_slurm);
  field("requires", row.needs);
  field("note", row.note);
  field("source", row.source, Field::required);
}
template <>
std::span<const Framework> rows<Framework>();

/// The variables in which a framework looks for its ranks.
struct FrameworkReads {
  std::string_view framework;
  Words when;
  std::string_view when_above;
  Words rank, world, local, device, local_size, node, address, port, coordinator;
};
void fields(FrameworkReads& row, auto&& field) {
  field("framework", row.framework, Field::required);
  field("when", row.when);
  field("when_above", row.when_above);
  field("rank", row.rank);
  field("world", row.world);
  field("local", row.local);
  field("device", row.device);
  field("local_size", row.local_size);
  field("node", row.node);
  field("address", row.address);
  field("port", row.port);
  field("coordinator", row.coordinator);
}
template <>
std::span<const FrameworkReads> rows<FrameworkReads>();

/// Options that exclude one another. An option is all of its names, each "NAME" or "NAME=BEGINNING OF THE VALUE".
struct Exclusion {
  std::string_view system, id;
  Words where;
  std::span<const Words> of, with;
  enum class Effect { refused, ignored } effect = Effect::refused;
  std::string_view since, until, source;
};
void fields(Exclusion& row, auto&& field) {
  constexpr std::string_view kEffects[] = {"refused", "ignored"};
  field("system", row.system, Field::required);
  field("id", row.id, Field::unique);
  field("where", row.where, Field::required);
  field("of", row.of, Field::required);
  field("with", row.with, Field::required);
  field("effect", row.effect, kEffects, Field::required);
  field("since", row.since);
  field("until", row.until);
  field("source", row.source, Field::required);
}
template <>
std::span<const Exclusion> rows<Exclusion>();

/// Options that need another one.
struct Need {
  std::string_view system, id;
  Words where;
  std::span<const Words> of, with;
  std::string_view since, until, source;
};
void fields(Need& row, auto&& field) {
  field("system", row.system, Field::required);
  field("id", row.id, Field::unique);
  field("where", row.where, Field::required);
  field("of", row.of, Field::required);
  field("with", row.with, Field::required);
  field("since", row.since);
  field("until", row.until);
  field("source", row.source, Field::required);
}
template <>
std::span<const Need> rows<Need>();

/// Variables that a launcher must not inherit.
struct Inherited {
  std::string_view launcher;
  Words names;
  std::string_view why;
  bool of_batch = false, shapes_step = false;
  Words beside, without;
};
void fields(Inherited& row, auto&& field) {
  field("launcher", row.launcher, Field::required);
  field("names", row.names, Field::required);
  field("why", row.why, Field::required);
  field("of_batch", row.of_batch);
  field("shapes_step", row.shapes_step);
  field("beside", row.beside);
  field("without", row.without);
}
template <>
std::span<const Inherited> rows<Inherited>();

/// What a job that is submitted from inside another one must not inherit.
struct Submission {
  std::string_view system;
  Words removes, keeps;  ///< beginnings of names; names
};
void fields(Submission& row, auto&& field) {
  field("system", row.system, Field::unique);
  field("removes", row.removes, Field::required);
  field("keeps", row.keeps);
}
template <>
std::span<const Submission> rows<Submission>();

/// What a thread waits for: by a function of Python (the first ones, in data), or by the kernel.
enum class Wait {
  none,
  collective,  ///< from here on for other ranks
  barrier,
  send,
  receive,
  rendezvous,
  device,  ///< a GPU, and with it maybe for other ranks
  lock,    ///< from here on not
  queue,   ///< what another thread or process puts in
  sleep,
  file,
  child,     ///< the end of a process
  agent,     ///< the end of the processes that are the program
  serve,     ///< a request from outside
  terminal,  ///< a person; also stopped by a debugger
  socket,    ///< from here on by the kernel alone: data of a socket or pipe
  connect,
  stopped,
  disk,  ///< of a disk or a driver, state D
  dead,  ///< ended, and nobody has asked
  running,
  asleep,  ///< for something unknown
};

/// Functions of Python libraries in which a thread waits.
struct KnownWait {
  std::string_view
      file;  ///< end of its path: "torch/distributed/distributed_c10d.py"; a name alone: of Python's own library
  Words functions;  ///< without class; "all_gather*"
  Wait kind = Wait::none;
  bool blocked = false;  ///< it computes, too: a wait only while its thread does not run
};
void fields(KnownWait& row, auto&& field) {
  constexpr std::string_view kKinds[] = {
      "none",  "collective", "barrier", "send",  "receive", "rendezvous", "device",  "lock",
      "queue", "sleep",      "file",    "child", "agent",   "serve",      "terminal"};
  field("file", row.file, Field::required);
  field("functions", row.functions, Field::required);
  field("kind", row.kind, kKinds, Field::required);
  field("blocked", row.blocked);
}
template <>
std::span<const KnownWait> rows<KnownWait>();

}  // namespace hpclaunch
