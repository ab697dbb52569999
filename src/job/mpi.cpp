// The MPI library of a program, before it starts. Ranks that a launcher of another library has started do not find
// each other: each becomes rank 0 of 1, and the job ends with 0.
#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "job/programs.h"

namespace hpclaunch::job {

namespace {

constexpr std::size_t kMostOfElf = 64u << 20;
constexpr std::size_t kMostOfScript = 1u << 20;

// The `index`-th record of a table at `offset`; nullopt beyond the file.
template <class Record>
std::optional<Record> record(std::string_view file, std::size_t offset, std::size_t index) {
  Record one;
  if (offset > file.size() || (index + 1) * sizeof one > file.size() - offset) return std::nullopt;
  std::memcpy(&one, file.data() + offset + index * sizeof one, sizeof one);
  return one;
}

// What is read from a pipe is lost to the program.
Result<std::string> read_regular(const std::string& path, std::size_t max_bytes) {
  std::error_code none;
  if (std::filesystem::is_regular_file(path, none)) return sys::read_file(path, max_bytes);
  return Error{ErrorKind::invalid, path + " is not a regular file", ""};
}

MpiLibrary library_in(const std::string& path) {
  const Result<std::string> file = read_regular(path, kMostOfElf);
  if (!file) return {};
  for (const std::string& needed : needed_libraries(*file))
    for (const auto& row : known_programs().at("mpi"))
      for (const auto& library : row.at("libraries"))
        if (needed.starts_with(library.get<std::string>()))
          return {row.at("name"), row.at("title"), fmt::format("{} needs {}", path, needed),
                  row.at("srun")};
  return {};
}

bool imports_mpi4py(std::string_view text) {
  const std::vector<std::string_view> lines = split(text, '\n');
  return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    line = trim(line);
    return line.starts_with("from mpi4py") || line.starts_with("import mpi4py");
  });
}

// Folders of packages of this interpreter, in its order, as site.py finds them.
std::vector<std::string> package_folders(const std::string& python, const EnvSnapshot& env) {
  std::vector<std::string> folders;
  const std::string path = env.get("PYTHONPATH");
  for (const std::string_view folder : split(path, ':'))
    if (!folder.empty()) folders.emplace_back(folder);
  const auto add = [&](const std::string& prefix) {
    const auto names = sys::list_directory(prefix + "/lib");
    if (!names) return;
    for (const std::string& name : *names)
      if (name.starts_with("python3"))
        for (const char* kind : {"site-packages", "dist-packages"})
          folders.push_back(fmt::format("{}/lib/{}/{}", prefix, name, kind));
  };
  const auto prefix_of = [](const std::string& program) {
    const std::string bin = program.substr(0, program.rfind('/'));
    return bin.substr(0, bin.rfind('/'));
  };
  const std::string own = prefix_of(python);
  const Result<std::string> venv = sys::read_file(own + "/pyvenv.cfg", kMostOfScript);
  add(own);
  if (venv && venv->find("include-system-site-packages = true") == std::string::npos)
    return folders;
  if (!env.get("HOME").empty()) add(env.get("HOME") + "/.local");
  const std::string base = prefix_of(sys::real_path(python));
  add(base + "/local");
  if (base != own) add(base);
  return folders;
}

// mpi4py's extension. One with several libraries, as mpi4py 4.1 has, loads what fits.
MpiLibrary library_of_mpi4py(const std::string& python, const EnvSnapshot& env) {
  for (const std::string& folder : package_folders(python, env)) {
    const auto names = sys::list_directory(folder + "/mpi4py");
    if (!names || names->empty()) continue;
    std::vector<std::string> extensions;
    for (const std::string& name : *names)
      if (name.starts_with("MPI.") && name.ends_with(".so")) extensions.push_back(name);
    if (extensions.size() != 1) return {};
    return library_in(folder + "/mpi4py/" + extensions.front());
  }
  return {};
}

}  // namespace

std::vector<std::string> needed_libraries(std::string_view file) {
  std::vector<std::string> names;
  const auto head = record<Elf64_Ehdr>(file, 0, 0);
  if (!head || !file.starts_with(ELFMAG) || head->e_ident[EI_CLASS] != ELFCLASS64) return names;
  std::vector<Elf64_Phdr> segments;
  for (std::size_t i = 0; i < head->e_phnum; ++i)
    if (const auto segment = record<Elf64_Phdr>(file, head->e_phoff, i))
      segments.push_back(*segment);
  std::vector<std::size_t> offsets;  // of names, in the table of strings
  std::size_t strings = 0;           // its address
  for (const Elf64_Phdr& segment : segments)
    for (std::size_t i = 0;
         segment.p_type == PT_DYNAMIC && i < segment.p_filesz / sizeof(Elf64_Dyn); ++i) {
      const auto entry = record<Elf64_Dyn>(file, segment.p_offset, i);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_NEEDED) offsets.push_back(entry->d_un.d_val);
      if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
    }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || strings < segment.p_vaddr ||
        strings - segment.p_vaddr >= segment.p_filesz)
      continue;
    const std::size_t table = segment.p_offset + (strings - segment.p_vaddr);
    for (const std::size_t offset : offsets)
      if (table < file.size() && offset < file.size() - table) {
        const std::string_view rest = file.substr(table + offset);
        names.emplace_back(rest.substr(0, rest.find('\0')));
      }
  }
  return names;
}

MpiLibrary mpi_of(const std::vector<std::string>& command, const EnvSnapshot& env) {
  if (command.empty() || command.front().find('/') == std::string::npos) return {};
  const std::string& program = command.front();
  const std::string name = program.substr(program.rfind('/') + 1);
  if (!name.starts_with("python")) return library_in(program);
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i].starts_with("-m") || command[i] == "-c") {
      const std::string& what =
          command[i].size() > 2 || i + 1 == command.size() ? command[i] : command[i + 1];
      return what.find("mpi4py") == std::string::npos ? MpiLibrary{}
                                                      : library_of_mpi4py(program, env);
    }
    if (command[i].starts_with('-')) continue;
    const Result<std::string> script = read_regular(command[i], kMostOfScript);
    return script && imports_mpi4py(*script) ? library_of_mpi4py(program, env) : MpiLibrary{};
  }
  return {};
}

bool fits(const Launcher& launcher, const MpiLibrary& mpi) {
  const std::vector<std::string_view> known = split(launcher.mpi, ' ');
  return mpi.family.empty() || std::find(known.begin(), known.end(), mpi.family) != known.end();
}

void check_mpi(const MpiLibrary& mpi, const ChosenLauncher& launcher, const Plan& plan,
               Diagnostics& diagnostics) {
  if (plan.world_size() == 1 || fits(*launcher.launcher, mpi)) return;
  std::vector<std::string> fitting;
  for (const Launcher& one : launchers())
    if (fits(one, mpi)) fitting.emplace_back(one.name);
  diagnostics.push_back(
      {"mpi-mismatch", Severity::warning,
       fmt::format("{} ({}), not supported by launcher {}: each rank would be 0 of 1", mpi.why,
                   mpi.title, plan.launcher),
       fmt::format("--launcher {}", fmt::join(fitting, ", or "))});
}

}  // namespace hpclaunch::job
