#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/pipeline.h"
#include "cli/profile_command.h"
#include "hpclaunch/probe.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(plain(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool is_profile_name(const std::string& name) {
  return !name.empty() && name != "none" && !name.ends_with(".json") &&
         is_letter_or_digit(name.front()) && std::all_of(name.begin(), name.end(), [](char c) {
           return is_letter_or_digit(c) || c == '.' || c == '-';
         });
}

// "node0123.example.org" -> "node".
std::string name_of_host(const std::string& host) {
  std::string name;
  for (const char c : host.substr(0, host.find('.'))) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) break;
    if (is_letter_or_digit(c) || c == '-') name += c;
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return is_profile_name(name) ? name : "my-site";
}

// Runs of digits become '*'; a name without a letter stays as it is, since its pattern would be anybody's.
std::string host_pattern(const std::string& host) {
  const bool has_letter = std::any_of(host.begin(), host.end(), [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
  });
  if (!has_letter) return host;
  std::string pattern;
  for (const char c : host) {
    const bool digit = c == '*' || std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      pattern += c;
    else if (pattern.empty() || pattern.back() != '*')
      pattern += '*';
  }
  return pattern;
}

// What this shell has that tells a site; commented out, since only a person knows what is this site's own.
std::vector<std::string> candidates(const EnvSnapshot& env) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& name, const std::string& like) {
    lines.push_back(fmt::format("    // {{\"env\": \"{}\", \"like\": {}}},\n", name, quoted(like)));
  };
  constexpr std::array kNames = {"CC_CLUSTER", "LMOD_SYSTEM_NAME", "SLURM_CLUSTER_NAME",
                                 "NERSC_HOST", "PBS_O_SERVER"};
  for (const char* name : kNames)
    if (const std::string value = env.get(name); !value.empty()) add(name, value);
  const std::string job = env.get("PBS_JOBID");
  if (const std::size_t dot = job.find('.'); dot != std::string::npos)
    add("PBS_JOBID", "*" + job.substr(dot));
  return lines;
}

std::string scheduler_of(const EnvSnapshot& env) {
  if (env.has("SLURM_JOB_ID")) return "slurm";
  if (env.has("PBS_JOBID")) return "pbs";
  return env.has("FLUX_URI") ? "flux" : "";
}

std::string detect_text(const std::string& host, const EnvSnapshot& env) {
  std::string text =
      "  // What tells this site apart. A signal proves the site unless \"proves\" is false; host "
      "names that\n"
      "  // other sites might have prove nothing. Take the comment from what is really this site's "
      "own.\n"
      "  \"detect\": [\n";
  for (const std::string& line : candidates(env)) text += line;
  return text + fmt::format("    {{\"host\": {}, \"proves\": false}}\n  ],\n\n",
                            quoted(host_pattern(host)));
}

std::string nodes_text(const Topology& node) {
  std::vector<std::string> lost;
  const std::string model = node_model_text(node, lost);
  std::string text =
      "  // What a node is made of, so that plans can be made anywhere. Cores that the system "
      "needs belong\n"
      "  // into \"reserved\": {\"cores\": \"0\", \"why\": \"...\"}.\n";
  if (!lost.empty())
    text += fmt::format(
        "  // The counts below cannot express all of this node: inside a job it is asked itself "
        "(\"use\":\n"
        "  // \"live\"), and plans made elsewhere are near, not exact. What is lost:\n  //   {}\n",
        fmt::join(lost, "\n  //   "));
  const CpuSet missing = node.all_pus() - node.allowed;
  if (!missing.empty())
    text += fmt::format(
        "  // CPUs {} were not ours when this was written; whether they are reserved is not "
        "known.\n",
        missing.to_list());
  return text +
         fmt::format(
             "  \"nodes\": [\n    {{\n      \"name\": \"compute\",\n      \"doc\": \"as found "
             "by hpclaunch profile new\",\n      \"use\": \"{}\",\n{}\n    }}\n  ],\n\n",
             lost.empty() ? "model" : "live", model);
}

std::string rules_text(const Topology& node) {
  const bool nccl = !node.devices.empty() && node.devices.front().vendor != "intel";
  return fmt::format(
      "  // What the site recommends. \"default\" yields to what a user exports, \"require\" does "
      "not. Each rule\n"
      "  // says why; with \"source\" (a URL) goes \"checked\" (YYYY-MM-DD).\n"
      "  \"rules\": [\n    {{\n      \"id\": \"example\",\n      \"default\": {{\"{}\": \"{}\"}},\n"
      "      \"why\": \"{}\"\n    }}\n  ],\n\n",
      nccl ? "NCCL_DEBUG" : "PYTHONFAULTHANDLER", nccl ? "WARN" : "1",
      nccl ? "the library's warnings say what broke, and cost nothing while nothing does"
           : "a crash prints the Python stack of every thread");
}

std::string head_text(const std::string& name, const EnvSnapshot& env) {
  std::string text = fmt::format(
      "// A profile for hpclaunch (docs/profiles.md). Save it as {0}.json, then:\n"
      "//   hpclaunch profile validate ./{0}.json\n//   hpclaunch profile test ./{0}.json\n"
      "//   hpclaunch plan --profile ./{0}.json -- python3 train.py\n"
      "{{\n  \"schema\": 1,\n  \"name\": \"{0}\",\n  \"doc\": \"say here what this site is\",\n",
      name);
  const std::string scheduler = scheduler_of(env);
  if (!scheduler.empty()) text += fmt::format("  \"scheduler\": \"{}\",\n", scheduler);
  if (scheduler == "slurm" || scheduler == "flux")
    text += fmt::format("  \"launcher\": \"{}\",\n", scheduler);
  return text + "\n";
}

// The plan of today is the first golden case: it shows what a change does.
Result<std::string> expect_text(const std::string& unfinished) {
  const ParsedProfile parsed = parse_profile(unfinished + "  \"expect\": []\n}\n", "new");
  // An empty list is a problem of its own, and the only one there may be.
  LaunchArgs args;
  args.nodes = 1;
  args.command = {"python", "train.py"};
  const Result<Prepared> prepared = prepare_elsewhere(args, EnvSnapshot(), parsed.profile, {});
  if (!prepared) return prepared.error();
  std::vector<std::string> cpus;
  for (const RankPlan& rank : prepared->plan.classes.front().ranks)
    cpus.push_back(rank.cpus.to_list());
  return fmt::format(
      "  // What must come out, run by `hpclaunch profile test` together with laws for every rank "
      "count.\n"
      "  \"expect\": [\n    {{\n      \"name\": \"one node, nothing else said\",\n      "
      "\"options\": "
      "[\"-N\", \"1\"],\n      \"cpus\": \"{}\"\n    }}\n  ]\n}}\n",
      fmt::join(cpus, ":"));
}

}  // namespace

int profile_new(const ProfileArgs& args, Session& session) {
  if (!args.name.empty() && !is_profile_name(args.name))
    return report(session, Error{ErrorKind::usage,
                                 fmt::format("--name: \"{}\" cannot be the name of a profile",
                                             plain(args.name)),
                                 "use letters, digits, '-' and '.'"});
  const Result<Topology> node = args.topology.empty() ? probe_live() : read_topology(args.topology);
  if (!node) return report(session, node.error());
  std::string host = node->hostname;
  if (host.empty() && args.topology.empty()) host = sys::host_name();
  const std::string name = args.name.empty() ? name_of_host(host) : args.name;
  if (host.empty()) host = name + "*";
  std::string text = head_text(name, session.env) + detect_text(host, session.env) +
                     nodes_text(*node) + rules_text(*node);
  const Result<std::string> expect = expect_text(text);
  if (!expect) return report(session, expect.error());
  text += *expect;
  return print(session, text) ? 0 : exit_status(ErrorKind::system, session.exit_rules);
}

}  // namespace hpclaunch::cli
