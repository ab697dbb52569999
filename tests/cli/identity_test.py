"""A rank has one identity, whatever a program reads: every launcher, in and out of every kind of job, with what other
launches may have left in the environment. tests/engines/identity_test.py has the same on several nodes."""
import json
import os
import sys

import site_jobs
import support
from support import Test, clean_env, hpclaunch, need

CHOOSER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standins", "chooser.py")
RANKS = 3
# What a batch script of Slurm has, and what the shell of a step has.
BATCH = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": support.HOST, "SLURM_NODELIST": support.HOST, "SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1",
         "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_NTASKS": "1", "SLURM_NPROCS": "1", "SLURM_JOB_NAME": "train",
         "SLURM_TASKS_PER_NODE": "1"}
STEP = dict(BATCH, SLURM_STEP_ID="0", SLURM_STEPID="0", SLURM_STEP_NODELIST=support.HOST, SLURM_STEP_NUM_TASKS="1", SLURM_STEP_NUM_NODES="1",
            SLURM_STEP_TASKS_PER_NODE="1", SLURM_NTASKS_PER_NODE="1")
LEFT = {"PMI_RANK": "0", "PMI_SIZE": "1", "PMI_ID": "0", "PMIX_RANK": "0", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1",
        "OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "MV2_COMM_WORLD_RANK": "0", "MV2_COMM_WORLD_SIZE": "1",
        "MV2_COMM_WORLD_LOCAL_RANK": "0", "HOROVOD_RANK": "0", "HOROVOD_SIZE": "1", "HOROVOD_LOCAL_RANK": "0", "JSM_NAMESPACE_RANK": "0",
        "JSM_NAMESPACE_SIZE": "1", "JSM_NAMESPACE_LOCAL_RANK": "0", "PALS_LOCAL_RANKID": "0", "FLUX_TASK_LOCAL_ID": "0", "FLUX_JOB_SIZE": "1",
        "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "1"}
JOBS = {
    "no job": {},
    "left by other launches": LEFT,
    "batch script of Slurm": BATCH,
    "batch script of Slurm, left by others": dict(LEFT, **BATCH),
    "shell of a Slurm step": STEP,
    "PBS": {"PBS_JOBID": "7.server", "PBS_NODEFILE": "@NODES@", "PBS_ENVIRONMENT": "PBS_BATCH"},
    "PBS, submitted from a Slurm job": dict(STEP, PBS_JOBID="7.server", PBS_NODEFILE="@NODES@"),
    "LSF": {"LSB_JOBID": "7", "LSB_MCPU_HOSTS": support.HOST + " 4", "LSB_DJOB_RANKFILE": "/dev/null"},
}


def wrong(folder, ranks, may_be_none=()):
    """What a program would get wrong, as text; "" for nothing."""
    found = []
    for name in os.listdir(folder):
        with open(os.path.join(folder, name)) as file:
            found.append(json.load(file))
    text = [] if sorted(one["truth"]["rank"] for one in found) == list(range(ranks)) else ["ranks %s" % [one["truth"] for one in found]]
    for one in found:
        truth = one["truth"]
        for program, choice in one["choices"].items():
            for what, value, want in zip(("rank", "size", "local rank"), choice or (), (truth["rank"], ranks, truth["local"])):
                if value is not None and int(value) != want:
                    text.append("rank %d: %s has %s %s, not %d" % (truth["rank"], program, what, value, want))
        for program, same in (("torch", "pytorch"), ("lightning", "lightning"), ("deepspeed", "deepspeed"), ("timm", "timm"), ("idr_torch", "idr_torch"),
                              ("megatron", "megatron"), ("ezpz", "ezpz"), ("accelerate_cpu", "accelerate"), ("tensorflow", "tensorflow")):
            choice, table = one["choices"][program], one["table"].get(same, [None] * 3)
            if choice is not None and list(choice)[:2] != table[:2]:
                text.append("rank %d: %s has %s, by the table %s" % (truth["rank"], program, choice, table))
        for program in ("torch", "lightning", "accelerate_gpu", "accelerate_cpu", "deepspeed", "timm", "idr_torch", "megatron", "ezpz"):
            if one["choices"][program] is None or None in one["choices"][program][:2]:
                text.append("rank %d: %s finds nothing" % (truth["rank"], program))
        text += ["rank %d: %s=%s" % (truth["rank"], name, value) for name, value in one["nodes"].items() if int(value) != truth["node"]]
    return "\n".join(text)


def launchers_of_many_nodes():
    return [name for name in hpclaunch("complete", "--", "run", "--launcher", "").out.split() if name != "local"]


class Identity(Test):
    def run_here(self, launcher, env):
        folder = os.path.join(self.folder, "ranks-%d" % len(os.listdir(self.folder)))
        os.mkdir(folder)
        nodes = self.file("nodes", support.HOST + "\n")
        env = clean_env(**{name: value.replace("@NODES@", nodes) for name, value in env.items()})
        done = hpclaunch("run", "--launcher", launcher, "-n", str(RANKS), "--oversubscribe", "--", sys.executable, CHOOSER, folder, env=env)
        self.ok(done)
        self.assertNotIn("warning", done.err)
        self.assertEqual(wrong(folder, RANKS), "", str(done))
        return folder

    def matrix(self, launcher):
        for job, env in JOBS.items():
            with self.subTest(launcher=launcher, job=job):
                self.run_here(launcher, env)

    def test_local(self):
        self.matrix("local")

    def test_hydra(self):
        need("mpiexec.hydra")
        support.idle_stdin()
        self.addCleanup(setattr, support, "IDLE", False)
        for job, env in JOBS.items():
            if "Slurm" not in job or "PBS" in job:  # there Hydra would start its proxies by srun
                with self.subTest(job=job):
                    self.run_here("hydra", env)

    def test_openmpi(self):
        need("mpirun.openmpi")
        for job, env in JOBS.items():
            if "Slurm" not in job or "PBS" in job:
                with self.subTest(job=job):
                    self.run_here("openmpi", env)

    def test_jax_takes_what_a_rank_sees(self):
        """Its own device of those that a mask leaves, not the one with the number of Slurm's local rank."""
        for profile, view, devices, ids in (("perlmutter", "own", 1, "0"), ("perlmutter", "own", 2, "0,1"), ("perlmutter", "all", 1, None), ("frontier", "launcher", 1, "0"),
                                            ("frontier", "own", 1, "0"), ("aurora", "own", 1, None)):
            with self.subTest([profile, view, devices]):
                done = hpclaunch("plan", "--json", "--profile", profile, "--gpu-view", view, "--devices-per-rank", str(devices), "-N", "2", env=clean_env(JAX_LOCAL_DEVICE_IDS="3"))
                found = {one["name"]: one["value"] for one in json.loads(done.out)["env"]}
                self.assertEqual(found.get("JAX_LOCAL_DEVICE_IDS"), ids)

    def test_jax_finds_slurm_under_every_launcher(self):
        folder = self.run_here("local", BATCH)
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as file:
                self.assertIsNotNone(json.load(file)["choices"]["jax"])

    def test_jax_is_asked_for_without_slurm(self):
        folder = os.path.join(self.folder, "ranks")
        os.mkdir(folder)
        self.ok(hpclaunch("run", "--for", "jax", "-n", str(RANKS), "--oversubscribe", "--", sys.executable, CHOOSER, folder, env=clean_env(**LEFT)))
        self.assertEqual(wrong(folder, RANKS), "")
        found = []
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as file:
                one = json.load(file)
            found.append(one["choices"]["jax"])
            self.assertEqual(one["table"]["jax"][:2], one["choices"]["jax"][:2])
        self.assertEqual(sorted(found), [[str(rank), str(RANKS), str(rank)] for rank in range(RANKS)])

    def test_for_needs_a_known_name_and_what_only_the_user_knows(self):
        done = hpclaunch("run", "--for", "jxa", "--", "true", env=clean_env())
        self.assertEqual((done.status, done.err), (125, "hpclaunch: invalid value \"jxa\" for --for\nhpclaunch: try: --for jax\n"))
        done = hpclaunch("run", "--for", "torchft", "--", "true", env=clean_env())
        self.assertEqual(done.status, 125)
        self.assertIn("TORCHFT_LIGHTHOUSE is not set", done.err)
        done = self.ok(hpclaunch("run", "--for", "torchft", "--set", "TORCHFT_LIGHTHOUSE=http://h:29510", "--", "env", env=clean_env()))
        self.assertIn("\nREPLICA_GROUP_ID=0\n", "\n" + done.out)

    def test_explain_knows_who_reads(self):
        done = self.ok(hpclaunch("explain", "jax", "SLURM_PROCID", env=clean_env()))
        self.assertIn("JAX_COORDINATOR_ADDRESS, else SLURM_STEP_NODELIST", done.out)
        self.assertIn("megatron (rank, after RANK)", done.out)
        self.assertIn("idr_torch (rank, if SLURM_STEP_ID is set)", done.out)

    NAMES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "SLURM_LOCALID", "MPI_LOCALRANKID", "PALS_RANKID", "PALS_LOCAL_RANKID",
             "FLUX_TASK_RANK", "JSM_NAMESPACE_RANK", "MV2_COMM_WORLD_RANK", "HOROVOD_RANK", "RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_NODEID", "GROUP_RANK")

    def findings(self, *words, env):
        done = hpclaunch("plan", "--json", *words, "-N", "2", "--ppn", "2", "--", "/bin/true", env=clean_env(**env))
        self.assertIn(done.status, (0, 1), str(done))
        plan = json.loads(done.out)
        return plan, {one["id"]: one["severity"] for one in plan["diagnostics"]}

    def test_a_typed_rank_is_refused_under_every_launcher(self):
        job = dict(BATCH, SLURM_JOB_NODELIST="n[1-2]", SLURM_NODELIST="n[1-2]", SLURM_JOB_NUM_NODES="2", SLURM_NNODES="2")
        for launcher in launchers_of_many_nodes():
            for env, profile in (({}, "frontier"), (job, "none")):
                with self.subTest(launcher=launcher, job=bool(env)):
                    words = ("--launcher", launcher, "--profile", profile, "--master-addr", "198.51.100.1")
                    _, found = self.findings(*words, *(word for name in self.NAMES for word in ("--set", name + "=3")), env=env)
                    self.assertEqual(found.get("same-on-every-rank") or found.get("identity-contradicts"), "error")
                    for name in self.NAMES:
                        done = hpclaunch("plan", *words, "-N", "2", "--ppn", "2", "--set", name + "=3", "--", "/bin/true", env=clean_env(**env))
                        self.assertRegex(done.err, r"error: %s on the command line .*\[(same-on-every-rank|identity-contradicts)\]" % name)

    def test_a_rule_that_sets_a_rank_is_refused(self):
        rules = [{"id": "r%d" % i, kind: {name: "0"}, "why": "a mistake"}
                 for i, (kind, name) in enumerate((("default", "PMI_RANK"), ("require", "SLURM_PROCID"), ("default", "OMPI_COMM_WORLD_RANK")))]
        nodes = [{"name": "n", "packages": 1, "cores_per_numa": 4, "why": "a test"}]
        profile = self.file("p.json", json.dumps({"schema": 1, "name": "p", "doc": "a test", "launcher": "hydra", "nodes": nodes, "rules": rules}))
        done = hpclaunch("plan", "--profile", profile, "-N", "2", "--ppn", "2", "--", "/bin/true", env=clean_env())
        for i, name in enumerate(("PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")):
            self.assertIn("error: %s of rule r%d of profile p contradicts the identity that a launcher gives each rank [identity-contradicts]" % (name, i), done.err)
            self.assertIn("--unset " + name, done.err)
        words = [word for name in ("PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK") for word in ("--unset", name)]
        done = hpclaunch("plan", "--profile", profile, "-N", "2", "--ppn", "2", *words, "--", "/bin/true", env=clean_env())
        self.assertNotIn("identity-contradicts", done.err)

    def test_an_exported_rank_reaches_no_rank(self):
        for launcher in launchers_of_many_nodes():
            with self.subTest(launcher=launcher):
                exported = {name: "99" for name in self.NAMES}
                plan, found = self.findings("--launcher", launcher, "--profile", "frontier", env=exported)
                self.assertNotIn("identity-contradicts", found)
                left = [one["name"] for one in plan["env"] if one["name"] in self.NAMES and one["value"] == "99"]
                own = () if launcher != "slurm" else ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID")  # srun sets these anew
                self.assertEqual((left, {name for name in self.NAMES if name not in {one["name"] for one in plan["env"]}} - set(own)), ([], set()))

    def test_lightning_may_have_slurm_instead(self):
        folder = os.path.join(self.folder, "ranks")
        os.mkdir(folder)
        self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--unset", "TORCHELASTIC_RUN_ID", "--", sys.executable, CHOOSER, folder, env=clean_env(**BATCH)))
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as file:
                one = json.load(file)
            self.assertEqual(one["choices"]["lightning"], [str(one["truth"]["rank"]), "2", str(one["truth"]["local"])])


class StandIns(site_jobs.SiteTest):
    """Launchers that are not here: what the ranks get is the stand-in's names and the shim's."""

    def check(self, job, launcher, *words):
        folder = os.path.join(job.folder, "ranks")
        os.mkdir(folder)
        done = job.hpclaunch("run", "--launcher", launcher, "--profile", "none", "--master-addr", "198.51.100.1", "--bind-via", "none", *words, "--",
                             sys.executable, "-I", CHOOSER, folder)
        self.ok(done)
        self.assertEqual(wrong(folder, 4), "", str(done))

    def test_pals(self):
        nodes = self.file("nodes", "n1\nn2\n")
        for left in ({}, LEFT, dict(STEP)):
            with self.subTest(left=left):
                self.check(site_jobs.Job(self.folder, {**left, "PBS_JOBID": "7.server", "PBS_NODEFILE": nodes}, "pals"), "pals", "-n", "4")

    def test_slurm(self):
        job = {**BATCH, "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURM_NNODES": "2"}
        self.check(site_jobs.Job(self.folder, job, "slurm"), "slurm", "-n", "4")

    def test_flux_in_a_slurm_job(self):
        job = {**STEP, "FLUX_URI": "local:///tmp/flux-AbCdEf/local-0", "FLUX_ENCLOSING_ID": "f7"}
        self.check(site_jobs.Job(self.folder, job, "flux", hosts="n[1-2]"), "flux", "-n", "4")


if __name__ == "__main__":
    support.main()
