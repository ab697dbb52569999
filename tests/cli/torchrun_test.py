#!/usr/bin/env python3
"""torchrun's command line: public lines of it with stand-ins as programs, how argparse reads them, and what each rank gets.

tests/data/torchrun_lines.json has, for each line, the repository with its commit and file, what is expected, and the options in the
source's order and spelling; values that a shell computes there are made up."""
import json
import os
import re
import shlex
import sys

import support
from support import HOST, ROOT, Test, clean_env, hpclaunch

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
         "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_USE_AGENT_STORE")
STAND_IN = """import json, os, sys
text = json.dumps([{name: os.environ.get(name) for name in %r}, sys.argv[1:]])
open(os.path.join(os.environ["INTO"], os.environ["RANK"] + ".json"), "w").write(text)
""" % (NAMES,)
REFUSED = {"nodes": "nodes requested, 1 available", "port": 'invalid value "master_port" for --master-port'}


class Case(Test):
    def setUp(self):
        super().setUp()
        self.script = self.file("stand_in.py", STAND_IN)
        os.makedirs(os.path.join(self.folder, "bin"))
        os.symlink(os.path.realpath(sys.executable), os.path.join(self.folder, "bin", "python"))
        self.count = 0

    def env(self, **extra):
        self.count += 1
        into = os.path.join(self.folder, "into%d" % self.count)
        os.mkdir(into)
        return clean_env(PATH=os.path.join(self.folder, "bin") + ":/usr/bin:/bin", INTO=into, PYTHONPATH=self.folder, **extra)

    def line(self, *words, status=0, **extra):
        """(done, [environment of each rank], arguments of the program)"""
        env = self.env(**extra)
        done = hpclaunch("torchrun", *words, env=env, cwd=self.folder)
        self.ok(done, status)
        ranks = {}
        for name in os.listdir(env["INTO"]):
            with open(os.path.join(env["INTO"], name)) as file:
                ranks[int(name[:-5])] = json.load(file)
        first = min(ranks, default=0)  # of this node
        self.assertEqual(sorted(ranks), list(range(first, first + len(ranks))), str(done))
        return done, [ranks[rank][0] for rank in sorted(ranks)], ranks[first][1] if ranks else None

    def refuse(self, *words, says, status=125, **extra):
        done, ranks, _ = self.line(*words, status=status, **extra)
        self.assertEqual(ranks, [])
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.err, str(done))
        return done


class PublicLines(Case):
    def test_all(self):
        with open(os.path.join(ROOT, "tests", "data", "torchrun_lines.json")) as file:
            lines = json.load(file)
        self.assertGreaterEqual(len(lines), 50)
        for source, expected, text in lines:
            with self.subTest(source):
                marks = {"@HOST@": HOST, "@PYTHON@": "python", "@LOGS@": os.path.join(self.folder, "logs"), "SCRIPT": self.script}
                for mark, value in marks.items():
                    text = text.replace(mark, value)
                words = shlex.split(text)
                if expected == "node":
                    self.node(words, text)
                    continue
                if expected != "run":
                    self.refuse(*words, says=REFUSED[expected])
                    continue
                done, ranks, arguments = self.line(*words)
                count = int(re.search(r"--nproc[-_]per[-_]node[ =](\d+)", text).group(1))
                self.assertEqual(len(ranks), count, str(done))
                for rank, one in enumerate(ranks):
                    self.assertEqual([one[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")], [str(rank), str(count)] * 2)
                for option, name in (("rdzv[-_]id", "TORCHELASTIC_RUN_ID"), ("role", "ROLE_NAME"), ("master[-_]port", "MASTER_PORT")):
                    typed = re.search(r"--%s[ =](\S+)" % option, text)
                    if typed:
                        self.assertEqual(ranks[0][name], typed.group(1))
                if text.endswith(("--depth=20", "--save-frequency 1")):
                    self.assertNotIn("--", arguments)  # as argparse
                self.assertNotIn("error", done.err)


    def node(self, words, text):
        """A line with the number of the node starts that node's ranks, and no others."""
        typed = lambda option: re.search(r"--%s[ =](\S+)" % option, text).group(1)
        nodes, node, each = int(typed("nnodes?")), int(typed("node[-_]rank")), int(typed("nproc[-_]per[-_]node"))
        done, ranks, _ = self.line(*words)
        self.assertNotIn("error", done.err)
        self.assertEqual([one["RANK"] for one in ranks], [str(node * each + local) for local in range(each)])
        for local, one in enumerate(ranks):
            self.assertEqual([one[name] for name in ("WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR")],
                             [str(nodes * each), str(local), str(each), str(node), str(nodes), typed("master[-_]addr")])


class Spellings(Case):
    def test_prefixes_and_letters(self):
        for words in (["--nproc", "2"], ["--nproc_per=2"], ["--nproc-per-n", "2"], ["--nproc_per_node", "2", "--nnode=1"], ["--nproc_per_node=3", "--nproc-per-node=2"],
                      ["-t3", "--nproc=2"], ["-t", "3", "--nproc=2"], ["-t=3", "--nproc=2"], ["--ppn", "2"], ["-n2"]):
            with self.subTest(words):
                self.assertEqual(len(self.line(*words, self.script)[1]), 2)
        self.assertEqual(len(self.line("--nproc=2", "-mt", "0", "stand_in")[1]), 2)
        self.refuse("--no", self.script, says=["--no is short for several options", "--node-rank or --no-python"])
        self.refuse("--n", "2", self.script, says="short for several options")

    def test_what_belongs_to_the_program(self):
        for words, arguments in (([self.script, "--nnodes", "9", "-h"], ["--nnodes", "9", "-h"]), ([self.script, "--", "a"], ["a"]),
                                 (["--", self.script, "--", "a"], ["--", "a"]), ([self.script, "a", "--", "b"], ["a", "--", "b"]), (["-m", "stand_in", "-x"], ["-x"])):
            with self.subTest(words):
                done, _, got = self.line(*words)
                self.assertEqual(got, arguments)
                self.assertEqual("removes the --" in done.err, words[:2] == [self.script, "--"])

    def test_bad_lines(self):
        for words, says in ((["--bogus", self.script], "torchrun has no option --bogus"), (["--nnods=2", self.script], "try: --nnodes"), (["-x", "A=1", self.script], "try: --env A=1"),
                            (["--nproc-per-node", self.script], "PROGRAM is missing"), (["--nproc-per-node", "0", self.script], "N, gpu, xpu, cpu or auto"),
                            (["--nnodes=2:1", self.script], "MIN:MAX"), (["--nnodes=1:2:3", self.script], "MIN:MAX"), (["--nnodes"], "needs a value"), ([], "PROGRAM is missing"),
                            (["--standalone=1", self.script], "takes no value"), (["-t", "0:3,12:1", self.script], "--tee"), (["-r", "4", self.script], "--redirects"),
                            (["--rdzv-backend=etcd", self.script], "static and c10d"), (["--logs-specs=x", self.script], "does not load"), (["--no-python", "-m", "x"], "contradict"),
                            (["--rdzv-endpoint=h:x", self.script], "a port from 0"), (["--max-restarts=-1", self.script], "--max-restarts"), (["--numa-binding=x", self.script], "core-complex"),
                            (["--nproc-per-node=gpu", self.script], "no device on this node"), (["--nproc-per-node=xpu", self.script], "no device on this node")):
            with self.subTest(words):
                self.refuse(*words, says=says)
        self.refuse("nothing-here.py", says="nothing-here.py", status=127)

    def test_defaults_in_the_environment(self):
        self.assertEqual(len(self.line(self.script, PET_NPROC_PER_NODE="2")[1]), 2)
        self.assertEqual(len(self.line("--nproc-per-node=3", self.script, PET_NPROC_PER_NODE="2")[1]), 3)
        self.assertEqual(self.line("stand_in", PET_MODULE="1", PET_RDZV_ID="x")[1][0]["TORCHELASTIC_RUN_ID"], "x")
        self.refuse(self.script, says='PET_STANDALONE="" must be 0 or 1', PET_STANDALONE="")
        self.refuse(self.script, says="2 nodes requested", PET_NNODES="2")


class Ranks(Case):
    def test_all_of_torchruns_variables(self):
        left = dict(RANK="9", WORLD_SIZE="9", LOCAL_RANK="9", MASTER_ADDR="192.0.2.9", MASTER_PORT="1", TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RUN_ID="old",
                    TORCHELASTIC_RESTART_COUNT="4", GROUP_RANK="3", ROLE_RANK="7")
        _, ranks, _ = self.line("--nproc-per-node=3", "--role=trainer", self.script, **left)
        for rank, one in enumerate(ranks):
            self.assertNotEqual(one.pop("MASTER_PORT"), "1")
            r = str(rank)
            self.assertEqual(one, dict(RANK=r, WORLD_SIZE="3", LOCAL_RANK=r, LOCAL_WORLD_SIZE="3", GROUP_RANK="0", GROUP_WORLD_SIZE="1", ROLE_NAME="trainer", ROLE_RANK=r,
                                       ROLE_WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", TORCHELASTIC_RUN_ID="0", TORCHELASTIC_RESTART_COUNT="0",
                                       TORCHELASTIC_MAX_RESTARTS="0", TORCHELASTIC_USE_AGENT_STORE="False"))

    def test_counted(self):
        cpus = len(os.sched_getaffinity(0))
        for word in ("cpu", "auto"):
            self.assertEqual(len(self.line("--nproc-per-node", word, self.script)[1]), cpus)
        for profile, word, ranks in (("perlmutter", "gpu", 4), ("perlmutter", "auto", 4), ("aurora", "xpu", 12)):
            done = hpclaunch("torchrun", "--dry-run", "--profile", profile, "--nnodes=2", "--nproc-per-node", word, self.script, env=self.env())
            self.ok(done)
            self.assertRegex(done.out, r"WORLD_SIZE=%d\b" % (2 * ranks))
        done = hpclaunch("torchrun", "--dry-run", "--profile", "aurora", "--nproc-per-node", "gpu", self.script, env=self.env())
        self.has(self.ok(done, 125), "the devices are of intel")

    def job(self, *words, status=0):
        """A line in a job of three nodes, of which this machine is the first."""
        hosts = self.file("hosts", HOST + "\nn2\nn3\n")
        done = hpclaunch("torchrun", "--dry-run", "--hostfile", hosts, "--launcher", "hydra", "--master-addr", "192.0.2.1", "--force", *words, self.script, env=self.env())
        self.ok(done, status)
        world = re.search(r"WORLD_SIZE=(\d+)", done.out)
        return done, int(world.group(1)) if world else None

    def test_nodes_of_the_job(self):
        for words, ranks, says in ((["--nnodes=3"], 3, None), (["--nnodes=2"], 2, "2 of 3 nodes used: --nnodes 2"), ([], 1, "1 of 3 nodes used: --nnodes is 1 by default"),
                                   (["--nnodes=1:4", "--rdzv-backend=c10d"], 3, None), (["--nnodes=1:2", "--rdzv-backend=c10d"], 2, "2 of 3 nodes"),
                                   (["--standalone"], 3, "--standalone is one node, and the job has 3 nodes"), (["--standalone", "-N1"], 1, None),
                                   (["--nnodes=3", "--node-rank=1"], 3, "--node-rank 1 is ignored"), (["--nnodes=3", "--node-rank=0"], 3, None),
                                   (["--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=n2:29400"], 3, "the endpoint n2 is not the first node"),
                                   (["--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29400"], 3, "the endpoint localhost is loopback"),
                                   (["--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=%s:29400" % HOST], 3, None)):
            with self.subTest(words):
                done, world = self.job(*words)
                self.assertEqual(world, ranks, str(done))
                said = re.findall(r"[^\n]*\[torchrun-\w+\]", done.err)
                self.assertEqual(len(said), 0 if says is None else 1, str(done))
                self.has(done, says or "")
        for words in (["--nnodes=4"], ["--nnodes=4:5", "--rdzv-backend=c10d"], ["--nnodes=1:4"]):
            self.has(self.job(*words, status=125)[0], "4 nodes requested, 3 available")

    def test_a_task_of_a_step(self):
        step = dict(SLURM_JOB_ID="7", SLURM_STEP_ID="0", SLURM_PROCID="1", SLURM_STEP_NUM_TASKS="4")
        self.refuse("--nproc-per-node=2", self.script, says=["[inside-a-rank]", "omit srun"], **step)
        self.assertEqual(len(self.line("--nproc-per-node=2", self.script, **dict(step, SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="1"))[1]), 2)

    def test_said(self):
        done, _, _ = self.line("--max-restarts=2", "--local-ranks-filter=0", "--rdzv-conf=store_type=file,timeout=9", "-r3", self.script)
        self.has(done, "--rdzv-conf: store_type has no effect", "--redirects without --log-dir")

    def test_output(self):
        logs = os.path.join(self.folder, "logs")
        talker = self.file("talk.py", "import os; print('hello', os.environ['RANK'])\n")
        done, _, _ = self.line("--nproc=2", "-t3", "-r3", "--log-dir", logs, talker)
        self.assertEqual(sorted(done.out.splitlines()), ["[0] hello 0", "[1] hello 1"])
        self.assertEqual(sorted(os.listdir(logs)), ["rank-0.log", "rank-1.log"])

    def test_status_is_the_ranks(self):
        self.line("--nproc=2", self.file("fail.py", "import os, sys; sys.exit(7 * int(os.environ['RANK']))\n"), status=7)


class OwnName(Case):
    def test_torchrun_hpclaunch(self):
        link = os.path.join(self.folder, "torchrun-hpclaunch")
        os.symlink(os.path.realpath(support.HPCLAUNCH), link)
        env = self.env()
        self.ok(support.execute([link, "--nproc_per_node=2", self.script], env))
        self.assertEqual(len(os.listdir(env["INTO"])), 2)
        self.assertIn("--nnodes", support.execute([link, "complete", "--", "--nn"]).out)
        self.assertIn("Usage: hpclaunch torchrun", support.execute([link, "--help"]).out)


class Run(Case):
    def test_modules_and_scripts(self):
        executable = self.file("own.py", "#!/bin/sh\necho mine\n", 0o755)
        for words, added in ((["-m", "stand_in", "-x"], True), ([self.script, "-x"], True), (["--", "-m", "stand_in", "-x"], True), ([executable], False)):
            with self.subTest(words):
                env = self.env()
                done = self.ok(hpclaunch("run", "-n", "1", *words, env=env, cwd=self.folder))
                self.assertEqual("[python-added]" in done.err, added, str(done))
                self.assertEqual(len(os.listdir(env["INTO"])), int(added))
        self.refused(125, "run", "-m", says=["-m needs the name"])
        self.refused(127, "run", "-m", "x", says=["no python or python3 found in PATH"], env=clean_env(PATH="/nonexistent"))

    def test_variables(self):
        file = self.file("job.env", "\ufeff# all\nA=1 # one\nexport B='${X} #'\nC=\"a\\tb\\n\\\"$D\"\r\nD=\nE= x y \n")
        env = self.env(F="from here", HOME="/nonexistent")
        done = self.ok(hpclaunch("run", "-n", "1", "--env-file", file, "--env", "F", "--env", "A=2", "--set", "D=4", "/usr/bin/env", "-0", env=env))
        got = support.entries(done.raw_out)
        self.assertEqual([got[name] for name in (b"A", b"B", b"C", b"D", b"E", b"F")], [b"2", b"${X} #", b'a\tb\n"$D', b"4", b"x y", b"from here"])
        self.has(self.ok(hpclaunch("explain", "--env-file", file, "B")), "--env-file %s:3" % file)
        self.refused(125, "run", "--env", "NOT_SET_HERE", "/bin/true", says=["--env NOT_SET_HERE: NOT_SET_HERE is not set"])

    def test_wrong_files(self):
        for text, says in (("A=1\n  B\n", ':2:3: "B" has no ='), ("1A=2", ':1:1: invalid variable name "1A"'), ("A='x", ":1:3: the quote ' is not closed"), ("\nA=\"x\" y", ":2:7: text behind"),
                           ("A=${HOME}", ":1:3: ${...} is not expanded"), ('A="${B}"', ":1:3: ${...}"), ("A='\0'", ":1:3: a value has a zero byte")):
            with self.subTest(text):
                self.refused(125, "run", "--env-file", self.file("x.env", text), "/bin/true", says=["x.env" + says])
        self.refused(125, "run", "--env-file", "/nonexistent/x", "/bin/true", says=["/nonexistent/x"])

    def test_options_of_other_launchers(self):
        for words, meant in ((["-np", "4"], "-n 4"), (["--nproc_per_node=8"], "--ppn 8"), (["--nnodes", "2"], "-N 2"), (["--ntasks", "8"], "-n 8"), (["--ntasks-per-node=4"], "--ppn 4"),
                             (["-x", "HF_TOKEN=secret"], "--env HF_TOKEN=<hidden>"), (["-hosts", "a,b"], "--hostfile FILE"), (["--mpi=pmi2"], "--launcher-arg=--mpi=pmi2"),
                             (["--gpus-per-task=1"], "--devices-per-rank 1"), (["-c", "4"], "--cpus-per-rank 4"), (["--rdzv-backend=c10d"], "hpclaunch torchrun [OPTIONS] SCRIPT")):
            with self.subTest(words):
                self.refused(125, "run", *words, "/bin/true", says=["unknown option " + words[0].split("=")[0], "try: %s\n" % meant])
        self.ok(hpclaunch("run", "-n1", "--launcher", "local", "/bin/echo", "-np", "4"))


if __name__ == "__main__":
    support.main()
