#!/usr/bin/env python3
"""hpclaunch run beside MPICH's mpiexec: --supervise, --report, --signal, from outside.

Those of `Beside` install the program with a shim made up for them (standins/shim.py), which tells hpclaunch of
the program and does nothing else; two nodes are played by this one.
"""
import json
import os
import shutil
import signal
import subprocess
import time

import fakes
import support
from support import HOST, Test, clean_env, execute, hpclaunch, need

support.idle_stdin()


def load_tests(loader, tests, pattern):
    return fakes.Together(tests, 3)  # beside the one that waits for ten seconds


class Beside(Test):
    def setUp(self):
        super().setUp()
        need("mpiexec.hydra")
        os.makedirs(self.folder + "/i/bin")
        os.makedirs(self.folder + "/i/libexec/hpclaunch")
        self.program = self.folder + "/i/bin/hpclaunch"
        with support.WRITING:
            shutil.copy(support.HPCLAUNCH, self.program)
            shutil.copy(support.ROOT + "/tests/cli/standins/shim.py", self.folder + "/i/libexec/hpclaunch/hpclaunch-shim")
        hosts = self.file("hosts", "nodeA\nnodeB\n")
        self.report_file = self.folder + "/report.json"
        self.mark = "mark-%d-%s" % (os.getpid(), os.path.basename(self.folder))
        self.words = [self.program, "run", "-n", "4", "--hostfile", hosts, "--launcher", "hydra", "--launcher-arg=-launcher", "--launcher-arg=fork",
                      "--master-addr", "198.51.100.1", "--oversubscribe", "--report", self.report_file]
        self.addCleanup(self.nothing_is_left)

    def env(self, **extra):
        return clean_env(STANDIN_LAYOUT="nodeA:2 nodeB:2", STANDIN_SUPPORT=support.ROOT + "/tests/support", HPCLAUNCH_TEST_MARK=self.mark, **extra)

    def marked(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as file:
                    if self.mark.encode() in file.read():
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def until(self, condition, what):
        limit = time.monotonic() + support.LIMIT
        while not condition():
            if time.monotonic() > limit:
                self.fail("never came: " + what)
            time.sleep(0.02)

    def nothing_is_left(self):
        self.until(lambda: not self.marked(), "the end of all processes")

    def job(self, script, *words, **extra):
        return execute([*self.words, *words, "--", "/bin/sh", "-c", script], env=self.env(**extra))

    def report(self):
        with open(self.report_file) as file:
            return json.load(file)

    def test_all_well(self):
        done = self.ok(self.job("echo out $RANK; echo err $RANK >&2"))
        self.assertEqual(sorted(done.out.splitlines()), ["out %d" % rank for rank in range(4)])
        said = [line for line in done.err.splitlines() if "address" not in line]  # both nodes are this machine
        self.assertEqual(sorted(said), ["err %d" % rank for rank in range(4)])
        record = self.report()
        self.assertEqual([record["schema"], record["status"], record["world_size"], record["hosts"]], [1, 0, 4, ["nodeA", "nodeB"]])
        self.assertEqual(record["ranks"], {"ok": 4, "failed": 0, "ended": 0, "silent": 0})
        self.assertEqual([record["first_failure"], record["error"], record["silent"], record["passed_on"]], [None, None, [], None])
        self.assertEqual([record["launcher"]["name"], record["launcher"]["exit_status"], record["launcher"]["signal"]], ["hydra", 0, None])
        self.assertIn("mpiexec", record["launcher"]["argv"][0])
        self.assertEqual(record["command"], ["/bin/sh", "-c", "echo out $RANK; echo err $RANK >&2"])
        self.assertRegex(record["started"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertLessEqual(record["started"], record["ended"])
        self.assertEqual(os.listdir(self.folder).count("report.json"), 1)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".new")], [])

    def test_one_rank_that_is_no_mpi_program_fails_and_all_end(self):
        done = self.ok(self.job("test $RANK = 2 || exec sleep 1000; echo last words >&2; exit 7"), 7)
        self.assertRegex(done.err, r"hpclaunch: rank 2 failed first: host nodeB, pid \d+, exit status 7, [\d.]+ s after start\n"
                                   r"hpclaunch: last output of rank 2:\n  \| last words\n")
        self.assertNotIn("@hpclaunch", done.err)
        record = self.report()
        first = record["first_failure"]
        self.assertEqual([first["rank"], first["local_rank"], first["node"], first["host"], first["exit_status"], first["signal"], first["core"], first["last_lines"]],
                         [2, 0, 1, "nodeB", 7, None, False, ["last words"]])
        self.assertGreater(first["peak_kib"], 100)  # of the shell, as its monitor has it
        self.assertEqual(first["oom_kills"], 0)
        self.assertEqual([record["status"], record["ranks"]["ok"], record["ranks"]["failed"]], [7, 0, 1])
        self.assertEqual(record["ranks"]["ended"] + record["ranks"]["silent"], 3)

    def test_a_signal(self):
        done = self.ok(self.job("test $RANK = 1 && kill -SEGV $$; exec sleep 1000"), 139)
        self.has(done, "rank 1 failed first: host nodeA", "SIGSEGV (signal 11")
        self.assertEqual(self.report()["first_failure"]["signal"], "SIGSEGV")

    def test_a_silent_node(self):
        done = self.ok(self.job("exit 0", STANDIN_MUTE="2,3"), 137)
        self.has(done, "hpclaunch: node nodeB failed first: its connection ended, with ranks 2-3 on nodeB running\n")
        record = self.report()
        self.assertEqual([record["status"], record["silent"], record["ranks"]["silent"]], [137, [{"host": "nodeB", "ranks": "2-3"}], 2])

    def test_mpiexec_is_killed(self):
        ready = self.folder + "/ready"
        argv = [*self.words, "--", "/bin/sh", "-c", "echo >%s$RANK; exec sleep 1000" % ready]
        silent, talker = os.pipe()
        run = subprocess.Popen(argv, env=self.env(), stdin=silent, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.until(lambda: all(os.path.exists(ready + str(rank)) for rank in range(4)), "four ranks")
        names = {os.path.basename(os.path.realpath("/proc/%d/exe" % pid)): pid for pid in self.marked()}
        os.kill(names["mpiexec.hydra"], signal.SIGKILL)
        _, err = run.communicate(timeout=support.LIMIT)
        os.close(silent), os.close(talker)
        self.assertEqual(run.returncode, self.report()["status"], err.decode())
        self.assertEqual(self.report()["launcher"]["signal"], "SIGKILL")
        self.assertIn(b"hydra was stopped by SIGKILL (signal 9)", err)

    def test_signals_reach_the_ranks(self):
        ready = self.folder + "/ready"
        script = "trap 'echo usr1 $RANK' USR1; trap 'echo hup $RANK; exit 0' HUP; echo >%s$RANK; while :; do sleep 0.05; done" % ready
        silent, talker = os.pipe()
        run = subprocess.Popen([*self.words, "--", "/bin/sh", "-c", script], env=self.env(), stdin=silent, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.until(lambda: all(os.path.exists(ready + str(rank)) for rank in range(4)), "four ranks")
        run.send_signal(signal.SIGUSR1)
        lines = [run.stdout.readline() for _ in range(4)]
        self.assertEqual(sorted(lines), [b"usr1 %d\n" % rank for rank in range(4)])
        run.send_signal(signal.SIGHUP)  # which would kill mpiexec, and comes as it is
        out, err = run.communicate(timeout=support.LIMIT)
        os.close(silent), os.close(talker)
        self.assertEqual(sorted(out.splitlines()), [b"hup %d" % rank for rank in range(4)])
        self.assertEqual(run.returncode, 0, err.decode())
        self.assertEqual(self.report()["passed_on"], "SIGHUP")


class Report(Test):
    def record(self, path):
        with open(path) as file:
            return json.load(file)

    def test_local(self):
        path = self.folder + "/r.json"
        self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--report", path, "--", "/bin/sh", "-c", "test $RANK = 0 && exec sleep 1000; echo sad; exit 4"), 4)
        record = self.record(path)
        self.assertEqual([record["status"], record["launcher"]["name"], record["launcher"]["exit_status"]], [4, "local", None])
        self.assertEqual([record["first_failure"][key] for key in ("rank", "host", "exit_status", "last_lines")], [1, HOST, 4, ["sad"]])
        self.assertEqual(record["ranks"], {"ok": 0, "failed": 1, "ended": 1, "silent": 0})
        self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--report", path, "--", "/bin/true"))
        self.assertEqual([self.record(path)["status"], self.record(path)["ranks"]["ok"]], [0, 2])

    def test_a_traceback_is_shown_from_its_first_line_on(self):
        """The user's own frame is at its top, above all the library's."""
        need("mpiexec.hydra")
        script = self.file("mine.py", "import os, time\nif os.environ['RANK'] == '0': time.sleep(1000)\n"
                                      "def library(n):\n    return library(n - 1) if n else {}['missing']\ndef library2(n):\n    return library3(n)\n"
                                      "def library3(n):\n    return library(n)\n" + "".join("def l%d():\n    return l%d()\n" % (i, i + 1) for i in range(12)) +
                                      "def l12():\n    return library2(1)\nl0()  # mine\n")
        for launcher in "local", "hydra":
            done = self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--launcher", launcher, "--grace", "1", "--", "/usr/bin/python3", script), 1)
            self.has(done, "  | Traceback (most recent call last):\n", "    l0()  # mine\n", "  | KeyError: 'missing'\n")

    def test_a_start_that_failed(self):
        path = self.folder + "/r.json"
        self.ok(hpclaunch("run", "--report", path, "--", "/no/such/program"), 127)
        record = self.record(path)
        self.assertEqual([record["status"], record["command"], record["ranks"]], [127, ["/no/such/program"], None])
        self.assertIn("does not exist", record["error"]["message"])
        self.ok(hpclaunch("run", "--set", "RANK=1", "-n", "2", "--oversubscribe", "--report", path, "--", "/bin/true"), 125)
        self.assertEqual([self.record(path)["status"], self.record(path)["error"]["message"]], [125, "not started"])

    def test_bytes_that_are_no_text(self):
        path = self.folder + "/r.json"
        self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--report", path, "--", "/bin/sh", "-c", r"test $RANK = 0 && exec sleep 1000; printf '\377\001\n'; exit 4"), 4)
        self.assertEqual(self.record(path)["first_failure"]["last_lines"], ["\ufffd\x01"])

    def test_paths_that_cannot_be_written(self):
        os.mkfifo(self.folder + "/fifo")
        touched = self.folder + "/touched"
        for path in ("/no/such/directory/r.json", self.folder, self.folder + "/fifo", "/dev/null", "/proc/r.json"):
            self.refused(125, "run", "--report", path, "--", "/usr/bin/touch", touched, says=["--report"])
        self.assertFalse(os.path.exists(touched))

    def test_a_report_that_cannot_be_written_at_the_end(self):
        """The job removes the directory: its own failure counts first."""
        for option in ("--report", "--profile-start"):
            for own, status in ((0, 125), (3, 3)):
                os.mkdir(self.folder + "/gone")
                text = "rm -r %s/gone; exit %d" % (self.folder, own)
                done = self.ok(hpclaunch("run", "-n", "1", option + "=" + self.folder + "/gone/r.json", "--", "/bin/sh", "-c", text), status)
                self.has(done, option + ": cannot write", "No such file or directory", "try: choose a file in a writable directory")

    def test_a_report_is_the_owners_and_has_no_secret_of_the_arguments(self):
        path = self.file("r.json", "old")
        os.chmod(path, 0o644)
        words = ("-n", "1", "--", "/bin/echo", "--token", "hunter2", "--api-key=hunter2", "http://u:hunter2@h", "--max-tokens", "512")
        done = self.ok(hpclaunch("run", "-v", "--report", path, *words))
        self.assertEqual(done.out, "--token hunter2 --api-key=hunter2 http://u:hunter2@h --max-tokens 512\n")
        self.assertNotIn("hunter2", done.err)
        self.has(done, "/bin/echo --token <hidden> --api-key=<hidden> <hidden> --max-tokens 512")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with open(path) as file:
            text = file.read()
        self.assertNotIn("hunter2", text)
        self.assertEqual(json.loads(text)["command"][1:], ["--token", "<hidden>", "--api-key=<hidden>", "<hidden>", "--max-tokens", "512"])
        for command in (("plan",), ("plan", "-v"), ("plan", "--json")):
            shown = hpclaunch(*command, *words)
            self.assertIn(shown.status, (0, 1))
            self.assertNotIn("hunter2", shown.out + shown.err, command)

    def test_a_link_stays_one(self):
        os.symlink("real.json", self.folder + "/link.json")
        self.file("real.json", "old")
        self.ok(hpclaunch("run", "-n", "1", "--report", self.folder + "/link.json", "--", "/bin/true"))
        self.assertTrue(os.path.islink(self.folder + "/link.json"))
        self.assertEqual(self.record(self.folder + "/real.json")["status"], 0)


class Choice(Test):
    HYDRA = ["-n", "1", "--launcher", "hydra"]

    def chosen(self, *words):
        plan = self.json("plan", *words)
        [setting] = [s for s in plan["choices"] if s["name"] == "supervise"]
        return plan["supervise"], setting["value"], setting["history"][-1]["why"]

    def test_default_and_typed(self):
        need("mpiexec.hydra")
        self.assertEqual(self.chosen(*self.HYDRA)[:2], (True, "yes"))
        self.assertEqual(self.chosen(*self.HYDRA, "--no-supervise"), (False, "no", "--no-supervise"))
        self.assertEqual(self.chosen(*self.HYDRA, "--supervise"), (True, "yes", "--supervise"))
        self.assertEqual(self.chosen("-n", "1"), (False, "yes", "the local launcher always supervises its ranks"))

    def test_whatever_becomes_of_stderr(self):
        self.file("bin/srun", "#!/bin/sh\necho slurm 23.02.1\n", 0o755)
        slurm = ["-n", "1", "-N", "1", "--launcher", self.folder + "/bin/srun"]
        self.assertEqual(self.chosen(*slurm)[:2], (True, "yes"))
        self.assertEqual(self.chosen(*slurm, "--launcher-arg=--error=x")[:2], (True, "yes"))
        self.assertEqual(self.chosen(*slurm, "--log-dir", "logs"), (True, "yes", "required by --log-dir"))

    def test_contradictions(self):
        need("mpiexec.hydra")
        for words in (["--supervise", "--no-supervise"], ["--no-supervise", "--report", self.folder + "/r"],
                      ["--no-supervise", "--signal", "USR1", "--ends-in", "1:00:00"]):
            self.refused(125, "run", *self.HYDRA, *words, "--", "/bin/true", says=["supervise"])
        self.refused(125, "run", "-n", "1", "--launcher", "local", "--no-supervise", "--", "/bin/true", says=["--no-supervise"])

    def test_explain(self):
        need("mpiexec.hydra")
        done = self.ok(hpclaunch("explain", *self.HYDRA, "supervise"))
        self.assertIn("the first failure, its exact status, and time for the other ranks to end", done.out)
        done = self.ok(hpclaunch("explain", "--signal", "USR1@60", "--ends-in", "1:00:00", "signal"))
        self.assertRegex(done.out, r"SIGUSR1[\s\S]*60 s before the allocation ends \(--ends-in\s+1:00:00")

    def test_without_it_run_becomes_mpiexec(self):
        need("mpiexec.hydra")
        done = self.ok(hpclaunch("run", *self.HYDRA, "--no-supervise", "--", "/bin/sh", "-c", "exit 21"), 21)
        self.assertNotIn("failed", done.err)


class Notice(Test):
    def test_local_ranks_get_it(self):
        # Ten seconds from now: the ranks have set their traps by then, however busy the machine is.
        script = "trap 'echo told $RANK; exit 0' USR1; while :; do sleep 0.05; done"
        done = self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--signal", "USR1@3590", "--ends-in", "1:00:00", "--", "/bin/sh", "-c", script))
        self.assertEqual(sorted(done.out.splitlines()), ["told 0", "told 1"])

    def test_the_line_of_a_dry_run_has_it(self):
        done = self.ok(hpclaunch("run", "--dry-run", "-n", "1", "--launcher", "local", "--signal", "USR1@60", "--ends-in", "1:00:00", "--", "/bin/true"))
        self.assertRegex(done.out, r"--notice SIGUSR1@\d{10} ")
        done = self.ok(execute(["/bin/sh", "-c", done.out.replace("/bin/true", "/bin/echo ran")], env=clean_env()))
        self.assertEqual(done.out, "ran\n")

    def test_in_the_plan(self):
        plan = self.json("plan", "--signal", "sigterm@60", "--ends-in", "1-00:00:00")
        self.assertEqual(plan["time_limit_signal"]["signal"], "SIGTERM")
        self.assertLess(abs(plan["time_limit_signal"]["at"] - time.time() - 86340), 120)
        self.assertIsNone(self.json("plan")["time_limit_signal"])

    def test_late(self):
        done = self.ok(hpclaunch("explain", "--signal", "USR1@300", "--ends-in", "0:40", "signal"))
        self.assertIn("[signal-late]", done.err)
        self.assertIn("20 s before", done.err)

    def test_refused(self):
        for words, says in ((["--signal", "KILL@60", "--ends-in", "1:00"], ["KILL", "USR1"]), (["--signal", "B:USR1@60"], ["letter"]),
                            (["--signal", "USR1"], ["--ends-in"]), (["--ends-in", "1:00"], ["--signal"]),
                            (["--signal", "USR1", "--ends-in", "3600"], ["HH:MM:SS"]), (["--signal", "USR1", "--ends-in", "0:00"], ["allocation ended"])):
            self.refused(125, "run", "-n", "1", *words, "--", "/bin/true", says=says)

    def batch(self, program, answer, **env):
        """(seconds left, who) as a batch system's stand-in says."""
        self.file("bin/" + program, "#!/bin/sh\ncat <<'X'\n%s\nX\n" % answer, 0o755)
        plan = self.json("plan", "-n", "1", "--launcher", "local", "-N", "1", "--signal", "USR1@60",
                         env=clean_env(PATH=self.folder + "/bin:/usr/bin:/bin", **env))
        [setting] = [s for s in plan["choices"] if s["name"] == "signal"]
        return plan["time_limit_signal"]["at"] - time.time() + 60, setting["history"][-1]["why"]

    def test_batch_systems(self):
        for program, answer, env in (("squeue", "1:00:00", {"SLURM_JOB_ID": "7"}), ("bjobs", "1:00 L", {"LSB_JOBID": "7"}),
                                     ("flux", "3600", {"FLUX_URI": "local:///x"}),
                                     ("qstat", "Job Id: 7\n    Resource_List.walltime = 01:10:00\n    resources_used.walltime = 00:10:00", {"PBS_JOBID": "7"})):
            with self.subTest(program):
                left, why = self.batch(program, answer, **env)
                self.assertLess(abs(left - 3600), 120)
                self.assertIn(program + ": 3600 s left", why)

    def test_a_job_without_a_limit(self):
        """The signal is never sent, and qstat is asked once for all that it says."""
        for program, answer, env in (("qstat", "Job Id: 7\n    job_state = R\n    stime = Sat Nov 28 01:54:13 2026\n    exec_host = n1/0", {"PBS_JOBID": "7"}),
                                     ("flux", "4294967295", {"FLUX_URI": "local:///x"})):
            with self.subTest(program):
                self.file("bin/" + program, "#!/bin/sh\necho \"$*\" >> %s/calls\ncat <<'X'\n%s\nX\n" % (self.folder, answer), 0o755)
                done = self.ok(hpclaunch("run", "--profile", "none", "-n", "1", "--launcher", "local", "-N", "1", "--signal", "USR1@60", "--", "/bin/true",
                                         env=clean_env(PATH=self.folder + "/bin:/usr/bin:/bin", **env)))
                self.has(done, "the allocation has no time limit (%s: no limit)" % program, "[signal-never]")
        with open(self.folder + "/calls") as file:
            self.assertEqual(file.read().splitlines().count("-f 7"), 1)


if __name__ == "__main__":
    support.main()
