#!/usr/bin/python3
"""--max-restarts on virtual nodes: planted faults and killed ranks in a job with checkpoints, and in a real PyTorch training."""
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor

import engines
from engines import EXAMPLE, support, wait_until

PYTHON = os.environ.get("HPCLAUNCH_TEST_PYTHON", "/usr/bin/python3")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpointing.py")
RANKS, STEPS = 4, 6
HOWS = ["exit=1", "exit=17", "raise", "KILL", "SEGV", "ABRT", "early"]


def fault_free(steps, ranks):
    total = 0
    for step in range(steps):
        total = (total * 31 + sum((step + 1) * (rank + 7) for rank in range(ranks))) % 1000003
    return total


class Restart(engines.Test):
    nodes = 2

    def start(self, launcher, restarts, folder, fault, then=lambda: None):
        """The job under a launcher; `then` runs beside it."""
        os.makedirs(folder)
        os.chmod(folder, 0o777)
        words = ["run", "--launcher", launcher, "--ppn", str(RANKS // 2), "--oversubscribe", "--max-restarts", str(restarts), "--grace", "5",
                 "--report", os.path.join(folder, "report"), *self.meeting(), "--", PYTHON, PROGRAM, folder, str(STEPS), fault]
        with ThreadPoolExecutor(1) as beside:
            ended = beside.submit(then)
            done = self.allocation(2, *words) if launcher == "slurm" else self.on("n1", *words, env=self.cluster.pbs(2, 2))
            ended.result()
        return done

    def judge(self, done, folder, attempts):
        """It ended well after so many attempts, with the result of a job without faults."""
        self.assertEqual(done.status, 0, str(done))
        with open(os.path.join(folder, "result")) as file:
            self.assertEqual(file.read(), "%d %d" % (attempts - 1, fault_free(STEPS, RANKS)), str(done))
        with open(os.path.join(folder, "report")) as file:
            report = json.load(file)
        self.assertEqual([one["status"] == 0 for one in report["attempts"]], [False] * (attempts - 1) + [True], str(done))
        ports = re.findall(r"restart (\d+) of", done.err)
        self.assertEqual(ports, [str(n) for n in range(1, attempts)], str(done))
        return report

    def test_planted_faults(self):
        """20 faults, each in one of the ranks and steps, in one or two attempts, under Slurm and Hydra by turns."""
        for number in range(20):
            how, rank, step, times = HOWS[number % len(HOWS)], number % RANKS, number % STEPS, 1 + number % 2
            fault = "%d:%d:%s:%d" % (rank, step, how, times)
            launcher = ("slurm", "hydra")[number // 2 % 2]
            with self.subTest(fault=fault, launcher=launcher):
                folder = os.path.join(self.folder, str(number))
                done = self.start(launcher, 2, folder, fault)
                report = self.judge(done, folder, times + 1)
                for attempt in report["attempts"][:times]:
                    if how != "early":  # then those fail that need it
                        self.assertEqual(attempt["first_failure"]["rank"], rank, str(done))
                named = "rank %d ended in the same way as before" % rank in done.err
                if how != "early":
                    self.assertEqual(named, times == 2, str(done))
        self.nothing_left()

    def test_killed_ranks(self):
        """10 ranks killed from outside while they wait; each job ends well after one restart."""
        for number in range(10):
            rank, launcher = number % RANKS, ("hydra", "slurm")[number % 2]
            with self.subTest(rank=rank, launcher=launcher):
                folder = os.path.join(self.folder, "k%d" % number)

                def kill(rank=rank, folder=folder):
                    pids = [os.path.join(folder, "pid-%d-0" % each) for each in range(RANKS)]
                    wait_until(lambda: all(os.path.exists(pid) and os.path.getsize(pid) for pid in pids), 60, "ranks did not start")
                    wait_until(lambda: os.path.exists(os.path.join(folder, "checkpoint")), 60, "no step was made")
                    with open(pids[rank]) as file:
                        self.cluster.run(self.cluster.names[rank // 2], ["/bin/kill", "-KILL", file.read()])

                done = self.start(launcher, 1, folder, "%d:2:wait:1" % ((rank + 1) % RANKS), kill)
                report = self.judge(done, folder, 2)
                self.assertEqual([report["attempts"][0]["first_failure"][key] for key in ("rank", "signal")], [rank, "SIGKILL"], str(done))
        self.nothing_left()

    def test_a_fault_of_the_program(self):
        """It is named, and there are never more than N restarts."""
        folder = os.path.join(self.folder, "always")
        done = self.start("slurm", 2, folder, "1:0:raise:99")
        self.assertEqual(done.status, 1, str(done))
        self.assertRegex(done.err, r"rank 1 ended in the same way as before \(rank 1 on \S+: exit status 1, \S*checkpointing.py:\d+ in \S+, \w+\): likely a fault of the program")
        with open(os.path.join(folder, "report")) as file:
            self.assertEqual([one["status"] for one in json.load(file)["attempts"]], [1, 1, 1])
        self.nothing_left()

    def test_training(self):
        """Real PyTorch: the losses of a training that lost a rank are those of one that did not."""
        ends = []
        for faults in ([], ["--fail-rank", "1", "--fail-at", "3", "--fail-how", "segv", "--fail-attempts", "1"]):
            folder = os.path.join(self.folder, "ddp%d" % len(ends))
            os.makedirs(folder)
            words = ["run", "--launcher", "slurm", "--ppn", "1", "--oversubscribe", "--max-restarts", "1", *self.meeting(), "--", PYTHON, EXAMPLE, "--device", "cpu",
                     "--steps", "6", "--checkpoint", os.path.join(folder, "state"), *faults]
            done = self.allocation(2, *words)
            self.ok(done)
            ends.append(re.search(r"(?m)^done: 6 steps on 2 ranks .* (loss [\d.]+ -> [\d.]+, models equal)$", done.out)[1])
            self.assertEqual("continues after step 2" in done.out, bool(faults), str(done))
            self.assertEqual("restart 1 of 1, after rank" in done.err, bool(faults), str(done))
        self.assertEqual(ends[0], ends[1])
        self.nothing_left()


class Spares(Restart):
    """A node that is lost is never used again. Rank 3 is on n2."""

    nodes = 3
    test_planted_faults = test_killed_ranks = test_a_fault_of_the_program = test_training = None

    def lose(self, launcher, silent, *more):
        self.own_nodes()
        folder = os.path.join(self.folder, "%s-%d%s" % (launcher, silent, "-".join(more)))
        os.makedirs(folder)
        os.chmod(folder, 0o777)
        words = ["run", "--launcher", launcher, "--ppn", str(RANKS // 2), "--oversubscribe", "--max-restarts", "2", "--grace", "3", "--lost-after", "4",
                 "--report", os.path.join(folder, "report"), *more, "--", PYTHON, PROGRAM, folder, str(STEPS), "%d:2:wait:1" % (RANKS - 1)]

        def crash():
            wait_until(lambda: os.path.exists(os.path.join(folder, "checkpoint")), 60, "no step was made")
            self.cluster.crash("n2", silent)

        with ThreadPoolExecutor(1) as beside:
            crashed = beside.submit(crash)
            try:
                if launcher == "slurm":
                    argv = ["salloc", "-Q", "--no-kill", "-N", "3", "--exclusive", "--overcommit", support.HPCLAUNCH, *words]
                    done = self.cluster.run("login", argv)
                else:
                    done = self.cluster.run("n1", [support.HPCLAUNCH, *words], env=self.cluster.pbs(3, 2))
                crashed.result()
            finally:
                self.cluster.start("n2")
        done = support.Done(done.returncode, done.stdout.encode(errors="surrogateescape"), done.stderr.encode(errors="surrogateescape"))
        self.nothing_left(but=["slurmstepd"])
        return done, folder

    def test_a_spare_takes_its_place(self):
        for launcher, silent in (("hydra", False), ("hydra", True), ("slurm", False)):
            with self.subTest(launcher=launcher, silent=silent):
                done, folder = self.lose(launcher, silent, "--spares", "1")
                report = self.judge(done, folder, 2)
                self.assertIn("hpclaunch: n3 takes the place of n2, whose connection ended\nhpclaunch: restart 1 of 2, after lost node n2\n", done.err)
                self.assertEqual(report["hosts"], ["n1", "n3"])

    def test_without_a_spare(self):
        done, _ = self.lose("hydra", True, "--nodes", "2")
        self.assertEqual(done.status, 137, str(done))
        self.assertIn("hpclaunch: no restart: n2 was lost, and there is no spare node\n", done.err)

    def test_fewer_nodes(self):
        """The result is that of another number of ranks; that there is one, and where, counts."""
        done, folder = self.lose("hydra", True, "--nodes", "1:3")
        self.assertEqual(done.status, 0, str(done))
        self.assertIn("hpclaunch: continuing with 2 nodes, without n2, whose connection ended\n", done.err)
        self.assertTrue(os.path.exists(os.path.join(folder, "result")))


if __name__ == "__main__":
    engines.main()
