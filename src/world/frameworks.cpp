// What frameworks read to find their ranks, and what --for NAME adds: profiles/programs/frameworks.json.
#include "hpclaunch/frameworks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "hpclaunch/probe.h"
#include "hpclaunch/text.h"
#include "world/programs.h"

namespace hpclaunch::job {

namespace {

using Labelled = std::vector<std::pair<std::string, std::string>>;

std::string_view word(std::string_view row, std::string_view key) {
  const std::vector<std::string_view> words = words_of(row, key);
  return words.empty() ? std::string_view() : words.front();
}

std::string_view row_named(std::string_view name) {
  for (const std::string_view row : known_programs("frameworks"))
    if (word(row, "name") == name) return row;
  return {};
}

Error unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const std::string_view row : known_programs("frameworks"))
    names.emplace_back(word(row, "name"));
  const std::optional<std::string> meant = nearest(name, names);
  return {ErrorKind::usage, fmt::format("invalid value \"{}\" for --for", name),
          meant ? "--for " + *meant : fmt::format("one of {}", fmt::join(names, ", "))};
}

struct Part {
  const char* key;
  const char* what;
};
constexpr Part kParts[] = {{"rank", "rank"},
                           {"world", "world size"},
                           {"local", "local rank"},
                           {"device", "device"},
                           {"local_size", "ranks on the node"},
                           {"node", "node"},
                           {"address", "address"},
                           {"port", "port"},
                           {"coordinator", "meets at"}};

// "if TORCHELASTIC_RUN_ID is set"; "" where nothing is asked.
std::string condition(std::string_view row) {
  const std::vector<std::string_view> above = words_of(row, "when_above");
  if (!above.empty()) return fmt::format("if {} is above 1", above.front());
  const std::vector<std::string_view> when = words_of(row, "when");
  if (when.empty()) return "";
  return fmt::format("if {} {} set", fmt::join(when, ", "), when.size() == 1 ? "is" : "are");
}

}  // namespace

Result<ProgramEnv> framework_env(const Request& request, const EnvSnapshot& env) {
  ProgramEnv settings;
  for (const std::string& name : request.frameworks) {
    const std::string_view row = row_named(name);
    if (row.empty()) return unknown(name);
    for (const std::string_view needed : words_of(row, "requires")) {
      const auto typed = [&](const auto& one) { return one.name == needed; };
      if (env.get(std::string(needed)).empty() && std::ranges::none_of(request.set, typed))
        return Error{ErrorKind::usage, fmt::format("--for {}: {} is not set", name, needed),
                     fmt::format("--set {}=VALUE", needed)};
    }
    const auto add = [&](const char* key) {
      for (const std::string_view one : words_of(row, key))
        settings.emplace_back(one, fmt::format("--for {}: {} reads it", name, word(row, "title")));
    };
    add("env");
    if (!env.has("SLURM_JOB_ID")) add("env_outside_slurm");
  }
  return settings;
}

std::vector<std::string> framework_notes(const Request& request) {
  std::vector<std::string> notes;
  for (const std::string& name : request.frameworks)
    if (const std::string_view note = word(row_named(name), "note"); !note.empty())
      notes.push_back(fmt::format("{}: {}", name, note));
  return notes;
}

Labelled framework_facts(const std::string& name, const Plan& plan) {
  const std::string_view row = row_named(name);
  if (row.empty()) return {};
  Labelled facts = {{"framework", std::string(word(row, "title"))}};
  for (const std::string_view reads : known_programs("reads")) {
    if (word(reads, "framework") != name) continue;
    if (const std::string when = condition(reads); !when.empty()) facts.emplace_back("reads", when);
    for (const Part& part : kParts) {
      std::vector<std::string> names;
      for (const std::string_view one : words_of(reads, part.key))
        names.push_back(fmt::format("{}{}", one, plan.find_env(std::string(one)) ? " (set)" : ""));
      if (!names.empty())
        facts.emplace_back(part.what, fmt::format("{}", fmt::join(names, ", else ")));
    }
  }
  const auto added = [&](const char* key, const char* where) {
    const std::vector<std::string_view> words = words_of(row, key);
    if (!words.empty())
      facts.emplace_back("--for " + name, fmt::format("{}{}", fmt::join(words, ", "), where));
  };
  added("env", "");
  added("env_outside_slurm", ", outside Slurm jobs");
  if (const std::string_view note = word(row, "note"); !note.empty())
    facts.emplace_back("note", std::string(note));
  facts.emplace_back("source", std::string(word(row, "source")));
  return facts;
}

Labelled fabric_facts(const std::string& variable) {
  if (!variable.starts_with("FI_")) return {};
  const auto installed = libfabric_parameters();
  if (!installed) return {};  // none here: the catalogue is all there is
  const auto found = std::ranges::find(*installed, variable, &FabricParameter::name);
  if (found == installed->end()) return {};
  std::string text = fmt::format("the libfabric of this machine reads it: {}", found->type);
  if (!found->help.empty()) text += "; " + found->help;
  if (!found->value.empty() && !is_secret(variable, found->value))
    text += fmt::format("; it is {} now", found->value);
  return {{"installed", text}};
}

Labelled framework_readers(const std::string& variable) {
  std::vector<std::string> readers;
  for (const std::string_view reads : known_programs("reads"))
    for (const Part& part : kParts) {
      const std::vector<std::string_view> names = words_of(reads, part.key);
      const auto found = std::ranges::find(names, variable);
      if (found == names.end()) continue;
      std::string reader(word(reads, "framework"));
      std::vector<std::string> conditions;
      if (const std::string when = condition(reads); !when.empty()) conditions.push_back(when);
      if (found != names.begin())
        conditions.push_back(fmt::format("after {}", fmt::join(names.begin(), found, ", ")));
      reader += fmt::format(" ({}{}{})", part.what, conditions.empty() ? "" : ", ",
                            fmt::join(conditions, ", "));
      readers.push_back(std::move(reader));
    }
  Labelled facts;
  for (std::string& reader : readers)
    facts.emplace_back(facts.empty() ? "frameworks" : "", std::move(reader));
  return facts;
}

}  // namespace hpclaunch::job
