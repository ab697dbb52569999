#!/usr/bin/python3
"""Every planted stall under every launcher, as the table of docs/hangs.md: HPCLAUNCH_TEST_RANKS (66) ranks of the light program, 8 of PyTorch.

    stalls_table.py PATH_OF_HPCLAUNCH PATH_OF_RANK_RECORD [Table.test_light ...]

HPCLAUNCH_TEST_CULPRITS: "4,0,65". Fails where fewer than 95 % are named, or a rank that is innocent was said to be certain.
"""
import json
import os
import re
import time

os.environ.setdefault("HPCLAUNCH_TEST_RANKS", "66")

import engines
import stalls_kinds
import stalls_test

RANKS = stalls_test.RANKS
LAUNCHERS = ("local", "slurm", "hydra")
TORCH_RANKS = 8
ENOUGH = 0.95
CULPRITS = [int(rank) for rank in os.environ.get("HPCLAUNCH_TEST_CULPRITS", "4").split(",")]


class Table(stalls_test.InStalls):
    def setUp(self):
        super().setUp()
        self.rows = []

    def row(self, kind, where, culprit, verdict):
        """What was found, and whether that is right."""
        right = stalls_kinds.wrong_in(kind, culprit, verdict, stalls_test.PROGRAM, RANKS) is None
        innocent = set(verdict["culprits"]) - stalls_kinds.culprits_of(kind, culprit, RANKS)
        said = verdict["summary"] + (", at " + re.sub(r"^\S*/", "", verdict["place"]) if "place" in verdict else "")
        self.rows.append((right, verdict["sure"] == "certain" and bool(innocent), self.seconds))
        print("| %s | %s | %d | %s | %s | %.1f s | %s |" % (
            kind, where, culprit, said, verdict["sure"], self.seconds, "yes" if right else "no"), flush=True)

    def summed_up(self):
        named, innocent = sum(right for right, _, _ in self.rows), sum(wrong for _, wrong, _ in self.rows)
        print("%d of %d named, %d innocent ranks said to be certain, answers within %.1f s" % (
            named, len(self.rows), innocent, max(seconds for _, _, seconds in self.rows)), flush=True)
        self.assertGreaterEqual(named, ENOUGH * len(self.rows))
        self.assertEqual(innocent, 0)

    def found(self, launcher, kind, culprit, **more):
        job, node = self.start_stall(launcher, kind, culprit, **more)
        time.sleep(2)  # a person does not ask sooner
        try:
            return json.loads(self.ok(self.ask(node, job, "--json")).out)["verdict"]
        finally:
            self.stop(job)

    def test_light(self):
        for launcher in LAUNCHERS:
            for kind in stalls_kinds.PLANTED:
                for culprit in CULPRITS:
                    self.row(kind, launcher, culprit, self.found(launcher, kind, culprit))
        self.nothing_left(but=["slurmstepd"])
        self.summed_up()

    def test_pytorch(self):
        for kind in stalls_kinds.PLANTED:
            self.row(kind, "local, PyTorch", 3, self.found("local", kind, 3, light=False, ranks=TORCH_RANKS))
        self.summed_up()

    def test_a_node_that_is_lost(self):
        self.own_nodes()
        for launcher in LAUNCHERS[1:]:
            verdict = json.loads(self.lost_node(launcher, "--json"))["verdict"]
            self.row("lost node", launcher, RANKS // 3, verdict)
        self.summed_up()


if __name__ == "__main__":
    engines.main()
