#!/usr/bin/env python3
"""run --profile-start: what is measured on each rank, what a program notices of it, what it says about staging."""
import glob
import json
import os
import signal
import subprocess
import sys

import support
from fakes import python_with_torch
from support import HOST, Test, clean_env, hpclaunch, need

support.idle_stdin()
PHASES = ["launch", "interpreter", "import", "rendezvous", "collective", "output"]
# Enough of torch.distributed for what is wrapped; SLOW is the time that the import waits. The rank BROKEN ends when another
# one has imported all: its end would be that of the other as well.
TORCH = {"__init__.py": "import os, time\ntime.sleep(float(os.environ.get('SLOW', 0)))\nready = os.path.dirname(__file__) + '/ready'\n"
                        "if os.environ.get('BROKEN') == os.environ['RANK']:\n"
                        "    while not os.path.exists(ready): time.sleep(0.01)\n"
                        "    raise SystemExit(4)\n",
         "distributed.py": "import os\n"
                           "def init_process_group(backend=None): 'doc of it'; open(os.path.dirname(__file__) + '/ready', 'w').close(); return backend\n"
                           "def all_reduce(x): return x + 1\ndef barrier(): return all_reduce(0)\n"}
TRAIN = "import torch\nimport torch.distributed as dist\nprint(dist.init_process_group('gloo'), dist.barrier(), dist.all_reduce(1))\n"


class Start(Test):
    def setUp(self):
        super().setUp()
        self.site = os.path.join(self.folder, "site")
        for name, text in TORCH.items():
            self.file("site/torch/" + name, text)
        self.times = os.path.join(self.folder, "times.json")

    def launch(self, *words, option=None, ranks=2, program=None, **env):
        command = program or [sys.executable, self.file("train.py", TRAIN)]
        return hpclaunch("run", "-n", str(ranks), "--oversubscribe", option or "--profile-start=" + self.times, *words, "--", *command,
                         env=clean_env(PYTHONPATH=self.site, **env))

    def profile(self):
        with open(self.times) as file:
            return json.load(file)

    def tearDown(self):
        self.assertEqual(glob.glob("/dev/shm/hpclaunch-start-%d-*/%s*" % (os.getuid(), "0")), [])

    def known(self, rank, *phases):
        """These and no others, none of them negative."""
        self.assertEqual([p for p in PHASES if rank[p] is not None], list(phases), rank)
        self.assertTrue(all(rank[p] >= 0 for p in phases if p != "launch"), rank)

    def two_nodes(self, *words):
        need("mpiexec.hydra")
        hosts = self.file("hosts", "nodeA\nnodeB\n")
        return ["--launcher", "hydra", "--hostfile", hosts, "--launcher-arg=-launcher", "--launcher-arg=fork", "--ppn", "1",
                "--master-addr", "198.51.100.1", *words]


class Measured(Start):
    def test_every_phase_of_every_rank(self):
        done = self.ok(self.launch())
        self.assertEqual(done.out.splitlines(), ["gloo 1 2"] * 2, str(done))
        self.has(done, "start of 2 ranks on 1 node", "launch to exec", "exec to Python", "import torch", "init_process_group",
                 "first collective", "exec to first output", "[start-import]")
        profile = self.profile()
        self.assertEqual(profile["schema"], 1)
        for number, rank in enumerate(profile["ranks"]):
            self.assertEqual((rank["rank"], rank["host"], rank["import_from"]), (number, HOST, os.path.join(self.site, "torch")))
            self.known(rank, *PHASES)
            self.assertLess(rank["interpreter"], rank["output"])
        self.assertEqual(sorted(profile["slowest"]), sorted(PHASES))
        self.assertIn(os.path.join(self.site, "torch"), profile["file_systems"])

    def test_real_torch(self):
        script = self.file("ddp.py", "import torch, torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n"
                           "dist.init_process_group('gloo')\nbefore = dist.all_reduce\nDistributedDataParallel(torch.nn.Linear(2, 2))\n"
                           "assert dist.all_reduce.__code__.co_filename.endswith('distributed_c10d.py'), dist.all_reduce\n"
                           "assert dist.init_process_group.__code__.co_filename.endswith('distributed_c10d.py')\n"
                           "dist.all_reduce(torch.ones(1))\n")
        self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--profile-start=" + self.times, "--", python_with_torch(), script))
        for rank in self.profile()["ranks"]:
            self.known(rank, *PHASES[:5])
            self.assertGreater(rank["import"], rank["import_ran"] / 2)
            self.assertGreater(rank["import_ran"], 0)

    def test_two_nodes_of_a_launcher(self):
        done = self.ok(self.launch(*self.two_nodes()))
        self.has(done, "start of 2 ranks on 2 nodes", "slowest rank of a node", "nodeA", "nodeB", "compares the clocks")
        for rank in self.profile()["ranks"]:
            self.known(rank, *PHASES)

    def test_the_job_report_has_it_and_a_table_needs_no_file(self):
        report = os.path.join(self.folder, "report.json")
        self.ok(self.launch("--report", report, option="--profile-start"))
        with open(report) as file:
            self.assertEqual(len(json.load(file)["start"]["ranks"]), 2)
        self.assertFalse(os.path.exists(self.times))

    def test_the_exit_status_stays_and_ranks_that_die_early_are_shown(self):
        done = self.ok(self.launch(BROKEN="1"), 4)
        first, second = self.profile()["ranks"]
        self.known(second, "launch", "interpreter")
        self.assertIsNotNone(first["import"])
        self.assertNotIn("exit status 4 (pid", done.err)

    def test_a_program_that_is_not_python(self):
        done = self.ok(self.launch(program=["/bin/sh", "-c", "echo one"]))
        self.has(done, "no rank started Python", "exec and first output only")
        for rank in self.profile()["ranks"]:
            self.known(rank, "launch", "output")

    def test_python_without_sitecustomize(self):
        done = self.ok(self.launch(program=[sys.executable, "-I", "-c", "pass"]))
        self.has(done, "-S, -I or -E")
        for rank in self.profile()["ranks"]:
            self.known(rank, "launch")

    def test_interrupted(self):
        words = ["run", "-n", "2", "--oversubscribe", "--profile-start=" + self.times, "--", sys.executable, "-c",
                 "import time; print('up', flush=True); time.sleep(600)"]
        child = subprocess.Popen([support.HPCLAUNCH, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=clean_env())
        for _ in range(2):
            self.assertEqual(child.stdout.readline(), b"up\n")
        child.send_signal(signal.SIGINT)
        err = child.communicate(timeout=support.LIMIT)[1].decode()
        self.assertEqual(child.returncode, 130, err)
        self.assertIn("exec to first output", err)
        for rank in self.profile()["ranks"]:
            self.known(rank, "launch", "interpreter", "output")


class Program(Start):
    def test_notices_nothing(self):
        self.file("site/sitecustomize.py", "import os\nos.environ['MINE'] = __file__\n")
        look = self.file("look.py", "import os, sys, json, sitecustomize\nprint(json.dumps([sorted(n for n in os.environ if n.startswith("
                         "'HPCLAUNCH_START')), os.environ['PYTHONPATH'], os.environ['MINE'], sitecustomize.__file__, sys.path[1], "
                         "[str(f) for f in sys.meta_path if 'Timed' in str(f)]]))\n")
        done = self.ok(self.launch(program=[sys.executable, look], ranks=1))
        mine = os.path.join(self.site, "sitecustomize.py")
        self.assertEqual(json.loads(done.out)[:5], [[], self.site, mine, mine, self.site], str(done))

    def test_an_error_of_its_own_sitecustomize_is_its_own(self):
        self.file("site/sitecustomize.py", "raise RuntimeError('mine')\n")
        done = self.ok(self.launch(ranks=1))
        self.has(done, "RuntimeError: mine")
        self.known(self.profile()["ranks"][0], *PHASES)

    def test_python_inside_of_it_is_not_measured_again(self):
        script = self.file("outer.py", "import subprocess, sys\nsubprocess.run([sys.executable, %r], check=True)\n" % self.file("train.py", TRAIN))
        self.ok(self.launch(program=[sys.executable, script], ranks=1))
        self.known(self.profile()["ranks"][0], "launch", "interpreter", "output")

    def test_path_that_is_typed_counts(self):
        self.ok(self.launch("--set", "PYTHONPATH=" + self.site, ranks=1))
        self.known(self.profile()["ranks"][0], *PHASES)

    def test_nothing_of_it_without_the_option(self):
        done = self.ok(hpclaunch("run", "-n", "1", "--", "/usr/bin/env"))
        self.assertNotIn("HPCLAUNCH_START", done.out)
        self.assertNotIn("PYTHONPATH", done.out)


class Advice(Start):
    def advice(self):
        return [one for one in self.profile()["diagnostics"] if one["id"] == "start-import"][0]

    def test_an_import_that_waits(self):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", os.path.join(self.folder, "venv")], check=True)
        done = self.ok(self.launch(SLOW="1.5", VIRTUAL_ENV=os.path.join(self.folder, "venv")))
        advice = self.advice()
        self.assertEqual((advice["severity"], advice["fix"]), ("warning", "--stage copy"), str(done))
        rank = self.profile()["ranks"][self.profile()["slowest"]["import"]]
        self.assertGreater(rank["import_waited"], 1.4)
        self.assertIn("staging would save up to", advice["message"])

    def test_an_import_that_computes(self):
        self.file("site/torch/__init__.py", "import time\nwhile time.thread_time() < 0.2: pass\n")
        self.ok(self.launch(ranks=1))
        self.assertEqual(self.advice()["severity"], "note")
        self.assertIn("staging would save at most", self.advice()["message"])

    def test_without_an_environment(self):
        self.ok(self.launch(SLOW="1.5", ranks=1))
        self.assertEqual(self.advice()["fix"], "--stage auto, with --venv DIR or --conda NAME")


class Refused(Start):
    def test_a_file_that_cannot_be_written(self):
        self.refused(125, "run", "--profile-start=/nonexistent/x", "--", "/bin/true", says=["--profile-start", "/nonexistent/x"])

    def test_no_supervise(self):
        self.refused(125, "run", *self.two_nodes(), "--profile-start", "--no-supervise", "--", "/bin/true",
                     says=["--no-supervise and --profile-start exclude each other"])

    def test_a_dry_run_measures_nothing(self):
        done = self.ok(hpclaunch("run", "-n", "1", "--dry-run", "--profile-start", "--", "/bin/true"))
        self.has(done, "Nothing is measured: hpclaunch run --profile-start does it")
        self.assertNotIn("HPCLAUNCH_START", done.out)


if __name__ == "__main__":
    support.main()
