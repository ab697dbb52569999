// Golden cases: the plan that a command line gives, compared with what the profile expects.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "authoring/command.h"
#include "hpclaunch/job.h"
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
  const std::size_t ranks =
      plan.classes[static_cast<std::size_t>(plan.layout.front().node_class)].ranks.size();
  const Setting* setting = plan.find_env(name);
  if (setting == nullptr) {
    const std::string* exported = env.find(name);
    if (exported == nullptr) return std::nullopt;
    return std::vector<std::string>(ranks, *exported);
  }
  const Value& value = setting->value();
  if (std::holds_alternative<Unset>(value)) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&value))
    return std::vector<std::string>(ranks, *text);
  if (const auto* items = std::get_if<PerRank>(&value))
    return items->items[static_cast<std::size_t>(plan.layout.front().node_class)];
  std::vector<std::string> numbers;
  for (std::size_t r = 0; r < ranks; ++r) switch (std::get<RankFact>(value)) {
      case RankFact::rank:
      case RankFact::local_rank:
        numbers.push_back(std::to_string(r));
        break;
      case RankFact::node:
        numbers.emplace_back("0");
        break;
      case RankFact::local_size:
        numbers.push_back(std::to_string(ranks));
        break;
    }
  return numbers;
}

/// Compares one plan with what a case names; differences become diagnostics.
class Comparing {
 public:
  Comparing(const Case& expected, const Prepared& got, const EnvSnapshot& env, Check& check)
      : expected_(expected), got_(got), env_(env), check_(check) {}

  void all() {
    launch_line();
    node();
    variables();
    rest();
  }

 private:
  void differs(const std::string& what, const std::string& expected, const std::string& got) {
    check_.diagnostics.push_back(
        {"case-differs", Severity::error,
         fmt::format("case \"{}\": {}: expected {}, got {}", expected_.name, what, expected, got),
         "", expected_.origin.where});
  }

  void compare(const std::string& what, const std::string& expected, const std::string& got) {
    if (expected != got) differs(what, fmt::format("\"{}\"", expected), fmt::format("\"{}\"", got));
  }

  void compare(const std::string& what, const std::vector<std::string>& expected,
               const std::vector<std::string>& got) {
    if (expected != got)
      differs(what, fmt::format("[{}]", fmt::join(expected, " ")),
              fmt::format("[{}]", fmt::join(got, " ")));
  }

  void launch_line() {
    const std::vector<std::string> line = before_shim(got_.argv);
    if (expected_.argv) {
      std::vector<std::string> wanted = *expected_.argv;
      if (!wanted.empty()) wanted.front() = base_name(wanted.front());
      compare("argv", wanted, line);
    }
    const auto there = [&](const std::string& word) {
      return std::find(line.begin(), line.end(), word) != line.end();
    };
    for (const std::string& word : expected_.argv_has)
      if (!there(word)) differs("argv", word, fmt::format("[{}]", fmt::join(line, " ")));
    for (const std::string& word : expected_.argv_lacks)
      if (there(word)) differs("argv", "no " + word, fmt::format("[{}]", fmt::join(line, " ")));
  }

  void node() {
    std::vector<std::string> cpus;
    std::vector<std::string> units;
    const auto first = static_cast<std::size_t>(got_.plan.layout.front().node_class);
    for (const RankPlan& rank : got_.plan.classes[first].ranks) {
      cpus.push_back(rank.cpus.to_list());
      units.push_back(rank.unit < 0 ? "" : std::to_string(rank.unit));
    }
    if (expected_.cpus) compare("cpus", *expected_.cpus, fmt::format("{}", fmt::join(cpus, ":")));
    if (expected_.devices)
      compare("devices", *expected_.devices, fmt::format("{}", fmt::join(units, ":")));
  }

  void variables() {
    for (const auto& [name, value] : expected_.set) {
      const auto got = on_first_node(got_.plan, env_, name);
      const std::string quoted = fmt::format("\"{}\"", value);
      if (!got) {
        differs(name, quoted, "nothing");
        continue;
      }
      const bool same = std::all_of(got->begin(), got->end(),
                                    [&](const std::string& one) { return one == got->front(); });
      if (!same)
        differs(name, quoted + " on every rank", fmt::format("\"{}\"", fmt::join(*got, ":")));
      else
        compare(name, value, got->front());
    }
    for (const auto& [name, value] : expected_.per_rank) {
      const auto got = on_first_node(got_.plan, env_, name);
      if (!got)
        differs(name, fmt::format("\"{}\"", value), "nothing");
      else
        compare(name, value, fmt::format("{}", fmt::join(*got, ":")));
    }
    for (const std::string& name : expected_.absent)
      if (const auto got = on_first_node(got_.plan, env_, name))
        differs(name, "nothing", fmt::format("\"{}\"", got->front()));
  }

  void rest() {
    const Plan& plan = got_.plan;
    if (!expected_.batch.empty()) compare("batch", expected_.batch, plan.batch);
    if (expected_.core_limit) compare("core_limit", *expected_.core_limit, plan.core_limit);
    if (!expected_.make_dirs.empty()) compare("make_dirs", expected_.make_dirs, plan.make_dirs);
    std::vector<std::string> said;
    for (const Diagnostic& report : plan.reports) said.push_back(report.id);
    for (const std::string& rule : expected_.reports)
      if (std::find(said.begin(), said.end(), rule) == said.end())
        differs("reports", rule, fmt::format("[{}]", fmt::join(said, " ")));
    for (const std::string& key : expected_.none)  // written as []: there must be none
      compare(key, std::vector<std::string>{},
              key == "batch"       ? plan.batch
              : key == "make_dirs" ? plan.make_dirs
                                   : said);
  }

  const Case& expected_;
  const Prepared& got_;
  const EnvSnapshot& env_;
  Check& check_;
};

EnvSnapshot environment_of(const Case& expected) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : expected.env)
    entries.push_back(fmt::format("{}={}", name, value));
  return EnvSnapshot(std::move(entries));
}

}  // namespace

Check run_case(const Profile& profile, const Case& expected, const Args& typed) {
  Check check{"case", expected.name, expected.origin.where};
  const auto failed = [&](const std::string& rule, const std::string& message,
                          const std::string& fix) {
    check.diagnostics.push_back({rule, Severity::error,
                                 fmt::format("case \"{}\": {}", expected.name, message), fix,
                                 expected.origin.where});
    return check;
  };
  Result<Request> args = typed.parse_options(expected.options);
  if (!args) return failed("case-options", args.error().message, args.error().hint);
  args->command =
      expected.program.empty() ? std::vector<std::string>{"python", "train.py"} : expected.program;
  const EnvSnapshot env = environment_of(expected);
  const Result<Prepared> got = job::prepare_elsewhere(*args, env, profile, expected.hosts);
  if (expected.refused) {
    if (got) {
      // A rule that reports an error is a refusal too: run does not start such a plan.
      const auto& said = got->plan.reports;
      if (std::any_of(said.begin(), said.end(), [&](const Diagnostic& report) {
            return report.severity == Severity::error &&
                   report.message.find(*expected.refused) != std::string::npos;
          }))
        return check;
      return failed("case-accepted", "expected a refusal, got a plan", "");
    }
    if (got.error().message.find(*expected.refused) == std::string::npos)
      return failed("case-differs",
                    fmt::format("refused: expected \"{}\", got \"{}\"", *expected.refused,
                                got.error().message),
                    "");
    return check;
  }
  if (!got) return failed("case-refused", "no plan: " + got.error().message, got.error().hint);
  Comparing(expected, *got, env, check).all();
  return check;
}

}  // namespace hpclaunch::authoring
