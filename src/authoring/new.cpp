#include "authoring/new.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "authoring/command.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

// "node0123.example.org" -> "node".
std::string name_of_host(const std::string& host) {
  constexpr std::size_t kLongest = 64;
  std::string name;
  for (const unsigned char c : host.substr(0, host.find('.'))) {
    if (std::isdigit(c) != 0 || name.size() == kLongest) break;
    if (std::isalnum(c) != 0 || c == '-') name += static_cast<char>(c);
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return is_profile_name(name) ? name : "my-site";
}

Fresh look(const Args& args, const EnvSnapshot& env, Topology node) {
  Fresh fresh;
  fresh.node = std::move(node);
  fresh.host = fresh.node.hostname;
  if (fresh.host.empty() && args.topology.empty()) fresh.host = sys::host_name();
  fresh.name = args.name.empty() ? name_of_host(fresh.host) : args.name;
  if (fresh.host.empty()) fresh.host = fresh.name + "1";
  fresh.from = args.topology.empty()
                   ? "this machine"
                   : "the file " + args.topology.substr(args.topology.rfind('/') + 1);
  const std::string scheduler = find_batch(env).name();
  if (scheduler != "none") fresh.scheduler = scheduler;
  fresh.launcher = job::launcher_for_many_nodes(job::this_world(env));
  for (const Device& device : fresh.node.devices) {
    fresh.in_mig = fresh.in_mig || !device.instances.empty();
    fresh.has_tiles = fresh.has_tiles || (device.vendor == "intel" && device.subdevices > 1);
  }
  return fresh;
}

// ---- golden cases, with today's plans -----------------------------------------------------------------

/// A command line; 0 ranks: not given.
struct Question {
  int nodes = 1;
  int ranks = 0;
  std::string mode;
};

std::string name_of(const Question& question) {
  std::string name = question.nodes == 1 ? "one node" : fmt::format("{} nodes", question.nodes);
  name += ", " + (question.ranks == 0 ? "defaults" : counted(question.ranks, "rank"));
  if (question.ranks > 0 && question.nodes > 1) name += " each";
  return question.mode.empty() ? name : name + ", device mode " + question.mode;
}

// JSON in one line, with blanks.
std::string written(const nlohmann::ordered_json& json) {
  if (!json.is_structured()) return json.dump();
  std::vector<std::string> parts;
  for (const auto& [key, value] : json.items())
    parts.push_back(json.is_object() ? fmt::format("\"{}\": {}", key, written(value))
                                     : written(value));
  const std::string all = joined(parts, ", ");
  return json.is_object() ? fmt::format("{{{}}}", all) : fmt::format("[{}]", all);
}

std::string case_text(const Question& question, const job::Prepared& prepared) {
  std::vector<std::string> options = {"-N", std::to_string(question.nodes)};
  if (question.ranks > 0) options.insert(options.end(), {"--ppn", std::to_string(question.ranks)});
  if (!question.mode.empty()) options.insert(options.end(), {"--device-mode", question.mode});
  const auto [cpus, units] = placement_of(prepared.plan);
  nlohmann::ordered_json one = {
      {"name", name_of(question)}, {"options", options}, {"cpus", joined(cpus, ":")}};
  if (std::ranges::count(units, "") == 0) one["devices"] = joined(units, ":");
  for (const Setting& setting : prepared.plan.environment.settings) {
    const auto* value = std::get_if<std::string>(&setting.value());
    const Layer layer = setting.history.back().layer;
    const bool by_rule = layer == Layer::profile_default || layer == Layer::profile_require;
    if (by_rule && value != nullptr) one["set"][setting.name] = short_text(*value);
  }
  std::vector<std::string> lines;
  for (const auto& [key, value] : one.items())
    lines.push_back(fmt::format("      \"{}\": {}", key, written(value)));
  return fmt::format("    {{\n{}\n    }}", joined(lines, ",\n"));
}

std::vector<Question> questions(const Fresh& fresh, const Profile& profile) {
  const auto cores = static_cast<int>(fresh.node.cores.size());
  std::set<int> with_cores;
  for (const Core& core : fresh.node.cores) with_cores.insert(core.numa);
  std::set<int> ranks = {1, static_cast<int>(fresh.node.packages.size()),
                         static_cast<int>(with_cores.size())};
  int units = static_cast<int>(fresh.node.devices.size());
  for (const int each : {1, 2}) ranks.insert(each * units);
  if (fresh.has_tiles) ranks.insert(units * fresh.node.devices.front().subdevices);
  std::vector<Question> asked = {Question{}};
  for (const int count : ranks)
    if (count > 0 && count <= cores) asked.push_back({1, count, ""});
  if (fresh.has_tiles) asked.push_back({1, 0, "gpu"});
  const Launcher* launcher =
      find_launcher(profile.launcher.empty() ? kLocalLauncher : profile.launcher);
  if (launcher != nullptr && launcher->traits.multi_node) asked.push_back({2, 0, ""});
  return asked;
}

Result<Profile> read_back(const std::string& unfinished, const EnvSnapshot& env) {
  // A placeholder for the cases.
  const ParsedProfile parsed =
      parse_profile(unfinished + "  \"expect\": [{\"name\": \"x\", \"cpus\": \"0\"}]\n}\n", "new");
  if (!parsed.problems.empty()) return parsed.problems.front();
  return resolve_profile(parsed.profile,
                         [&](const std::string& name) { return load_profile(name, env); });
}

/// Section "expect", as planned with what was written so far, and the end of the file. Errors: `invalid` when
/// that cannot be read back.
Result<std::string> expect_section(const Fresh& fresh, const std::string& unfinished,
                                   const EnvSnapshot& env) {
  Result<Profile> read = read_back(unfinished, env);
  if (!read) return read.error();
  const auto profile = std::make_shared<const Profile>(*std::move(read));
  std::vector<std::string> cases;
  for (const Question& question : questions(fresh, *profile)) {
    Request args;
    args.nodes = question.nodes;
    if (question.ranks > 0) args.ranks_per_node = question.ranks;
    args.device_mode = question.mode;
    args.command = {"python", "train.py"};
    const Result<job::Prepared> prepared =
        job::prepare(args, job::made_up_world(profile), job::Purpose::show);
    if (prepared) cases.push_back(case_text(question, *prepared));
  }
  if (cases.empty())
    return Error{ErrorKind::invalid, "no plan is possible for this node", "hpclaunch topo"};
  return prose(
             "Golden cases for \"hpclaunch profile test\" (docs/reference/profile-format.md, "
             "expect): the plans of the day when this was written. After an intended change: "
             "hpclaunch profile test --update.",
             2) +
         fmt::format("  \"expect\": [\n{}\n  ]\n}}\n", joined(cases, ",\n"));
}

}  // namespace

std::string short_text(const std::string& text) {
  constexpr std::size_t kLongest = 160;
  std::string line = printable(text);
  if (line.size() > kLongest) {
    std::size_t end = kLongest;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) --end;
    line.resize(end);
  }
  return line;
}

std::string json_text(const std::string& text) {
  using nlohmann::json;
  return json(short_text(text)).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string prose(std::string_view text, int indent) {
  constexpr std::size_t kWidth = 100;
  const std::string begin = std::string(static_cast<std::size_t>(indent), ' ') + "//";
  std::vector<std::string> words;
  for (const std::string_view word : split(text, ' ')) {
    // A comment line that starts with one of these is a suggestion.
    const bool starts = word.empty() || std::string_view("\"{}[]").find(word[0]) == word.npos;
    if (starts || words.empty())
      words.emplace_back(word);
    else
      words.back() += " " + std::string(word);
  }
  std::string out;
  const auto room = static_cast<int>(kWidth - begin.size() - 1);
  for (const std::string& line : render::fill(words, room))
    out.append(begin).append(" ").append(line).append("\n");
  return out;
}

int profile_new(const Args& args, Session& session) {
  if (!args.name.empty() && !is_profile_name(args.name))
    return report(
        session, Error{ErrorKind::usage,
                       fmt::format("--name must have letters, digits, '-' and '.' only, not \"{}\"",
                                   printable(args.name)),
                       "hpclaunch profile new --name my-site"});
  Result<Topology> node = job::known_node(args.topology, session);
  if (!node) return report(session, node.error());
  const Fresh fresh = look(args, session.env, std::move(*node));
  const std::string unfinished = unfinished_profile(fresh, session.env);
  const Result<std::string> expect = expect_section(fresh, unfinished, session.env);
  if (!expect) return report(session, expect.error());
  return print_all(session, unfinished + *expect);
}

}  // namespace hpclaunch::authoring
