// The launchers in one table, and how a program is recognised as one of them.
//
// Sources of the version texts: runs of MPICH 4.0.2 and 4.2.1, Open MPI 4.1.4 and 5.0.7, PRRTE 3.0.8,
// flux-core 0.88.0 and Slurm 24.11; for Intel MPI and PALS their documentation and reports.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hpclaunch/text.h"
#include "launcher/line.h"

namespace hpclaunch {

namespace {

// The first "N.N..." behind `part`: digits and dots, at least one dot.
std::string version_behind(std::string_view text, std::string_view part) {
  constexpr std::string_view kDigits = "0123456789";
  std::size_t at = text.find(part);
  if (at == std::string_view::npos) return {};
  at = text.find_first_of(kDigits, at + part.size());
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789.", at), text.size());
    std::string_view version = text.substr(at, end - at);
    while (version.ends_with('.')) version.remove_suffix(1);
    if (version.find('.') != std::string_view::npos) return std::string(version);
    at = text.find_first_of(kDigits, end);
  }
  return {};
}

bool has(std::string_view text, std::string_view part) {
  return !part.empty() && text.find(part) != std::string_view::npos;
}

std::optional<LauncherIdentity> by_folder(std::string_view real_path) {
  for (const Launcher& one : launchers())
    if (has(real_path, one.recognition.folder))
      return LauncherIdentity{std::string(one.name),
                              version_behind(real_path, one.recognition.folder)};
  return std::nullopt;
}

}  // namespace

std::size_t find_local_rank(std::string_view text) {
  const std::string lower = to_lower(text);
  std::size_t first = lower.npos;
  for (const std::string_view name : {"local_rank", "localrank", "localid", "local_id"})
    first = std::min(first, lower.find(name));
  return first;
}

std::span<const Launcher> launchers() {
#define HPCLAUNCH_ROW(name) std::move(launcher::name),
  static const auto kAll = [] {
    std::array all = {HPCLAUNCH_LAUNCHERS(HPCLAUNCH_ROW)};
    for (Launcher& one : all) {
      one.traits.name = one.name;
      launcher::add_inherited(one.traits);
    }
    return all;
  }();
#undef HPCLAUNCH_ROW
  return kAll;
}

const Launcher* find_launcher(std::string_view name) {
  for (const Launcher& one : launchers())
    if (one.name == name) return &one;
  return nullptr;
}

std::vector<std::string> quoted_command(const Launcher& launcher,
                                        std::vector<std::string> command) {
  constexpr char kMark = '%';
  const auto is_read = [&](const std::string& word) {
    return std::ranges::count(launcher.rereads, word) > 0;
  };
  if (std::ranges::none_of(command, is_read)) return command;
  for (std::string& word : command)
    if (is_read(word) || word.starts_with(kMark)) word.insert(word.begin(), kMark);
  command.insert(command.begin(), "-q");
  return command;
}

// The text that comes first in the output decides.
std::optional<LauncherIdentity> identify_launcher(std::string_view real_path,
                                                  std::string_view version_text) {
  std::optional<LauncherIdentity> found = by_folder(real_path);
  if (found && !found->version.empty()) return found;
  std::size_t first = std::string_view::npos;
  for (const Launcher& one : launchers()) {
    if (found && found->name != one.name) continue;
    for (const VersionText& text : one.recognition.texts) {
      const std::size_t at = version_text.find(text.part);
      if (at >= first || (text.at_start && at != 0)) continue;
      first = at;
      found = {std::string(one.name),
               text.before_version ? version_behind(version_text, *text.before_version) : ""};
    }
  }
  return found;
}

std::optional<LauncherIdentity> identify_launcher_by_path(
    std::string_view real_path, const std::function<bool(const std::string& path)>& is_executable) {
  if (auto found = by_folder(real_path)) return found;
  const std::string_view name = real_path.substr(real_path.rfind('/') + 1);
  const std::string folder(real_path.substr(0, real_path.size() - name.size()));
  std::string_view longest;
  std::optional<LauncherIdentity> found;
  for (const Launcher& one : launchers()) {
    const std::string_view companion = one.recognition.companion;
    if (!companion.empty() && std::ranges::count(one.programs, name) > 0 &&
        is_executable(folder + std::string(companion)))
      return LauncherIdentity{std::string(one.name), ""};
    for (const std::string_view part : one.recognition.name_parts)
      if (has(name, part) && part.size() > longest.size()) {
        longest = part;
        found = LauncherIdentity{std::string(one.name), ""};
      }
  }
  return found;
}

bool is_rank_variable(std::string_view name) {
  const auto is_among = [&](std::string_view names) {
    for (;;) {
      const std::size_t end = names.find(' ');
      const std::string_view one = names.substr(0, end);
      if (one.ends_with('*') ? name.starts_with(one.substr(0, one.size() - 1)) : name == one)
        return true;
      if (end == std::string_view::npos) return false;
      names.remove_prefix(end + 1);
    }
  };
  return std::ranges::any_of(launchers(), [&](const Launcher& one) {
    return is_among(one.rank_variables) ||
           std::ranges::any_of(one.identity, is_among, &IdentityVariables::names);
  });
}

std::optional<Diagnostic> inside_a_rank(const EnvSnapshot& env) {
  for (const Launcher& one : launchers()) {
    const std::string tasks =
        one.step_tasks.empty() || !env.has(one.traits.step_var) ? "" : env.get(one.step_tasks);
    if (parse_natural(tasks).value_or(0) > 1)
      return Diagnostic{"inside-a-rank", Severity::error,
                        fmt::format("{}={}: this is one of the tasks of a job step, and each would "
                                    "start the whole job",
                                    one.step_tasks, tasks),
                        fmt::format("omit {} before hpclaunch, which starts the ranks of all nodes",
                                    one.programs.front())};
    if (!one.rank_mark.empty() && env.has(one.rank_mark))
      return Diagnostic{
          "inside-a-rank", Severity::error,
          std::string(one.rank_mark) + " is set: this is already a rank of a job",
          "start hpclaunch from the batch script or the login shell, or pass --force"};
  }
  return std::nullopt;
}

}  // namespace hpclaunch
