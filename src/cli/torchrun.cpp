// `hpclaunch torchrun`: what a line of torchrun means, as the request of `hpclaunch run`.
#include "cli/torchrun.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "hpclaunch/frameworks.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr long kMost = 1'000'000;

Error wrong_value(std::string_view option, const std::string& value, std::string_view accepted) {
  return Error{ErrorKind::usage,
               fmt::format("invalid value \"{}\" for --{} ({})", shown(value), option, accepted),
               "hpclaunch torchrun --help"};
}

std::string backend_of(const TorchrunLine& line) {
  const std::string typed = line.get("rdzv-backend");
  return typed.empty() ? "static" : typed;
}

Status read_backend(const TorchrunLine& line) {
  const std::string backend = backend_of(line);
  if (backend == "static" || backend == "c10d") return Done{};
  return Error{ErrorKind::unsupported,
               fmt::format("--rdzv-backend {}: hpclaunch knows static and c10d; its ranks meet at "
                           "MASTER_ADDR, without a server",
                           shown(backend)),
               "omit --rdzv-backend and --rdzv-endpoint"};
}

// "2", "1:4": nodes, and the least number where it is another. A static rendezvous waits for all.
Status read_nodes(const TorchrunLine& line, Request& request) {
  if (request.nodes && !line.has("nnodes")) return Done{};
  if (line.has("standalone") || !line.has("nnodes")) {
    if (!line.has("standalone")) request.nodes = 1;
    return Done{};
  }
  const std::string typed = line.get("nnodes");
  const std::size_t colon = typed.find(':');
  const long least = parse_natural(typed.substr(0, colon), kMost).value_or(0);
  const long most = colon == std::string::npos
                        ? least
                        : parse_natural(typed.substr(colon + 1), kMost).value_or(0);
  if (least < 1 || most < least) return wrong_value("nnodes", typed, "N, or MIN:MAX");
  request.nodes = static_cast<int>(most);
  if (least < most && backend_of(line) != "static") request.least_nodes = static_cast<int>(least);
  return Done{};
}

Status read_ranks(const TorchrunLine& line, Request& request) {
  const bool typed = line.has("nproc-per-node");
  if ((request.ranks || request.ranks_per_node) && !typed) return Done{};
  const std::string value = typed ? line.get("nproc-per-node") : "1";
  const long number = parse_natural(value, kMost).value_or(0);
  if (number > 0)
    request.ranks_per_node = static_cast<int>(number);
  else if (value == "gpu" || value == "xpu" || value == "cpu" || value == "auto")
    request.ranks_by = value;
  else
    return wrong_value("nproc-per-node", value, "N, gpu, xpu, cpu or auto");
  return Done{};
}

// "host", "host:29400", "[::1]:29400": host and port.
std::pair<std::string, std::string> endpoint_of(const std::string& text) {
  const std::size_t bracket = text.find(']');
  const std::size_t colon = bracket == std::string::npos ? text.find(':') : text.find(':', bracket);
  std::string host = text.substr(0, colon);
  std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
  return {host, colon == std::string::npos ? "" : text.substr(colon + 1)};
}

// The line's own rendezvous: the endpoint, which --standalone replaces, else the two options.
std::pair<std::string, std::string> rendezvous_of(const TorchrunLine& line) {
  if (line.has("standalone")) return {};
  if (line.has("rdzv-endpoint")) return endpoint_of(line.get("rdzv-endpoint"));
  if (backend_of(line) != "static") return {};
  return {endpoint_of(line.get("master-addr")).first, line.get("master-port")};
}

bool is_this_node(const std::string& host) { return host == "localhost" || is_loopback(host); }

// c10d takes its address from the agents, static from the line. Port 0 is any.
Status read_rendezvous(const TorchrunLine& line, Request& request) {
  const auto [host, port] = rendezvous_of(line);
  constexpr long kMostPorts = 65'535;
  const std::optional<long> number = parse_natural(port, kMostPorts);
  if (!port.empty() && !number)
    return wrong_value(line.has("rdzv-endpoint") ? "rdzv-endpoint" : "master-port", port,
                       "a port from 0 to 65535");
  if (number && *number > 0 && !request.master_port)
    request.master_port = static_cast<int>(*number);
  if (backend_of(line) == "static" && !host.empty() && !is_this_node(host))
    request.master_addr = host;
  if (backend_of(line) == "static" || !is_this_node(host)) request.head = host;
  return Done{};
}

// Keys that torchrun's stores have; is_host, store_type and the others have no meaning without an agent.
Status read_conf(const TorchrunLine& line, Request& request, std::vector<Diagnostic>& notes) {
  std::string ignored;
  const std::string typed = line.get("rdzv-conf");
  for (const std::string_view part : split(typed, ',')) {
    const std::string_view key = trim(part.substr(0, part.find('=')));
    const auto value =
        parse_natural(trim(part.substr(std::min(part.find('='), part.size() - 1) + 1)));
    if (key.empty()) continue;
    if ((key == "timeout" || key == "join_timeout") && value)
      request.output.start_seconds = static_cast<int>(std::min(*value, 86'400L));
    else if (key != "read_timeout" && key != "is_host" && key != "last_call_timeout")
      ignored += fmt::format("{}{}", ignored.empty() ? "" : ", ", shown(key));
  }
  if (!ignored.empty())
    notes.push_back({"torchrun-option", Severity::note,
                     fmt::format("--rdzv-conf: {} has no effect without torchrun's agent", ignored),
                     ""});
  return Done{};
}

// "3", "0:3,1:1": whether anything is asked for. Source: torch/distributed/elastic/multiprocessing/api.py, Std.from_str.
Result<bool> read_streams(const TorchrunLine& line, std::string_view option) {
  const std::string typed = line.has(option) ? line.get(option) : "0";
  bool any = false;
  for (const std::string_view part : split(typed, ',')) {
    const bool one = part.size() == 1 && typed.size() == 1;
    const bool named = part.size() == 3 && part[0] >= '0' && part[0] <= '9' && part[1] == ':';
    const char what = part.empty() ? ' ' : part.back();
    if ((!one && !named) || what < '0' || what > '3')
      return wrong_value(option, typed, "0 to 3, or RANK:0-3 for local ranks 0 to 9");
    any = any || what != '0';
  }
  return any;
}

Status read_output(const TorchrunLine& line, Request& request, std::vector<Diagnostic>& notes) {
  const Result<bool> tees = read_streams(line, "tee");
  if (!tees) return tees.error();
  const Result<bool> redirects = read_streams(line, "redirects");
  if (!redirects) return redirects.error();
  if (*tees) request.output.label = true;
  if (line.has("local-ranks-filter") && !line.get("local-ranks-filter").empty())
    request.output.shown_ranks = line.get("local-ranks-filter");
  if (line.has("log-dir") && (*tees || *redirects)) request.output.log_dir = line.get("log-dir");
  if (*redirects && !line.has("log-dir"))
    notes.push_back({"torchrun-output", Severity::note,
                     "--redirects without --log-dir: the output stays here", "--log-dir DIR"});
  else if (*redirects && !*tees)
    notes.push_back({"torchrun-output", Severity::note,
                     fmt::format("the output is shown here, and written to rank-N.log in {}",
                                 line.get("log-dir")),
                     ""});
  return Done{};
}

Status read_program(const TorchrunLine& line, const EnvSnapshot& env, Request& request) {
  request.command = line.program;
  const bool module = line.has("module");
  if (line.has("no-python") && module)
    return Error{ErrorKind::usage, "--no-python and --module contradict each other",
                 "omit one of them"};
  if (line.has("run-path"))
    request.command.front() = std::filesystem::absolute(request.command.front()).lexically_normal();
  else if (line.has("no-python"))
    return Done{};
  if (module) request.command.insert(request.command.begin(), "-m");
  if (const std::string python = env.get("PYTHON_EXEC"); !python.empty())
    request.command.insert(request.command.begin(), python);
  else
    request.python = true;
  return Done{};
}

// Where hpclaunch starts one node, of several, apart from the others.
Status read_node(const TorchrunLine& line, Request& request) {
  request.static_nodes = true;
  const std::string typed = line.get("node-rank");
  if (typed.empty() || request.nodes.value_or(1) < 2) return Done{};
  const std::optional<long> rank = parse_natural(trim(typed), kMost);
  if (!rank) return wrong_value("node-rank", typed, "a number from 0");
  request.node_rank = static_cast<int>(*rank);
  return Done{};
}

Status read_numbers(const TorchrunLine& line, Request& request) {
  constexpr long kMostRestarts = 1'000;
  constexpr long kMostSeconds = 86'400;
  if (line.has("max-restarts")) {
    const auto restarts = parse_natural(line.get("max-restarts"), kMostRestarts);
    if (!restarts) return wrong_value("max-restarts", line.get("max-restarts"), "0 to 1000");
    request.max_restarts = static_cast<int>(*restarts);
  }
  if (line.has("shutdown-timeout")) {
    const auto seconds = parse_natural(line.get("shutdown-timeout"), kMostSeconds);
    if (!seconds) return wrong_value("shutdown-timeout", line.get("shutdown-timeout"), "seconds");
    request.output.grace_seconds = static_cast<double>(*seconds);
  }
  const std::string binding = line.get("numa-binding");
  constexpr std::string_view kModes[] = {"node", "socket", "exclusive", "core-complex", ""};
  if (std::ranges::find(kModes, binding) == std::end(kModes))
    return wrong_value("numa-binding", binding, "node, socket, exclusive or core-complex");
  return Done{};
}

}  // namespace

Status apply_torchrun(const TorchrunLine& line, const EnvSnapshot& env, Request& request,
                      std::vector<Diagnostic>& notes) {
  for (const TorchrunOption& one : torchrun_options()) {
    const std::string said = fmt::format("--{}: {}", one.name, one.text);
    if (!line.has(one.name)) continue;
    if (one.how == TorchrunOption::How::refused)
      return Error{ErrorKind::unsupported, said, fmt::format("omit --{}", one.name)};
    if (one.how == TorchrunOption::How::said)
      notes.push_back({"torchrun-option", Severity::note, said, ""});
  }
  if (line.lost_dashes)
    notes.push_back({"torchrun-option", Severity::note,
                     "torchrun removes the -- behind the script, and so does hpclaunch",
                     "hpclaunch torchrun [OPTIONS] -- SCRIPT -- ARGS keeps it"});
  for (const auto read : {read_nodes, read_ranks, read_rendezvous, read_node, read_numbers})
    if (Status good = read(line, request); !good) return good;
  for (const auto read : {read_conf, read_output})
    if (Status good = read(line, request, notes); !good) return good;
  if (Status good = read_backend(line); !good) return good;
  if (line.has("virtual-local-rank")) {
    request.gpu_view = "own";
    request.view_is_implied = true;
  }
  for (const auto& [option, name] :
       {std::pair("role", "ROLE_NAME"), {"rdzv-id", "TORCHELASTIC_RUN_ID"}})
    if (line.has(option))
      request.set.push_back({name, line.get(option), fmt::format("--{}", option)});
  request.oversubscribe = true;  // as many as were asked for, whatever the machine has
  return read_program(line, env, request);
}

std::vector<Diagnostic> compare_torchrun(const TorchrunLine& line, const Prepared& prepared,
                                         const EnvSnapshot& env) {
  const Plan& plan = prepared.plan;
  std::vector<Diagnostic> found;
  const auto add = [&](Severity severity, std::string message, std::string fix) {
    found.push_back({"torchrun-nodes", severity, std::move(message), std::move(fix)});
  };
  const std::string all = counted(plan.hosts.available, "node");
  if (line.has("standalone") && plan.nodes() > 1)
    add(Severity::error, fmt::format("--standalone is one node, and the job has {}", all),
        fmt::format("--nnodes {} in place of --standalone, or -N 1 with it", plan.nodes()));
  else if (plan.hosts.available > plan.nodes() && !line.has("standalone"))
    add(line.has("nnodes") ? Severity::note : Severity::warning,
        fmt::format("{} of {} used: --nnodes {}", plan.nodes(), all,
                    line.has("nnodes") ? line.get("nnodes") : "is 1 by default"),
        fmt::format("--nnodes {}", plan.hosts.available));
  const std::string rank = line.get("node-rank");
  const std::optional<long> number = parse_natural(rank);
  const bool differs =
      number ? *number >= plan.nodes() || (plan.hosts.first_is_here && *number > 0) : true;
  if (plan.hosts.own >= 0) return found;
  if (!rank.empty() && differs && !line.has("standalone"))
    add(Severity::note,
        fmt::format("--node-rank {} is ignored: hpclaunch starts all {} and numbers them",
                    shown(rank), counted(plan.nodes(), "node")),
        "");
  const std::string host = rendezvous_of(line).first;
  // Another one of static is MASTER_ADDR, and checked as such.
  if (!host.empty() && (backend_of(line) != "static" || is_this_node(host)))
    if (auto elsewhere = job::endpoint_elsewhere(plan, job::this_world(env), host))
      found.push_back(std::move(*elsewhere));
  return found;
}

// "-r,--redirects"
static std::string spec_of(const TorchrunOption& option) {
  const auto known =
      options_named(job::program_grammar("torchrun"), fmt::format("--{}", option.name));
  std::vector<std::string_view> names;
  for (const Option& one : known) names.assign(one.names.rbegin(), one.names.rend());
  return joined(names, ",");
}

Runner declare_torchrun(Parser& parser) {
  struct State {
    RunArgs args;
    TorchrunLine line;
    std::vector<Diagnostic> notes;
    EnvSnapshot env = sys::environment();
  };
  auto state = std::make_shared<State>();
  for (const TorchrunOption& one : torchrun_options()) {
    parser.group("torchrun", false, one.how != TorchrunOption::How::common);
    if (!one.what.empty()) parser.foreign(spec_of(one), one.value, one.what);
  }
  parser.brief_own();
  declare_run_options(parser, state->args);
  parser.takes_line(
      [state, &parser](const std::vector<std::string>& words) -> Result<std::vector<std::string>> {
        Result<TorchrunLine> line = read_torchrun(words, parser.tree(), state->env);
        if (!line) return line.error();
        state->line = *std::move(line);
        std::vector<std::string> own = state->line.own;
        own.emplace_back("--");
        own.insert(own.end(), state->line.program.begin(), state->line.program.end());
        return own;
      },
      state->args.launch.command);
  parser.footer("The options of hpclaunch run are taken as well.\n" + parser.tree().footer);
  return [state](Session& session) {
    const Status good = apply_torchrun(state->line, session.env, state->args.launch, state->notes);
    if (!good) return report(session, good.error());
    state->args.compare = [&](const Prepared& prepared) {
      auto found = compare_torchrun(state->line, prepared, session.env);
      found.insert(found.begin(), state->notes.begin(), state->notes.end());
      return found;
    };
    return run(state->args, session);
  };
}

}  // namespace hpclaunch::cli
