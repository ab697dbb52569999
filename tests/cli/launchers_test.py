#!/usr/bin/env python3
"""Which nodes there are and which launcher is taken, in fabricated jobs of each batch system. The launchers are
stand-ins that write down how they were started: a launcher that need not be asked for its version must not be."""
import json
import os

import support
from support import HOST, Test, clean_env, hpclaunch

MUTE = "#!/bin/sh\necho \"$0 $*\" >> %s\n%s\n"
COUNTS = ("--oversubscribe", "--bind-via", "shim")


class Job(Test):
    def setUp(self):
        super().setUp()
        self.record = os.path.join(self.folder, "record")
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)

    def program(self, name, script="exit 3"):
        return self.file("bin/" + name, MUTE % (self.record, script), 0o755)

    def started(self):
        if not os.path.exists(self.record):
            return []
        with open(self.record) as file:
            return [line.split("/bin/", 1)[1].strip() for line in file]

    def env(self, **extra):
        return clean_env(PATH=self.bin, **extra)

    def slurm(self, nodes, **extra):
        return self.env(SLURM_JOB_ID="17", SLURM_JOB_NODELIST=nodes, **extra)

    def plan(self, *words, env):
        return self.json("plan", *words, "--", "/bin/true", env=env)

    def profile(self, launcher):
        path = self.file("site.json", json.dumps({"schema": 1, "name": "site", "doc": "x", "launcher": launcher}))
        return ("--profile", path)


class Slurm(Job):
    def test_node_list_and_srun(self):
        srun = self.program("srun")
        plan = self.plan(*COUNTS, "--ppn", "1", env=self.slurm("n[09-10],gpu1"))
        self.assertEqual(plan["hosts"], ["n09", "n10", "gpu1"])
        self.assertEqual((plan["launcher"], plan["argv"][0]), ("slurm", srun))
        self.assertFalse([word for word in plan["argv"] if word.startswith("--nodelist")], plan["argv"])
        self.assertEqual(self.started(), [])

    def test_the_line_as_srun_gets_it(self):
        self.program("srun", "printf '%s\\n' \"$@\"")
        done = self.ok(hpclaunch("run", "-N", "2", "--ppn", "2", "--oversubscribe", "--bind-via", "shim", "--label", "--launcher-arg=--mpi=none",
                                 "--no-supervise", "--", "/bin/echo", "a b", "", env=self.slurm("n[1-2]")))
        self.assertEqual(done.out.split("\n"), ["--nodes=2", "--ntasks=4", "--ntasks-per-node=2", "--distribution=block", "--cpu-bind=none",
                                                "--export=ALL", "--kill-on-bad-exit=1", "--wait=0", "--label", "--mpi=none", "--",
                                                support.shim_path(), "/bin/echo", "a b", "", ""])

    def test_counts_only_where_tasks_were_asked_for(self):
        self.program("srun")
        base = self.plan(*COUNTS, env=self.slurm("n[1-2]"))["world_size"]
        for extra, want in (({"SLURM_NTASKS_PER_NODE": "3"}, 6), ({"SLURM_NTASKS": "5", "SLURM_TASKS_PER_NODE": "3,2"}, 5),
                            ({"SLURM_NTASKS_PER_NODE": "3", "SLURM_TASKS_PER_NODE": "3(x2)"}, 6),
                            ({"SLURM_NTASKS_PER_NODE": "3", "SLURM_TASKS_PER_NODE": "8"}, 6),  # of another level
                            ({"SLURM_NTASKS_PER_NODE": "3", "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_STEP_ID": "0"}, 6),
                            ({"SLURM_TASKS_PER_NODE": "64(x2)"}, base), ({"SLURM_NTASKS": "5", "SLURM_TASKS_PER_NODE": "5"}, base),
                            ({"SLURM_NTASKS": "2", "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_STEP_ID": "0"}, base),
                            ({"SLURM_NTASKS_PER_NODE": "x"}, base), ({"SLURM_NTASKS_PER_NODE": "0"}, base)):
            with self.subTest(extra):
                self.assertEqual(self.plan(*COUNTS, env=self.slurm("n[1-2]", **extra))["world_size"], want)

    def test_a_list_that_cannot_be_read(self):
        self.program("srun")
        for nodes in ("n[1-", "", "n[3-1]", "n[0-99999999]"):
            with self.subTest(nodes):
                self.refused(2, "plan", "--", "/bin/true", env=self.slurm(nodes), says=["SLURM_JOB_NODELIST", "--hostfile"])
                self.assertEqual(self.plan("--nodes", "1", env=self.slurm(nodes))["hosts"], [HOST])
        self.assertEqual(self.plan(env=self.slurm("n[1-", SLURM_JOB_NUM_NODES="1"))["hosts"], [HOST])

    def test_what_is_no_host_name(self):
        for text in ("(null)", "n1:2", "n1*2", "n1,n2:4", "-n1"):
            with self.subTest(text):
                self.refused(2, "plan", "--profile", "none", env=self.slurm(text), says=["SLURM_JOB_NODELIST", "is not a host name"])

    def test_a_job_without_its_list(self):
        self.program("srun")
        for env, says in ((self.env(SLURM_JOB_ID="17"), "SLURM_JOB_NODELIST is not set"), (self.slurm(""), "SLURM_JOB_NODELIST is empty"),
                          (self.slurm("n1", SLURM_HET_SIZE="2"), "SLURM_JOB_NODELIST_HET_GROUP_1 is not set")):
            with self.subTest(says):
                het = ["--het-group", "1"] if "SLURM_HET_SIZE" in env else []
                self.refused(2, "plan", *het, "--", "/bin/true", env=env, says=["SLURM_JOB_ID is 17", says, "squeue -h -j 17", "--hostfile"])
        self.assertEqual(self.plan(env=self.env(SLURM_JOB_ID="17", SLURM_NODELIST=HOST))["hosts"], [HOST])  # the old name
        self.assertEqual(self.plan(env=self.env(SLURM_JOB_ID="17", SLURM_JOB_NUM_NODES="1"))["hosts"], [HOST])

    def test_fewer_nodes_are_named(self):
        self.program("srun")
        plan = self.plan(*COUNTS, "--ppn", "1", "-N", "2", env=self.slurm("n[1-3]"))
        self.assertIn("--nodelist=n1,n2", plan["argv"])

    def test_one_node_that_is_this_one_needs_no_srun(self):
        self.program("srun")
        plan = self.plan("-n", "1", env=self.slurm(HOST))
        self.assertEqual((plan["launcher"], plan["hosts"]), ("local", [HOST]))

    def test_a_host_file_goes_first(self):
        self.program("srun")
        plan = self.plan(*COUNTS, "--ppn", "1", "--hostfile", self.file("hosts", "a\nb\n"), env=self.slurm("n[1-3]"))
        self.assertEqual(plan["hosts"], ["a", "b"])
        self.assertIn("--nodelist=a,b", plan["argv"])


class Pbs(Job):
    PALS = "echo 'Usage: mpiexec [global_options] [command_options] cmd1'"

    def nodes(self, text, **extra):
        return self.env(PBS_JOBID="1.server", PBS_NODEFILE=self.file("nodefile", text), **extra)

    def test_mpiexec_is_asked_who_it_is(self):
        mpiexec = self.program("mpiexec", self.PALS)
        plan = self.plan(*COUNTS, env=self.nodes("x1\nx2\n"))
        self.assertEqual((plan["launcher"], plan["argv"][0], plan["hosts"]), ("pals", mpiexec, ["x1", "x2"]))
        self.assertEqual(self.started(), ["mpiexec --version"])

    def test_hosts_are_passed_where_the_list_repeats_them(self):
        self.program("mpiexec", self.PALS)
        self.assertNotIn("--hosts", self.plan(*COUNTS, "--ppn", "1", env=self.nodes("x1\nx2\n"))["argv"])
        argv = self.plan(*COUNTS, env=self.nodes("x1\nx1\nx2\nx2\n"))["argv"]
        self.assertEqual(argv[argv.index("--hosts") + 1], "x1,x2")
        self.assertEqual(argv[argv.index("--np") + 1], "4")


class Flux(Job):
    def flux(self, answer, **extra):
        program = self.program("flux", answer)
        return program, self.env(FLUX_URI="local:///run/flux/local", **extra)

    def test_the_instance_names_its_nodes(self):
        program, env = self.flux("""[ $1 != resource ] || echo '{"execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-1"}}], "nodelist": ["f[1-2]"]}}'""")
        plan = self.plan(*COUNTS, "--ppn", "1", env=env)
        self.assertEqual((plan["hosts"], plan["launcher"], plan["argv"][:2]), (["f1", "f2"], "flux", [program, "run"]))
        self.assertEqual(self.started(), ["flux getattr jobid", "flux resource R --states=up"])

    def test_the_innermost_one_counts(self):
        self.program("srun")
        _, env = self.flux("echo f1,f2", SLURM_JOB_ID="1", SLURM_JOB_NODELIST="n[1-8]")
        plan = self.plan(*COUNTS, "--ppn", "1", env=env)
        self.assertEqual((plan["hosts"], plan["launcher"]), (["f1", "f2"], "flux"))

    def test_an_instance_that_does_not_answer(self):
        _, env = self.flux("echo 'flux-hostlist: ERROR: no broker' >&2; exit 1")
        self.refused(2, "plan", "--", "/bin/true", env=env, says=["no broker", "--nodes 1"])
        self.assertEqual(self.plan("--nodes", "1", env=env)["hosts"], [HOST])
        plan = self.plan(*COUNTS, "--ppn", "1", env=dict(env, SLURM_JOB_ID="1", SLURM_JOB_NODELIST="n[1-2]"))
        self.assertEqual(plan["hosts"], ["n1", "n2"])

    def test_without_an_instance_flux_is_not_started(self):
        self.program("flux")
        self.assertEqual(self.plan("-n", "1", env=self.env())["launcher"], "local")
        self.assertEqual(self.started(), [])


class OfTheProfile(Job):
    def setUp(self):
        super().setUp()
        self.two = ("--hostfile", self.file("hosts", "a\nb\n"), "--ppn", "1", *COUNTS)

    def test_taken_unasked(self):
        mpiexec = self.program("mpiexec")
        for words in self.two, ("-n", "1"):
            plan = self.plan(*self.profile("pals"), *words, env=self.env())
            self.assertEqual((plan["launcher"], plan["argv"][0]), ("pals", mpiexec))
        self.assertEqual(self.started(), [])

    def test_evidently_another_one(self):
        other = self.program("mpiexec.hydra")
        os.symlink(other, os.path.join(self.bin, "mpiexec"))
        self.refused(127, "run", *self.profile("pals"), *self.two, "--", "/bin/true", env=self.env(),
                     says=["launcher pals is not on PATH", self.bin + "/mpiexec", "hydra"])
        self.assertEqual(self.plan(*self.profile("pals"), *self.two, env=self.env())["argv"][0], "mpiexec")
        self.assertEqual(self.started(), [])

    def test_not_here(self):
        words = (*self.profile("slurm"), *self.two)
        self.refused(127, "run", *words, "--", "/bin/true", env=self.env(), says=["launcher slurm is not on PATH"])
        plan = self.plan(*words, env=self.env())
        self.assertEqual((plan["launcher"], plan["argv"][0]), ("slurm", "srun"))

    def test_one_node_goes_on_without_it(self):
        plan = self.plan(*self.profile("slurm"), "-n", "1", env=self.env())
        self.assertEqual(plan["launcher"], "local")
        done = self.ok(hpclaunch("run", *self.profile("slurm"), "-n", "1", "--", "/bin/echo", "ran", env=self.env()))
        self.assertEqual(done.out, "ran\n")

    def test_what_was_typed_goes_first(self):
        self.program("mpiexec")
        srun = self.program("srun")
        plan = self.plan(*self.profile("pals"), *self.two, "--launcher", "slurm", env=self.env())
        self.assertEqual(plan["argv"][0], srun)
        self.assertEqual(self.plan(*self.profile("pals"), "-n", "1", "--launcher", "local", env=self.env())["launcher"], "local")


class Typed(Job):
    def test_a_plan_for_a_machine_that_has_it(self):
        words = ("--hostfile", self.file("hosts", "a\nb\n"), "--ppn", "1", *COUNTS)
        for name, program in ("pals", "mpiexec"), ("slurm", "srun"), ("flux", "flux"), ("hydra", "mpiexec.hydra"):
            with self.subTest(name):
                self.assertEqual(self.plan("--launcher", name, *words, env=self.env())["argv"][0], program)
                self.refused(127, "run", "--launcher", name, *words, "--", "/bin/true", env=self.env(), says=["launcher %s is not on PATH" % name])

    def test_a_path(self):
        srun = self.program("srun")  # says nothing when asked, and is what its name says
        plan = self.plan("--launcher", srun, "-n", "1", env=self.env())
        self.assertEqual(plan["launcher"], "slurm")

    def test_an_unknown_name(self):
        self.refused(2, "plan", "--launcher", "slrum", "--", "/bin/true", says=["unknown launcher \"slrum\"", "--launcher slurm"])


if __name__ == "__main__":
    support.main()
