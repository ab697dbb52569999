#!/usr/bin/env python3
"""hpclaunch report: of the last run, of a file, of a job; what ranks leave on this machine.

    report_test.py HPCLAUNCH [Class.test]
"""
import json
import os
import signal
import stat
import sys
import unittest

import support
from support import Test, clean_env, hpclaunch


class Report(Test):
    def setUp(self):
        super().setUp()
        self.runtime = self.folder + "/runtime"
        for folder in (self.runtime, self.runtime + "/hpclaunch"):  # else that of /tmp counts
            os.mkdir(folder, 0o700)

    def env(self, **more):
        return clean_env(XDG_RUNTIME_DIR=self.runtime, **more)

    def run_ranks(self, status, *words, **more):
        return self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--profile", "none", *words, env=self.env(**more)), status)

    def kept(self):
        return sorted(os.listdir(self.runtime + "/hpclaunch/reports"))

    def test_the_last_run(self):
        program = self.file("train.py", "import os, sys, time\n\ndef step():\n    raise ValueError('bad sample')\n\n"
                            "if os.environ['RANK'] == '1':\n    step()\ntime.sleep(1000)\n")
        self.run_ranks(1, "--log-dir", self.folder + "/logs", "--", sys.executable, program)
        shown = self.ok(hpclaunch("report", env=self.env())).out
        lines = shown.splitlines()
        self.assertLessEqual(len(lines), 25)
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertRegex(shown, r"(?m)^first     rank 1 on \S+ \(local rank 1, pid \d+\): exit status 1, \d+\.\d s after start$")
        self.assertIn("\nwhy       certain: the first end, and no signal had come before it\n", shown)
        self.assertRegex(shown, r"(?m)^where     .*train\.py:4 in step\n          ValueError: bad sample$")
        self.assertIn("\nothers    1 rank ended by hpclaunch", shown)
        self.assertRegex(shown, r"(?m)^resources memory: peak of the rank [\d.]+ MiB$")
        self.assertRegex(shown, r"(?m)^next      less \+G \S+/logs/rank-1\.log$")

    def test_a_file_and_json(self):
        path = self.folder + "/job.json"
        self.run_ranks(3, "--report", path, "--", "/bin/sh", "-c", "test $RANK = 0 && exit 3; exec sleep 1000")
        with open(path) as file:
            record = json.load(file)
        self.assertEqual(record["typed"][:2], ["run", "-n"])
        self.assertIsNone(record["job"])
        first = record["first_failure"]
        self.assertGreater(first["peak_kib"], 0)
        self.assertEqual((first["oom_kills"], first["where"], first["log"]), (0, None, None))
        self.assertEqual((record["lost"], record["interrupted_by"], record["time_limit"]), ([], None, False))
        shown = json.loads(self.ok(hpclaunch("report", "--json", path, env=self.env())).out)
        self.assertEqual(shown["schema"], 1)
        self.assertEqual(shown["files"], [path])
        self.assertIn("exit status 3", shown["first"])
        self.assertIn("--log-dir logs", " ".join(shown["next"]))

    def test_well(self):
        self.run_ranks(0, "--", "/bin/true")
        self.assertIn("first     nothing: all ranks exited with 0\n", self.ok(hpclaunch("report", env=self.env())).out)

    def test_of_a_batch_job(self):
        """Each job by its id; the last run of it."""
        for job, status in (("4711", 4), ("4712", 5), ("4711", 6)):
            host = os.uname().nodename
            self.run_ranks(status, "--launcher", "local", "--", "/bin/sh", "-c", "exit %d" % status, SLURM_JOB_ID=job, SLURM_JOB_NODELIST=host,
                           SLURM_JOB_NUM_NODES="1", SLURM_TASKS_PER_NODE="2", SLURM_JOB_UID=str(os.getuid()))
        self.assertIn("exit status 6", self.ok(hpclaunch("report", "4711", env=self.env())).out)
        self.assertIn("slurm 4712", self.ok(hpclaunch("report", "4712", env=self.env())).out)
        done = self.ok(hpclaunch("report", "471", env=self.env()), 2)
        self.assertIn('no file, and no kept run of job "471" on this machine', done.err)

    def test_the_last_few_are_kept_for_this_user_alone(self):
        for _ in range(10):
            self.run_ranks(0, "--", "/bin/true")
        self.assertEqual(len(self.kept()), 8)
        for name in self.kept():
            self.assertEqual(stat.S_IMODE(os.stat(self.runtime + "/hpclaunch/reports/" + name).st_mode), 0o600)
        before = self.kept()
        self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--dry-run", "--", "/bin/true", env=self.env()))
        self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--", "/no/such/program", env=self.env()), 127)
        self.assertEqual(self.kept(), before)

    def test_nothing_there(self):
        done = self.ok(hpclaunch("report", env=self.env()), 2)
        self.assertIn("no run of this user is kept on this machine", done.err)
        self.assertIn("cannot", self.ok(hpclaunch("report", "./none.json", env=self.env()), 2).err)
        other = self.file("other.json", "[1]")
        self.assertIn("not a report of hpclaunch run --report", self.ok(hpclaunch("report", other, env=self.env()), 2).err)
        self.assertIn("report takes one file or job", self.ok(hpclaunch("report", "a", "b", env=self.env()), 2).err)

    def test_a_crash(self):
        self.run_ranks(128 + signal.SIGSEGV, "--", "/bin/sh", "-c", "test $RANK = 0 && kill -SEGV $$; exec sleep 1000")
        shown = self.ok(hpclaunch("report", env=self.env())).out
        self.assertIn(": SIGSEGV", shown)
        self.assertIn("--set PYTHONFAULTHANDLER=1", shown)


if __name__ == "__main__":
    support.main()
