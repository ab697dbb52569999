// Short forms of a command line: variables by name or from a file, a Python module or script as the program.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "world/site.h"

namespace hpclaunch::job {

namespace {

constexpr std::size_t kMostBytes = 1u << 20;
constexpr std::size_t kMostOfProgram = 64u << 20;

Status add_file(const std::string& file, const World& world, std::vector<TypedVariable>& set) {
  Result<std::string> text = world.read_file(file, kMostBytes);
  if (!text) return text.error();
  Result<std::vector<DotenvEntry>> entries = parse_dotenv(*text, file);
  if (!entries) return entries.error();
  for (DotenvEntry& one : *entries)
    set.push_back({std::move(one.name), std::move(one.value),
                   fmt::format("--env-file {}:{}", file, one.line)});
  return Done{};
}

// NAME or NAME=VALUE.
Status add_typed(const std::string& text, const EnvSnapshot& env, std::vector<TypedVariable>& set) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string* value = equals == std::string::npos ? env.find(name) : nullptr;
  if (equals == std::string::npos && value == nullptr)
    return Error{ErrorKind::usage, fmt::format("--env {}: {} is not set", shown(name), shown(name)),
                 fmt::format("export it, or --env {}=VALUE", shown(name))};
  set.push_back({name, value != nullptr ? *value : text.substr(equals + 1), "--env"});
  return Done{};
}

bool has_interpreter_line(const std::string& file, const World& world) {
  const Result<std::string> text = world.read_file(file, kMostOfProgram);
  return text && text->starts_with("#!");
}

// A Python script that execve(2) would not start.
bool needs_python(const std::string& program, const std::string& path, const World& world) {
  if (!program.ends_with(".py")) return false;
  if (const auto found = world.find_program(program, path);
      found && has_interpreter_line(*found, world))
    return false;
  return world.read_file(program, kMostOfProgram).has_value();
}

Result<std::string> find_python(const std::string& path, const std::string& what,
                                const World& world) {
  for (const char* name : {"python", "python3"})
    if (Result<std::string> found = world.find_program(name, path)) return found;
  if (world.made_up()) return std::string("python");  // as a case's program, of its job
  return Error{ErrorKind::program_not_found,
               fmt::format("{}: no python or python3 found in PATH", what),
               "activate an environment first: --venv DIR, --conda NAME or --module NAME"};
}

// --agent: all cores and devices of the node, whatever else decides about ranks.
Status own_node(Request& request) {
  for (const auto& [typed, option] : {std::pair(request.ranks.has_value(), "--ranks"),
                                      {request.ranks_per_node.has_value(), "--ranks-per-node"},
                                      {request.ranks_per_device.has_value(), "--ranks-per-device"},
                                      {request.devices_per_rank.has_value(), "--devices-per-rank"},
                                      {request.cores_per_rank.has_value(), "--cpus-per-rank"},
                                      {!request.gpu_view.empty(), "--gpu-view"},
                                      {!request.cpu_bind.empty(), "--cpu-bind"},
                                      {request.bind_via.has_value(), "--bind-via"}})
    if (typed)
      return Error{
          ErrorKind::usage,
          fmt::format("--agent is one process with the whole node; {} contradicts it", option),
          "omit one of them"};
  request.ranks_per_node = 1;
  request.gpu_view = "all";
  request.view_is_implied = true;
  request.bind_via = BindVia::none;
  return Done{};
}

}  // namespace

Result<Request> spelled_out(Request request, const World& world, Diagnostics& diagnostics) {
  const EnvSnapshot& env = world.env;
  std::vector<TypedVariable> set;
  for (const std::string& file : request.env_files)
    if (const Status good = add_file(file, world, set); !good) return good.error();
  for (const std::string& text : request.env)
    if (const Status good = add_typed(text, env, set); !good) return good.error();
  request.set.insert(request.set.begin(), set.begin(), set.end());
  if (request.agent)
    if (const Status alone = own_node(request); !alone) return alone.error();
  std::vector<std::string>& command = request.command;
  if (command.empty()) return request;
  std::string path = env.get("PATH");
  for (const TypedVariable& one : request.set)
    if (one.name == "PATH") path = one.value;
  const bool module = command.front() == "-m";
  if (module && command.size() < 2)
    return Error{ErrorKind::usage, "-m needs the name of a Python module", "-m MODULE"};
  if (!module && !request.python && !needs_python(command.front(), path, world)) return request;
  const std::string what = module ? "-m " + command[1] : command.front();
  if (request.python && !module && request.stage.method.empty() && !world.made_up())
    if (const auto script = world.read_file(command.front(), kMostOfProgram); !script)
      return Error{ErrorKind::program_not_found, script.error().message, script.error().hint};
  const bool contained = !request.container.image.empty();  // the image's own, found inside
  Result<std::string> python =
      contained ? Result<std::string>("python3") : find_python(path, what, world);
  if (!python) return python.error();
  if (!request.python && !world.made_up())
    diagnostics.push_back(
        {"python-added", Severity::note, fmt::format("{} is started with {}", what, *python), ""});
  command.insert(command.begin(), *std::move(python));
  return request;
}

}  // namespace hpclaunch::job
