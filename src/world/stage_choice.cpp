// Which way of staging, from where to where, and what the program's environment is then.
#include "world/stage_choice.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "hpclaunch/text.h"
#include "world/programs.h"

namespace hpclaunch::job {

namespace {

// OLCF's own figures for an environment of PyTorch: staging is slower than its parallel file system on 8 nodes.
// https://docs.olcf.ornl.gov/software/python/sbcast_conda.html
constexpr int kFewestNodes = 16;
constexpr int kFindSeconds = 600;
constexpr std::size_t kMostOfFile = 64u << 20;

// The environment of an archive is where the first of these files is; the last line has it.
constexpr const char* kFindRoot =
    "case $1 in\n"
    "*.sqsh | *.sqfs | *.squashfs | *.img) unsquashfs -l \"$1\" ;;\n"
    "*) tar -tf \"$1\" ;;\n"
    "esac | awk '{ sub(/^(squashfs-root|\\.)\\//, \"\") }\n"
    "  match($0, /(^|\\/)(pyvenv\\.cfg|conda-meta\\/history)$/) {\n"
    "    kind = /cfg$/ ? \"venv\" : \"conda\"; root = substr($0, 1, RSTART - 1); exit }\n"
    "  END { print kind \":\" root }'";

Error stage_error(std::string message, std::string hint) {
  return {ErrorKind::usage, std::move(message), std::move(hint)};
}

std::string active_prefix(const EnvSnapshot& env) {
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (std::string prefix = env.get(name); prefix.starts_with('/')) {
      while (prefix.size() > 1 && prefix.ends_with('/')) prefix.pop_back();
      return prefix;
    }
  return "";
}

std::string why_no_sbcast(const Site& site, const Request& request, const World& world,
                          Stage& stage) {
  const Scheduler* system = site.batch.scheduler;
  if (system == nullptr || system->broadcast.empty()) return "this is not a Slurm job";
  const Result<std::string> program = world.program(std::string(system->broadcast));
  if (!program) return fmt::format("{} is not on PATH", system->broadcast);
  stage.sbcast = *program;
  const int hosts = static_cast<int>(site.hosts.names.size());
  const bool all = site.hosts.allocation && request.nodes.value_or(hosts) == hosts;
  return all ? "" : "the launch does not use all nodes of the job";
}

struct ArchiveLayout {
  std::string kind;  // "venv", "conda", "" unknown
  std::string root;
};

Result<ArchiveLayout> look_into(const std::string& archive, const World& world) {
  const Result<sys::Captured> said =
      world.capture({"/bin/sh", "-c", kFindRoot, "sh", archive}, kFindSeconds, nullptr);
  if (!said) return said.error();
  const std::string line(trim(said->out));
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos || (line == ":" && !said->err.empty()))
    return Error{ErrorKind::invalid,
                 fmt::format("--stage-from {}: {}", archive, shown(said->complaint(), 300)),
                 "name a tar archive or a squashfs image of an environment"};
  return ArchiveLayout{line.substr(0, colon), line.substr(colon + 1)};
}

// The same source has the same place on every node in every launch, so that it is found again.
std::string id_of(const Stage& stage, const World& world) {
  std::string key = fmt::format("{} {}", world.real_path(stage.source), stage.old_prefix);
  if (!stage.tree) key += " " + world.stamp(stage.source);
  if (stage.method == "venv")
    if (const Result<std::string> python = world.program("python3"); python) key += " " + *python;
  return fmt::format("env-{:08x}{:08x}", fnv1a(key), fnv1a(key + "."));
}

// launch_copper.sh, or launch_copper_SITE.sh of the same folder; "" for none.
std::string find_copper(const World& world) {
  const std::string path = world.env.get("PATH");
  for (const std::string_view folder : split(path, ':')) {
    const Result<std::vector<std::string>> names = world.list_directory(std::string(folder));
    if (folder.empty() || !names) continue;
    for (const std::string& name : *names)
      if (std::string file = fmt::format("{}/{}", folder, name);
          name.starts_with("launch_copper") && name.ends_with(".sh") && world.is_program(file))
        return file;
  }
  return "";
}

std::vector<std::string> names_in(const std::string& folder, const World& world) {
  const Result<std::vector<std::string>> names = world.list_directory(folder);
  return names ? *names : std::vector<std::string>();
}

// Not an empty one, which tells nothing; "" for none.
std::string first_file(const std::string& folder, const World& world) {
  for (const std::string& name : names_in(folder, world)) {
    const std::string path = folder + "/" + name;
    const bool below = world.is_directory(path);
    std::string found = below ? first_file(path, world) : path;
    const Result<std::string> text =
        below || found.empty() ? Error{} : world.read_file(path, kMostOfFile);
    if (below ? !found.empty() : !text || !text->empty()) return found;
  }
  return "";
}

// Copper shows every file below its mount point. A conda environment is activated from there; of a virtual environment
// and of a directory of packages Python's search path alone names it.
// https://github.com/argonne-lcf/copper
Status complete_copper(const Request& request, const World& world, const Site& site, Stage& stage) {
  const std::string base = request.stage.to.empty() ? "/tmp" : request.stage.to;
  stage.base = world.absolute(fmt::format("{}/{}/copper", base, site.facts.user));
  if (world.has(stage.source + "/conda-meta/history")) {
    stage.known_file = stage.source + "/conda-meta/history";
    stage.old_prefix = stage.source;
    stage.environment = stage.base + stage.source;
    stage.variable = "CONDA_PREFIX";
    return Done{};
  }
  stage.packages = stage.base + stage.source;
  const std::string libraries = stage.source + "/lib";
  if (world.has(stage.source + "/pyvenv.cfg")) {
    stage.known_file = stage.source + "/pyvenv.cfg";
    for (const std::string& name : names_in(libraries, world))
      if (const std::string folder = fmt::format("{}/{}/site-packages", libraries, name);
          world.has(folder))
        stage.packages = stage.base + folder;
    return Done{};
  }
  stage.known_file = first_file(stage.source, world);
  if (!stage.known_file.empty()) return Done{};
  return stage_error(fmt::format("--stage copper: \"{}\" has no files", stage.source),
                     "--venv DIR, --conda PREFIX, or --stage-from DIR");
}

Result<std::string> find_source(const Request& request, const World& world) {
  const std::string& typed = request.stage.from;
  std::string source = typed.empty() ? active_prefix(world.env) : world.absolute(typed);
  if (!source.empty() && !world.has(source))
    return Error{ErrorKind::not_found,
                 fmt::format("--stage-from {}: there is no such file", source),
                 "name an archive, an environment, or a requirements file"};
  return source;
}

// --stage-to, the job's own directory of each node, the site's disk where it is there or this is no node, /tmp.
std::string base_of(const Request& request, const World& world, const Site& site) {
  if (!request.stage.to.empty()) return world.absolute(request.stage.to);
  if (std::string own = world.env.get("SLURM_TMPDIR"); own.starts_with('/')) return own;
  if (site.profile() == nullptr) return "/tmp";
  Facts facts;
  facts.job["user"] = site.facts.user;
  const Result<std::string> disk = expand(site.profile()->job.local, facts);
  const bool usable = disk && !disk->empty() && (!site.is_here || world.is_directory(*disk));
  return usable ? *disk : "/tmp";
}

// Fills in what follows from the method.
Status complete(const Request& request, const World& world, const Site& site, Stage& stage) {
  stage.base = base_of(request, world, site);
  stage.keep = request.stage.keep;
  std::string kind = "venv";
  if (stage.tree) {
    stage.old_prefix = stage.source;
    if (world.has(stage.source + "/conda-meta")) kind = "conda";
  } else {
    stage.old_prefix = active_prefix(world.env);
    if (stage.method != "venv") {
      Result<ArchiveLayout> layout = look_into(stage.source, world);
      if (!layout) return layout.error();
      kind = layout->kind;
      stage.root = layout->root;
    }
  }
  stage.variable = kind == "conda" ? "CONDA_PREFIX" : "VIRTUAL_ENV";
  stage.id = id_of(stage, world);
  stage.environment = fmt::format("{}/hpclaunch-{}/{}{}", stage.base, world.user_id, stage.id,
                                  stage.root.empty() ? "" : "/" + stage.root);
  return Done{};
}

// What is known before the choice, and the source and the programs.
struct Known {
  StageFacts facts;
  Stage stage;
};

Result<Known> find_facts(const Request& request, const Site& site, const World& world) {
  Result<std::string> source = find_source(request, world);
  if (!source) return source.error();
  Known known;
  auto& [facts, stage] = known;
  stage.source = *source;
  stage.tree = world.is_directory(stage.source);
  facts.nodes = request.nodes.value_or(static_cast<int>(site.hosts.names.size()));
  facts.requirements = source->ends_with(".txt");
  facts.source = *source;
  facts.tree = stage.tree;
  stage.copper = find_copper(world);
  facts.copper = !stage.copper.empty();
  facts.no_sbcast = why_no_sbcast(site, request, world, stage);
  return known;
}

}  // namespace

std::string useful_stage(const Request& request, const Site& site, const World& world) {
  Result<Known> known = find_facts(request, site, world);
  if (!known || known->facts.source.empty()) return "--stage auto, with --venv DIR or --conda NAME";
  StageFacts& facts = known->facts;
  facts.nodes = std::max(facts.nodes, kFewestNodes);  // what was measured decides, not their number
  const Result<StageMethod> method = choose_stage("auto", facts);
  return "--stage " + (method ? method->name : "auto");
}

Result<StageMethod> choose_stage(const std::string& typed, const StageFacts& facts) {
  const auto chosen = [](const char* name, std::string why) -> Result<StageMethod> {
    return StageMethod{name, std::move(why)};
  };
  const bool automatic = typed == "auto";
  if (typed == "none") return chosen("none", "--stage none");
  if (facts.source.empty()) {
    constexpr const char* kNothing = "no conda or virtual environment is active";
    if (automatic) return chosen("none", kNothing);
    return stage_error(fmt::format("--stage {}: {}", typed, kNothing),
                       "--venv DIR, --conda NAME, or --stage-from FILE");
  }
  if (automatic && facts.requirements) return chosen("venv", "the source is a requirements file");
  if ((typed == "venv") != facts.requirements && !automatic)
    return stage_error(
        fmt::format("--stage {}: \"{}\" is {}", typed, facts.source,
                    facts.requirements ? "a requirements file" : "not a requirements file (*.txt)"),
        facts.requirements ? "--stage venv" : "--stage-from requirements.txt");
  if (typed == "copper" && (!facts.copper || !facts.tree))
    return stage_error(facts.copper ? "--stage copper: the source is not a directory"
                                    : "--stage copper: launch_copper.sh is not on PATH",
                       facts.copper ? "--stage-from DIR" : "--module copper");
  if (typed == "sbcast" && !facts.no_sbcast.empty())
    return stage_error("--stage sbcast: " + facts.no_sbcast, "--stage copy");
  if (!automatic) return chosen(typed.c_str(), "--stage " + typed);
  const std::string nodes = counted(facts.nodes, "node");
  if (facts.tree && facts.nodes < kFewestNodes)  // no program runs from an archive
    return chosen("none",
                  fmt::format("{}: below {} a shared file system is as fast", nodes, kFewestNodes));
  if (facts.copper && facts.tree)
    return chosen("copper", fmt::format("{}, and launch_copper.sh is on PATH", nodes));
  const std::string where = facts.tree ? nodes : "the source is an archive; " + nodes;
  if (facts.no_sbcast.empty()) return chosen("sbcast", where + " of a Slurm job");
  return chosen("copy", fmt::format("{}; {}", where, facts.no_sbcast));
}

Result<ChosenStage> find_stage(const Request& request, const Site& site, const World& world) {
  const std::string& typed = request.stage.method;
  if (typed.empty()) return ChosenStage{};
  Result<Known> known = find_facts(request, site, world);
  if (!known) return known.error();
  const Result<StageMethod> method = choose_stage(typed, known->facts);
  if (!method) return method.error();
  Stage stage;
  if (method->name != "none") {
    stage = std::move(known->stage);
    stage.method = method->name;
    stage.seconds = request.stage.seconds.value_or(kFindSeconds);
    const Status done = stage.method == "copper" ? complete_copper(request, world, site, stage)
                                                 : complete(request, world, site, stage);
    if (!done) return done.error();
  }
  std::string why = method->why;
  if (!stage.method.empty())
    why += fmt::format("; {} to {}", stage.source,
                       stage.environment.empty() ? stage.packages : stage.environment);
  Decision decision(typed == "auto" ? Layer::computed : Layer::command_line, method->name, {}, why);
  return ChosenStage{std::move(stage), Setting{"stage", {std::move(decision)}}};
}

EnvSnapshot staged_environment(const EnvSnapshot& env, const Stage& stage) {
  if (stage.method.empty()) return env;
  if (!stage.packages.empty()) {
    const std::string old = env.get("PYTHONPATH");
    return env.with({{"PYTHONPATH", stage.packages + (old.empty() ? "" : ":" + old)}});
  }
  const std::string& old = stage.old_prefix;
  std::map<std::string, std::optional<std::string>> changes;
  if (!old.empty())
    for (const auto& [name, value] : env.values()) {
      if (name == "PWD" || name == "OLDPWD" || name == "_" || value.find(old) == std::string::npos)
        continue;
      std::vector<std::string> pieces;
      for (const std::string_view piece : split(value, ':')) {
        const bool inside =
            piece.starts_with(old) && (piece.size() == old.size() || piece[old.size()] == '/');
        pieces.push_back(inside ? stage.environment + std::string(piece.substr(old.size()))
                                : std::string(piece));
      }
      if (const std::string text = joined(pieces, ":"); text != value) changes[name] = text;
    }
  const std::string bin = stage.environment + "/bin";
  const std::string path = changes.contains("PATH") ? *changes["PATH"] : env.get("PATH");
  const auto parts = split(path, ':');
  if (std::ranges::count(parts, bin) == 0) changes["PATH"] = path.empty() ? bin : bin + ":" + path;
  changes[stage.variable] = stage.environment;
  changes["PYTHONHOME"] = std::nullopt;
  return env.with(changes);
}

std::string staged_program(const std::string& typed, const std::string& resolved,
                           const Stage& stage) {
  if (stage.method.empty() || !stage.packages.empty()) return resolved;
  const std::string& old = stage.old_prefix;
  if (!old.empty() && resolved.starts_with(old + "/"))
    return stage.environment + resolved.substr(old.size());
  const bool named = typed.find('/') == std::string::npos;
  if (named && !stage.tree && (resolved.find('/') == std::string::npos || is_python(typed)))
    return stage.environment + "/bin/" + typed;
  return resolved;
}

}  // namespace hpclaunch::job
