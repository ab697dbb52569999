#!/usr/bin/python3
"""Several `hpclaunch run` at once in one job of a real Slurm: their steps run side by side, on what is free."""
import os

import engines
from engines import support

# Its node, its CPUs and its device; ends when the other launches have begun.
MEET = ("echo $(uname -n) $(sed -n 's/Cpus_allowed_list:.//p' /proc/self/status) ${CUDA_VISIBLE_DEVICES:-none} >$0/$1; "
        "i=0; while [ $(ls $0 | wc -l) -lt $2 ]; do i=$((i + 1)); [ $i -gt 600 ] && exit 9; sleep 0.1; done")


class InsideAStep(engines.Test):
    """A shell in a step that holds all of its node: srun of another launcher must not wait for the end of that step."""
    nodes = 2

    def test_every_launcher(self):
        self.own_nodes()
        for launcher in "slurm", "hydra", "openmpi", "local":
            for outer in ("srun", "-N1", "-n1"), ("srun", "-N1", "-n1", "--overlap"):
                with self.subTest(launcher=launcher, outer=outer):
                    nodes = 1 if launcher == "local" else 2
                    done = self.cluster.run("login", [*self.salloc(2), *outer, support.HPCLAUNCH, "run", "-N", str(nodes), "--ppn", "1", "--launcher", launcher, "--profile", "none",
                                                      "--", "/bin/sh", "-c", "echo $RANK $(uname -n)"])
                    self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
                    self.assertEqual(sorted(done.stdout.splitlines()), ["%d %s" % (rank, self.cluster.names[rank]) for rank in range(nodes)], done.stderr)

    def test_inside_a_rank_of_another_launcher(self):
        self.own_nodes()
        for outer, mark in (("mpiexec.hydra", "-n", "1"), "PMI_FD"), (("mpirun.openmpi", "--allow-run-as-root", "-n", "1"), "OMPI_COMM_WORLD_RANK"):
            for launcher in "slurm", "hydra", "openmpi", "local":
                with self.subTest(outer=outer, launcher=launcher):
                    done = self.cluster.run("login", [*self.salloc(2), *outer, support.HPCLAUNCH, "run", "-n", "1", "--launcher", launcher, "--profile", "none", "--", "/bin/true"])
                    self.assertEqual(done.returncode, 125, (done.stdout, done.stderr))
                    self.assertIn("%s is set: this is already a rank of a job" % mark, done.stderr)


class SideBySide(engines.Test):
    nodes = 2

    def together(self, nodes, *launches):
        """What the first rank of each launch found: [node, CPUs, device]."""
        self.own_nodes()
        seen = os.path.join(self.folder, "seen")
        os.mkdir(seen)
        lines = ["%s run --launcher slurm --verify strict --profile %s --force %s -- /bin/sh -c \"$0\" %s %d %d &" %
                 (support.HPCLAUNCH, self.profile, words, seen, number, len(launches)) for number, words in enumerate(launches)]
        script = "\n".join([*lines, "status=0; for job in $(jobs -p); do wait $job || status=$?; done; exit $status"])
        done = self.cluster.run("login", [*self.salloc(nodes), "/bin/bash", "-c", script, MEET])
        found = []
        for name in sorted(os.listdir(seen)):
            with open(os.path.join(seen, name)) as file:
                found.append(file.read().split())
        self.assertEqual(done.returncode, 0, (found, done.stdout, done.stderr))
        self.assertNotIn("shared-with-launch", done.stderr)
        return found

    def test_on_nodes_of_their_own(self):
        found = self.together(2, "--free -N 1 -n 1", "--free -N 1 -n 1")
        self.assertEqual(sorted(node for node, *_ in found), self.cluster.names[:2])

    def test_on_one_node(self):
        one, two = self.together(1, "--free -n 1", "--free -n 1")
        self.assertEqual(one[0], two[0])
        self.assertFalse(set(support.cpu_list(one[1])) & set(support.cpu_list(two[1])), (one, two))
        self.assertNotEqual(one[2], two[2])

    def test_lists_of_their_own(self):
        """Launches with nothing in common run side by side without --free."""
        first, *_, last = sorted(engines.ALLOWED)
        found = self.together(1, *("-n 1 --devices-per-rank 0 --cpu-bind %d" % cpu for cpu in (first, last)))
        self.assertEqual(sorted(int(cpus) for _, cpus, _ in found), [first, last])

    def test_three_on_two_nodes(self):
        found = self.together(2, "--free -N 1 -n 1", "--free -N 1 -n 1", "--free -N 1 -n 1")
        self.assertEqual(len({(node, cpus) for node, cpus, _ in found}), 3)

    def test_the_fourth_finds_nothing_free(self):
        self.own_nodes()
        begun = os.path.join(self.folder, "begun")
        run = "%s run --launcher slurm --profile %s --force " % (support.HPCLAUNCH, self.profile)
        script = (run + "--ppn 2 --free -- /bin/sh -c 'echo >$0; exec sleep 1000' %s & until [ -e %s ]; do sleep 0.1; done; " % (begun, begun) +
                  run + "-n 1 --free -- /bin/true; echo $?; kill $!; wait")
        done = self.cluster.run("login", [*self.salloc(1), "/bin/bash", "-c", script])
        self.assertEqual(done.stdout, "125\n", (done.stdout, done.stderr))
        self.assertRegex(done.stderr, r"--free: no core of n1 is free: launch \d+ \(sh\)")


class WithDevices(SideBySide):
    """The job was asked for GPUs, which every step of it asks for in turn."""

    shape = "real-gpu"

    def salloc(self, nodes):
        return super().salloc(nodes) + ["--gpus-per-node=2"]


if __name__ == "__main__":
    engines.main()
