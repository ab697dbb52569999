#!/usr/bin/python3
"""The virtual cluster itself: what it shows to programs, and that it ends without a trace."""
import os
import signal
import subprocess
import sys
import time

import engines
from engines import Cluster, Failed, support
from cluster import birth, children, namespaces_work

PROGRAM = os.path.join(engines.HERE, "cluster.py")


def outside():
    """What a cluster could leave on the machine: mounts, interfaces, named namespaces, folders."""
    with open("/proc/self/mounts") as file:
        mounts = sorted(file)
    folders = sorted(name for name in os.listdir(os.environ.get("TMPDIR", "/tmp")) if name.startswith(("hpclaunch-cluster-", "ompi.")))
    return mounts, sorted(os.listdir("/sys/class/net")), sorted(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else [], folders


def mine(folder):
    """Processes of this machine that know a cluster's folder."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            for part in ("cmdline", "environ"):
                with open("/proc/%s/%s" % (name, part), "rb") as file:
                    if folder.encode() in file.read() and birth(int(name)) is not None:
                        found.append((name, part))
        except OSError:
            continue
    return found


class Ends(support.Test):
    """Other tests run clusters at the same time: looked for is what carries this one's folder."""

    def gone(self, cluster):
        folder = cluster.state.folder
        end = time.monotonic() + support.LIMIT
        while (mine(folder) or os.path.exists(folder)) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(mine(folder), [])
        self.assertFalse(os.path.exists(folder))
        with open("/proc/self/mounts") as file:
            self.assertNotIn(folder, file.read())

    def busy(self, **more):
        """A cluster with a job on it whose ranks do not end by themselves and do not obey."""
        cluster = Cluster(2, **more)
        self.addCleanup(cluster.down)
        job = cluster.popen("login", ["srun", "-N2", "sh", "-c", "trap '' TERM INT; touch \"$TMPDIR/up-$SLURM_PROCID\"; "
                                      "setsid sleep 987 & sleep 987"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            start_new_session=True)
        self.job = job
        self.addCleanup(self.end, job)
        end = time.monotonic() + support.LIMIT
        while not all(os.path.exists(cluster.path("tmp", "up-%d" % rank)) for rank in (0, 1)) and time.monotonic() < end:
            time.sleep(0.02)
        self.assertTrue(os.path.exists(cluster.path("tmp", "up-1")))
        return cluster

    def end(self, job):
        """In mode ports srun itself is ours, not the keeper's."""
        try:
            os.killpg(job.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        job.wait()

    def test_down_with_a_job_on_it(self):
        cluster = self.busy()
        cluster.down()
        self.gone(cluster)

    def test_who_started_it_is_killed(self):
        """Nobody calls down(): the pipe ends, so the cluster does."""
        script = "import sys; sys.path.insert(0, %r); from cluster import Cluster; c = Cluster(1); print(c.state.folder, flush=True); input()"
        owner = subprocess.Popen([sys.executable, "-c", script % engines.HERE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        folder = owner.stdout.readline().strip()
        cluster = Cluster(0, folder=folder)
        owner.kill()
        owner.communicate()
        self.gone(cluster)

    def test_the_keeper_is_killed(self):
        cluster = self.busy()
        engines.own_nodes(cluster)  # in mode ports the keeper is no process 1: nothing but a signal that it can see ends its children
        os.kill(cluster.state.keeper, signal.SIGKILL)
        cluster.keeper.wait()
        end = time.monotonic() + support.LIMIT
        while mine(cluster.state.folder) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(mine(cluster.state.folder), [])
        cluster.down()
        self.gone(cluster)

    def test_ports(self):
        """Where no namespaces are permitted: the same Slurm, with all nodes under the machine's name."""
        cluster = self.busy(mode="ports")
        self.assertEqual(cluster.state.mode, "ports")
        done = cluster.run("login", ["srun", "--overlap", "--overcommit", "-N2", "-l", "printenv", "SLURMD_NODENAME"])
        self.assertEqual(sorted(done.stdout.split("\n")), ["", "0: n1", "1: n2"], done)
        self.assertRaises(Failed, cluster.crash, "n1")
        self.end(self.job)
        cluster.down()
        self.gone(cluster)

    def test_two_side_by_side(self):
        before = outside()[:3]
        first, second = Cluster(1), Cluster(2)
        self.addCleanup(first.down)
        self.addCleanup(second.down)
        for cluster in (first, second):
            done = cluster.run("login", ["srun", "-N%d" % cluster.state.nodes, "printenv", "SLURMD_NODENAME"])
            self.assertEqual(sorted(done.stdout.split()), cluster.names, done)
        if first.spaces:
            self.assertEqual(outside()[:3], before)  # nothing has a name outside, even while they run
        first.down()
        self.gone(first)
        self.assertEqual(second.run("login", ["srun", "-N2", "hostname"]).returncode, 0)
        second.down()
        self.gone(second)

    def test_by_hand(self):
        def do(*words, env=None):
            return support.execute([sys.executable, PROGRAM, *words], env=env)
        up = self.ok(do("up", "2", "--shape", "gpu"))
        folder = up.out.split("HPCLAUNCH_CLUSTER=")[1].strip()
        env = support.clean_env(HPCLAUNCH_CLUSTER=folder)
        try:
            done = self.ok(do("exec", "login", "srun", "-N2", "--gpus-per-task=1", "-l", "printenv", "CUDA_VISIBLE_DEVICES", env=env))
            self.assertEqual(sorted(done.out.split("\n")), ["", "0: 0", "1: 0"])
            self.ok(do("kill", "n2", env=env))
            self.ok(do("start", "n2", env=env))
            self.ok(do("exec", "n9", "true", env=env), 1)
            self.has(do("kill", "n9", env=env), "no node n9")
        finally:
            self.ok(do("down", env=env))
        self.gone(type("One", (), {"state": type("Two", (), {"folder": folder})}))
        self.has(self.ok(do("down"), 1), "no cluster")
        self.has(self.ok(do("up", "0"), 1), "from 1 to 200")


class Looks(engines.Test):
    nodes, shape = 3, "real"

    def test_names_addresses_interfaces(self):
        self.assertEqual(self.cluster.spaces, namespaces_work()[0] and "HPCLAUNCH_TEST_CLUSTER" not in os.environ)
        self.own_nodes()
        for i, node in enumerate(self.cluster.names):
            done = self.cluster.run(node, ["sh", "-c", "hostname; getent hosts n3; ls /sys/class/net; cat /sys/class/net/hsn0/operstate"])
            self.assertEqual(done.stdout.split(), [node, "10.77.0.3", "n3", "n3.hpc.test", "hsn0", "lo", "up"], done)
        done = self.cluster.run("n1", ["ssh", "-x", "n2", "echo", "$HOSTNAME", "$(hostname)", ";", "exit", "7"])
        self.assertEqual([done.stdout.strip(), done.returncode], ["n2", 7], done)
        self.assertEqual(self.cluster.run("n1", ["ssh", "n9", "true"]).returncode, 255)

    def test_slurm_binds_for_true(self):
        cpus = sorted(engines.ALLOWED)[:2]
        masks = ",".join(hex(1 << cpu) for cpu in cpus)
        done = self.cluster.run("login", ["srun", "-N3", "-n%d" % (3 * len(cpus)), "--exclusive", "--cpu-bind=mask_cpu:" + masks, "-l",
                                          "sh", "-c", "echo $SLURM_LOCALID $(sed -n 's/Cpus_allowed_list:.//p' /proc/self/status)"])
        want = ["%d: %d %d" % (len(cpus) * node + i, i, cpu) for node in range(3) for i, cpu in enumerate(cpus)]
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(want), done)

    def test_a_node_crashes_and_comes_back(self):
        self.own_nodes()
        job = self.cluster.popen("n1", ["ssh", "n2", "echo up; sleep 500"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(job.stdout.readline(), "up\n")
        self.cluster.crash("n2")
        self.assertIn("reset by peer", job.communicate(timeout=support.LIMIT)[1])
        self.assertEqual(job.returncode, 255)
        self.assertRaises(Failed, self.cluster.crash, "n2")
        self.cluster.start("n2")
        self.assertEqual(self.cluster.run("n1", ["ssh", "n2", "hostname"]).stdout, "n2\n")
        self.assertEqual(self.cluster.run("login", ["srun", "-wn2", "hostname"]).stdout, "n2\n")
        self.nothing_left()


if __name__ == "__main__":
    engines.main()
