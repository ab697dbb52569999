// One ssh for each node (src/sys/ssh, docs/ssh.md): a hidden command of hpclaunch, which is a launcher like mpiexec.
//
// --hosts a:4,b:2   ranks in blocks of the counts
// -- ssh -p 2222 -- what ssh is given
// A rank sees HPCLAUNCH_SSH_RANK and others; it gets the environment whole, but for what belongs to a login.
#include <fmt/format.h>

#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

// One ssh client for each node stays: 1.5 MB and three descriptors; 512 logins by a stand-in take 3 s on two cores.
constexpr int kMostNodes = 512;

Result<Argv> render(const Plan& plan, const LauncherFacts& own, const std::string& shim) {
  constexpr double kGrace = 5;  // where hpclaunch has had its own before
  Line line(plan, {own.path, "launch-ssh"}, "");
  if (plan.nodes() > kMostNodes)
    line.require(Error{ErrorKind::unsupported,
                       fmt::format("{} nodes: the launcher ssh starts at most {}, each with an ssh "
                                   "of its own on this machine",
                                   plan.nodes(), kMostNodes),
                       "start through the batch system, or install MPICH: --launcher hydra"});
  if (plan.supervision.output.label) line.add({"--label"});
  line.add({"--grace",
            fmt::format("{}", plan.supervision.supervise ? kGrace
                                                         : plan.supervision.output.grace_seconds)});
  line.add_hosts({.list = "--hosts"}, host_counts(plan));
  line.add({"--", "ssh"});
  return line.finish(shim, "--");
}

}  // namespace

Launcher ssh = {
    .name = "ssh",
    .programs = {"ssh"},
    .is_hpclaunch = true,
    .rank_mark = "HPCLAUNCH_SSH_RANK",
    .rank_variables =
        "HPCLAUNCH_SSH_RANK HPCLAUNCH_SSH_LOCAL_RANK HPCLAUNCH_SSH_SIZE HPCLAUNCH_SSH_LOCAL_SIZE "
        "HPCLAUNCH_SSH_NODE",
    .traits = {.rank_var = "HPCLAUNCH_SSH_RANK",
               .local_rank_var = "HPCLAUNCH_SSH_LOCAL_RANK",
               .multi_node = true,
               .by_ssh = true},
    .render = render};

}  // namespace hpclaunch::launcher
