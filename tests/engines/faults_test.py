#!/usr/bin/python3
"""Faults that hpclaunch itself has to find and name: in the job (`run --supervise --report`) and before it (`verify`).

Every test ends with the question whether anything of it is left.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import engines
from engines import support, wait_until
from failures_test import ALL_BEGIN, ONE_ENDS, ROOT_MAY, SLEEP


LAUNCHERS = ("slurm", "hydra", "openmpi")


class InJob(engines.Test):
    nodes = 3

    def in_job(self, launcher, *words, env=None, ppn="2", command="run", nodes=2):
        """(node, command line, environment) of hpclaunch with this launcher where it is at home."""
        self.own_nodes(launcher)
        argv = [support.HPCLAUNCH, command, "--launcher", launcher, "--ppn", ppn, "--oversubscribe", *self.meeting(), *words]
        if launcher == "slurm":
            return "login", [*self.salloc(nodes), *argv], env or self.cluster.environment("login")
        return "n1", argv, env or self.cluster.pbs(nodes, int(ppn), **ROOT_MAY)

    def do(self, launcher, *words, **more):
        node, argv, env = self.in_job(launcher, *words, **more)
        done = self.cluster.run(node, argv, env=env, timeout=support.LIMIT)
        return support.Done(done.returncode, done.stdout.encode(errors="replace"), done.stderr.encode(errors="replace"))

    def one_ends(self, how):
        return ["--", "/bin/sh", "-c", ONE_ENDS % how, tempfile.mkdtemp(dir=self.folder)]

    def while_it_runs(self, launcher, script, act, limit, nodes=2):
        """Starts a job, acts when all ranks have begun; (status, stderr) of its end."""
        begun = os.path.join(self.folder, launcher)
        os.mkdir(begun)
        words = ["--supervise", "--grace", "2", "--", "/bin/sh", "-c", "touch $0/$RANK; " + script, begun]
        node, argv, env = self.in_job(launcher, *words, nodes=nodes)
        silent, talker = os.pipe()
        process = self.cluster.popen(node, argv, env, stdin=silent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        os.close(silent)
        try:
            wait_until(lambda: len(os.listdir(begun)) == 2 * nodes or process.poll() is not None, support.LIMIT, "the ranks did not begin")
            if process.poll() is None:
                act()
            _, err = process.communicate(timeout=limit)
        finally:
            os.close(talker)
            if process.poll() is None:
                process.kill()
        self.assertEqual(len(os.listdir(begun)), 2 * nodes, err)
        return process.returncode, err


class Faults(InJob):
    def report(self):
        with open(os.path.join(self.folder, "report.json")) as file:
            return json.load(file)

    # ---- the end of a rank ----

    def first_failure(self, how, status, words):
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                report = os.path.join(self.folder, "report.json")
                begin = time.monotonic()
                done = self.do(launcher, "--supervise", "--grace", "2", "--report", report, *self.one_ends(how))
                self.ok(done, status)
                self.has(done, "rank 1", "n1" if self.cluster.spaces else "", words)
                self.assertLess(time.monotonic() - begin, support.LIMIT)  # the others would sleep for a quarter of an hour
                self.assertIn("1", json.dumps(self.report()))
                self.nothing_left(but=["slurmstepd"])

    def test_exit(self):
        """The status is that of the first rank to fail, under every launcher; the others are ended, Hydra's too."""
        self.first_failure("echo its last words >&2; exit 7", 7, "its last words")

    def test_killed(self):
        self.first_failure("kill -9 $$", 128 + 9, "KILL")

    def test_all_well(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                self.ok(self.do(launcher, "--supervise", "--report", os.path.join(self.folder, "report.json"), "--", "/bin/true"))
                self.report()
                self.nothing_left(but=["slurmstepd"])

    def test_dead_node(self):
        """srun may end with 0 when a node has died: who counts the ends of ranks does not."""
        self.own_nodes()
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                script = "[ $NODE_RANK = 0 ] && exec sleep 4; exec sleep " + SLEEP
                try:
                    status, err = self.while_it_runs(launcher, script, lambda: self.cluster.crash("n2"), support.LIMIT)
                finally:
                    self.cluster.start("n2")
                self.assertNotEqual(status, 0, err)
                self.assertIn("n2", err)
                self.nothing_left(but=["slurmstepd"])

    def test_the_node_that_crashed_is_named_and_no_rank_elsewhere(self):
        """Of three nodes the second one crashes; the launcher ends the ranks of the others, which are not to blame."""
        self.own_nodes()
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                try:
                    status, err = self.while_it_runs(launcher, "exec sleep " + SLEEP, lambda: self.cluster.crash("n2"), support.LIMIT, nodes=3)
                finally:
                    self.cluster.start("n2")
                self.assertEqual(status, 137, err)
                said = [line for line in err.splitlines() if line.startswith("hpclaunch: ") and "site" not in line and "--profile" not in line]
                self.assertEqual(said[0], "hpclaunch: node n2 failed first: its connection ended, with ranks 2-3 on n2 running")
                self.assertEqual(err.count("failed first"), 1, err)
                self.nothing_left(but=["slurmstepd"])

    def test_the_exact_status_is_the_default(self):
        """srun's own status of a job in which it stopped ranks is 143, whatever happened before."""
        for launcher in LAUNCHERS:
            for how, status in (("kill -9 $$", 137), ("kill -SEGV $$", 139), ("kill -ABRT $$", 134), ("exit 7", 7)):
                with self.subTest(launcher + ": " + how):
                    self.ok(self.do(launcher, "--grace", "2", *self.one_ends(how)), status)
        self.nothing_left(but=["slurmstepd"])

    def test_a_log_per_rank(self):
        """The file of each rank is written on its node, under every launcher."""
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                logs = os.path.join(self.folder, launcher + "-logs")
                os.mkdir(logs, 0o777)
                os.chmod(logs, 0o777)
                done = self.ok(self.do(launcher, "--log-dir", logs, "--", "/bin/sh", "-c", "echo out $RANK; echo err >&2"))
                for rank in range(4):
                    self.assertIn("out %d\n" % rank, done.out)
                    with open("%s/rank-%d.log" % (logs, rank)) as file:
                        self.assertEqual(sorted(file), ["err\n", "out %d\n" % rank])

    def test_launcher_killed(self):
        """KILL reaches the launcher alone: its ranks, on all nodes, end all the same."""
        self.own_nodes()  # else the launcher is not among the cluster's processes
        for launcher, name in zip(LAUNCHERS, ("srun", "mpiexec", "mpirun")):
            with self.subTest(launcher):
                def kill():
                    found = [str(pid) for pid, words in self.cluster.processes().items()
                             if pid not in self.before and os.path.basename(words.split()[0]).startswith(name)]
                    self.assertTrue(found)
                    self.cluster.run("login", ["kill", "-9", *found])  # srun's second process may have ended with the first
                status, err = self.while_it_runs(launcher, "exec sleep " + SLEEP, kill, support.LIMIT)
                self.assertNotEqual(status, 0, err)
                self.nothing_left(but=["slurmstepd"])

    # ---- verify, and preflight ----

    def test_verify_says_one_line(self):
        self.own_nodes()  # by name
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                done = self.ok(self.do(launcher, command="verify"))
                self.assertEqual(done.out.strip(), "4 of 4 ranks as planned on 2 nodes", str(done))
                self.nothing_left(but=["slurmstepd"])

    def test_verify_examines_running_ranks(self):
        """The program is stopped when all ranks have reported, without a word of the launcher that looks like a failure of ours."""
        self.own_nodes()  # by name
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                done = self.ok(self.do(launcher, "--after", "2", "--", "/bin/sleep", SLEEP, command="verify"))
                self.assertEqual(done.out.splitlines(), ["4 of 4 ranks as planned on 2 nodes", "4 threads of 4 processes examined after 2 s"], str(done))
                self.nothing_left(but=["slurmstepd"])

    def test_verify_finds_what_a_running_rank_undoes(self):
        self.own_nodes()  # by name
        if len(engines.ALLOWED) < 2:
            return
        script = "[ $RANK = 3 ] && exec taskset -c %d sleep %s; exec sleep %s" % (min(engines.ALLOWED), SLEEP, SLEEP)
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                done = self.ok(self.do(launcher, "--after", "2", "--json", "--", "/bin/sh", "-c", script, command="verify"), 1)
                found = json.loads(done.out)["differences"]
                self.assertEqual([(one["kind"], one["ranks"]) for one in found], [("thread-cpus", [3])], str(done))
                self.assertIn('"sleep"', found[0]["found"])
                self.nothing_left(but=["slurmstepd"])

    def front(self, name, edit):
        real = engines.need(name)
        self.file("front/" + name, '#!/bin/sh\n[ "$1" = --version ] && exec %s --version\nfor word; do shift\n%s\nset -- "$@" "$word"\ndone\n'
                                   'exec %s "$@"\n' % (real, edit, real), 0o755)
        env = self.cluster.environment("login") if name == "srun" else self.cluster.pbs(2, 2)
        return dict(env, PATH=os.path.join(self.folder, "front") + ":" + env["PATH"])

    def test_verify_finds_a_wrong_mask(self):
        self.own_nodes()  # by name
        if len(engines.ALLOWED) < 2:
            return
        env = self.front("srun", "case $word in --cpu-bind=mask_cpu:*) word=--cpu-bind=mask_cpu:%s;; esac" % hex(1 << min(engines.ALLOWED)))
        done = self.ok(self.do("slurm", command="verify", env=env), 1)
        self.has(done, "2 of 4")
        self.nothing_left(but=["slurmstepd"])

    def test_verify_finds_swapped_hosts(self):
        """Ranks 0 and 1 on n2: the plan has them on n1, where all are told to meet."""
        self.own_nodes()
        env = self.front("mpiexec.hydra", 'case $word in n1:2,n2:2) word=n2:2,n1:2;; esac')
        done = self.ok(self.do("hydra", command="verify", env=env), 1)
        self.has(done, "n1", "n2")
        self.nothing_left()

    def test_verify_finds_a_wrong_environment(self):
        """Something on n2 changes a variable of the plan behind the launcher's back."""
        env = self.front("srun", "export OMP_NUM_THREADS=77")
        done = self.ok(self.do("slurm", command="verify", env=env), 1)
        self.has(done, "OMP_NUM_THREADS", "77")
        self.nothing_left(but=["slurmstepd"])

    def test_verify_finds_the_port_taken(self):
        """On n1, where rank 0 would listen; hpclaunch runs on another node."""
        self.own_nodes()
        taker = self.cluster.popen("n1", [sys.executable, "-c", "import socket, time; s = socket.create_server(('', 29555)); print('ready', flush=True); "
                                          "time.sleep(100)"], stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(taker.stdout.readline(), "ready\n")
            done = self.ok(self.do("slurm", "--master-port", "29555", command="verify"), 1)
            self.has(done, "29555", "n1")
        finally:
            os.kill(self.cluster.inner(taker), signal.SIGKILL)
            taker.communicate()
        self.nothing_left(but=["slurmstepd"])

    def test_preflight_finds_a_provider_missing_on_one_node_of_three(self):
        """On n2 another file is mounted over the distribution's libfabric: one that offers nothing."""
        self.own_nodes()
        real = os.path.realpath([line.split()[-1] for line in subprocess.run([engines.need("ldconfig"), "-p"], stdout=subprocess.PIPE, text=True).stdout.splitlines()
                                 if "libfabric.so.1 " in line][0])
        other = os.path.join(self.folder, "libfabric.so.1")
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libfabric.so.1", "-o", other, os.path.join(engines.ROOT, "tests", "probe", "fake_libfabric.c")], check=True)
        words = ["--preflight", "--set", "FI_PROVIDER=tcp", "--", "/bin/echo", "ran"]
        self.assertEqual(self.ok(self.do("slurm", *words, nodes=3)).out, "ran\n" * 6)
        self.assertEqual(self.cluster.run("n2", ["mount", "--bind", other, real]).returncode, 0)
        try:
            for launcher in ("slurm", "hydra"):
                with self.subTest(launcher):
                    done = self.ok(self.do(launcher, *words, nodes=3), 125)
                    self.has(done, "preflight-provider-missing", "n2: FI_PROVIDER=tcp: libfabric offers no provider")
                    self.assertEqual(done.out, "")
                    self.nothing_left(but=["slurmstepd"])
        finally:
            self.cluster.run("n2", ["umount", real])

    def test_verify_finds_a_program_missing_on_one_node(self):
        self.own_nodes()
        self.assertEqual(self.cluster.run("n1", ["cp", "/bin/true", "/dev/shm/only-n1"]).returncode, 0)
        done = self.ok(self.do("hydra", "--", "/dev/shm/only-n1", command="verify"), 1)
        self.has(done, "n2", "/dev/shm/only-n1")
        self.nothing_left()


if __name__ == "__main__":
    engines.main()
