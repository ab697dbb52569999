// What frameworks read to find their ranks, and what --for NAME adds: profiles/programs/frameworks.json.
#include "hpclaunch/frameworks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "hpclaunch/probe.h"
#include "hpclaunch/programs.h"
#include "hpclaunch/text.h"
#include "world/programs.h"

namespace hpclaunch::job {

namespace {

using Labelled = std::vector<std::pair<std::string, std::string>>;

Error unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const Framework& row : rows<Framework>()) names.emplace_back(row.name);
  const std::optional<std::string> meant = nearest(name, names);
  return {ErrorKind::usage, fmt::format("invalid value \"{}\" for --for", name),
          meant ? "--for " + *meant : fmt::format("one of {}", fmt::join(names, ", "))};
}

struct Part {
  Words FrameworkReads::*names;
  const char* what;
};
constexpr Part kParts[] = {{&FrameworkReads::rank, "rank"},
                           {&FrameworkReads::world, "world size"},
                           {&FrameworkReads::local, "local rank"},
                           {&FrameworkReads::device, "device"},
                           {&FrameworkReads::local_size, "ranks on the node"},
                           {&FrameworkReads::node, "node"},
                           {&FrameworkReads::address, "address"},
                           {&FrameworkReads::port, "port"},
                           {&FrameworkReads::coordinator, "meets at"}};

// "if TORCHELASTIC_RUN_ID is set"; "" where nothing is asked.
std::string condition(const FrameworkReads& row) {
  if (!row.when_above.empty()) return fmt::format("if {} is above 1", row.when_above);
  if (row.when.empty()) return "";
  return fmt::format("if {} {} set", fmt::join(row.when, ", "),
                     row.when.size() == 1 ? "is" : "are");
}

}  // namespace

Result<ProgramEnv> framework_env(const Request& request, const EnvSnapshot& env) {
  ProgramEnv settings;
  for (const std::string& name : request.frameworks) {
    const auto* row = find_row<Framework>(name);
    if (row == nullptr) return unknown(name);
    for (const std::string_view needed : row->needs) {
      const auto typed = [&](const auto& one) { return one.name == needed; };
      if (env.get(std::string(needed)).empty() && std::ranges::none_of(request.set, typed))
        return Error{ErrorKind::usage, fmt::format("--for {}: {} is not set", name, needed),
                     fmt::format("--set {}=VALUE", needed)};
    }
    const auto add = [&](Words names) {
      for (const std::string_view one : names)
        settings.emplace_back(one, fmt::format("--for {}: {} reads it", name, row->title));
    };
    add(row->env);
    if (!env.has("SLURM_JOB_ID")) add(row->env_outside_slurm);
  }
  return settings;
}

std::vector<std::string> framework_notes(const Request& request) {
  std::vector<std::string> notes;
  for (const std::string& name : request.frameworks)
    if (const auto* row = find_row<Framework>(name); row != nullptr && !row->note.empty())
      notes.push_back(fmt::format("{}: {}", name, row->note));
  return notes;
}

Labelled framework_facts(const std::string& name, const Plan& plan) {
  const auto* row = find_row<Framework>(name);
  if (row == nullptr) return {};
  Labelled facts = {{"framework", std::string(row->title)}};
  for (const FrameworkReads& reads : rows<FrameworkReads>()) {
    if (reads.framework != name) continue;
    if (const std::string when = condition(reads); !when.empty()) facts.emplace_back("reads", when);
    for (const Part& part : kParts) {
      std::vector<std::string> names;
      for (const std::string_view one : reads.*part.names)
        names.push_back(fmt::format("{}{}", one, plan.find_env(std::string(one)) ? " (set)" : ""));
      if (!names.empty())
        facts.emplace_back(part.what, fmt::format("{}", fmt::join(names, ", else ")));
    }
  }
  const auto added = [&](Words words, const char* where) {
    if (!words.empty())
      facts.emplace_back("--for " + name, fmt::format("{}{}", fmt::join(words, ", "), where));
  };
  added(row->env, "");
  added(row->env_outside_slurm, ", outside Slurm jobs");
  if (!row->note.empty()) facts.emplace_back("note", std::string(row->note));
  facts.emplace_back("source", std::string(row->source));
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
  for (const FrameworkReads& reads : rows<FrameworkReads>())
    for (const Part& part : kParts) {
      const Words names = reads.*part.names;
      const auto found = std::ranges::find(names, variable);
      if (found == names.end()) continue;
      std::string reader(reads.framework);
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
