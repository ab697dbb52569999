#!/usr/bin/python3
"""A real PyTorch training (examples/train_ddp.py, gloo) over two virtual nodes, under each launcher and allocation."""
import os
import re
import subprocess

import engines
from engines import EXAMPLE, cpu_list, support

ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PYTHON = os.environ.get("HPCLAUNCH_TEST_PYTHON", "/usr/bin/python3")
RANK = r"(?m)^rank (\d+)/(\d+)  local (\d+)  (\S+)  pid (\d+)  cpus (\S+)  threads (\d+)"


class Training(engines.Test):
    nodes = 2
    losses = {}  # of every launcher: the same ranks give the same numbers

    def program(self):
        return ["--", PYTHON, EXAMPLE, "--device", "cpu", "--steps", "6"]

    def trained(self, done, ranks, nodes):
        self.ok(done)
        found = {int(m[1]): m for m in re.finditer(RANK, done.out)}
        self.assertEqual(sorted(found), list(range(ranks)), str(done))
        each = ranks // nodes
        for rank, match in found.items():
            self.assertEqual([match[2], match[3]], [str(ranks), str(rank % each)], str(done))
            if self.cluster.spaces:
                self.assertEqual(match[4], self.cluster.names[rank // each], str(done))
            self.assertLessEqual(cpu_list(match[6]), engines.ALLOWED)
        self.assertEqual(len({(m[4], m[5]) for m in found.values()}), ranks)
        end = re.search(r"(?m)^done: 6 steps on %d ranks .* loss ([\d.]+) -> ([\d.]+), models equal$" % ranks, done.out)
        self.assertTrue(end, str(done))
        self.assertLess(float(end[2]), float(end[1]))
        Training.losses.setdefault(ranks, end.groups())
        self.assertEqual(Training.losses[ranks], end.groups())
        self.assertNotIn("hpclaunch: rank", done.err)
        self.nothing_left()

    def words(self, launcher, ppn="1"):
        self.own_nodes(launcher)
        return ["run", "--launcher", launcher, "--ppn", ppn, "--oversubscribe", *self.meeting(), *self.program()]

    def test_slurm(self):
        self.trained(self.allocation(2, *self.words("slurm")), 2, 2)

    def test_slurm_two_ranks_on_each_node(self):
        self.trained(self.allocation(2, *self.words("slurm", "2")), 4, 2)

    def test_hydra_in_a_pbs_job(self):
        self.trained(self.on("n1", *self.words("hydra"), env=self.cluster.pbs(2)), 2, 2)

    def test_hydra_with_its_launcher_named(self):
        words = self.words("hydra")
        words[1:1] = ["--launcher-arg=-launcher", "--launcher-arg=ssh", "--launcher-arg=-launcher-exec", "--launcher-arg=" + self.cluster.path("bin", "ssh")]
        env = dict(self.cluster.pbs(2), PATH="/usr/bin:/bin")
        self.trained(self.on("n1", *words, env=env), 2, 2)

    def test_hydra_in_a_slurm_job(self):
        self.trained(self.allocation(2, *self.words("hydra")), 2, 2)

    def test_open_mpi_in_a_pbs_job(self):
        self.trained(self.on("n1", *self.words("openmpi"), env=self.cluster.pbs(2, **ROOT_MAY)), 2, 2)

    def test_open_mpi_on_nodes_with_domains(self):
        """It strips domains, but not of the hosts of --map-by seq."""
        words = self.words("openmpi")
        for names in (("n1.hpc.test", "n2.hpc.test"), ("n1", "n2.hpc.test")):
            words[1:1] = ["--hostfile", self.file("-".join(names), "\n".join(names) + "\n")]
            self.trained(self.on("n1", *words, env=self.cluster.environment("n1", **ROOT_MAY)), 2, 2)
            del words[1:3]

    def test_open_mpi_with_its_agent_named(self):
        words = self.words("openmpi")
        words[1:1] = ["--launcher-arg=--mca", "--launcher-arg=plm_rsh_agent", "--launcher-arg=" + self.cluster.path("bin", "ssh")]
        env = dict(self.cluster.pbs(2, **ROOT_MAY), PATH="/usr/bin:/bin")
        self.trained(self.on("n1", *words, env=env), 2, 2)

    def test_open_mpi_in_a_slurm_job(self):
        self.trained(self.allocation(2, *self.words("openmpi"), env=self.cluster.environment("login", **ROOT_MAY)), 2, 2)

    def test_local(self):
        done = self.on("n1", "run", "--launcher", "local", "-n", "2", "--oversubscribe", *self.program())
        self.trained(done, 2, 1)

    # ---- started by somebody else: one hpclaunch for each node, or for each rank ----

    def both(self, *lines, env=({}, {})):
        """A line on each node at once; together they are one job."""
        self.own_nodes()
        started = [self.cluster.popen(node, [support.HPCLAUNCH, *line], env=self.cluster.environment(node, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for node, line, more in zip(self.cluster.names, lines, env)]
        ended = [(one, *one.communicate(timeout=support.LIMIT)) for one in started]
        done = [support.Done(one.returncode, out, err) for one, out, err in ended]
        self.assertEqual([one.status for one in done], [0, 0], "\n".join(map(str, done)))
        self.trained(support.Done(0, b"".join(out for _, out, _ in ended), b"".join(err for *_, err in ended)), 2, 2)

    def test_once_for_each_node(self):
        words = ["run", "--ppn", "1", "--nodes", "2", "--master-addr", self.cluster.state.address("n1"), "--master-port", "29611"]
        self.both(*([*words, "--node-rank", str(node), *self.program()] for node in range(2)))

    def test_torchrun_once_for_each_node(self):
        words = ["torchrun", "--nnodes", "2", "--nproc_per_node", "1", "--master_addr", self.cluster.state.address("n1"), "--master_port", "29612"]
        self.both(*([*words, "--node_rank", str(node), *self.program()[2:]] for node in range(2)))

    def test_as_a_train_job_of_kubeflow(self):
        words = ["run", *self.program()]
        self.both(words, words, env=[{"KUBERNETES_SERVICE_HOST": "10.96.0.1", "PET_NNODES": "2", "PET_NODE_RANK": str(node), "PET_NPROC_PER_NODE": "1",
                                      "PET_MASTER_ADDR": self.cluster.state.address("n1"), "PET_MASTER_PORT": "29613"} for node in range(2)])

    def test_bind_under_srun(self):
        done = self.cluster.run("login", [*self.salloc(2), "srun", "-N2", "-n2", support.HPCLAUNCH, "bind", *self.program()])
        self.trained(support.Done(done.returncode, done.stdout.encode(), done.stderr.encode()), 2, 2)

    def test_ssh(self):
        self.own_nodes()
        hosts = self.file("hosts", "n1\nn2\n")
        self.trained(self.on("n1", "run", "--launcher", "ssh", "--hostfile", hosts, "--ppn", "1", *self.program()), 2, 2)


if __name__ == "__main__":
    engines.main()
