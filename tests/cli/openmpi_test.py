#!/usr/bin/env python3
"""hpclaunch run through the mpirun of Open MPI 4 that is here.

Several nodes are played by this one: in place of ssh stands a script that starts Open MPI's daemon here, with nothing
of the caller's environment but PATH and HOME, as a real login would.
"""
import os
import re
import subprocess

import support
from support import HOST, Test, clean_env, cpu_list, hpclaunch, need

SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
mkdir -p %s/$1
there=%s/$1
shift
exec env -i PATH="$PATH" HOME="$HOME" TMPDIR="$there" sh -c "$*"
"""


class OpenMpi(Test):
    def setUp(self):
        super().setUp()
        self.mpirun = need("mpirun.openmpi", "orterun")
        self.words = ["--launcher", self.mpirun, "--oversubscribe"]
        ssh = self.file("ssh", SSH % (self.folder, self.folder), 0o755)
        self.remote = ["--launcher-arg=--mca", "--launcher-arg=plm_rsh_agent", "--launcher-arg=" + ssh]

    def hosts(self, *lines):
        return ["--hostfile", self.file("hosts", "".join(line + "\n" for line in lines)), *self.words, "--master-addr", "198.51.100.1", *self.remote]

    def layout(self, n, *words, env=None):
        """(node, local rank, ranks on the node) of every rank, and that it has its CPUs."""
        ranks = self.ranks_environment("run", "-n", str(n), *words, env=env)
        plan = self.json("plan", "-n", str(n), *words, env=env)
        self.assertEqual(sorted(ranks), list(range(n)))
        found = []
        for rank in range(n):
            got = ranks[rank]
            numbers = [int(got[name]) for name in (b"GROUP_RANK", b"LOCAL_RANK", b"LOCAL_WORLD_SIZE")]
            self.assertEqual([got[b"WORLD_SIZE"], got[b"OMPI_COMM_WORLD_RANK"]], [b"%d" % n, b"%d" % rank])
            self.assertEqual(int(got[b"OMPI_COMM_WORLD_LOCAL_RANK"]), numbers[1])
            run = [r for r in plan["layout"] if r["first_rank"] <= rank][-1]
            mine = plan["classes"][run["node_class"]]["ranks"][numbers[1]]
            self.assertEqual(self.bound(rank), cpu_list(mine["cpus"]), "rank %d" % rank)
            found.append(tuple(numbers))
        self.ranks = ranks
        return found


class OneNode(OpenMpi):
    def test_ranks_and_masks(self):
        for n in (1, 2, 5):  # more than there are slots, too
            with self.subTest(n):
                self.assertEqual(self.layout(n, *self.words), [(0, r, n) for r in range(n)])

    def test_the_shim_binds(self):
        plan = self.json("plan", "-n", "1", *self.words, "--", "/bin/true")
        self.assertEqual([plan["launcher"], plan["bind_via"]], ["openmpi", "shim"])
        self.assertEqual(plan["argv"][plan["argv"].index("--bind-to") + 1], "none")
        done = self.ok(hpclaunch("run", "-n", "1", *self.words, "--verify", "strict", "--", "/bin/true"))
        self.assertEqual(done.err, "")

    def test_by_name(self):
        plan = self.json("plan", "-n", "1", "--launcher", "openmpi", "--", "/bin/true")
        self.assertEqual(plan["launcher"], "openmpi")
        said = subprocess.run([plan["argv"][0], "--version"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=support.LIMIT).stdout
        self.assertRegex(said.decode(), r"Open ?(MPI|RTE)\) \d+\.\d+")

    def test_status_of_the_program(self):
        done = hpclaunch("run", "-n", "2", *self.words, "--", "/bin/sh", "-c", 'test "$RANK" = 0 || exit 21; exec sleep 60')
        self.ok(done, 21)

    def test_arguments_pass_as_bytes(self):
        done = self.ok(hpclaunch("run", "-n", "1", *self.words, "--", "/usr/bin/printf", "<%s>", "a b", "", "it's", "--", "-n", "$HOME", "a:b"))
        self.assertEqual(done.out, "<a b><><it's><--><-n><$HOME><a:b>")
        done = self.ok(hpclaunch("run", "-n", "1", *self.words, "--", "/usr/bin/printf", "<%s>", "a", ":", "%b", "--mca", "--map-by", "q"))
        self.assertEqual(done.out, "<a><:><%b><--mca><--map-by><q>")

    def test_labels(self):
        done = self.ok(hpclaunch("run", "-n", "2", "--label", *self.words, "--", "/bin/echo", "x"))
        self.assertEqual(sorted(done.out.splitlines()), ["[1,0]<stdout>:x", "[1,1]<stdout>:x"])

    def test_leftovers_are_removed(self):
        env = clean_env(OMPI_MCA_rmaps_base_mapping_policy="node", OMPI_MCA_hwloc_base_binding_policy="core", OMPI_MCA_rmaps_ppr_n_pernode="1", OMPI_MCA_rmaps="ppr",
                        OMPI_MCA_orte_default_hostfile="/no/such/file", OMPI_MCA_btl="self,vader")
        self.layout(2, *self.words, env=env)
        for got in self.ranks.values():
            self.assertEqual(got.get(b"OMPI_MCA_btl"), b"self,vader")
        said = self.ok(hpclaunch("explain", "-n", "1", *self.words, "OMPI_MCA_rmaps_ppr_n_pernode", env=env))
        self.has(said, "places or binds")

    def test_root_is_let_in_and_others_see_nothing_of_it(self):
        self.layout(1, *self.words)
        seen = {name for name in self.ranks[0] if b"RUN_AS_ROOT" in name}
        self.assertEqual(len(seen), 2 if os.getuid() == 0 else 0)

    def test_root_may_decline(self):
        if os.getuid() != 0:
            return self.test_root_is_let_in_and_others_see_nothing_of_it()
        done = hpclaunch("run", "-n", "1", *self.words, "--unset", "OMPI_ALLOW_RUN_AS_ROOT", "--", "/bin/echo", "ran")
        self.assertNotEqual(done.status, 0)
        self.assertNotIn("ran\n", done.out)

    def test_a_log_per_rank(self):
        """Written by the ranks' side, raw; the output comes as well, and nothing of an earlier launch is touched."""
        logs = self.folder + "/logs"
        for place in (logs, logs + "/2"):
            done = hpclaunch("run", "-n", "2", *self.words, "--label", "--log-dir", logs, "--", "/bin/sh", "-c", "echo out $RANK; echo err >&2; exit $RANK")
            self.ok(done, 1)
            self.has(done, "out 0", "out 1", "full output of rank 1: %s/rank-1.log" % place)
            for rank in range(2):
                with open("%s/rank-%d.log" % (place, rank)) as file:
                    self.assertEqual(sorted(file), ["err\n", "out %d\n" % rank])

    def test_nothing_stays(self):
        run = subprocess.Popen([support.HPCLAUNCH, "run", "-n", "2", *self.words, "--", "/bin/sh", "-c", 'echo $$; exec sleep 600'],
                               env=clean_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        pids = [int(run.stdout.readline()) for _ in range(2)]
        run.terminate()
        run.stdout.close()
        self.assertNotEqual(run.wait(timeout=support.LIMIT), 0)
        for pid in pids:
            self.assertFalse(alive(pid), pid)


def alive(pid):
    """Whether it runs; what is dead and not yet collected does not."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


class Nodes(OpenMpi):
    def test_even(self):
        self.assertEqual(self.layout(4, *self.hosts("nodeA", "nodeB")), [(0, 0, 2), (0, 1, 2), (1, 0, 2), (1, 1, 2)])

    def test_uneven(self):
        self.assertEqual(self.layout(3, *self.hosts("nodeA", "nodeB")), [(0, 0, 2), (0, 1, 2), (1, 0, 1)])

    def test_this_node_need_not_be_the_first(self):
        """Open MPI itself would put ranks 0 here, wherever in the list this node stands."""
        words = self.hosts("nodeA", HOST)
        self.assertEqual(self.layout(3, *words, env=clean_env(TMPDIR=None)), [(0, 0, 2), (0, 1, 2), (1, 0, 1)])
        there = [os.fsencode(self.folder) in got.get(b"TMPDIR", b"") for _, got in sorted(self.ranks.items())]
        self.assertEqual(there, [True, True, False])

    def test_one_slot_of_a_batch_system(self):
        """As in a Slurm job without a number of tasks; --launcher is typed, or srun would be taken."""
        env = clean_env(SLURM_JOBID="1", SLURM_JOB_ID="1", SLURM_NODELIST="nodeA,nodeB", SLURM_JOB_NODELIST="nodeA,nodeB",
                        SLURM_TASKS_PER_NODE="1(x2)", SLURM_JOB_NUM_NODES="2", SLURM_NNODES="2")
        words = [*self.words, *self.remote, "--launcher-arg=--mca", "--launcher-arg=plm", "--launcher-arg=rsh"]
        self.assertEqual(self.layout(3, *words, env=env), [(0, 0, 2), (0, 1, 2), (1, 0, 1)])

    def test_the_environment_reaches_all(self):
        env = clean_env(MINE="a b;c,d\n'$x'", EMPTY="", GONE="1", LONG="x" * 100_000, HOSTNAME="here", OMP_NUM_THREADS="3")
        env["BASH_FUNC_f%%"] = "() {  :; }"
        self.layout(4, *self.hosts("nodeA", "nodeB"), "--unset", "GONE", "--set", "TYPED=1", env=env)
        for rank, got in self.ranks.items():
            self.assertEqual([got.get(name) for name in (b"MINE", b"EMPTY", b"LONG", b"TYPED", b"GONE", b"OMP_NUM_THREADS", b"HOSTNAME")],
                             [b"a b;c,d\n'$x'", b"", b"x" * 100_000, b"1", None, b"3", None], "rank %d" % rank)
            self.assertTrue(got[b"PATH"].decode().endswith(env["PATH"]), got[b"PATH"])  # it puts its own folder first
        self.assertNotRegex(self.last.err, "could not find environment variable")

    def test_one_failing_rank_ends_all(self):
        done = hpclaunch("run", "-n", "2", *self.hosts("nodeA", "nodeB"), "--", "/bin/sh", "-c", 'test "$RANK" = 0 || exit 7; exec sleep 60')
        self.ok(done, 7)


class Clashes(OpenMpi):
    def test_a_binding_of_ones_own_is_bound_over(self):
        words = (*self.words, "--launcher-arg=--bind-to", "--launcher-arg=core")
        self.layout(2, *words)
        self.assertIn("launcher-arg-clash", self.last.err)

    def test_another_number_of_ranks_is_an_error(self):
        done = self.ok(hpclaunch("run", "-n", "2", *self.words, "--launcher-arg=-np", "--launcher-arg=3", "--", "/bin/echo", "ran"), 125)
        self.has(done, "planned 2 ranks, now 3")
        self.assertFalse(re.search("^ran", done.out, re.M))


if __name__ == "__main__":
    support.main()
