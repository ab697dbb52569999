// Where profiles are found by name and by file, and how one is loaded for review.
#include <fmt/format.h>

#include "authoring/command.h"
#include "hpclaunch/json_reader.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::authoring {

namespace {

std::string stem(const std::string& file) {
  std::string name = file.substr(file.rfind('/') + 1);
  if (name.ends_with(".json")) name.resize(name.size() - 5);
  return name;
}

// What a profile in `file` extends as `name`; file "": not a file that was typed.
Result<Profile> find_base(const std::string& name, const std::string& file, const Shelf& shelf) {
  const auto given = shelf.given.find(name);
  const Result<ProfileEntry> entry = file.empty() || given == shelf.given.end()
                                         ? job::find_profile(name, file, shelf.entries)
                                         : ProfileEntry{name, "file", given->second, nullptr, {}};
  return entry ? job::read_profile(*entry) : entry.error();
}

}  // namespace

SourceRef LoadedProfile::place(const SourceRef& where) const {
  if (where.file != file || where.pointer.empty()) return where;
  const json_reader::Context context(text, file);
  return context.place(context.follow(where.pointer));
}

Result<Shelf> open_shelf(const std::vector<std::string>& refs, const EnvSnapshot& env) {
  Result<std::vector<ProfileEntry>> entries = list_profiles(env);
  if (!entries) return entries.error();
  Shelf shelf;
  shelf.entries = std::move(*entries);
  for (const std::string& ref : refs)
    if (job::is_profile_file(ref)) shelf.given.emplace(stem(ref), ref);
  return shelf;
}

Result<LoadedProfile> load_for_review(const std::string& ref, const Shelf& shelf) {
  const std::string file = job::is_profile_file(ref) ? ref : "";
  if (!file.empty())
    if (const Result<std::string> there = sys::read_file(file); !there) return there.error();
  const Result<ProfileEntry> entry = file.empty()
                                         ? job::find_profile(ref, "", shelf.entries)
                                         : ProfileEntry{stem(file), "file", file, nullptr, {}};
  if (!entry) return Error{entry.error().kind, entry.error().message, "hpclaunch profile list"};
  LoadedProfile loaded{entry->name, entry->file};
  const Result<std::string> text = profile_text(*entry);
  if (!text) {
    if (text.error().kind != ErrorKind::invalid) return text.error();
    loaded.problems.push_back(text.error());
    return loaded;
  }
  loaded.text = *text;
  ParsedProfile parsed = parse_profile(*text, entry->file);
  loaded.problems = std::move(parsed.problems);
  loaded.own = std::move(parsed.profile);
  if (!loaded.own.name.empty()) loaded.name = loaded.own.name;
  if (!loaded.problems.empty()) return loaded;
  if (loaded.name != entry->name)
    loaded.problems.push_back(
        {ErrorKind::invalid, fmt::format("the profile in this file is named \"{}\"", loaded.name),
         fmt::format("name the file {}.json", loaded.name), SourceRef{entry->file, 1, 1}});
  Result<Profile> resolved = resolve_profile(
      loaded.own, [&](const std::string& name) { return find_base(name, file, shelf); });
  if (!resolved) {
    loaded.problems.push_back(resolved.error());
    std::optional<SourceRef>& where = loaded.problems.back().where;
    if (where) where = loaded.place(*where);
  }
  if (resolved && loaded.problems.empty())
    loaded.resolved = std::make_shared<const Profile>(*std::move(resolved));
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
