#!/usr/bin/python3
"""Faults planted under real launchers, each detected and named by what runs without supervision; nothing is left behind."""
import os
import re
import signal
import subprocess
import sys
import time

import engines
from engines import support, wait_until

ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SLEEP = "987"
# Rank 1 ends as told after all have begun; the others would sleep.
ALL_BEGIN = "touch $0/up-$RANK; while [ $(ls $0 | wc -l) -lt $WORLD_SIZE ]; do sleep 0.05; done; "
ONE_ENDS = ALL_BEGIN + "[ $RANK = 1 ] && { %s; }; exec sleep " + SLEEP


class Failures(engines.Test):
    nodes = 2

    def words(self, launcher, *more):
        self.own_nodes(launcher)
        alone = [] if "--report" in more else ["--no-supervise"]
        return ["run", *alone, "--launcher", launcher, "--ppn", "2", "--oversubscribe", *self.meeting(), *more]

    def one_ends(self, how):
        folder = os.path.join(self.folder, "up")
        os.makedirs(folder)
        return ["--", "/bin/sh", "-c", ONE_ENDS % how, folder]

    def slurm(self, *words, **more):
        return self.allocation(2, *self.words("slurm", *words), **more)

    def openmpi(self, *words, **more):
        return self.on("n1", *self.words("openmpi", *words), env=self.cluster.pbs(2, 2, **ROOT_MAY), **more)

    def hydra(self, *words, **more):
        return self.on("n1", *self.words("hydra", *words), env=self.cluster.pbs(2, 2), **more)

    # ---- leftovers ----

    def test_leftovers_of_the_launchers_own(self):
        """Each of these alone moves ranks, hides how they end, keeps the plan from them or stops the launcher."""
        self.file("hosts", "n2\nn2\nn1\nn1\n")
        script = ["--", "/bin/sh", "-c", 'sleep 0.2; echo "$RANK $NODE_RANK $(hostname)"']
        on = "n%d" if self.cluster.spaces else support.HOST + "%.0s"
        want = sorted("%d %d %s" % (rank, rank // 2, on % (rank // 2 + 1)) for rank in range(4))
        slurm = {"SLURM_HOSTFILE": self.folder + "/hosts", "SLURM_STDERRMODE": self.folder + "/err", "SLURM_STDOUTMODE": self.folder + "/out",
                 "SLURM_SRUN_MULTI": "1", "SLURM_EXCLUSIVE": "1"}
        openmpi = {"OMPI_MCA_mca_base_env_list": "A=1", "OMPI_MCA_orte_rankfile": "/nonexistent", "OMPI_MCA_hwloc_base_slot_list": "0"}
        cases = [("slurm", *one) for one in slurm.items()] + [("openmpi", *one) for one in openmpi.items()]
        for launcher, name, value in cases + [("hydra", "HYDRA_ENV", "none")]:
            with self.subTest(name):
                words = self.words(launcher, "--report", self.folder + "/report", *script)
                argv = ["env", name + "=" + value, support.HPCLAUNCH, *words]
                if launcher == "slurm":
                    done = self.cluster.run("login", [*self.salloc(2), *argv])
                else:
                    done = self.cluster.run("n1", argv, env=self.cluster.pbs(2, 2, **ROOT_MAY))
                self.assertEqual((done.returncode, sorted(done.stdout.split("\n"))[1:]), (0, want), done.stderr)
        self.nothing_left()

    def test_a_plan_that_one_node_misses_is_said(self):
        """Rank 0 has it there and cannot say it: the first rank of the other node does."""
        self.own_nodes()
        done = self.hydra("--force", "--launcher-arg=-genvlist", "--launcher-arg=HOME", "--", "/bin/sleep", "0.3")
        self.ok(done, 125)
        self.assertEqual(done.err.count("HPCLAUNCH_PLAN is not set: the launcher did not pass it on"), 1, done.err)

    def test_standard_input_goes_to_rank_0_under_srun(self):
        """More than fits into the pipes of ranks that do not read it: srun would wait for these."""
        big = self.file("big", "x" * 8_000_000)
        script = 'if [ $RANK = 0 ]; then wc -c; else exec sleep 1; fi'
        words = [*self.salloc(2), support.HPCLAUNCH, *self.words("slurm", "--", "/bin/sh", "-c", script)]
        done = self.cluster.run("login", ["/bin/sh", "-c", '"$@" < ' + big, "sh", *words], timeout=support.LIMIT)
        self.assertEqual((done.returncode, done.stdout.split()), (0, ["8000000"]), done.stderr)

    def test_hydra_in_a_slurm_job_has_the_order_of_srun(self):
        self.own_nodes()
        reversed_hosts = ["--hostfile", self.file("reversed", "n2\nn1\n")]
        script = ["--", "/bin/sh", "-c", 'sleep 0.2; echo "$RANK $(hostname)"']
        done = self.allocation(2, *self.words("hydra", *reversed_hosts, *script))
        self.ok(done, 125)
        self.assertIn("would put n1 before n2", done.err)
        by_ssh = ["--launcher-arg=-launcher", "--launcher-arg=ssh"]
        done = self.ok(self.allocation(2, *self.words("hydra", *reversed_hosts, *by_ssh, *script)))
        self.assertEqual(sorted(done.out.splitlines()), ["0 n2", "1 n2", "2 n1", "3 n1"])

    # ---- binding ----

    def standin(self, name, edit):
        """A launcher of this name in front of the real one that changes the command line on its way."""
        real = engines.need(name)
        self.file("front/" + name, '#!/bin/sh\n[ "$1" = --version ] && exec %s --version\nfor word; do shift\n%s\nset -- "$@" "$word"\ndone\n'
                                   'exec %s "$@"\n' % (real, edit, real), 0o755)
        return os.path.join(self.folder, "front")

    def test_wrong_mask(self):
        """Everybody gets the first CPU: the shim finds it at each rank that should have another one, and mends it."""
        self.own_nodes()
        cpu = sorted(engines.ALLOWED)
        if len(cpu) < 2:
            cpu = cpu * 2
        front = self.standin("srun", 'case $word in --cpu-bind=mask_cpu:*) word=--cpu-bind=mask_cpu:%s;; esac' % hex(1 << cpu[0]))
        env = self.cluster.environment("login")
        env["PATH"] = front + ":" + env["PATH"]
        done = self.ok(self.slurm("--", "/bin/true", env=env))
        wrong = re.findall(r"hpclaunch: rank (\d) on (n\d): the launcher bound CPUs \S+, planned (\S+); rebound", done.err)
        self.assertEqual(sorted(wrong), [("1", "n1", str(cpu[1])), ("3", "n2", str(cpu[1]))] if cpu[0] != cpu[1] else [], str(done))
        strict = self.slurm("--verify", "strict", "--", "/bin/true", env=env)
        self.ok(strict, 125 if cpu[0] != cpu[1] else 0)
        self.nothing_left()

    def test_short_list(self):
        """srun takes a short list from its beginning again; Hydra ignores it. Either way a rank says what it got."""
        self.own_nodes()
        cpus = sorted(engines.ALLOWED)
        if len(cpus) < 2:
            return
        front = self.standin("srun", 'case $word in --cpu-bind=mask_cpu:*) word=${word%,*};; esac')
        env = self.cluster.environment("login")
        env["PATH"] = front + ":" + env["PATH"]
        done = self.ok(self.slurm("--", "/bin/true", env=env))
        self.assertEqual(len(re.findall(r"hpclaunch: rank [13] on n[12]: the launcher bound", done.err)), 2, str(done))
        front = self.standin("mpiexec.hydra", 'case $word in user:*) word=${word%,*};; esac')
        done = self.ok(self.on("n1", "run", "--launcher", front + "/mpiexec.hydra", "--bind-via", "launcher", "--ppn", "2", *self.meeting(), "--", "/bin/true",
                               env=self.cluster.pbs(2, 2)))
        self.assertTrue(re.search(r"hpclaunch: rank [13] on n[12]: the launcher bound", done.err), str(done))
        self.nothing_left()

    # ---- programs and ranks ----

    def test_program_missing_on_one_node(self):
        """A folder that only n1 has."""
        self.own_nodes()
        only = self.cluster.run("n1", ["sh", "-c", "cp /bin/true /dev/shm/only-here"])
        self.assertEqual(only.returncode, 0)
        for name, done in (("slurm", self.slurm), ("openmpi", self.openmpi), ("hydra", self.hydra)):
            with self.subTest(name):
                words = ["--", "/dev/shm/only-here"]
                if name == "slurm":  # srun begins on a node that has it, as a batch script does
                    argv = [*self.salloc(2), "sh", "-c", 'exec ssh n1 env SLURM_CONF="$SLURM_CONF" '
                            '$(env | grep ^SLURM_ | grep -v "[ ()]" | tr "\\n" " ") PATH="$PATH" ' + " ".join([support.HPCLAUNCH, *self.words("slurm"), *words])]
                    ran = self.cluster.run("login", argv)
                    result = support.Done(ran.returncode, ran.stdout.encode(), ran.stderr.encode())
                else:
                    result = done(*words)
                # srun gives the highest status, that of the ranks which it killed.
                self.assertIn(result.status, (127, 137, 143) if name == "slurm" else (127,), str(result))
                self.has(result, "on n2: /dev/shm/only-here: no such file")
                self.assertNotIn("on n1: /dev/shm", result.err)
                self.nothing_left()

    def test_a_rank_exits_with_7(self):
        done = self.slurm(*self.one_ends("exit 7"))
        self.has(done, "task 1: Exited with exit code 7")  # srun itself ends with the highest status, that of the killed
        self.assertIn(done.status, (7, 137, 143), str(done))
        self.nothing_left(but=["slurmstepd"])

    def test_a_rank_exits_with_7_under_open_mpi(self):
        self.ok(self.openmpi(*self.one_ends("exit 7")), 7)
        self.nothing_left()

    def test_a_rank_is_killed(self):
        done = self.slurm(*self.one_ends("kill -9 $$"))
        self.has(done, "task 1: Killed")
        self.assertGreater(done.status, 128, str(done))
        self.nothing_left(but=["slurmstepd"])

    def test_a_rank_is_killed_under_open_mpi(self):
        done = self.ok(self.openmpi(*self.one_ends("kill -9 $$")), 128 + 9)
        self.has(done, "exited on signal 9")
        self.nothing_left()

    # ---- launchers and nodes ----

    def started(self, node, argv, env=None, ranks=4):
        """A job whose ranks sleep; (process, folder). It has begun everywhere when this returns."""
        folder = os.path.join(self.folder, "begun")
        os.makedirs(folder)
        argv = argv + ["--", "/bin/sh", "-c", "touch $0/$RANK; exec sleep " + SLEEP, folder]
        silent, talker = os.pipe()
        self.addCleanup(os.close, talker)
        process = self.cluster.popen(node, argv, env, stdin=silent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     start_new_session=True)
        os.close(silent)
        self.addCleanup(process.kill)
        wait_until(lambda: len(os.listdir(folder)) == ranks or process.poll() is not None, 60, "the ranks did not begin")
        self.assertIsNone(process.poll())
        return process

    def launcher_killed(self, node, words, env, number):
        process = self.started(node, [support.HPCLAUNCH, *words], env)
        os.kill(self.cluster.inner(process), number)
        out, err = process.communicate(timeout=support.LIMIT)
        self.assertNotEqual(process.returncode, 0, out + err)
        self.nothing_left()

    def test_the_launcher_is_killed_slurm(self):
        """srun in an allocation of its own: killed, its ranks go as well."""
        words = ["run", "--no-supervise", "--launcher", "slurm", "--hostfile", self.file("hosts", "n1\nn2\n"), "--ppn", "2", "--oversubscribe", "--bind-via", "shim",
                 "--launcher-arg=--exclusive", "--launcher-arg=--overcommit", *self.meeting()]
        self.launcher_killed("login", words, None, signal.SIGKILL)

    def test_the_launcher_is_killed_hydra(self):
        self.launcher_killed("n1", self.words("hydra"), self.cluster.pbs(2, 2), signal.SIGKILL)

    def test_the_launcher_is_killed_open_mpi(self):
        """By TERM: after KILL, mpirun's own ranks go on (faults_test.py has that, under --supervise)."""
        self.launcher_killed("n1", self.words("openmpi"), self.cluster.pbs(2, 2, **ROOT_MAY), signal.SIGTERM)

    def test_a_node_dies_under_slurm(self):
        self.own_nodes()
        process = self.started("login", [*self.salloc(2), support.HPCLAUNCH, *self.words("slurm")])
        self.cluster.crash("n2")
        out, err = process.communicate(timeout=support.LIMIT)
        self.cluster.start("n2")
        self.assertNotEqual(process.returncode, 0, err)
        self.assertIn("n2", err)
        self.nothing_left()

    def test_a_node_dies_under_hydra_and_open_mpi(self):
        """The node resets its connections, as one that panics and boots again."""
        self.own_nodes()
        for launcher in ("hydra", "openmpi"):
            with self.subTest(launcher):
                begun = os.path.join(self.folder, "begun")
                if os.path.isdir(begun):
                    os.rename(begun, begun + "-before")
                process = self.started("n1", [support.HPCLAUNCH, *self.words(launcher)], self.cluster.pbs(2, 2, **ROOT_MAY))
                self.cluster.crash("n2")
                out, err = process.communicate(timeout=support.LIMIT)
                self.cluster.start("n2")
                self.assertNotEqual(process.returncode, 0, err)
                self.nothing_left()


if __name__ == "__main__":
    engines.main()
