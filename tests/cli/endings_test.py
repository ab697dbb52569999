#!/usr/bin/env python3
"""A signal that comes when the ranks have ended: the exit status is that of the verdict, and the report is whole.

strace sends it in the very system call with which the program writes its last words, so that no clock decides.
"""
import json
import os
import sys

import support
from support import Test, execute, hpclaunch, need, traced_env

SIGNALS = ("INT", "TERM", "HUP", "QUIT", "USR1")

# Hydra's command line, of which one node is used: each rank is a child, in the same process group.
LAUNCHER = """#!%s
import os, subprocess, sys
words = sys.argv[1:]
if words == ["--version"]:
    sys.exit(print("HYDRA build details:\\n    Version:                                 4.0.2"))
at = 0
options = {}
while words[at].startswith("-"):
    options[words[at]] = words[at + 1]
    at += 2
size = int(options["-hosts"].rpartition(":")[2])
ranks = [subprocess.Popen(words[at:], env=dict(os.environ, PMI_RANK=str(rank), PMI_SIZE=str(size), MPI_LOCALRANKID=str(rank), MPI_LOCALNRANKS=str(size)))
         for rank in range(size)]
sys.exit(max(rank.wait() for rank in ranks))
"""

# The shell reads its own status: one that waits for a child blocks signals itself.
SEEN = """#!/bin/sh
[ "$1" = --version ] || while read -r line; do
  case $line in SigBlk:*) echo "$line" >>'%s/masks' ;; esac
done </proc/self/status
exec '%s' "$@"
"""


class Endings(Test):
    def setUp(self):
        super().setUp()
        self.hydra = self.file("mpiexec.hydra", LAUNCHER % sys.executable, 0o755)

    def struck(self, call, signal, *words, when=1, path=None, stdout=None):
        """hpclaunch, which gets the signal at the start of a system call (of that file): its status and the output."""
        calls = os.path.join(self.folder, "calls")
        trace = [need("strace"), "-qq", "-o", calls, "-e", "trace=" + call, "-e", "inject=%s:signal=SIG%s:when=%d" % (call, signal, when)]
        if path is not None:
            trace += ["-P", path]
        words = [*trace, support.HPCLAUNCH, *words]
        done = execute(["sh", "-c", 'exec "$@" >"$0"', stdout, *words] if stdout else words, env=traced_env())
        with open(calls) as file:
            made = sum(line.startswith(call.lstrip("/^")) for line in file)  # a blocked signal has no line of its own
        self.assertGreaterEqual(made, when, "the signal never came: %s" % done)
        return done

    def launchers(self):
        return (("local", ["--launcher", "local"]), ("supervised", ["--launcher", self.hydra, "--supervise"]))

    def test_while_the_report_is_written(self):
        report = os.path.join(self.folder, "report.json")
        for name, launcher in self.launchers():
            for signal in SIGNALS:
                for status in (0, 3):
                    with self.subTest(launcher=name, signal=signal, status=status):
                        done = self.struck("/^rename", signal, "run", "-n", "2", "--oversubscribe", *launcher, "--report", report, "--",
                                           "/bin/sh", "-c", "exit %d" % status, when=2)  # the first one tells other launches of this one
                        self.ok(done, status)
                        with open(report) as file:
                            self.assertEqual(json.load(file)["status"], status)
                        os.unlink(report)

    def test_while_verify_prints(self):
        for name, launcher in self.launchers():
            for signal in ("INT", "TERM", "HUP"):
                with self.subTest(launcher=name, signal=signal):
                    out = self.file("out", "")
                    done = self.struck("write", signal, "verify", "--json", "-n", "2", "--oversubscribe", *launcher, path=out, stdout=out)
                    with open(out) as file:
                        seen = json.load(file)
                    self.ok(done, 0 if seen["as_planned"] else 1)

    def test_a_launcher_that_replaces_hpclaunch_starts_with_no_signal_blocked(self):
        """--preflight has held them before."""
        launcher = self.file("seen/mpiexec.hydra", SEEN % (self.folder, self.hydra), 0o755)
        self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--launcher", launcher, "--no-supervise", "--preflight", "--force", "--", "/bin/true"))
        with open(self.folder + "/masks") as file:
            masks = file.read().split("\n")[:-1]
        self.assertGreaterEqual(len(masks), 2)  # of the preflight and of the job
        self.assertEqual(set(masks), {"SigBlk:\t" + "0" * 16})

    def test_before_the_ranks_are_started(self):
        """The preflight is over, and nothing listens yet."""
        for name, launcher in self.launchers():
            with self.subTest(launcher=name):
                done = self.struck("rt_sigpending", "INT", "run", "--preflight", "-n", "2", "--oversubscribe", *launcher, "--", "/bin/echo", "ran")
                self.ok(done, 130)
                self.assertEqual([done.out, done.err], ["", "hpclaunch: not started: SIGINT\n"], str(done))

    def test_between_two_attempts(self):
        for name, launcher in self.launchers():
            with self.subTest(launcher=name):
                done = self.struck("rt_sigpending", "TERM", "run", "-n", "1", *launcher, "--max-restarts", "3", "--", "/bin/sh", "-c", "echo ran; exit 3", when=2)
                self.ok(done, 3)
                self.assertEqual(done.out, "ran\n", str(done))


if __name__ == "__main__":
    support.main()
