// What this program is: its version, how it was built, and what it needs of the machine, read from its own headers in
// memory, so that it is true of any link of the same objects.
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <link.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr std::string_view kGlibc = "GLIBC_";

// 2.17 before 2.3: versions are numbers between dots.
std::pair<long, long> number_of(std::string_view version) {
  const std::size_t dot = version.find('.');
  const auto part = [](std::string_view text) {
    return parse_natural(text, 1'000'000).value_or(0);
  };
  return {part(version.substr(0, dot)),
          dot == version.npos
              ? 0
              : part(version.substr(dot + 1, version.find('.', dot + 1) - dot - 1))};
}

struct Needs {
  std::vector<std::string> libraries;
  std::string glibc;  ///< the newest version of a symbol; "" in a static program
};

// `base`: where the program lies; its own tables name addresses relative to that, or already relocated ones.
Needs read_needs(ElfW(Addr) base) {
  Needs needs;
  std::map<ElfW(Sxword), ElfW(Addr)> tables;
  std::vector<ElfW(Addr)> names;
  for (const ElfW(Dyn)* entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_NEEDED)
      names.push_back(entry->d_un.d_val);
    else
      tables[entry->d_tag] = entry->d_un.d_ptr;
  }
  const auto at = [&](ElfW(Sxword) tag) {
    const ElfW(Addr) address = tables[tag];
    return reinterpret_cast<const char*>(address < base ? base + address : address);
  };
  const char* text = at(DT_STRTAB);
  needs.libraries.reserve(names.size());
  for (const ElfW(Addr) name : names) needs.libraries.emplace_back(text + name);
  const char* file = tables.contains(DT_VERNEED) ? at(DT_VERNEED) : nullptr;
  while (file != nullptr) {
    const auto* library = reinterpret_cast<const ElfW(Verneed)*>(file);
    const char* one = file + library->vn_aux;
    for (int left = library->vn_cnt; left > 0; --left) {
      const auto* version = reinterpret_cast<const ElfW(Vernaux)*>(one);
      const std::string_view name = text + version->vna_name;
      if (name.starts_with(kGlibc) &&
          number_of(needs.glibc) < number_of(name.substr(kGlibc.size())))
        needs.glibc = name.substr(kGlibc.size());
      one += version->vna_next;
    }
    file = library->vn_next == 0 ? nullptr : file + library->vn_next;
  }
  return needs;
}

// The first object that the loader tells of is the program.
int first_object(dl_phdr_info* object, std::size_t, void* base) {
  *static_cast<ElfW(Addr)*>(base) = object->dlpi_addr;
  return 1;
}

}  // namespace

int print_version(bool json, Session& session) {
  if (!json) return print_all(session, fmt::format("hpclaunch {}\n", HPCLAUNCH_VERSION));
  ElfW(Addr) base = 0;
  dl_iterate_phdr(first_object, &base);
  const Needs needs = read_needs(base);
  nlohmann::ordered_json inside = nlohmann::ordered_json::object();
  for (const std::string_view library : split(HPCLAUNCH_LIBRARIES, ','))
    inside[std::string(library.substr(0, library.find('=')))] =
        library.substr(library.find('=') + 1);
  const nlohmann::ordered_json document = {
      {"version", HPCLAUNCH_VERSION},
      {"build", HPCLAUNCH_BUILD},
      {"compiler", __VERSION__},
      {"glibc", {{"floor", needs.glibc}, {"here", gnu_get_libc_version()}}},
      {"needs", needs.libraries},
      {"libraries", inside}};
  return print_all(session, document.dump(2) + "\n");
}

}  // namespace hpclaunch::cli
