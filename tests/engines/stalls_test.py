#!/usr/bin/python3
"""Jobs that stand still: which rank, in which line, under each launcher. HPCLAUNCH_TEST_RANKS: of the light program, in all."""
import json
import os
import re
import time
import unittest

import container_test
import ends_test
import engines
import stalls_kinds
from engines import support
from faults_test import LAUNCHERS

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "stalls.py")
PYTHON = ends_test.PYTHON
RANKS = int(os.environ.get("HPCLAUNCH_TEST_RANKS", "6"))
EVERY_KIND = os.environ.get("HPCLAUNCH_TEST_RANKS") is not None

AS_NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


class InStalls(ends_test.InEnds):
    nodes = 3

    def start_stall(self, launcher, kind, culprit, *options, light=True, ranks=RANKS, around=()):
        """(job, the node where hpclaunch runs) of a job whose ranks stand still."""
        folder = self.fresh()
        env = ["--set", "LIGHT=1"] if light else []
        words = [*env, *options, "--", PYTHON, PROGRAM, kind, str(culprit), folder]
        if launcher == "local":
            node, argv, env = "n1", [support.HPCLAUNCH, "run", "--force", "--oversubscribe", "-n", str(ranks), *words], self.cluster.environment("n1")
        else:
            node, argv, env = self.in_job(launcher, *words, ppn=str(ranks // 3), nodes=3)
        job = ends_test.Job(self, node, [*around, *argv], env, folder)
        job.up(ranks)
        return job, node

    def ask(self, node, job, *words, around=()):
        begin = time.monotonic()
        done = self.cluster.run(node, [*around, support.HPCLAUNCH, "stacks", *words, job.pid()], timeout=support.LIMIT)
        self.seconds = time.monotonic() - begin
        return support.Done(done.returncode, done.stdout.encode(errors="surrogateescape"), done.stderr.encode(errors="surrogateescape"))

    def stop(self, job):
        job.send("INT")
        job.send("INT")
        return job.end()

    def check(self, launcher, kind, *options, culprit=4, around=(), **more):
        job, node = self.start_stall(launcher, kind, culprit, *options, around=around, **more)
        try:
            verdict = {"kind": "moves"}
            while verdict["kind"] == "moves":  # on its way
                text = self.ok(self.ask(node, job, around=around)).out
                verdict = json.loads(self.ok(self.ask(node, job, "--json", around=around)).out)["verdict"]
        finally:
            self.stop(job)
        self.assertIsNone(stalls_kinds.wrong_in(kind, culprit, verdict, PROGRAM), "%s\n%s" % (text, verdict))

    def lost_node(self, launcher, *words):
        """Of `hpclaunch stacks` when a node, n2, does not answer; rank 0 sleeps."""
        job, node = self.start_stall(launcher, "sleep", 0, "--lost-after", "60")
        try:
            self.cluster.crash("n2", silent=True)
            return self.ok(self.ask(node, job, *words)).out
        finally:
            self.cluster.start("n2")
            self.stop(job)


class Stalls(InStalls):
    def test_every_kind_here(self):
        for kind in stalls_kinds.PLANTED:
            with self.subTest(kind):
                self.check("local", kind)

    def test_under_launchers(self):
        kinds = stalls_kinds.PLANTED if EVERY_KIND else ["sleep", "stop"]
        for launcher in LAUNCHERS:
            for kind in kinds:
                with self.subTest(launcher + " " + kind):
                    self.check(launcher, kind)
        self.nothing_left(but=["slurmstepd"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
    def test_as_an_ordinary_user(self):
        for launcher, kinds in (("local", ["flock", "gil", "deadlock"]), ("slurm", ["sleep", "fifo"])):
            for kind in kinds:
                with self.subTest(launcher + " " + kind):
                    self.check(launcher, kind, around=AS_NOBODY)

    def test_in_containers(self):
        """The distribution's Python, in an image that has a user and processes of its own where the engine makes them."""
        root = os.path.join(self.folder, "root")
        container_test.make_root(root, [name for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin") if os.path.islink("/" + name)])
        os.mkdir(root + "/usr")
        profile = self.file("podman.json", json.dumps(
            {"schema": 1, "name": "sandbox", "doc": "podman in this sandbox", "containers": [container_test.PODMAN]}))
        for engine, around in (("charliecloud", ()), ("bubblewrap", ()), ("podman", ("unshare", "-m", "sh", "-c", container_test.CGROUP))):
            paths = ["/usr", support.ROOT, self.folder] + (["/etc/hosts"] if engine == "bubblewrap" else [])
            options = ["--profile", profile, "--container", root, "--container-engine", engine]
            binds = [word for path in paths for word in ("--container-bind", path)]
            for launcher, kind in (("local", "fifo"), ("local", "worker"), ("slurm", "sleep")):
                with self.subTest(" ".join((engine, launcher, kind))):
                    self.check(launcher, kind, *options, *binds, around=around)

    def test_pytorch(self):
        for kind in ("sleep", "mismatch") if not EVERY_KIND else stalls_kinds.PLANTED:
            with self.subTest(kind):
                self.check("local", kind, light=False, ranks=8 if EVERY_KIND else 6, culprit=3)

    def test_a_node_that_is_lost(self):
        self.own_nodes()
        text = self.lost_node("hydra")
        self.assertIn("n2", text)
        self.assertIn("does not answer", text)


class Watched(InStalls):
    def test_it_is_said_once_and_the_job_goes_on(self):
        job, _ = self.start_stall("local", "sleep", 4, "--stall", "2")
        time.sleep(8)
        job.send("INT")
        _, err = job.end()
        self.assertEqual(len(re.findall("no rank has moved", err)), 1, err)
        self.assertIn("stalls.py:%d" % stalls_kinds.line_of(PROGRAM, "sleeps"), err)

    def test_it_ends(self):
        for launcher in ("local", "hydra"):
            with self.subTest(launcher):
                job, _ = self.start_stall(launcher, "sleep", 4, "--stall", "2", "--on-stall", "end", "--grace", "2")
                status, err = job.end()
                self.assertEqual(status, 124, err)
                self.assertIn("as a fault of rank 4", err)
        self.nothing_left(but=["slurmstepd"])

    def test_it_starts_again(self):
        options = ["--stall", "2", "--on-stall", "restart", "--max-restarts", "1", "--grace", "2"]
        job, _ = self.start_stall("local", "sleep", 4, *options)
        status, err = job.end()
        self.assertEqual(status, 124, err)
        self.assertIn("restart 1 of 1, after a stall", err)


if __name__ == "__main__":
    engines.main()
