#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "hpclaunch/frameworks.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr int kColumn = 14;  // where values and reasons begin, as in hpclaunch::explain

// Some are decided only where something asks for them. Options of launchers and batch systems are decisions as well,
// under their own names.
constexpr std::array kChoiceNames = {
    ChoiceName{"profile", "the site profile"},
    ChoiceName{"stack", "the software stack of the profile"},
    ChoiceName{"device-mode", "the part of a device that a rank gets"},
    ChoiceName{"gpu-view", "the devices that a rank sees"},
    ChoiceName{"granted-devices", "the devices that the batch system granted"},
    ChoiceName{"nodes", "how many nodes"},
    ChoiceName{"ranks-per-node", "how many ranks each node gets"},
    ChoiceName{"ranks", "how many ranks"},
    ChoiceName{"placement", "cores, device and network interface of each rank"},
    ChoiceName{"devices", "the devices of each rank"},
    ChoiceName{"nics", "the network interface of each rank"},
    ChoiceName{"launcher", "what starts the ranks"},
    ChoiceName{"hosts", "the nodes of the job"},
    ChoiceName{"node", "which node this is, where hpclaunch is started on each"},
    ChoiceName{"cpu-bind", "the CPUs of each rank"},
    ChoiceName{"bind-via", "who binds the ranks"},
    ChoiceName{"supervise", "whether hpclaunch monitors the job"},
    ChoiceName{"signal", "the signal before the allocation ends"},
    ChoiceName{"inside-step", "whether this shell is a step of the job"},
    ChoiceName{"core-limit", "the size limit of core files"},
    ChoiceName{"directories", "directories that the ranks make"},
    ChoiceName{"stage", "how software gets to the nodes before the start"},
    ChoiceName{"container", "the image that the ranks run in, and its engine"},
    ChoiceName{"network", "the network that the batch system is asked for"},
};

struct Args {
  Request launch;
  std::vector<std::string> names;
  bool json = false;
};

std::string rows(const std::vector<std::pair<std::string, std::string>>& facts,
                 const Style& style) {
  std::string text;
  for (const auto& [label, fact] : facts) text += entry(label, fact, kColumn, style);
  return text;
}

// What the catalogue of variables has about a name; "" when nothing but a likely misspelling.
std::string catalogue_text(const std::string& name, const Style& style) {
  const bool doubtful = !knowledge::find(name) && !knowledge::find_misspelling(name) &&
                        knowledge::check(name, "").id == knowledge::kUnknownVariable;
  return doubtful ? "" : rows(knowledge::describe(name), style);
}

bool decided(const Plan& plan, const std::string& name) {
  return plan.find_env(name) != nullptr || plan.find_choice(name) != nullptr;
}

// Flags go by their name with or without dashes, since a shell user types "explain pmi".
std::string known_as(const Plan& plan, const std::string& name) {
  if (decided(plan, name)) return name;
  if (name == "site") return "profile";
  for (const char* lead : {"--", "-", "batch --", "batch "})
    if (decided(plan, lead + name)) return lead + name;
  return name;
}

std::string heading(const std::string& title, const Style& style) {
  return style.color ? fmt::format("\n\x1b[1m== {} ==\x1b[0m\n\n", title)
                     : fmt::format("\n== {} ==\n\n", title);
}

// A choice that nothing asked for; "" for a name of something else.
std::string undecided_text(const std::string& name, const Style& style) {
  const auto choice = std::ranges::find(kChoiceNames, name, &ChoiceName::name);
  if (choice == kChoiceNames.end()) return "";
  return name + "\n  nothing decided here\n" + rows({{"what", choice->what}}, style);
}

// A note of the profile; "" when there is none of this name.
std::string note_text(const Prepared& prepared, std::string_view name, const Style& style) {
  const auto note = std::ranges::find(prepared.notes, name, &Note::id);
  if (note == prepared.notes.end()) return "";
  const Origin& origin = note->origin;
  return rows({{"note", note->title + ": " + note->text},
               {"source", fmt::format("{}, checked on {}", origin.source, origin.checked)}},
              style);
}

// Everything: choices first, then variables by the library that reads them, then the profile's notes.
std::string everything(const Prepared& prepared, const Style& style) {
  const Plan& plan = prepared.plan;
  std::vector<std::string> names;
  for (const Setting& setting : plan.explanation.choices) names.push_back(setting.name);
  std::string text = explain(plan, names, style);
  std::map<std::string, std::vector<std::string>> by_library;
  std::vector<std::string> others;
  for (const Setting& setting : plan.environment.settings) {
    const auto known = knowledge::find(setting.name);
    if (known)
      by_library[std::string(known->library.title)].push_back(setting.name);
    else
      others.push_back(setting.name);
  }
  for (const auto& [library, members] : by_library)
    text += heading(library, style) + explain(plan, members, style);
  if (!others.empty()) text += heading("other variables", style) + explain(plan, others, style);
  if (!prepared.notes.empty())
    text += heading("notes of the profile: hpclaunch explain NAME", style);
  for (const Note& note : prepared.notes)
    text += fmt::format("  {:<{}} {}\n", note.id, 20, note.title);
  return text;
}

void report_unknown(const Prepared& prepared, const std::string& name, Session& session) {
  const Plan& plan = prepared.plan;
  std::vector<std::string> known;
  for (const Note& note : prepared.notes) known.push_back(note.id);
  for (const Setting& setting : plan.explanation.choices) known.push_back(setting.name);
  for (const Setting& setting : plan.environment.settings) known.push_back(setting.name);
  const Diagnostic doubt = knowledge::check(name, "");
  const std::string meant =
      nearest(name, known).value_or(doubt.id == knowledge::kUnknownVariable ? doubt.fix : "");
  const std::string text = doubt.id == knowledge::kUnknownVariable && !doubt.message.empty()
                               ? doubt.message.substr(0, doubt.message.find(';'))
                               : fmt::format("{}: unknown", name);
  fmt::print(session.err, "hpclaunch: {}, and not set by hpclaunch{}\n", render::printable(text),
             meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
  fmt::print(session.err, "hpclaunch: try: hpclaunch explain{}\n",
             meant.empty() ? "" : " " + meant);
}

// Rules of the profile that set it under other conditions.
std::string inactive(const Plan& plan, const std::string& name) {
  std::string text;
  for (const IdleRule& idle : plan.explanation.idle) {
    if (idle.variable != name) continue;
    text += fmt::format("  {:<{}}rule {} of profile {}, {}:{}\n", "inactive", kColumn - 2,
                        idle.rule, idle.profile, idle.where.file, idle.where.line);
    text += fmt::format("{:{}}needs {}\n", "", kColumn, idle.needs);
  }
  return text;
}

// Decisions, inactive rules, the catalogue's entry and the note of one name; "" without any.
std::string one_name(const Prepared& prepared, const std::string& name, const EnvSnapshot& env,
                     const Style& style) {
  const Plan& plan = prepared.plan;
  std::string text;
  if (decided(plan, name)) text = explain(plan, {name}, style);
  const std::string others = inactive(plan, name);
  const std::string note = note_text(prepared, name, style);
  const std::string issues = rows(knowledge::issues_of(name), style);
  const std::string framework = rows(job::framework_facts(name, plan), style);
  const std::string facts = catalogue_text(name, style) + rows(job::fabric_facts(name), style) +
                            rows(job::framework_readers(name), style) + framework + issues + note;
  if (others.empty() && facts.empty()) return text.empty() ? undecided_text(name, style) : text;
  if (text.empty() && others.empty() && facts == framework + issues + note) {
    text = name + "\n";
  } else if (text.empty()) {
    const std::string* exported = env.find(name);
    text = fmt::format("{}\n  not set by hpclaunch{}\n", render::printable(name),
                       exported == nullptr ? ""
                       : is_secret(name, *exported)
                           ? "; exported as <hidden>"
                           : "; exported as \"" + render::printable(*exported) + "\"");
  }
  return text + others + facts;
}

// The decisions of `plan --json`; of these names where there are any.
std::string as_json(const Prepared& prepared, const std::vector<std::string>& names) {
  using Json = nlohmann::ordered_json;
  const auto wanted = [&](const std::string& name) {
    return names.empty() || std::ranges::count(names, name) > 0;
  };
  const Json plan = Json::parse(plan_to_json(prepared.plan));
  Json document = {
      {"schema", 1}, {"choices", Json::array()}, {"env", Json::array()}, {"notes", Json::array()}};
  for (const char* kind : {"choices", "env"})
    for (const Json& setting : plan[kind])
      if (wanted(setting["name"])) document[kind].push_back(setting);
  for (const Note& note : prepared.notes)
    if (wanted(note.id))
      document["notes"].push_back({{"name", note.id}, {"title", note.title}, {"text", note.text}});
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int explain_names(const Args& args, Session& session) {
  const Result<Prepared> prepared =
      job::prepare(args.launch, job::this_world(session.env), Purpose::show);
  if (!prepared) return report(session, prepared.error());
  report(session, prepared->diagnostics);
  std::string text;
  std::vector<std::string> names;
  bool unknown = false;
  for (const std::string& typed : args.names) {
    names.push_back(known_as(prepared->plan, typed));
    const std::string block = one_name(*prepared, names.back(), prepared->env, session.style);
    if (block.empty()) report_unknown(*prepared, names.back(), session);
    unknown = unknown || block.empty();
    text += (text.empty() || block.empty() ? "" : "\n") + block;
  }
  if (args.names.empty()) text = everything(*prepared, session.style);
  if (args.json) text = as_json(*prepared, names);
  const int status = text.empty() ? 0 : print_all(session, text);
  return status == 0 && unknown ? 1 : status;
}

}  // namespace

std::span<const ChoiceName> choice_names() { return kChoiceNames; }

Runner declare_explain(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.group("Names");
  parser.words(args->names, "NAME",
               "Variables, choices (cpu-bind, ranks, ...), profile notes; default: all");
  parser.flag("--json", args->json, "Print the decisions as JSON");
  parser.group("Names", false, true);
  declare_later_job(parser, args->launch);
  parser.footer("Exit status: 0 shown, 1 one of the names is unknown, 2 no plan.");
  return [args](Session& session) { return explain_names(*args, session); };
}

}  // namespace hpclaunch::cli
