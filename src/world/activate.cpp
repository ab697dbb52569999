#include "world/activate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

constexpr double kActivateSeconds = 120;
constexpr std::string_view kNoModule = "none";

struct Item {
  const char* kind;  // as activate.bash has it
  const char* option;
  std::string typed;
  std::string value;  // a path is absolute
};

std::vector<Item> items_of(const Request& request, const World& world) {
  std::vector<Item> items;
  for (const std::string& folder : request.module_folders)
    items.push_back({"use", "--module-use", folder, world.absolute(folder)});
  if (!loads_none(request))
    for (const std::string& name : request.modules)
      items.push_back({"module", "--module", name, name});
  if (const std::string& name = request.conda; !name.empty())
    items.push_back({"conda", "--conda", name,
                     name.find('/') == std::string::npos ? name : world.absolute(name)});
  if (!request.venv.empty())
    items.push_back({"venv", "--venv", request.venv, world.absolute(request.venv)});
  return items;
}

// They are words of a shell's command, never its text; an option of `module` or `conda` is not a name.
Status check(const Item& item) {
  const bool name = item.value.find('/') != 0;
  const bool plain =
      name ? consists_of(item.value, "_./+:=@~^-") : std::ranges::none_of(item.value, [](char c) {
        return static_cast<unsigned char>(c) < ' ';
      });
  if (plain && !item.value.empty() && item.value.front() != '-') return Done{};
  return Error{ErrorKind::usage,
               fmt::format("{} must be a name, not \"{}\"", item.option, shown(item.typed)),
               fmt::format("{} NAME, once for each", item.option)};
}

// In one line.
std::string words_of_tool(std::string_view text) {
  text.remove_prefix(std::min(text.rfind('\001') + 1, text.size()));
  std::string line;
  for (const std::string_view part : split(text, '\n'))
    if (const std::string_view words = trim(part); !words.empty())
      line += (line.empty() ? "" : " ") + std::string(words);
  return shown(line, 400);
}

Error cannot_activate(const Item& item, const sys::Captured& said) {
  const std::string_view kind = item.kind;
  const std::string hint =
      kind == "module"  ? "module avail, or --module-use DIR with its modulefiles"
      : kind == "conda" ? "conda env list, or --conda PREFIX"
      : kind == "venv"  ? "source DIR/bin/activate shows more; python3 -m venv DIR makes one"
                        : "name a directory of modulefiles";
  std::string words = words_of_tool(said.err);
  if (words.empty()) words = fmt::format("the activation ended with status {}", said.status);
  return Error{ErrorKind::not_found, fmt::format("{} {}: {}", item.option, item.typed, words),
               hint};
}

// What bash says of itself stays as it was.
EnvSnapshot changed(const EnvSnapshot& env, const std::string& entries) {
  std::vector<std::string> list;
  for (const std::string_view entry : split(entries, '\0')) list.emplace_back(entry);
  const EnvSnapshot after(std::move(list));
  std::map<std::string, std::optional<std::string>> changes;
  const auto own = [](const std::string& name) {
    return name == "_" || name == "SHLVL" || name == "PWD" || name == "OLDPWD";
  };
  for (const auto& [name, value] : after.values())
    if (!own(name) && (!env.has(name) || env.get(name) != value)) changes[name] = value;
  for (const auto& [name, value] : env.values())
    if (!own(name) && !after.has(name) && is_identifier(name)) changes[name] = std::nullopt;
  return env.with(changes);
}

// What bin/activate of a virtual environment does, where no bash is there to read it: a container with Python alone.
std::optional<EnvSnapshot> activated_without_shell(const std::vector<Item>& items,
                                                   const World& world) {
  if (items.size() != 1 || items[0].kind != std::string_view("venv")) return std::nullopt;
  const std::string& folder = items[0].value;
  if (!world.has(folder + "/pyvenv.cfg")) return std::nullopt;
  return world.env.with({{"VIRTUAL_ENV", folder},
                         {"PATH", fmt::format("{}/bin:{}", folder, world.env.get("PATH"))},
                         {"PYTHONHOME", std::nullopt}});
}

Result<EnvSnapshot> run(const std::vector<Item>& items, const World& world) {
  const EnvSnapshot& env = world.env;
  const Result<std::string> bash = world.find_program("bash", env.get("PATH") + ":/bin:/usr/bin");
  if (!bash || world.made_up())
    if (auto done = activated_without_shell(items, world)) return *std::move(done);
  if (world.made_up())
    return Error{ErrorKind::unsupported,
                 fmt::format("{} {}: a case activates only a virtual environment whose pyvenv.cfg "
                             "is in \"files\"",
                             items.front().option, items.front().typed),
                 "export what it sets in the case's \"env\""};
  if (!bash) return bash.error();
  std::vector<std::string> argv = {*bash, "--noprofile", "--norc",
                                   "-c",  kActivate,     "hpclaunch-activate"};
  for (const Item& item : items) argv.insert(argv.end(), {item.kind, item.value});
  const Result<sys::Captured> said = world.capture(argv, kActivateSeconds, &env);
  if (!said) {
    std::string typed;
    for (const Item& item : items) typed += fmt::format(" {} {}", item.option, item.typed);
    return Error{said.error().kind,
                 fmt::format("the activation of{} did not end: {}", typed, said.error().message),
                 "activate it in the shell, and omit these options"};
  }
  if (said->status == 0 && said->out.ends_with('\0')) return changed(env, said->out);
  const auto at = static_cast<std::size_t>(parse_natural(trim(said->out)).value_or(0));
  return cannot_activate(items[std::min(at, items.size() - 1)], *said);
}

}  // namespace

bool loads_none(const Request& request) {
  return std::ranges::count(request.modules, kNoModule) > 0;
}

Status check_activation(const Request& request, const World& world) {
  for (const std::string& name : request.modules)
    if (loads_none(request) && name != kNoModule)
      return Error{ErrorKind::usage,
                   fmt::format("--module none and --module {} contradict each other", shown(name)),
                   "omit one of them"};
  for (const Item& item : items_of(request, world))
    if (Status good = check(item); !good) return good;
  return Done{};
}

Result<EnvSnapshot> activate(const Request& request, const World& world, Purpose purpose,
                             Diagnostics& diagnostics) {
  if (Status good = check_activation(request, world); !good) return good.error();
  std::vector<Item> items = items_of(request, world);
  const auto of_modules = [](const Item& item) {
    return item.kind != std::string_view("conda") && item.kind != std::string_view("venv");
  };
  if (world.made_up()) std::erase_if(items, of_modules);  // they count as loaded
  for (const Item& item : items)
    if (item.kind == std::string_view("use") && !world.is_directory(item.value))
      diagnostics.push_back({"module-folder-missing", Severity::warning,
                             fmt::format("--module-use {}: there is no such directory", item.value),
                             "name a directory of modulefiles"});
  Result<EnvSnapshot> done = items.empty() ? world.env : run(items, world);
  const bool must = purpose == Purpose::start || world.made_up();
  if (!done && (must || done.error().kind == ErrorKind::usage)) return done;
  if (!done)
    diagnostics.push_back(
        {"environment-not-here", Severity::warning, done.error().message, done.error().hint});
  const bool counted = !done || world.made_up();
  EnvSnapshot env = done ? *std::move(done) : world.env;
  if (!counted || request.modules.empty() || loads_none(request)) return env;
  std::string loaded = env.get("LOADEDMODULES");
  for (const std::string& name : request.modules) loaded += (loaded.empty() ? "" : ":") + name;
  return env.with({{"LOADEDMODULES", loaded}});
}

std::string activation_lines(const Request& request, const World& world) {
  const std::vector<Item> items = items_of(request, world);
  if (items.empty()) return "";
  std::string text;
  const auto add = [&](const std::string& command) { text += command + " || exit 125\n"; };
  const auto of_modules = [](const Item& item) {
    return item.kind == std::string_view("use") || item.kind == std::string_view("module");
  };
  if (std::ranges::any_of(items, of_modules))
    text +=
        "for init in \"$LMOD_PKG/init/sh\" \"$MODULESHOME/init/sh\" /etc/profile.d/*modules*.sh "
        "/etc/profile.d/*lmod*.sh; do\n"
        "  if ! command -v module >/dev/null && [ -r \"$init\" ]; then . \"$init\"; fi\n"
        "done\n";
  for (const Item& item : items) {
    const std::string_view kind = item.kind;
    const std::string value = quote_sh(item.value);
    const bool packed = world.is_program(item.value + "/bin/conda-unpack");
    if (kind == "use") add("module use " + value);
    if (kind == "module") add("module load " + value);
    if (kind == "venv" || packed) add(fmt::format(". {}/bin/activate", value));
    if (kind == "conda" && !packed)
      add("eval \"$(\"${CONDA_EXE:-conda}\" shell.posix hook)\" && conda activate " + value);
  }
  return text + "\n";
}

// A wheel puts the program beside a virtual environment's python. Who starts it by its path wants that python, which
// PATH does not have where the environment is not active.
std::string own_venv(const Request& request, const World& world, Diagnostics& diagnostics) {
  if (request.command.empty() || !items_of(request, world).empty() ||
      !world.env.get("VIRTUAL_ENV").empty() || !request.container.image.empty())
    return request.venv;
  const std::string& program = request.command.front();
  const bool python = request.python || program == "-m" || program.ends_with(".py") ||
                      (program.find('/') == std::string::npos && is_python(program));
  const std::string& folder = world.installation;
  const std::string own = folder.substr(0, folder.rfind('/'));
  if (!python || !world.is_program(folder + "/python") || !world.has(own + "/pyvenv.cfg"))
    return "";
  const auto found = world.program("python");
  if (found && *found == folder + "/python") return "";
  diagnostics.push_back({"own-environment", Severity::note,
                         fmt::format("Python is that of {}, where hpclaunch is installed", own),
                         "--venv DIR, or activate another environment"});
  return own;
}

}  // namespace hpclaunch::job
