#!/usr/bin/python3
"""The matrix: launcher x nodes x ranks per node x binding x device view, each case started for real on virtual nodes, and
every rank's own report compared with `hpclaunch plan --json` of the same command line in the same environment.

HPCLAUNCH_TEST_MATRIX=some takes every fifth case (for a machine that is slow).
"""
import json
import os
import subprocess
import sys
import threading
import time

import engines
from cluster import own_folder
from engines import DEVICES, differences, support

NODES = 3
# name -> (options, nodes they need)
COUNTS = {"1 per node": (lambda n: ["-N", str(n), "--ppn", "1"], 1), "2 per node": (lambda n: ["-N", str(n), "--ppn", "2"], 1),
          "3 per node": (lambda n: ["-N", str(n), "--ppn", "3", "--oversubscribe"], 1),
          "uneven": (lambda n: ["-N", str(n), "-n", str(2 * n - 1)], 2), "uneven, 3 first": (lambda n: ["-N", str(n), "-n", str(2 * n + 1), "--oversubscribe"], 2)}
BINDINGS = {"by itself": [], "launcher": ["--bind-via", "launcher"], "shim": ["--bind-via", "shim"], "none": ["--bind-via", "none"],
            "1 core": ["--cpus-per-rank", "1"]}
VIEWS = {"no devices": None, "all": "all", "own": "own"}


def cases(launcher, profile):
    """(name, options of hpclaunch) of all that this launcher can be asked for."""
    for nodes in range(1, NODES + 1):
        for count, (words, least) in COUNTS.items():
            for binding, bind in BINDINGS.items():
                for view, device in VIEWS.items():
                    local = launcher == "local"
                    if nodes < least or (local and nodes > 1) or (binding == "launcher" and (least > 1 or local or launcher == "openmpi")):
                        continue  # what a launcher cannot bind is refused, see below
                    if device is None and binding in ("1 core", "launcher"):
                        continue  # nothing new beside the views with devices
                    if "per node" in count and int(count[0]) > DEVICES:
                        continue
                    options = ["--launcher", launcher] + (words(nodes) if not local else ["-n"] + words(1)[3:]) + bind
                    options += ["--profile", "none"] if device is None else ["--profile", profile, "--gpu-view", device]
                    yield "%s, %d nodes, %s, bind %s, devices %s" % (launcher, nodes, count, binding, view), options


def run_once(argv):
    silent, talker = os.pipe()
    env = dict(os.environ, OMPI_MCA_orte_tmpdir_base=own_folder(os.environ["TMPDIR"]))
    try:
        run = subprocess.run(argv, stdin=silent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=support.LIMIT, env=env)
        return run.returncode, run.stdout, run.stderr
    except subprocess.TimeoutExpired as late:
        return "no end within 60 s", str(late.stdout), str(late.stderr)
    finally:
        os.close(silent)
        os.close(talker)


def drive(order, result):
    """Runs in the cluster, inside of the allocation: plans and runs each case, one after the other."""
    with open(order) as file:
        order = json.load(file)
    done = []
    for number, (name, options) in enumerate(order["cases"]):
        folder = os.path.join(order["folder"], str(number))
        os.mkdir(folder)
        program = ["--", order["record"], folder]
        plan = subprocess.run([order["hpclaunch"], "plan", "--json", *options, *program], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        begin = time.monotonic()
        status, out, err = run_once([order["hpclaunch"], "run", *options, *program])
        done.append({"name": name, "options": options, "folder": folder, "plan_status": plan.returncode, "plan": plan.stdout,
                     "plan_err": plan.stderr, "status": status, "out": out, "err": err, "took": time.monotonic() - begin})
    with open(result + ".new", "w") as file:
        json.dump(done, file)
    os.rename(result + ".new", result)


class Matrix(engines.Test):
    nodes = NODES
    counted = 0

    @classmethod
    def tearDownClass(cls):
        print("\nmatrix: %d cases in mode %s" % (Matrix.counted, cls.cluster.state.mode), file=sys.stderr)
        super().tearDownClass()

    def order(self, launcher, title=None, every=1):
        """The driver's command line, and where its result will be. `every` takes each so manieth case only."""
        title = title or launcher
        folder = os.path.join(self.folder, title)
        os.makedirs(folder)
        if os.environ.get("HPCLAUNCH_TEST_MATRIX") == "some":
            every *= 5
        chosen = [(name.replace(launcher, title, 1), options + self.meeting())
                  for name, options in cases(launcher, self.profile)][::every]
        order = self.file("%s.json" % title, json.dumps({"hpclaunch": support.HPCLAUNCH, "record": engines.RECORD,
                                                         "folder": folder, "cases": chosen}))
        return [sys.executable, os.path.abspath(__file__), "_drive", order, order + ".result"], order + ".result"

    def judge(self, result, hosts=True, everywhere=engines.ALLOWED, skip=()):
        with open(result) as file:
            done = json.load(file)
        self.assertTrue(done)
        for case in done:
            with self.subTest(case["name"]):
                said = "%s\nstatus %s\n%s\n%s\n%s" % (" ".join(case["options"]), case["status"], case["plan_err"], case["out"], case["err"])
                self.assertIn(case["plan_status"], (0, 1), said)
                plan = json.loads(case["plan"])
                self.assertEqual(case["status"], 0, said)
                self.assertEqual(differences(plan, case["folder"], hosts and self.cluster.spaces, everywhere, skip), [], said)
                self.assertEqual(sorted(case["out"].split("\n")), sorted([""] + ["rank %d" % r for r in range(plan["world_size"])]), said)
                # Whoever binds, it came out as planned: no rank had to be mended, nobody warned.
                self.assertNotIn("hpclaunch: rank", case["err"], said)
                self.assertNotIn("cpu-bind", case["err"], said)
            Matrix.counted += 1
        print("\n%s: %d cases, %.0f s" % (done[0]["name"].split(",")[0], len(done), sum(case["took"] for case in done)), file=sys.stderr)

    def drives(self, node, argv, result, env=None):
        done = self.cluster.run(node, argv, env=env, timeout=1500)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(os.path.exists(result), done.stdout + done.stderr)

    def together(self, *jobs):
        """Runs them at once; each case is alone in its allocation all the same."""
        failures = []

        def run(job):
            try:
                self.drives(*job)
            except BaseException as error:  # told in the test's own thread
                failures.append(error)

        threads = [threading.Thread(target=run, args=[job]) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def test_all(self):
        slurm, slurm_result = self.order("slurm")
        hydra, hydra_result = self.order("hydra")
        local, local_result = self.order("local")
        self.together(("login", self.salloc(NODES) + slurm, slurm_result), ("n1", hydra, hydra_result, self.cluster.pbs(NODES)),
                      ("n1", local, local_result, self.cluster.pbs(1)))
        self.judge(slurm_result)
        self.judge(hydra_result)
        self.judge(local_result, skip=["MASTER_PORT"])  # chosen anew by each start on one node
        self.nothing_left()

    def test_hydra_in_a_slurm_job(self):
        """Hydra starts its proxies by srun there."""
        hydra, result = self.order("hydra", "hydra in Slurm", every=4)
        self.drives("login", self.salloc(NODES) + hydra, result)
        self.judge(result)
        self.nothing_left()

    def test_open_mpi(self):
        """In a PBS job over ssh, and in a Slurm job, where it starts its daemons by srun."""
        self.own_nodes("openmpi")
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        pbs, pbs_result = self.order("openmpi")
        slurm, slurm_result = self.order("openmpi", "openmpi in Slurm", every=4)
        self.together(("n1", pbs, pbs_result, self.cluster.pbs(NODES, **root)),
                      ("login", self.salloc(NODES) + slurm, slurm_result, self.cluster.environment("login", **root)))
        self.judge(pbs_result)
        self.judge(slurm_result)
        self.nothing_left()

    def test_refused(self):
        """What a launcher cannot bind is refused, and the way out is named."""
        for launcher in ("slurm", "hydra"):
            with self.subTest(launcher):
                done = self.on("n1", "run", "--launcher", launcher, "-n", "5", "--bind-via", "launcher", "--", engines.RECORD, self.folder,
                               env=self.cluster.pbs(NODES))
                self.ok(done, 125)
                self.has(done, "differs between nodes", "--bind-via shim")
        done = self.on("n1", "run", "--launcher", "openmpi", "-n", "6", "--oversubscribe", "--bind-via", "launcher", "--", engines.RECORD,
                       self.folder, env=self.cluster.pbs(NODES))
        self.ok(done, 125)
        self.has(done, "--bind-via shim")


if __name__ == "__main__":
    if sys.argv[1:2] == ["_drive"]:
        drive(*sys.argv[2:4])
    else:
        engines.main()
