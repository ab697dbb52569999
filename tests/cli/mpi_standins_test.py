#!/usr/bin/env python3
"""hpclaunch run through launchers that are not here: Intel MPI, jsrun, Open MPI 5, PRRTE. Their stand-ins read the
documented grammar by themselves, refuse what it does not have, and start real ranks."""
import json
import os
import signal
import subprocess
import sys

import support
from support import Test, clean_env, cpu_list, hpclaunch

STANDIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standins", "launcher.py")
NAMES = {"intelmpi": "mpiexec.hydra", "jsrun": "jsrun", "openmpi": "mpirun", "prrte": "prterun"}
COUNTS = ("--oversubscribe", "--master-addr", "198.51.100.1")


class Job(Test):
    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.folder, "bin")
        self.calls = 0
        self.nodefile = self.file("nodefile", "n1\nn2\n")

    def put(self, kind, name=None, **more):
        """A program that answers and starts ranks as this launcher does."""
        self.record = os.path.join(self.folder, "record-%d" % self.calls)
        os.mkdir(self.record)
        self.calls += 1
        config = self.file("config-%d.json" % self.calls, json.dumps({"record": self.record, "hosts": "n[1-2]", **more}))
        return self.file("bin/" + (name or NAMES[kind]), '#!/bin/sh\nexec %s -I -S %s %s %s "$@"\n' % (sys.executable, STANDIN, config, kind), 0o755)

    def env(self, **extra):
        """Two nodes of a job: every batch system's would do, and this one's are read without a program."""
        return clean_env(**dict({"PATH": self.bin + ":/usr/bin:/bin", "PBS_JOBID": "1.server", "PBS_NODEFILE": self.nodefile}, **extra))

    def start(self, kind, n, *words, env=None, name=None):
        program = self.put(kind, name)
        where = "--launcher=" + (kind if name is None else program)
        ranks = self.ranks_environment("run", "-n", str(n), where, *COUNTS, *words, env=env or self.env())
        with open(os.path.join(self.record, "call.json")) as file:
            self.call = json.load(file)
        self.assertEqual(sorted(ranks), list(range(n)))
        plan = self.json("plan", "-n", str(n), where, *COUNTS, *words, env=env or self.env())
        for rank, got in ranks.items():
            run = [r for r in plan["layout"] if r["first_rank"] <= rank][-1]
            local = int(got[b"LOCAL_RANK"])
            mine = plan["classes"][run["node_class"]]["ranks"][local]
            self.assertEqual(self.bound(rank), cpu_list(mine["cpus"]), "rank %d" % rank)
            self.assertEqual(got[b"WORLD_SIZE"], b"%d" % n)
        self.places = [(int(ranks[r][b"GROUP_RANK"]), int(ranks[r][b"LOCAL_RANK"])) for r in range(n)]
        return ranks


class EachOfThem(Job):
    EVEN = [(0, 0), (0, 1), (1, 0), (1, 1)]

    def test_even(self):
        for kind in NAMES:
            with self.subTest(kind):
                self.start(kind, 4)
                self.assertEqual(self.places, self.EVEN)

    def test_uneven(self):
        for kind in ("intelmpi", "openmpi", "prrte"):
            with self.subTest(kind):
                self.start(kind, 3)
                self.assertEqual(self.places, [(0, 0), (0, 1), (1, 0)])
        self.put("jsrun")
        self.refused(125, "run", "-n", "3", "--launcher", "jsrun", *COUNTS, "--", "/bin/true", env=self.env(), says=["-n 2 or -n 4"])

    def test_one_node(self):
        for kind in ("intelmpi", "openmpi", "prrte"):
            with self.subTest(kind):
                self.start(kind, 2, "-N", "1")
                self.assertEqual(self.places, [(0, 0), (0, 1)])

    def test_labels(self):
        for kind, first in (("intelmpi", "[0] x"), ("jsrun", "0: x"), ("openmpi", "[1,0]<stdout>: x"), ("prrte", "[1,0]<stdout>: x")):
            with self.subTest(kind):
                self.put(kind)
                done = self.ok(hpclaunch("run", "-n", "4", "--label", "--launcher", kind, *COUNTS, "--", "/bin/echo", "x", env=self.env()))
                self.assertIn(first, done.out.splitlines())

    def test_status(self):
        for kind in NAMES:
            with self.subTest(kind):
                self.put(kind)
                self.ok(hpclaunch("run", "-n", "2", "--launcher", kind, *COUNTS, "--", "/bin/sh", "-c", "exit 9", env=self.env()), 9)

    def test_what_was_exported_and_removed(self):
        for kind in NAMES:
            with self.subTest(kind):
                env = self.env(MINE="a b;c,d\n$x", GONE="1", OMP_NUM_THREADS="3")
                for rank, got in self.start(kind, 4, "--unset", "GONE", "--set", "TYPED=1", env=env).items():
                    self.assertEqual([got.get(b"MINE"), got.get(b"TYPED"), got.get(b"GONE"), got.get(b"OMP_NUM_THREADS")],
                                     [b"a b;c,d\n$x", b"1", None, b"3"], "rank %d" % rank)

    def test_found_without_being_named(self):
        for kind in ("intelmpi", "openmpi", "prrte"):
            with self.subTest(kind):
                program = self.put(kind)
                plan = self.json("plan", "-n", "2", *COUNTS, "--", "/bin/true", env=dict(self.env(), PATH=self.bin))
                self.assertEqual((plan["launcher"], plan["argv"][0]), (kind, program))
                os.unlink(program)

    def test_by_what_it_says(self):
        for kind, name in (("intelmpi", "mpirun"), ("openmpi", "mpiexec"), ("prrte", "mpiexec")):
            with self.subTest(kind):
                self.start(kind, 2, name=name)


class IntelMpi(Job):
    def test_pins_nothing_and_keeps_the_plans_counts(self):
        env = self.env(I_MPI_PIN="1", I_MPI_PIN_DOMAIN="[3,c]", I_MPI_PERHOST="1", I_MPI_FABRICS="shm")
        self.start("intelmpi", 4, env=env)  # the stand-in deals by the node file unless it is told not to
        got = {name: value for name, value in self.call["env"].items() if name.startswith("I_MPI")}
        self.assertEqual(got, {"I_MPI_PIN": "0", "I_MPI_JOB_RESPECT_PROCESS_PLACEMENT": "0", "I_MPI_FABRICS": "shm"})

    def test_the_reasons_are_told(self):
        self.put("intelmpi")
        done = self.ok(hpclaunch("explain", "-n", "2", "--launcher", "intelmpi", *COUNTS, "I_MPI_PIN", "I_MPI_PIN_CELL", env=self.env(I_MPI_PIN_CELL="core")))
        self.has(done, "the shim binds", "off the planned CPUs")

    def test_told_from_mpich_by_what_lies_beside_it(self):
        self.put("intelmpi")
        profile = self.file("site.json", json.dumps({"schema": 1, "name": "site", "doc": "x", "launcher": "intelmpi"}))
        words = ("-n", "2", *COUNTS, "--profile", profile)
        self.refused(127, "run", *words, "--", "/bin/true", env=dict(self.env(), PATH=self.bin), says=["launcher intelmpi is not on PATH", "hydra"])
        self.file("bin/hydra_bstrap_proxy", "#!/bin/sh\n", 0o755)
        self.assertEqual(self.json("plan", *words, env=dict(self.env(), PATH=self.bin))["launcher"], "intelmpi")

    def test_other_counts_are_refused_with_the_way_out(self):
        self.put("intelmpi")
        words = ("--hostfile", self.file("slots", "n1:1\nn2:2\n"), "--launcher", "intelmpi", *COUNTS)
        plan = self.json("plan", *words, env=self.env())
        self.assertEqual([plan["world_size"], plan["max_local_size"]], [3, 2])  # nodes are filled


class OpenMpi(Job):
    def test_root_is_let_in_and_others_see_nothing_of_it(self):
        ranks = self.start("openmpi", 2)
        for got in ranks.values():
            seen = {name: value for name, value in got.items() if b"RUN_AS_ROOT" in name}
            both = {b"OMPI_ALLOW_RUN_AS_ROOT": b"1", b"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": b"1"}
            self.assertEqual(seen, both if os.getuid() == 0 else {})

    def test_leftovers_are_removed(self):
        self.start("openmpi", 2, env=self.env(PRTE_MCA_rmaps_default_mapping_policy="core", OMPI_MCA_rmaps_base_mapping_policy="core"))
        self.assertFalse([name for name in self.call["env"] if "_rmaps_" in name])

    def test_a_profile_names_it_and_the_version_is_asked(self):
        program = self.put("openmpi")
        profile = self.file("site.json", json.dumps({"schema": 1, "name": "site", "doc": "x", "launcher": "openmpi"}))
        plan = self.json("plan", "-n", "2", "--label", *COUNTS, "--profile", profile, "--", "/bin/true", env=self.env())
        self.assertEqual(plan["argv"][0], program)
        self.assertIn("--output", plan["argv"])
        self.file("bin/mpirun", "#!/bin/sh\necho 'mpirun (Open MPI) 4.1.6'\n", 0o755)
        plan = self.json("plan", "-n", "2", "--label", *COUNTS, "--profile", profile, "--", "/bin/true", env=self.env())
        self.assertIn("--tag-output", plan["argv"])


class Prrte(Job):
    """Open MPI 5 and PRRTE 4.1, which are one program of two ages."""

    KINDS = ("openmpi", "prrte")
    GATE = 'test "$RANK" = 0 && : >"$0"; exec sleep 1000'

    def run_on(self, kind, n, *words, env=None, before=()):
        self.put(kind)
        return hpclaunch("run", "-n", str(n), "--launcher", kind, *COUNTS, *before, "--", *words, env=env or self.env())

    def test_the_programs_words_arrive_as_typed(self):
        words = ["--map-by", "q", "--bind-to", "core", "--bind-to", "x", "--rank-by", "--rank-by", "--runtime-options", "--personality", "prte", "--prtemca",
                 "rmaps_x", "1", "%a", "%", ":", "-lr", "--epochs=3", "--", "--mapby", "--mca"]
        for kind in self.KINDS:
            with self.subTest(kind):
                done = self.ok(self.run_on(kind, 2, "/usr/bin/printf", "%s ", *words))
                self.assertEqual(sorted(done.out.split()), sorted(2 * words))
                done = self.ok(self.run_on(kind, 1, "/usr/bin/printf", "<%s>", "--mca"))
                self.assertEqual(done.out, "<--mca>")

    def test_an_ordinary_line_is_not_changed(self):
        self.put("prrte")
        plan = self.json("plan", "-n", "2", "--launcher", "prrte", *COUNTS, "--", "/bin/echo", "--lr", "1", "%a", env=self.env())
        self.assertEqual(plan["argv"][-4:], ["/bin/echo", "--lr", "1", "%a"])
        self.assertNotIn("-q", plan["argv"])

    def test_a_lost_node_is_no_success_and_named(self):
        for kind in self.KINDS:
            with self.subTest(kind):
                gate = os.path.join(self.folder, "gate-" + kind)
                self.put(kind, lose=gate)
                done = self.ok(hpclaunch("run", "-n", "4", "--launcher", kind, *COUNTS, "--", "/bin/sh", "-c", self.GATE, gate, env=self.env()), 137)
                self.has(done, "hpclaunch: node n2 failed first: its connection ended, with ranks 2-3 on n2 running\nhpclaunch: stopped 2 ranks\n")

    def test_a_failure_stops_the_job_whatever_is_exported(self):
        for kind in self.KINDS:
            for name, value in (("PRTE_MCA_rtos", "error-nonzero-status=0"), ("PRTE_MCA_state_base_error_non_zero_exit", "0"),
                                ("OMPI_MCA_state_base_error_non_zero_exit", "0")):
                with self.subTest(kind, name=name):
                    done = self.run_on(kind, 4, "/bin/sh", "-c", 'test "$RANK" = 3 && exit 7; exec sleep 1000', env=self.env(**{name: value}))
                    self.ok(done, 7)
                    self.has(done, "rank 3 failed first")

    def test_orders_that_are_exported_are_removed(self):
        for kind in self.KINDS:
            for name in ("PRTE_MCA_rankby", "PRTE_MCA_mapby", "PRTE_MCA_rmaps_default_ranking_policy", "OMPI_MCA_rmaps_default_ranking_policy"):
                with self.subTest(kind, name=name):
                    self.start(kind, 4, env=self.env(**{name: "node"}))
                    self.assertEqual(self.places, EachOfThem.EVEN)
                    self.assertNotIn(name, self.call["env"])
        done = self.ok(self.run_on("prrte", 2, "/bin/echo", "x", env=self.env(PRTE_MCA_output="tag", PRTE_MCA_personality="prte")))
        self.assertEqual(done.out, "x\nx\n")

    def test_a_joined_value_is_given_as_two_words(self):
        done = self.ok(self.run_on("prrte", 2, "/bin/echo", "x", before=["--launcher-arg=--bind-to=none"]))
        self.assertNotIn("launcher-arg-clash", done.err)
        done = self.ok(self.run_on("prrte", 2, "/bin/echo", "x", before=["--launcher-arg=--bind-to=core"]))
        self.has(done, "launcher-arg-clash", "--bind-to=core")

    def test_qualified_names_keep_their_counts(self):
        self.nodefile = self.file("qualified", "n1.hpc.test\nn2.hpc.test\n")
        for kind in self.KINDS:
            with self.subTest(kind):
                self.start(kind, 3)
                self.assertEqual(self.places, [(0, 0), (0, 1), (1, 0)])
                self.start(kind, 4)
                self.assertEqual(self.places, EachOfThem.EVEN)
        self.nodefile = self.file("two", "n1.a\nn1.b\n")
        self.put("prrte")
        self.refused(125, "run", "-n", "2", "--launcher", "prrte", *COUNTS, "--", "/bin/true", env=self.env(), says=["n1.a and n1.b", "IPv4"])

    def test_verify_expects_nothing_that_it_takes_from_its_ranks(self):
        for kind in self.KINDS:
            with self.subTest(kind):
                self.put(kind)
                done = hpclaunch("verify", "-n", "4", "--launcher", kind, *COUNTS, env=self.env(PRTE_ALLOW_RUN_AS_ROOT="1", PRTE_MCA_x="1", PMIX_MCA_y="1"))
                self.assertNotIn("PRTE_", done.out)
                self.assertNotIn("PMIX_", done.out)

    def test_what_is_said_of_a_signal(self):
        """Which is the same for both, although PRRTE would kill ranks of its own node at once."""
        for kind in self.KINDS:
            with self.subTest(kind):
                gate = os.path.join(self.folder, "gate-" + kind)
                os.mkfifo(gate)
                self.put(kind)
                job = subprocess.Popen([support.HPCLAUNCH, "run", "-n", "4", "--launcher", kind, *COUNTS, "--", "/bin/sh", "-c", self.GATE, gate],
                                       env=self.env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                with open(gate):  # rank 0 runs
                    job.send_signal(signal.SIGTERM)
                    errors = job.communicate(timeout=support.LIMIT)[1]
                self.assertIn("hpclaunch: sent SIGTERM to the ranks; no rank failed before\n", errors)
                self.assertNotIn("failed first", errors)
                self.assertEqual(job.returncode, 143)


class Lsf(Job):
    def test_jsrun_is_taken_where_it_is(self):
        self.put("jsrun")
        job = self.env(LSB_JOBID="1", LSB_HOSTS="n1 n2", PBS_JOBID=None)
        plan = self.json("plan", "-n", "2", *COUNTS, "--", "/bin/true", env=job)
        self.assertEqual(plan["launcher"], "jsrun")
        os.unlink(os.path.join(self.bin, "jsrun"))
        self.put("openmpi")
        plan = self.json("plan", "-n", "2", *COUNTS, "--", "/bin/true", env=dict(job, PATH=self.bin))
        self.assertEqual(plan["launcher"], "openmpi")

    def test_hosts_that_jsrun_cannot_be_told(self):
        self.put("jsrun")
        self.refused(125, "run", "-n", "2", "--launcher", "jsrun", *COUNTS, "--hostfile", self.nodefile, "--", "/bin/true", env=self.env(),
                     says=["in its own order"])


class Clashes(Job):
    def test_an_error_stops_and_force_goes_on(self):
        self.put("openmpi")
        words = ("run", "-n", "2", "--launcher", "openmpi", *COUNTS, "--launcher-arg=--np", "--launcher-arg=2")
        self.ok(hpclaunch(*words, "--", "/bin/true", env=self.env()))
        words = (*words[:-1], "--launcher-arg=3")
        done = hpclaunch(*words, "--", "/bin/true", env=self.env())
        self.ok(done, 125)
        self.has(done, "launcher-arg-clash", "--np 3", "2 ranks", "-n 3")
        self.assertFalse(os.path.exists(os.path.join(self.record, "again")))

    def test_a_warning_does_not(self):
        self.put("jsrun")
        done = self.ok(hpclaunch("run", "-n", "2", "--launcher", "jsrun", *COUNTS, "--launcher-arg=-X0", "--", "/bin/true", env=self.env()))
        self.has(done, "launcher-arg-clash", "-X0")

    def test_a_plan_shows_them_too(self):
        plan = self.json("plan", "-n", "2", "--launcher", "slurm", *COUNTS, "--launcher-arg=--export=NONE", env=self.env())
        self.assertEqual([(f["id"], f["severity"]) for f in plan["diagnostics"] if f["id"] == "launcher-arg-clash"], [("launcher-arg-clash", "error")])


if __name__ == "__main__":
    support.main()
