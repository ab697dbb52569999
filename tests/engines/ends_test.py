#!/usr/bin/python3
"""How a job ends: signals of users and batch systems, at any moment, and nodes, monitors and launchers that die, under each launcher."""
import os
import signal
import subprocess
import sys
import time

import engines
import faults_test
from engines import EXAMPLE, support, wait_until
from failures_test import ROOT_MAY, SLEEP

PYTHON = os.environ.get("HPCLAUNCH_TEST_PYTHON", "/usr/bin/python3")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ending.py")
LAUNCHERS = faults_test.LAUNCHERS
SIGNALS = ("TERM", "HUP", "QUIT", "INT")
RANKS = 4

LATE = """#!%(python)s
import os, sys, time
if "--version" in sys.argv:
    os.execv("%(real)s", sys.argv)
sys.path.insert(0, "%(support)s")
import channel
node = channel.Channel.from_environment(0)
node.begun(0, os.getpid(), "n1")
open("%(folder)s/up-0", "w").close()
while not os.path.exists("%(folder)s/go"):
    time.sleep(0.02)
node.begun(1, os.getpid(), "n1")
got = []
while True:
    what, rank, number = node.wait()
    if what == channel.RELEASE:
        break
    got.append((rank, number))
    if len(got) == 2:
        for rank in (0, 1):
            node.ended(rank, os.getpid(), signal=2, sent=2)
with open("%(folder)s/got", "w") as file:
    file.write(str(got))
"""


class Job:
    """A job that runs; its status is that of hpclaunch, whatever is around it."""

    def __init__(self, test, node, argv, env, folder):
        self.test, self.folder = test, folder
        self.silent, self.talker = os.pipe()
        around = 'sh -c \'echo $$ >"$0/pid"; exec "$@"\' "$0" "$@"; echo $? >"$0/status"'
        at = argv.index(support.HPCLAUNCH)
        argv = [*argv[:at], "/bin/sh", "-c", around, folder, *argv[at:]]
        self.process = test.cluster.popen(node, argv, env, stdin=self.silent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        os.close(self.silent)

    def pid(self):
        """Of hpclaunch, in the cluster."""
        path = os.path.join(self.folder, "pid")
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path), support.LIMIT, "hpclaunch did not start")
        with open(path) as file:
            return file.read().strip()

    def send(self, name, pid=None):
        return self.test.cluster.run("login", ["kill", "-" + name, pid or self.pid()])

    def up(self, ranks=RANKS):
        wait_until(lambda: sum(name.startswith("up-") for name in os.listdir(self.folder)) == ranks or self.process.poll() is not None,
                   support.LIMIT, "the ranks did not begin")
        self.test.assertIsNone(self.process.poll(), self.process.poll() is not None and self.process.stderr.read())
        return self

    def end(self):
        """(status, stderr)"""
        try:
            self.out, err = self.process.communicate(timeout=support.LIMIT)
        finally:
            os.close(self.talker)
            if self.process.poll() is None:
                self.process.kill()
        with open(os.path.join(self.folder, "status")) as file:
            return int(file.read()), err


class InEnds(faults_test.InJob):
    nodes = 2

    def setUp(self):
        super().setUp()
        self.folders = 0

    def fresh(self):
        self.folders += 1
        folder = os.path.join(self.folder, str(self.folders))
        os.mkdir(folder, 0o777)
        os.chmod(folder, 0o777)
        return folder

    def start(self, launcher, *words, options=(), folder=None):
        folder = folder or self.fresh()
        node, argv, env = self.in_job(launcher, *options, "--", *(word.replace("FOLDER", folder) for word in words))
        return Job(self, node, argv, env, folder)

    def program(self, launcher, what, **more):
        return self.start(launcher, PYTHON, PROGRAM, what, "FOLDER", **more)

    def all_saved(self, folder, name, words, most=1):
        """Each rank got the signal, at most so many times, and nothing else interrupted it."""
        for rank in range(RANKS):
            with open(os.path.join(folder, str(rank))) as file:
                got = file.read().split()
            self.assertEqual(set(got), {"SIG" + name}, words)
            self.assertLessEqual(len(got), most, words)
            with open(os.path.join(folder, "%d.saved" % rank)) as file:
                self.assertEqual(len(file.readlines()), 10, words)


class Signals(InEnds):
    def test_a_rank_saves_when_hpclaunch_alone_is_signalled(self):
        for launcher in LAUNCHERS:
            for name in SIGNALS:
                with self.subTest(launcher + " " + name):
                    job = self.program(launcher, "save").up()
                    job.send(name)
                    status, err = job.end()
                    self.assertEqual(status, 0, err)
                    self.all_saved(job.folder, name, err)
        self.nothing_left(but=["slurmstepd"])

    def test_status_of_a_job_that_a_signal_ends(self):
        for launcher in LAUNCHERS:
            for name in SIGNALS:
                with self.subTest(launcher + " " + name):
                    job = self.start(launcher, "/bin/sh", "-c", 'touch "$0/up-$RANK"; exec sleep ' + SLEEP, "FOLDER").up()
                    job.send(name)
                    status, err = job.end()
                    self.assertEqual(status, 128 + getattr(signal, "SIG" + name), err)
                    self.assertIn("no rank failed before", err)
        self.nothing_left(but=["slurmstepd"])

    def test_a_signal_at_any_moment(self):
        """From the first instruction of hpclaunch to its last one: the signal's status, or the job's own when it was over."""
        moments = 6
        script = 'sleep 0.5; touch "$0/over-$RANK"'
        for launcher in LAUNCHERS:
            begin = time.monotonic()
            status, err = self.start(launcher, "/bin/sh", "-c", script, "FOLDER").end()
            self.assertEqual(status, 0, err)
            whole = time.monotonic() - begin
            for i in range(moments):
                name = SIGNALS[i % len(SIGNALS)]
                with self.subTest("%s %s at %d of %d" % (launcher, name, i, moments)):
                    job = self.start(launcher, "/bin/sh", "-c", script, "FOLDER")
                    job.pid()
                    time.sleep(whole * i / moments)
                    job.send(name)
                    status, err = job.end()
                    if status != 128 + getattr(signal, "SIG" + name):
                        self.assertEqual(status, 0, err)
                        self.assertEqual(sum(one.startswith("over-") for one in os.listdir(job.folder)), RANKS, err)
        self.nothing_left(but=["slurmstepd"])


    def test_a_rank_that_begins_after_the_signal_gets_it_once(self):
        """The node is connected already; the launcher is made up, so that the order is certain."""
        self.own_nodes()
        front, folder = self.fresh(), self.fresh()
        with open(os.path.join(front, "mpiexec.hydra"), "w") as file:
            file.write(LATE % {"python": sys.executable, "real": engines.need("mpiexec.hydra"), "folder": folder,
                               "support": os.path.join(engines.ROOT, "tests", "support")})
        os.chmod(os.path.join(front, "mpiexec.hydra"), 0o755)
        node, argv, env = self.in_job("hydra", "--", "/bin/true", nodes=1)
        job = Job(self, node, argv, dict(env, PATH=front + ":" + env["PATH"]), folder).up(1)
        job.send("INT")
        for line in job.process.stderr:
            if line.startswith("hpclaunch: stopping"):
                break
        with open(os.path.join(folder, "go"), "w"):
            pass
        status, err = job.end()
        self.assertEqual(status, 130, err)
        with open(os.path.join(folder, "got")) as file:
            self.assertEqual(file.read(), "[(0, 2), (1, 2)]")


class BatchJobs(InEnds):
    """Of sbatch: Slurm itself signals all processes of a job that it ends."""

    shape = "plain"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        conf = cls.cluster.path("slurm.conf")
        with open(conf) as file:
            text = file.read()
        with open(conf, "w") as file:
            file.write(text.replace("KillWait=5", "KillWait=120"))
        assert cls.cluster.run("login", ["scontrol", "reconfigure"]).returncode == 0

    def submit(self, launcher, *limit):
        folder = self.fresh()
        # mpirun, which Slurm signals as well, would kill its ranks after a second.
        options = ["--launcher-arg=" + word for word in ("--mca", "odls_base_sigkill_timeout", "20")] if launcher == "openmpi" else []
        _, argv, _ = self.in_job(launcher, *options, "--", PYTHON, PROGRAM, "save", folder)
        words = argv[argv.index(support.HPCLAUNCH):]
        script = self.file("job.sh", "#!/bin/sh\n%s\necho status $?\n" % " ".join(words), 0o755)
        done = self.cluster.run("login", ["sbatch", "--parsable", *limit, "-N2", "--ntasks-per-node=2", "-o", folder + "/out", script],
                                env=self.cluster.environment("login", **ROOT_MAY))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip(), folder

    def read(self, folder):
        path = os.path.join(folder, "out")
        if not os.path.exists(path):  # yet
            return ""
        with open(path) as file:
            return file.read()

    def saves_when(self, act, most=1, limit=()):
        """The jobs run side by side. Slurm sends the ranks `most` signals."""
        self.own_nodes()
        jobs = {launcher: self.submit(launcher, *limit) for launcher in LAUNCHERS}
        for launcher, (job, folder) in jobs.items():
            up = lambda: sum(name.startswith("up-") for name in os.listdir(folder)) == RANKS
            wait_until(lambda: up() or "status" in self.read(folder), support.LIMIT, "the ranks did not begin")
            self.assertTrue(up(), self.read(folder))
        for job, _ in jobs.values():
            done = self.cluster.run("login", act(job))
            self.assertEqual(done.returncode, 0, done.stderr)
        for launcher, (job, folder) in jobs.items():
            with self.subTest(launcher):
                wait_until(lambda: not self.cluster.run("login", ["squeue", "-h", "-j", job]).stdout.strip(), support.LIMIT, "the job does not end")
                # A proxy of Hydra passes on what slurmstepd has sent to the ranks already.
                self.all_saved(folder, "TERM", self.read(folder), most + (launcher == "hydra"))
        self.nothing_left(but=["slurmstepd"])

    def test_scancel(self):
        self.saves_when(lambda job: ["scancel", job])

    def test_scancel_of_the_steps(self):
        self.saves_when(lambda job: ["scancel", "-s", "TERM", job])

    def test_scancel_of_the_script_and_all_below(self):
        self.saves_when(lambda job: ["scancel", "--full", "-s", "TERM", job])

    def test_time_limit(self):
        """The shortest is a minute; Slurm 22.05 sends TERM, CONT and TERM at once."""
        self.saves_when(lambda job: ["true"], 2, ["-t1"])


class Deaths(InEnds):
    def node_dies(self, launcher, silent, start, lost="4"):
        job = start(launcher)
        try:
            job.up()
            self.cluster.crash("n2", silent)
            status, err = job.end()
        finally:
            self.cluster.start("n2")
        self.assertEqual(status, 137, err)
        self.assertRegex(err, r"(?m)^hpclaunch: node n2 failed first: its connection ended, with ranks? \S+ on n2 running$")
        self.assertNotIn("hpclaunch: node n1", err)
        self.nothing_left(but=["slurmstepd"])

    def rings(self, silent):
        self.own_nodes()
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                self.node_dies(launcher, silent, lambda one: self.program(one, "ring", options=["--lost-after", "4", "--grace", "2"]))

    def test_a_node_dies_under_ranks_that_talk(self):
        self.rings(False)

    def test_a_node_falls_silent_under_ranks_that_talk(self):
        self.rings(True)

    def trainings(self, silent):
        self.own_nodes()
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                def start(one):
                    folder = self.fresh()
                    words = [PYTHON, EXAMPLE, "--device", "cpu", "--steps", "1000000", "--checkpoint", os.path.join(folder, "up-0")]
                    job = self.start(one, *words, options=["--lost-after", "4", "--grace", "2"], folder=folder)
                    wait = job.up
                    job.up = lambda: wait(1)
                    return job
                self.node_dies(launcher, silent, start)

    def test_a_node_dies_under_a_training(self):
        self.trainings(False)

    def test_a_node_falls_silent_under_a_training(self):
        self.trainings(True)

    def test_the_monitor_of_a_rank_is_killed(self):
        """And the program with it. Hydra ends the other rank of the node before its new connection tells of it."""
        script = 'touch "$0/up-$RANK"; while [ $(ls $0 | grep -c up-) -lt $WORLD_SIZE ]; do sleep 0.05; done; [ $RANK = 1 ] && kill -9 $PPID; exec sleep ' + SLEEP
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                status, err = self.start(launcher, "/bin/sh", "-c", script, "FOLDER", options=["--grace", "2"]).end()
                self.assertEqual(status, 137, err)
                self.assertRegex(err, r"(?m)^hpclaunch: (rank 1|ranks 0-1) on \S+ failed first: killed, with the monitor beside it$")
        self.nothing_left(but=["slurmstepd"])

    def sleepers(self, launcher):
        return self.start(launcher, "/bin/sh", "-c", 'touch "$0/up-$RANK"; exec sleep ' + SLEEP, "FOLDER", options=["--grace", "2"]).up()

    def test_hpclaunch_is_killed(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                job = self.sleepers(launcher)
                job.send("KILL")
                status, err = job.end()
                self.assertEqual(status, 137, err)
                self.nothing_left(but=["slurmstepd"])

    def test_the_launcher_is_killed(self):
        """It is named; no node is, whose connections end because of it."""
        self.own_nodes()  # else the launcher is not among the cluster's processes
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                job = self.sleepers(launcher)
                children = self.cluster.run("login", ["pgrep", "-P", job.pid()]).stdout.split()
                self.assertEqual(len(children), 1)
                job.send("KILL", children[0])
                status, err = job.end()
                self.assertEqual(status, 137, err)
                self.assertIn("was stopped by SIGKILL (signal 9)", err)
                self.assertNotIn("failed first", err)
                self.nothing_left(but=["slurmstepd"])


class Firewall(InEnds):
    """n2 reaches all that the launcher needs, and not the port of hpclaunch."""

    def test_packets_are_dropped(self):
        self.own_nodes()
        for launcher, name in zip(LAUNCHERS, ("srun", "mpiexec.hydra", "mpirun")):
            with self.subTest(launcher):
                for number, end in (("0", 0), ("7", 7)):
                    status, err = self.behind_firewall(launcher, name, 'sleep 0.5; exit ' + number)
                    self.assertEqual(status, end, err)
                    self.assertRegex(err, r"(?m)^hpclaunch: no connection from ranks 2-3 on n2: not started, or connections to \S+ port \d+ are refused or dropped$")
        self.nothing_left(but=["slurmstepd"])

    def behind_firewall(self, launcher, name, script):
        """Between hpclaunch and the launcher: then the port is known."""
        real, front = engines.need(name), self.fresh()
        with open(os.path.join(front, name), "w") as file:
            file.write('#!/bin/sh\n[ "$1" = --version ] && exec %s --version\nip=%s\nport=$(echo "$HPCLAUNCH_CHANNEL" | cut -d. -f4)\n'
                       'nsenter -t %d -n "$ip" rule add pref 77 dport $(printf %%d 0x$port) ipproto tcp blackhole || exit 99\nexec %s "$@"\n'
                       % (real, engines.need("ip"), self.cluster.state.pid("n2"), real))
        os.chmod(os.path.join(front, name), 0o755)
        node, argv, env = self.in_job(launcher, "--", "/bin/sh", "-c", script)
        env = dict(env, PATH=front + ":" + env["PATH"])
        job = Job(self, node, argv, env, self.fresh())
        try:
            return job.end()
        finally:
            self.cluster.run("n2", ["ip", "rule", "del", "pref", "77"])


if __name__ == "__main__":
    engines.main()
