// Which profile applies: the scopes, --profile, and the signals of sites.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "hpclaunch/site_profiles.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "world/site.h"

namespace hpclaunch::job {

namespace {

// One or several, separated by ':', the strongest last; empty ones do not count.
std::string site_directories(const EnvSnapshot& env) {
  if (env.has("HPCLAUNCH_PROFILE_PATH")) return env.get("HPCLAUNCH_PROFILE_PATH");
  const std::string machine = "/etc/hpclaunch/profiles";
  const std::string own = sys::own_directory();
  const std::string prefix = own.substr(0, own.find_last_of('/') + 1) + machine.substr(1);
  return prefix == machine || own.empty() ? machine : prefix + ":" + machine;
}

std::string user_directory(const EnvSnapshot& env) {
  const std::string home = env.get("HOME");
  const std::string config = env.get("XDG_CONFIG_HOME");
  if (config.empty() && home.empty()) return {};
  return (config.empty() ? home + "/.config" : config) + "/hpclaunch/profiles";
}

void enter(std::map<std::string, ProfileEntry>& entries, ProfileEntry entry) {
  ProfileEntry& weaker = entries[entry.name];
  entry.shadows = std::move(weaker.shadows);
  if (!weaker.file.empty()) entry.shadows.push_back(std::move(weaker.file));
  weaker = std::move(entry);
}

Status enter_files(const std::vector<std::string_view>& directories, const std::string& scope,
                   std::map<std::string, ProfileEntry>& entries) {
  for (const std::string_view directory : directories) {
    if (directory.empty()) continue;
    const Result<std::vector<std::string>> names = sys::list_directory(std::string(directory));
    if (!names) return names.error();
    for (const std::string& name : *names)
      if (name.ends_with(".json"))
        enter(entries, {name.substr(0, name.size() - 5),
                        scope,
                        fmt::format("{}/{}", directory, name),
                        nullptr,
                        {}});
  }
  return Done{};
}

Result<Profile> parsed(std::string_view text, const std::string& file) {
  ParsedProfile read = parse_profile(text, file, Cases::skip);
  if (read.problems.empty()) return std::move(read.profile);
  Error error = read.problems.front();
  if (read.problems.size() > 1)
    error.hint += fmt::format("{}{} more: hpclaunch profile validate {}",
                              error.hint.empty() ? "" : "; ", read.problems.size() - 1, file);
  return error;
}

// The signals of every site; of builtin profiles nothing else is read. `unusable`: by name, why.
Result<std::vector<SiteSignals>> all_signals(const std::vector<ProfileEntry>& entries,
                                             std::map<std::string, Error>& unusable) {
  std::vector<SiteSignals> sites;
  for (const ProfileEntry& entry : entries) {
    if (entry.builtin != nullptr) {
      if (entry.builtin->detect.empty()) continue;
      sites.push_back({entry.name, {}});
      for (const auto& [env, like, proves] : entry.builtin->detect)
        sites.back().detect.push_back({std::string(env), std::string(like), proves});
      continue;
    }
    Result<Profile> profile = read_profile(entry);
    if (profile) {
      if (!profile->part) sites.push_back({entry.name, std::move(profile->detect)});
      continue;
    }
    const Error& error = profile.error();
    if (!entry.shadows.empty())  // ignoring it would ignore the site's settings
      return Error{error.kind,
                   fmt::format("profile {} cannot be used and hides {}: {}", entry.file,
                               entry.shadows.back(), error.message),
                   error.hint, error.where};
    unusable.emplace(entry.name, error);
    // Its signals are read all the same: a job of its site must not start without it.
    const Result<std::string> raw = sys::read_file(entry.file);
    if (raw)
      sites.push_back({entry.name, parse_profile(*raw, entry.file, Cases::skip).profile.detect});
  }
  return sites;
}

Error conflict(const std::vector<SiteMatch>& sites) {
  std::vector<std::string> lines;
  std::vector<std::string> options;
  for (const SiteMatch& site : sites) {
    lines.push_back(fmt::format("{} ({})", site.profile, fmt::join(site.proofs, ", ")));
    options.push_back("--profile " + site.profile);
  }
  return Error{ErrorKind::usage,
               fmt::format("{} sites detected: {}", sites.size(), fmt::join(lines, "; ")),
               fmt::format("{}", fmt::join(options, " or "))};
}

Result<Detection> detect(const EnvSnapshot& env, const std::vector<std::string>& hosts,
                         std::map<std::string, Error>& unusable,
                         std::vector<Diagnostic>& diagnostics) {
  const Result<std::vector<ProfileEntry>> entries = list_profiles(env, &diagnostics);
  if (!entries) return entries.error();
  const Result<std::vector<SiteSignals>> sites = all_signals(*entries, unusable);
  if (!sites) return sites.error();
  return detect_site(*sites, env, hosts);
}

// --profile against where the job evidently is: the site that is detected, else the batch system.
void report_other_site(const Profile& profile, const EnvSnapshot& env,
                       const std::vector<std::string>& hosts,
                       std::vector<Diagnostic>& diagnostics) {
  std::map<std::string, Error> unusable;
  std::vector<Diagnostic> unused;
  const Result<Detection> found = detect(env, hosts, unusable, unused);
  const BatchJob batch = find_batch(env);
  const auto runs = [&](const Scheduler* system) {
    return system != nullptr && system->name == profile.scheduler;
  };
  const bool own = found && (found->profile.empty() || found->profile == profile.name ||
                             std::ranges::count(profile.extends, found->profile) > 0);
  std::string where;
  if (found && !own)
    where = fmt::format("{} ({})", found->profile, fmt::join(found->proofs, "; "));
  else if (!profile.scheduler.empty() && !runs(batch.scheduler) && !runs(batch.outer))
    where = fmt::format("a {} job, and {} has {}", batch.scheduler->title, profile.name,
                        find_row<Scheduler>(profile.scheduler)->title);
  if (!where.empty())
    diagnostics.push_back({"profile-elsewhere", Severity::warning,
                           fmt::format("--profile {}, but this is {}", profile.name, where),
                           found && !own ? "omit --profile" : "--profile none, or the site's own"});
}

void report_retired(const Profile& profile, std::vector<Diagnostic>& diagnostics) {
  if (!profile.retired) return;
  const Retirement& end = *profile.retired;
  diagnostics.push_back(
      {"site-retired", Severity::warning,
       fmt::format("{} was retired on {}{}", profile.name, end.date,
                   end.successor.empty() ? "" : "; " + end.successor + " replaces it"),
       end.successor.empty() ? "" : fmt::format("--profile {}", end.successor)});
}

}  // namespace

Result<std::vector<ProfileEntry>> list_profiles(const EnvSnapshot& env,
                                                std::vector<Diagnostic>* diagnostics) {
  std::map<std::string, ProfileEntry> entries;
  for (const BuiltinProfile& one : builtin_profiles())
    enter(entries, {std::string(one.name), "builtin", std::string(one.file), &one, {}});
  const std::string site = site_directories(env);
  const std::string user = user_directory(env);
  if (const Status done = enter_files(split(site, ':'), "site", entries); !done)
    return done.error();
  if (const Status done = enter_files({user}, "user", entries); !done && diagnostics != nullptr)
    diagnostics->push_back({"profiles-unreadable", Severity::note,
                            "ignoring your own profiles: " + done.error().message,
                            "export XDG_CONFIG_HOME with a folder that can be read"});
  std::vector<ProfileEntry> list;
  list.reserve(entries.size());
  for (auto& [name, entry] : entries) list.push_back(std::move(entry));
  return list;
}

Result<std::string> profile_folder(const EnvSnapshot& env, bool everybody) {
  const std::string site = site_directories(env);
  const std::string folder =
      everybody ? site.substr(site.find_last_of(':') + 1) : user_directory(env);
  if (!folder.empty()) return folder;
  return Error{ErrorKind::usage,
               everybody ? "HPCLAUNCH_PROFILE_PATH names no folder" : "HOME is not set",
               everybody ? "unset HPCLAUNCH_PROFILE_PATH" : "export XDG_CONFIG_HOME=FOLDER"};
}

Result<std::string> profile_text(const ProfileEntry& entry) {
  if (entry.builtin != nullptr) return std::string(entry.builtin->text);
  return sys::read_trusted_file(entry.file, 4u << 20);
}

bool is_profile_file(const std::string& ref) {
  return ref.find('/') != std::string::npos || ref.ends_with(".json");
}

Result<ProfileEntry> find_profile(const std::string& name, const std::string& file,
                                  const std::vector<ProfileEntry>& entries) {
  const std::string folder =
      file.find('/') == std::string::npos ? "." : file.substr(0, file.rfind('/'));
  if (!file.empty())
    for (const char* where : {"/", "/../part/", "/../site/"}) {
      const std::string path = fmt::format("{}{}{}.json", folder, where, name);
      std::error_code unreadable;
      if (std::filesystem::exists(path, unreadable) || unreadable)
        return ProfileEntry{name, "file", path, nullptr, {}};
    }
  if (const ProfileEntry* found = find_named(entries, name)) return *found;
  const auto near = nearest(name, names_of(entries));
  return Error{ErrorKind::not_found,
               fmt::format("no profile \"{}\"{}", name,
                           near ? fmt::format("; did you mean {}?", *near) : ""),
               near ? fmt::format("--profile {}", *near) : "hpclaunch profile list"};
}

Result<Profile> read_profile(const ProfileEntry& entry) {
  if (entry.builtin != nullptr) return unpack_profile(entry.builtin->parsed);
  const Result<std::string> text = profile_text(entry);
  if (!text) return text.error();
  Result<Profile> profile = parsed(*text, entry.file);
  if (profile && !entry.name.empty() && profile->name != entry.name)
    return Error{ErrorKind::invalid,
                 fmt::format("the profile in this file is named \"{}\"", profile->name),
                 fmt::format("name the file {}.json", profile->name), SourceRef{entry.file}};
  return profile;
}

Result<Profile> load_profile(const std::string& ref, const EnvSnapshot& env) {
  const Result<std::vector<ProfileEntry>> entries = list_profiles(env);
  if (!entries) return entries.error();
  const std::string file = is_profile_file(ref) ? ref : "";
  const auto read = [&](const std::string& name) -> Result<Profile> {
    const Result<ProfileEntry> entry = find_profile(name, file, *entries);
    return entry ? read_profile(*entry) : entry.error();
  };
  Result<Profile> own = file.empty() ? read(ref) : read_profile({"", "file", file, nullptr, {}});
  return own ? resolve_profile(*std::move(own), read) : own;
}

Result<ChosenProfile> choose_profile(const std::string& ref, const World& world,
                                     const std::vector<std::string>& hosts, bool in_job,
                                     std::vector<Diagnostic>& diagnostics) {
  const EnvSnapshot& env = world.env;
  if (world.made_up() && !ref.empty() && ref != world.profile->name)
    return Error{ErrorKind::usage, fmt::format("--profile {}: a case is of its own profile", ref),
                 "omit it"};
  if (world.made_up()) return ChosenProfile{world.profile, world.profile_why};
  ChosenProfile chosen;
  if (ref == "none") {
    chosen.why = "--profile none";
    return chosen;
  }
  std::string name = ref;
  if (!ref.empty()) {
    chosen.why = "--profile " + ref;
  } else {
    std::map<std::string, Error> unusable;
    const Result<Detection> detected = detect(env, hosts, unusable, diagnostics);
    if (!detected) return detected.error();
    const Detection& found = *detected;
    if (!found.rivals.empty()) return conflict(found.rivals);
    if (const auto own = unusable.find(found.profile); own != unusable.end())
      return Error{own->second.kind,
                   fmt::format("the profile of this site ({}) cannot be used: {}",
                               found.proofs.front(), own->second.message),
                   own->second.hint + "; or --profile none to start without it", own->second.where};
    for (const auto& [other, error] : unusable)
      diagnostics.push_back({"profile-unusable", Severity::warning,
                             fmt::format("profile {} is ignored: {}", other, error.message),
                             fmt::format("hpclaunch profile validate {}", other)});
    if (found.profile.empty()) {
      chosen.why = "no known site detected";
      for (const SiteMatch& hint : found.hints)
        chosen.why += fmt::format("; {} suggests {}", hint.support.front(), hint.profile);
      if (in_job)
        diagnostics.push_back(
            {"site-unknown", Severity::note, chosen.why, "--profile NAME, or --profile none"});
      return chosen;
    }
    name = found.profile;
    chosen.why = fmt::format("{}", fmt::join(found.proofs, "; "));
    for (const std::string& support : found.support) chosen.why += "; " + support;
    for (const SiteMatch& hint : found.hints)
      for (const std::string& signal : hint.support)
        chosen.why += fmt::format("; {} also suggests {}", signal, hint.profile);
  }
  Result<Profile> profile = load_profile(name, env);
  if (!profile) return profile.error();
  if (profile->part)
    return Error{ErrorKind::usage,
                 fmt::format("{} is a part for profiles, not a site", profile->name),
                 "hpclaunch profile list"};
  report_retired(*profile, diagnostics);
  if (in_job && !ref.empty()) report_other_site(*profile, env, hosts, diagnostics);
  chosen.profile = std::make_shared<const Profile>(std::move(*profile));
  return chosen;
}

}  // namespace hpclaunch::job
