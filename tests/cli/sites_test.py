#!/usr/bin/env python3
"""`hpclaunch run -- program` inside a job of each site: the launch line, and what every rank gets.

The jobs are made up (site_jobs.py): the batch system's variables and the site's host names are real in form, the
launcher is a stand-in that knows the real one's options and variables, and nothing else of the machine that runs
this test gets in. Expected lines and values were taken from the sites' pages, bindings are read back by a parser of
our own and checked against tables of the nodes.
"""
import json
import os
import re
import unittest

import support
from site_jobs import AURORA, AURORA_LIST, NODES, PALS, SiteTest, bound_sets
from support import HOST, cpu_list

SUNSPOT = ("sunspot-pbs-0001.head.cm.sunspot.alcf.anl.gov", "uan-0001.head.cm.sunspot.alcf.anl.gov")
POLARIS = ("polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov", "polaris-login-01.hsn.cm.polaris.alcf.anl.gov")

CCL_TODAY = {"CCL_PROCESS_LAUNCHER": "pmix", "CCL_ATL_TRANSPORT": "mpi", "CCL_KVS_MODE": "mpi", "CCL_OP_SYNC": "1",
             "FI_MR_CACHE_MONITOR": "userfaultfd"}
CCL_2024 = {
    "CCL_PROCESS_LAUNCHER": "pmix", "CCL_ATL_TRANSPORT": "mpi", "CCL_KVS_MODE": "mpi", "CCL_ALLREDUCE": "topo",
    "CCL_ALLREDUCE_SCALEOUT": "rabenseifner", "CCL_BCAST": "double_tree", "CCL_CONFIGURATION": "cpu_gpu_dpcpp",
    "CCL_CONFIGURATION_PATH": "", "CCL_KVS_CONNECTION_TIMEOUT": "600", "CCL_KVS_GET_TIMEOUT": "600",
    "CCL_KVS_USE_MPI_RANKS": "1", "CCL_LOG_LEVEL": "WARN", "CCL_ZE_CACHE_OPEN_IPC_HANDLES_THRESHOLD": "1024",
    "CCL_WORKER_AFFINITY": "5,13,21,29,37,45,57,65,73,81,89,97",
    "HOROVOD_THREAD_AFFINITY": "4,12,20,28,36,44,56,64,72,80,88,96",
    "DATA_FORMAT": "channels_last", "FI_LOG_LEVEL": "warn", "FI_LOG_PROV": "cxi",
    "MPIR_CVAR_ENABLE_GPU": "0", "NUMEXPR_NUM_THREADS": "64", "NUMEXPR_MAX_THREADS": "64"}
BEYOND_16 = {"FI_CXI_DEFAULT_CQ_SIZE": "131072", "FI_CXI_OFLOW_BUF_SIZE": "8388608", "FI_CXI_CQ_FILL_PERCENT": "20"}
TUNING_FILES = ("MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE", "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE",
                "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE")
LIST_2024 = "list:2-4:10-12:18-20:26-28:34-36:42-44:54-56:62-64:70-72:78-80:86-88:94-96"


INTEL = (("SYCL_CACHE_DIR", "sycl"), ("NEO_CACHE_DIR", "neo"))


class Aurora(SiteTest):
    MASTER = "x4117c0s0b0n0.hsn.cm.aurora.alcf.anl.gov"

    def test_two_nodes_today(self):
        job = self.aurora(2, LOADEDMODULES="frameworks/2025.3.1")
        started = self.launched(job, "--np 24 --ppn 12 --cpu-bind %s %s --pmi=pmix --" % (AURORA_LIST, PALS), ranks=range(24))
        self.laws(bound_sets(started.argv), range(12), NODES["aurora"])
        self.ranked(started, 12, 24, self.MASTER)
        self.site(job, started, {**CCL_TODAY, **self.caches(job, *INTEL), "ZE_FLAT_DEVICE_HIERARCHY": "FLAT", "OMP_NUM_THREADS": "4", "MASTER_PORT": "2345"})
        self.made(os.path.dirname(started.ranks[0]["NEO_CACHE_DIR"]))
        self.assertEqual(set(started.core_limits.values()), {self.hard_core_limit()})

    def test_without_a_module_it_is_today(self):
        job = self.aurora(1)
        started = self.launched(job, "--np 12 --ppn 12 --cpu-bind %s %s --pmi=pmix --" % (AURORA_LIST, PALS), ranks=range(12))
        self.site(job, started, {**CCL_TODAY, **self.caches(job, *INTEL, gloo=""), "ZE_FLAT_DEVICE_HIERARCHY": "FLAT", "OMP_NUM_THREADS": "4", "MASTER_PORT": "2345"})

    def of_2024(self, nodes):
        job = self.aurora(nodes, LOADEDMODULES="mpich/icc-all-pmix-gpu:frameworks/2024.2.1_u1", CCL_ROOT="/opt/ccl",
                          LD_LIBRARY_PATH="/usr/lib64", CPATH="/usr/include", **{name: "/opt/tuning.json" for name in TUNING_FILES})
        started = self.launched(
            job, "--np %d --ppn 12 --cpu-bind %s %s --pmi=pmix --" % (12 * nodes, LIST_2024, PALS),
            ranks=[*range(12), *range(12 * nodes - 12, 12 * nodes)])
        self.laws(bound_sets(started.argv), range(12), NODES["aurora"])
        self.ranked(started, 12, 12 * nodes, self.MASTER)
        # The helpers of rank i: Horovod's thread on its own last core, oneCCL's worker on the core after it.
        for name, of_the_rank in (("HOROVOD_THREAD_AFFINITY", 0), ("CCL_WORKER_AFFINITY", 1)):
            helpers = [int(core) for core in started.ranks[0][name].split(",")]
            self.assertEqual(helpers, [max(cpus) + of_the_rank for cpus in bound_sets(started.argv)])
        self.assertEqual(set(started.core_limits.values()), {"0"})
        common = {**CCL_2024, **self.caches(job, *INTEL), "ZE_FLAT_DEVICE_HIERARCHY": "FLAT", "OMP_NUM_THREADS": "3", "MASTER_PORT": "2345",
                  "LD_LIBRARY_PATH": "/opt/ccl/lib:/usr/lib64", "CPATH": "/opt/ccl/include:/usr/include", "LIBRARY_PATH": "/opt/ccl/lib"}
        return job, started, common

    def test_16_nodes_of_2024(self):
        job, started, common = self.of_2024(16)
        self.site(job, started, common)

    def test_17_nodes_of_2024(self):
        job, started, common = self.of_2024(17)
        self.site(job, started, {**common, **BEYOND_16}, lost=TUNING_FILES)

    def test_48_ranks_on_12_tiles(self):
        job = self.aurora(1)
        bind = ":".join(str(core) for core in [1, *range(2, 47, 2), 53, *range(54, 99, 2)])
        started = self.launched(job, "--np 48 --ppn 48 --cpu-bind list:%s %s --pmi=pmix --" % (bind, PALS), "--ppn", "48",
                                ranks=range(48))
        self.laws(bound_sets(started.argv), [rank // 4 for rank in range(48)], NODES["aurora"])
        self.site(job, started, {**CCL_TODAY, **self.caches(job, *INTEL, gloo=""), "ZE_FLAT_DEVICE_HIERARCHY": "FLAT", "OMP_NUM_THREADS": "1", "MASTER_PORT": "2345",
                                 "ZEX_NUMBER_OF_CCS": ",".join("%d:4" % tile for tile in range(12))})
        self.has(started.done, "[shared-devices]")

    def test_48_ranks_each_with_its_tile_alone(self):
        started = self.aurora(1).run("--ppn", "48", "--gpu-view", "own", "--verify", "off")
        self.ok(started.done)
        self.mask(started, "ZE_AFFINITY_MASK", lambda rank: str(rank // 4))
        self.mask(started, "LOCAL_RANK", lambda rank: "0")

    def test_a_gpu_for_each_rank(self):
        job = self.aurora(1)
        started = self.launched(job, "--np 6 --ppn 6 --cpu-bind list:1-16:17-32:33-48:53-68:69-84:85-100 %s --pmi=pmix --" % PALS,
                                "--ppn", "6", "--device-mode", "gpu", "--gpu-view", "own", ranks=range(6))
        self.laws(bound_sets(started.argv), range(6), NODES["aurora-gpu"])
        self.ranked(started, 6, 6, self.MASTER, local_rank=lambda local: 0)
        self.site(job, started, {**CCL_TODAY, **self.caches(job, *INTEL, gloo=""), "ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE", "ZE_ENABLE_PCI_ID_DEVICE_ORDER": "1",
                                 "OMP_NUM_THREADS": "16", "MASTER_PORT": "2345", "ZE_AFFINITY_MASK": str})
        self.assertNotIn("[service-cores]", started.done.err)  # nothing of Copper is in this job

    def test_cores_of_a_service_that_the_job_uses(self):
        for env in ({"LOADEDMODULES": "frameworks/2025.3.1:copper"}, {"PYTHONPATH": "/tmp/user1/copper/lus/flare/x"}):
            done = self.aurora(1, **env).hpclaunch("plan", "--ppn", "6", "--device-mode", "gpu", "--gpu-view", "own")
            self.has(done, "[service-cores]", "copper")

    def test_the_list_of_the_optimized_module(self):
        ours = "4-6:12-14:20-22:28-30:36-38:44-46:56-58:64-66:72-74:80-82:88-90:96-98"
        job = self.aurora(2, LOADEDMODULES="frameworks/2025.0.0:frameworks_optimized", CPU_BIND="verbose,list:" + ours)
        started = self.launched(job, "--np 24 --ppn 12 --cpu-bind list:%s %s --pmi=pmix --" % (ours, PALS), ranks=range(24))
        self.each(started, {"OMP_NUM_THREADS": "3"})

    def test_lists_of_helpers_that_do_not_fit(self):
        """The lists of 2024 in a shell of today, and lists for 12 ranks in a job of 48."""
        of_2024 = {"CCL_WORKER_AFFINITY": CCL_2024["CCL_WORKER_AFFINITY"]}
        self.has(self.aurora(1, **of_2024).hpclaunch("plan"), "[helper-cores]", "puts 6 of 12 threads of oneCCL on cores of ranks")
        of_2024 = {"HOROVOD_THREAD_AFFINITY": CCL_2024["HOROVOD_THREAD_AFFINITY"]}
        self.has(self.aurora(1, **of_2024).hpclaunch("plan", "--ppn", "48"), "[list-length]", "HOROVOD_THREAD_AFFINITY has 12 entries, but Horovod needs 48")
        done = self.aurora(1, ZEX_NUMBER_OF_CCS=",".join("%d:4" % i for i in range(12))).hpclaunch("plan", "--ppn", "24")
        self.has(done, "[ccs-of-two-ranks]")

    def test_tiles_of_cards_under_composite(self):
        job = self.aurora(2)
        started = self.launched(job, "--np 24 --ppn 12 --cpu-bind %s %s --pmi=pmix --" % (AURORA_LIST, PALS),
                                "--device-mode", "tile-composite", "--gpu-view", "own", ranks=range(24))
        self.mask(started, "ZE_AFFINITY_MASK", lambda rank: "%d.%d" % (rank % 12 // 2, rank % 2))
        self.mask(started, "ZE_FLAT_DEVICE_HIERARCHY", lambda rank: "COMPOSITE")

    def test_any_number_of_ranks(self):
        for ppn in (1, 2, 3, 5, 7, 11, 24, 48, 96, 102):
            with self.subTest(ppn=ppn):
                # From 49 on more than four ranks share a tile, which is an error that --force overrules.
                sets, tiles = self.on_one_node(self.aurora(1), ppn, "ZE_AFFINITY_MASK", "--gpu-view", "own", started=ppn in (5, 96), force=["--force"])
                self.laws(sets, tiles, NODES["aurora"])
                self.assertEqual(sorted(tiles), tiles)

    def test_odd_ranks_on_a_tile_take_the_next_larger_split(self):
        for ppn, split in ((24, 2), (30, 4), (36, 4), (48, 4), (52, 4)):
            with self.subTest(ppn=ppn):
                splits = ",".join("%d:%d" % (tile, split) for tile in range(12))
                plan = self.plan(self.aurora(1), "--ppn", str(ppn))
                self.assertEqual([one["value"] for one in plan["env"] if one["name"] == "ZEX_NUMBER_OF_CCS"], [splits])
                found = {one["id"] for one in plan["diagnostics"]} & {"ccs-three", "ccs-too-many"}
                self.assertEqual(found, {"ccs-three"} if ppn in (30, 36) else {"ccs-too-many"} if ppn == 52 else set())
                if ppn == 30:
                    started = self.aurora(1).run("--ppn", str(ppn))
                    self.has(self.ok(started.done), "[ccs-three]")
                    self.mask(started, "ZEX_NUMBER_OF_CCS", lambda rank: splits)

    def test_ranks_say_when_their_cores_are_not_there(self):
        started = self.aurora(1).run()
        self.ok(started.done)
        for rank, cpus in ((0, "4-7"), (11, "76-79")):
            if not cpu_list(cpus) <= set(range(os.cpu_count())):
                self.assertRegex(started.done.err, r"hpclaunch: rank %d on \S+: the launcher bound CPUs .*, planned %s" % (rank, cpus))

    def test_strict_ranks_do_not_start_elsewhere(self):
        started = self.aurora(1).run("--verify", "strict")
        if os.cpu_count() < 80:
            self.assertNotIn(started.done.status, (0, 2), str(started))
            self.assertEqual(started.ranks, {})

    def test_the_shim_can_bind_instead(self):
        started = self.aurora(1).run("--bind-via", "shim", "--verify", "off")
        self.ok(started.done)
        self.assertEqual(started.argv[:6], ["--np", "12", "--ppn", "12", "--cpu-bind", "none"])
        plan = started.launch_env["HPCLAUNCH_PLAN"]
        self.assertEqual(re.search(r":cpus=([^:]*)", plan).group(1), AURORA_LIST[len("list:"):].replace(":", "/"))

    def test_a_node_unlike_the_profile_is_reported(self):
        job = self.pbs(AURORA[0], [HOST], AURORA[1])
        done = job.hpclaunch("plan", "--", job.program)
        self.has(done, AURORA_LIST)
        if os.cpu_count() == 208:
            return
        self.ok(done, 1)
        self.has(done, "[node-differs]", "missing", "--on-drift replan")
        done = job.hpclaunch("plan", "--on-drift", "replan", "-n", "1", "--", job.program)
        self.has(done, "planned for this node")
        none = self.json("topo").get("devices") == []  # not merely unknown
        self.assertEqual("ZE_FLAT_DEVICE_HIERARCHY" in done.out, not none)
        self.assertNotIn("104 cores", done.out)


class SunspotAndPolaris(SiteTest):
    def test_sunspot_is_as_aurora(self):
        job = self.pbs(SUNSPOT[0], ["x1921c0s0b0n0", "x1921c1s0b0n0"], SUNSPOT[1], LOADEDMODULES="frameworks/2025.3.1")
        started = self.launched(job, "--np 24 --ppn 12 --cpu-bind %s %s --pmi=pmix --" % (AURORA_LIST, PALS), ranks=range(24))
        self.laws(bound_sets(started.argv), range(12), NODES["aurora"])
        self.ranked(started, 12, 24, "x1921c0s0b0n0.hsn.cm.sunspot.alcf.anl.gov")
        self.site(job, started, {**CCL_TODAY, **self.caches(job, *INTEL), "ZE_FLAT_DEVICE_HIERARCHY": "FLAT", "OMP_NUM_THREADS": "4", "MASTER_PORT": "2345"})

    def polaris(self, nodes, **env):
        hosts = ["x3001c0s%db%dn0.hsn.cm.polaris.alcf.anl.gov" % (1 + 6 * (i // 2), i % 2) for i in range(nodes)]
        return self.pbs(POLARIS[0], hosts, POLARIS[1], **env)

    def test_polaris_two_nodes(self):
        job = self.polaris(2, LOADEDMODULES="conda/2025-09-25:craype-accel-nvidia80", LD_LIBRARY_PATH="/usr/lib64")
        started = self.launched(job, "--np 8 --ppn 4 --cpu-bind list:0-7,32-39:8-15,40-47:16-23,48-55:24-31,56-63 %s --" % PALS,
                                ranks=range(8))
        self.laws(bound_sets(started.argv), [3, 2, 1, 0], NODES["polaris"])
        self.ranked(started, 4, 8, "x3001c0s1b0n0.hsn.cm.polaris.alcf.anl.gov", local_rank=lambda local: 0)
        self.site(job, started, {
            **self.caches(job, ("CUDA_CACHE_PATH", "cuda")), "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": lambda local: str(3 - local), "OMP_NUM_THREADS": "8",
            "NCCL_NET": "AWS Libfabric", "NCCL_NET_GDR_LEVEL": "PHB", "NCCL_CROSS_NIC": "1", "NCCL_COLLNET_ENABLE": "1",
            "FI_CXI_DISABLE_HOST_REGISTER": "1", "FI_MR_CACHE_MONITOR": "userfaultfd", "FI_CXI_DEFAULT_CQ_SIZE": "131072",
            "MPICH_GPU_SUPPORT_ENABLED": "1",
            "LD_LIBRARY_PATH": "/soft/libraries/hwloc/lib/:/soft/libraries/aws-ofi-nccl/v1.9.1-aws/lib:/usr/lib64"})

    def test_polaris_of_2022(self):
        job = self.polaris(2, LOADEDMODULES="conda/2022-07-19")
        started = self.launched(job, "--np 8 --ppn 4 --cpu-bind list:0:8:16:24 %s --" % PALS, ranks=range(8))
        self.laws(bound_sets(started.argv), [3, 2, 1, 0], NODES["polaris"])
        self.site(job, started, {**self.caches(job, ("CUDA_CACHE_PATH", "cuda")),
                                 "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": lambda local: str(3 - local),
                                 "NCCL_NET_GDR_LEVEL": "PHB", "NCCL_COLLNET_ENABLE": "1", "OMP_NUM_THREADS": "1"})

    def test_polaris_any_number_of_ranks(self):
        for ppn in range(1, 33):
            with self.subTest(ppn=ppn):
                sets, devices = self.on_one_node(self.polaris(1), ppn, "CUDA_VISIBLE_DEVICES", started=ppn in (1, 7, 32))
                whole = all(cpus <= NODES["polaris"].near[device] for cpus, device in zip(sets, devices))
                # A count that four NUMA nodes do not divide may leave a rank on two of them, and no others.
                self.laws(sets, devices if whole or ppn % 4 == 0 or ppn < 4 else [None] * ppn, NODES["polaris"])
                self.assertEqual(devices, sorted(devices, reverse=True))


FRONTIER = {"SLURM_CLUSTER_NAME": "frontier", "LMOD_SYSTEM_NAME": "frontier", "LMOD_SITE_NAME": "OLCF"}
ROCM = {"LOADEDMODULES": "PrgEnv-gnu/8.7.0:cpe/26.03:rocm/7.1.1:rccl-net-plugin:craype-accel-amd-gfx90a",
        "SLURM_NETWORK": "single_node_vni,job_vni,disable_rdzv_get"}
# OLCF's user guide: srun -n8 -c7 --gpus-per-task=1 --gpu-bind=closest gives local rank i this GCD.
CLOSEST = [4, 5, 2, 3, 6, 7, 0, 1]
SRUN = "--export=ALL --kill-on-bad-exit=1 --wait=0"
RCCL = {"NCCL_CROSS_NIC": "1", "NCCL_NET_GDR_LEVEL": "PHB", "NCCL_SOCKET_IFNAME": "hsn0,hsn1,hsn2,hsn3",
        "HSA_FORCE_FINE_GRAIN_PCIE": "1", "FI_MR_CACHE_MONITOR": "kdreg2", "FI_CXI_DISABLE_HOST_REGISTER": "1",
        "FI_CXI_DEFAULT_CQ_SIZE": "131072", "FI_CXI_DEFAULT_TX_SIZE": "2048", "FI_CXI_RX_MATCH_MODE": "hybrid",
        "FI_CXI_RDZV_EAGER_SIZE": "0", "FI_CXI_RDZV_THRESHOLD": "0", "FI_CXI_RDZV_GET_MIN": "0"}


class Frontier(SiteTest):
    def job(self, nodes, **env):
        job = self.slurm("frontier[00001-%05d]" % nodes if nodes > 1 else "frontier00001", nodes, CLOSEST, **{**FRONTIER, **ROCM, **env})
        self.cache = "/tmp/user1-miopen-cache-" + job.env["SLURM_JOB_ID"]
        return job

    def wanted(self, job, more, gloo="hsn0", own_master="3442"):
        return {**RCCL, **self.caches(job, gloo=gloo), "MIOPEN_USER_DB_PATH": self.cache, "MIOPEN_CUSTOM_CACHE_DIR": self.cache, "OMP_NUM_THREADS": "7",
                "MASTER_PORT": own_master, **more}

    def test_two_nodes_by_the_launchers_flags(self):
        job = self.job(2, CRAY_LD_LIBRARY_PATH="/opt/cray/pe/lib64", LD_LIBRARY_PATH="/opt/rocm-7.1.1/lib", SLURM_EXPORT_ENV="NONE")
        started = self.launched(job, "--nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block %s "
                                "-c7 --gpus-per-task=1 --gpu-bind=closest --" % SRUN, ranks=range(16))
        self.ranked(started, 8, 16, "frontier00001", local_rank=lambda local: 0)
        self.site(job, started, self.wanted(job, {
            "NCCL_NET": "OFI", "FI_CXI_RDZV_PROTO": "alt_read", "ROCR_VISIBLE_DEVICES": lambda local: str(CLOSEST[local]),
            "LD_LIBRARY_PATH": "/opt/cray/pe/lib64:/opt/rocm-7.1.1/lib"}), lost=("SLURM_EXPORT_ENV",))
        self.made(self.cache)
        # Nothing to warn of but the variable of sbatch --export=NONE, which goes.
        self.assertEqual(re.findall(r"(?:note|warning|error): .*\[(.*)\]", started.done.err), [])

    def test_two_nodes_with_all_devices_visible(self):
        job = self.job(2)
        started = self.launched(job, "--nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block "
                                "--cpu-bind=mask_cpu:0xfe,0xfe00,0xfe0000,0xfe000000,0xfe00000000,0xfe0000000000,"
                                "0xfe000000000000,0xfe00000000000000 --gpu-bind=none %s --gpus-per-node=8 --" % SRUN,
                                "--gpu-view", "all", ranks=range(16))
        self.laws(bound_sets(started.argv), CLOSEST, NODES["frontier"])
        self.ranked(started, 8, 16, "frontier00001")
        # LOCAL_RANK counts in this list, so that the program's device LOCAL_RANK is the near one.
        self.site(job, started, self.wanted(job, {"NCCL_NET": "OFI", "FI_CXI_RDZV_PROTO": "alt_read",
                                             "ROCR_VISIBLE_DEVICES": ",".join(map(str, CLOSEST))}))
        self.made(self.cache)

    def test_one_node_talks_by_sockets(self):
        job = self.job(1)
        started = self.launched(job, "--nodes=1 --ntasks=8 --ntasks-per-node=8 --distribution=block %s "
                                "-c7 --gpus-per-task=1 --gpu-bind=closest --" % SRUN, ranks=range(8))
        self.site(job, started, self.wanted(job, {"NCCL_NET": "Socket", "ROCR_VISIBLE_DEVICES": lambda local: str(CLOSEST[local])}, gloo=""))
        self.made(self.cache)

    def test_of_2024(self):
        plugin = os.path.dirname(self.file("built/lib/librccl-net.so", ""))
        job = self.job(2, LOADEDMODULES="PrgEnv-gnu/8.5.0:rocm/5.7.1:craype-accel-amd-gfx90a:miniforge3/23.11.0-0", LD_LIBRARY_PATH=plugin)
        started = self.launched(job, "--nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block %s "
                                "-c7 --gpus-per-task=1 --gpu-bind=closest --" % SRUN, ranks=range(16))
        self.site(job, started, {**self.caches(job), "NCCL_NET": "AWS Libfabric", "NCCL_SOCKET_IFNAME": "hsn0", "NCCL_NET_GDR_LEVEL": "3", "NCCL_CROSS_NIC": "1",
                                 "MIOPEN_USER_DB_PATH": self.cache, "MIOPEN_CUSTOM_CACHE_DIR": self.cache, "OMP_NUM_THREADS": "7",
                                 "MASTER_PORT": "3442", "ROCR_VISIBLE_DEVICES": lambda local: str(CLOSEST[local])})
        self.made(self.cache)

    def test_the_plugin_is_looked_for(self):
        """In each stack: the module, NCCL_NET_PLUGIN, or the library in a folder of LD_LIBRARY_PATH, whatever its name."""
        folder = os.path.dirname(self.file("anything/librccl-net.so", ""))
        nccl = os.path.dirname(self.file("other/libnccl-net.so", ""))
        for rocm, rule in (("rocm/7.1.1", "net-no-plugin"), ("rocm/5.7.1", "net-no-plugin-2024")):
            for env, missing, name in (({}, True, None), ({"LD_LIBRARY_PATH": "/opt/rocm/lib"}, True, None),
                                       ({"LD_LIBRARY_PATH": "/opt/rocm/lib:" + folder}, False, "AWS Libfabric"),
                                       ({"LD_LIBRARY_PATH": "/x/aws-ofi-rccl/lib"}, True, None),  # a name alone
                                       ({"LD_LIBRARY_PATH": nccl}, False, "AWS Libfabric"),
                                       ({"NCCL_NET_PLUGIN": folder + "/librccl-net.so"}, False, "AWS Libfabric")):
                done = self.job(2, LOADEDMODULES=rocm, **env).hpclaunch("plan", "--json")
                plan = json.loads(done.out)
                self.assertEqual(rule in [finding["id"] for finding in plan["diagnostics"]], missing, env)
                net = [s for s in plan["env"] if s["name"] == "NCCL_NET"]
                self.assertEqual([s["history"][-1]["value"] for s in net], [name] if name else [], str(done))

    def test_proxies_are_the_users(self):
        exported = "http://proxy.ccs.ornl.gov:3128/"
        done = self.job(2, http_proxy=exported, no_proxy="localhost").hpclaunch("env")
        self.has(done, "no_proxy=10.0.0.0/8,.ccs.ornl.gov,.frontier.olcf.ornl.gov,localhost,frontier00001,frontier00002")
        self.assertNotIn("warning", done.err)

    def test_alt_read_wants_its_allocation(self):
        started = self.job(2, SLURM_NETWORK="job_vni").run("--verify", "off")
        self.ok(started.done)
        self.has(started.done, "[alt-read-missing]", "--network=disable_rdzv_get")
        self.made(self.cache)

    def test_own_devices_for_any_number_of_ranks(self):
        for ppn in (1, 2, 3, 5, 8, 16, 24, 40, 56):
            with self.subTest(ppn=ppn):
                started = ppn in (3, 24)
                self.laws(*self.on_one_node(self.job(1), ppn, "ROCR_VISIBLE_DEVICES", "--gpu-view", "own", started=started), NODES["frontier"])
                if started:
                    self.made(self.cache)

    def test_counts_that_its_flags_cannot_place(self):
        started = self.job(1).run("--ppn", "12")
        self.ok(started.done, 125)
        self.assertIsNone(started.argv)
        self.has(started.done, "[launcher-view-count]", "12 ranks per node")
        self.assertNotIn("[launcher-view]", started.done.err)


ALPS_MASKS = ",".join("0x" + "f" * 18 + "0" * (18 * module) for module in range(4))


class MoreOfSlurm(SiteTest):
    def test_lumi(self):
        job = self.slurm("nid[005001-005002]", 2, SLURM_CLUSTER_NAME="lumi", LMOD_SYSTEM_NAME="LUMI")
        started = self.launched(job, "--nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block "
                                "--cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,"
                                "0xfe00000000,0xfe0000000000 --gpu-bind=none %s --" % SRUN, ranks=range(16))
        self.laws(bound_sets(started.argv), range(8), NODES["lumi"])
        self.ranked(started, 8, 16, "nid005001", local_rank=lambda local: 0)
        cache = "/tmp/user1-miopen-cache-" + job.env["SLURM_JOB_ID"]
        self.site(job, started, {**self.caches(job), "ROCR_VISIBLE_DEVICES": str, "NCCL_SOCKET_IFNAME": "hsn", "NCCL_NET_GDR_LEVEL": "3",
                                 "CXI_FORK_SAFE": "1", "CXI_FORK_SAFE_HP": "1", "FI_CXI_DISABLE_CQ_HUGETLB": "1",
                                 "MIOPEN_USER_DB_PATH": cache, "MIOPEN_CUSTOM_CACHE_DIR": cache, "OMP_NUM_THREADS": "7"})
        self.made(cache)

    def test_perlmutter(self):
        job = self.slurm("nid[001001-001002]", 2, SLURM_CLUSTER_NAME="perlmutter", NERSC_HOST="perlmutter", LMOD_SITE_NAME="perlmutter",
                         LD_LIBRARY_PATH=os.path.dirname(self.file("plugin/libnccl-net.so", "")))
        started = self.launched(job, "--nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block "
                                "--cpu-bind=mask_cpu:0xffff000000000000ffff000000000000,0xffff000000000000ffff00000000,"
                                "0xffff000000000000ffff0000,0xffff000000000000ffff --gpu-bind=none %s --" % SRUN, ranks=range(8))
        self.laws(bound_sets(started.argv), range(4), NODES["perlmutter"])
        self.ranked(started, 4, 8, "nid001001")
        self.each(started, {"NCCL_NET": "AWS Libfabric", "NCCL_CROSS_NIC": "1", "NCCL_SOCKET_IFNAME": "hsn", "GLOO_SOCKET_IFNAME": "hsn0", "OMP_NUM_THREADS": "16"},
                  absent=("ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"))

    def test_alps(self):
        for cluster in ("daint", "clariden"):
            with self.subTest(cluster=cluster):
                job = self.slurm("nid[005001-005003]", 3, SLURM_CLUSTER_NAME=cluster, CLUSTER_NAME=cluster)
                started = self.launched(job, "--nodes=3 --ntasks=12 --ntasks-per-node=4 --distribution=block "
                                        "--cpu-bind=mask_cpu:%s --gpu-bind=none %s --" % (ALPS_MASKS, SRUN),
                                        ranks=[0, 1, 2, 3, 8, 9, 10, 11])
                self.laws(bound_sets(started.argv), range(4), NODES["alps"])
                self.ranked(started, 4, 12, "nid005001")
                self.each(started, {
                    "NCCL_NET": "AWS Libfabric", "NCCL_NET_GDR_LEVEL": "PHB", "NCCL_CROSS_NIC": "1", "NCCL_PROTO": "^LL128",
                    "FI_CXI_DEFAULT_CQ_SIZE": "131072", "FI_CXI_DEFAULT_TX_SIZE": "16384", "FI_CXI_DISABLE_HOST_REGISTER": "1",
                    "FI_CXI_RX_MATCH_MODE": "software", "FI_MR_CACHE_MONITOR": "userfaultfd", "OMP_NUM_THREADS": "8", "GLOO_SOCKET_IFNAME": "hsn0",
                    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "TRITON_HOME": "/dev/shm/", "MPICH_GPU_SUPPORT_ENABLED": "0",
                    "CUDA_CACHE_DISABLE": "1"}, absent=("NCCL_NET_PLUGIN",))

    def test_el_capitan(self):
        for hosts in ("elcap[1001-1002]", "tuolumne[1001-1002]"):
            with self.subTest(hosts=hosts):
                job = self.flux(hosts)
                started = self.launched(job, "run -N 2 -n 8 -o cpu-affinity=map:0-23,96-119;24-47,120-143;48-71,144-167;72-95,168-191 "
                                        "-o gpu-affinity=off -o exit-timeout=none --exclusive -ofastload=on "
                                        "-ompibind=off --setattr=rdzv_get_en=0", ranks=range(8))
                self.laws(bound_sets(started.argv), range(4), NODES["mi300a"])
                self.ranked(started, 4, 8, hosts.replace("[1001-1002]", "1001"), local_rank=lambda local: 0)
                self.each(started, {
                    "NCCL_SOCKET_IFNAME": "hsi0", "GLOO_SOCKET_IFNAME": "hsi0", "NCCL_CROSS_NIC": "1", "NCCL_NET_GDR_LEVEL": "3", "NCCL_MIN_NCHANNELS": "24",
                    "FI_MR_CACHE_MONITOR": "userfaultfd", "FI_CXI_RDZV_PROTO": "alt_read", "FI_CXI_DEFAULT_TX_SIZE": "1024",
                    "PYTORCH_MIOPEN_SUGGEST_NHWC": "1", "OMP_NUM_THREADS": "24"})
                self.mask(started, "ROCR_VISIBLE_DEVICES", lambda rank: str(rank % 4))
                # A directory for this job alone, and there when the program starts.
                for name in ("MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR"):
                    path = started.ranks[0][name]
                    self.made(os.path.dirname(path))
                    self.assertTrue(os.path.isdir(path), str(started))
                    self.assertIn(job.number, path)
                self.assertNotIn("errno", started.done.err)


class PartsOfNodes(SiteTest):
    """Clusters that give jobs a part of a node: here the node is the machine that runs this test."""

    WHOLE = {"narval": ("nc", 4, 12), "fir": ("fc", 4, 12), "rorqual": ("rg", 4, 16), "trillium": ("trig", 4, 24), "nibi": ("g", 8, 14)}
    OFFLINE = {"HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"}

    def cluster(self, name, nodes, count, **env):
        return self.slurm(nodes, count, SLURM_CLUSTER_NAME=name, CC_CLUSTER=name, **env)

    def allowed(self):
        return os.sched_getaffinity(0)

    def test_whole_nodes(self):
        for name, (prefix, gpus, cores) in self.WHOLE.items():
            with self.subTest(cluster=name):
                started = self.cluster(name, "%s[10101-10102]" % prefix, 2).run("--verify", "off")
                self.ok(started.done)
                self.assertEqual(started.argv[:3], ["--nodes=2", "--ntasks=%d" % (2 * gpus), "--ntasks-per-node=%d" % gpus])
                self.assertIn("-c%d" % cores, started.argv)
                self.assertEqual([len(cpus) for cpus in bound_sets(started.argv)], [cores] * gpus)
                self.assertEqual(set.union(*bound_sets(started.argv)), set(range(cores * gpus)))
                self.ranked(started, gpus, 2 * gpus, prefix + "10101")
                offline = set(started.ranks[0]) & self.OFFLINE
                self.assertEqual(offline, set() if name in ("fir", "nibi") else self.OFFLINE)

    def test_two_gpus_of_a_node(self):
        ranks = min(2, len(self.allowed()))
        started = self.cluster("narval", HOST, 1, CUDA_VISIBLE_DEVICES="0,1", SLURM_GPUS_ON_NODE="2").run("-n", str(ranks), "--verify", "off")
        self.ok(started.done)
        sets = bound_sets(started.argv)
        self.assertEqual(len(sets), ranks)
        self.assertEqual(sum(len(cpus) for cpus in sets), len(set.union(*sets)))
        self.assertLessEqual(set.union(*sets), self.allowed())
        self.ranked(started, ranks, ranks, "127.0.0.1")
        self.each(started, {"CUDA_VISIBLE_DEVICES": "0,1"})

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two ranks need two cores")
    def test_a_rank_for_each_gpu_that_was_given(self):
        started = self.cluster("fir", HOST, 1, CUDA_VISIBLE_DEVICES="0,1", SLURM_GPUS_ON_NODE="2").run("--gpu-view", "own", "--verify", "off")
        self.ok(started.done)
        self.mask(started, "CUDA_VISIBLE_DEVICES", str)
        self.mask(started, "LOCAL_RANK", lambda rank: "0")

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "a part of one core")
    def test_parts_of_several_nodes_have_other_cores_on_each(self):
        """The first node's cores say nothing about the second's: ranks count through those that they find, and no mask is in the way."""
        before = self.allowed()
        self.addCleanup(os.sched_setaffinity, 0, before)
        os.sched_setaffinity(0, {min(before)})
        job = self.cluster("fir", HOST + ",fc10102", 2, CUDA_VISIBLE_DEVICES="0", SLURM_GPUS_ON_NODE="1")
        started = job.run()
        self.ok(started.done)
        self.assertEqual([word for word in started.argv if "cpu-bind" in word], ["--cpu-bind=none"])
        self.assertIn(":part=0-0", started.launch_env["HPCLAUNCH_PLAN"])
        self.assertNotIn("mask_cpu", " ".join(started.argv))
        self.assertNotIn("expect=", started.launch_env["HPCLAUNCH_PLAN"])
        self.ranked(started, 1, 2, started.ranks[0]["MASTER_ADDR"])

    def test_mig_names_are_kept(self):
        slice_name = "MIG-5a1b2c3d-0000-1111-2222-333344445555"
        started = self.cluster("narval", HOST, 1, CUDA_VISIBLE_DEVICES=slice_name, SLURM_GPUS_ON_NODE="1").run("--verify", "off")
        self.ok(started.done)
        self.assertEqual(list(started.ranks), [0])
        self.each(started, {"CUDA_VISIBLE_DEVICES": slice_name})

    def test_cpus_only(self):
        started = self.cluster("rorqual", HOST, 1, SLURM_NTASKS="1", SLURM_NTASKS_PER_NODE="1", SLURM_TASKS_PER_NODE="1").run("--verify", "off")
        self.ok(started.done)
        self.assertEqual(list(started.ranks), [0])
        self.each(started, {}, absent=("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"))
        self.assertEqual(bound_sets(started.argv), [self.allowed()])
        self.assertEqual(started.ranks[0]["RANK"], "0")

    def test_tasks_asked_for_are_the_ranks(self):
        started = self.cluster("trillium", "trig[0001-0002]", 2, SLURM_NTASKS="4", SLURM_NTASKS_PER_NODE="2",
                               SLURM_TASKS_PER_NODE="2(x2)").run("--verify", "off")
        self.ok(started.done)
        self.assertEqual(started.argv[:3], ["--nodes=2", "--ntasks=4", "--ntasks-per-node=2"])

    def test_retired_clusters_name_their_successor(self):
        for name, successor in (("cedar", "fir"), ("graham", "nibi"), ("beluga", "rorqual")):
            with self.subTest(cluster=name):
                started = self.cluster(name, "node101", 1).run("--verify", "off")
                self.ok(started.done)
                self.has(started.done, "[site-retired]", successor)


if __name__ == "__main__":
    support.main()
