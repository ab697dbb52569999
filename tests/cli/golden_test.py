#!/usr/bin/env python3
"""Golden cases: planned as `run` plans, in the world that the case says; and the plan of every case of every site."""
import json
import os
import re

import support
from support import ROOT, Test, hpclaunch

NODE = {"name": "n", "packages": 2, "cores_per_numa": 8}
RULES = [{"id": "library", "why": "w", "when": {"library.libm.so.6": {"set": True}}, "default": {"LIBRARY": "yes"}},
         {"id": "caches", "why": "w", "default": {"CACHE": "/tmp/${user}-${job_id}"}}]
SITE = {"schema": 1, "name": "site", "doc": "x", "launcher": "openmpi", "scheduler": "slurm", "nodes": [NODE], "rules": RULES}
NOTHING = {"absent": ["NO_SUCH_VARIABLE"]}
SLURM = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_JOB_NUM_NODES": "3"}


class InAWorld(Test):
    def setUp(self):
        super().setUp()
        self.env = support.clean_env(HPCLAUNCH_PROFILE_PATH="", XDG_CONFIG_HOME=self.folder + "/none")

    def failures(self, case, site=None):
        case = {"name": "one", "options": ["-N", "1"], **case}
        path = self.file("site.json", json.dumps({**(site or SITE), "expect": [case]}))
        done = hpclaunch("profile", "test", "--format", "json", path, env=self.env)
        found = [one for suite in json.loads(done.out)["profiles"] for one in suite["diagnostics"]]
        self.assertEqual(done.status, 1 if found else 0, str(done))
        for one in found:
            self.assertEqual(one["where"]["file"], path)
        return "\n".join(one["message"] + "; " + one["fix"] for one in found)

    def passes(self, case, site=None):
        self.assertEqual(self.failures(case, site), "")

    def fails(self, case, *says, site=None):
        found = self.failures(case, site)
        for text in says:
            self.assertIn(text, found)
        self.assertTrue(found, "the case passes: %s" % case)

    def plan_of(self, case):
        case = {"name": "one", **NOTHING, **case}
        path = self.file("site.json", json.dumps({**SITE, "expect": [case]}))
        return json.loads(self.ok(hpclaunch("profile", "test", "--plan", "one", "--format", "json", path, env=self.env)).out)

    @staticmethod
    def choice(plan, name):
        return {one["name"]: one["history"][-1]["value"] for one in plan["choices"]}.get(name)


class World(InAWorld):
    def test_variables(self):
        self.fails({"options": ["-N", "1", "--ppn", "2", "--env", "FOO=1"], "absent": ["FOO"]}, 'FOO: expected nothing, got "1"')
        self.passes({"options": ["-N", "1", "--env", "FOO=1"], "set": {"FOO": "1"}})
        self.passes({"options": ["-N", "1", "--env", "FOO"], "env": {"FOO": "2"}, "set": {"FOO": "2"}})
        self.fails({"options": ["-N", "1", "--env", "FOO"], **NOTHING}, "FOO is not set")
        files = {"job.env": "A=1\nB='x y'\n"}
        self.passes({"options": ["-N", "1", "--env-file", "job.env"], "files": files, "set": {"A": "1", "B": "x y"}})
        self.fails({"options": ["-N", "1", "--env-file", "job.env"], **NOTHING}, '"job.env" is not in the case', '"files"')

    def test_frameworks_and_agents(self):
        self.fails({"options": ["-N", "1", "--for", "torchft"], **NOTHING}, "TORCHFT_LIGHTHOUSE is not set")
        self.passes({"options": ["-N", "1", "--for", "torchft", "--set", "TORCHFT_LIGHTHOUSE=http://h:1"], "set": {"NUM_REPLICA_GROUPS": "1"}})
        agent = {"options": ["-N", "2", "--agent"], "program": ["torchrun", "t.py"]}
        self.passes({**agent, "set": {"PET_NNODES": "2"}})
        self.fails({**agent, "absent": ["PET_NNODES"]}, "PET_NNODES")
        self.fails({"options": ["-N", "1", "--ppn", "2"], "program": ["torchrun", "t.py"], **NOTHING}, "not started", "torchrun starts ranks itself")
        self.passes({"options": ["-N", "1", "--ppn", "2", "--force"], "program": ["torchrun", "t.py"], **NOTHING})

    def test_environments(self):
        self.fails({"options": ["-N", "1", "--conda", "nonesuch"], **NOTHING}, "--conda nonesuch", '"env"')
        self.fails({"options": ["-N", "1", "--venv", "/v"], **NOTHING}, "--venv /v", "pyvenv.cfg")
        self.passes({"options": ["-N", "1", "--venv", "/v"], "files": ["/v/pyvenv.cfg"], "set": {"VIRTUAL_ENV": "/v"}})
        rule = {"id": "module", "why": "w", "when": {"module.abc": "1.2"}, "default": {"ABC": "1"}}
        site = {**SITE, "rules": [rule]}
        self.passes({"options": ["-N", "1", "--module", "abc/1.2"], "set": {"ABC": "1"}}, site)
        self.passes({"options": ["-N", "1", "--module", "none"], "absent": ["ABC"]}, site)

    def test_containers(self):
        asked = {"options": ["-N", "1", "--container", "/x.sif"]}
        self.fails({**asked, "argv_lacks": ["apptainer"]}, 'image "/x.sif" does not exist')
        self.fails({**asked, "files": ["/x.sif"], "argv_lacks": ["apptainer"]}, "no container engine")
        there = {**asked, "files": ["/x.sif"], "programs": ["apptainer"]}
        self.passes({**there, **NOTHING})
        plan = self.plan_of(there)
        self.assertIn("apptainer", plan["argv"])
        self.assertEqual(self.choice(plan, "container"), "/x.sif")
        podman = self.plan_of({"options": ["-N", "1", "--container", "/tree", "--container-engine", "podman"], "programs": ["podman"], "files": ["/tree/bin/sh"]})
        self.assertFalse([word for word in podman["argv"] if "ulimit" in word])  # they are of whoever runs the test

    def test_staging(self):
        asked = {"options": ["-N", "2", "--stage", "sbcast"]}
        self.fails({**asked, **NOTHING}, "no conda or virtual environment is active")
        conda = {**asked, "env": {"CONDA_PREFIX": "/c", "PATH": "/c/bin"}, "files": ["/c/conda-meta/history"]}
        self.fails({**conda, **NOTHING}, "this is not a Slurm job")
        self.fails({**conda, "job_id": "7", **NOTHING}, "sbcast is not on PATH")
        plan = self.plan_of({**conda, "job_id": "7", "programs": ["sbcast"]})
        self.assertEqual(self.choice(plan, "stage"), "sbcast")
        self.fails({"options": ["-N", "1", "--stage", "copy", "--stage-from", "/nowhere.tar"], **NOTHING}, "there is no such file")
        self.fails({"options": ["-N", "1", "--stage", "copy", "--stage-from", "/e.tar"], "files": ["/e.tar"], **NOTHING}, "a case starts no programs")

    def test_libraries(self):
        path = {"LD_LIBRARY_PATH": "/opt/x/lib"}
        self.passes({"env": path, "files": ["/opt/x/lib/libm.so.6"], "set": {"LIBRARY": "yes"}})
        self.passes({"env": path, "absent": ["LIBRARY"]})
        self.passes({"files": ["/opt/x/lib/libm.so.6"], "absent": ["LIBRARY"]})

    def test_launcher_versions(self):
        two = {"options": ["-N", "2", "--ppn", "2"]}
        for said in ({"launcher_version": "4.1.4"}, {"programs": {"mpirun": "mpirun (Open MPI) 4.1.4"}}):
            self.passes({**two, **said, "argv_has": ["-np", "seq"]})
        for said in ({}, {"launcher_version": "5.0.3"}, {"programs": {"mpirun": "mpirun (Open MPI) 5.0.3"}}):
            self.passes({**two, **said, "argv_has": ["--map-by"], "argv_lacks": ["-np"]})
        path = ["-N", "1", "--launcher", "/opt/m/bin/mpirun"]
        self.fails({"options": path, **NOTHING}, "/opt/m/bin/mpirun")
        self.passes({"options": path, "programs": {"/opt/m/bin/mpirun": "mpirun (Open MPI) 4.1.4"}, "argv_has": ["-np"]})

    def test_user_and_job(self):
        self.passes({"set": {"CACHE": "/tmp/user-0"}})
        self.passes({"env": {"USER": "eve"}, "set": {"CACHE": "/tmp/eve-0"}})
        for system in ("slurm", "pbs", "flux", "lsf", "cobalt", ""):
            site = {key: value for key, value in {**SITE, "scheduler": system}.items() if value}
            self.passes({"user": "ann", "job_id": "77", "set": {"CACHE": "/tmp/ann-77"}}, site)

    def test_hosts_and_grants(self):
        self.passes({"options": ["--ppn", "2"], "hosts": ["q1", "q2"], "set": {"MASTER_ADDR": "q1", "WORLD_SIZE": "4"}})
        self.passes({"options": ["--ppn", "2", "-N", "3"], "hosts": ["q1", "q2"], "set": {"WORLD_SIZE": "6"}})
        self.passes({"options": ["--ppn", "1"], "env": SLURM, "set": {"MASTER_ADDR": "n1", "WORLD_SIZE": "3"}})
        self.passes({"options": ["--ppn", "1"], "env": {**SLURM, "SLURM_JOB_CPUS_PER_NODE": "4(x3)"}, "set": {"OMP_NUM_THREADS": "4"}})
        self.passes({"options": ["--hostfile", "h"], "files": {"h": "a\nb\n"}, "set": {"MASTER_ADDR": "a", "WORLD_SIZE": "4"}})
        self.fails({"options": ["--hostfile", "h"], **NOTHING}, '"h" is not in the case')
        pbs = {**SITE, "scheduler": "pbs"}
        node_file = {"PBS_JOBID": "5.pbs", "PBS_NODEFILE": "/var/n"}
        self.passes({"options": ["--ppn", "2"], "env": node_file, "files": {"/var/n": "x1\nx2\n"}, "set": {"MASTER_ADDR": "x1", "WORLD_SIZE": "4"}}, pbs)

    def test_python_programs(self):
        """The job has a Python; what a case says of one is taken."""
        for program, command in ((["-m", "train"], ["python", "-m", "train"]), (["python", "x.py"], ["python", "x.py"]), (["x.py"], ["x.py"])):
            self.assertEqual(self.plan_of({"options": ["-N", "1"], "program": program})["command"], command)
        there = {"options": ["-N", "1"], "env": {"PATH": "/opt/bin"}, "files": ["/opt/bin/python3"], "program": ["-m", "train"]}
        self.assertEqual(self.plan_of(there)["command"], ["/opt/bin/python3", "-m", "train"])

    def test_what_a_case_cannot_know(self):
        for options, says in ((["--topology", "/x.json"], "--topology"), (["--profile", "none"], "--profile none"), (["--dry-run"], "--dry-run"),
                              (["--preflight"], "--preflight"), (["--signal", "USR1@60"], "end of the allocation"), (["--nonesuch"], "--nonesuch"),
                              (["--ends-in", "01:00:00"], "--ends-in needs --signal")):
            self.fails({"options": ["-N", "1", *options], **NOTHING}, says)
        self.passes({"options": ["-N", "1", "--signal", "USR1@60", "--ends-in", "01:00:00"], **NOTHING})

    def test_nothing_of_this_machine(self):
        """Equal bytes whoever asks, where, and with what exported."""
        case = {"name": "one", "options": ["-N", "2", "--ppn", "2", "--for", "jax"], "absent": ["A"]}
        path = self.file("site.json", json.dumps({**SITE, "expect": [case]}))
        words = ("profile", "test", "--plan", "one", "--format", "json", path)
        first = self.ok(hpclaunch(*words, env=self.env)).out
        other = {**self.env, "USER": "other", "MASTER_PORT": "1", "SLURM_JOB_ID": "9", "LD_LIBRARY_PATH": "/lib", "A": "1"}
        self.assertEqual(self.ok(hpclaunch(*words, env=other, cwd="/")).out, first)

    def test_plan_needs_a_case(self):
        path = self.file("site.json", json.dumps({**SITE, "expect": [{"name": "two nodes", "options": ["-N", "2"], **NOTHING}]}))
        done = self.ok(hpclaunch("profile", "test", "--plan", "two node", path, env=self.env), 2)
        self.has(done, 'no golden case "two node"', '--plan "two nodes"')
        self.has(self.ok(hpclaunch("profile", "test", "--plan", "x", env=self.env), 2), "--plan takes one profile")
        self.has(self.ok(hpclaunch("profile", "show", "--plan", "x", path, env=self.env), 2), "show takes no --plan")
        self.has(self.ok(hpclaunch("profile", "test", "--plan", "two nodes", path, env=self.env)), "MASTER_ADDR")


# Of every option of `run`: the words, and what a case does with them: "same" as `plan` on this machine, "holds" in its own world (with these keys),
# or the words of its refusal.
GPU_NODE = {"name": "n", "packages": 2, "cores_per_numa": 8, "threads_per_core": 2, "devices": {"vendor": "nvidia", "list": [{"numa": 0}, {"numa": 0}, {"numa": 1}, {"numa": 1}]}}
OPTIONS = {
    "--ranks": (["3"], "same"), "--node-rank": (["1"], "The address of node 0 is not known"), "--nodes": (["2"], "same"), "--ranks-per-node": (["2"], "same"), "--ranks-per-device": (["2"], "same"),
    "--mps": (["off"], "same"), "--devices-per-rank": (["2"], "same"), "--cpus-per-rank": (["2"], "same"), "--threads-per-core": (["1"], "same"),
    "--cpu-bind": (["0-1:2-3:16-17:18-19"], "same"), "--oversubscribe": ([], "same"), "--free": ([], "same"), "--hostfile": (["h"], "holds", {"files": {"h": "a\nb\n"}}), "--hosts": (["a,b"], "holds"), "--het-group": (["1"], "same"),
    "--topology": (["/x.json"], "--topology"), "--bind-via": (["shim"], "same"), "--profile": (["site"], "holds"), "--stack": (["b"], "same"),
    "--node-type": (["n"], "same"), "--device-mode": (["half"], "has no device modes"), "--gpu-view": (["all"], "same"), "--local-rank": (["node"], "same"),
    "--module": (["m/1"], "holds"), "--module-use": (["/m"], "holds"), "--conda": (["c"], "--conda c"), "--venv": (["v"], "holds", {"files": ["/v/pyvenv.cfg"]}),
    "--launcher": (["pals"], "same"), "--launcher-arg": (["-v"], "same"), "--verify": (["strict"], "same"), "--on-drift": (["fail"], "same"),
    "--env": (["A=1"], "same"), "--env-file": (["e"], "holds", {"files": {"e": "A=1\n"}}), "--set": (["A=1"], "same"), "--unset": (["A"], "same"),
    "--master-addr": (["h"], "same"), "--master-port": (["7000"], "same"), "--label": ([], "same"), "--local-ranks-filter": (["0"], "same"), "--log-dir": (["/logs"], "same"), "--grace": (["5"], "same"),
    "--lost-after": (["9"], "same"), "--end-timeout": (["9"], "same"), "--stall": (["9"], "holds"), "--on-stall": (["end"], "needs --stall"), "--spares": (["1"], "no use without restarts"), "--on-time-limit": (["requeue"], "holds"),
    "--start-timeout": (["5"], "same"), "--supervise": ([], "same"), "--no-supervise": ([], "same"), "--max-restarts": (["2"], "same"), "--report": (["/r"], "same"),
    "--signal": (["USR1@9"], "end of the allocation unknown"), "--ends-in": (["01:00:00"], "--ends-in needs --signal"),
    "--container": (["/x.sif"], "holds", {"files": ["/x.sif"], "programs": ["apptainer"]}), "--container-engine": (["podman"], "without an image"),
    "--container-bind": (["/a"], "without an image"), "--stage": (["copy"], "holds", {"env": {"CONDA_PREFIX": "/c"}, "files": ["/c/conda-meta/history"]}),
    "--stage-from": (["/x"], "same"), "--stage-to": (["/x"], "same"), "--stage-timeout": (["5"], "same"), "--stage-keep": ([], "same"), "--agent": ([], "same"),
    "--job-id": (["7"], "holds"), "--user": (["u"], "holds"),
    "--for": (["jax"], "holds"), "--dry-run": ([], "--dry-run"), "--verbose": ([], "--verbose"), "--preflight": ([], "--preflight"),
    "--profile-start": ([], "holds"), "--force": ([], "holds"), "--show-secrets": ([], "--show-secrets"), "--help": ([], "--help"), "-m": (["train"], "-m"),
}


class EveryOption(InAWorld):
    def test_every_option(self):
        usage = self.ok(hpclaunch("run", "--help", env=self.env)).out
        found = set(re.findall(r"(?m)^  (?:-\w, |--\w+, )?(--[\w-]+|-m)\b", usage))
        self.assertEqual(found ^ set(OPTIONS), set())
        stacks = [{"name": "a"}, {"name": "b"}]
        site = {**SITE, "nodes": [GPU_NODE], "stacks": stacks, "launcher": "slurm"}
        for option, (words, expected, *more) in sorted(OPTIONS.items()):
            with self.subTest(option):
                typed = ["-N", "2"] * (option not in ("--nodes", "--hostfile", "--hosts")) + ["=".join([option, *words])]
                if not option.startswith("--"):
                    typed = ["-N", "2", option, *words]
                case = {"options": typed, **(more[0] if more else {}), **NOTHING}
                if expected not in ("same", "holds"):
                    self.fails(case, expected, site=site)
                    continue
                if expected == "holds":
                    self.passes(case, site)
                    continue
                path = self.file("same/site.json", json.dumps({**site, "expect": [{"name": "one", **case}]}))
                made = hpclaunch("profile", "test", "--plan", "one", "--format", "json", path, env=self.env)
                real = hpclaunch("plan", "--json", "--profile", path, *typed, "--user", "user", "--job-id", "0", "--", "python", "train.py", env={**self.env, "USER": "user"})
                self.assertIn(real.status, (0, 1), str(real))
                self.assertEqual(*(EveryCase.decided(done.out) for done in (self.ok(made), real)))


def sites():
    folder = os.path.join(ROOT, "profiles", "site")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = re.sub(r"(?m)^\s*//.*$", "", file.read())
        yield name[:-len(".json")], json.loads(text)


class EveryCase(Test):
    """`plan` on this machine, away from the site, and the case's world: two worlds, one way to a plan."""

    MADE_UP = ("hosts", "files", "programs", "launcher_version", "job_id")
    @staticmethod
    def decided(text):
        """What the two must agree on: all but hosts' names, what follows from them (address, port, HPCLAUNCH_PLAN), this user's number, where programs
        lie, and remarks."""
        plan = json.loads(re.sub(r"-([0-9]+|\$UID)-KEY", "-KEY", text))
        for key in ("hosts", "wire", "diagnostics"):
            del plan[key]
        plan["env"] = [one for one in plan["env"] if one["name"] not in ("MASTER_ADDR", "MASTER_PORT")]
        plan["choices"] = [one if one["name"] not in ("profile", "launcher", "hosts") else one["name"] == "hosts" or one["value"] for one in plan["choices"]]
        plan["argv"] = [os.path.basename(word) if word.endswith("hpclaunch-shim") else word for word in plan["argv"]]
        return plan

    def test_every_case(self):
        compared = 0
        for site, profile in sites():
            for case in profile.get("expect", []):
                env = case.get("env", {})
                in_job = any(name.startswith(("SLURM_JOB", "PBS_", "FLUX_", "LSB_", "COBALT_")) for name in env)
                if "refused" in case or in_job or any(key in case for key in self.MADE_UP):
                    continue
                with self.subTest(site, case=case["name"]):
                    here = support.clean_env(**{"HPCLAUNCH_PROFILE_PATH": "", "XDG_CONFIG_HOME": self.folder + "/none", "USER": "user", **env})
                    made = hpclaunch("profile", "test", "--plan", case["name"], "--format", "json", site, env=here)
                    real = hpclaunch("plan", "--json", "--profile", site, *case["options"], "--user", env.get("USER", "user"), "--job-id", "0", "--", *case.get("program", ["python", "train.py"]), env=here)
                    self.assertIn(real.status, (0, 1), str(real))
                    one, other = (self.decided(done.out) for done in (self.ok(made), real))
                    late = {setting["name"] for setting in other["env"] if re.search(r"\$\w", str(setting["value"]))}  # found in the job
                    for plan in (one, other):
                        plan["env"] = [setting for setting in plan["env"] if setting["name"] not in late]
                    for key in one:
                        self.assertEqual(one[key], other[key], key)
                    self.assertEqual(list(one), list(other))
                    compared += 1
        self.assertGreater(compared, 150)


if __name__ == "__main__":
    support.main()
