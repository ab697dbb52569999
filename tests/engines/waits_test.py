#!/usr/bin/python3
"""Nodes that say nothing: minutes of waiting, in which other tests have the machine."""
import os
import signal
import subprocess
import threading

import engines
import faults_test
from failures_test import SLEEP


class Waits(faults_test.InJob):
    def test_a_node_that_falls_silent_is_named_and_ends_the_job(self):
        """Its cable is out: nobody is told, and the kernel's probes find it out after the 30 s of --lost-after; Slurm
        here before that."""
        self.own_nodes()
        for launcher in ("hydra", "openmpi"):
            with self.subTest(launcher):
                try:
                    status, err = self.while_it_runs(launcher, "exec sleep " + SLEEP, lambda: self.cluster.crash("n2", silent=True), 600, nodes=3)
                finally:
                    self.cluster.start("n2")
                self.assertEqual(status, 137, err)
                self.assertIn("hpclaunch: node n2 failed first: its connection ended, with ranks 2-3 on n2 running\n", err)
                self.nothing_left(but=["slurmstepd"])

    def test_no_node_ever_begins(self):
        """Hydra's launcher hangs: the nodes are named after 30 s, and the job is ended at the limit, for run as for verify."""
        hang = self.file("hang", "#!/bin/sh\nexec sleep 987\n", 0o755)
        by_it = ["--launcher-arg=-launcher", "--launcher-arg=ssh", "--launcher-arg=-launcher-exec", "--launcher-arg=" + hang, "--start-timeout", "33"]
        done = self.ok(self.do("hydra", *by_it, "--hostfile", self.file("hosts", "n2\nn3\n"), "--", "/bin/true"), 125)
        self.has(done, "hpclaunch: still waiting for ranks 0-1 on n2, ranks 2-3 on n3, 30 s after the start",
                 "hpclaunch: ranks 0-1 on n2, ranks 2-3 on n3 did not start within 33 s; stopped hydra")
        self.nothing_left()
        done = self.ok(self.do("hydra", *by_it, "--hostfile", self.file("hosts", "n2\nn3\n"), command="verify"), 2)
        self.has(done, "hpclaunch: still waiting for n2, n3, 30 s after the start", "no rank reported within 33 seconds")
        self.nothing_left()

    def test_node_that_never_begins(self):
        """Hydra waits for it for ever, and the ranks of the other node for its ranks: it is named while they do."""
        self.own_nodes()
        node, argv, env = self.in_job("hydra", "--supervise", "--grace", "2", "--", "/bin/sleep", SLEEP)
        self.cluster.crash("n2")
        silent, talker = os.pipe()
        process = self.cluster.popen(node, argv, env, stdin=silent, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        os.close(silent)
        late = threading.Timer(600, process.kill)
        late.start()
        try:
            said = ""
            for line in process.stderr:
                said += line
                if "still waiting for" in line:
                    os.kill(self.cluster.inner(process), signal.SIGTERM)
            self.assertIn("still waiting for ranks 2-3 on n2, 30 s after the last other rank", said)
            self.assertNotEqual(process.wait(), 0)
        finally:
            late.cancel()
            os.close(talker)
            process.stderr.close()
            self.cluster.start("n2")
        self.nothing_left(but=["slurmstepd"])


if __name__ == "__main__":
    engines.main()
