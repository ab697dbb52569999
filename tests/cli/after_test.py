#!/usr/bin/env python3
"""hpclaunch verify --after: threads and processes of the running program, each planted fault by the name of its thread."""
import json
import os
import subprocess
import sys
import time

import fakes
import support
from support import Test, clean_env, hpclaunch, need

support.idle_stdin()
ALLOWED = sorted(os.sched_getaffinity(0))
ALL = support.cpu_list(",".join(map(str, ALLOWED)))
TWO = len(ALLOWED) > 1  # with one CPU, all CPUs and those of the rank are the same

# What each program begins with: named threads that do `what` first and then wait, and processes.
HEAD = """import os, subprocess, sys, threading, time
ALL = set(%r)
RANK = int(os.environ["RANK"])
def thread(name, what):
    def body():
        with open("/proc/self/task/%%d/comm" %% threading.get_native_id(), "w") as comm:
            comm.write(name)
        what()
        time.sleep(1000)
    threading.Thread(target=body, daemon=True).start()
""" % ALLOWED
WAIT = "time.sleep(1000)\n"
SECONDS = "4"  # until the look at a program, which has to be ready by then


def load_tests(loader, tests, pattern):
    return fakes.Together(reversed(list(tests)), 10)  # the longest first


class After(Test):
    def program(self, text, end=WAIT):
        return [sys.executable, "-I", "-S", self.file("program.py", HEAD + text + end)]

    def verify(self, *words, text="", end=WAIT, after=SECONDS, status=None, env=None):
        done = hpclaunch("verify", "--json", "--after", after, *words, "--", *self.program(text, end), env=env)
        self.assertIn(done.status, (0, 1) if status is None else (status,), str(done))
        self.result, self.done = json.loads(done.out), done
        self.assertEqual(self.result["as_planned"], done.status == 0, str(done))
        return self.result["differences"]

    def only(self, found, kind):
        self.assertEqual([one["kind"] for one in found], [kind], str(self.done))
        return found[0]

    BOUND = ("-n", "1", "--cpus-per-rank", "1")


class Sound(After):
    def test_one_line_of_what_was_examined(self):
        done = self.ok(hpclaunch("verify", "--after", "2", "-n", "2", "--oversubscribe", "--", need("sleep"), "1000"))
        self.assertEqual([done.out, done.err], ["2 of 2 ranks as planned on 1 node\n2 threads of 2 processes examined after 2 s\n", ""])

    def test_threads_and_children(self):
        text = "for i in range(3): thread('pool_%d' % i, lambda: None)\nsubprocess.Popen(['sleep', '1000'])\n"
        self.assertEqual(self.verify(*self.BOUND, text=text), [])
        self.assertEqual(self.result["reports"][0]["after"], {"threads": 5, "processes": 2})

    def test_under_other_launchers(self):
        for launcher in ("hydra", "openmpi"):
            with self.subTest(launcher):
                self.assertEqual(self.verify("-n", "2", "--oversubscribe", "--launcher", launcher, text="thread('one', lambda: None)\n"), [], str(self.done))
                self.assertEqual([one["after"]["threads"] for one in self.result["reports"]], [2, 2])

    def test_what_the_program_prints_goes_to_stderr(self):
        done = self.ok(hpclaunch("verify", "--after", SECONDS, "-n", "1", "--", *self.program("print('a line'); print(); sys.stdout.write('no end'); sys.stdout.flush()\n")))
        self.assertEqual(done.out.splitlines()[0], "1 of 1 rank as planned on 1 node")
        self.assertIn("a line\n\nno end\n", done.err)
        self.assertNotIn("@hpclaunch", done.err)

    def test_nothing_is_left(self):
        mark = "HPCLAUNCH_TEST_MARK=%d-%d" % (os.getpid(), time.time_ns())
        name, _, value = mark.partition("=")
        text = "if os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    time.sleep(1000)\nsubprocess.Popen(['sleep', '1000'])\n"
        self.assertEqual(self.verify("-n", "1", text=text, env=clean_env(**{name: value})), [])
        self.assertEqual(self.result["reports"][0]["after"]["processes"], 3)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as file:
                    self.assertNotIn(mark.encode(), file.read())
            except OSError:
                pass

    def test_workers_may_be_numbered(self):
        self.assertEqual(self.verify("-n", "1", text="subprocess.Popen(['sleep', '1000'], env=dict(os.environ, RANK='7', LOCAL_RANK='7', MASTER_PORT='1'))\n"), [])

    def test_helper_cores_of_the_plan(self):
        text = "thread('worker', lambda: os.sched_setaffinity(0, {%d}))\n" % ALLOWED[-1]
        self.assertEqual(self.verify(*self.BOUND, "--set", "CCL_WORKER_AFFINITY=%d" % ALLOWED[-1], text=text), [])

    def test_a_title_over_the_environment_is_a_note(self):
        text = ("import ctypes\nenviron = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), 'environ')\n"
                "ctypes.memset(environ[0], 0, 40)\n")
        found = self.only(self.verify("-n", "1", text=text, status=0), "hidden-environment")
        self.assertEqual([found["severity"], self.result["ranks_as_planned"]], ["note", 1])


class Faults(After):
    def test_a_thread_with_all_cpus(self):
        if not TWO:
            return
        found = self.only(self.verify(*self.BOUND, text="thread('rebinder', lambda: os.sched_setaffinity(0, ALL))\n"), "thread-cpus")
        self.assertIn('1 thread "rebinder": ', found["found"])
        self.assertEqual(support.cpu_list(found["found"].split(": ")[1]), ALL)
        self.assertIn("all of the node", found["cause"])
        self.assertEqual([found["ranks"], self.result["ranks_as_planned"]], [[0], 0])

    def test_a_pool_on_one_cpu_each(self):
        if not TWO:
            return
        text = "for i in range(2): thread('pool_%d' % i, lambda cpu=ALLOWED[i]: os.sched_setaffinity(0, {cpu}))\n".replace("ALLOWED", "sorted(ALL)")
        found = self.only(self.verify("-n", "1", text=text), "thread-cpus")
        self.assertIn('2 threads "pool_*": 1 CPU each', found["found"])
        self.assertIn("as OpenMP does", found["cause"])
        found = self.only(self.verify("-n", "1", text=text, env=clean_env(OMP_PROC_BIND="true")), "thread-cpus")
        self.assertEqual(found["fix"], "--unset OMP_PROC_BIND")

    def test_openmp_itself(self):
        if not TWO:
            return
        program = os.path.join(self.folder, "openmp")
        subprocess.run([need("gcc"), "-fopenmp", "-o", program, "-xc", "-"], check=True,
                       input=b"int pause(void);\nint main(void) {\n_Pragma(\"omp parallel num_threads(2)\")\n  pause();\n}\n")
        done = hpclaunch("verify", "--json", "--after", SECONDS, "-n", "1", "--", program, env=clean_env(OMP_PROC_BIND="true", OMP_PLACES="threads"))
        found = {one["kind"]: one for one in json.loads(done.out)["differences"]}
        self.assertEqual(list(found), ["thread-cpus"], str(done))
        self.assertIn("OMP_PLACES=threads, OMP_PROC_BIND=true", found["thread-cpus"]["cause"])

    def test_a_child_with_all_cpus(self):
        if not TWO:
            return
        text = "if os.fork() == 0:\n    os.sched_setaffinity(0, ALL)\n    time.sleep(1000)\n"
        found = self.only(self.verify(*self.BOUND, text=text), "thread-cpus")
        self.assertIn("1 thread ", found["found"])
        self.assertIn(" of child processes: ", found["found"])

    def test_cpus_of_another_rank(self):
        if not TWO:
            return
        text = "if RANK == 0: thread('astray', lambda: os.sched_setaffinity(0, ALL - os.sched_getaffinity(0)))\n"
        found = self.only(self.verify("-n", "2", "--cpus-per-rank", "1", text=text), "thread-cpus")
        self.assertEqual(found["ranks"], [0])
        if len(ALLOWED) == 2:
            self.assertIn("CPUs of local rank 1", found["cause"])

    def test_a_child_with_another_mask(self):
        text = "for _ in range(2): subprocess.Popen(['sleep', '1000'], env=dict(os.environ, CUDA_VISIBLE_DEVICES='1'))\n"
        words = ("-n", "1", "--set", "CUDA_VISIBLE_DEVICES=0")
        found = self.only(self.verify(*words, text=text), "child-device-mask")
        self.assertEqual([found["planned"], found["found"]], ["CUDA_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=1 in 2 child processes"])
        found = self.only(self.verify(*words, text="subprocess.Popen(['env', '-u', 'CUDA_VISIBLE_DEVICES', 'sleep', '1000'])\n"), "child-device-mask")
        self.assertEqual(found["found"], "CUDA_VISIBLE_DEVICES not set in 1 child process")

    def test_a_mask_that_the_plan_does_not_have(self):
        text = "subprocess.Popen(['sleep', '1000'], env=dict(os.environ, ROCR_VISIBLE_DEVICES='3'))\n"
        found = self.only(self.verify("-n", "1", text=text), "child-device-mask")
        self.assertEqual([found["planned"], found["found"]], ["ROCR_VISIBLE_DEVICES not set", "ROCR_VISIBLE_DEVICES=3 in 1 child process"])

    def test_a_script_that_changes_a_variable(self):
        script = self.file("wrap.sh", "#!/bin/sh\nexport OMP_NUM_THREADS=77 HF_TOKEN=other\nexec sleep 1000\n", 0o755)
        done = hpclaunch("verify", "--json", "--after", SECONDS, "-n", "1", "--set", "HF_TOKEN=hunter2", "--", script)
        found = {one["found"] for one in json.loads(done.out)["differences"] if one["kind"] == "program-variable"}
        self.assertEqual(found, {"OMP_NUM_THREADS=77 in the program", "HF_TOKEN has another value in the program"})
        self.assertNotIn("hunter2", done.out + done.err)

    def test_more_names_than_there_is_room_for(self):
        if not TWO:
            return
        text = "for i in range(70): thread('name%dx' % i, lambda: os.sched_setaffinity(0, ALL))\n"
        found = {one["kind"]: one for one in self.verify(*self.BOUND, text=text)}
        self.assertEqual(found["not-examined"]["found"], "6 threads that differ")
        self.assertEqual(sum(one["kind"] == "thread-cpus" for one in self.result["differences"]), 64)

    def test_table(self):
        if not TWO:
            return
        done = hpclaunch("verify", "--after", SECONDS, *self.BOUND, "--", *self.program("thread('rebinder', lambda: os.sched_setaffinity(0, ALL))\n"))
        self.ok(done, 1)
        self.assertRegex(done.out, r"(?s)^0 of 1 rank as planned on 1 node\n\d threads of 1 process examined after 4 s\n\nwhat .*thread-cpus +rank 0 on .*try: ")
        for line in done.out.splitlines():
            self.assertLessEqual(len(line), 110)


class Ends(After):
    def test_it_ends_before(self):
        for end, found in (("sys.exit(3)\n", "exit status 3"), ("sys.exit(0)\n", "exit status 0"), ("os.kill(os.getpid(), 11)\n", "killed by signal 11")):
            with self.subTest(end):
                one = self.only(self.verify("-n", "1", end=end, after="600"), "program-ended")
                self.assertEqual(one["planned"], "running after 600 s")
                self.assertRegex(one["found"], "^%s after [0-9]{1,2} s$" % found)

    def test_to_the_end(self):
        text = "thread('rebinder', lambda: os.sched_setaffinity(0, ALL))\ntime.sleep(4)\nopen(%r, 'w').close()\n" % os.path.join(self.folder, "done")
        found = self.verify(*self.BOUND, text=text, end="", after="end")
        self.assertEqual([one["kind"] for one in found], ["thread-cpus"] if TWO else [], str(self.done))
        self.assertTrue(os.path.exists(os.path.join(self.folder, "done")))
        self.assertEqual(self.result["reports"][0]["after"]["exit"], 0)

    def test_to_the_end_and_sound(self):
        done = self.ok(hpclaunch("verify", "--after", "end", "-n", "2", "--oversubscribe", "--", need("sleep"), "2.5"))
        self.assertEqual(done.out, "2 of 2 ranks as planned on 1 node\n2 threads of 2 processes examined before the end\n")

    def test_to_the_end_and_failed(self):
        one = self.only(self.verify("-n", "1", end="time.sleep(1.5)\nsys.exit(4)\n", after="end"), "program-ended")
        self.assertEqual(one["planned"], "exit status 0")
        self.assertRegex(one["found"], "^exit status 4 after [1-9][0-9]? s$")


class Refused(After):
    def test_values(self):
        for value in ("0", "x", "-1", "1.5", "86401"):
            self.refused(2, "verify", "--after=" + value, "--", "/bin/true", says=["--after must be", '"%s"' % value])
        self.refused(2, "verify", "--after", "30", says=["--after needs a program"])
        self.refused(2, "verify", "--after", "30", "--import", "os", "--", "/bin/true", says=["--after", "--import"])


class Torch(After):
    """A data loader with workers, as most training has it; and workers as it has them with start method spawn."""

    LOADER = """import time, torch
from torch.utils.data import DataLoader
batches = iter(DataLoader(torch.arange(100000, dtype=torch.float32), batch_size=1000, num_workers=2, multiprocessing_context="fork"))
for _ in range(10):
    batch = next(batches)
    (batch @ batch).item()
time.sleep(1000)
"""
    SPAWN = """import multiprocessing, time
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(abs, range(10))
        time.sleep(1000)
"""

    def processes(self, python, text, after):
        done = hpclaunch("verify", "--json", "--after", after, *self.BOUND, "--", *python, self.file("load.py", text))
        self.ok(done)
        return json.loads(done.out)["reports"][0]["after"]["processes"]

    def test_data_loader(self):
        self.assertEqual(self.processes([fakes.python_with_torch()], self.LOADER, "10"), 3)

    def test_spawned_workers(self):
        self.assertEqual(self.processes([sys.executable, "-I", "-S"], self.SPAWN, "6"), 4)  # and one that tracks resources


if __name__ == "__main__":
    support.main()
