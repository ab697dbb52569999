"""Jobs of sites that are not here: their environment, their launcher's stand-in, and what is known of their nodes.

Nothing in this file comes from the product or its profiles: node tables, host names and job variables were written
down from the sites' own pages, so that they can disagree.
"""
import glob
import json
import os
import resource
import shutil
import sys
import tempfile

import support
from support import Test, cpu_list, entries, execute, shim_path

STANDIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standins", "launcher.py")
# Where each launcher lies on a machine that has it; PALS is told from other mpiexec by this.
PLACES = {"pals": "opt/cray/pals/1.8.0/bin/mpiexec", "slurm": "usr/bin/srun", "flux": "usr/bin/flux"}
USER = "user1"
# Aurora's job server and login node, its list of cores today, and what each PALS line has.
AURORA = ("aurora-pbs-0001.hostmgmt.cm.aurora.alcf.anl.gov", "aurora-uan-0010.hostmgmt1000.cm.aurora.alcf.anl.gov")
AURORA_LIST = "list:4-7:8-11:12-15:16-19:20-23:24-27:56-59:60-63:64-67:68-71:72-75:76-79"
PALS = "--envall --abort-on-failure --line-buffer"
# What the shell and Python of the stand-in add to an environment.
ADDED = {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
# What a rank gets at any site: checked by ranked(), or a number of threads for a library.
COMMON = {"RANK", "WORLD_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "LOCAL_RANK", "LOCAL_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "NODE_RANK",
          "CROSS_RANK", "CROSS_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_MAX_RESTARTS",
          "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_USE_AGENT_STORE", "JAX_LOCAL_DEVICE_IDS", "HPCLAUNCH_LOCAL_RANK", "HPCLAUNCH_LOCAL_SIZE", "HPCLAUNCH_NODE", "MASTER_ADDR", "MASTER_PORT",
          "PYTHONUNBUFFERED", "BLIS_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS"}
LAUNCHERS_OWN = ("PALS_", "PMI_", "PMIX_", "SLURM_", "SLURMD_", "FLUX_")


class Node:
    """Cores (each a list of hardware threads), those of the system, and the cores beside each device or part of one."""

    def __init__(self, cores, threads, near, reserved=()):
        self.cores = [{c + t * cores for t in range(threads)} for c in range(cores)]
        self.near = [self.threads(low, high) for low, high in near]
        self.reserved = set().union(*(self.cores[c] for c in reserved)) if reserved else set()

    def threads(self, low, high):
        return set().union(*self.cores[low:high + 1])

    def cores_of(self, cpus):
        return {c for c, threads in enumerate(self.cores) if threads & cpus}


TRENTO = Node(64, 2, [(48, 55), (56, 63), (16, 23), (24, 31), (0, 7), (8, 15), (32, 39), (40, 47)], range(0, 64, 8))
NODES = {
    "aurora": Node(104, 2, [(0, 51)] * 6 + [(52, 103)] * 6, (0, 52)),                # 12 tiles
    "aurora-gpu": Node(104, 2, [(0, 51)] * 3 + [(52, 103)] * 3, (0, 52)),            # 6 GPUs
    "frontier": TRENTO, "lumi": TRENTO,                                              # 8 GCDs
    "polaris": Node(32, 2, [(24, 31), (16, 23), (8, 15), (0, 7)]),
    "perlmutter": Node(64, 2, [(48, 63), (32, 47), (16, 31), (0, 15)]),
    "alps": Node(288, 1, [(0, 71), (72, 143), (144, 215), (216, 287)]),
    "mi300a": Node(96, 2, [(0, 23), (24, 47), (48, 71), (72, 95)]),
}


def bound_sets(argv):
    """The CPUs of each local rank, from the launch line: PALS list, srun masks, Flux map."""
    words = iter(argv)
    for word in words:
        if word in ("--cpu-bind", "-o"):
            word += "=" + next(words)
        kind, _, value = word.partition("=")
        if kind == "--cpu-bind" and value.startswith("list:"):
            return [cpu_list(entry) for entry in value[5:].split(":")]
        if kind == "--cpu-bind" and value.startswith("mask_cpu:"):
            return [{i for i in range(int(mask, 16).bit_length()) if int(mask, 16) >> i & 1} for mask in value[9:].split(",")]
        if value.startswith("cpu-affinity=map:"):
            return [cpu_list(entry) for entry in value[17:].split(";")]
    raise AssertionError("no binding in %s" % argv)


class Started:
    """What hpclaunch run did in a job: how it ended, the launcher's call, and what each rank got."""

    def __init__(self, done, record):
        self.done, self.argv, self.launch_env = done, None, None
        self.ranks, self.core_limits = {}, {}
        path = os.path.join(record, "call.json")
        if os.path.exists(path):
            with open(path) as file:
                call = json.load(file)
            self.argv, self.launch_env = call["argv"], call["env"]
        for name in os.listdir(record):
            rank, _, kind = name.partition(".")
            with open(os.path.join(record, name), "rb") as file:
                if kind == "env":
                    self.ranks[int(rank)] = {os.fsdecode(n): os.fsdecode(v) for n, v in entries(file.read()).items()}
                elif kind == "core":
                    self.core_limits[int(rank)] = file.read().decode().strip()

    def __str__(self):
        return str(self.done)


class Job:
    """A fabricated job: its environment and the folder that stands for the machine."""

    def __init__(self, folder, env, launcher, **config):
        self.folder = tempfile.mkdtemp(dir=folder)
        self.record = os.path.join(self.folder, "record")
        os.mkdir(self.record)
        program = os.path.join(self.folder, PLACES[launcher])
        os.makedirs(os.path.dirname(program))
        with open(os.path.join(self.folder, "config.json"), "w") as file:
            json.dump(dict(config, record=self.record), file)
        self.script(program, 'exec "%s" -I -S "%s" "%s" %s "$@"' % (sys.executable, STANDIN, file.name, launcher))
        self.program = self.script(os.path.join(self.folder, "train"),
                                   '/usr/bin/env -0 > "{0}/$RANK.env"\nulimit -c > "{0}/$RANK.core"'.format(self.record))
        self.env = {"PATH": os.path.dirname(program), "HOME": self.folder, "USER": USER, "LANG": "C"}
        self.env["RES_OPTIONS"] = "attempts:1 timeout:1"  # the sites' hosts are looked for, where no answer may come for long
        self.env.update({name: os.environ[name] for name in os.environ if name.endswith("SAN_OPTIONS")})
        self.env.update(env)

    @staticmethod
    def script(path, text):
        with open(path, "w") as file:
            file.write("#!/bin/sh\n%s\n" % text)
        os.chmod(path, 0o755)
        return path

    def hpclaunch(self, *words):
        with_core_files = 'ulimit -S -c "$(ulimit -H -c)"; exec "$@"'
        return execute(["/bin/sh", "-c", with_core_files, "sh", support.HPCLAUNCH, *words], self.env, cwd=self.folder)

    def run(self, *words, arguments=("train.yaml", "--lr=1e-3", "a b")):
        self.arguments = arguments
        return self.started(self.hpclaunch("run", *words, "--", self.program, *arguments))

    def started(self, done=None):
        return Started(done, self.record)

    def forget(self):
        for name in os.listdir(self.record):
            os.unlink(os.path.join(self.record, name))


class SiteTest(Test):
    """Jobs of each kind, and what must hold in all of them."""

    serial = 0

    def job_number(self):
        SiteTest.serial += 1
        number = "%d%03d" % (os.getpid(), SiteTest.serial)
        self.addCleanup(self.sweep, number)
        return number

    @staticmethod
    def sweep(number):
        """What ranks of this job made outside of our folder."""
        for path in glob.glob("/tmp/%s-*%s*" % (USER, number)):
            shutil.rmtree(path, ignore_errors=True)

    def pbs(self, server, hosts, o_host, **env):
        number = self.job_number()
        node_file = self.file("aux/%s.%s" % (number, server), "".join(host + "\n" for host in hosts))
        return Job(self.folder, {
            "PBS_JOBID": "%s.%s" % (number, server), "PBS_NODEFILE": node_file, "PBS_ENVIRONMENT": "PBS_BATCH",
            "PBS_O_HOST": o_host, "PBS_O_WORKDIR": self.folder, "PBS_QUEUE": "prod", "PBS_JOBNAME": "train", **env}, "pals")

    def aurora(self, nodes, **env):
        hosts = ["x%dc%ds%db0n0.hostmgmt2%d.cm.aurora.alcf.anl.gov" % (4117 + i // 64, i // 8 % 8, i % 8, 117 + i // 64)
                 for i in range(nodes)]
        return self.pbs(AURORA[0], hosts, AURORA[1], **env)

    def slurm(self, nodes, count, gpu_order=None, **env):
        return Job(self.folder, {
            "SLURM_JOB_ID": self.job_number(), "SLURM_JOB_NODELIST": nodes, "SLURM_NODELIST": nodes,
            "SLURM_JOB_NUM_NODES": str(count), "SLURM_NNODES": str(count), "SLURM_PROCID": "0", "SLURM_LOCALID": "0",
            "SLURM_NODEID": "0", **env}, "slurm", gpu_order=gpu_order)

    def flux(self, hosts, **env):
        """The first program of an allocation: it has no FLUX_JOB_ID, only that of the instance around it."""
        number = self.job_number()
        job = Job(self.folder, {"FLUX_URI": "local:///tmp/flux-AbCdEf/local-0", "FLUX_ENCLOSING_ID": "f" + number, **env}, "flux",
                  hosts=hosts)
        job.number = number
        return job

    def launched(self, job, golden, *words, ranks):
        """Runs; the launch line is `golden` and then the shim with the program, and all ranks of both ends started."""
        started = job.run("--verify", "off", *words)
        self.ok(started.done)
        self.assertIsNotNone(started.argv, str(started))
        tail = [shim_path(), job.program, *job.arguments]
        self.assertEqual(started.argv, golden.split() + tail, str(started))
        self.assertEqual(sorted(started.ranks), sorted(ranks), str(started))
        return started

    def ranked(self, started, per_node, world, master, local_rank="own"):
        """The names that PyTorch and others read, in each rank."""
        for rank, env in started.ranks.items():
            local, node = rank % per_node, rank // per_node
            wanted = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": per_node, "GROUP_RANK": node,
                      "HPCLAUNCH_LOCAL_RANK": local, "HPCLAUNCH_LOCAL_SIZE": per_node, "HPCLAUNCH_NODE": node,
                      "LOCAL_RANK": local if local_rank == "own" else local_rank(local)}
            if "PALS_RANKID" in env:
                wanted.update(MPI_LOCALRANKID=local, MPI_LOCALNRANKS=per_node)
            self.assertEqual({name: env.get(name) for name in wanted},
                             {name: str(value) for name, value in wanted.items()}, "rank %d" % rank)
            self.assertEqual((env["MASTER_ADDR"], env["MASTER_PORT"].isdigit()), (master, True))
            self.assertNotIn("HPCLAUNCH_PLAN", env)

    def site(self, job, started, wanted, lost=()):
        """All that a rank has beside its job's environment and what any site gives; a function is called with the local rank."""
        for rank, env in started.ranks.items():
            local = int(env["HPCLAUNCH_LOCAL_RANK"])
            got = {name: value for name, value in env.items()
                   if job.env.get(name) != value and name not in ADDED and not name.startswith(LAUNCHERS_OWN)
                   and (name not in COMMON or name in wanted)}
            self.assertEqual(got, {name: value(local) if callable(value) else value for name, value in wanted.items()}, "rank %d" % rank)
            self.assertEqual(sorted(set(job.env) - set(env)), sorted(lost), "rank %d" % rank)

    def caches(self, job, *more, gloo="hsn0"):
        """Compilers' caches of this job on each node, and Gloo's interface where there are several nodes."""
        folder = "/tmp/%s-cache-%s" % (USER, job.env.get("PBS_JOBID") or job.env["SLURM_JOB_ID"])
        wanted = {"TRITON_CACHE_DIR": folder + "/triton", "TORCHINDUCTOR_CACHE_DIR": folder + "/inductor", "NUMBA_CACHE_DIR": folder + "/numba"}
        wanted.update({name: folder + "/" + part for name, part in more})
        if "SYCL_CACHE_DIR" in wanted:
            wanted["SYCL_CACHE_PERSISTENT"] = "1"
        return {**wanted, "GLOO_SOCKET_IFNAME": gloo} if gloo else wanted

    def plan(self, job, *words):
        done = job.hpclaunch("plan", "--json", *words)
        self.assertIn(done.status, (0, 1), str(done))
        return json.loads(done.out)

    def on_one_node(self, job, ppn, mask, *words, started, force=()):
        """The CPUs of `ppn` ranks and their values of `mask`, from the plan; where they are `started`, each has what is planned."""
        words = ["--ppn", str(ppn), *words, "--verify", "off"]
        plan = self.plan(job, *words, "--", job.program)
        [[values]] = [one["value"]["per_rank"] for one in plan["env"] if one["name"] == mask]
        self.assertEqual(len(values), ppn)
        if started:
            ranks = job.run(*words, *force, arguments=())
            self.ok(ranks.done)
            self.assertEqual(ranks.argv, plan["argv"][1:])
            self.mask(ranks, mask, lambda rank: values[rank])
        return bound_sets(plan["argv"]), [int(value) for value in values]

    def comparable(self, env):
        return {name: value for name, value in env.items() if name not in ADDED}

    def hard_core_limit(self):
        with open(support.HPCLAUNCH, "rb") as program:
            if b"__asan_init" in program.read():
                return "0"  # AddressSanitizer forbids core files, and ranks inherit that
        limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
        return "unlimited" if limit == resource.RLIM_INFINITY else str(limit // 512)

    def each(self, started, wanted, absent=()):
        """These values in every rank, and those names in none."""
        for rank, env in started.ranks.items():
            self.assertEqual({name: env.get(name) for name in wanted}, wanted, "rank %d" % rank)
            self.assertEqual([name for name in absent if name in env], [], "rank %d" % rank)

    def laws(self, sets, devices, node):
        """No core twice, none of the system's, every rank beside its device; `devices` may hold None."""
        self.assertEqual(len(sets), len(devices))
        taken = {}
        for local, cpus in enumerate(sets):
            self.assertTrue(cpus)
            self.assertLessEqual(cpus, set().union(*node.cores), "local rank %d" % local)
            self.assertFalse(cpus & node.reserved, "local rank %d has cores of the system" % local)
            for core in node.cores_of(cpus):
                self.assertNotIn(core, taken, "core %d: local ranks %s and %d" % (core, taken.get(core), local))
                taken[core] = local
            if devices[local] is not None:
                self.assertLessEqual(cpus, node.near[devices[local]], "local rank %d is far from device %s" % (local, devices[local]))

    def mask(self, started, name, per_rank):
        self.assertEqual({rank: env.get(name) for rank, env in started.ranks.items()},
                         {rank: per_rank(rank) for rank in started.ranks})

    def made(self, path):
        self.assertTrue(os.path.isdir(path), path)
        self.assertEqual(os.stat(path).st_mode & 0o077, 0, "others may look into %s" % path)
