#!/usr/bin/env python3
"""hpclaunch bind: one rank that somebody else has started. Every launcher is played by its variables, larger machines by
recorded ones and a stand-in for the kernel's masks (standins/affinity.c); `run` on the same machine says what is right."""
import glob
import json
import os
import re
import signal
import subprocess

import support
from allowed import needs
from support import HOST, ROOT, Machine, Test, clean_env, cpu_list, entries, execute, hpclaunch, machine, need

STEM = "/dev/shm/hpclaunch-bind-%d-" % os.geteuid()
LINE = re.compile(r"hpclaunch: local rank (\d+) of (\d+) \(([\w-]+)\): CPUs? ([\d,-]+)(.*)")
OWN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE")


def listed(cpus):
    return ",".join(str(cpu) for cpu in sorted(cpus))


# What each launcher tells a rank: (rank, ranks, local rank, ranks of the node, node, nodes) -> variables.
def slurm(r, n, l, s, k, m):
    return {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": r, "SLURM_LOCALID": l, "SLURM_NODEID": k, "SLURM_STEP_NUM_TASKS": n, "SLURM_NTASKS": n,
            "SLURM_STEP_NUM_NODES": m, "SLURM_NNODES": m, "SLURM_TASKS_PER_NODE": "%s(x%s)" % (s, m), "SLURM_STEP_TASKS_PER_NODE": "%s(x%s)" % (s, m),
            "SLURM_STEP_NODELIST": ",".join("n%d" % i for i in range(int(m))), "SLURM_JOB_NODELIST": "n[0-%s]" % m, "SLURM_TASK_PID": "4711%s" % r}


def hydra(r, n, l, s, k, m):
    return {"PMI_RANK": r, "PMI_SIZE": n, "PMI_FD": str(5 + int(l)), "MPI_LOCALRANKID": l, "MPI_LOCALNRANKS": s}


def openmpi(r, n, l, s, k, m):
    return {"OMPI_COMM_WORLD_RANK": r, "OMPI_COMM_WORLD_SIZE": n, "OMPI_COMM_WORLD_LOCAL_RANK": l, "OMPI_COMM_WORLD_LOCAL_SIZE": s, "PMIX_RANK": r, "PMIX_NAMESPACE": "7.1"}


def pals(r, n, l, s, k, m):
    return {"PALS_RANKID": r, "PALS_LOCAL_RANKID": l, "PALS_LOCAL_SIZE": s, "PALS_NODEID": k, "PMI_SIZE": n, "PMI_RANK": r}


def jsrun(r, n, l, s, k, m):
    return {"JSM_NAMESPACE_RANK": r, "JSM_NAMESPACE_SIZE": n, "JSM_NAMESPACE_LOCAL_RANK": l, "JSM_NAMESPACE_LOCAL_SIZE": s}


def flux(r, n, l, s, k, m):
    return {"FLUX_TASK_RANK": r, "FLUX_JOB_SIZE": n, "FLUX_JOB_NNODES": m, "FLUX_TASK_LOCAL_ID": l}


def mvapich(r, n, l, s, k, m):
    return {"MV2_COMM_WORLD_RANK": r, "MV2_COMM_WORLD_SIZE": n, "MV2_COMM_WORLD_LOCAL_RANK": l, "MV2_COMM_WORLD_LOCAL_SIZE": s}


def torchrun(r, n, l, s, k, m):
    return {"RANK": r, "WORLD_SIZE": n, "LOCAL_RANK": l, "LOCAL_WORLD_SIZE": s, "GROUP_RANK": k, "GROUP_WORLD_SIZE": m, "MASTER_ADDR": "head", "MASTER_PORT": "29500",
            "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_ERROR_FILE": "/tmp/%s.json" % r}


LAUNCHERS = {"SLURM_LOCALID": slurm, "MPI_LOCALRANKID": hydra, "OMPI_COMM_WORLD_LOCAL_RANK": openmpi, "PALS_LOCAL_RANKID": pals, "JSM_NAMESPACE_LOCAL_RANK": jsrun,
             "FLUX_TASK_LOCAL_ID": flux, "MV2_COMM_WORLD_LOCAL_RANK": mvapich, "LOCAL_RANK": torchrun}


class Bind(Test):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.remove_plans, set(glob.glob(STEM + "*")))
        self.stand_in = os.path.join(self.folder, "affinity.so")
        subprocess.run([need("cc"), "-shared", "-fPIC", "-o", self.stand_in, os.path.join(ROOT, "tests", "cli", "standins", "affinity.c")], check=True)
        self.mark = {"TEST_MARK": self.folder}  # plans of other tests are not ours

    @staticmethod
    def remove_plans(before):
        for path in set(glob.glob(STEM + "*")) - before:
            os.path.exists(path) and os.remove(path)

    @staticmethod
    def read(path):
        with open(path) as file:
            return file.read()

    def plans(self):
        return glob.glob(STEM + "*")

    def on(self, name, **extra):
        """The environment of a process on that recorded machine."""
        return clean_env(**{"LD_PRELOAD": self.stand_in, "MACHINE_CPUS": listed(Machine(machine(name)).allowed), **self.mark, **extra})

    def bind(self, *words, env=None, program=("/usr/bin/env", "-0"), status=0):
        done = hpclaunch("bind", *words, "--", *program, env=env or clean_env(**self.mark))
        return self.ok(done, status)

    def ranks(self, n, *words, env, launcher=None):
        """(CPUs, environment) of each rank of one node."""
        found = []
        for local in range(n):
            told = launcher(*(str(x) for x in (local, n, local, n, 0, 1))) if launcher else {}
            typed = [] if launcher else ["--local-rank", str(local), "--local-size", str(n)]
            done = self.bind("-v", *typed, *words, env={**env, **told})
            match = LINE.search(done.err)
            self.assertTrue(match, str(done))
            self.assertEqual(match.group(1, 2), (str(local), str(n)))
            found.append((cpu_list(match.group(4)), {k.decode(): v.decode() for k, v in entries(done.raw_out).items()}))
            self.last = done
        return found


class Place(Bind):
    def test_every_launcher(self):
        for name, tell in LAUNCHERS.items():
            with self.subTest(name):
                env = self.on("xeon-2x52-smt2.xml", **tell("5", "8", "1", "4", "1", "2"))
                done = self.bind("-v", "--topology", machine("xeon-2x52-smt2.xml"), env=env)
                self.assertIn("local rank 1 of 4 (%s)" % name, done.err)
                got = entries(done.raw_out)
                self.assertEqual([got[key.encode()] for key in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE")],
                                 [b"5", b"8", b"1", b"4", b"1", b"1", b"2"])
                self.assertNotIn(b"HPCLAUNCH_PLAN", got)

    def test_what_is_set_stays(self):
        env = clean_env(**self.mark, **torchrun("5", "8", "1", "4", "1", "2"), OMP_NUM_THREADS="3")
        got = entries(self.bind(env=env).raw_out)
        for name in (*torchrun(*["0"] * 6), "OMP_NUM_THREADS"):
            self.assertEqual(got[name.encode()].decode(), env[name], name)

    def test_rank_0_of_several_nodes(self):
        got = entries(self.bind(env=clean_env(**self.mark, **slurm("3", "4", "1", "2", "1", "2"))).raw_out)
        self.assertEqual(got[b"MASTER_ADDR"], b"n0")
        other = entries(self.bind(env=clean_env(**self.mark, **slurm("0", "4", "0", "2", "0", "2"))).raw_out)
        self.assertEqual([other[b"MASTER_ADDR"], other[b"MASTER_PORT"]], [b"n0", got[b"MASTER_PORT"]])
        self.assertNotIn(b"MASTER_ADDR", entries(self.bind(env=clean_env(**self.mark, **hydra("3", "4", "1", "2", "1", "2"))).raw_out))

    def test_innermost(self):
        outer = slurm("0", "1", "0", "1", "0", "1")
        for inner in (torchrun, openmpi, hydra):
            with self.subTest(inner.__name__):
                env = clean_env(**self.mark, **{**outer, **inner("3", "4", "3", "4", "0", "1")})
                self.assertIn("local rank 3 of 4", self.bind("-v", env=env).err)

    def test_a_batch_script_is_no_rank(self):
        script = {k: v for k, v in slurm("0", "4", "0", "4", "0", "1").items() if "STEP" not in k}
        self.refused(125, "bind", "--", "/bin/true", env=clean_env(**script), says=["nothing says which rank of this node", "--local-rank R --local-size N"])

    def test_an_exported_local_rank_is_not_believed(self):
        env = clean_env(**self.mark, **slurm("3", "4", "3", "4", "0", "1"), LOCAL_RANK="0")
        self.assertIn("local rank 3 of 4 (SLURM_LOCALID)", self.bind("-v", env=env).err)

    def test_unequal_nodes(self):
        env = {**slurm("4", "6", "1", "0", "1", "2"), "SLURM_STEP_TASKS_PER_NODE": "3,2,1", "SLURM_STEP_NUM_NODES": "3"}
        done = self.bind("-v", env=clean_env(**self.mark, **env))
        self.assertIn("local rank 1 of 2", done.err)
        got = entries(done.raw_out)
        self.assertEqual([got[b"RANK"], got[b"WORLD_SIZE"], got[b"GROUP_WORLD_SIZE"]], [b"4", b"6", b"3"])

    def test_no_place(self):
        for env, says in (({}, "none of LOCAL_RANK, "), ({"LOCAL_RANK": "{0,1,2,3}", "LOCAL_WORLD_SIZE": "4"}, 'LOCAL_RANK="{0,1,2,3}" is not a place'),
                          ({"LOCAL_RANK": "4", "LOCAL_WORLD_SIZE": "4"}, "LOCAL_RANK is 4, and the node has 4 ranks: 0 to 3"),
                          ({"LOCAL_RANK": "-1", "LOCAL_WORLD_SIZE": "4"}, 'LOCAL_RANK="-1" is not a place'), ({"LOCAL_RANK": "1"}, "nothing says how many ranks"),
                          ({"MPI_LOCALRANKID": "x", "MPI_LOCALNRANKS": "2"}, 'MPI_LOCALRANKID="x" is not a place')):
            with self.subTest(env):
                self.refused(125, "bind", "--", "/bin/true", env=clean_env(**env), says=[says, "hpclaunch bind --local-rank R --local-size N -- PROGRAM"])
        self.refused(125, "bind", "--local-rank", "1", "--", "/bin/true", says=["--local-rank without --local-size"])
        self.refused(125, "bind", "--local-rank", "2", "--local-size", "2", "--", "/bin/true", says=["--local-rank is 2, and the node has 2 ranks"])


class Nested(Bind):
    """Launchers inside of others: who is nearer says the place."""

    def ranks_of(self, *line, env=None):
        env = clean_env(**self.mark, **(env or {}))
        return self.ok(execute([*line], env={**env, "HPC": support.HPCLAUNCH}))

    MPIEXEC = 'for r in 0 1; do PMI_RANK=$r PMI_SIZE=2 MPI_LOCALRANKID=$r MPI_LOCALNRANKS=2 "$HPC" bind -v -- /bin/sh -c "echo \\$RANK \\$WORLD_SIZE \\$LOCAL_RANK" & done; wait'
    LOOP = 'for r in 0 1; do "$HPC" bind -v --local-rank $r --local-size 2 -- /bin/sh -c "echo \\$RANK \\$WORLD_SIZE \\$LOCAL_RANK" & done; wait'

    def test_a_launcher_inside_of_run_and_of_bind(self):
        for outer in (["run", "-n", "1", "--launcher", "local"], ["bind", "--local-rank", "0", "--local-size", "1"]):
            for script in (self.MPIEXEC, self.LOOP):
                with self.subTest(outer=outer[0], script=script[:30]):
                    done = self.ranks_of(support.HPCLAUNCH, *outer, "--", "/bin/sh", "-c", script)
                    self.assertEqual(sorted(done.out.splitlines()), ["0 2 0", "1 2 1"])
                    self.assertNotIn("bound already", done.err)
                    self.assertEqual(sorted(m.group(1, 2) for m in LINE.finditer(done.err)), [("0", "2"), ("1", "2")])

    def test_run_inside_of_a_step(self):
        """Slurm's variables are of the step that the shell is in, also where it has as many tasks."""
        for step in (slurm("0", "1", "0", "1", "0", "1"), slurm("0", "2", "0", "2", "0", "1")):
            done = self.ranks_of(support.HPCLAUNCH, "run", "-n", "2", "--ppn", "2", "-N", "1", "--oversubscribe", "--force", "--launcher", "local", "--", support.HPCLAUNCH, "bind", "--", "/usr/bin/printenv", "LOCAL_RANK", env=step)
            self.assertEqual(sorted(done.out.split()), ["0", "1"])
            self.assertEqual(done.err.count("bound already"), 1, str(done))

    def test_two_torchruns_on_a_node(self):
        for task in ("0", "1"):
            for local in ("0", "1"):
                env = clean_env(**self.mark, **{**slurm(task, "2", task, "2", "0", "1"), **torchrun(str(2 * int(task) + int(local)), "4", local, "2", task, "2")})
                done = self.bind("-v", env=env)
                self.assertEqual(LINE.search(done.err).group(1, 2, 3), (local, "2", "LOCAL_RANK"))
                self.assertEqual(entries(done.raw_out)[b"LOCAL_RANK"], local.encode())

    def test_one_rank_alone_yields(self):
        """srun in a shell that mpiexec has started."""
        env = clean_env(**self.mark, **{**hydra("0", "1", "0", "1", "0", "1"), **slurm("1", "2", "1", "2", "0", "1")})
        self.assertIn("local rank 1 of 2 (SLURM_LOCALID)", self.bind("-v", env=env).err)

    def test_deepspeed(self):
        env = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_SIZE": "4", "CROSS_RANK": "1", "CROSS_SIZE": "2", "MASTER_ADDR": "head", "MASTER_PORT": "29500"}
        done = self.bind("-v", env=clean_env(**self.mark, **env))
        self.assertIn("local rank 1 of 4 (LOCAL_RANK)", done.err)
        got = entries(done.raw_out)
        self.assertEqual([got[key.encode()].decode() for key in env], list(env.values()))
        self.assertEqual([got[b"GROUP_RANK"], got[b"GROUP_WORLD_SIZE"], got[b"LOCAL_WORLD_SIZE"]], [b"1", b"2", b"4"])

    def test_pods(self):
        """RANK and WORLD_SIZE of pods: by the platform's variables; without them the sizes contradict each other."""
        pods = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "head", "MASTER_PORT": "23456"}
        typed = ["--local-rank", "3", "--local-size", "8"]
        for known in ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"VC_TASK_INDEX": "1"}):
            got = entries(self.bind(*typed, env=clean_env(**self.mark, **pods, **known)).raw_out)
            self.assertEqual([got[key] for key in (b"RANK", b"WORLD_SIZE", b"LOCAL_RANK", b"GROUP_RANK", b"GROUP_WORLD_SIZE", b"MASTER_ADDR")], [b"11", b"16", b"3", b"1", b"2", b"head"])
        said = self.refused(125, "bind", *typed, "--", "/bin/true", env=clean_env(**pods), says=["8 ranks on this node", "WORLD_SIZE=2 counts pods", "RANK=11 WORLD_SIZE=16"])
        self.bind(*typed, env=clean_env(**self.mark, **{**pods, "RANK": "11", "WORLD_SIZE": "16"}))
        self.bind(*typed, env=clean_env(**self.mark, MASTER_ADDR="head"))

    def test_unequal_nodes_of_hydra(self):
        """Who lists the hosts says how many nodes there are; else nobody does, and a line says what is missing."""
        nodes = self.file("nodes", HOST + "\n" * 1 + (HOST + "\n") * 2 + "nb\n" * 2)
        job = {"PBS_JOBID": "7.pbs", "PBS_NODEFILE": nodes, "PBS_ENVIRONMENT": "PBS_BATCH", "PBS_O_WORKDIR": self.folder}
        tell = {"PMI_RANK": "1", "PMI_SIZE": "5", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "3"}
        got = entries(self.bind(env=clean_env(**self.mark, **job, **tell)).raw_out)
        self.assertEqual([got[key] for key in (b"RANK", b"WORLD_SIZE", b"GROUP_RANK", b"GROUP_WORLD_SIZE", b"MASTER_ADDR")], [b"1", b"5", b"0", b"2", HOST.encode()])
        second = self.file("nodes2", "na\n" * 3 + (HOST + "\n") * 2)
        tell = {"PMI_RANK": "4", "PMI_SIZE": "5", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
        got = entries(self.bind(env=clean_env(**self.mark, **{**job, "PBS_NODEFILE": second}, **tell)).raw_out)
        self.assertEqual([got[key] for key in (b"RANK", b"GROUP_RANK", b"GROUP_WORLD_SIZE", b"MASTER_ADDR")], [b"4", b"1", b"2", b"na"])
        done = self.bind(env=clean_env(**self.mark, **tell))
        got = entries(done.raw_out)
        self.assertEqual([got[b"RANK"], got.get(b"GROUP_RANK"), got.get(b"GROUP_WORLD_SIZE"), got.get(b"MASTER_ADDR")], [b"4", None, None, None])
        self.assertIn("MASTER_ADDR is not set", done.err)
        self.assertEqual(self.bind(env=clean_env(**self.mark, MASTER_ADDR="na", **tell)).err, "")


SHAPES = [("documented/dgx-h100.xml", 1), ("documented/dgx-h100.xml", 2), ("documented/dgx-h100.xml", 5), ("documented/dgx-h100.xml", 8), ("documented/dgx-h100.xml", 16),
          ("documented/dgx-h100.xml", 8, "--gpu-view", "own"), ("documented/dgx-h100.xml", 4, "--devices-per-rank", "2"), ("documented/epyc-9454-h100.xml", 4),
          ("documented/epyc-9654-h100.xml", 3), ("documented/gh200-4x.xml", 4), ("documented/power9-2x22-v100.xml", 6), ("documented/power9-2x20-v100.xml", 4),
          ("documented/epyc-7543p-a100.xml", 4), ("documented/epyc-9654-2x.xml", 7), ("devices/mi250x-blade.xml", 8), ("devices/mi250x-blade.xml", 4),
          ("devices/mi300a-spx.xml", 4), ("devices/mi300a-cpx.xml", 6), ("devices/xeon-pvc.xml", 6), ("devices/xeon-pvc-flat.xml", 4), ("devices/xeon-a100-switched.xml", 2),
          ("devices/xeon-2x8-k40.xml", 2), ("xeon-2x52-smt2.xml", 8), ("xeon-2x52-smt2.xml", 4, "--threads-per-core", "1"), ("xeon-2x52-smt2.xml", 3, "--cpus-per-rank", "5"),
          ("epyc-1x64-nps4.xml", 5), ("knl-snc4-flat.xml", 4), ("hbm-2x48-snc4.json", 6), ("laptop-8.xml", 3), ("xeon-2x8-allowed-holes.xml", 2), ("power9-4x20-smt4.xml", 4),
          ("recorded/xeon-snc2.xml", 4), ("single-pu.xml", 1)]


SITES = [("aurora", 12), ("frontier", 8), ("perlmutter", 4), ("polaris", 4), ("lumi-g", 8), ("jupiter", 4), ("daint", 4), ("el-capitan", 4), ("sunspot", 12), ("frontier", 4)]


class AsRun(Bind):
    OURS = re.compile(r"(_|PWD|OLDPWD|SHLVL|MASTER_PORT)$")

    def same(self, found, run):
        for rank, (_, got) in enumerate(found):
            right = {key.decode(): re.sub(r"-[0-9a-f]{8}\b", "-KEY", value.decode()) for key, value in run[rank].items()}
            got = {key: re.sub(r"-[0-9a-f]{8}\b", "-KEY", value) for key, value in got.items()}  # of one launch
            for one in (got, right):
                for key in [key for key in one if self.OURS.match(key)]:
                    del one[key]
            self.assertEqual(got, right)

    def test_shapes(self):
        """Cores and environment: a loop of bind, and run."""
        for name, n, *words in SHAPES:
            with self.subTest(name, ranks=n, words=words):
                words = ["--profile", "none", "--topology", machine(name), *words]
                env = self.on(name)
                plan = self.json("plan", *words, "-N", "1", "--ppn", str(n), "--oversubscribe", "--launcher", "local", "--", "/bin/true", env=env)
                wanted = [cpu_list(rank["cpus"]) for rank in plan["classes"][0]["ranks"]]
                run = self.ranks_environment("run", *words, "-N", "1", "--ppn", str(n), "--oversubscribe", "--launcher", "local", "--verify", "off", "--force", env=env)
                found = self.ranks(n, *words, env=env)
                self.assertEqual([cpus for cpus, _ in found], wanted)
                self.same(found, run)

    def test_sites(self):
        """What a site's rules decide: cores, masks, fabric, interfaces, caches."""
        for site, n in SITES:
            with self.subTest(site):
                env = clean_env(LD_PRELOAD=self.stand_in, MACHINE_CPUS="0-287", **self.mark)
                run = self.ranks_environment("run", "--profile", site, "-N", "1", "--ppn", str(n), "--launcher", "local", "--verify", "off", "--force", env=env)
                plan = self.json("plan", "--profile", site, "-N", "1", "--ppn", str(n), "--launcher", "local", "--", "/bin/true", env=env)
                found = self.ranks(n, "--profile", site, env=env)
                self.assertEqual([cpus for cpus, _ in found], [cpu_list(rank["cpus"]) for rank in plan["classes"][0]["ranks"]])
                self.same(found, run)

    def test_launchers(self):
        name = "documented/dgx-h100.xml"
        words = ["--profile", "none", "--topology", machine(name)]
        alone = self.ranks(4, *words, env=self.on(name))
        for by, tell in LAUNCHERS.items():
            with self.subTest(by):
                found = self.ranks(4, *words, env=self.on(name), launcher=tell)
                self.assertEqual([cpus for cpus, _ in found], [cpus for cpus, _ in alone])
                for key in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", *OWN, "OMP_NUM_THREADS", "HPCLAUNCH_LOCAL_RANK", "HPCLAUNCH_LOCAL_SIZE"):
                    self.assertEqual([env.get(key) for _, env in found], [env.get(key) for _, env in alone], key)

    def test_on_this_machine(self):
        """Masks that the kernel has taken, and nothing on stdout."""
        n = len(os.sched_getaffinity(0))
        run = self.ranks_environment("run", "-n", str(n), "--oversubscribe", "--launcher", "local", "--profile", "none")
        right = [self.bound(rank) for rank in range(n)]
        self.assertEqual(sorted(run), list(range(n)))
        for rank in range(n):
            done = self.bind("--profile", "none", "--local-rank", str(rank), "--local-size", str(n), program=("/usr/bin/grep", "Cpus_allowed_list", "/proc/self/status"))
            self.assertEqual(cpu_list(done.out.split()[1]), right[rank])
            self.assertEqual(done.err, "")


class Rules(Bind):
    DGX = ["--profile", "none", "--topology", machine("documented/dgx-h100.xml")]

    def planned(self, n):
        return [cpus for cpus, _ in self.ranks(n, *self.DGX, env=self.on("documented/dgx-h100.xml"))]

    def test_a_launcher_that_has_bound_is_respected(self):
        whole = Machine(machine("documented/dgx-h100.xml"))
        planned = self.planned(8)
        domain = sorted(whole.numa.values(), key=min)[0]
        place = ["--local-rank", "1", "--local-size", "8"]
        inside = self.bind("-v", *self.DGX, *place, env=self.on("documented/dgx-h100.xml", MACHINE_MASK=listed(sorted(domain)[:6])))
        self.assertEqual(cpu_list(LINE.search(inside.err).group(4)), set(sorted(domain)[:6]))
        self.assertIn("bound by the launcher inside of one NUMA node", inside.err)
        self.assertEqual(entries(inside.raw_out)[b"OMP_NUM_THREADS"], b"%d" % sum(bool(core & set(sorted(domain)[:6])) for core in whole.cores))
        wide = whole.allowed - set(sorted(planned[1])[:3])
        cut = self.bind("-v", *self.DGX, *place, env=self.on("documented/dgx-h100.xml", MACHINE_MASK=listed(wide)))
        self.assertEqual(cpu_list(LINE.search(cut.err).group(4)), planned[1] & wide)
        other = whole.allowed - planned[1]
        left = self.bind("-v", *self.DGX, *place, env=self.on("documented/dgx-h100.xml", MACHINE_MASK=listed(other)))
        self.assertEqual(cpu_list(LINE.search(left.err).group(4)), other)
        self.assertIn("have none of the planned", left.err)

    def test_a_mask_that_all_ranks_have_is_shared(self):
        """taskset before a loop: the process that starts them has it as well. In a wrapper of one rank it is that rank's."""
        cpus = sorted(os.sched_getaffinity(0))
        line = '"$0" bind -v -- /bin/true; true'
        loop = "for r in 0 1; do export LOCAL_RANK=$r LOCAL_WORLD_SIZE=2; %s; done" % line.replace("; true", "")
        wrapper = "export LOCAL_RANK=1 LOCAL_WORLD_SIZE=2; exec sh -c '%s' \"$0\"" % line
        said = [self.ok(execute(["taskset", "-c", str(cpus[0]), "sh", "-c", text, support.HPCLAUNCH], env=clean_env(**self.mark))).err for text in (loop, wrapper)]
        self.assertEqual([LINE.search(line).group(4) for text in said for line in text.splitlines()], [str(cpus[0])] * 3, said)
        self.assertNotIn("bound by the launcher", said[0])
        self.assertEqual("bound by the launcher" in said[1], len(cpus) > 1, said[1])
        common = self.on("documented/dgx-h100.xml", MACHINE_MASK="0-13", PARENT_MASK="0-13")
        self.assertLessEqual(self.ranks(2, *self.DGX, env=common)[0][0], set(range(14)), "never wider")

    def test_the_device_that_the_rank_will_use(self):
        """A launcher that gives each rank one device, in an order of its own; by number, by UUID, by a part of one."""
        planned = self.planned(8)
        nodes = sorted(Machine(machine("documented/dgx-h100.xml")).numa.items())
        for entry, device in (("6", 6), ("0", 0)):
            done = self.bind("-v", *self.DGX, "--local-rank", "2", "--local-size", "8", env=self.on("documented/dgx-h100.xml", CUDA_VISIBLE_DEVICES=entry))
            self.assertIn("device %d" % device, done.err)
            got = entries(done.raw_out)
            self.assertEqual([got[b"CUDA_VISIBLE_DEVICES"], got[b"LOCAL_RANK"], got[b"HPCLAUNCH_LOCAL_RANK"]], [entry.encode(), b"0", b"2"])
            near = next(cpus for _, cpus in nodes if planned[device] <= cpus)
            self.assertLessEqual(cpu_list(LINE.search(done.err).group(4)), near)

    def test_one_device_for_all(self):
        """Exported before srun, which gave none; and where it did."""
        name = "documented/dgx-h100.xml"
        env = self.on(name, CUDA_VISIBLE_DEVICES="3")
        for given in ({}, {"SLURM_GPUS_ON_NODE": "8"}):
            found = [cpus for cpus, _ in self.ranks(4, *self.DGX, env={**env, **given}, launcher=slurm)]
            self.assertEqual(len(set.intersection(*found)) > 0, bool(given), found)
            if given:
                self.assertEqual(len(set(map(frozenset, found))), 1, "the NUMA node of that device, which no rank would get by the plan")

    @needs("own mounts")
    def test_a_control_group_that_hides_the_others(self):
        """Each rank finds its own device as number 0: the one whose file it can open."""
        name = "devices/mi250x-blade.xml"
        words = ["--profile", "none", "--topology", machine(name)]
        topology = self.json("topo", "--topology", machine(name))
        for number, device in enumerate(topology["devices"]):
            at = "class/drm/renderD%d/device" % (128 + number)
            self.file("bus/%s/vendor" % device["pci"], "0x1002\n")
            os.makedirs(os.path.join(self.folder, os.path.dirname(at)))
            os.symlink(os.path.join(self.folder, "bus", device["pci"]), os.path.join(self.folder, at))
        for local, device in ((0, 5), (3, 2)):
            node = "/dev/dri/renderD%d" % (128 + device)
            done = execute([need("bwrap"), "--dev-bind", "/", "/", "--dev", "/dev", "--bind", self.folder + "/class", "/sys/class", "--bind", self.file("render", ""), node,
                            "--", support.HPCLAUNCH, "bind", "-v", "--local-rank", str(local), "--local-size", "8", *words, "--", "/bin/true"],
                           env=self.on(name, ROCR_VISIBLE_DEVICES="0"))
            self.assertIn("device %d (%s)" % (device, topology["devices"][device]["pci"]), self.ok(done).err)
            self.assertEqual(cpu_list(LINE.search(done.err).group(4)), cpu_list(topology["devices"][device]["pus"]))

    def test_memory(self):
        log = os.path.join(self.folder, "memory")
        place = ["--local-rank", "0", "--local-size", "8"]
        for asked, refused, taken, says in (("bind", "", ["2 1"], ""), ("preferred", "", ["1 1"], ""), ("none", "", [], ""),
                                            ("bind", "2", ["1 1"], "--mem bind: the kernel refuses it, memory is preferred"),
                                            ("bind", "12", [], "--mem bind: the kernel refuses it, memory is where the rank first touches it")):
            with self.subTest(asked, refused=refused):
                open(log, "w").close()
                env = self.on("documented/dgx-h100.xml", MEMORY_LOG=log, MEMORY_REFUSED=refused)
                done = self.bind(*self.DGX, *place, "--mem", asked, env=env)
                with open(log) as file:
                    self.assertEqual(file.read().splitlines(), taken)
                self.assertEqual(bool(says), bool(done.err), str(done))
                self.assertIn(says, done.err)
                if says:
                    self.refused(125, "bind", *self.DGX, *place, "--mem", asked, "--strict", "--", "/bin/true", env=env, says=[says])

    def test_cpus_that_are_not_here(self):
        place = ["--local-rank", "7", "--local-size", "8"]
        few = {**self.on("documented/dgx-h100.xml"), "MACHINE_CPUS": "0-3"}
        done = self.bind(*self.DGX, *place, env=few)
        self.assertRegex(done.err, r"local rank 7: planned CPUs [\d,-]+, the rank has CPUs 0-3")
        self.refused(125, "bind", *self.DGX, *place, "--strict", "--", "/bin/true", env=few, says=["local rank 7: planned CPUs"])

    def test_competitors_are_named_once(self):
        for name, value in (("TLLM_NUMA_AWARE_WORKER_AFFINITY", "1"), ("KMP_AFFINITY", "compact"), ("GOMP_CPU_AFFINITY", "0-3"), ("ACCELERATE_CPU_AFFINITY", "1")):
            with self.subTest(name):
                env = clean_env(**self.mark, **{name: value})
                said = [self.bind("--local-rank", str(rank), "--local-size", "3", env=env).err for rank in range(3)]
                self.assertIn(name, said[0])
                self.assertEqual(said[1:], ["", ""])
        self.assertEqual(self.bind("--local-rank", "0", "--local-size", "3", env=clean_env(**self.mark, KMP_AFFINITY="disabled")).err, "")

    def test_a_quota_without_a_cpuset(self):
        """Neighbours in other pods would take the same first cores: the device's NUMA node, and no part of it."""
        node = Machine(machine("documented/dgx-h100.xml"))
        env = clean_env(**self.mark, HPCLAUNCH_CPU_QUOTA="1")
        one = self.bind("-v", "--local-rank", "0", "--local-size", "1", env=env)
        self.assertEqual(cpu_list(LINE.search(one.err).group(4)), os.sched_getaffinity(0))
        self.assertEqual(entries(one.raw_out)[b"OMP_NUM_THREADS"], b"1")
        self.assertTrue(node.numa)


class Exec(Bind):
    def test_it_becomes_the_program(self):
        child = subprocess.Popen([support.HPCLAUNCH, "bind", "--local-rank", "0", "--local-size", "1", "--", "/bin/sh", "-c", 'echo $$; read line; kill -TERM $$'],
                                 env=clean_env(**self.mark), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(child.stdout.readline(), b"%d\n" % child.pid)
        child.communicate(b"\n", timeout=support.LIMIT)
        self.assertEqual(child.returncode, -signal.SIGTERM)

    def test_statuses(self):
        place = ["--local-rank", "0", "--local-size", "1"]
        self.bind(*place, program=("/bin/sh", "-c", "exit 42"), status=42)
        self.refused(127, "bind", *place, "--", "no-such-program", says=["no-such-program"])
        self.refused(126, "bind", *place, "--", self.file("plain", "x", 0o644))
        self.refused(125, "bind", *place, "--", says=["PROGRAM is missing"])

    def test_scripts_and_arguments(self):
        script = self.file("show.py", "import sys; print(sys.argv[1:])\n")
        for line in (["-m", "show"], [script], ["python3", script]):
            with self.subTest(line):
                env = clean_env(**self.mark, PYTHONPATH=self.folder)
                done = self.ok(hpclaunch("bind", "--local-rank", "0", "--local-size", "1", *line, "a  b", "$HOME", "--", "-v", env=env))
                self.assertEqual(done.out, "['a  b', '$HOME', '--', '-v']\n")

    def test_under_run(self):
        """Placed already: as it is, and a line from one of them. An agent's workers are not."""
        done = self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--launcher", "local", "--", support.HPCLAUNCH, "bind", "--", "/usr/bin/printenv", "RANK"))
        self.assertEqual(sorted(done.out.split()), ["0", "1"])
        self.assertEqual(done.err.count("bound already"), 1, str(done))
        env = clean_env(**self.mark, HPCLAUNCH_LOCAL_RANK="0", HPCLAUNCH_LOCAL_SIZE="1", **torchrun("1", "2", "1", "2", "0", "1"))
        self.assertIn("local rank 1 of 2 (LOCAL_RANK)", self.bind("-v", env=env).err)


class Options(Bind):
    def test_variables(self):
        got = entries(self.bind("--local-rank", "0", "--local-size", "1", "--set", "A=1 2", "--unset", "GONE", env=clean_env(**self.mark, GONE="1", A="0")).raw_out)
        self.assertEqual([got[b"A"], got.get(b"GONE")], [b"1 2", None])

    def test_lists(self):
        name = "xeon-2x52-smt2.xml"
        found = self.ranks(2, "--profile", "none", "--topology", machine(name), "--cpu-bind", "0-3:8-11", env=self.on(name))
        self.assertEqual([cpus for cpus, _ in found], [{0, 1, 2, 3}, {8, 9, 10, 11}])

    def test_profile(self):
        """The site's variables, and its node in place of the one that is here."""
        site = {"schema": 1, "name": "site", "doc": "d", "nodes": [{"name": "small", "doc": "d", "use": "model", "packages": 1, "cores_per_numa": 1},
                                                                  {"name": "large", "doc": "d", "use": "model", "packages": 1, "cores_per_numa": 8}],
                "rules": [{"id": "value", "default": {"SITE_VALUE": "yes"}, "why": "w", "source": "https://example.org", "checked": "2026-01-01"}]}
        path = self.file("site.json", json.dumps(site))
        env = clean_env(LD_PRELOAD=self.stand_in, MACHINE_CPUS="0-7", **self.mark)
        found = self.ranks(2, "--profile", path, "--node-type", "large", env=env)
        self.assertEqual([cpus for cpus, _ in found], [{0, 1, 2, 3}, {4, 5, 6, 7}])
        right = self.ranks_environment("run", "-n", "2", "--launcher", "local", "--profile", path, "--node-type", "large", "--force", "--verify", "off", env=env)
        self.assertEqual([env.get("SITE_VALUE") for _, env in found] + [right[0].get(b"SITE_VALUE")], ["yes", "yes", b"yes"])

    def test_no_device(self):
        name = "documented/dgx-h100.xml"
        got = entries(self.bind("--profile", "none", "--topology", machine(name), "--local-rank", "0", "--local-size", "2", "--devices-per-rank", "0", env=self.on(name)).raw_out)
        self.assertEqual(got[b"CUDA_VISIBLE_DEVICES"], b"")


class OnePlan(Bind):
    """A rank that comes a second time is one of the next launch, so each look is another rank's."""
    SIZE = ["--local-size", "100"]

    def setUp(self):
        super().setUp()
        self.next = 0

    def place(self):
        self.next += 1
        return ["--local-rank", str(self.next - 1), *self.SIZE]

    def env(self):
        return clean_env(**self.mark, TLLM_NUMA_AWARE_WORKER_AFFINITY="1")  # who plans says so

    def plans_anew(self):
        return "TLLM_NUMA" in self.bind(*self.place(), env=self.env()).err

    def new_plan(self):
        before = set(self.plans())
        self.assertTrue(self.plans_anew())
        (path,) = set(self.plans()) - before
        return path

    def test_a_hundred_ranks_start_as_one(self):
        ranks = [subprocess.Popen([support.HPCLAUNCH, "bind", "--local-rank", str(rank), "--local-size", "100", "--", "/bin/true"], env=self.env(),
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) for rank in range(100)]
        said = [rank.communicate(timeout=support.LIMIT)[1].decode() for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0] * 100)
        self.assertEqual(sum("TLLM_NUMA" in text for text in said), 1, said)

    def test_calls(self):
        """A rank beyond the first: the plan, the shim, the program. Nobody sleeps."""
        need("strace")
        self.new_plan()
        file = self.folder + "/calls"
        env = {**self.env(), "ASAN_OPTIONS": "detect_leaks=0"}
        self.bind(*self.place(), env=env)
        execute(["strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=%file,nanosleep,clock_nanosleep,clone,fork,vfork", "-o", file, support.HPCLAUNCH, "bind", *self.place(), "--", "/usr/bin/env", "-0"], env=env)
        with open(file) as calls:
            lines = [line for line in calls.read().splitlines() if "AT_EMPTY_PATH" not in line and "getcwd" not in line and '"/proc/' not in line]  # no file, or a parent
        at = [i for i, line in enumerate(lines) if STEM in line]
        end = [i for i, line in enumerate(lines) if 'execve("/usr/bin/env"' in line]
        self.assertEqual((len(at), len(end)), (1, 1), lines)
        self.assertEqual([re.sub(r"^\d+ +(\w+)\(.*", r"\1", line) for line in lines[at[0]:end[0] + 1]], ["openat", "newfstatat", "execve", "execve"], lines)
        self.assertEqual([line for line in lines[1:at[0]] if not re.search(r"\.so|glibc-hwcaps", line)], [], "beside the loader's")

    def test_a_plan_of_others_or_of_old_is_not_read(self):
        path = self.new_plan()
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertFalse(self.plans_anew())
        with open(path, "rb") as file:
            text = file.read()

        def replaced(data=text, mode=0o600):
            os.remove(path)
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, mode)
        for name, change in (("mode", lambda: replaced(mode=0o644)), ("cut", lambda: replaced(text[:-3])), ("empty", lambda: replaced(b"")),
                             ("version", lambda: replaced(text.replace(b"hpclaunch-bind-2", b"hpclaunch-bind-0", 1))), ("old", lambda: os.utime(path, (1, 1))),
                             ("link", lambda: (os.rename(path, path + ".other"), os.symlink(path + ".other", path))), ("hard link", lambda: os.link(path, path + ".second"))):
            with self.subTest(name):
                replaced()
                self.assertFalse(self.plans_anew())
                change()
                self.assertTrue(self.plans_anew())
                self.assertFalse(self.plans_anew())

    @needs("own mounts")
    def test_where_dev_shm_is_read_only(self):
        env = {**self.env(), "XDG_RUNTIME_DIR": self.folder}
        line = [need("bwrap"), "--dev-bind", "/", "/", "--ro-bind", "/dev/shm", "/dev/shm", "--", support.HPCLAUNCH, "bind"]
        said = [self.ok(execute([*line, *self.place(), "--", "/bin/true"], env=env)).err for _ in range(2)]
        self.assertEqual(["TLLM_NUMA" in text for text in said], [True, False])
        self.assertEqual(len([name for name in os.listdir(self.folder) if name.startswith("hpclaunch-bind-")]), 1)

    def test_what_decides_makes_another_plan(self):
        self.new_plan()
        for env in ({"OMP_PROC_BIND": "close"}, {"CUDA_VISIBLE_DEVICES": "0,1"}, {"SLURM_STEP_ID": "9"}):
            with self.subTest(env):
                self.assertIn("TLLM_NUMA", self.bind(*self.place(), env={**self.env(), **env}).err)
        self.assertIn("TLLM_NUMA", self.bind(*self.place(), "--cpus-per-rank", "1", env=self.env()).err)
        self.assertFalse(self.plans_anew())

    def test_others_wait_for_the_one_that_plans_and_not_for_a_dead_one(self):
        path = self.new_plan()
        open(path, "w").close()
        holder = subprocess.Popen([need("flock"), path, "sh", "-c", "echo held; exec sleep 1000"], stdout=subprocess.PIPE)
        self.assertEqual(holder.stdout.readline(), b"held\n")
        rank = subprocess.Popen([support.HPCLAUNCH, "bind", *self.place(), "--", "/usr/bin/env", "-0"], env=self.env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)
        while not re.search(r"-> FLOCK +ADVISORY +WRITE +%d " % rank.pid, self.read("/proc/locks")):
            self.assertIsNone(rank.poll())
        for pid in (holder.pid, *children(holder.pid)):
            os.kill(pid, signal.SIGKILL)
        self.assertIn(b"TLLM_NUMA", rank.communicate(timeout=support.LIMIT)[1])
        self.assertEqual(rank.returncode, 0)
        holder.communicate()


class OneLaunch(Bind):
    """Ranks of one launch meet, whatever each has of its own; another launch has its own port and plan."""
    SHOW = '/bin/sh -c \'echo "$RANK $WORLD_SIZE $MASTER_PORT"\' x'

    def lines(self, script, **extra):
        """What the ranks that a shell starts say, and how often somebody has planned."""
        env = clean_env(**self.mark, KMP_AFFINITY="compact", **extra)
        done = self.ok(execute(["sh", "-c", script.replace("BIND", '"$HPC" bind').replace("SHOW", self.SHOW)], env={**env, "HPC": support.HPCLAUNCH}))
        return [line.split() for line in done.out.splitlines()], done.err.count("KMP_AFFINITY=")

    def meet(self, script, n=2, **extra):
        said, plans = self.lines(script, **extra)
        self.assertEqual(sorted(line[:2] for line in said), [[str(rank), str(n)] for rank in range(n)])
        self.assertEqual(len({line[2] for line in said}), 1, said)
        return said[0][2], plans

    def test_arguments_and_environment_of_each_rank(self):
        for script, plans in (("for r in 0 1; do BIND --local-rank $r --local-size 2 -- SHOW --rank $r & done; wait", 1),
                              ("for r in 0 1; do SEED=$r BIND --local-rank $r --local-size 2 -- SHOW & done; wait", 2),
                              ("for r in 0 1; do (cd /; BIND --local-rank $r --local-size 2 -- SHOW; true) & done; wait", 1),
                              ("for r in 0 1; do timeout 100 \"$HPC\" bind --local-rank $r --local-size 2 -- SHOW $r & done; wait", 1),
                              ("for r in 0 1; do LOCAL_RANK=$r LOCAL_WORLD_SIZE=2 sh -c 'BIND -- /bin/sh -c \"echo \\$RANK \\$WORLD_SIZE \\$MASTER_PORT\" '$r'; true' & done; wait", 1)):
            with self.subTest(script):
                self.assertEqual(self.meet(script)[1], plans)

    def test_programs_of_one_launcher(self):
        """mpiexec -n 1 a : -n 1 b"""
        script = "for r in 0 1; do PMI_RANK=$r PMI_SIZE=2 MPI_LOCALRANKID=$r MPI_LOCALNRANKS=2 BIND -- $(test $r = 0 && echo nice) SHOW & done; wait"
        self.meet(script)

    def test_several_nodes(self):
        """Two nodes of a step, with arguments and environments that differ: each finds the same port by itself."""
        ports = set()
        for rank in range(4):
            env = clean_env(**self.mark, **slurm(str(rank), "4", str(rank % 2), "2", str(rank // 2), "2"), SEED=str(rank))
            ports.add(self.bind(env=env, program=("/bin/sh", "-c", "echo $MASTER_PORT", "--log", str(rank))).out)
        self.assertEqual(len(ports), 1, ports)

    def test_a_second_launch_from_the_same_shell(self):
        loop = "for r in 0 1; do BIND --local-rank $r --local-size 2 -- SHOW & done; wait; "
        said, plans = self.lines(loop * 2)
        self.assertEqual((len(said), plans), (4, 2))
        self.assertEqual([len({port for *_, port in said[i:i + 2]}) for i in (0, 2)], [1, 1], said)

    def test_launches_at_the_same_time(self):
        """Of two shells: not one plan, and not one port as long as both run."""
        loop = "for r in 0 1; do BIND --local-rank $r --local-size 2 -- /bin/sh -c 'echo $MASTER_PORT; read line' & done; wait"
        script = "mkfifo %s/fifo; exec 3<>%s/fifo; for i in 1 2; do sh -c \"$LOOP\" <&3 & done; wait" % (self.folder, self.folder)
        loop = loop.replace("BIND", '"$HPC" bind').replace("& done", "<&3 & done")
        child = subprocess.Popen(["sh", "-c", script], env={**clean_env(**self.mark), "LOOP": loop, "HPC": support.HPCLAUNCH}, stdout=subprocess.PIPE)
        ports = sorted(child.stdout.readline() for _ in range(4))
        with open(self.folder + "/fifo", "w") as fifo:
            fifo.write("\n" * 4)
        child.communicate(timeout=support.LIMIT)
        self.assertEqual((ports[0], ports[2]), (ports[1], ports[3]))
        self.assertNotEqual(ports[0], ports[2])

    def test_strict_refuses_every_rank(self):
        for rank in range(3):
            self.refused(125, "bind", "--local-rank", str(rank), "--local-size", "3", "--strict", "--set", "MASTER_PORT=70000", "--", "/bin/true",
                         env=clean_env(**self.mark), says=["MASTER_PORT=70000 is above 65535", "try: omit --set MASTER_PORT", "not started: --strict"])

    def test_what_decides_and_changes(self):
        """A program that another one has replaced, and a profile, within one launch."""
        program = self.file("program", "#!/bin/sh\necho one\n", 0o755)
        edit = "printf '#!/bin/sh\\necho two %%s\\n' > %s; " % program
        said, plans = self.lines("BIND --local-rank 0 --local-size 3 -- P; BIND --local-rank 1 --local-size 3 -- P; EDIT BIND --local-rank 2 --local-size 3 -- P".replace("P;", program + ";").replace("EDIT", edit).replace("-- P", "-- " + program))
        self.assertEqual((said[:2], plans), ([["one"], ["one"]], 2), said)

    def test_files_are_few(self):
        """One for each launch, however its ranks differ; those of earlier launches go."""
        old = self.file(os.path.relpath(STEM + "0123456789abcdef", self.folder), "old", 0o600)
        os.utime(old, (1, 1))
        before = set(self.plans())
        self.meet("for r in 0 1 2 3; do SEED=$r BIND --local-rank $r --local-size 4 -- SHOW $r & done; wait", 4)
        self.assertEqual(len(set(self.plans()) - before), 1)
        self.assertFalse(os.path.exists(old))


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(word) for word in file.read().split()]


if __name__ == "__main__":
    support.main()
