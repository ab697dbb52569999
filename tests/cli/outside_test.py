"""Outside a job: nothing starts on a login node, and a script finds its first host in the job that runs it. The
address of rank 0, in and out of a job."""
import json
import os
import subprocess
import sys

import fakes
import support
from allowed import needs
from support import HOST, Test, clean_env, execute, hpclaunch

PROFILE = {"schema": 1, "name": "site", "doc": "x", "launcher": "slurm", "scheduler": "slurm", "job": {"account": "PROJECT"},
           "nodes": [{"name": "compute", "doc": "x", "use": "model", "packages": 1, "cores_per_numa": 4}]}


class Outside(Test):
    def setUp(self):
        super().setUp()
        self.log = os.path.join(self.folder, "log")
        for name in ("srun", "sbatch", "scontrol", "qsub", "mpiexec"):
            self.file("bin/" + name, '#!/bin/sh\necho "%s $*" >> "%s"\nprintf "n5\\nn6\\n"\n' % (name, self.log), 0o755)
        self.profile = self.file("site.json", json.dumps(PROFILE))

    def env(self, **more):
        return clean_env(PATH=os.path.join(self.folder, "bin") + ":/usr/bin:/bin", **more)

    def started(self):
        return os.path.exists(self.log)


class Login(Outside):
    def refused_here(self, *words, env=None, says=()):
        done = hpclaunch("run", *words, "--", "/bin/echo", "ran", env=env or self.env())
        self.ok(done, 125)
        self.has(done, "not in an allocation", *says)
        self.assertEqual([done.out, self.started()], ["", False])

    def test_by_the_profile(self):
        self.refused_here("--profile", self.profile, says=["outside a Slurm job of site", "salloc -N 1 -t 01:00:00 -A PROJECT, or hpclaunch submit", "--force"])
        self.refused_here("--profile", self.profile, "-N", "2", says=["salloc -N 2"])
        self.refused_here("--profile", "aurora", "-N", "2", says=["qsub -I -l select=2 -l walltime=01:00:00 -A PROJECT", "filesystems=flare"])
        self.refused_here("--profile", "el-capitan", says=["flux alloc -N 1"])
        self.ok(hpclaunch("verify", "--profile", self.profile, env=self.env()), 2)

    def test_by_an_installed_batch_system(self):
        conf = self.file("slurm.conf", "")
        self.refused_here("-n", "2", env=self.env(SLURM_CONF=conf), says=["outside a Slurm job", "salloc -N 1"])
        self.refused_here(env=self.env(PBS_CONF_FILE=conf), says=["outside a PBS job", "qsub -I"])

    def ran(self, *words, env):
        done = self.ok(hpclaunch("run", *words, "--", "/bin/echo", "ran", env=env))
        self.assertEqual([done.out, done.err], ["ran\n", ""])

    def test_who_means_it(self):
        env = self.env(SLURM_CONF=self.file("slurm.conf", ""))
        self.ran("-n", "1", "--force", env=env)
        self.ran("-n", "1", "--launcher", "local", env=env)
        self.ran("-n", "1", "--hostfile", self.file("hosts", HOST + "\n"), "--launcher", "local", env=env)
        self.ran("-n", "1", "--profile", "none", "--launcher", "local", env=dict(env, SLURM_JOB_ID="7", SLURM_JOB_NODELIST=HOST))

    def test_a_workstation_says_nothing(self):
        self.ran("-n", "1", env=clean_env())
        self.ran("-n", "1", env=self.env(SLURM_CONF="/no/such/file"))
        plain = self.file("plain.json", json.dumps({"schema": 1, "name": "plain", "doc": "x"}))
        self.ran("-n", "1", "--profile", plain, env=self.env())

    def test_a_plan_says_so_in_a_note(self):
        done = self.ok(hpclaunch("plan", "-n", "1", env=self.env(SLURM_CONF=self.file("slurm.conf", ""))))
        self.has(done, "note: not in an allocation")


class Examined(Outside):
    """What doctor_test, submit_test and verify_test ask for in full, once with sanitizers, which the programs of those tests
    do not have."""

    def test_what_the_loader_says_of_torch(self):
        site = os.path.join(self.folder, "site")
        nccl, torch = os.path.join(site, "nccl", "libnccl.so.2"), os.path.join(site, "torch", "_C.cpython-1.so")
        for version in ("NEW", "OLD"):  # torch was linked with the first, the second is there
            fakes.library(nccl, "int hpclaunch_test;", "-Wl,-soname,libnccl.so.2", "-Wl,--version-script," + self.file("versions", version + " { *; };\n"))
            if version == "NEW":
                fakes.library(torch, "extern int hpclaunch_test; int *use(void) { return &hpclaunch_test; }", nccl, "-Wl,-rpath,$ORIGIN/../nccl")
        python = self.file("bin/python3", fakes.python_of_doctor(site), 0o755)
        done = hpclaunch("doctor", "--profile", "none", "--json", "--python", python, env=self.env(HOME=self.folder))
        self.assertEqual([done.status, done.err], [1, ""], str(done))
        found = [row["message"] for row in json.loads(done.out)["rows"] if row.get("id") == "library-version"]
        self.assertEqual(len(found), 1, str(done))
        self.assertIn("%s: version `NEW' not found (required by %s)" % (os.path.join(site, "torch", "..", "nccl", "libnccl.so.2"), torch), found[0])

    def test_what_ranks_report(self):
        self.file("changing.py", "import os\nos.environ['MASTER_PORT'] = '1'\n")
        words = ("verify", "--json", "--launcher", "local", "--oversubscribe")
        done = self.ok(hpclaunch(*words, "-n", "2", "--import", "changing", "--", sys.executable, env=clean_env(PYTHONPATH=self.folder)), 1)
        found = [(one["kind"], one["ranks"], one["found"]) for one in json.loads(done.out)["differences"]]
        self.assertEqual((found, done.err), ([("import-variable", [0, 1], "MASTER_PORT has another value")], ""))
        done = self.ok(hpclaunch(*words, "-n", "1", "--after", "end", "--", "/bin/sh", "-c", "sleep 1.5; exit 4"), 1)
        self.assertEqual([one["kind"] for one in json.loads(done.out)["differences"]], ["program-ended"], str(done))
        self.assertEqual([one["after"]["exit"] for one in json.loads(done.out)["reports"]], [4])

    def test_what_the_batch_system_says(self):
        for printed, out, err in (("Welcome\n77", "77\n", []), ("no job", "", ["printed no job id"])):
            self.file("bin/sbatch", "#!/bin/sh\ncat >/dev/null\necho '%s'\n" % printed, 0o755)
            done = hpclaunch("submit", "--scheduler", "slurm", "-t", "1h", "--", "/bin/echo", env=self.env())
            self.assertEqual([done.status, done.out], [125 if err else 0, out], str(done))
            self.has(done, *err)


class Script(Outside):
    def script(self, *words, env=None):
        return self.ok(hpclaunch("run", "--dry-run", *words, "--", "/bin/echo", "x", env=env or self.env()))

    def run_in_job(self, text, **job):
        """What the launcher's stand-in gets as MASTER_ADDR from the script."""
        self.file("bin/srun", '#!/bin/sh\necho "$MASTER_ADDR"\n', 0o755)
        self.file("bin/mpiexec", '#!/bin/sh\necho "$MASTER_ADDR"\n', 0o755)
        return execute(["/bin/sh", self.file("script", text)], self.env(**job))

    def test_slurm(self):
        text = self.script("--profile", self.profile, "-N", "2").out
        self.assertNotIn("node00001", text)
        self.assertIn("# Made outside a job: run it in a Slurm job", text)
        text = text.replace(os.path.join(self.folder, "bin", "srun"), "srun")
        self.assertEqual(self.ok(self.run_in_job(text, SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[5-6]")).out, "n5\n")
        self.file("bin/scontrol", "#!/bin/sh\nexit 1\n", 0o755)
        self.has(self.ok(self.run_in_job(text, SLURM_JOB_ID="7"), 2), "run this in a Slurm job")
        self.has(self.ok(self.run_in_job(text), 2), "run this in a Slurm job")

    def test_names_of_the_jobs_own_tasks_are_removed(self):
        """A script made here and run in a job: the batch step's names are not those of the ranks that the script starts."""
        job = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "1", "PMI_RANK": "3", "OMPI_COMM_WORLD_RANK": "2", "PMIX_RANK": "1"}
        text = self.ok(hpclaunch("run", "--dry-run", "--launcher", "local", "-n", "2", "--oversubscribe", "--", "/usr/bin/env", env=self.env())).out
        done = self.ok(execute(["/bin/sh", self.file("script", text)], self.env(**job)))
        names = [line.split("=")[0] for line in done.out.splitlines()]
        self.assertEqual(sorted(line for line in done.out.splitlines() if line.startswith("RANK=")), ["RANK=0", "RANK=1"])
        self.assertEqual(set(names) & set(job), {"SLURM_JOB_ID"})
        inside = self.ok(hpclaunch("run", "--dry-run", "--launcher", "local", "-n", "2", "--oversubscribe", "--", "/usr/bin/env", env=self.env(SLURM_JOB_ID="7", SLURM_JOB_NODELIST=HOST)))
        self.assertNotIn("unset \"$name\"", inside.out)  # there the plan knows what is exported

    def test_aurora_has_the_name_on_the_fast_network(self):
        text = self.script("--profile", "aurora", "-N", "2").out
        nodes = self.file("nodes", "x4102c5s6b0n0.hostmgmt2102.cm.aurora.alcf.anl.gov\nx4102c5s7b0n0.hostmgmt2102.cm.aurora.alcf.anl.gov\n")
        text = "".join(line for line in text.splitlines(True) if "libexec" not in line)
        done = self.run_in_job(text, PBS_JOBID="7.server", PBS_NODEFILE=nodes)
        self.assertIn("x4102c5s6b0n0.hsn.cm.aurora.alcf.anl.gov\n", done.out, str(done) + text)

    def test_ranks_do_not_compare_invented_hosts(self):
        text = self.script("--profile", self.profile, "-N", "2").out
        wire = next(line for line in text.splitlines() if line.startswith("export HPCLAUNCH_PLAN="))
        self.assertNotIn(":hosts=", wire)
        self.assertNotIn("MASTER_ADDR*", wire)

    def test_a_given_address_stays(self):
        text = self.script("--profile", self.profile, "-N", "2", "--master-addr", "198.51.100.9").out
        self.assertIn("export MASTER_ADDR=198.51.100.9\n", text)
        self.assertNotIn("HPCLAUNCH_FIRST_HOST", text)

    def test_launchers_that_name_hosts(self):
        self.refused(125, "run", "--dry-run", "--profile", self.profile, "-N", "2", "--launcher", "hydra", "--", "/bin/true", env=self.env(), says=["has host names", "in the job"])

    def test_in_a_job_nothing_changes(self):
        text = self.script("--profile", self.profile, "-N", "2", env=self.env(SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[5-6]")).out
        self.assertIn("export MASTER_ADDR=n5\n", text)
        self.assertNotIn("HPCLAUNCH_FIRST_HOST", text)

    def test_env(self):
        done = self.ok(hpclaunch("env", "--profile", self.profile, "-N", "2", env=self.env()))
        self.assertIn("HPCLAUNCH_FIRST_HOST=$(scontrol", done.out)
        self.assertIn('export MASTER_ADDR="${MASTER_ADDR-$HPCLAUNCH_FIRST_HOST}"\n', done.out)
        for form in ("dotenv", "json", "lmod"):
            self.refused(2, "env", "--format", form, "--profile", self.profile, "-N", "2", env=self.env(), says=["MASTER_ADDR", "known only in the job", "--format sh"])


class UnknownNodes(Outside):
    """A container may pass the job's id on and not its node file."""

    def test_pbs(self):
        for more in ({}, {"PBS_NODEFILE": ""}):
            done = hpclaunch("plan", "--profile", "none", "-n", "2", "--oversubscribe", env=self.env(PBS_JOBID="7.server", **more))
            self.has(done, "nodes-unknown", "PBS_NODEFILE")
        for words, more in ((("-N", "1"), {}), (("--hostfile", self.file("hosts", "localhost\n")), {}), ((), {"PBS_NODEFILE": self.file("nodes", HOST + "\n")})):
            done = hpclaunch("plan", "--profile", "none", "-n", "2", "--oversubscribe", *words, env=self.env(PBS_JOBID="7.server", **more))
            self.assertNotIn("nodes-unknown", done.err)


class Contradiction(Outside):
    def test_a_profile_of_another_site(self):
        env = self.env(PBS_JOBID="7.aurora-pbs-0001.hostmgmt.cm.aurora.alcf.anl.gov", PBS_NODEFILE=self.file("nodes", "x4102c5s6b0n0\n"))
        self.has(hpclaunch("plan", "--profile", "frontier", env=env), "profile-elsewhere", "this is aurora", "omit --profile")
        self.assertNotIn("profile-elsewhere", hpclaunch("plan", "--profile", "aurora", env=env).err)
        own = self.file("mine.json", json.dumps({"schema": 1, "name": "mine", "doc": "x", "extends": ["aurora"]}))
        self.assertNotIn("profile-elsewhere", hpclaunch("plan", "--profile", own, env=env).err)
        self.assertNotIn("profile-elsewhere", hpclaunch("plan", "--profile", "none", env=env).err)

    def test_a_profile_of_another_batch_system(self):
        env = self.env(PBS_JOBID="7.server", PBS_NODEFILE=self.file("nodes", "n1\n"))
        self.has(hpclaunch("plan", "--profile", self.profile, env=env), "profile-elsewhere", "a PBS job")
        self.assertNotIn("profile-elsewhere", hpclaunch("plan", "--profile", self.profile, env=self.env(SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n1")).err)
        self.assertNotIn("profile-elsewhere", hpclaunch("plan", "--profile", self.profile, env=self.env()).err)


class Proxies(Outside):
    """The job's nodes are reached without a proxy, whoever has exported which spelling."""

    def exceptions(self, *words, nodes="n1\nn2\n", **more):
        done = self.ok(hpclaunch("plan", "--json", "--hostfile", self.file("hosts", nodes), *words, env=self.env(**more)))
        self.assertNotIn("export-overruled", done.err)
        found = {setting["name"]: setting["value"] for setting in json.loads(done.out)["env"]}
        self.assertEqual(found.get("no_proxy"), found.get("NO_PROXY"))
        return found.get("no_proxy")

    def test_each_spelling(self):
        for name in ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            for site in ("none", "perlmutter", "polaris"):
                self.assertEqual(self.exceptions("--profile", site, **{name: "http://p:1"}), "n1,n2")
            self.assertEqual(self.exceptions("--profile", "none", "--set", name + "=http://p:1"), "n1,n2")

    def test_what_is_kept(self):
        self.assertEqual(self.exceptions(http_proxy="p", no_proxy="a, n2", NO_PROXY="b,a"), "a,n2,b,n1")
        self.assertEqual(self.exceptions(http_proxy="p", NO_PROXY="b", MASTER_ADDR="10.0.0.7"), "b,10.0.0.7,n1,n2")
        self.assertIn(".frontier.olcf.ornl.gov,b,n1,n2", self.exceptions("--profile", "frontier", HTTPS_PROXY="p", NO_PROXY="b"))
        typed = ["--set", "no_proxy=x", "--set", "NO_PROXY=x"]
        self.assertEqual(self.exceptions(*typed, http_proxy="p"), "x")

    def test_where_nothing_is_to_do(self):
        for more in ({}, {"http_proxy": ""}, {"http_proxy": "p", "no_proxy": "*"}):
            self.assertIsNone(self.exceptions(**more))
        self.assertIsNone(self.exceptions(nodes="n1\n", http_proxy="p"))

    def test_a_long_list_fits(self):
        value = self.exceptions("-N", "9000", nodes="".join("node-with-a-long-name-%05d\n" % n for n in range(9000)), http_proxy="p")
        self.assertEqual([value.count(","), len(value) < 128 * 1024], [511, True])


class Spellings(Outside):
    def test_one_node_under_two_names(self):
        for names in ("n1\nn2\nN1\n", "n1\nn1.cluster\n", "n1.cluster:2\nn1:2\n"):
            self.refused(2, "plan", "--hostfile", self.file("hosts", names), env=self.env(), says=["are one node", "in one way"])
        for names in ("n1.a\nn1.b\n", "10.0.0.1\n10.0.0.2\n", "n1\nn2\nn1\nn2\n"):
            self.assertNotIn("one node", hpclaunch("plan", "--hostfile", self.file("hosts", names), env=self.env()).err)


class Leftovers(Outside):
    def test_of_a_slurm_step(self):
        left = ["SLURM_GTIDS", "SLURM_STEP_ID", "SLURM_STEPID", "MPICH_LOCALRANKID"]
        for words in (["--launcher", "local", "-n", "2"], ["--hostfile", self.file("hosts", "n1\nn2\n"), "-n", "2"]):
            done = self.ok(hpclaunch("plan", "--json", *words, env=self.env(**dict.fromkeys(left, "0"))))
            found = {setting["name"]: setting["value"] for setting in json.loads(done.out)["env"]}
            self.assertEqual([found.get(name, "kept") for name in left], [None] * 4)


class Directory(Outside):
    def test_that_has_been_removed(self):
        gone = os.path.join(self.folder, "gone")
        os.mkdir(gone)
        script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
        words = [support.HPCLAUNCH, "run", "--launcher", "local", "-n", "1", "--", "/bin/echo", "ran"]
        done = support.execute(["/bin/sh", "-c", script, "sh", gone, *words], env=self.env())
        self.ok(done, 125)
        self.has(done, "working-directory-gone", "cd to one that is there")
        self.assertEqual(done.out, "")


class Address(Outside):
    """MASTER_ADDR that cannot be right, before the start, in plan, dry run and verify as well."""

    def all_of(self, address, *words, rule, severity="error"):
        env = self.env(MASTER_ADDR=address)
        words += ("--launcher", "local") if "--hostfile" not in words else ("--launcher", "hydra")
        plan = hpclaunch("plan", *words, "--", "/bin/true", env=env)
        self.has(plan, severity, rule)
        for printing, status in ((("run", "--dry-run"), 125), (("env",), 2)):
            done = hpclaunch(*printing, *words, "--", "/bin/true", env=env)
            self.has(done, rule)
            self.assertEqual((done.out, done.status), ("", status) if severity == "error" else (done.out, 0), str(done))
            self.has(self.ok(hpclaunch(*printing, *words, "--force", "--", "/bin/true", env=env)), rule)
        for command, status in (("run", 125), ("verify", 2)):
            done = hpclaunch(command, *words, "--", "/bin/true", env=dict(env, PATH="/usr/bin:/bin"))
            self.has(done, rule)
            self.assertEqual(done.status, status, str(done))

    def hosts(self, *names):
        return self.file("hosts", "".join(name + "\n" for name in names))

    def test_several_nodes(self):
        words = ("-n", "2", "--ppn", "1", "--hostfile", self.hosts("198.51.100.1", "198.51.100.2"))
        for address, rule in (("", "address-empty"), ("127.0.0.1", "address-loopback"), ("127.3.2.1", "address-loopback"), ("localhost", "address-loopback"),
                              ("::1", "address-loopback"), ("0.0.0.0", "address-loopback"), ("fe80::1", "address-link-local"),
                              ("fe80::1%eth0", "address-link-local"), ("FE80::1", "address-link-local"), ("169.254.1.1", "address-link-local")):
            with self.subTest(address):
                self.all_of(address, *words, rule=rule)
        self.all_of("198.51.100.2", *words, rule="address-elsewhere")  # a node of the job, and not rank 0's

    def test_one_node(self):
        words = ("-n", "2", "--oversubscribe")
        self.all_of("", *words, rule="address-empty")
        for address in ("a" * 300, "n1..org", "n1:29500", "10.0.0.300", "http://n1", "a" * 100000):
            with self.subTest(address[:20]):
                self.all_of(address, *words, rule="address-invalid")
        self.has(hpclaunch("plan", *words, "--master-addr", "n1 n2", "--", "/bin/true", env=self.env()), "address-invalid", 'MASTER_ADDR "n1 n2"')
        self.all_of("192.0.2.1", *words, rule="address-elsewhere")
        self.all_of("no-such-host.invalid", *words, rule="address-unknown")
        for address in ("127.0.0.1", "localhost", HOST):
            with self.subTest(address):
                done = self.ok(hpclaunch("run", *words, "--", "/bin/true", env=clean_env(MASTER_ADDR=address)))
                self.assertEqual(done.err, "")
        self.ok(hpclaunch("run", *words, "--force", "--", "/bin/true", env=clean_env(MASTER_ADDR="192.0.2.1")))

    @needs("network")
    def test_a_link_local_address_of_this_machine(self):
        """With its scope it is one of this node's; without it nothing can connect to it."""
        inside = 'ip link set lo up && ip address add fe80::77/64 dev lo nodad && exec "$@"'
        for address, status in (("fe80::77%lo", 0), ("fe80::78%lo", 125), ("fe80::77", 125)):
            with self.subTest(address):
                done = support.execute([support.need("unshare"), "--map-root-user", "--net", "sh", "-c", inside, "-", support.HPCLAUNCH, "run", "-n", "2",
                                        "--oversubscribe", "--", "/bin/true"], clean_env(MASTER_ADDR=address))
                self.ok(done, status)
                self.assertEqual("address-elsewhere" in done.err, status != 0, str(done))


if __name__ == "__main__":
    support.main()
