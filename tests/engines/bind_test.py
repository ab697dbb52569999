#!/usr/bin/python3
"""`hpclaunch bind` under launchers that somebody has typed, and `hpclaunch run` with the same one: what each rank finds is
the same. Real srun, Hydra and Open MPI on virtual nodes."""
import os
import shutil

import engines
from engines import recorded, support

NODES = 2
# What the two may differ in: numbers of a step or a process, and what a launcher puts beside a rank.
OWN = ("_", "PWD", "SHLVL", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
OF_LAUNCHERS = ("SLURM", "SRUN", "PMI_", "PMIX_", "OMPI_", "PRTE_", "HYD", "MPI_", "MPIR_", "PALS_", "OPAL_", "ORTE_", "GFORTRAN_", "IPATH_", "PSM")


class AsRun(engines.Test):
    nodes = NODES

    def shapes(self):
        """All 18 with HPCLAUNCH_TEST_ALL, else each number and each view at least twice."""
        views = (None, "all", "own")
        for nodes in (1, NODES):
            for ppn in (1, 2, 3):
                for view in views if "HPCLAUNCH_TEST_ALL" in os.environ else (views[(nodes + ppn) % 3],):
                    yield nodes, ppn, ["--profile", "none"] if view is None else ["--profile", self.profile, "--gpu-view", view]

    def ranks(self, name, node, argv, env=None):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        done = self.cluster.run(node, [*argv, "--", engines.RECORD, folder], env=env, timeout=support.LIMIT)
        self.assertEqual(done.returncode, 0, (argv, done.stdout, done.stderr))
        found = recorded(folder)
        shutil.rmtree(folder)
        return {rank: (host, cpus, {key: value for key, value in env.items() if key not in OWN and not key.startswith(OF_LAUNCHERS)})
                for rank, (host, _, cpus, env) in found.items()}, done.stderr

    def compare(self, node, launcher, before, start, env=None):
        for nodes, ppn, site in self.shapes():
            with self.subTest(launcher, nodes=nodes, ppn=ppn, site=site[-1]):
                counts = ["-N", str(nodes), "--ppn", str(ppn), "--oversubscribe", "--force", *self.meeting()]
                run, _ = self.ranks("run", node, [*before(nodes), support.HPCLAUNCH, "run", "--launcher", launcher, *counts, *site], env)
                bind, said = self.ranks("bind", node, [*before(nodes), *start(nodes, ppn), support.HPCLAUNCH, "bind", *site], env)
                self.assertEqual(sorted(bind), list(range(nodes * ppn)))
                for rank in run:
                    self.assertEqual(bind[rank], run[rank], "rank %d\n%s" % (rank, said))
                self.assertNotIn("local rank", said)

    def test_srun(self):
        """Both from the batch script, on the job's first node."""
        script = self.file("job.sh", "#!/bin/sh\nexec \"$@\"\n", 0o755)
        out = os.path.join(self.folder, "out")
        self.compare("login", "slurm", lambda nodes: ["sbatch", "--wait", *self.salloc(nodes)[1:], "-o", out, script],
                     lambda nodes, ppn: ["srun", "-N", str(nodes), "--ntasks-per-node", str(ppn), "--overcommit", "--cpu-bind=none"])

    def test_hydra(self):
        mpiexec = support.need("mpiexec.hydra")
        self.compare("n1", "hydra", lambda nodes: [], lambda nodes, ppn: [
            mpiexec, "-hosts", ",".join(self.cluster.names[:nodes]), "-n", str(nodes * ppn), "-ppn", str(ppn), "-bind-to", "none"], self.cluster.pbs(NODES))

    def test_open_mpi(self):
        """It passes nothing on that is not named to it: neither the job's list of hosts, nor what run forwards."""
        self.own_nodes("openmpi")
        mpirun = support.need("mpirun.openmpi", "orterun")
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.compare("n1", "openmpi", lambda nodes: [], lambda nodes, ppn: [
            mpirun, "-H", ",".join("%s:%d" % (name, ppn) for name in self.cluster.names[:nodes]), "-n", str(nodes * ppn), "--map-by", "ppr:%d:node" % ppn,
            "--oversubscribe", "--bind-to", "none", *(["-x", "PATH", "-x", "NCPUS", "-x", "MASTER_ADDR=" + self.cluster.names[0]] if nodes > 1 else [])], self.cluster.pbs(NODES, **root))

    def test_a_launcher_that_binds_keeps_its_masks(self):
        """srun's own binding, and mpirun's, inside of which nothing is to be divided."""
        many = min(2, len(engines.ALLOWED))
        for bind in ("--cpu-bind=none", "--cpu-bind=cores"):
            start = [*self.salloc(1), "srun", "-N", "1", "-n", str(many), bind]
            alone = self.cluster.run("login", [*start, "grep", "Cpus_allowed_list", "/proc/self/status"], timeout=support.LIMIT)
            bound = self.cluster.run("login", [*start, support.HPCLAUNCH, "bind", "--", "grep", "Cpus_allowed_list", "/proc/self/status"], timeout=support.LIMIT)
            self.assertEqual(bound.returncode, 0, bound.stderr)
            if bind != "--cpu-bind=none":
                self.assertEqual(sorted(bound.stdout.splitlines()), sorted(alone.stdout.splitlines()))
            masks = [support.cpu_list(line.split()[1]) for line in bound.stdout.splitlines()]
            self.assertEqual(sum(len(mask) for mask in masks), len(set().union(*masks)), bound.stdout)


if __name__ == "__main__":
    engines.main()
