#!/usr/bin/env python3
"""--agent: one process per node with all of it, told about the nodes by profiles/programs/launchers.json."""
import json
import os
import re
import sys
import unittest

import site_jobs
import support
from support import HOST, Test, clean_env, hpclaunch, need

LEFT = dict(RANK="5", WORLD_SIZE="9", LOCAL_RANK="5", TORCHELASTIC_RUN_ID="old", GROUP_RANK="3", TORCHELASTIC_USE_AGENT_STORE="True", PET_NNODES="7")


def first_interface():
    """An interface of this machine with an IPv4 address, which may be lo alone."""
    import fcntl
    import socket
    import struct
    for _, name in reversed(socket.if_nameindex()):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            try:
                answer = fcntl.ioctl(asked, 0x8915, struct.pack("256s", name.encode()))  # SIOCGIFADDR
            except OSError:
                continue
        if name != "lo":
            return name, socket.inet_ntoa(answer[20:24])
    raise unittest.SkipTest("this machine has no interface with an IPv4 address but lo")


class Agent(Test):
    def setUp(self):
        super().setUp()
        for name in ("torchrun", "accelerate", "vllm", "ray", "tune", "llamafactory-cli", "other"):
            self.file("bin/" + name, "#!/bin/sh\necho \"$0 $*\"\nenv | sort\ngrep Cpus_allowed_list /proc/self/status\n", 0o755)
        self.env = clean_env(PATH=os.path.join(self.folder, "bin") + ":/usr/bin:/bin", **LEFT)

    def start(self, *command, options=("--launcher", "local")):
        done = self.ok(hpclaunch("run", *options, "--agent", "--", *command, env=self.env))
        lines = done.out.splitlines()
        return os.path.relpath(lines[0], os.path.join(self.folder, "bin")), dict(line.split("=", 1) for line in lines[1:] if "=" in line), done

    def test_the_whole_node(self):
        _, env, done = self.start("other")
        cpus = re.search(r"Cpus_allowed_list:\s*(\S+)", done.out).group(1)
        self.assertEqual(support.cpu_list(cpus), os.sched_getaffinity(0))
        self.assertEqual({name for name in LEFT if name in env}, {"PET_NNODES"})
        self.assertEqual({name for name in env if name.startswith(("ROLE_", "TORCHELASTIC_")) or name.endswith("_NUM_THREADS")}, set())
        self.assertEqual([env[name] for name in ("NNODES", "NODE_RANK", "MASTER_ADDR", "HPCLAUNCH_NODE")], ["1", "0", "127.0.0.1", "0"])
        self.assertTrue(env["MASTER_PORT"])

    def test_by_variables(self):
        for command in (["torchrun", "--nproc_per_node", "2", "x.py"], ["tune", "run", "x"]):
            line, env, _ = self.start(*command)
            self.assertEqual(line, " ".join(command))
            self.assertEqual([env["PET_" + name] for name in ("NNODES", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "RDZV_ID")],
                             ["1", "0", env["MASTER_ADDR"], env["MASTER_PORT"], "0"])
        self.assertEqual(self.start("llamafactory-cli", "train", "x")[1]["RDZV_ID"], "0")

    def test_by_options(self):
        for command, line in ((["accelerate", "launch", "a b.py", "c"], "accelerate launch --num_machines=1 --machine_rank=0 --main_process_ip=127.0.0.1 --main_process_port=@ a b.py c"),
                              (["accelerate", "launch", "--num-machines", "3", "x"], "accelerate launch --machine_rank=0 --main_process_ip=127.0.0.1 --main_process_port=@ --num-machines 3 x"),
                              (["env", "A=$B", "vllm", "serve", "m", "--port", "3"], "vllm serve --nnodes=1 --node-rank=0 --master-addr=127.0.0.1 --master-port=@ m --port 3"),
                              (["ray", "start", "--block"], "ray start --head --port=@ --block")):
            with self.subTest(command):
                got, env, _ = self.start(*command)
                self.assertEqual(got, line.replace("@", env["MASTER_PORT"]))
                if command[0] == "env":
                    self.assertEqual(env["A"], "$B")

    def test_the_address_on_the_fabric(self):
        """What vLLM and Ray take for the node's address: that of the interface that the ranks meet on."""
        need("mpiexec.hydra")
        support.idle_stdin()
        self.addCleanup(setattr, support, "IDLE", False)
        interface, address = first_interface()
        hosts = self.file("hosts", "nodeA\nnodeB\n")
        options = ("--hostfile", hosts, "--launcher", "hydra", "--launcher-arg=-launcher", "--launcher-arg=fork", "--master-addr", "127.0.0.1", "--force")
        for name, want in ((interface, address), ("none0", None)):
            with self.subTest(name):
                _, env, done = self.start("vllm", "serve", "m", options=(*options, "--set", "GLOO_SOCKET_IFNAME=" + name))
                self.assertEqual((env.get("VLLM_HOST_IP"), env.get("HPCLAUNCH_NODE_ADDRESS")), (want, want))
                _, _, done = self.start("ray", "start", options=(*options, "--set", "GLOO_SOCKET_IFNAME=" + name))
                self.assertEqual(done.out.count("--node-ip-address=%s " % address), 2 if want else 0, done.out)
                self.assertNotIn("--node-ip-address= ", done.out)

    def test_two_nodes(self):
        need("mpiexec.hydra")
        support.idle_stdin()
        self.addCleanup(setattr, support, "IDLE", False)
        hosts = self.file("hosts", "nodeA\nnodeB\n")
        options = ("--hostfile", hosts, "--launcher", "hydra", "--launcher-arg=-launcher", "--launcher-arg=fork", "--master-addr", "127.0.0.1", "--force")
        for command, lines in ((["ray", "start"], ["ray start --address=127.0.0.1:@", "ray start --head --port=@"]),
                               (["torchrun", "x.py"], ["torchrun x.py"] * 2),
                               (["vllm", "serve", "m"], ["vllm serve --nnodes=2 --node-rank=%d --master-addr=127.0.0.1 --master-port=@ %sm" % one for one in ((0, ""), (1, "--headless "))])):
            with self.subTest(command):
                done = self.ok(hpclaunch("run", *options, "--agent", "--", *command, env=self.env))
                port = re.search(r"(?m)^MASTER_PORT=(\d+)", done.out).group(1)
                front = os.path.join(self.folder, "bin", "")
                got = sorted(line[len(front):] for line in done.out.splitlines() if line.startswith(front))
                self.assertEqual(got, [line.replace("@", port) for line in lines])
                self.assertEqual(sorted(re.findall(r"(?m)^NODE_RANK=(\d)", done.out)), ["0", "1"])
                if command[0] == "torchrun":
                    self.assertEqual(sorted(re.findall(r"(?m)^PET_(\w+=\d+)$", done.out)), ["MASTER_PORT=" + port] * 2 + ["NNODES=2"] * 2 + ["NODE_RANK=0", "NODE_RANK=1"] + ["RDZV_ID=0"] * 2)

    def test_devices(self):
        for profile, devices in (("perlmutter", 4), ("frontier", 8)):
            done = self.ok(hpclaunch("run", "--dry-run", "--agent", "--profile", profile, "-N", "2", "--", "torchrun", "x.py", env=self.env))
            self.assertIn("export PET_NPROC_PER_NODE=%d\n" % devices, done.out)
            self.assertIn("export PET_NNODES=2\n", done.out)
            self.assertRegex(done.out, r"--cpu-bind=none")
            self.assertNotRegex(done.out, r"(?m)^export \w*(VISIBLE_DEVICES|NUM_THREADS)")
            self.assertNotIn("idle-cores", done.err)

    def planned(self, node, env, *command, options=("--launcher", "local")):
        """Variables that decide about devices, as an agent on that node finds them, and what was said."""
        env = {name: value for name, value in {**self.env, **env}.items() if name not in LEFT}
        plan = self.json("plan", "--profile", "none", *options, "--topology", node, "--agent", "--", *command or ("other",), env=env)
        found = {name: value for name, value in env.items() if "VISIBLE" in name or name in ("ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL")}
        for one in plan["env"]:
            if "VISIBLE" in one["name"] or one["name"] in ("ZE_AFFINITY_MASK", "JAX_LOCAL_DEVICE_IDS", "PET_NPROC_PER_NODE"):
                found[one["name"]] = one["value"]
        return {name: value for name, value in found.items() if value is not None}, plan

    def test_one_mask_of_what_is_granted(self):
        cores = {}

        def machine(name, as_file, change=None):
            node = self.json("topo", "--topology", support.machine(name))
            for device in node["devices"]:
                (change or (lambda device: None))(device)
            path = self.file("nodes/%s.json" % as_file, json.dumps(node))
            cores[path] = len(node["cores"])
            return path

        def split(device):
            device["uuid"] = "GPU-%d0" % device["index"]
            if device["index"] == 1:
                device["partition"], device["instances"] = "MIG", ["MIG-10", "MIG-11"]
        amd, nvidia, intel = (machine("devices/%s.xml" % name, name) for name in ("mi250x-blade", "xeon-h100-switches", "xeon-pvc"))
        mig = machine("devices/xeon-h100-switches.xml", "mig", split)
        cuda, rocr, hip, ze = "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"
        jax = lambda count: {"JAX_LOCAL_DEVICE_IDS": ",".join(map(str, range(count)))}
        for what, node, env, want in (
                ("all of the node", amd, {}, jax(8)),
                ("one list, said twice", amd, {rocr: "4,5", hip: "4,5"}, {rocr: "4,5", **jax(2)}),
                ("the second counts what the first leaves", amd, {rocr: "4,5,6", hip: "2,0"}, {rocr: "6,4", **jax(2)}),
                ("as AMD's libraries read CUDA's", amd, {cuda: "7,2"}, {rocr: "7,2", **jax(2)}),
                ("the order is the user's", nvidia, {cuda: "3,1"}, {cuda: "3,1", **jax(2)}),
                ("a control group counts anew", nvidia, {cuda: "0,1", "SLURM_JOB_GPUS": "2,3"}, {cuda: "0,1", **jax(2)}),
                ("a mask beyond the grant", nvidia, {cuda: "1,3", "SLURM_JOB_GPUS": "0,1"}, {cuda: "1", **jax(1)}),
                ("a list without a mask", nvidia, {"SLURM_STEP_GPUS": "1,2"}, {cuda: "1,2", **jax(2)}),
                ("MIG: a process sees the first", mig, {cuda: "MIG-11,MIG-10"}, {cuda: "MIG-11,MIG-10", **jax(1)}),
                ("MIG: a device stands for its instances", mig, {cuda: "GPU-10"}, {cuda: "MIG-10,MIG-11", **jax(1)}),
                ("tiles", intel, {ze: "3,1"}, {ze: "1,3"}),
                ("cards", intel, {ze: "1,0.1", "ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}, {ze: "0.1,1"}),
                ("all tiles of the node", intel, {}, {})):
            with self.subTest(what):
                found, plan = self.planned(node, env)
                self.assertEqual(found, want)
                rank, = plan["classes"][0]["ranks"]
                self.assertEqual((rank["cpus"], rank["cores"]), (None, cores[node]))
                granted = [one["value"] for one in plan["choices"] if one["name"] == "granted-devices"]
                if granted and "MIG" not in granted[0]:
                    units = [rank, *rank["more_units"]]
                    self.assertEqual(sorted({str(unit["device"]) for unit in units}), sorted(granted[0].split(",")))

    def test_workers_as_devices_are_seen(self):
        node = support.machine("devices/mi250x-blade.xml")
        self.assertEqual(self.planned(node, {}, "torchrun", "x.py")[0]["PET_NPROC_PER_NODE"], "8")
        self.assertEqual(self.planned(node, {"ROCR_VISIBLE_DEVICES": "4,5"}, "torchrun", "x.py")[0]["PET_NPROC_PER_NODE"], "2")
        intel = support.machine("devices/xeon-pvc.xml")
        for env, count in (({}, "12"), ({"ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}, "6"), ({"ZE_AFFINITY_MASK": "0,1,2"}, "3")):
            self.assertEqual(self.planned(intel, env, "torchrun", "x.py")[0]["PET_NPROC_PER_NODE"], count)

    def test_ray_reads_one_of_amds_masks_only(self):
        """It refuses to start where ROCR_VISIBLE_DEVICES is set, which Slurm does for each step."""
        node = support.machine("devices/mi250x-blade.xml")
        for env, want in (({}, {}), ({"ROCR_VISIBLE_DEVICES": "4,5"}, {"HIP_VISIBLE_DEVICES": "4,5"}),
                          ({"ROCR_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "1"}, {"HIP_VISIBLE_DEVICES": "5"})):
            found, plan = self.planned(node, env, "ray", "start")
            found.pop("JAX_LOCAL_DEVICE_IDS")
            self.assertEqual(found, want)
            self.assertIn(("ROCR_VISIBLE_DEVICES", None), [(one["name"], one["value"]) for one in plan["env"]])

    def test_devices_at_the_program(self):
        self.env.update(ROCR_VISIBLE_DEVICES="4,5", HIP_VISIBLE_DEVICES="4,5")
        _, env, done = self.start("other", options=("--launcher", "local", "--force", "--profile", "none", "--topology", support.machine("devices/mi250x-blade.xml")))
        self.assertEqual({name: value for name, value in env.items() if "VISIBLE" in name}, {"ROCR_VISIBLE_DEVICES": "4,5"})
        self.has(done, "[mask-twice]")

    def test_refused(self):
        for option in (["-n", "2"], ["--ppn", "1"], ["--devices-per-rank", "1"], ["--cpus-per-rank", "1"], ["--bind-via", "shim"], ["--cpu-bind", "0"]):
            self.refused(125, "run", "--agent", *option, "--", "torchrun", says=["--agent is one process with the whole node"], env=self.env)
        for program in ("srun", "mpiexec", "hpclaunch"):
            self.file("bin/" + program, "#!/bin/sh\nexit 9\n", 0o755)
            words = [program, "run"] if program == "hpclaunch" else [program, "-n", "2", "x"]
            done = self.ok(hpclaunch("run", "--launcher", "local", "--agent", "--", *words, env=self.env), 125)
            self.has(done, "starts ranks itself")
        done = self.ok(hpclaunch("run", "--launcher", "local", "-n", "2", "--oversubscribe", "--", "ray", "start", env=self.env), 125)
        self.has(done, "try: hpclaunch run --agent -- ray start")

    def test_an_agent_within_an_agent(self):
        done = hpclaunch("run", "--launcher", "local", "--agent", "--", "sh", "-c", '"$0" "$@"', support.HPCLAUNCH, "run", "--agent", "--", "other", env=self.env)
        self.ok(done, 125)
        self.has(done, "inside-a-rank")


class Launchers(site_jobs.SiteTest):
    """Under launchers that are not here, by stand-ins."""

    def test_all(self):
        program = self.file("bin/torchrun", "#!/bin/sh\necho \"agent $PET_NODE_RANK of $PET_NNODES, rank ${RANK-none}\"\n", 0o755)
        nodes = self.file("nodes", "n1\nn2\n")
        slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURM_NNODES": "2", "SLURM_NODELIST": "n[1-2]"}
        for launcher, env in (("slurm", slurm), ("pals", {"PBS_JOBID": "7.server", "PBS_NODEFILE": nodes})):
            with self.subTest(launcher):
                job = site_jobs.Job(self.folder, env, launcher)
                done = job.hpclaunch("run", "--launcher", launcher, "--profile", "none", "--master-addr", "198.51.100.1", "--agent", "--", program, "x.py")
                self.ok(done)
                self.assertEqual(sorted(done.out.splitlines()), ["agent 0 of 2, rank none", "agent 1 of 2, rank none"])


if __name__ == "__main__":
    support.main()
