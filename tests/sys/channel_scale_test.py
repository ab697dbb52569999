"""Ten thousand nodes on this machine: channel_scale_test.py DRIVER.

One process has a connection for each node, as the monitors of these would: hello, begun, ended. hpclaunch takes them
all, needs little memory for a node, and does nothing while nothing is said. What it took of the processor is printed.
"""
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import LIMIT, Marked, allowed
import channel

NODES = 10624  # of the largest machine there is
BATCH = 500  # that connect before the first of them says hello, which has 10 s for that
AT_ONCE = 1000
MOST_MEMORY = 40 * 1024  # KiB above what one node needs
OWN_FILES = 128  # beside those of the nodes


def place(step):
    return os.path.join(os.environ["PLACE"], step)


def reach(step):
    open(place(step), "w").close()


def launcher(nodes):
    """The made-up launcher, with its nodes."""
    def gate(step):
        while not os.path.exists(place(step)):
            time.sleep(0.01)

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    variable = os.environ["HPCLAUNCH_CHANNEL"]
    peers = []
    for first in range(0, nodes, BATCH):
        new = [channel.Channel(variable, node, hello=False) for node in range(first, min(first + BATCH, nodes))]
        for node, peer in enumerate(new, first):
            peer.socket.settimeout(None)
            peer.greet(node)
            peer.begun(node, 1000, "n%d" % (node + 1))
        peers += new
    reach("begun")
    gate("end")
    last = min(AT_ONCE, nodes)
    for node, peer in enumerate(peers[last:], last):
        peer.ended(node, 1000)
    for node, peer in enumerate(peers[last:], last):
        assert peer.wait()[:2] == (channel.RELEASE, node)
    os.kill(os.getppid(), signal.SIGSTOP)
    for node, peer in enumerate(peers[:last]):
        peer.ended(node, 1000, exit=3, tail=b"x" * 16383 + b"\n")
    os.kill(os.getppid(), signal.SIGCONT)
    for node, peer in enumerate(peers[:last]):
        while peer.wait()[:2] != (channel.RELEASE, node):  # TERM may come before it
            pass
    reach("ended")
    gate("exit")
    sys.exit(3)


class Job(Marked):
    def __init__(self, folder, nodes):
        super().__init__()
        self.folder = folder
        self.summary = os.path.join(folder, "summary")
        env = dict(os.environ, PLACE=folder)
        env.update([self.mark.split("=")])
        self.process = subprocess.Popen([DRIVER, "--nodes", str(nodes), "--grace", "9999", "--out", self.summary, sys.executable, os.path.abspath(__file__),
                                         "launcher", str(nodes)], env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def reach(self, step):
        open(os.path.join(self.folder, step), "w").close()

    def until_reached(self, step):
        self.until(lambda: os.path.exists(os.path.join(self.folder, step)) or self.process.poll() is not None, step)
        if self.process.poll() is not None:
            raise AssertionError("it ended before %s: %s" % (step, self.process.communicate()[1].decode()))

    def status_of(self, field):
        with open("/proc/%d/status" % self.process.pid) as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field + ":"))

    def processor_seconds(self):
        with open("/proc/%d/stat" % self.process.pid) as file:
            words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def rests(self):
        """Nothing wakes it for a second. Just now it may still have read what was said."""
        before = self.status_of("voluntary_ctxt_switches")
        time.sleep(1)
        return self.status_of("voluntary_ctxt_switches") == before


class Scale(unittest.TestCase):
    def run_job(self, nodes):
        """Its peak memory in KiB."""
        with tempfile.TemporaryDirectory(prefix="hpclaunch-test-") as folder:
            job = Job(folder, nodes)
            job.until_reached("begun")
            job.until(job.rests, "a second without a wake-up")
            begun = job.processor_seconds()
            job.reach("end")
            job.until_reached("ended")
            peak, seconds = job.status_of("VmHWM"), job.processor_seconds()
            job.reach("exit")
            err = job.process.communicate(timeout=LIMIT)[1].decode()
            with open(job.summary) as file:
                said = file.read()
            print("%d nodes: %.2f s of processor time to take them in, %.2f s for their ends; peak memory %d KiB" % (nodes, begun, seconds - begun, peak),
                  file=sys.stderr)
        last = min(AT_ONCE, nodes)
        self.assertEqual([job.process.returncode, said.rpartition(" first ")[0]], [3, "ok %d failed %d ended 0 launcher-exit 3" % (nodes - last, last)], err)
        self.assertNotIn("no connection", err)
        self.assertNotIn("connection ended", err)
        return peak

    def test_many_nodes(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        nodes = NODES if hard == resource.RLIM_INFINITY else min(NODES, hard - OWN_FILES)
        if nodes < NODES:
            print("%d nodes in place of %d: %d open files are allowed" % (nodes, NODES, hard), file=sys.stderr)
        one = self.run_job(1)
        self.assertLess(self.run_job(nodes) - one, MOST_MEMORY)


if __name__ == "__main__":
    if sys.argv[1] == "launcher":
        launcher(int(sys.argv[2]))
    DRIVER = os.path.abspath(sys.argv.pop(1))
    sys.exit(allowed.run())
