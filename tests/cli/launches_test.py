#!/usr/bin/env python3
"""Launches that share a job: what each says of the others, and what --free leaves to them.

Running launches are real ones, or records that this test holds as a launch does (src/sys/held.cpp).
"""
import fcntl
import json
import os
import re
import signal
import subprocess
import time

import support
from support import HOST, Test, clean_env, hpclaunch, machine, need

GPUS = ("--topology", machine("documented/dgx-h100.xml"), "--profile", "none", "--launcher", "local")
JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_NNODES": "3", "SLURM_JOB_NUM_NODES": "3"}
SLURM = ("--topology", machine("documented/dgx-h100.xml"), "--profile", "none", "--launcher", "slurm", "--bind-via", "shim")


def cpus_of(text):
    found = set()
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


class Launches(Test):
    def setUp(self):
        super().setUp()
        self.env = clean_env(XDG_RUNTIME_DIR=self.folder)
        self.held = []

    def tearDown(self):
        for fd in self.held:
            os.close(fd)
        super().tearDown()

    def records(self):
        folder = self.folder + "/hpclaunch/launches"
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def hold(self, plan, job="none 0", program="python train.py"):
        """A launch of this plan that runs."""
        folder = self.folder + "/hpclaunch/launches"
        os.makedirs(folder, 0o700, exist_ok=True)
        os.chmod(self.folder + "/hpclaunch", 0o700)
        nodes, at = [], 0
        for run in plan["layout"]:
            ranks = plan["classes"][run["node_class"]]["ranks"]
            hosts = plan["hosts"][at:at + run["nodes"]]
            at += run["nodes"]
            devices = [[one["device"], one["subdevice"] if one["subdevice"] is not None else -1]
                       for rank in ranks for one in [rank, *rank["more_units"]] if one["device"] is not None]
            cpus = ",".join(rank["cpus"] for rank in ranks if rank["cpus"])
            nodes.append({"hosts": ",".join(hosts), "cpus": cpus, "unbound": not cpus, "devices": devices})
        number = 900000 + len(self.held)
        fd = os.open("%s/%d" % (folder, number), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, json.dumps({"job": job, "pid": number, "program": program, "started": number, "ranks": plan["world_size"], "nodes": nodes}).encode())
        self.held.append(fd)

    def plan(self, *words, **env):
        done = hpclaunch("plan", "--json", *words, "--", "/bin/true", env=dict(self.env, **env))
        self.assertIn(done.status, (0, 1), str(done))
        plan = json.loads(done.out)
        plan["err"] = "".join("%(severity)s: %(message)s [%(id)s]\ntry: %(fix)s\n" % one for one in plan["diagnostics"])
        return plan

    def refused(self, *words, says, **env):
        done = hpclaunch("plan", *words, "--", "/bin/true", env=dict(self.env, **env))
        self.assertEqual(done.status, 2, str(done))
        self.has(done, *says)

    def test_eight_launches_share_a_node_of_eight_gpus(self):
        """Each has another device, with the cores that a rank has where all have one; the ninth is refused."""
        whole = self.plan(*GPUS, "-n", "8")["classes"][0]["ranks"]
        used, devices = set(), []
        for number in range(8):
            plan = self.plan(*GPUS, "-n", "1", "--free")
            rank, = plan["classes"][0]["ranks"]
            cpus = cpus_of(rank["cpus"])
            self.assertFalse(cpus & used, "launch %d: %s" % (number, rank))
            same = next(one for one in whole if one["device"] == rank["device"])
            self.assertEqual(rank["cpus"], same["cpus"])
            self.assertNotIn("shared-with-launch", plan["err"])
            used |= cpus
            devices.append(rank["device"])
            mask = [one["history"][-1]["value"] for one in plan["env"] if one["name"] == "CUDA_VISIBLE_DEVICES"]
            self.assertEqual(mask, [str(rank["device"])])
            self.hold(plan)
        self.assertEqual(sorted(devices), list(range(8)))
        self.refused(*GPUS, "-n", "1", "--free", says=["--free: no core of %s is free" % HOST, "launch 900000 (python train.py)"])

    def test_twelve_launches_on_cores(self):
        words = ("--topology", machine("documented/epyc-9654-2x.xml"), "--profile", "none", "--launcher", "local", "-n", "1", "--cpus-per-rank", "2", "--free")
        used = set()
        for _ in range(12):
            plan = self.plan(*words)
            cpus = cpus_of(plan["classes"][0]["ranks"][0]["cpus"])
            self.assertFalse(cpus & used)
            used |= cpus
            self.hold(plan)

    def test_uneven_launches(self):
        self.hold(self.plan(*GPUS, "-n", "3", "--free"))
        plan = self.plan(*GPUS, "-n", "2", "--devices-per-rank", "2", "--free")
        self.hold(plan)
        rest = self.plan(*GPUS, "--free")
        self.assertEqual(rest["world_size"], 1)
        self.refused(*GPUS, "-n", "2", "--ranks-per-device", "1", "--free", says=["1 of 8 devices is free beside launch 900000"])

    def test_nodes_without_a_launch_come_first(self):
        first = self.plan(*SLURM, "-N", "1", "-n", "1", "--free", **JOB)
        self.assertEqual(first["hosts"], ["n1"])
        self.hold(first, "slurm 7")
        second = self.plan(*SLURM, "-N", "1", "-n", "1", "--free", **JOB)
        self.assertEqual(second["hosts"], ["n2"])
        self.assertIn("--nodelist=n2", second["argv"])
        self.assertNotIn("--overlap", second["argv"])
        self.assertEqual(self.plan(*SLURM, "--free", **JOB)["hosts"], ["n2", "n3"])
        self.hold(second, "slurm 7")
        both = self.plan(*SLURM, "-N", "2", "--ppn", "1", "--free", **JOB)  # one of the two is in use
        self.assertEqual(both["hosts"], ["n1", "n3"])
        self.assertIn("--overlap", both["argv"])
        self.assertNotIn(first["classes"][0]["ranks"][0]["device"], [rank["device"] for rank in both["classes"][0]["ranks"]])
        self.assertEqual(self.plan(*SLURM, "-N", "3", "--ppn", "1", "--free", **JOB)["hosts"], ["n1", "n2", "n3"])

    def test_what_two_launches_both_use_is_said(self):
        self.hold(self.plan(*SLURM, "-N", "1", "-n", "1", **JOB), "slurm 7")
        plan = self.plan(*SLURM, "-N", "1", "-n", "1", **JOB)
        self.assertRegex(plan["err"], r"warning: launch 900000 \(python train\.py\) uses GPU \d and CPUs [\d,-]+ of n1 as well; the ranks start when it has ended \[shared-with-launch\]")
        self.assertIn("try: --free takes what is free", plan["err"])
        self.assertNotIn("--overlap", plan["argv"])
        for other in (dict(JOB, SLURM_JOB_ID="8"), {}):  # another job, or none
            words = SLURM if other else GPUS
            self.assertNotIn("shared-with-launch", self.plan(*words, "-N", "1", "-n", "1", **other)["err"])

    def test_lists_that_have_nothing_in_common(self):
        self.hold(self.plan(*SLURM, "-N", "1", "-n", "1", "--devices-per-rank", "0", "--cpu-bind", "0-3", **JOB), "slurm 7")
        plan = self.plan(*SLURM, "-N", "1", "-n", "1", "--devices-per-rank", "0", "--cpu-bind", "4-7", **JOB)
        self.assertNotIn("shared-with-launch", plan["err"])
        self.assertIn("--overlap", plan["argv"])
        plan = self.plan(*SLURM, "-N", "1", "-n", "1", "--devices-per-rank", "0", "--cpu-bind", "3-6", **JOB)
        self.assertIn("uses CPU 3 of n1 as well", plan["err"])

    def test_a_launch_that_died_leaves_nothing_behind(self):
        self.hold(self.plan(*GPUS, "-n", "8"))
        self.refused(*GPUS, "-n", "1", "--free", says=["--free: no core"])
        os.close(self.held.pop())
        self.assertEqual(self.plan(*GPUS, "-n", "8", "--free")["world_size"], 8)
        self.assertEqual(self.records(), [])

    def test_records_of_others_do_no_harm(self):
        self.hold(self.plan(*GPUS, "-n", "1"))
        for number, text in enumerate((b"", b"{", b"[]", b'{"job": "none 0"}', b"\xff" * 100)):
            fd = os.open("%s/hpclaunch/launches/%d" % (self.folder, number), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)
            os.write(fd, text)
            self.held.append(fd)
        self.assertIn("shared-with-launch", self.plan(*GPUS, "-n", "1")["err"])

    def begun(self, *words):
        """A launch whose ranks print where they run, and wait."""
        child = subprocess.Popen([support.HPCLAUNCH, "run", "--launcher", "local", "--oversubscribe", *words, "--", "/bin/sh", "-c",
                                  "grep Cpus_allowed_list /proc/self/status; exec sleep 1000"],
                                 env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, child)
        return child, child.stdout.readline().decode().split()[-1]

    def end(self, child):
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        child.communicate(timeout=support.LIMIT)

    def test_launches_that_run(self):
        """Real ones: started at once, said, gone with their process, however it ends."""
        need("sleep")
        one, cpus = self.begun("-n", "1")
        self.assertEqual(self.records(), [str(one.pid)])
        with open("%s/hpclaunch/launches/%d" % (self.folder, one.pid)) as file:
            record = json.load(file)
        self.assertEqual([record["job"], record["pid"], record["ranks"], record["program"]], ["none 0", one.pid, 1, "sh"])
        self.assertEqual(cpus_of(record["nodes"][0]["cpus"]), cpus_of(cpus))
        two, _ = self.begun("-n", "1")
        self.end(two)
        one.kill()
        one.wait()
        limit = time.monotonic() + support.LIMIT
        while self.records():  # until the guard has ended the ranks
            self.assertLess(time.monotonic(), limit, self.records())
            self.plan("-n", "1")
        done = self.ok(hpclaunch("run", "--launcher", "local", "-n", "1", "--free", "--", "/bin/true", env=self.env))
        self.assertNotIn("shared-with-launch", done.err)
        self.assertEqual(self.records(), [])

    def test_launches_plan_one_after_the_other(self):
        os.mkdir(self.folder + "/hpclaunch", 0o700)
        turn = os.open(self.folder + "/hpclaunch/planning", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(turn, fcntl.LOCK_EX)
        child = subprocess.Popen([support.HPCLAUNCH, "run", "--launcher", "local", "-n", "1", "--", "/bin/echo", "ran"], env=self.env,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, child)
        limit = time.monotonic() + support.LIMIT
        while not self.waits(child.pid):
            self.assertIsNone(child.poll(), "it has not waited")
            self.assertLess(time.monotonic(), limit)
        self.assertEqual(self.records(), [])
        fcntl.flock(turn, fcntl.LOCK_UN)
        os.close(turn)
        self.assertEqual(child.communicate(timeout=support.LIMIT)[0], b"ran\n")

    def waits(self, pid):
        """The process watches for the end of another one's turn."""
        folder = "/proc/%d/fd" % pid
        for name in os.listdir(folder):
            try:
                if os.readlink(os.path.join(folder, name)) == "anon_inode:inotify":
                    return True
            except OSError:
                pass
        return False

    def test_the_second_is_told(self):
        need("sleep")
        one, _ = self.begun("-n", "1")
        done = self.ok(hpclaunch("run", "--launcher", "local", "-n", "1", "--", "/bin/true", env=self.env))
        self.assertRegex(done.err, r"launch %d \(sh\) uses CPU.* of %s as well \[shared-with-launch\]" % (one.pid, re.escape(HOST)))

    def test_the_launcher_holds_the_record_where_nobody_waits_for_it(self):
        need("mpiexec.hydra")
        child = subprocess.Popen([support.HPCLAUNCH, "run", "--launcher", "hydra", "--no-supervise", "-n", "1", "--", "/bin/sh", "-c", "echo up; exec sleep 1000"],
                                 env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, child)
        self.assertEqual(child.stdout.readline(), b"up\n")
        done = self.ok(hpclaunch("run", "--launcher", "local", "-n", "1", "--", "/bin/true", env=self.env))
        self.assertIn("launch %d (sh) uses CPU" % child.pid, done.err)


if __name__ == "__main__":
    support.main()
