#!/usr/bin/env python3
"""--mps: NVIDIA's MPS for ranks that share a GPU. The daemon is a stand-in, and the GPU is a profile's."""
import glob
import json
import os
import signal
import subprocess
import sys
import time

import support
from support import HOST, Test, clean_env, hpclaunch

support.idle_stdin()
STANDIN = os.path.join(support.ROOT, "tests", "cli", "standins", "nvidia-cuda-mps-control")
FOLDERS = "/dev/shm/hpclaunch-mps-%d-" % os.getuid()
SHOW = "import os, time; print(os.environ['RANK'], os.environ['CUDA_MPS_PIPE_DIRECTORY'], os.path.exists(os.environ['CUDA_MPS_PIPE_DIRECTORY']" \
       " + '/nvidia-cuda-mps-control.pid'), flush=True)"


def profile(gpus=1):
    return {"schema": 1, "name": "shared", "doc": "one GPU that is not there", "defaults": {},
            "nodes": [{"name": "compute", "doc": "all cores in one NUMA node", "use": "model", "packages": 1,
                       "cores_per_numa": max(os.sched_getaffinity(0)) + 1,
                       "devices": {"vendor": "nvidia", "model": "fake", "memory_mb": 1000, "list": [{"numa": 0}] * gpus}}]}


class Mps(Test):
    def setUp(self):
        super().setUp()
        with open(STANDIN) as file:
            self.file("bin/nvidia-cuda-mps-control", "#!%s -IS\n%s" % (sys.executable, file.read()), 0o755)
        self.events = os.path.join(self.folder, "events")
        self.env = clean_env(MPS_EVENTS=self.events, PATH=os.path.join(self.folder, "bin") + ":" + os.environ["PATH"])

    def words(self, *words, mps="on", program=(sys.executable, "-I", "-S", "-c", SHOW), gpus=1):
        file = self.file("shared.json", json.dumps(profile(gpus)))
        return ["-n", "2", "--oversubscribe", "--verify", "off", "--profile", file,
                *(["--mps", mps] if mps else []), *words, "--", *program]

    def launch(self, *words, fault="", **more):
        launcher = [] if "--launcher" in words else ["--launcher", "local"]
        return hpclaunch("run", *launcher, *self.words(*words, **more), env={**self.env, "MPS_FAULT": fault})

    def happened(self):
        with open(self.events) as file:
            return [line.split(" ", 1)[1] for line in file.read().splitlines()]

    def processes(self):
        """Of this test: they have its events file in their environment."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    if self.events.encode() in file.read() and int(name) != os.getpid():
                        found.append(name)
            except OSError:
                pass
        return found

    def nothing_left(self, before=()):
        end = time.monotonic() + support.LIMIT
        while self.processes() or set(glob.glob(FOLDERS + "*")) - set(before):
            self.assertLess(time.monotonic(), end, (self.processes(), glob.glob(FOLDERS + "*")))
            time.sleep(0.1)


class Daemon(Mps):
    def test_is_there_before_the_ranks_and_gone_after_them(self):
        for fault in ("", "late"):
            self.env["CUDA_VISIBLE_DEVICES"] = "0"
            done = self.ok(self.launch(fault=fault))
            ranks = sorted(line.split() for line in done.out.splitlines())
            self.assertEqual([(rank, there) for rank, _, there in ranks], [("0", "True"), ("1", "True")], str(done))
            self.assertEqual(len({folder for _, folder, _ in ranks}), 1)
            self.assertTrue(ranks[0][1].startswith(FOLDERS), str(done))
            # The local launcher ends what ranks leave with SIGTERM; elsewhere the daemon is told to quit.
            self.assertEqual(self.happened()[:2], ["start all", "get_server_list"])
            self.assertEqual(glob.glob(ranks[0][1]), [])
            self.nothing_left()
            os.remove(self.events)

    def test_after_a_program_that_fails(self):
        self.ok(self.launch(program=["/bin/sh", "-c", "exit 3"]), 3)
        self.nothing_left()

    def started(self):
        child = subprocess.Popen([support.HPCLAUNCH, "run", "--launcher", "local", *self.words(program=["/bin/sh", "-c", "echo up; exec sleep 600"])],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.env)
        for _ in range(2):
            self.assertEqual(child.stdout.readline(), b"up\n")
        self.addCleanup(child.stdout.close)
        return child

    def stopped(self, number, status):
        child = self.started()
        child.send_signal(number)
        self.assertEqual(child.wait(support.LIMIT), status)

    def test_after_an_interrupt(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            self.stopped(number, status)
            self.nothing_left()

    def test_after_a_kill(self):
        self.stopped(signal.SIGKILL, -9)
        self.nothing_left(glob.glob(FOLDERS + "*"))  # a directory, which the next launch removes
        self.ok(self.launch())
        self.nothing_left()

    def test_one_that_does_not_listen_is_killed(self):
        self.ok(self.launch(fault="deaf"))
        self.nothing_left()

    def test_hydra_too(self):
        support.need("mpiexec.hydra")
        done = self.ok(self.launch("--launcher", "hydra"))
        self.assertEqual(done.out.count("True"), 2, str(done))
        self.assertEqual(self.happened(), ["start all", "get_server_list", "quit"])
        self.nothing_left()
        self.ok(self.launch("--launcher", "hydra", program=["/bin/sh", "-c", "kill -9 $$"]), 137)
        self.nothing_left()


class Failing(Mps):
    def fails(self, *words, says, **more):
        done = self.ok(self.launch(*words, **more), 125)
        self.assertEqual(done.out, "", str(done))
        self.has(done, "hpclaunch: --mps on: node %s: " % HOST, says)
        self.nothing_left()

    def test_it_is_not_there(self):
        os.remove(os.path.join(self.folder, "bin", "nvidia-cuda-mps-control"))
        self.fails(says="nvidia-cuda-mps-control is not on PATH")

    def test_it_refuses(self):
        self.fails(fault="refuse", says="ended with status 1: An instance of this daemon is already running")

    def test_it_ends_at_once(self):
        self.fails(fault="die", says="the daemon ended at once")

    def test_it_is_never_ready(self):
        self.fails("--start-timeout", "1", fault="never", says="not ready after 1 s")


class Choice(Mps):
    def choice(self, *words, env=None, **more):
        plan = self.json("plan", *self.words(*words, **more), env={**self.env, **(env or {})})
        found = [c["value"] for c in plan["choices"] if c["name"] == "mps"]
        names = [setting["name"] for setting in plan["env"]]
        self.assertEqual("CUDA_MPS_PIPE_DIRECTORY" in names and not env, found == ["on"])
        return found, [one for one in plan["reports"] if one["id"] == "mps"]

    def test_who_decides(self):
        self.assertEqual(self.choice(), (["on"], []))
        self.assertEqual(self.choice(mps="off"), (["off"], []))
        for typed in ("auto", None):
            found, reports = self.choice(mps=typed)
            self.assertEqual((found, [one["fix"].split(",")[0] for one in reports]), ([], ["--mps on"]))

    def test_the_profile(self):
        file = {"defaults": {"mps": "on"}}
        words = self.words(mps="auto")
        at = words.index("--profile") + 1
        with open(words[at], "w") as out:
            json.dump({**profile(), **file}, out)
        done = self.ok(hpclaunch("run", *words, env=self.env))
        self.assertEqual(done.out.count("True"), 2, str(done))
        self.has(self.ok(hpclaunch("explain", *words[:words.index("--")], "mps", env=self.env)), "on", "the profile of shared says so")
        own = self.ok(hpclaunch("explain", *words[:words.index("--")], "mps", env={**self.env, "CUDA_MPS_PIPE_DIRECTORY": "/mine"}))
        self.has(own, "off", "names a daemon of yours: /mine")

    def test_nothing_to_share(self):
        found, reports = self.choice(gpus=2)
        self.assertEqual((found, [one["fix"] for one in reports]), ([], ["omit it"]))
        self.assertEqual(self.choice(gpus=2, mps="auto"), ([], []))

    def test_instances_of_one_gpu(self):
        node = self.json("topo")
        node["devices"] = [{"index": 0, "vendor": "nvidia", "model": "A100", "pci": "0000:01:00.0", "numa": 0, "partition": "MIG",
                            "instances": ["MIG-11111111-aaaa", "MIG-22222222-bbbb"]}]
        words = ["--topology", self.file("node.json", json.dumps(node)), "-n", "2", "--oversubscribe", "--launcher", "local"]
        plan = self.json("plan", *words, "--mps", "on", "--", "/bin/true")
        mask = [one["value"]["per_rank"] for one in plan["env"] if one["name"] == "CUDA_VISIBLE_DEVICES"]
        self.assertEqual(mask, [[["MIG-11111111-aaaa", "MIG-22222222-bbbb"]]])
        fixes = {one["id"]: one["fix"] for one in plan["reports"] if one["id"] in ("mps", "mig-nccl")}
        self.assertEqual(fixes, {"mps": "omit it",
                                 "mig-nccl": "back end gloo or mpi, or one rank per GPU"})
        self.assertEqual([one for one in plan["env"] if "MPS" in one["name"]], [])
        self.refused(2, "plan", *words, "--devices-per-rank", "2", "--", "/bin/true", says=["a process can use one instance only"])
        alone = self.json("plan", *words[:2], "-n", "1", "--launcher", "local", "--", "/bin/true")
        self.assertNotIn("mig-nccl", [one["id"] for one in alone["reports"]])

    def test_a_dry_run_starts_none(self):
        done = self.ok(hpclaunch("run", "--dry-run", "--launcher", "local", *self.words(), env=self.env))
        self.has(done, "NVIDIA's MPS is left out: hpclaunch run --mps on starts it")
        self.assertNotIn("hpclaunch-mps", done.out)


if __name__ == "__main__":
    support.main()
