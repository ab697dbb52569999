// The launcher "ssh" as a command line, which `run` starts as it starts mpiexec.

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "cli/command.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  std::string hosts;
  sys::SshJob job;
  std::vector<std::string> words;  // ssh and its options, "--", the shim, the program
};

Error wrong_line(const std::string& what) {
  return {ErrorKind::usage, "launch-ssh: " + what,
          "use the line that hpclaunch run --dry-run prints"};
}

// "a:4,b:2"
Status read_nodes(const std::string& list, std::vector<sys::SshJob::Node>& to) {
  for (const std::string_view one : split(list, ',')) {
    const std::size_t colon = one.rfind(':');
    const auto ranks =
        colon == one.npos ? std::nullopt : parse_natural(one.substr(colon + 1), 1'000'000);
    const std::string_view host = one.substr(0, colon);
    if (host.empty() || host.starts_with('-') || ranks.value_or(0) < 1)
      return wrong_line(fmt::format("--hosts must be HOST:RANKS,..., not \"{}\"", shown(list)));
    to.push_back({std::string(host), static_cast<int>(*ranks)});
  }
  return Done{};
}

// HPCLAUNCH_SSH="ssh -p 2222", then what the user gave, then what must be: of two ssh takes the first.
Result<std::vector<std::string>> ssh_words(const EnvSnapshot& env,
                                           std::span<const std::string> given) {
  std::vector<std::string> words;
  const std::string typed = env.get("HPCLAUNCH_SSH");
  for (const std::string_view word : split(typed, ' '))
    if (!word.empty()) words.emplace_back(word);
  if (words.empty()) words = {given.front()};
  Result<std::string> program = sys::find_program(words.front(), env.get("PATH"));
  if (!program) return program.error();
  words.front() = *std::move(program);
  words.insert(words.end(), given.begin() + 1, given.end());
  words.insert(words.end(), {"-T", "-x"});
  for (const char* option : {"BatchMode=yes", "ClearAllForwardings=yes", "ConnectTimeout=20",
                             "ControlMaster=no", "PermitLocalCommand=no", "RemoteCommand=none",
                             "ServerAliveCountMax=3", "ServerAliveInterval=10"})
    words.insert(words.end(), {"-o", option});
  return words;
}

int launch(const Args& args, Session& session) {
  sys::SshJob job = args.job;
  if (const Status read = read_nodes(args.hosts, job.nodes); !read)
    return report(session, read.error());
  const auto end = std::ranges::find(args.words, "--");
  if (end == args.words.begin() || args.words.end() - end < 3)
    return report(session, wrong_line("ssh, --, SHIM and PROGRAM are required"));
  job.command.assign(end + 1, args.words.end());
  job.verbose = std::find(args.words.begin(), end, "-v") != end;
  Result<std::vector<std::string>> ssh = ssh_words(session.env, {args.words.begin(), end});
  if (!ssh) return report(session, ssh.error());
  job.ssh = *std::move(ssh);
  const std::string bin = sys::own_directory();
  job.libexec = bin.substr(0, bin.rfind('/')) + "/libexec/hpclaunch";
  const Result<int> status = sys::launch_by_ssh(job, session.env);
  return status ? *status : report(session, status.error());
}

}  // namespace

Runner declare_launch_ssh(Parser& parser) {
  auto args = std::make_shared<Args>();
  parser.text("--hosts", args->hosts, "HOST:RANKS,...", "Nodes and their ranks");
  parser.flag("--label", args->job.label, "Prefix output lines with the rank");
  parser.seconds("--grace", args->job.grace_seconds, "Seconds between SIGTERM and SIGKILL");
  parser.takes_program(args->words, true);
  return [args](Session& session) { return launch(*args, session); };
}

}  // namespace hpclaunch::cli
