// Which way of staging, from where to where, and what the program's environment is then.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "hpclaunch/text.h"
#include "job/programs.h"
#include "job/stage.h"

namespace hpclaunch::job {

namespace {

// OLCF's own figures for an environment of PyTorch: staging is slower than its parallel file system on 8 nodes.
// https://docs.olcf.ornl.gov/software/python/sbcast_conda.html
constexpr int kFewestNodes = 16;
constexpr int kFindSeconds = 600;

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

std::string why_no_sbcast(const Site& site, const Request& request, const EnvSnapshot& env,
                          Stage& stage) {
  const Scheduler* system = site.batch.scheduler;
  if (system == nullptr || system->broadcast.empty()) return "this is not a Slurm job";
  const Result<std::string> program =
      sys::find_program(std::string(system->broadcast), env.get("PATH"));
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

Result<ArchiveLayout> look_into(const std::string& archive) {
  const Result<sys::Captured> said =
      sys::capture({"/bin/sh", "-c", kFindRoot, "sh", archive}, kFindSeconds);
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
std::string id_of(const Stage& stage, const EnvSnapshot& env) {
  struct stat info {};
  stat(stage.source.c_str(), &info);
  std::string key = fmt::format("{} {}", sys::real_path(stage.source), stage.old_prefix);
  if (!stage.tree)
    key += fmt::format(" {} {}.{}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  if (stage.method == "venv")
    if (const Result<std::string> python = sys::find_program("python3", env.get("PATH")); python)
      key += " " + *python;
  return fmt::format("env-{:08x}{:08x}", fnv1a(key), fnv1a(key + "."));
}

// launch_copper.sh, or launch_copper_SITE.sh of the same folder; "" for none.
std::string find_copper(const EnvSnapshot& env) {
  const std::string path = env.get("PATH");
  for (const std::string_view folder : split(path, ':')) {
    const Result<std::vector<std::string>> names = sys::list_directory(std::string(folder));
    if (folder.empty() || !names) continue;
    for (const std::string& name : *names)
      if (std::string file = fmt::format("{}/{}", folder, name);
          name.starts_with("launch_copper") && name.ends_with(".sh") && sys::is_executable(file))
        return file;
  }
  return "";
}

// Copper shows every file below its mount point. A conda environment is activated from there; of a virtual environment
// and of a directory of packages Python's search path alone names it.
// https://github.com/argonne-lcf/copper
Status complete_copper(const Request& request, const Site& site, Stage& stage) {
  namespace fs = std::filesystem;
  const std::string base = request.stage.to.empty() ? "/tmp" : request.stage.to;
  stage.base = fs::absolute(fmt::format("{}/{}/copper", base, site.facts.user)).lexically_normal();
  std::error_code failed;
  if (fs::exists(stage.source + "/conda-meta/history", failed)) {
    stage.known_file = stage.source + "/conda-meta/history";
    stage.old_prefix = stage.source;
    stage.environment = stage.base + stage.source;
    stage.variable = "CONDA_PREFIX";
    return Done{};
  }
  stage.packages = stage.base + stage.source;
  if (fs::exists(stage.source + "/pyvenv.cfg", failed)) {
    stage.known_file = stage.source + "/pyvenv.cfg";
    for (const fs::directory_entry& entry : fs::directory_iterator(stage.source + "/lib", failed))
      if (fs::exists(entry.path() / "site-packages", failed))
        stage.packages = stage.base + (entry.path() / "site-packages").string();
    return Done{};
  }
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(stage.source, failed))
    if (entry.is_regular_file(failed) && entry.file_size(failed) > 0) {
      stage.known_file = entry.path();
      return Done{};
    }
  return stage_error(fmt::format("--stage copper: \"{}\" has no files", stage.source),
                     "--venv DIR, --conda PREFIX, or --stage-from DIR");
}

Result<std::string> find_source(const Request& request, const EnvSnapshot& env, Stage& stage) {
  const std::string& typed = request.stage.from;
  if (typed.empty() && active_prefix(env).empty()) return std::string();
  stage.source = typed.empty() ? active_prefix(env)
                               : std::filesystem::absolute(typed).lexically_normal().string();
  std::error_code failed;
  const auto status = std::filesystem::status(stage.source, failed);
  if (!std::filesystem::exists(status))
    return Error{ErrorKind::not_found,
                 fmt::format("--stage-from {}: there is no such file", stage.source),
                 "name an archive, an environment, or a requirements file"};
  stage.tree = std::filesystem::is_directory(status);
  return stage.source;
}

// --stage-to, the job's own directory of each node, the site's disk where it is there or this is no node, /tmp.
std::string base_of(const Request& request, const EnvSnapshot& env, const Site& site) {
  namespace fs = std::filesystem;
  if (!request.stage.to.empty()) return fs::absolute(request.stage.to).lexically_normal();
  if (std::string own = env.get("SLURM_TMPDIR"); own.starts_with('/')) return own;
  if (site.profile() == nullptr) return "/tmp";
  Facts facts;
  facts.job["user"] = site.facts.user;
  std::error_code failed;
  const Result<std::string> disk = expand(site.profile()->job.local, facts);
  return disk && !disk->empty() && (!site.is_here || fs::is_directory(*disk, failed)) ? *disk
                                                                                      : "/tmp";
}

// Fills in what follows from the method.
Status complete(const Request& request, const EnvSnapshot& env, const Site& site, Stage& stage) {
  stage.base = base_of(request, env, site);
  stage.keep = request.stage.keep;
  std::string kind = "venv";
  if (stage.tree) {
    stage.old_prefix = stage.source;
    std::error_code failed;
    if (std::filesystem::exists(stage.source + "/conda-meta", failed)) kind = "conda";
  } else {
    stage.old_prefix = active_prefix(env);
    if (stage.method != "venv") {
      Result<ArchiveLayout> layout = look_into(stage.source);
      if (!layout) return layout.error();
      kind = layout->kind;
      stage.root = layout->root;
    }
  }
  stage.variable = kind == "conda" ? "CONDA_PREFIX" : "VIRTUAL_ENV";
  stage.id = id_of(stage, env);
  stage.environment = fmt::format("{}/hpclaunch-{}/{}{}", stage.base, sys::user_id(), stage.id,
                                  stage.root.empty() ? "" : "/" + stage.root);
  return Done{};
}

// Also fills in the source and the programs.
Result<StageFacts> find_facts(const Request& request, const Site& site, const EnvSnapshot& env,
                              Stage& stage) {
  Result<std::string> source = find_source(request, env, stage);
  if (!source) return source.error();
  StageFacts facts;
  facts.nodes = request.nodes.value_or(static_cast<int>(site.hosts.names.size()));
  facts.requirements = source->ends_with(".txt");
  facts.source = *source;
  facts.tree = stage.tree;
  stage.copper = find_copper(env);
  facts.copper = !stage.copper.empty();
  facts.no_sbcast = why_no_sbcast(site, request, env, stage);
  return facts;
}

}  // namespace

std::string useful_stage(const Request& request, const Site& site, const EnvSnapshot& env) {
  Stage stage;
  Result<StageFacts> facts = find_facts(request, site, env, stage);
  if (!facts || facts->source.empty()) return "--stage auto, with --venv DIR or --conda NAME";
  facts->nodes =
      std::max(facts->nodes, kFewestNodes);  // what was measured decides, not their number
  const Result<StageMethod> method = choose_stage("auto", *facts);
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

Result<std::optional<Setting>> find_stage(const Request& request, const Site& site,
                                          const EnvSnapshot& env, Prepared& prepared) {
  const std::string& typed = request.stage.method;
  if (typed.empty()) return std::optional<Setting>();
  Stage stage;
  const Result<StageFacts> facts = find_facts(request, site, env, stage);
  if (!facts) return facts.error();
  const Result<StageMethod> method = choose_stage(typed, *facts);
  if (!method) return method.error();
  if (method->name != "none") {
    stage.method = method->name;
    stage.seconds = request.stage.seconds.value_or(kFindSeconds);
    const Status done = stage.method == "copper" ? complete_copper(request, site, stage)
                                                 : complete(request, env, site, stage);
    if (!done) return done.error();
    prepared.stage = stage;
  }
  std::string why = method->why;
  if (!stage.method.empty())
    why += fmt::format("; {} to {}", stage.source,
                       stage.environment.empty() ? stage.packages : stage.environment);
  Decision decision(typed == "auto" ? Layer::computed : Layer::command_line, method->name, {}, why);
  return std::optional<Setting>(Setting{"stage", {std::move(decision)}});
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
