#!/usr/bin/env python3
"""A row of data is all that a new engine, GPU model, server, batch system, platform, option, exclusion, word, retired name or known issue needs: added_test.py
HPCLAUNCH ADDED, the program, and the same objects with the rows of add_rows.py."""
import os
import subprocess
import sys
import tempfile
import unittest

HPCLAUNCH, ADDED = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]
JOB = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\n#SBATCH --time=1:00:00\n"


class Added(unittest.TestCase):
    def run_it(self, program, *words, **env):
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                                  env={"PATH": "/usr/bin:/bin", "HOME": home, **env})
        return done.stdout.decode()

    def plan(self, program, *words):
        return self.run_it(program, "plan", "--launcher", "local", "-n", "2", "--oversubscribe", "--", *words)

    def lint(self, program, lines):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.sh")
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(JOB + lines)
            return self.run_it(program, "lint", path)

    def compare(self, ask, expected):
        self.assertIn(expected, ask(ADDED))
        self.assertNotIn(expected, ask(HPCLAUNCH))

    def test_engine(self):
        line = "srun boxer enter --share /a img torchrun --nproc-per-node=4 t.py\n"
        self.compare(lambda program: self.lint(program, line), "[launcher-in-launcher]")
        line = "#SBATCH --gpus-per-node=b200:4\nsrun boxer enter img python t.py\n"
        self.compare(lambda program: self.lint(program, line), "fix: boxer enter --cards ...")
        self.assertNotIn("container-without-devices", self.lint(ADDED, line.replace("enter", "enter --cards")))
        self.compare(lambda program: self.plan(program, "boxer", "enter", "--share", "/a", "img", "torchrun", "t.py"),
                     "hpclaunch run -- boxer enter --share /a img python t.py")
        self.compare(lambda program: self.run_it(program, "run", "--container-engine", "none", "--container", "x", "--", "true"), "(boxer, apptainer")

    def test_platform(self):
        node = dict(CLOUDY_NODE="1", CLOUDY_NODES="2", CLOUDY_HEAD="10.0.0.1")
        self.compare(lambda program: self.run_it(program, "plan", "-v", "--", "true", **node), "node 1 of 2, started by Cloudy: CLOUDY_NODE=1")

    def test_gpu_model(self):
        line = "#SBATCH --gpus-per-node=z9000:4\nmodule load cuda\nsrun apptainer exec i.sif python t.py\n"
        found = "[container-without-devices]"
        self.assertIn(found, self.lint(HPCLAUNCH, line))  # by the module: a model that is not known
        self.assertNotIn(found, self.lint(ADDED, line))

    def test_server(self):
        self.compare(lambda program: self.plan(program, "serveall", "m"), "serveall serves a whole node")

    def test_options_that_exclude_one_another(self):
        self.compare(lambda program: self.lint(program, "#SBATCH --mem=4G\nsrun x\n"), "[options-exclude]")

    def test_option_of_a_batch_system(self):
        self.assertIn("[unknown-directive]", self.lint(HPCLAUNCH, "#SBATCH --moonlight=4\nsrun x\n"))
        self.assertNotIn("unknown-directive", self.lint(ADDED, "#SBATCH --moonlight=4\nsrun x\n"))

    def test_batch_system(self):
        words = ("script", "--scheduler", "queueup", "--launcher", "hydra", "-N", "2", "--ppn", "4", "--", "python", "t.py")
        self.compare(lambda program: self.run_it(program, *words), "#QUEUEUP --hosts 2\n#QUEUEUP --for 00:30:00\n")
        self.assertIn("Submit with: queueup FILE", self.run_it(ADDED, *words))
        self.compare(lambda program: self.run_it(program, "profile", "schema"), '"queueup"')
        with tempfile.TemporaryDirectory() as folder:
            hosts = os.path.join(folder, "hosts")
            with open(hosts, "w", encoding="utf-8") as handle:
                handle.write("n1\nn2\n")
            done = subprocess.run([ADDED, "plan", "--launcher", "hydra", "--ppn", "1", "--", "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=60, env={"PATH": "/usr/bin:/bin", "HOME": folder, "QUEUEUP_JOB": "7", "QUEUEUP_HOSTS": hosts})
            self.assertIn("n1:1,n2:1", done.stdout.decode())

    def test_retired_name(self):
        self.compare(lambda program: self.lint(program, "module load oldtool/1\nsrun x\n"), "oldtool: gone")

    def test_word_of_a_list(self):
        self.compare(lambda program: self.lint(program, "export NEW_CACHE_DIR=/tmp/cache\nsrun x\n"), "NEW_CACHE_DIR=/tmp/cache is the same for all users")

    def test_rule_of_launches(self):
        line = "export NEW_THING=on\nsrun -n 2 %s x\n"
        self.compare(lambda program: self.lint(program, line % ""), "NEW_THING without --new [aaa-new]")
        self.assertNotIn("aaa-new", self.lint(ADDED, line % "--new=thing"))

    def test_known_issue(self):
        self.compare(lambda program: self.lint(program, "module load nccl/9.9.9\nsrun python x.py\n"), "nccl 9.9.9 hangs.")


if __name__ == "__main__":
    unittest.main()
