#!/usr/bin/env python3
"""Inside a Flux instance: which nodes, cores and devices it grants, the line of `flux run`, and how its jobs end. Flux is
played by standins/flux.py as the real one was seen."""
import json
import os
import subprocess
import sys
import time

import site_jobs
import support
from support import HOST, Test, machine

NODE = ("--profile", "none", "--topology", machine("laptop-8.xml"))
MI300A = ("--profile", "none", "--topology", machine("devices/mi300a-spx.xml"), "--verify", "off")
INSTANCE = {"FLUX_URI": "local:///tmp/flux-AbCdEf/local-0", "FLUX_ENCLOSING_ID": "f7"}
HERE = ("--profile", "none", "--verify", "off", "--bind-via", "none", "--master-addr", "198.51.100.1")


class Instance(Test):
    def job(self, hosts="f[1-4]", env=(), **config):
        return site_jobs.Job(self.folder, {**INSTANCE, **dict(env)}, "flux", hosts=hosts, **config)

    def plan(self, job, *words, program=("/bin/true",)):
        return self.json("plan", *words, "--", *program, env=job.env)

    def value(self, plan, name):
        """Of a variable: the text, a list for each kind of node, None where it is removed, "" where it is not set."""
        [found] = [one["value"] for one in plan["env"] if one["name"] == name] or [""]
        return found["per_rank"] if isinstance(found, dict) else found

    def line(self, job, *words):
        """The words of `flux run` before the shim."""
        argv = self.plan(job, *words)["argv"]
        return argv[1:argv.index(support.shim_path())]

    def refused_plan(self, job, *words, says):
        self.refused(2, "plan", *words, "--", "/bin/true", env=job.env, says=says)


class Hosts(Instance):
    def test_those_that_are_up(self):
        plan = self.plan(self.job(lost=["f3"]), *NODE, "--ppn", "1")
        self.assertEqual((plan["hosts"], plan["launcher"]), (["f1", "f2", "f4"], "flux"))

    def test_a_flux_without_resources_in_json(self):
        """Before 0.52 there is no `flux resource R`."""
        job = self.job()
        old = 'case "$1" in resource) echo "flux-resource: invalid choice: R" >&2; exit 2;; hostlist) echo f1,f2;; esac'
        site_jobs.Job.script(os.path.join(job.folder, site_jobs.PLACES["flux"]), old)
        self.assertEqual(self.plan(job, *NODE, "--ppn", "1")["hosts"], ["f1", "f2"])

    def test_a_node_that_is_lost_is_not_started_on(self):
        job = self.job(hosts="f[1-3]", lost=["f2"])
        started = job.run(*HERE, "--ppn", "1", "-n", "2")
        self.ok(started.done)
        self.assertEqual(sorted(started.ranks), [0, 1])

    def test_all_nodes_are_lost(self):
        self.refused_plan(self.job(hosts="f1,f2", lost=["f1", "f2"]), *NODE, "--ppn", "1", says=["flux resource R", "--hostfile"])

    def test_the_id_of_an_instance_that_was_reached_by_proxy(self):
        job = self.job(jobid="\u0192S9tEp3", env={"FLUX_URI": "local:///run/flux/jobs/x/local-0"})
        del job.env["FLUX_ENCLOSING_ID"]
        self.assertEqual(self.value(self.plan(job, *NODE, "--ppn", "1"), "TORCHELASTIC_RUN_ID"), "\u0192S9tEp3")
        none = self.job()  # `flux start`: no job around it
        del none.env["FLUX_ENCLOSING_ID"]
        self.assertEqual(self.value(self.plan(none, *NODE, "--ppn", "1"), "TORCHELASTIC_RUN_ID"), "0")


class Line(Instance):
    def test_one_node_goes_through_flux(self):
        for hosts, words in ((HOST + ",f2", ("-N", "1")), (HOST, ()), (HOST + ",f2", ("-n", "1"))):
            plan = self.plan(self.job(hosts=hosts), "--profile", "none", "--oversubscribe", *words)
            self.assertEqual((plan["launcher"], plan["hosts"]), ("flux", [HOST]))
        here = self.file("here", HOST + "\n")
        self.assertEqual(self.plan(self.job(hosts="f1," + HOST), "--profile", "none", "-n", "1", "--hostfile", here)["launcher"], "flux")
        self.assertEqual(self.plan(self.job(), "--profile", "none", "-n", "1", "--hostfile", here)["launcher"], "local")  # no node of it
        self.assertEqual(self.plan(self.job(hosts=HOST), "--profile", "none", "-n", "1", "--launcher", "local")["launcher"], "local")
        started = self.job(hosts=HOST + ",f2").run(*HERE, "-N", "1", "-n", "1")
        self.ok(started.done)
        self.assertIn("--requires=host:" + HOST, started.argv)

    def test_the_order_of_a_host_file(self):
        def taskmap(job, names, *words):
            line = self.line(job, *NODE, *words, "--hostfile", self.file("hosts", "\n".join(names) + "\n"))
            return [word for word in line if word.startswith("--taskmap")]
        job = self.job()
        self.assertEqual(taskmap(job, ["f1", "f3"], "--ppn", "2"), [])
        self.assertEqual(taskmap(job, ["f3", "f1"], "--ppn", "2"), ["--taskmap=manual:[[1,1,2,1],[0,1,2,1]]"])
        self.assertEqual(taskmap(job, ["f4", "f1", "f2"], "--ppn", "2"), ["--taskmap=manual:[[2,1,2,1],[0,2,2,1]]"])
        self.assertEqual(taskmap(job, ["f1:1", "f2:3"]), ["--taskmap=manual:[[0,1,1,1],[1,1,3,1]]"])
        self.assertEqual(taskmap(self.job(hosts="f[4,1-3]"), ["f4", "f1"], "--ppn", "1"), [])

    def test_rank_0_runs_on_the_node_of_the_rendezvous(self):
        job = self.job(hosts="f[1-2]")
        started = job.run(*HERE[:-2], "--ppn", "1", "--oversubscribe", "--hostfile", self.file("hosts", "f2\nf1\n"), "--master-addr", "f2")
        self.ok(started.done)
        self.assertEqual([started.ranks[0]["GROUP_RANK"], started.ranks[1]["GROUP_RANK"]], ["0", "1"])
        self.assertIn("--taskmap=manual:[[1,1,1,1],[0,1,1,1]]", started.argv)

    def test_more_ranks_than_cores(self):
        self.assertEqual(self.line(self.job(), *NODE, "-N", "2", "--ppn", "4")[:6], ["run", "-N", "2", "-n", "8", "-x"])
        many = self.line(self.job(), *NODE, "-N", "2", "--ppn", "9", "--oversubscribe")
        self.assertEqual(many[:5], ["run", "-N", "2", "--tasks-per-node=9", "-x"])
        self.refused_plan(self.job(), *NODE, "-N", "2", "-n", "33", "--oversubscribe", says=["more than the", "-n 32 or -n 34"])
        job = self.job(hosts="f[1-2]", cores=1)
        started = job.run(*HERE[:4], "--ppn", "3", "--oversubscribe", "--topology", machine("single-pu.xml"))
        self.ok(started.done)
        self.assertEqual(sorted(started.ranks), list(range(6)))


class Grants(Instance):
    def test_each_node_has_its_own_gpus_and_cores(self):
        job = self.job(hosts="f[1-2]", grants={"f1": {"core": "24-47", "gpu": "2-3"}, "f2": {"core": "0-23", "gpu": "0-1"}},
                       env={"CUDA_VISIBLE_DEVICES": "2,3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
        plan = self.plan(job, *MI300A)
        self.assertEqual(self.value(plan, "ROCR_VISIBLE_DEVICES"), [["2,3", "2,3"], ["0,1", "0,1"]])
        self.assertIsNone(self.value(plan, "CUDA_VISIBLE_DEVICES"))
        cpus = [[rank["cpus"] for rank in node["ranks"]] for node in plan["classes"]]
        self.assertEqual(len(cpus), 2, cpus)
        for node, (low, high) in zip(cpus, ((24, 47), (0, 23))):
            for each in node:
                self.assertLessEqual({cpu % 96 for cpu in support.cpu_list(each)}, set(range(low, high + 1)))
        own = self.plan(job, *MI300A, "--gpu-view", "own")
        self.assertEqual(self.value(own, "ROCR_VISIBLE_DEVICES"), [["2", "3"], ["0", "1"]])

    def test_a_host_file_takes_its_grants_along(self):
        job = self.job(hosts="f[1-3]", grants={host: {"core": "0-95", "gpu": gpu} for host, gpu in (("f1", "0"), ("f2", "1"), ("f3", "2"))})
        plan = self.plan(job, *MI300A, "--gpu-view", "own", "--hostfile", self.file("hosts", "f3\nf1\n"))
        self.assertEqual(self.value(plan, "ROCR_VISIBLE_DEVICES"), [["2"], ["0"]])

    def test_no_gpu_was_asked_for(self):
        job = self.job(hosts="f[1-2]", grants={"f1": {"core": "0-3"}, "f2": {"core": "0-3"}}, env={"CUDA_VISIBLE_DEVICES": "-1"})
        plan = self.plan(job, *MI300A, "--ppn", "2")
        self.assertEqual(self.value(plan, "ROCR_VISIBLE_DEVICES"), "")
        self.assertIn("flux resource R grants no device of this node", json.dumps(plan["reports"]))

    def test_whole_nodes_are_as_without_grants(self):
        whole = {"core": "0-95", "gpu": "0-3"}
        job = self.job(hosts="f[1-2]", grants={"f1": whole, "f2": whole})
        plan = self.plan(job, *MI300A)
        self.assertEqual([plan["argv"][1:], len(plan["classes"])], [self.plan(self.job(hosts="f[1-2]"), *MI300A)["argv"][1:], 1])


class Ends(Instance):
    FAILS = "import os, time; r = int(os.environ['RANK']); print('rank', r, flush=True)\nif r == %d: raise RuntimeError('boom')\ntime.sleep(60)"

    def ended(self, job, *words, program):
        path = self.file("fails.py", program)
        return job.hpclaunch("run", *HERE, *words, "--", sys.executable, "-I", "-S", path)

    def test_the_traceback_of_the_rank_that_failed(self):
        for rank in 0, 3:
            for more in (), ("--no-supervise",):
                with self.subTest(rank=rank, more=more):
                    done = self.ended(self.job(hosts="f[1-2]"), "--ppn", "2", "--oversubscribe", *more, program=self.FAILS % rank)
                    self.assertEqual(done.status, 1, str(done))
                    self.has(done, "RuntimeError: boom")
                    if not more:
                        self.has(done, "rank %d failed first" % rank)

    def test_ranks_save_when_another_fails(self):
        save = ("import os, signal, sys, time\nr = int(os.environ['RANK'])\nready = %r\n"
                "def save(*_):\n    time.sleep(0.2)\n    print('saved', r, flush=True)\n    sys.exit(3)\n"
                "if r == 0:\n    signal.signal(signal.SIGTERM, save)\n    open(ready, 'w').close()\n    time.sleep(60)\n"
                "while not os.path.exists(ready): time.sleep(0.02)\nsys.exit(7)") % os.path.join(self.folder, "ready")
        done = self.ended(self.job(hosts="f1"), "-n", "2", "--oversubscribe", program=save)
        self.assertEqual(done.status, 7, str(done))
        self.has(done, "saved 0", "rank 1 failed first")

    def test_a_job_that_waits_says_what_the_scheduler_says(self):
        job = self.job(hosts="f[1-2]", busy=True, jobs=["job \u0192b (hpclaunch-shim): SCHED", "job \u0192a (train): RUN f[1-2]"])
        done = job.hpclaunch("run", *HERE, "--ppn", "1", "--start-timeout", "1", "--", "/bin/true")
        self.assertEqual(done.status, 125, str(done))
        self.has(done, "hpclaunch: flux: job \u0192b (hpclaunch-shim): SCHED\nhpclaunch: flux: job \u0192a (train): RUN f[1-2]\nhpclaunch: flux: free nodes: 0\n",
                 "did not start within 1 s")

    def test_a_job_that_waits_is_cancelled_at_once(self):
        """No rank has begun that could save something, and Flux forwards no signal to a job that waits."""
        job = self.job(hosts="f[1-2]", busy=True)
        run = subprocess.Popen([support.HPCLAUNCH, "run", *HERE, "--ppn", "1", "--grace", "80000", "--", "/bin/true"], env=job.env, cwd=job.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        while run.poll() is None and not os.path.exists(os.path.join(job.record, "waits")):
            time.sleep(0.02)
        run.terminate()
        said = run.communicate(timeout=120)[1]
        self.assertEqual(run.returncode, 143, said)
        self.assertIn("interrupted by ctrl-C", said)


if __name__ == "__main__":
    support.main()
