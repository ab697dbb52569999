#include "job/activate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "hpclaunch/paths.h"
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

std::vector<Item> items_of(const Request& request) {
  std::vector<Item> items;
  for (const std::string& folder : request.module_folders)
    items.push_back({"use", "--module-use", folder, absolute_path(folder)});
  if (!loads_none(request))
    for (const std::string& name : request.modules)
      items.push_back({"module", "--module", name, name});
  if (const std::string& name = request.conda; !name.empty())
    items.push_back({"conda", "--conda", name, absolute_unless_name(name)});
  if (!request.venv.empty())
    items.push_back({"venv", "--venv", request.venv, absolute_path(request.venv)});
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
bool activate_without_shell(const std::vector<Item>& items, EnvSnapshot& env) {
  if (items.size() != 1 || items[0].kind != std::string_view("venv")) return false;
  const std::string& folder = items[0].value;
  if (std::error_code failed; !std::filesystem::exists(folder + "/pyvenv.cfg", failed))
    return false;
  env = env.with({{"VIRTUAL_ENV", folder},
                  {"PATH", fmt::format("{}/bin:{}", folder, env.get("PATH"))},
                  {"PYTHONHOME", std::nullopt}});
  return true;
}

Status run(const std::vector<Item>& items, EnvSnapshot& env) {
  const Result<std::string> bash = sys::find_program("bash", env.get("PATH") + ":/bin:/usr/bin");
  if (!bash && activate_without_shell(items, env)) return Done{};
  if (!bash) return bash.error();
  std::vector<std::string> argv = {*bash, "--noprofile", "--norc",
                                   "-c",  kActivate,     "hpclaunch-activate"};
  for (const Item& item : items) argv.insert(argv.end(), {item.kind, item.value});
  const Result<sys::Captured> said = sys::capture(argv, kActivateSeconds, &env);
  if (!said) {
    std::string typed;
    for (const Item& item : items) typed += fmt::format(" {} {}", item.option, item.typed);
    return Error{said.error().kind,
                 fmt::format("the activation of{} did not end: {}", typed, said.error().message),
                 "activate it in the shell, and omit these options"};
  }
  if (said->status == 0 && said->out.ends_with('\0')) {
    env = changed(env, said->out);
    return Done{};
  }
  const auto at = static_cast<std::size_t>(parse_natural(trim(said->out)).value_or(0));
  return cannot_activate(items[std::min(at, items.size() - 1)], *said);
}

}  // namespace

bool loads_none(const Request& request) {
  return std::ranges::count(request.modules, kNoModule) > 0;
}

Status check_activation(const Request& request) {
  for (const std::string& name : request.modules)
    if (loads_none(request) && name != kNoModule)
      return Error{ErrorKind::usage,
                   fmt::format("--module none and --module {} contradict each other", shown(name)),
                   "omit one of them"};
  for (const Item& item : items_of(request))
    if (Status good = check(item); !good) return good;
  return Done{};
}

Status activate(const Request& request, Purpose purpose, EnvSnapshot& env,
                Diagnostics& diagnostics) {
  if (Status good = check_activation(request); !good) return good;
  const std::vector<Item> items = items_of(request);
  if (items.empty()) return Done{};
  for (const Item& item : items)
    if (std::error_code failed;
        item.kind == std::string_view("use") && !std::filesystem::is_directory(item.value, failed))
      diagnostics.push_back({"module-folder-missing", Severity::warning,
                             fmt::format("--module-use {}: there is no such directory", item.value),
                             "name a directory of modulefiles"});
  Status done = run(items, env);
  if (done || purpose == Purpose::start || done.error().kind == ErrorKind::usage) return done;
  diagnostics.push_back(
      {"environment-not-here", Severity::warning, done.error().message, done.error().hint});
  if (request.modules.empty() || loads_none(request)) return Done{};
  std::string loaded = env.get("LOADEDMODULES");
  for (const std::string& name : request.modules) loaded += (loaded.empty() ? "" : ":") + name;
  env = env.with({{"LOADEDMODULES", loaded}});
  return Done{};
}

std::string activation_lines(const Request& request) {
  const std::vector<Item> items = items_of(request);
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
    const bool packed = sys::is_executable(item.value + "/bin/conda-unpack");
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
void use_own_venv(Request& request, const EnvSnapshot& env, Diagnostics& diagnostics) {
  if (request.command.empty() || !items_of(request).empty() || !env.get("VIRTUAL_ENV").empty() ||
      !request.container.image.empty())
    return;
  const std::string& program = request.command.front();
  const bool python = request.python || program == "-m" || program.ends_with(".py") ||
                      (program.find('/') == std::string::npos && is_python(program));
  const std::string folder = sys::own_directory();
  const std::string own = folder.substr(0, folder.rfind('/'));
  if (!python || !sys::is_executable(folder + "/python") || !sys::read_file(own + "/pyvenv.cfg"))
    return;
  const auto found = sys::find_program("python", env.get("PATH"));
  if (found && *found == folder + "/python") return;
  request.venv = own;
  diagnostics.push_back({"own-environment", Severity::note,
                         fmt::format("Python is that of {}, where hpclaunch is installed", own),
                         "--venv DIR, or activate another environment"});
}

}  // namespace hpclaunch::job
