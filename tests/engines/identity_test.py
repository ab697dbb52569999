#!/usr/bin/python3
"""A rank has one identity on several nodes: real Slurm, Hydra and Open MPI, in a Slurm job and out of it."""
import json
import os
import sys

import engines
from engines import support

sys.path.insert(0, os.path.join(os.path.dirname(engines.HERE), "cli"))
import identity_test as one_node  # noqa: E402

NODES, PER_NODE = 2, 2


class Identity(engines.Test):
    nodes = NODES

    def check(self, start, *words):
        folder = os.path.join(self.folder, "ranks-%d" % len(os.listdir(self.folder)))
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        done = start("run", *words, "--", sys.executable, one_node.CHOOSER, folder)
        self.ok(done)
        ranks = PER_NODE * (1 if "local" in words else NODES)
        self.assertEqual(one_node.wrong(folder, ranks), "", str(done))

    def test_in_a_slurm_job(self):
        for launcher in ("slurm", "hydra", "openmpi"):
            with self.subTest(launcher):
                self.own_nodes(launcher)
                self.check(lambda *words: self.allocation(NODES, *words), "--launcher", launcher, "--ppn", str(PER_NODE), "--oversubscribe", *self.meeting())
        with self.subTest("local"):
            self.check(lambda *words: self.allocation(1, *words), "--launcher", "local", "-n", str(PER_NODE), "--oversubscribe")

    def test_batch_script_on_one_node(self):
        """The ranks are hpclaunch's own, in the batch step of a job that has a task of its own."""
        folder = os.path.join(self.folder, "batch")
        os.mkdir(folder)
        script = self.file("job.sh", "#!/bin/sh\nexec '%s' run -n %d --oversubscribe -- '%s' '%s' '%s'\n" % (
            support.HPCLAUNCH, PER_NODE, sys.executable, one_node.CHOOSER, folder), 0o755)
        done = self.cluster.run("login", ["sbatch", "--wait", "-N", "1", "-n", "1", "--exclusive", "-o", os.path.join(self.folder, "out"), script])
        with open(os.path.join(self.folder, "out")) as out:
            self.assertEqual(done.returncode, 0, done.stderr + out.read())
        self.assertEqual(one_node.wrong(folder, PER_NODE), "")

    def test_more_ranks_than_cpus(self):
        many = str(NODES * (len(engines.ALLOWED) + 1))
        self.ok(self.allocation(NODES, "run", "--launcher", "slurm", "-n", many, "--oversubscribe", *self.meeting(), "--", "/bin/true"))

    def test_uneven_ranks_say_nothing(self):
        done = self.ok(self.allocation(NODES, "run", "--launcher", "slurm", "-n", "3", "--oversubscribe", *self.meeting(), "--", "/bin/true"))
        self.assertNotIn("can't honor", done.err)


class Masks(engines.Test):
    """Slurm takes masks away from the ranks of a node with several, where --gpu-bind=none has each open every device."""
    nodes, shape = NODES, "gpu"

    def test_the_plans_masks_reach_every_rank(self):
        node = self.json("topo", "--topology", support.machine("devices/xeon-h100-switches.xml"))
        node["devices"], node["links"] = node["devices"][:4], []
        topology = self.file("node.json", json.dumps(node))
        rank = self.file("rank.sh", "#!/bin/sh\necho rank $RANK: ${CUDA_VISIBLE_DEVICES-none}\n", 0o755)
        words = [support.HPCLAUNCH, "run", "--launcher", "slurm", "--profile", "none", "--force", "--topology", topology, *self.meeting()]
        script = self.file("job.sh", "#!/bin/sh\nexec \"$@\"\n", 0o755)
        for start in (["salloc"], ["sbatch", "--wait", "-o", os.path.join(self.folder, "out"), script]):
            for options, want in ((["-n", "3"], ["rank 0: 0,1", "rank 1: 0,1", "rank 2: 0,1"]),
                                  (["-n", "4", "--gpu-view", "own"], ["rank 0: 0", "rank 1: 1", "rank 2: 0", "rank 3: 1"]),
                                  (["-n", "3", "--devices-per-rank", "0"], ["rank 0:", "rank 1:", "rank 2:"]),
                                  (["--agent"], ["rank : 0,1"] * 2)):
                bind = [] if "--agent" in options else ["--bind-via", "none"]
                with self.subTest(start=start[0], options=options):
                    done = self.cluster.run("login", [*start[:1], "-N", str(NODES), "-c", "16", "--gpus-per-node=2", *start[1:], *words, *bind, *options, "--", rank])
                    with open(os.path.join(self.folder, "out") if start[0] == "sbatch" else os.devnull) as out:
                        lines = (done.stdout + out.read()).splitlines()
                    self.assertEqual(done.returncode, 0, (done, lines))
                    self.assertEqual(sorted(line.strip() for line in lines if line.startswith("rank ")), want, (done, lines))


if __name__ == "__main__":
    engines.main()
