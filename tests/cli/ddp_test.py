#!/usr/bin/env python3
"""Real PyTorch, really distributed: examples/train_ddp.py under the local launcher and under Hydra."""
import os
import re

import fakes
import support
from support import ROOT, Test, cpu_list, execute, hpclaunch, need

EXAMPLE = os.path.join(ROOT, "examples", "train_ddp.py")

support.idle_stdin()


class Training(Test):
    @classmethod
    def setUpClass(cls):
        cls.python = fakes.python_with_torch()

    def start(self, n, launcher, *words):
        if launcher == "hydra":
            need("mpiexec.hydra")
        return hpclaunch("run", "-n", str(n), "--oversubscribe", "--grace", "10", "--launcher", launcher, "--", self.python, EXAMPLE,
                         "--device", "cpu", "--steps", "12", *words)

    def trained(self, n, launcher):
        plan = self.json("plan", "-n", str(n), "--oversubscribe", "--launcher", launcher)
        done = self.ok(self.start(n, launcher))
        ranks = {int(m[1]): m for m in re.finditer(r"(?m)^rank (\d+)/(\d+)  local (\d+)  (\S+)  pid (\d+)  cpus (\S+)  threads (\d+)", done.out)}
        self.assertEqual(sorted(ranks), list(range(n)), str(done))
        self.assertEqual(len({m[5] for m in ranks.values()}), n)
        for rank, match in ranks.items():
            mine = plan["classes"][0]["ranks"][rank]
            self.assertEqual([match[2], match[3], match[4]], [str(n), str(rank), support.HOST])
            self.assertEqual(cpu_list(match[6]), cpu_list(mine["cpus"]))
            self.assertEqual(int(match[7]), mine["cores"])
        end = re.search(r"(?m)^done: 12 steps on %d ranks .* loss ([\d.]+) -> ([\d.]+), models equal$" % n, done.out)
        self.assertTrue(end, str(done))
        self.assertLess(float(end[2]), float(end[1]))
        return end.groups()

    def test_two_ranks_give_the_same_numbers_everywhere(self):
        self.assertEqual(self.trained(2, "local"), self.trained(2, "hydra"))

    def test_started_by_others(self):
        """`bind` under torchrun, mpiexec and a loop, each with its own way to say who is who: what run trains."""
        bind = [support.HPCLAUNCH, "bind", "--"]
        program = [self.python, EXAMPLE, "--device", "cpu", "--steps", "12"]
        place = [support.HPCLAUNCH, "bind", "--local-size", "2", "--local-rank"]
        lines = {"torchrun": [self.python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-r", "1", "-t", "1", "--log_dir", self.folder + "/logs",
                              "--no_python", *bind, *program],
                 "mpiexec": [need("mpiexec.hydra"), "-n", "2", "-bind-to", "none", *bind, *program],
                 "loop": ["sh", "-c", 'for r in 0 1; do %s $r -- "$@" & done; wait' % " ".join(place), "-", *program]}
        found = {"run": self.trained(2, "local")}
        for name, line in lines.items():
            done = self.ok(execute(line))
            end = re.search(r"(?m)^(?:\[default0\]:)?done: 12 steps on 2 ranks .* loss ([\d.]+) -> ([\d.]+), models equal$", done.out)
            self.assertTrue(end, str(done))
            found[name] = end.groups()
        self.assertEqual(set(found.values()), {found["run"]})

    def test_four_ranks_local(self):
        self.trained(4, "local")

    def test_four_ranks_hydra(self):
        self.trained(4, "hydra")

    def test_through_torchrun(self):
        """Also with what an outer torchrun left: with an agent's store no rank would open one."""
        env = support.clean_env(PYTHON_EXEC=self.python, TORCHELASTIC_USE_AGENT_STORE="True", RANK="7", MASTER_PORT="1")
        done = self.ok(hpclaunch("torchrun", "--standalone", "--nproc_per_node=2", EXAMPLE, "--device", "cpu", "--steps", "4", env=env))
        self.assertEqual(sorted(re.findall(r"(?m)^rank (\d)/2  local (\d)", done.out)), [("0", "0"), ("1", "1")])
        self.assertIn("models equal", done.out)

    def test_two_pretend_nodes(self):
        need("mpiexec.hydra")
        hosts = self.file("hosts", "nodeA\nnodeB\n")
        done = self.ok(hpclaunch("run", "-n", "3", "--oversubscribe", "--hostfile", hosts, "--launcher-arg=-launcher", "--launcher-arg=fork",
                                 "--master-addr", "127.0.0.1", "--force", "--", self.python, EXAMPLE, "--device", "cpu", "--steps", "4"))
        self.assertEqual(sorted(re.findall(r"(?m)^rank (\d)/3  local (\d)", done.out)), [("0", "0"), ("1", "1"), ("2", "0")])
        self.assertIn("models equal", done.out)

    def test_a_rank_that_exits(self):
        done = self.start(2, "local", "--fail-rank", "1", "--fail-how", "exit")
        self.ok(done, 17)
        self.has(done, "hpclaunch: rank 1 failed first: host " + support.HOST, "exit status 17", "rank 1 fails now")

    def test_a_rank_that_raises(self):
        done = self.start(2, "local", "--fail-rank", "0", "--fail-how", "raise")
        self.ok(done, 1)
        self.has(done, "hpclaunch: rank 0 failed first", "RuntimeError: asked to fail")

    def test_a_rank_that_crashes(self):
        done = self.start(4, "local", "--fail-rank", "2", "--fail-how", "segv")
        self.ok(done, 128 + 11)
        self.has(done, "hpclaunch: rank 2 failed first", "SIGSEGV")

    def test_a_rank_that_exits_under_hydra(self):
        done = self.start(2, "hydra", "--fail-rank", "1", "--fail-how", "exit")
        self.ok(done, 17)
        self.has(done, "rank 1 fails now")


if __name__ == "__main__":
    support.main()
