// The MPI library of a program, before it starts. Ranks that a launcher of another library has started do not find
// each other: each becomes rank 0 of 1, and the job ends with 0.
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "hpclaunch/programs.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "world/launchers.h"
#include "world/programs.h"

namespace hpclaunch::job {

namespace {

constexpr std::size_t kMostOfScript = 1u << 20;

// Up to `count` records of a table at `offset`.
template <class Record>
std::vector<Record> records(int file, std::size_t offset, std::size_t count) {
  constexpr std::size_t kMost = 1u << 14;
  std::vector<Record> all(std::min(count, kMost));
  const ssize_t got =
      pread(file, all.data(), all.size() * sizeof(Record), static_cast<off_t>(offset));
  all.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)) / sizeof(Record));
  return all;
}

// DT_NEEDED of an ELF file of 64 bits; empty for anything else.
std::vector<std::string> needed_libraries(int file) {
  constexpr std::size_t kLongestName = 256;
  std::vector<std::string> names;
  const auto head = records<Elf64_Ehdr>(file, 0, 1);
  if (head.empty() || std::memcmp(head[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      head[0].e_ident[EI_CLASS] != ELFCLASS64)
    return names;
  const auto segments = records<Elf64_Phdr>(file, head[0].e_phoff, head[0].e_phnum);
  std::vector<std::size_t> offsets;  // of names, in the table of strings
  std::size_t strings = 0;           // its address
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (const Elf64_Dyn& entry :
         records<Elf64_Dyn>(file, segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn))) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) offsets.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
    }
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || strings - segment.p_vaddr >= segment.p_filesz) continue;
    for (const std::size_t offset : offsets) {
      const auto name = records<char>(file, segment.p_offset + (strings - segment.p_vaddr) + offset,
                                      kLongestName);
      names.emplace_back(name.data(), strnlen(name.data(), name.size()));
    }
  }
  return names;
}

bool is_regular(const std::string& path) {  // what is read from a pipe is lost to the program
  std::error_code none;
  return std::filesystem::is_regular_file(path, none);
}

MpiLibrary library_in(const std::string& path) {
  const int file = is_regular(path) ? open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return {};
  const std::vector<std::string> needed = needed_libraries(file);
  close(file);
  for (const std::string& name : needed)
    for (const MpiNames& row : rows<MpiNames>())
      for (const std::string_view library : row.libraries)
        if (name.starts_with(library))
          return {std::string(row.name),
                  std::string(row.title),
                  fmt::format("{} needs {}", path, name),
                  {row.srun.begin(), row.srun.end()}};
  return {};
}

// Any statement that imports it, as far as lines tell.
bool imports_mpi4py(std::string_view text) {
  const std::vector<std::string_view> lines = split(text, '\n');
  return std::ranges::any_of(lines, [](std::string_view line) {
    line = line.substr(0, std::min(line.find('#'), line.find('"')));
    return line.find("import") != line.npos && line.find("mpi4py") != line.npos;
  });
}

// The words of an interpreter's command line that decide what it runs and where its packages are.
struct PythonWords {
  std::string flags;   // letters of options, "sI"
  std::string script;  // "" for none
  std::string code;    // the module of -m, or the text of -c
};

PythonWords python_words(const std::vector<std::string>& command) {
  PythonWords found;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word.starts_with("--")) continue;
    if (word.size() < 2 || word.front() != '-') return {found.flags, word, ""};
    const std::size_t at = std::min(word.find_first_of("cmWX", 1), word.size());
    found.flags += word.substr(1, at - 1);
    if (at == word.size()) continue;
    const bool joined = at + 1 < word.size();
    if (!joined && ++i == command.size()) break;
    if (word[at] == 'c' || word[at] == 'm')
      return {found.flags, "", joined ? word.substr(at + 1) : command[i]};
  }
  return found;
}

std::string parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

// What "#!" of a script names, behind env and its options; "" for none.
std::string interpreter_of(const std::string& path) {
  std::string line;
  if (is_regular(path)) std::getline(std::ifstream(path), line);
  if (!line.starts_with("#!")) return "";
  for (const std::string_view word : split(std::string_view(line).substr(2), ' '))
    if (!trim(word).empty() && !word.starts_with('-') && !trim(word).ends_with("/env"))
      return std::string(trim(word));
  return "";
}

// Where an interpreter finds packages, in its order. Source: CPython's getpath.py and site.py, and Debian's
// dist-packages.
struct Packages {
  std::string version;  // "3.11"; "" where it is unknown
  std::vector<std::string> folders;
};

Packages packages_of(const std::string& python, const std::string& flags, const EnvSnapshot& env) {
  const auto has = [&](const char* letters) { return flags.find_first_of(letters) != flags.npos; };
  const auto exported = [&](const char* name) { return has("EI") ? "" : env.get(name); };
  const std::string own = parent(parent(python));
  std::map<std::string, std::string> venv;  // of pyvenv.cfg
  if (const auto text = sys::read_file(own + "/pyvenv.cfg", kMostOfScript))
    for (const std::string_view line : split(*text, '\n'))
      if (const std::size_t equals = line.find('='); equals != line.npos)
        venv[std::string(trim(line.substr(0, equals)))] = trim(line.substr(equals + 1));
  const bool is_venv = !venv.empty();
  const std::string real = sys::real_path(python);
  const std::string base = venv.contains("home") ? parent(venv["home"]) : parent(parent(real));
  Packages found;
  const std::string name = real.substr(real.rfind('/') + 1);
  if (name.starts_with("python3.")) found.version = name.substr(std::strlen("python"));
  for (const char* key : {"version", "version_info"})  // of venv and virtualenv: "3.11.4.final.0"
    if (const std::string& text = venv[key]; found.version.empty() && text.find('.') != text.npos)
      found.version = text.substr(0, text.find('.', text.find('.') + 1));
  const std::string path = exported("PYTHONPATH");
  for (const std::string_view folder : split(path, ':'))
    if (!folder.empty()) found.folders.emplace_back(folder);
  if (has("S")) return found;
  const auto add = [&](const std::string& prefix, std::initializer_list<const char*> libraries) {
    for (const char* library : libraries)
      for (const char* kind : {"site-packages", "dist-packages"})
        found.folders.push_back(
            fmt::format("{}/{}/python{}/{}", prefix, library, found.version, kind));
  };
  if (is_venv) add(own, {"lib64", "lib"});
  if (is_venv && venv["include-system-site-packages"] != "true") return found;
  const std::string home = env.get("HOME").empty() ? "" : env.get("HOME") + "/.local";
  const std::string users = exported("PYTHONUSERBASE");
  if (!has("sI") && exported("PYTHONNOUSERSITE").empty())
    add(users.empty() ? home : users, {"lib"});
  add(base + "/local", {"lib"});
  add(base, {"lib64", "lib"});
  found.folders.push_back(base + "/lib/python3/dist-packages");
  return found;
}

// mpi4py's extension for this version. One with several libraries, as mpi4py 4.1 has, loads what fits.
MpiLibrary library_of_mpi4py(const std::string& python, const std::string& flags,
                             const EnvSnapshot& env) {
  const Packages packages = packages_of(python, flags, env);
  std::string tag = "cpython-" + packages.version + "-";
  std::erase(tag, '.');
  for (const std::string& folder : packages.folders) {
    const auto names = sys::list_directory(folder + "/mpi4py");
    if (!names || names->empty()) continue;
    std::vector<std::string> extensions;
    for (const std::string& name : *names)
      if (name.starts_with("MPI.") && name.ends_with(".so") &&
          (name.find("cpython-") == name.npos || name.find(tag) != name.npos))
        extensions.push_back(name);
    if (extensions.size() != 1) return {};
    return library_in(folder + "/mpi4py/" + extensions.front());
  }
  return {};
}

}  // namespace

MpiLibrary mpi_of(const std::vector<std::string>& typed, const World& world) {
  if (world.made_up()) return {};
  std::vector<std::string> command = behind_wrappers(typed);
  if (command.empty()) return {};
  const auto find = [&](const std::string& word) {
    const Result<std::string> found = world.program(word);
    return found ? *found : word;
  };
  command.front() = find(command.front());
  if (!is_python(command.front())) {
    MpiLibrary linked = library_in(command.front());
    const std::string python = interpreter_of(command.front());
    if (!linked.family.empty() || !is_python(python)) return linked;
    command.insert(command.begin(), find(python));
  }
  const PythonWords words = python_words(command);
  bool uses = words.code.find("mpi4py") != std::string::npos;
  std::string module = words.script.empty() ? words.code : "";
  std::ranges::replace(module, '.', '/');
  for (const std::string& file : {words.script, module + ".py", module + "/__main__.py"}) {
    const Result<std::string> script =
        is_regular(file) ? sys::read_file(file, kMostOfScript) : Error{};
    uses = uses || (script && imports_mpi4py(*script));
  }
  return uses ? library_of_mpi4py(command.front(), words.flags, world.env) : MpiLibrary{};
}

bool serves_type(std::string_view wanted, std::string_view type) {
  return type == wanted || type.starts_with(std::string(wanted) + "_v");
}

bool fits(const Launcher& launcher, const MpiLibrary& mpi) {
  return mpi.family.empty() || std::ranges::count(split(launcher.mpi, ' '), mpi.family) > 0;
}

void check_mpi(const MpiLibrary& mpi, const ChosenLauncher& launcher, const Request& request,
               const World& world, const Plan& plan, Diagnostics& diagnostics) {
  if (plan.world_size() == 1 || mpi.family.empty() || !request.started_by.empty()) return;
  const auto warn = [&](const std::string& message, const std::string& fix) {
    diagnostics.push_back(
        {"mpi-mismatch", Severity::warning,
         fmt::format("{} ({}), {}: each rank would be 0 of 1", mpi.why, mpi.title, message), fix});
  };
  if (!fits(*launcher.launcher, mpi)) {
    std::vector<std::string> fitting;
    std::vector<std::string> here;
    for (const Launcher& one : launchers()) {
      if (!fits(one, mpi)) continue;
      fitting.emplace_back(one.name);
      if (std::ranges::any_of(one.programs, [&](std::string_view program) {
            return world.program(std::string(program)).has_value();
          }))
        here.emplace_back(one.name);
    }
    return warn(fmt::format("not supported by launcher {}", plan.launch.launcher),
                fmt::format("--launcher {}", fmt::join(here.empty() ? fitting : here, ", or ")));
  }
  if (launcher.srun_types.empty()) return;
  std::string type = world.env.get("SLURM_MPI_TYPE", launcher.facts.mpi_type);
  for (const std::string& word : request.launcher_args)
    if (word.starts_with("--mpi=")) type = word.substr(std::strlen("--mpi="));
  const auto fit = [&](const std::string& one) {
    return std::ranges::any_of(mpi.srun_types,
                               [&](const std::string& wanted) { return serves_type(wanted, one); });
  };
  if (!type.empty() ? fit(type) : std::ranges::any_of(launcher.srun_types, fit)) return;
  warn(type.empty()
           ? fmt::format("and srun has only --mpi={}", fmt::join(launcher.srun_types, ", "))
           : fmt::format("not served by srun's --mpi={}", type),
       fmt::format("use a plugin for {} (--launcher-arg --mpi=...), or another --launcher",
                   mpi.title));
}

}  // namespace hpclaunch::job
