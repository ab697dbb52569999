// hpclaunch profile install: a profile into the folder where launches of this user, or of everybody, find it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "authoring/command.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

namespace fs = std::filesystem;

// What it extends must be found by name: the files beside it stay where they are.
Status resolves_by_name(const LoadedProfile& loaded, const std::vector<ProfileEntry>& entries) {
  const Result<Profile> found = resolve_profile(loaded.own, [&](const std::string& name) {
    const Result<ProfileEntry> entry = job::find_profile(name, "", entries);
    return entry ? job::read_profile(*entry) : entry.error();
  });
  if (found) return Done{};
  return Error{
      found.error().kind,
      fmt::format("{} extends what is not installed: {}", loaded.file, found.error().message),
      "install first what it extends"};
}

// Errors: `system`, with the command for an administrator.
Status write_profile(const std::string& folder, const std::string& target, const std::string& text,
                     bool system) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    return Error{ErrorKind::system, fmt::format("cannot create {}: {}", folder, failed.message()),
                 system ? "as root, or --user" : "export XDG_CONFIG_HOME with a folder of yours"};
  if (const fs::file_status there = fs::status(folder, failed);
      (there.permissions() & fs::perms::others_write) != fs::perms::none)
    return Error{ErrorKind::invalid, fmt::format("{} is writable by others", folder),
                 fmt::format("chmod o-w {}", folder)};
  return job::write_file("profile install", target, text);
}

// A file that others may write is refused by every launch, whatever the umask was.
Status set_mode(const std::string& target) {
  std::error_code failed;
  using fs::perms;
  fs::permissions(target,
                  perms::owner_read | perms::owner_write | perms::group_read | perms::others_read,
                  failed);
  if (!failed) return Done{};
  return Error{ErrorKind::system,
               fmt::format("cannot set the mode of {}: {}", target, failed.message()),
               fmt::format("chmod 644 {}", target)};
}

// Where it went, what it hides, or what hides it.
int report_place(const std::string& name, const std::string& target, Session& session) {
  const Result<std::vector<ProfileEntry>> entries = list_profiles(session.env);
  if (!entries) return report(session, entries.error());
  for (const ProfileEntry& entry : *entries) {
    if (entry.name != name) continue;
    if (entry.file != target)
      return report(session, Error{ErrorKind::invalid,
                                   fmt::format("installed {}, which {} hides", target, entry.file),
                                   fmt::format("remove {}, or --profile {}", entry.file, target)});
    const std::string hidden =
        entry.shadows.empty() ? "" : fmt::format("; it hides {}", fmt::join(entry.shadows, ", "));
    return print_all(session, fmt::format("installed {}{}\n", target, hidden));
  }
  return report(
      session, Error{ErrorKind::invalid, fmt::format("{} is in no folder that is searched", target),
                     "hpclaunch profile list"});
}

}  // namespace

int profile_install(const Args& args, Session& session) {
  if (args.names.size() != 1 || !job::is_profile_file(args.names.front()) ||
      args.system == args.user)
    return report(session, Error{ErrorKind::usage, "install takes one file, and --user or --system",
                                 "hpclaunch profile install ./my-site.json --user"});
  const Result<Shelf> shelf = open_shelf(args.names, session.env);
  if (!shelf) return report(session, shelf.error());
  const Result<LoadedProfile> loaded = load_for_review(args.names.front(), *shelf);
  if (!loaded) return report(session, loaded.error());
  if (!loaded->resolved) return profile_validate(args, session);  // says all that is wrong
  if (const Status found = resolves_by_name(*loaded, shelf->entries); !found)
    return report(session, found.error());
  const Result<std::string> text = sys::read_trusted_file(loaded->file, 4u << 20);
  const Result<std::string> folder = job::profile_folder(session.env, args.system);
  if (!text || !folder) return report(session, text ? folder.error() : text.error());
  const std::string target = fmt::format("{}/{}.json", *folder, loaded->name);
  Status done = write_profile(*folder, target, *text, args.system);
  if (done) done = set_mode(target);
  return done ? report_place(loaded->name, target, session) : report(session, done.error());
}

}  // namespace hpclaunch::authoring
