#!/usr/bin/python3
"""Jobs that stand still: which rank, in which line, under each launcher. HPCLAUNCH_TEST_RANKS: of the light program, in all."""
import json
import os
import re
import time

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


class InStalls(ends_test.InEnds):
    nodes = 3

    def start_stall(self, launcher, kind, culprit, *options, light=True, ranks=RANKS):
        """(job, the node where hpclaunch runs) of a job whose ranks stand still."""
        folder = self.fresh()
        env = ["--set", "LIGHT=1"] if light else []
        words = [*env, *options, "--", PYTHON, PROGRAM, kind, str(culprit), folder]
        if launcher == "local":
            node, argv, env = "n1", [support.HPCLAUNCH, "run", "--force", "--oversubscribe", "-n", str(ranks), *words], self.cluster.environment("n1")
        else:
            node, argv, env = self.in_job(launcher, *words, ppn=str(ranks // 3), nodes=3)
        job = ends_test.Job(self, node, argv, env, folder)
        job.up(ranks)
        return job, node

    def ask(self, node, job, *words):
        begin = time.monotonic()
        done = self.on(node, "stacks", *words, job.pid())
        self.seconds = time.monotonic() - begin
        return done

    def named(self, launcher, kind, culprit=4, **more):
        job, node = self.start_stall(launcher, kind, culprit, **more)
        try:
            text = self.ok(self.ask(node, job)).out
            verdict = json.loads(self.ok(self.ask(node, job, "--json")).out)["verdict"]
        finally:
            job.send("INT")
            job.send("INT")
            job.end()
        return verdict, text

    def check(self, launcher, kind, culprit=4, **more):
        verdict, text = self.named(launcher, kind, culprit, **more)
        expected = stalls_kinds.EXPECTED[kind]
        self.assertIn(verdict["kind"], expected.kinds, text)
        self.assertIn(culprit, verdict["culprits"], text)
        self.assertLessEqual(set(verdict["culprits"]), {culprit, culprit + 1} if kind == "deadlock" else {culprit}, text)
        self.assertTrue(verdict["place"].endswith(" " + expected.function), text)
        if kind != "spin":  # its loop has two lines
            self.assertIn("stalls.py:%d " % stalls_kinds.line_of(PROGRAM, expected.function), verdict["place"], text)


class Stalls(InStalls):
    def test_every_kind_here(self):
        for kind in stalls_kinds.EXPECTED:
            with self.subTest(kind):
                self.check("local", kind)

    def test_under_launchers(self):
        kinds = list(stalls_kinds.EXPECTED) if EVERY_KIND else ["sleep", "stop"]
        for launcher in LAUNCHERS:
            for kind in kinds:
                with self.subTest(launcher + " " + kind):
                    self.check(launcher, kind)
        self.nothing_left(but=["slurmstepd"])

    def test_pytorch(self):
        for kind in ("sleep", "mismatch") if not EVERY_KIND else stalls_kinds.EXPECTED:
            with self.subTest(kind):
                self.check("local", kind, light=False, ranks=8 if EVERY_KIND else 6, culprit=3)

    def test_a_node_that_is_lost(self):
        self.own_nodes()
        job, node = self.start_stall("hydra", "sleep", 0, "--lost-after", "60")
        try:
            self.cluster.crash("n2", silent=True)
            text = self.ok(self.ask(node, job)).out
        finally:
            self.cluster.start("n2")
            job.send("INT")
            job.send("INT")
            job.end()
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
