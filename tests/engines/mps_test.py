#!/usr/bin/python3
"""--mps on two virtual nodes of a real Slurm, with a stand-in for NVIDIA's daemon: one on each node, and nothing stays."""
import json
import os
import shutil
import sys

import engines
from engines import support

FOLDER = "/dev/shm/hpclaunch-mps-%d-" % os.getuid()
STANDIN = os.path.join(support.ROOT, "tests", "cli", "standins", "nvidia-cuda-mps-control")
SHOW = "import os, sys; print(os.uname().nodename, os.path.exists(os.environ['CUDA_MPS_PIPE_DIRECTORY'] + '/nvidia-cuda-mps-control.pid'))"


class Mps(engines.Test):
    nodes = 2

    def setUp(self):
        super().setUp()
        self.own_nodes()
        os.mkdir(os.path.join(self.folder, "bin"))
        shutil.copy(STANDIN, os.path.join(self.folder, "bin"))
        self.events = os.path.join(self.folder, "events")
        self.env = self.cluster.environment("login", MPS_EVENTS=self.events)
        self.env["PATH"] = os.path.join(self.folder, "bin") + ":" + self.env["PATH"]

    def launch(self, *program, fault=""):
        shared = {**engines.PROFILE, "nodes": [json.loads(json.dumps(engines.PROFILE["nodes"][0]))]}
        shared["nodes"][0]["devices"]["list"] = [{"numa": 0}]
        profile = self.file("shared.json", json.dumps(shared))
        self.env["MPS_FAULT"] = fault
        return self.allocation(2, "run", "--ppn", "2", "--oversubscribe", "--profile", profile, "--force", "--mps", "on", "--", *program,
                               env=self.env)

    def clean(self):
        for node in self.cluster.names:
            self.assertEqual(self.cluster.run(node, ["sh", "-c", "ls -d %s* 2>/dev/null" % FOLDER]).stdout, "", node)
        self.nothing_left()

    def test_one_daemon_on_each_node(self):
        done = self.ok(self.launch(sys.executable, "-c", SHOW))
        self.assertEqual(sorted(done.out.split("\n")[:-1]), sorted(node + " True" for node in self.cluster.names * 2), str(done))
        with open(self.events) as file:
            events = [line.split() for line in file]
        for node in self.cluster.names:
            self.assertEqual([words[1] for words in events if words[0] == node][:2], ["start", "get_server_list"])
        self.clean()

    def test_after_a_rank_that_fails(self):
        self.ok(self.launch("/bin/sh", "-c", '[ "$RANK" = 3 ] && exit 5; sleep 600'), 5)
        self.clean()

    def test_an_error_names_the_node(self):
        done = self.ok(self.launch("/bin/true", fault="refuse"), 125)
        self.assertRegex(done.err, "--mps on: node n[12]: nvidia-cuda-mps-control -d ended with status 1", str(done))
        self.clean()


if __name__ == "__main__":
    engines.main()
