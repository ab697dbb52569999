// Golden cases: the plan that a command line gives, compared with what the profile expects.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "authoring/command.h"
#include "hpclaunch/json_reader.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

using job::Prepared;

constexpr std::string_view kShim = "hpclaunch-shim";

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The launch line as sites print it: without the shim, and [0] without a folder.
std::vector<std::string> before_shim(const std::vector<std::string>& argv) {
  std::vector<std::string> line;
  for (const std::string& word : argv) {
    if (base_name(word) == kShim) break;
    line.push_back(line.empty() ? base_name(word) : word);
  }
  if (line.size() < argv.size() && !line.empty() && line.back() == "--") line.pop_back();
  return line;
}

// What a variable is on the first node's ranks, one text per rank; nothing when it is not there.
std::optional<std::vector<std::string>> on_first_node(const Plan& plan, const EnvSnapshot& env,
                                                      const std::string& name) {
  const int size = static_cast<int>(plan.placement.classes.front().ranks.size());
  std::vector<std::string> values;
  for (int rank = 0; rank < size; ++rank) {
    std::optional<std::string> value = value_at(plan, env, name, {rank, 0, 0, rank, size});
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  }
  return values;
}

std::string shown(const std::string& text) { return fmt::format("\"{}\"", text); }

std::string shown(const std::vector<std::string>& words) { return "[" + joined(words, " ") + "]"; }

std::string json_value(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Compares one plan with what a case names; differences become diagnostics.
struct Comparing {
  const Case& wanted;
  const Prepared& made;
  const EnvSnapshot& env;
  Check& check;

  void all() {
    launch_line();
    node();
    variables();
    rest();
  }

  // `at`: the key of the case, "set/NAME" for a variable.
  void differs(const std::string& at, const std::string& expected, const std::string& got) {
    check.diagnostics.push_back({"case-differs", Severity::error,
                                 fmt::format("case \"{}\": {}: expected {}, got {}", wanted.name,
                                             at.substr(at.find('/') + 1), expected, got),
                                 "", wanted.origin.where});
  }

  template <class Text>
  void compare(const std::string& at, const Text& expected, const Text& got) {
    if (expected == got) return;
    differs(at, shown(expected), shown(got));
    check.now[at] = json_value(got);
  }

  void launch_line() {
    const std::vector<std::string> line = before_shim(made.argv);
    if (wanted.argv) {
      std::vector<std::string> argv = *wanted.argv;
      if (!argv.empty()) argv.front() = base_name(argv.front());
      compare("argv", argv, line);
    }
    for (const std::string& word : wanted.argv_has)
      if (!has(line, word)) differs("argv", word, shown(line));
    for (const std::string& word : wanted.argv_lacks)
      if (has(line, word)) differs("argv", "no " + word, shown(line));
  }

  void node() {
    const Placement got = placement_of(made.plan);
    if (wanted.cpus) compare("cpus", *wanted.cpus, joined(got.cpus, ":"));
    if (wanted.devices) compare("devices", *wanted.devices, joined(got.units, ":"));
  }

  void variables() {
    for (const auto* values : {&wanted.set, &wanted.per_rank})
      for (const auto& [name, value] : *values) {
        const bool all = values == &wanted.set;  // the same on every rank
        const std::string at = (all ? "set/" : "per_rank/") + name;
        const auto got = on_first_node(made.plan, env, name);
        if (!got)
          differs(at, shown(value), "nothing");
        else if (all && std::ranges::count(*got, got->front()) < std::ssize(*got))
          differs(at, shown(value) + " on every rank", shown(joined(*got, ":")));
        else
          compare(at, value, all ? got->front() : joined(*got, ":"));
      }
    for (const std::string& name : wanted.absent)
      if (const auto got = on_first_node(made.plan, env, name))
        differs(name, "nothing", shown(got->front()));
  }

  void rest() {
    const Plan& plan = made.plan;
    if (wanted.batch) compare("batch", *wanted.batch, plan.launch.batch);
    if (wanted.core_limit) compare("core_limit", *wanted.core_limit, plan.environment.core_limit);
    if (wanted.make_dirs) compare("make_dirs", *wanted.make_dirs, plan.environment.make_dirs);
    std::vector<std::string> said;
    for (const Diagnostic& report : plan.explanation.reports) said.push_back(report.id);
    if (!wanted.reports) return;
    for (const std::string& rule : *wanted.reports)
      if (!has(said, rule)) differs("reports", rule, shown(said));
    if (wanted.reports->empty()) compare("reports", *wanted.reports, said);
  }
};

// ---- profile test --update: cases get what comes out now; every other byte of the file stays ----------

struct Edit {
  const json_reader::Json* old;
  std::string fresh;
};

// The value of each line, behind a sign.
std::string lines_with(char sign, const std::string& key, std::string_view value) {
  std::string text = fmt::format("{} \"{}\": ", sign, key.substr(key.find('/') + 1));
  for (const char c : value) text += c == '\n' ? fmt::format("\n{} ", sign) : std::string(1, c);
  return text + "\n";
}

}  // namespace

std::optional<std::string> value_at(const Plan& plan, const EnvSnapshot& env, std::string_view name,
                                    const RankPlace& place) {
  const Setting* setting = plan.find_env(name);
  const std::string* inherited = env.find(name);
  if (setting == nullptr) return inherited == nullptr ? std::nullopt : std::optional(*inherited);
  if (std::holds_alternative<Unset>(setting->value())) return std::nullopt;
  return value_on(setting->value(), place);
}

Placement placement_of(const Plan& plan) {
  Placement placement;
  for (const RankPlan& rank : plan.placement.classes.front().ranks) {
    placement.cpus.push_back(rank.cpus.to_list());
    placement.units.push_back(rank.slots.empty() ? "" : std::to_string(rank.unit()));
  }
  return placement;
}

Result<Prepared> plan_case(const std::shared_ptr<const Profile>& profile, const Case& expected,
                           const Args& args) {
  Result<Request> request = args.parse_options(expected.options);
  if (!request) return request.error();
  request->command =
      expected.program.empty() ? std::vector<std::string>{"python", "train.py"} : expected.program;
  return job::prepare(*request, job::made_up_world(profile, expected), job::Purpose::show);
}

Check run_case(const std::shared_ptr<const Profile>& profile, const Case& expected,
               const Args& typed) {
  Check check{"case", expected.name, expected.origin.where};
  const auto failed = [&](const std::string& rule, const std::string& message,
                          const std::string& fix) {
    check.diagnostics.push_back({rule, Severity::error,
                                 fmt::format("case \"{}\": {}", expected.name, message), fix,
                                 expected.origin.where});
    return check;
  };
  const Result<Request> options = typed.parse_options(expected.options);
  if (!options) return failed("case-options", options.error().message, options.error().hint);
  const Result<Prepared> got = plan_case(profile, expected, typed);
  if (expected.refused) {
    const auto refuses = [&](const std::string& message) {
      return message.find(*expected.refused) != std::string::npos;
    };
    if (!got && refuses(got.error().message)) return check;
    if (!got) {
      check.now["refused"] = json_value(got.error().message);
      return failed("case-differs",
                    fmt::format("refused: expected \"{}\", got \"{}\"", *expected.refused,
                                got.error().message),
                    "");
    }
    // What is reported as an error is a refusal too: run does not start such a plan.
    for (const Diagnostic& report : got->diagnostics)
      if (report.severity == Severity::error && refuses(report.message)) return check;
    return failed("case-accepted", "expected a refusal, got a plan", "");
  }
  if (!got) return failed("case-refused", "no plan: " + got.error().message, got.error().hint);
  for (const Diagnostic& report : got->diagnostics)
    if (report.severity == Severity::error && !options->force &&
        !has(expected.reports.value_or(std::vector<std::string>{}), report.id))
      return failed("case-refused", "not started: " + report.message, report.fix);
  Comparing{expected, *got, got->env, check}.all();
  return check;
}

Status update_cases(const LoadedProfile& loaded, const Args& args, Session& session) {
  if (loaded.file.starts_with("builtin:"))
    return Error{ErrorKind::usage,
                 fmt::format("--update: {} is builtin and cannot be changed", loaded.name),
                 "name a profile's file"};
  if (Status ok = job::check_file("--update", loaded.file); !ok) return ok;
  const Result<std::string> old = sys::read_file(loaded.file);
  if (!old) return old.error();
  const json_reader::Context context(*old, loaded.file);
  std::map<std::size_t, Edit> edits;  // by offset
  std::string changes;
  for (const Case& expected : loaded.resolved->expect) {
    const Check check = run_case(loaded.resolved, expected, args);
    if (check.now.empty()) continue;
    changes +=
        fmt::format("{}: case \"{}\"\n", printable(place_text(check.where)), printable(check.name));
    for (const auto& [key, fresh] : check.now) {
      const json_reader::Json& value = context.follow(check.where.pointer + "/" + key);
      edits[value.begin] = {&value, fresh};
      changes += lines_with('-', key, old->substr(value.begin, value.end - value.begin)) +
                 lines_with('+', key, fresh);
    }
  }
  std::string text = *old;
  for (auto edit = edits.rbegin(); edit != edits.rend(); ++edit)
    text.replace(edit->first, edit->second.old->end - edit->first, edit->second.fresh);
  if (!edits.empty())
    if (Status ok = job::write_file("--update", loaded.file, text); !ok) return ok;
  print(session, fmt::format("{}{}: {} updated\n", changes, printable(loaded.file),
                             counted(edits.size(), "value")));
  return Done{};
}

}  // namespace hpclaunch::authoring
