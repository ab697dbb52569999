#!/usr/bin/env python3
"""hpclaunch verify and run --preflight: what is as planned is said in one line, each planted fault is named."""
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import fakes
import site_jobs
import support
import allowed
from support import HOST, ROOT, Test, clean_env, execute, hpclaunch, need

support.idle_stdin()
ALLOWED = sorted(os.sched_getaffinity(0))
FAULTY = os.path.join(ROOT, "tests", "cli", "standins", "faulty.py")


def load_tests(loader, tests, pattern):
    return fakes.Together(tests, 2)  # beside those that wait for a rank


class Verify(Test):
    def setUp(self):
        super().setUp()
        self.hosts = self.file("hosts", "nodea\nnodeb\n")

    def launcher(self, faults):
        allowed.require("host name")
        return self.file("mpiexec", '#!/bin/sh\nexec "%s" -I -S "%s" "%s" "$@"\n' % (sys.executable, FAULTY, faults), 0o755)

    def words(self, faults="", n=4):
        """Two nodes that are this machine; MASTER_ADDR is an address that they really have, or loopback on a machine without any."""
        return ["-n", str(n), "--hostfile", self.hosts, "--launcher", self.launcher(faults), "--oversubscribe",
                "--master-addr", self.address()] + (["--force"] if self.address() == "127.0.0.1" else [])

    @staticmethod
    @functools.lru_cache(None)
    def address():
        found = re.findall(r"inet (\d+\.\d+\.\d+\.\d+)/\d+.*scope global", execute([need("ip"), "-4", "addr"]).out) if os.path.exists("/sbin/ip") or os.path.exists("/usr/sbin/ip") else []
        return found[0] if found else "127.0.0.1"

    def kinds(self, faults, *more, env=None, n=4, status=None):
        """The kinds of differences, without those that this machine's lack of a network makes."""
        binds = () if "--bind-via" in more else ("--bind-via", "launcher")  # the faults are the launcher's
        done = hpclaunch("verify", "--json", *self.words(faults, n), *binds, *more, env=env)
        self.assertIn(done.status, (0, 1) if status is None else (status,), str(done))
        self.result = json.loads(done.out)
        self.done = done
        self.assertEqual(self.result["schema"], 1)
        self.assertEqual(self.result["as_planned"], done.status == 0)
        if self.address() != "127.0.0.1":
            self.assertEqual([d for d in self.result["differences"] if d["kind"] == "master-address"], [])
        found = [d for d in self.result["differences"] if d["kind"] != "master-address"]
        return {d["kind"]: d for d in found}


class WithFabric(Verify):
    """With a libfabric that answers at once and offers cxi."""

    @classmethod
    def setUpClass(cls):
        cls.fabric = tempfile.mkdtemp(prefix="hpclaunch-test-")
        cls.addClassCleanup(shutil.rmtree, cls.fabric)
        fakes.libfabric(cls.fabric)

    def with_fabric(self, **env):
        return clean_env(LD_LIBRARY_PATH=self.fabric, FAKE_LIBFABRIC="all", **env)


class AsPlanned(Verify):
    def test_local(self):
        done = self.ok(hpclaunch("verify", "-n", "2", "--oversubscribe"))
        self.assertEqual([done.out, done.err], ["2 of 2 ranks as planned on 1 node\n", ""])

    def test_hydra(self):
        done = self.ok(hpclaunch("verify", "-n", "3", "--oversubscribe", "--launcher", "hydra"))
        self.assertEqual([done.out, done.err], ["3 of 3 ranks as planned on 1 node\n", ""])

    def test_hydra_with_two_nodes(self):
        hosts = self.file("both", "%s.a\n%s.b\n" % (HOST.split(".")[0], HOST.split(".")[0]))
        done = hpclaunch("verify", "--json", "-n", "4", "--oversubscribe", "--hostfile", hosts, "--launcher", "hydra", "--launcher-arg=-launcher",
                         "--launcher-arg=fork", "--master-addr", "127.0.0.1", "--force")
        result = json.loads(done.out)
        # Some machines' own name leads to loopback.
        self.assertEqual([result["ranks_as_planned"], {d["kind"] for d in result["differences"]} - {"host-name"}], [4, {"master-address"}], str(done))

    def test_the_stand_in_without_a_fault(self):
        self.assertEqual(self.kinds(""), {})
        self.assertEqual(self.result["ranks_as_planned"], 4)
        self.assertEqual([r["host"] for r in self.result["reports"]], ["nodea", "nodea", "nodeb", "nodeb"])

    def test_bind_none(self):
        self.ok(hpclaunch("verify", "-n", "2", "--oversubscribe", "--bind-via", "none"))

    def test_the_shim_binds(self):
        self.ok(hpclaunch("verify", "-n", "2", "--oversubscribe", "--bind-via", "shim"))

    def test_the_program_is_not_started(self):
        self.ok(hpclaunch("verify", "-n", "1", "--", "/usr/bin/touch", os.path.join(self.folder, "made")))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "made")))

    def test_reports_in_json(self):
        result = self.json("verify", "-n", "1", status=0)
        report = result["reports"][0]
        self.assertEqual(report["host"], HOST)
        self.assertEqual(report["cpus"], ",".join(map(str, ALLOWED)) if len(ALLOWED) == 1 else report["cpus"])
        self.assertEqual(support.cpu_list(report["cpus"]), set(ALLOWED))
        self.assertEqual(report["values"]["RANK"], "0")
        self.assertEqual([room["path"] for room in report["facts"]["rooms"]][0], "/dev/shm")
        self.assertNotIn("fingerprints", report)

    def test_secrets_do_not_travel(self):
        env = clean_env(MY_TOKEN="hunter2")
        for words in (["--set", "HF_TOKEN=hunter2"], []):
            done = self.ok(hpclaunch("verify", "--json", "-n", "1", *words, env=env))
            self.assertNotIn("hunter2", done.out + done.err)


class Frugal(Verify):
    """What a report costs a rank: files, where LD_LIBRARY_PATH is long, and bytes."""

    def named_files(self, *words):
        """Per process that wrote a report: the calls that name a file from its first exec of the shim on, and what it wrote."""
        strace, trace = need("strace"), os.path.join(self.folder, "trace")
        path = ":".join(os.path.join(self.folder, "module%d" % n) for n in range(30))
        done = execute([strace, "-f", "-qq", "-s", "100000", "-e", "signal=none", "-e", "trace=%file,write", "-o", trace, support.HPCLAUNCH, *words],
                       env=support.traced_env(LD_LIBRARY_PATH=path))
        calls = {}
        with open(trace, errors="replace") as file:
            for line in file:
                pid, _, call = line.partition(" ")
                if "execve(" in call and "hpclaunch-shim" in call.split(",")[0]:
                    calls[pid] = []
                if pid in calls and not call.lstrip().startswith("<..."):  # the second half of a call that strace wrote as two lines
                    calls[pid].append(call.strip())
        ranks = []
        for lines in calls.values():
            written = [line for line in lines if line.startswith("write(1") and "@hpclaunch-report" in line]
            named = [line for line in lines if not line.startswith("write(") and '""' not in line.split(",")[1:2] and ', "", ' not in line
                     and "/proc/self/maps" not in line]  # AddressSanitizer's
            if written:
                ranks.append((len(named), int(re.findall(r'", (\d+)', written[0])[-1]), named))
        return done, ranks

    def test_a_rank_names_few_files_and_writes_few_bytes(self):
        done, ranks = self.named_files("verify", "-n", "4", "--oversubscribe")
        self.assertEqual(done.out, "4 of 4 ranks as planned on 1 node\n", str(done))
        self.assertEqual(len(ranks), 4)
        ranks.sort(key=lambda one: one[1])
        for count, size, named in ranks:
            self.assertLessEqual(count, 10, "\n".join(named))
        for count, size, named in ranks[:-1]:  # the first rank of the node reports facts of the node too
            self.assertLessEqual(size, 66 + len(HOST))

    def test_a_rank_that_differs_names_few_files_too(self):
        done, ranks = self.named_files("verify", *self.words("set=OMP_NUM_THREADS=77"))
        self.assertIn("OMP_NUM_THREADS=77", done.out)
        self.assertEqual(len(ranks), 4)
        for count, size, named in ranks:
            self.assertLessEqual(count, 10, "\n".join(named))
        for count, size, named in sorted(ranks, key=lambda one: one[1])[:2]:
            self.assertLessEqual(size, 200)

    def test_preflight_does_not_search_libraries(self):
        done, ranks = self.named_files("run", "--preflight", "-n", "2", "--oversubscribe", "--", "/bin/true")
        self.assertEqual([done.status, len(ranks)], [0, 1], str(done))
        self.assertLessEqual(ranks[0][0], 10, "\n".join(ranks[0][2]))


class DoctorOfNodes(WithFabric):
    """verify --doctor: each node examines itself, one finding of each kind with its nodes. The libfabric and the Python of
    this machine are asked in test_a_plain_line_of_one_node."""
    OF_THE_MACHINE = {"memlock", "open-files", "no-torch"}

    def setUp(self):
        super().setUp()
        home = os.path.join(self.folder, "home")
        os.makedirs(home)
        python = self.file("bin/python3", fakes.python_of_doctor("/no/packages"), 0o755)
        self.env = self.with_fabric(HOME=home, PATH=os.path.dirname(python) + ":" + os.environ["PATH"])

    def found(self, faults, *more, status=1):
        done = hpclaunch("verify", "--doctor", "--json", *self.words(faults), "--bind-via", "launcher", *more, env=self.env)
        result = json.loads(done.out)
        found = {one["id"]: one for one in result["findings"] if one["id"] not in self.OF_THE_MACHINE}
        if found:
            self.assertEqual(done.status, status, str(done))
        return result, found

    def test_sound(self):
        for faults in ("", "tag", "noise"):
            with self.subTest(faults):
                result, found = self.found(faults)
                self.assertEqual((result["answered"], found), (2, {}))

    def test_one_node_of_two(self):
        _, found = self.found("drop=HOME")
        self.assertEqual([found["no-home"]["hosts"], found["no-home"]["severity"]], [["nodeb"], "warning"])

    def test_both_nodes_in_one_line(self):
        _, found = self.found("set=TMPDIR=/gone")
        self.assertEqual(found["no-tmpdir"]["hosts"], ["nodea", "nodeb"])
        done = hpclaunch("verify", "--doctor", *self.words("set=TMPDIR=/gone"), env=self.env)
        self.assertEqual(done.out.count("[no-tmpdir]"), 1)
        self.assertRegex(done.out, r"(?m)^2 of 2 nodes answered$")

    def test_a_node_without_an_answer(self):
        result, found = self.found("fewer")
        self.assertEqual((result["answered"], found["no-answer"]["hosts"]), (1, ["nodeb"]))
        _, found = self.found("hang", "--timeout", "3")
        self.assertIn("no answer within 3 seconds", found["no-answer"]["message"])

    def test_a_plain_line_of_one_node(self):
        done = self.ok(hpclaunch("doctor", "--node", "--json", env=clean_env(RANK="7", TMPDIR="/gone")))
        line = json.loads(done.out)
        self.assertEqual((line["hpclaunch_node"], done.out.count("\n")), (7, 1))
        self.assertIn("no-tmpdir", [row["id"] for row in line["rows"]])


class Faults(Verify):
    def test_variable_dropped(self):
        found = self.kinds("drop=MASTER_PORT", status=1)
        self.assertEqual(list(found), ["variable"])
        self.assertEqual(found["variable"]["ranks"], [1, 2, 3])
        self.assertEqual(found["variable"]["found"], "MASTER_PORT not set")

    def test_exported_variable_dropped(self):
        found = self.kinds("drop=PYTHONPATH", env=clean_env(PYTHONPATH="/x"), status=1)
        self.assertEqual(found["variable"]["planned"], "PYTHONPATH as exported")

    def test_variable_changed(self):
        found = self.kinds("set=OMP_NUM_THREADS=77", status=1)
        self.assertEqual(found["variable"]["found"], "OMP_NUM_THREADS=77")
        self.assertEqual(found["variable"]["where"], "all 4 ranks")

    def test_secret_changed(self):
        found = self.kinds("set=HF_TOKEN=other", "--set", "HF_TOKEN=hunter2", status=1)
        self.assertEqual(found["variable"]["found"], "HF_TOKEN has another value")
        self.assertNotIn("hunter2", self.done.out + self.done.err)

    def test_devices_that_are_missing(self):
        devices = ", ".join('{"index": %d, "vendor": "amd", "model": "x"}' % n for n in range(64))
        cores = ", ".join('{"pus": "%d"}' % cpu for cpu in ALLOWED)
        node = self.file("node.json", '{"schema": 1, "hostname": "there", "allowed": "%s", "cores": [%s], "devices": [%s]}'
                         % (",".join(map(str, ALLOWED)), cores, devices))
        done = hpclaunch("verify", "-n", "64", "--oversubscribe", "--topology", node, "--json")
        self.assertEqual(done.status, 1, str(done))
        found = {one["kind"]: one for one in json.loads(done.out)["differences"]}
        self.assertEqual(found["devices"]["planned"], "64 devices of amd")
        self.assertEqual(found["devices"]["ranks"], list(range(64)))

    def test_removed_and_there_again(self):
        found = self.kinds("set=FOO=1", "--unset", "FOO", status=1)
        self.assertEqual(found["variable"]["planned"], "FOO not set")

    def test_wide_mask(self):
        if len(ALLOWED) < 2:
            return  # one CPU: bound and not bound are the same
        found = self.kinds("wide", "--cpus-per-rank", "1", n=2, status=1)
        self.assertEqual(list(found), ["cpus"])
        self.assertIn("did not bind", found["cpus"]["cause"])
        self.assertEqual(found["cpus"]["fix"], "--bind-via shim")
        self.assertEqual(self.kinds("wide", "--cpus-per-rank", "1", "--bind-via", "shim", n=2), {})

    def test_other_mask(self):
        if len(ALLOWED) < 2:
            return
        found = self.kinds("narrow", "--cpus-per-rank", "1", n=4, status=1)
        self.assertEqual([list(found), found["cpus"]["where"]], [["cpus"], "local rank 1 on nodea, nodeb"])
        self.assertIn("local rank 0", found["cpus"]["cause"])

    def test_local_ranks_swapped(self):
        found = self.kinds("swap", status=1)
        self.assertEqual(list(found), ["local-rank"])
        self.assertEqual(self.result["ranks_as_planned"], 0)

    def test_hosts_in_another_order(self):
        self.kinds("order", status=1)
        found = {d["planned"]: d["found"] for d in self.result["differences"] if d["kind"] == "host"}
        self.assertEqual(found, {"nodea": "nodeb", "nodeb": "nodea"})

    def test_fewer_ranks(self):
        found = self.kinds("fewer", status=1)
        self.assertEqual(found["rank-silent"]["where"], "rank 3 on nodeb")
        self.assertIn("fewer ranks", found["rank-silent"]["cause"])

    def test_noise_and_tags_do_not_disturb(self):
        self.assertEqual(self.kinds("noise"), {})
        self.assertIn("module load: welcome", self.done.err)
        self.assertEqual(self.kinds("tag,noise"), {})

    def test_launcher_fails_after_all(self):
        self.assertEqual(list(self.kinds("fail", status=1)), ["launcher-status"])

    def test_launcher_fails_at_once(self):
        self.refused_by(hpclaunch("verify", *self.words("dead")), 2, "no rank reported", "status 9")
        self.refused_by(hpclaunch("run", "--preflight", *self.words("dead"), "--", "/bin/true"), 125, "no node reported", "status 9")

    def refused_by(self, done, status, *texts):
        self.ok(done, status)
        self.assertEqual(done.out, "")
        self.has(done, *texts)

    def test_a_rank_that_hangs_is_named_and_ended(self):
        mark = "HPCLAUNCH_TEST_MARK=%d-%d" % (os.getpid(), time.time_ns())
        name, _, value = mark.partition("=")
        found = self.kinds("hang", "--timeout", "3", env=clean_env(**{name: value}), status=1)
        self.assertEqual(found["rank-silent"]["ranks"], [3])
        self.assertIn("3 seconds", found["rank-silent"]["cause"])
        self.assertEqual(self.left(mark), [])

    def left(self, mark):
        """Processes with `mark` in their environment."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as file:
                    if mark.encode() in file.read():
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def test_interrupted(self):
        mark = "HPCLAUNCH_TEST_MARK=%d-%d" % (os.getpid(), time.time_ns())
        name, _, value = mark.partition("=")
        gate = os.path.join(self.folder, "gate")
        run = subprocess.Popen([support.HPCLAUNCH, "verify", *self.words("hang=" + gate)], env=clean_env(**{name: value}),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            end = time.monotonic() + support.LIMIT
            while not os.path.exists(gate) and time.monotonic() < end:
                time.sleep(0.05)
            run.send_signal(signal.SIGINT)
            out, _ = run.communicate(timeout=support.LIMIT)
        finally:
            run.kill()
        self.assertEqual([run.returncode, out], [130, b""])
        self.assertEqual(self.left(mark), [])

    def test_table(self):
        done = self.ok(hpclaunch("verify", *self.words("drop=MASTER_PORT")), 1)
        self.assertTrue(done.out.startswith("1 of 4 ranks as planned on 2 nodes\n\nwhat "), str(done))
        self.assertRegex(done.out, r"variable +ranks 1-3 on nodea, nodeb +MASTER_PORT=\d+ +MASTER_PORT not set")
        self.has(done, "likely the launcher does not pass this variable on", "try: name it to the launcher")
        for line in done.out.splitlines():
            self.assertLessEqual(len(line), 100)

    def test_not_started(self):
        self.refused(2, "verify", "--", "/no/such/program", says=["/no/such/program"])
        self.refused(2, "verify", "--launcher", "nothing", says=["nothing"])
        self.refused(2, "verify", "--timeout", "x", says=["--timeout"])


class Import(Verify):
    def test_without_binding_nothing_changes(self):
        done = self.ok(hpclaunch("verify", "-n", "1", "--import", "json", "--", need("python3")))
        self.assertEqual(done.out, "1 of 1 rank as planned on 1 node\n")

    def test_no_such_module(self):
        done = self.ok(hpclaunch("verify", "-n", "1", "--import", "no_such_module"), 1)
        self.has(done, "ModuleNotFoundError", "no_such_module")

    def test_a_module_that_binds_and_sets(self):
        self.file("greedy.py", "import os\nos.sched_setaffinity(0, {%d})\nos.environ['MASTER_PORT'] = '1'\n" % ALLOWED[-1])
        done = self.ok(hpclaunch("verify", "--json", "-n", "1", "--import", "greedy", "--", "/usr/bin/python3", env=clean_env(PYTHONPATH=self.folder)), 1)
        found = {d["kind"]: d for d in json.loads(done.out)["differences"]}
        self.assertEqual(found["import-variable"]["found"], "MASTER_PORT has another value")
        if len(ALLOWED) > 1:
            self.assertEqual(found["import-cpus"]["found"], str(ALLOWED[-1]))
            self.assertNotIn("cpus", found)

    def test_an_import_that_renumbers_the_ranks_is_said_of_these(self):
        self.file("renumber.py", "import os\nos.environ['RANK'] = '9'\n")
        done = self.ok(hpclaunch("verify", "--json", "-n", "2", "--oversubscribe", "--import", "renumber", "--", "/usr/bin/python3",
                                 env=clean_env(PYTHONPATH=self.folder)), 1)
        self.assertEqual([(d["kind"], d["ranks"], d["found"]) for d in json.loads(done.out)["differences"]],
                         [("import-variable", [0, 1], "RANK has another value")])

    def test_openmp_binding(self):
        """By GNU's library alone, as torch loads it, and by torch."""
        if len(ALLOWED) < 2:
            return
        self.file("gomp.py", "import ctypes\nctypes.CDLL('libgomp.so.1')\n")
        for module, python, env, name in (
                ("gomp", sys.executable, {"OMP_PROC_BIND": "true", "OMP_PLACES": "threads"}, "OMP_PROC_BIND=true"),
                ("gomp", sys.executable, {"GOMP_CPU_AFFINITY": str(ALLOWED[0])}, "GOMP_CPU_AFFINITY=%d" % ALLOWED[0]),
                ("torch", fakes.python_with_torch(), {"OMP_PROC_BIND": "true", "OMP_PLACES": "threads"}, "OMP_PROC_BIND=true")):
            def verify(*words, json=("--json",)):
                return hpclaunch("verify", *json, "-n", "1", *words, "--import", module, "--", python, env=clean_env(PYTHONPATH=self.folder, **env))
            with self.subTest(module + " " + name):
                done = verify()
                found = {d["kind"]: d for d in json.loads(done.out)["differences"]}
                self.assertEqual(list(found), ["import-cpus"], str(done))
                self.assertIn(name, found["import-cpus"]["cause"])
                mended = self.ok(verify(*found["import-cpus"]["fix"].split(), json=()))
                self.assertEqual(mended.out, "1 of 1 rank as planned on 1 node\n")


class Preflight(WithFabric):
    def run_two(self, faults="", *more, env=None):
        return hpclaunch("run", "--preflight", *self.words(faults), *more, "--", "/bin/echo", "ran", env=env)

    def test_all_is_well(self):
        if self.address() == "127.0.0.1":
            return  # no network: two nodes cannot meet, and the preflight says so
        done = self.ok(self.run_two())
        self.assertEqual(done.out, "ran\n" * 4)
        self.assertNotIn("preflight", done.err)

    def test_loopback_is_refused_unless_forced(self):
        words = [w for w in self.words() if w not in (self.address(), "--force")] + ["127.0.0.1"]
        done = self.ok(hpclaunch("run", "--preflight", *words, "--", "/bin/echo", "ran"), 125)
        self.assertEqual(done.out, "")
        self.has(done, "address-loopback", "not started")
        done = self.ok(hpclaunch("run", "--preflight", "--force", *words, "--", "/bin/echo", "ran"))
        self.has(done, "preflight-master-address", "nodeb")
        self.assertEqual(done.out, "ran\n" * 4)

    def test_an_interface_that_is_not_there(self):
        done = self.ok(self.run_two("", "--set", "GLOO_SOCKET_IFNAME=nothere0"), 125)
        self.has(done, "preflight-interface", "nodea, nodeb", "no interface nothere0")

    def test_a_node_that_does_not_answer(self):
        done = self.ok(self.run_two("fewer"), 125)
        self.has(done, "preflight-node-silent", "nodeb:")
        self.assertEqual(done.out, "")

    def test_a_provider_that_one_node_lacks(self):
        if self.address() == "127.0.0.1":
            return
        done = self.ok(self.run_two(env=self.with_fabric(FI_PROVIDER="cxi")))
        self.assertEqual((done.out, "preflight" in done.err), ("ran\n" * 4, False), str(done))
        done = self.ok(self.run_two("drop=LD_LIBRARY_PATH", env=self.with_fabric(FI_PROVIDER="cxi")), 125)
        self.has(done, "preflight-provider-missing", "nodeb: FI_PROVIDER=cxi")
        self.assertEqual((done.out, "nodea, " in done.err), ("", False), str(done))
        done = self.ok(self.run_two("drop=LD_LIBRARY_PATH", "--force", env=self.with_fabric(FI_PROVIDER="cxi")))
        self.assertEqual(done.out, "ran\n" * 4)

    def test_a_plugin_that_cannot_be_loaded(self):
        if self.address() == "127.0.0.1":
            return
        done = self.ok(self.run_two(env=self.with_fabric(NCCL_NET="AWS Libfabric")), 125)
        self.has(done, "preflight-plugin-missing", "nodea, nodeb: NCCL_NET=AWS Libfabric")

    def test_nodes_are_asked_for_a_network_that_the_ranks_name(self):
        """Otherwise the launcher is started once before the job, and no Python."""
        for env, starts in ((self.with_fabric(), 1), (self.with_fabric(NCCL_NET="Socket"), 1), (self.with_fabric(FI_PROVIDER="cxi"), 2)):
            count = self.file("count", "")
            launcher = self.file("counting/mpiexec", '#!/bin/sh\necho >> "%s"\nexec "%s" "$@"\n' % (count, self.launcher("")), 0o755)
            words = [launcher if word.endswith("/mpiexec") else word for word in self.words()]
            done = hpclaunch("run", "--preflight", *words, "--", "/bin/true", env=env)
            with open(count) as file:
                self.assertEqual(len(file.read()), starts + 1 + 1, str(done))  # the job, and --version

    def test_one_node(self):
        done = self.ok(hpclaunch("run", "--preflight", "-n", "2", "--oversubscribe", "--", "/bin/echo", "ran"))
        self.assertEqual([done.out, done.err], ["ran\nran\n", ""])

    def test_the_program_exists_on_every_node(self):
        result = self.json("verify", "-n", "1", "--", "/bin/true")
        self.assertNotIn("program_problem", result["reports"][0]["facts"])


class OtherLaunchers(Test):
    """One rank per node is something that each dialect can ask for, whatever the job's own layout is. The stand-ins read
    the launchers' grammar strictly; both nodes are this machine, which the preflight says, too."""

    JOBS = {"pals": {"PBS_JOBID": "7.server", "PBS_NODEFILE": "@FILE@"},
            "slurm": {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "3(x2)"}}

    def test_preflight(self):
        nodes = self.file("nodes", "n1\nn2\n")
        for launcher, env in self.JOBS.items():
            for words in (["-n", "6", "--oversubscribe"], ["--bind-via", "none", "-n", "2"]):
                with self.subTest([launcher, *words]):
                    job = site_jobs.Job(self.folder, {k: v.replace("@FILE@", nodes) for k, v in env.items()}, launcher)
                    done = job.hpclaunch("run", "--preflight", "--profile", "none", "--launcher", launcher, "--master-addr", "198.51.100.1", *words, "--", job.program)
                    self.ok(done, 125)
                    self.assertNotIn("node-silent", done.err)
                    self.assertIn("preflight-host", done.err)
                    argv = job.started(done).argv
                    self.assertEqual(argv[-1], job.program)
                    self.assertIn({"pals": "--ppn 1", "slurm": "--ntasks-per-node=1"}[launcher], " ".join(argv))


class Address(Verify):
    """What run says of MASTER_ADDR before it starts on several nodes."""

    def said(self, address, *hosts, status=0):
        file = self.file("list", "\n".join(hosts) + "\n")
        return self.ok(hpclaunch("run", "-n", "2", "--hostfile", file, "--launcher", self.launcher(""), "--oversubscribe", "--", "/bin/true",
                                 env=clean_env(MASTER_ADDR=address)), status)

    def test_unknown(self):
        self.has(self.said("no-such-host.invalid", "nodea", "nodeb"), "address-unknown", "no-such-host.invalid")

    def test_loopback(self):
        self.has(self.said("localhost", "nodea", "nodeb", status=125), "address-loopback")

    def test_of_another_job(self):
        self.has(self.said("192.0.2.7", "198.51.100.1", "198.51.100.2"), "address-elsewhere", "192.0.2.7", "rank 0 runs on 198.51.100.1")

    def test_this_machine_when_the_job_is_elsewhere(self):
        if self.address() != "127.0.0.1":
            self.has(self.said(self.address(), "198.51.100.1", "198.51.100.2"), "address-here")

    def test_the_first_host(self):
        self.assertEqual(self.said("198.51.100.1", "198.51.100.1", "198.51.100.2").err, "")

    def test_one_rank_starts_all_the_same(self):
        """It may never look at the address: a program of one rank needs no rendezvous."""
        for address in ("no-such-host.invalid", "192.0.2.1", ""):
            done = self.ok(hpclaunch("run", "-n", "1", "--", "/bin/echo", "ran", env=clean_env(MASTER_ADDR=address)))
            self.has(done, "hpclaunch: warning: MASTER_ADDR")
            self.assertEqual(done.out, "ran\n")


if __name__ == "__main__":
    support.main()
