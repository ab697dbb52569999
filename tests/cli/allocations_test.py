#!/usr/bin/env python3
"""Which nodes a job has, in fabricated jobs of every batch system, and jobs on parts of nodes. Launchers are stand-ins
that are never started here."""
import json
import os

import support
from support import HOST, Test, clean_env, hpclaunch, machine

NODE = ("--topology", machine("arm-80-nosmt.xml"))   # 80 cores, one hardware thread each
SMT = ("--topology", machine("xeon-2x52-smt2.xml"))


class Job(Test):
    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        for name in ("srun", "mpiexec.hydra"):
            self.file("bin/" + name, "#!/bin/sh\nexit 3\n", 0o755)

    def env(self, **extra):
        return clean_env(PATH=self.bin, **extra)

    def plan(self, *words, env, launcher="hydra", node=NODE):
        return self.json("plan", "--profile", "none", "--launcher", launcher, *node, *words, "--", "/bin/true", env=env)

    def no_plan(self, *words, env, says, launcher="hydra", node=NODE):
        return self.refused(2, "plan", "--profile", "none", "--launcher", launcher, *node, *words, "--", "/bin/true", env=env, says=says)

    def hosts_why(self, *words, env):
        done = self.ok(hpclaunch("explain", "--launcher", "hydra", *NODE, *words, "hosts", env=env))
        return " ".join(done.out.split())

    def ranks_on(self, plan):
        return [run["ranks_per_node"] for run in plan["layout"] for _ in range(run["nodes"])]


class Pbs(Job):
    def pbs(self, text, **extra):
        return self.env(PBS_JOBID="1.server", PBS_NODEFILE=self.file("nodefile", text), **extra)

    def test_a_line_per_node_or_per_rank(self):
        plan = self.plan("--ppn", "2", env=self.pbs("x1.site\nx2.site\n"))
        self.assertEqual((plan["hosts"], plan["world_size"]), (["x1.site", "x2.site"], 4))
        plan = self.plan(env=self.pbs("x2\nx2\nx1\nx2\n"))
        self.assertEqual((plan["hosts"], self.ranks_on(plan)), (["x2", "x1"], [3, 1]))

    def test_a_temporary_directory_that_other_nodes_lack(self):
        """PBS makes pbs.ID on a node where it starts a task; ranks that come by ssh would have a TMPDIR that is not there."""
        one, two = "x1\n", "x1\nx2\n"
        for launcher, nodes, folder, words, removed in (("hydra", two, "/var/tmp/pbs.1.server", [], True), ("hydra", two, "/scratch/pbs.1.server", [], True),
                                                        ("hydra", one, "/var/tmp/pbs.1.server", [], False), ("hydra", two, "/var/tmp/pbs.1.server", ["--nodes", "1"], False),
                                                        ("hydra", two, "/scratch/me", [], False), ("slurm", two, "/var/tmp/pbs.1.server", [], False)):
            with self.subTest(launcher=launcher, nodes=nodes, folder=folder, words=words):
                done = self.ok(hpclaunch("run", "--dry-run", "--profile", "none", "--launcher", launcher, *NODE, *words, "--", "/bin/true", env=self.pbs(nodes, TMPDIR=folder)))
                self.assertEqual("unset TMPDIR\n" in done.out, removed, done)
        done = self.ok(hpclaunch("explain", "--profile", "none", "--launcher", "hydra", *NODE, "TMPDIR", env=self.pbs(two, TMPDIR="/var/tmp/pbs.1.server")))
        self.assertIn("PBS makes it where it starts tasks itself", " ".join(done.out.split()))

    def test_the_file_is_on_the_first_node_only(self):
        env = self.env(PBS_JOBID="1.server", PBS_NODEFILE="/nonexistent/1.server")
        self.no_plan(env=env, says=["PBS_NODEFILE", "/nonexistent/1.server", "first node only", "--hostfile", "--nodes 1"])
        self.assertEqual(self.plan("--nodes", "1", env=env, launcher="local")["hosts"], [HOST])

    def test_a_damaged_file_names_its_line(self):
        self.no_plan(env=self.pbs("x1\nx2 what\n"), says=["nodefile:2", "what"])
        self.no_plan(env=self.pbs("\n"), says=["it is empty"])

    def test_a_job_that_names_no_file_is_said(self):
        self.assertIn("PBS_NODEFILE is not", self.hosts_why("--profile", "none", env=self.env(PBS_JOBID="1")))


    def test_variables_of_other_systems_are_leftovers(self):
        """A shell of a Slurm job or an LSF job that has submitted this one: its srun would go to its own nodes."""
        self.file("bin/jsrun", "#!/bin/sh\nexit 3\n", 0o755)
        self.file("bin/mpiexec.hydra", "#!/bin/sh\necho HYDRA build details: Version: 4.0.2\n", 0o755)
        env = self.pbs("x1\nx2\n", SLURM_JOB_ID="17", SLURM_JOB_NODELIST="n[1-4]", LSB_JOBID="3", LSB_HOSTS="h1 h2")
        plan = self.json("plan", "--profile", "none", *NODE, "--ppn", "1", "--", "/bin/true", env=env)
        self.assertEqual((plan["launcher"], plan["hosts"]), ("hydra", ["x1", "x2"]))
        gone = [one["name"] for one in plan["env"] if one["value"] is None]
        self.assertEqual([name for name in gone if name.startswith("SLURM_")], ["SLURM_JOB_ID", "SLURM_JOB_NODELIST"])
        rule = {"id": "r", "why": "so", "when": {"in_job": "yes"}, "default": {"WHO": "${scheduler} ${job_id}"}}
        profile = self.file("site.json", json.dumps({"schema": 1, "name": "site", "doc": "x", "rules": [rule]}))
        done = self.ok(hpclaunch("env", "--profile", profile, "--launcher", "hydra", *NODE, "-n", "2", env=env))
        self.assertIn("export WHO='pbs 1.server'", done.out)

    def test_an_empty_number_is_no_job(self):
        env = self.env(PBS_JOBID="", PBS_NODEFILE="", SLURM_JOB_ID="", LSB_JOBID="", COBALT_JOBID="", COBALT_NODEFILE="/nonexistent")
        self.assertEqual(self.plan("-n", "1", env=env, launcher="local")["hosts"], [HOST])


    def test_threads_that_pbs_sets(self):
        """OMP_NUM_THREADS is NCPUS in every job, the user's where the job asked for ompthreads."""
        select, counts = "2:ncpus=8", {}
        for name, ncpus, asked in (("alike", "8", ""), ("asked", "8", ":ompthreads=8"), ("whole", "80", ":ompthreads=80"), ("silent", "8", None)):
            text = "echo \"$*\" >> %s/calls\n" % self.folder
            text += "exit 1" if asked is None else "printf 'Job Id: 1.server\\n    job_state = R\\n    Resource_List.select = %s%s\\n'" % (select, asked)
            self.file("bin/qstat", "#!/bin/sh\n%s\n" % text, 0o755)
            env = self.pbs("n1\nn2\n", NCPUS=ncpus, OMP_NUM_THREADS=ncpus)
            setting, = [one for one in self.plan("--ppn", "4", env=env)["env"] if one["name"] == "OMP_NUM_THREADS"]
            counts[name] = setting["history"][-1]["value"], [one["layer"] for one in setting["history"]]
        self.assertEqual(counts, {"alike": ("20", ["batch system", "builtin"]), "asked": ("8", ["builtin", "environment"]),
                                  "whole": ("20", ["batch system", "builtin"]), "silent": ("20", ["batch system", "builtin"])})
        with open(self.folder + "/calls") as file:
            self.assertEqual(file.read().splitlines(), ["-f 1.server"] * 3)


class Lsf(Job):
    def test_three_ways_to_name_hosts(self):
        path = self.file("djob", "h1\nh1\nh2\nh2\n")
        for extra in ({"LSB_DJOB_HOSTFILE": path}, {"LSB_HOSTS": "h1 h1 h2 h2"}, {"LSB_MCPU_HOSTS": "h1 2 h2 2 "},
                      {"LSB_DJOB_HOSTFILE": "/nonexistent", "LSB_MCPU_HOSTS": "h1 2 h2 2"}):
            with self.subTest(extra):
                plan = self.plan(env=self.env(LSB_JOBID="7", **extra))
                self.assertEqual((plan["hosts"], self.ranks_on(plan)), (["h1", "h2"], [2, 2]))

    def test_slots_are_cores_where_there_are_devices(self):
        node = self.file("gpu.json", json.dumps(dict(self.json("topo", *NODE, status=0), devices=[
            {"index": i, "vendor": "nvidia", "numa": 0} for i in range(4)])))
        plan = self.plan(env=self.env(LSB_JOBID="7", LSB_MCPU_HOSTS="h1 40 h2 40"), node=("--topology", node))
        self.assertEqual(self.ranks_on(plan), [4, 4])

    def test_lists_that_cannot_be_read(self):
        for extra, says in (({}, "LSB_MCPU_HOSTS"), ({"LSB_MCPU_HOSTS": "h1 2 h2"}, "without its number"), ({"LSB_MCPU_HOSTS": "h1 x"}, "\"x\""),
                            ({"LSB_DJOB_HOSTFILE": "/nonexistent"}, "/nonexistent"), ({"LSB_HOSTS": " "}, "it is empty")):
            with self.subTest(extra):
                self.no_plan(env=self.env(LSB_JOBID="7", **extra), says=[says, "try: "])

    def test_the_launch_node_is_told_by_evidence(self):
        env = self.env(LSB_JOBID="7", LSB_MCPU_HOSTS="batch1 1 h1 42 h2 42")
        self.assertEqual(self.plan("--ppn", "1", env=env)["hosts"], ["batch1", "h1", "h2"])
        self.assertIn("lsf_launch_node", self.hosts_why("--profile", "none", env=env))
        self.file("bin/jsrun", "#!/bin/sh\nexit 3\n", 0o755)
        self.assertEqual(self.plan("--ppn", "1", env=env)["hosts"], ["h1", "h2"])
        self.assertIn("without batch1, a launch node", self.hosts_why("--profile", "none", env=env))
        uneven = self.env(LSB_JOBID="7", LSB_MCPU_HOSTS="h1 1 h2 42 h3 7")
        self.assertEqual(self.plan("--ppn", "1", env=uneven)["hosts"], ["h1", "h2", "h3"])

    def test_the_profile_knows_better(self):
        self.file("bin/jsrun", "#!/bin/sh\nexit 3\n", 0o755)
        for flag, hosts, want in ((True, "a 8 b 8 c 8", ["b", "c"]), (False, "a 1 b 8 c 8", ["a", "b", "c"]), (True, "a 8", ["a"])):
            profile = self.file("site.json", json.dumps({"schema": 1, "name": "site", "doc": "x", "scheduler": "lsf", "lsf_launch_node": flag}))
            plan = self.json("plan", "--profile", profile, "--launcher", "hydra", *NODE, "--ppn", "1", "--", "/bin/true",
                             env=self.env(LSB_JOBID="7", LSB_MCPU_HOSTS=hosts))
            self.assertEqual(plan["hosts"], want)


class Others(Job):
    def test_cobalt(self):
        env = self.env(COBALT_JOBID="5", COBALT_NODEFILE=self.file("nodes", "c1\nc2\n"))
        self.assertEqual(self.plan("--ppn", "1", env=env)["hosts"], ["c1", "c2"])
        self.no_plan(env=dict(env, COBALT_NODEFILE="/nonexistent"), says=["COBALT_NODEFILE", "Cobalt"])

    def test_sge(self):
        env = self.env(JOB_ID="5", PE_HOSTFILE=self.file("pe", "s1.site 2 all.q@s1 <NULL>\ns2.site 3 all.q@s2 UNDEFINED\n"))
        plan = self.plan(env=env)
        self.assertEqual((plan["hosts"], self.ranks_on(plan)), (["s1.site", "s2.site"], [2, 3]))
        self.assertEqual(self.plan("-n", "1", env=self.env(JOB_ID="5"), launcher="local")["hosts"], [HOST])

    def test_what_is_not_a_host_is_refused_with_file_and_line(self):
        name, line = "n1\n%s\n" % ("a" * 800000), "n1\n%s 4\n" % ("b" * 50000000)
        for text, says in ((name, "a line of 800000 bytes (at most 4096)"), (line, "a line of 50000002 bytes"), ("n1\n%s\n" % ("a" * 300), "a name of 300 bytes"),
                           ("n1\n%s.org\n" % ("a" * 64), "a label of 64 bytes (at most 63)")):
            path = self.file("nodes", text)
            for words, env in ((["--hostfile", path], {}), ([], {"PBS_JOBID": "1.server", "PBS_NODEFILE": path}), ([], {"JOB_ID": "5", "PE_HOSTFILE": path}),
                               ([], {"LSB_JOBID": "7", "LSB_DJOB_HOSTFILE": path}), ([], {"COBALT_JOBID": "5", "COBALT_NODEFILE": path})):
                with self.subTest(says=says, env=env):
                    done = self.no_plan(*words, env=self.env(**env), says=[says, path + ":2", "try: write one host per line"])
                    self.assertLess(len(done.err), 1000)

    def test_rules_can_ask_for_each_scheduler(self):
        rule = {"id": "r", "why": "so", "when": {"in_job": "yes"}, "default": {"WHO": "${scheduler} ${job_id}"}}
        profile = self.file("site.json", json.dumps({"schema": 1, "name": "site", "doc": "x", "rules": [rule]}))
        for want, extra in (("lsf 7", {"LSB_JOBID": "7", "LSB_HOSTS": "h1"}), ("sge 8", {"JOB_ID": "8", "PE_HOSTFILE": self.file("pe", "h1 1 q\n")}),
                            ("cobalt 9", {"COBALT_JOBID": "9", "COBALT_NODEFILE": self.file("c", "h1\n")})):
            done = self.ok(hpclaunch("env", "--profile", profile, "--launcher", "hydra", *NODE, "-n", "1", env=self.env(**extra)))
            self.assertIn("export WHO='%s'" % want, done.out)


class Slurm(Job):
    def slurm(self, nodes="n[1-2]", **extra):
        return self.env(SLURM_JOB_ID="17", SLURM_JOB_NODELIST=nodes, **extra)

    def parts(self, plan):
        """Per node: (granted, [(first, last)])."""
        nodes = []
        for run in plan["layout"]:
            one = plan["classes"][run["node_class"]]
            nodes += [(one["granted"], [(r["part"]["first"], r["part"]["last"]) if r["part"] else None for r in one["ranks"]])] * run["nodes"]
        return nodes

    def test_parts_of_nodes_that_differ(self):
        env = self.slurm(SLURM_JOB_CPUS_PER_NODE="2,8")
        plan = self.plan("-n", "5", env=env, launcher="slurm")
        self.assertEqual(self.parts(plan), [(2, [(0, 0), (1, 1)]), (8, [(0, 2), (3, 5), (6, 7)])])
        self.assertEqual(plan["bind_via"], "shim")
        self.assertIn("--cpu-bind=none", plan["argv"])
        threads = [s["value"] for s in plan["env"] if s["name"] == "OMP_NUM_THREADS"]
        self.assertEqual(threads, [{"per_rank": [["1", "1"], ["3", "3", "2"]]}])
        text = self.ok(hpclaunch("plan", "--profile", "none", "--launcher", "slurm", *NODE, "-n", "5", "--", "/bin/true", env=env)).out
        self.assertIn("on 1 node, 2 ranks each on 2 CPUs granted: n1\n", text)
        self.assertIn("3-5 of the 8 granted\n", text)

    def test_tasks_follow_what_slurm_dealt(self):
        env = self.slurm("n[1-3]", SLURM_JOB_CPUS_PER_NODE="2,8(x2)", SLURM_NTASKS="18", SLURM_TASKS_PER_NODE="2,8(x2)")
        self.assertEqual(self.ranks_on(self.plan(env=env, launcher="slurm")), [2, 8, 8])

    def test_a_rank_needs_a_core(self):
        env = self.slurm(SLURM_JOB_CPUS_PER_NODE="2,8")
        self.no_plan("--ppn", "3", env=env, says=["3 ranks requested on n1, 2 cores granted", "--oversubscribe"])
        self.no_plan("-n", "11", env=env, says=["10 cores granted in all", "--ranks 10"])
        self.assertEqual(self.plan("--ppn", "3", "--oversubscribe", env=env, launcher="slurm")["world_size"], 6)

    def test_whole_nodes_and_other_lists_are_no_parts(self):
        for cpus in ("80(x2)", "96(x2)", "2", "2,2,2", "x"):
            plan = self.plan("--ppn", "1", env=self.slurm(SLURM_JOB_CPUS_PER_NODE=cpus), launcher="slurm")
            self.assertEqual([c["granted"] for c in plan["classes"]], [None], cpus)

    def test_cores_of_several_threads(self):
        env = self.slurm(SLURM_JOB_CPUS_PER_NODE="4,8")
        plan = self.plan("--ppn", "2", env=env, launcher="slurm", node=SMT)
        self.assertEqual(plan["bind_via"], "shim")
        self.assertEqual(self.parts(plan), [(4, [(0, 0), (1, 1)]), (8, [(0, 1), (2, 3)])])
        self.assertEqual([one["granted_cores"] for one in plan["classes"]], [2, 4])
        self.assertIn(":counted=0*104*1*2*104:", plan["wire"])
        text = self.ok(hpclaunch("plan", "--profile", "none", "--launcher", "slurm", *SMT, "--ppn", "2", "--", "/bin/true", env=env)).out
        self.assertIn("2-3 of the 4 granted cores\n", text)
        self.assertEqual(self.plan("--ppn", "2", env=self.slurm(SLURM_JOB_CPUS_PER_NODE="104(x2)"), launcher="slurm", node=SMT)["bind_via"], "launcher")

    def test_whole_nodes_beside_a_part_of_one(self):
        """More CPUs than cores are hardware threads; the whole node is placed by name, near its devices."""
        node = ["--topology", support.machine("documented/dgx-h100.xml")]
        plan = self.plan("--ppn", "4", env=self.slurm(SLURM_JOB_CPUS_PER_NODE="224,112"), launcher="slurm", node=node)
        self.assertEqual((plan["bind_via"], [one["granted_cores"] for one in plan["classes"]]), ("shim", [112, 56]))
        self.assertEqual([rank["cpus"] for rank in plan["classes"][0]["ranks"]], ["0-27,112-139", "28-55,140-167", "56-83,168-195", "84-111,196-223"])
        self.assertEqual(self.parts(plan)[1], (112, [(0, 13), (14, 27), (28, 41), (42, 55)]))

    def test_grants_go_by_the_names_of_a_host_file(self):
        env = self.slurm("n[1-4]", SLURM_JOB_CPUS_PER_NODE="64(x3),32")
        for hosts, granted in (("n1\nn2\nn3\nn4\n", [64, 64, 64, 32]), ("n4\nn2\n", [32, 64]), ("n3.site.org\nn4.site.org\n", [64, 32]), ("N4\n", [32]),
                               ("n4 slots=2\nn1 slots=1\n", [32, 64])):
            plan = self.plan("--hostfile", self.file("hosts", hosts), env=env, launcher="slurm")
            self.assertEqual([one for one, _ in self.parts(plan)], granted, hosts)
            self.assertEqual(plan["bind_via"], "shim")
        for hosts, granted in (("n2\n", [104]), ("n1\n", [None])):  # of 208 hardware threads, as the job's other node tells
            plan = self.plan("--ppn", "1", "--hostfile", self.file("hosts", hosts), env=self.slurm(SLURM_JOB_CPUS_PER_NODE="208,104"), launcher="slurm", node=SMT)
            self.assertEqual([one for one, _ in self.parts(plan)], granted, hosts)
        plan = self.plan("--ppn", "1", "--hostfile", self.file("hosts", "n1\nother\n"), env=env, launcher="slurm")
        self.assertEqual(self.parts(plan), [(None, [None])] * 2)

    def test_lists_for_other_nodes_are_named(self):
        for name, value, says in (("SLURM_JOB_CPUS_PER_NODE", "8(x3)", "it has counts for 3 nodes, and the job has 2"), ("SLURM_TASKS_PER_NODE", "4,4,2", "3 nodes"),
                                  ("SLURM_JOB_CPUS_PER_NODE", "8(y2)", '"8(y2)"')):
            env = self.slurm(**{"SLURM_NTASKS": "10", name: value})
            for words in ((), ("--hostfile", self.file("hosts", "n2\n"))):
                done = hpclaunch("plan", "--profile", "none", "--launcher", "slurm", *NODE, *words, "--ppn", "1", "--", "/bin/true", env=env)
                self.assertIn("ignoring %s=%s: " % (name, value), done.err)
                self.assertIn(says, done.err)

    def argv(self, *words, nodes, env):
        argv = self.plan(*words, env=self.slurm(nodes, **env), launcher="slurm")["argv"]
        return [word for word in argv[1:argv.index("--")] if word.split("=")[0] in ("--nodes", "--ntasks", "--ntasks-per-node", "--nodelist", "--distribution")]

    def test_uneven_ranks_and_hosts_in_another_order(self):
        tasks = {"SLURM_NTASKS": "5", "SLURM_TASKS_PER_NODE": "2(x2),1"}
        even = ["--distribution=block"]
        self.assertEqual(self.argv(nodes="n[1-3]", env=tasks), ["--nodes=3", "--ntasks=5"] + even)
        self.assertEqual(self.argv(nodes="n[1-3]", env=dict(tasks, SLURM_TASKS_PER_NODE="1,3,1")),
                         ["--ntasks=5", "--distribution=arbitrary", "--nodelist=n1,n2,n2,n2,n3"])
        hosts = self.file("hosts", "n2\nn1\n")
        self.assertEqual(self.argv("--hostfile", hosts, "--ppn", "2", nodes="n[1-3]", env={}),
                         ["--ntasks=4", "--distribution=arbitrary", "--nodelist=n2,n2,n1,n1"])
        hosts = self.file("hosts", "n1 slots=1\nn2 slots=3\n")
        self.assertEqual(self.argv("--hostfile", hosts, nodes="n[1-2]", env={}), ["--ntasks=4", "--distribution=arbitrary", "--nodelist=n1,n2,n2,n2"])
        env = self.slurm("n[1-3]", **dict(tasks, SLURM_TASKS_PER_NODE="1,3,1"))
        self.no_plan("--launcher-arg=--distribution=block", env=env, launcher="slurm", says=["srun distributes ranks evenly"])

    def test_fewer_cpus_than_cores_are_a_part(self):
        """Equal counts may be whole nodes that Slurm counts by cores; never where they are below the number of cores."""
        node = ["--topology", support.machine("documented/dgx-h100.xml")]  # 112 cores, 224 hardware threads
        for cpus, granted in ((8, 8), (110, 110), (112, None), (150, 150), (224, None)):
            plan = self.plan("--ppn", "4", env=self.slurm(SLURM_JOB_CPUS_PER_NODE="%d(x2)" % cpus), launcher="slurm", node=node)
            self.assertEqual([one["granted"] for one in plan["classes"]], [granted], cpus)
            self.assertEqual(plan["bind_via"], "shim" if granted else "launcher")
            threads = [one["value"] for one in plan["env"] if one["name"] == "OMP_NUM_THREADS"]
            self.assertEqual(threads, [{8: "1", 110: {"per_rank": [["14", "14", "14", "13"]]}, 150: {"per_rank": [["19", "19", "19", "18"]]}}.get(cpus, "28")])

    def het(self, **extra):
        return self.slurm("n[1-2]", SLURM_HET_SIZE="2", SLURM_JOB_NODELIST_HET_GROUP_0="n[1-2]", SLURM_JOB_NODELIST_HET_GROUP_1="g[1-4]",
                          SLURM_NTASKS="2", SLURM_TASKS_PER_NODE="1(x2)", **extra)

    def test_a_heterogeneous_job_wants_a_component(self):
        self.no_plan(env=self.het(), launcher="slurm", says=["heterogeneous", "0 (n[1-2]), 1 (g[1-4])", "--het-group 0"])
        for words in (("--het-group", "1"), ("--launcher-arg=--het-group=1",)):
            plan = self.plan(*words, "--ppn", "1", env=self.het(), launcher="slurm")
            self.assertEqual((plan["hosts"], plan["argv"].count("--het-group=1")), (["g1", "g2", "g3", "g4"], 1))
        plan = self.plan("--het-group", "0", env=self.het(SLURM_NTASKS_HET_GROUP_0="4", SLURM_TASKS_PER_NODE_HET_GROUP_0="2(x2)"), launcher="slurm")
        self.assertEqual((plan["hosts"], self.ranks_on(plan)), (["n1", "n2"], [2, 2]))
        self.assertEqual(self.ranks_on(self.plan("--het-group", "1", env=self.het(), launcher="slurm")), [1, 1, 1, 1])

    def test_components_that_are_not_there(self):
        self.no_plan("--het-group", "2", env=self.het(), says=["no component 2", "0 (n[1-2])"])
        self.no_plan("--launcher-arg=--het-group=0,1", env=self.het(), says=["one number"])
        self.no_plan("--het-group", "0", env=self.slurm(), says=["not heterogeneous"])
        parts = self.het(SLURM_JOB_CPUS_PER_NODE="2,8", SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1="8(x3),4")
        plan = self.plan("--het-group", "1", "--ppn", "1", env=parts, launcher="slurm")
        self.assertEqual([granted for granted, _ in self.parts(plan)], [8, 8, 8, 4])


class Quota(Test):
    def test_the_time_of_one_cpu(self):
        for quota in ("1", "none"):
            plan = self.json("plan", "--profile", "none", "-n", "1", "--", "/bin/true", env=clean_env(HPCLAUNCH_CPU_QUOTA=quota))
            limits = quota == "1" and len(os.sched_getaffinity(0)) > 1
            self.assertEqual(plan["bind_via"], "none" if limits else "shim")
            self.assertEqual("cpu-quota" in [one["id"] for one in plan["diagnostics"]], limits)
            if quota == "1":
                self.assertEqual([one["value"] for one in plan["env"] if one["name"] == "OMP_NUM_THREADS"], ["1"])


class DevicesPerRank(Job):
    def test_two_devices_for_each_rank(self):
        profile = ("--profile", "polaris")
        plan = self.json("plan", *profile, "--devices-per-rank", "2", "-N", "1", "--", "/bin/true", env=self.env())
        ranks = plan["classes"][0]["ranks"]
        self.assertEqual([len(r["more_units"]) for r in ranks], [1, 1])
        mask = [s["value"]["per_rank"][0] for s in plan["env"] if s["name"] == "CUDA_VISIBLE_DEVICES"][0]
        self.assertEqual(sorted(unit for entry in mask for unit in entry.split(",")), ["0", "1", "2", "3"])
        text = self.ok(hpclaunch("plan", *profile, "--devices-per-rank", "2", "-N", "1", "--", "/bin/true", env=self.env()), 0).out
        self.assertIn("2 per rank", text)
        done = hpclaunch("plan", *profile, "--devices-per-rank", "3", "-N", "1", "--", "/bin/true", env=self.env())
        self.has(done, "devices-left", "unused")
        self.refused(2, "plan", *profile, "--devices-per-rank", "2", "--ranks-per-device", "2", "--", "/bin/true", env=self.env(), says=["exclude each other"])
        self.refused(2, "plan", *profile, "--devices-per-rank", "2", "--gpu-view", "all", "--", "/bin/true", env=self.env(), says=["--gpu-view all"])

    def cores(self, *words, env=None):
        plan = self.json("plan", *words, "-N", "1", "--", "/bin/true", env=env or self.env())
        return [rank["cores"] for rank in plan["classes"][0]["ranks"]]

    def test_a_rank_has_the_cores_near_each_of_its_devices(self):
        for site, devices, cores in (("frontier", 8, 56), ("lumi-g", 8, 56), ("perlmutter", 4, 64), ("polaris", 4, 32), ("aurora", 12, 102)):
            for each in (n for n in range(2, devices + 1) if devices % n == 0):
                with self.subTest(site=site, each=each):
                    ranks = devices // each
                    shares = self.cores("--profile", site, "--devices-per-rank", str(each))
                    self.assertEqual((len(shares), sum(shares), max(shares) - min(shares)), (ranks, cores, 1 if cores % ranks else 0))

    def groups(self, *words):
        plan = self.json("plan", "-N", "1", *words, "--", "/bin/true", env=self.env())
        return [(rank["device"], *(unit["device"] for unit in rank["more_units"]), rank["cpus"]) for rank in plan["classes"][0]["ranks"]]

    def test_groups_have_their_own_cores_and_stay_together(self):
        self.assertEqual(self.groups("--profile", "perlmutter", "--devices-per-rank", "2"), [(3, 2, "0-31,64-95"), (1, 0, "32-63,96-127")])
        self.assertEqual([group[:2] for group in self.groups("--profile", "aurora", "--device-mode", "gpu", "-n", "2", "--devices-per-rank", "2")], [(0, 1), (3, 4)])
        tpx = ("--profile", "none", "--topology", machine("devices/mi300a-tpx.xml"), "--devices-per-rank", "2")
        self.assertEqual([group[:2] for group in self.groups(*tpx, "-n", "1")], [(0, 1)])
        self.assertEqual([group[:2] for group in self.groups(*tpx, "-n", "2")], [(0, 1), (3, 4)])

    def test_idle_cores_are_named(self):
        done = hpclaunch("plan", "--profile", "frontier", "-N", "1", "--ppn", "4", "--", "/bin/true", env=self.env())
        self.has(done, "[idle-cores]", "28 of 56 cores are idle", "--cpus-per-rank 14")
        self.assertNotIn("idle-cores", hpclaunch("plan", "--profile", "aurora", "-N", "1", "--", "/bin/true", env=self.env()).err)

    def test_first_threads_of_each_core(self):
        plan = self.json("plan", "--profile", "perlmutter", "-N", "1", "--threads-per-core", "1", "--", "/bin/true", env=self.env())
        self.assertEqual(sorted(rank["cpus"] for rank in plan["classes"][0]["ranks"]), ["0-15", "16-31", "32-47", "48-63"])

    def test_an_exported_mask_is_named(self):
        env = self.env(HIP_VISIBLE_DEVICES="3")
        done = hpclaunch("plan", "--profile", "frontier", "-N", "2", "-n", "16", "--", "/bin/true", env=env)
        self.has(done, "[mask-restricts]", "HIP_VISIBLE_DEVICES=3 selects 1 of the node's 8 devices", "unset HIP_VISIBLE_DEVICES")
        plan = self.json("plan", "--profile", "frontier", "-N", "2", "-n", "16", "--", "/bin/true", env=env)
        self.assertEqual(plan["gpu_view"], "own")
        self.assertEqual({rank["device"] for rank in plan["classes"][0]["ranks"]}, {3})
        self.assertIn("--gpus-per-node=8", plan["argv"])
        done = hpclaunch("plan", "--profile", "frontier", "-N", "2", "--gpu-view", "launcher", "--", "/bin/true", env=env)
        self.has(done, "[launcher-view]", "unset HIP_VISIBLE_DEVICES")

    def test_exported_cards_lead_to_the_device_mode(self):
        """A mask with the hierarchy that it is for: the mode counts as the mask does, unless one is typed."""
        def planned(mask, hierarchy, *options, **more):
            env = self.env(ZE_FLAT_DEVICE_HIERARCHY=hierarchy, **({"ZE_AFFINITY_MASK": mask} if mask else {}), **more)
            plan = self.json("plan", "--profile", "aurora", "-N", "1", *options, "--", "/bin/true", env=env)
            mode, = (one["value"] for one in plan["choices"] if one["name"] == "device-mode")
            masks = [one["value"] for one in plan["env"] if one["name"] == "ZE_AFFINITY_MASK"]
            return mode, [(rank["device"], rank["subdevice"]) for rank in plan["classes"][0]["ranks"]], masks
        whole = [(0, None)]
        tiles = [(0, 0), (0, 1)]
        for mask, hierarchy, options, want in (("0", "COMPOSITE", (), ("gpu", whole, ["0"])),
                                               ("0.0,0.1", "COMPOSITE", (), ("gpu", whole, ["0"])),
                                               ("0.1", "COMPOSITE", (), ("gpu", whole, ["0.1"])),
                                               ("0,1", "FLAT", (), ("tile", tiles, ["0,1"])),
                                               ("0,1", "COMBINED", (), ("tile", tiles, ["0,1"])),
                                               ("0", "COMPOSITE", ("--device-mode", "tile"), ("tile", tiles, ["0,1"])),
                                               ("0", "FLAT", ("--device-mode", "gpu"), ("gpu", whole, ["0.0"]))):
            with self.subTest(mask=mask, hierarchy=hierarchy, options=options):
                self.assertEqual(planned(mask, hierarchy, *options), want)
        # A module's default alone, and a mask that Slurm has written, leave the profile's mode.
        self.assertEqual(planned("", "COMPOSITE")[0], "tile")
        self.assertEqual(planned("0", "COMPOSITE", SLURM_JOB_GPUS="0")[0], "tile")
        done = hpclaunch("plan", "--profile", "aurora", "-N", "1", "--", "/bin/true", env=self.env(ZE_FLAT_DEVICE_HIERARCHY="COMPOSITE"))
        self.has(done, "[cards-exported]", "--device-mode gpu")

    def test_one_device_needs_a_device(self):
        self.refused(2, "plan", "--profile", "none", "--topology", machine("laptop-8.xml"), "--devices-per-rank", "1",
                     "--", "/bin/true", env=self.env(), says=["--devices-per-rank", "no known devices"])

    def test_none(self):
        plan = self.json("plan", "--profile", "polaris", "--devices-per-rank", "0", "-N", "1", "--ppn", "1", "--", "/bin/true", env=self.env())
        self.assertIsNone(plan["gpu_view"])
        self.assertEqual([s["value"] for s in plan["env"] if s["name"] == "CUDA_VISIBLE_DEVICES"], [""])


if __name__ == "__main__":
    support.main()
