// Which launcher is this program? By what it prints, not by its name.
// Source of the texts: runs of MPICH 4.0.2 and 4.2.1, Open MPI 4.1.4 and 5.0.7, PRRTE 3.0.8, flux-core
// 0.88.0 and programs of Slurm 24.11; for Intel MPI and PALS their documentation and reports.
#include "hpclaunch/launcher.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The first "N.N..." after `from`: digits and dots, at least one dot.
std::string version_after(std::string_view text, std::string_view from) {
  std::size_t at = text.find(from);
  if (at == std::string_view::npos) return {};
  for (at += from.size(); at < text.size(); ++at) {
    if (text[at] < '0' || text[at] > '9') continue;
    std::size_t end = at;
    while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) ++end;
    std::string_view version = text.substr(at, end - at);
    while (version.ends_with('.')) version.remove_suffix(1);
    if (has(version, ".")) return std::string(version);
    at = end;
  }
  return {};
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// JSM's programs lie in a folder of their own; what jsrun prints is not documented.
bool is_jsrun(std::string_view real_path) {
  return name_of(real_path) == "jsrun" || has(real_path, "/jsm_pmix/");
}

}  // namespace

std::optional<LauncherIdentity> identify_launcher(std::string_view real_path,
                                                  std::string_view version_text) {
  if (has(real_path, "/cray/pals/"))
    return LauncherIdentity{"pals", version_after(real_path, "/cray/pals/")};
  if (is_jsrun(real_path)) return LauncherIdentity{"jsrun", version_after(version_text, "")};
  if (has(version_text, "Intel(R) MPI"))
    return LauncherIdentity{"intelmpi", version_after(version_text, "Version")};
  if (has(version_text, "HYDRA build details"))
    return LauncherIdentity{"hydra", version_after(version_text, "Version:")};
  for (const std::string_view mark : {"(Open MPI)", "(OpenRTE)"})
    if (has(version_text, mark))
      return LauncherIdentity{"openmpi", version_after(version_text, mark)};
  if (has(version_text, "(PRRTE)"))
    return LauncherIdentity{"prrte", version_after(version_text, "(PRRTE)")};
  if (has(version_text, "libflux-core:"))
    return LauncherIdentity{"flux", version_after(version_text, "libflux-core:")};
  if (version_text.starts_with("slurm ") || version_text.starts_with("slurm-wlm "))
    return LauncherIdentity{"slurm", version_after(version_text, "slurm")};
  if (version_text.starts_with("srun: "))  // no configuration in reach: it complains instead
    return LauncherIdentity{"slurm", ""};
  if (has(version_text, "[global_options] [command_options]")) return LauncherIdentity{"pals", ""};
  return std::nullopt;
}

std::string_view evident_launcher(std::string_view real_path) {
  struct Mark {
    std::string_view part;
    std::string_view name;
  };
  constexpr Mark kMarks[] = {{"hydra", "hydra"},   {"mpich", "hydra"},     {"orterun", "openmpi"},
                             {"prterun", "prrte"}, {"openmpi", "openmpi"}, {"ompi", "openmpi"},
                             {"srun", "slurm"},    {"flux", "flux"},       {"jsrun", "jsrun"}};
  if (has(real_path, "/cray/pals/")) return "pals";
  if (is_jsrun(real_path)) return "jsrun";
  const std::string_view name = name_of(real_path);
  std::string_view found;
  for (const Mark& mark : kMarks)
    if (has(name, mark.part)) found = mark.name;  // "jsrun" after "srun"
  return found;
}

}  // namespace hpclaunch
