// Where profiles are found by name and by file, and how one is loaded for review.
#include <fmt/format.h>

#include "authoring/command.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

constexpr std::string_view kEnding = ".json";

bool is_file(const std::string& ref) {
  return ref.find('/') != std::string::npos || ref.ends_with(kEnding);
}

std::string stem(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  if (name.ends_with(kEnding)) name.resize(name.size() - kEnding.size());
  return name;
}

Error unknown(const std::string& name, const Shelf& shelf) {
  std::vector<std::string> names;
  for (const ProfileEntry& entry : shelf.entries) names.push_back(entry.name);
  for (const auto& [given, file] : shelf.given) names.push_back(given);
  const auto near = nearest(name, names);
  return {ErrorKind::not_found, fmt::format("no profile \"{}\"", name),
          near ? fmt::format("did you mean {}?", *near) : "hpclaunch profile list"};
}

const ProfileEntry* find_entry(const std::string& name, const Shelf& shelf) {
  for (const ProfileEntry& entry : shelf.entries)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::optional<ProfileEntry> beside(const std::string& name, const std::string& file) {
  const std::size_t slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash);
  for (const char* way : {"/", "/../part/", "/../site/"}) {
    const std::string path = fmt::format("{}{}{}{}", folder, way, name, kEnding);
    const Result<std::string> text = sys::read_file(path);
    if (text || text.error().kind != ErrorKind::not_found)
      return ProfileEntry{name, "file", path, nullptr, {}};
  }
  return std::nullopt;
}

// Where a profile in `file` finds the `name` that it extends; file "": not a file that was typed.
Result<ProfileEntry> look_up(const std::string& name, const std::string& file, const Shelf& shelf) {
  if (!file.empty()) {
    const auto given = shelf.given.find(name);
    if (given != shelf.given.end()) return ProfileEntry{name, "file", given->second, nullptr, {}};
    if (std::optional<ProfileEntry> near = beside(name, file)) return *std::move(near);
  }
  if (const ProfileEntry* entry = find_entry(name, shelf)) return *entry;
  return unknown(name, shelf);
}

Result<Profile> find_base(const std::string& name, const std::string& file, const Shelf& shelf) {
  const Result<ProfileEntry> entry = look_up(name, file, shelf);
  if (!entry) return entry.error();
  const Result<std::string> text = profile_text(*entry);
  if (!text) return text.error();
  ParsedProfile parsed = parse_profile(*text, entry->file);
  if (!parsed.problems.empty()) return parsed.problems.front();
  if (parsed.profile.name != name)
    return Error{ErrorKind::invalid,
                 fmt::format("the profile in this file is named \"{}\"", parsed.profile.name),
                 fmt::format("name the file {}.json", parsed.profile.name), SourceRef{entry->file}};
  return std::move(parsed.profile);
}

}  // namespace

Result<Shelf> open_shelf(const std::vector<std::string>& refs, const EnvSnapshot& env) {
  Result<std::vector<ProfileEntry>> entries = list_profiles(env);
  if (!entries) return entries.error();
  Shelf shelf;
  shelf.entries = std::move(*entries);
  for (const std::string& ref : refs)
    if (is_file(ref)) shelf.given.emplace(stem(ref), ref);
  return shelf;
}

Result<LoadedProfile> load_for_review(const std::string& ref, const Shelf& shelf) {
  const ProfileEntry* known = is_file(ref) ? nullptr : find_entry(ref, shelf);
  if (!is_file(ref) && known == nullptr) return unknown(ref, shelf);
  const ProfileEntry entry =
      known != nullptr ? *known : ProfileEntry{stem(ref), "file", ref, nullptr, {}};
  LoadedProfile loaded;
  loaded.name = entry.name;
  loaded.file = entry.file;
  if (known == nullptr)
    if (const Result<std::string> there = sys::read_file(ref); !there) return there.error();
  const Result<std::string> text = profile_text(entry);
  if (!text) {
    if (text.error().kind != ErrorKind::invalid) return text.error();
    loaded.problems.push_back(text.error());
    return loaded;
  }
  const ParsedProfile parsed = parse_profile(*text, entry.file);
  loaded.problems = parsed.problems;
  if (!parsed.profile.name.empty()) loaded.name = parsed.profile.name;
  if (!loaded.problems.empty()) return loaded;
  if (loaded.name != entry.name)
    loaded.problems.push_back(
        {ErrorKind::invalid, fmt::format("the profile in this file is named \"{}\"", loaded.name),
         fmt::format("name the file {}.json", loaded.name), SourceRef{entry.file, 1, 1}});
  const std::string file = known == nullptr ? ref : "";
  Result<Profile> resolved = resolve_profile(
      parsed.profile, [&](const std::string& name) { return find_base(name, file, shelf); });
  if (!resolved)
    loaded.problems.push_back(resolved.error());
  else if (loaded.problems.empty())
    loaded.resolved = std::move(*resolved);
  return loaded;
}

Result<std::vector<LoadedProfile>> load_all(const Args& args, Session& session, int& status) {
  const Result<Shelf> shelf = open_shelf(args.names, session.env);
  if (!shelf) return shelf.error();
  std::vector<std::string> refs = args.names;
  if (refs.empty())
    for (const ProfileEntry& entry : shelf->entries) refs.push_back(entry.name);
  std::vector<LoadedProfile> all;
  for (const std::string& ref : refs) {
    Result<LoadedProfile> loaded = load_for_review(ref, *shelf);
    if (loaded)
      all.push_back(std::move(*loaded));
    else
      status = report(session, loaded.error());
  }
  return all;
}

}  // namespace hpclaunch::authoring
