"""What the tests with real launchers share: clusters, plans compared with what ranks recorded, and what may not be left.

Each test file is started as: python3 FILE_test.py PATH_OF_HPCLAUNCH PATH_OF_RANK_RECORD [unittest arguments]
"""
import json
import os
import socket
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "cli")]

import support  # noqa: E402
import allowed  # noqa: E402
from cluster import Cluster, DEVICES, Failed, wait_until  # noqa: E402,F401
from support import ROOT, cpu_list, need  # noqa: E402,F401

ALLOWED = os.sched_getaffinity(0)
EXAMPLE = os.path.join(ROOT, "examples", "train_ddp.py")
RECORD = None
PROFILE = {
    "schema": 1, "name": "virtual", "doc": "this machine, with devices that it does not have",
    "nodes": [{"name": "compute", "doc": "all cores in one NUMA node", "use": "model", "packages": 1,
               "cores_per_numa": max(ALLOWED) + 1,
               "devices": {"vendor": "nvidia", "model": "fake", "memory_mb": 1000, "list": [{"numa": 0}] * DEVICES}}],
}


def own_nodes(cluster):
    """For what takes nodes that are machines of their own: with names, files, a cable."""
    if not cluster.spaces:
        allowed.leave_out("nodes with namespaces of their own are not permitted here (%s)" % cluster.why.split("\n")[0])


class Test(support.Test):
    """Tests on one cluster, which all tests of a class share: `nodes` and `shape` say which."""

    nodes, shape = 2, "real"

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(cls.nodes, cls.shape)
        cls.addClassCleanup(cls.cluster.down)
        with open(cls.cluster.path("jobs", "virtual.json"), "w") as file:
            json.dump(PROFILE, file)
        cls.profile = cls.cluster.path("jobs", "virtual.json")

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.before = set(self.cluster.processes())

    def nothing_left(self, but=()):
        """What was started in the cluster since setUp has ended, at once or in a few seconds of an idle machine."""
        end = time.monotonic() + support.LIMIT
        while True:
            left = {pid: words for pid, words in self.cluster.processes().items()
                    if pid not in self.before and not any(word in words for word in but)}
            if not left:
                return
            if time.monotonic() > end:
                self.fail("left behind: %s" % left)
            time.sleep(0.1)

    def on(self, node, *words, env=None, timeout=support.LIMIT):
        """hpclaunch on a node, as support.hpclaunch() does it here."""
        done = self.cluster.run(node, [support.HPCLAUNCH, *words], env=env, timeout=timeout)
        return support.Done(done.returncode, done.stdout.encode(errors="surrogateescape"), done.stderr.encode(errors="surrogateescape"))

    def own_nodes(self, launcher="openmpi"):
        """Also for Open MPI: its daemons share a folder where all nodes are one machine, and disturb one another."""
        if launcher == "openmpi":
            own_nodes(self.cluster)

    def meeting(self):
        """Where host names mean nothing, ranks need to be told where to meet."""
        if self.cluster.spaces:
            return []
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            out.connect(("198.51.100.1", 9))  # sends nothing; loopback is refused for several nodes
            return ["--master-addr", out.getsockname()[0]]

    def salloc(self, nodes):
        """A Slurm job of the first so many nodes, whole. Named, since a node that still completes the last job would be passed over."""
        return ["salloc", "-Q", "-N", str(nodes), "-w", ",".join(self.cluster.names[:nodes]), "--exclusive", "--overcommit"]

    def allocation(self, nodes, *words, **more):
        """hpclaunch in a Slurm job of so many whole nodes, started on the login node."""
        argv = [*self.salloc(nodes), support.HPCLAUNCH, *words]
        done = self.cluster.run("login", argv, **more)
        return support.Done(done.returncode, done.stdout.encode(errors="surrogateescape"), done.stderr.encode(errors="surrogateescape"))


def expected(plan, everywhere):
    """What each rank has to find by a plan's JSON: {rank: (host, cpus, {variable: value or None})}.

    `everywhere` are the CPUs of a rank that nobody binds.
    """
    ranks = {}
    for run in plan["layout"]:
        members = plan["classes"][run["node_class"]]["ranks"]
        for n in range(run["nodes"]):
            node = run["first_node"] + n
            for local, mine in enumerate(members):
                rank = run["first_rank"] + n * run["ranks_per_node"] + local
                facts = {"rank": rank, "local-rank": local, "node": node, "local-size": len(members)}
                env = {}
                for setting in plan["env"]:
                    value = setting["value"]
                    if isinstance(value, dict):
                        if "fact" in value:
                            value = str(facts[value["fact"]])
                        elif "per_rank" in value:
                            value = value["per_rank"][run["node_class"]][local]
                        else:
                            continue
                    env[setting["name"]] = value
                cpus = everywhere if mine["cpus"] is None else cpu_list(mine["cpus"])
                ranks[rank] = (plan["hosts"][node] if plan["hosts"] else None, cpus, env)
    return ranks


def recorded(folder):
    """What rank_record wrote: {rank: (host, pid, cpus, environment)}."""
    ranks = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            parts = file.read().decode(errors="surrogateescape").split("\0")[:-1]
        ranks[int(name)] = (parts[0], int(parts[1]), cpu_list(parts[2]), dict(part.split("=", 1) for part in parts[3:] if "=" in part))
    return ranks


def differences(plan, folder, hosts=True, everywhere=ALLOWED, skip=()):
    """Every way in which the ranks' own reports are not the plan, as lines; none when all is well."""
    want, got, found = expected(plan, everywhere), recorded(folder), []
    if sorted(want) != sorted(got):
        return ["planned ranks %s, ran %s" % (sorted(want), sorted(got))]
    if len({(host, pid) for host, pid, _, _ in got.values()}) != len(got):
        found.append("two ranks in one process")
    if len({env.get("MASTER_PORT") for _, _, _, env in got.values()}) != 1:
        found.append("ranks differ in MASTER_PORT")
    for rank, (host, cpus, env) in sorted(want.items()):
        real_host, _, real_cpus, real_env = got[rank]
        if hosts and host is not None and real_host != host:
            found.append("rank %d: on %s, planned %s" % (rank, real_host, host))
        if real_cpus != cpus:
            found.append("rank %d: CPUs %s, planned %s" % (rank, sorted(real_cpus), sorted(cpus)))
        for name, value in env.items():
            if name not in skip and real_env.get(name) != value:
                found.append("rank %d: %s is %r, planned %r" % (rank, name, real_env.get(name), value))
        if "HPCLAUNCH_PLAN" in real_env:
            found.append("rank %d: HPCLAUNCH_PLAN is still there" % rank)
    return found


def main():
    global RECORD
    if len(sys.argv) < 3:
        sys.exit("usage: %s PATH_OF_HPCLAUNCH PATH_OF_RANK_RECORD [unittest arguments]" % sys.argv[0])
    support.HPCLAUNCH, RECORD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    sys.modules["__main__"].RECORD = RECORD
    del sys.argv[1:3]
    sys.exit(allowed.run())
