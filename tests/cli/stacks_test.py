#!/usr/bin/env python3
"""hpclaunch stacks: whom it asks, and what it says when it cannot. Stalls of every kind are in tests/engines/stalls_test.py."""
import json
import os
import subprocess
import time

import support
from support import Test, clean_env, hpclaunch

support.idle_stdin()

SLEEP = "123.75"


class Running(Test):
    def setUp(self):
        super().setUp()
        self.env = clean_env(XDG_RUNTIME_DIR=self.folder)
        self.started = []
        self.addCleanup(self.end)

    def run_ranks(self, *words, ranks=2, options=(), env=None):
        """A launch whose ranks have begun."""
        marks = os.path.join(self.folder, "up%d" % len(self.started))
        os.mkdir(marks)
        script = 'touch "$0/$RANK"; exec "$@"'
        argv = [support.HPCLAUNCH, "run", "--oversubscribe", "-n", str(ranks), *options, "--", "/bin/sh", "-c", script, marks, *words]
        process = subprocess.Popen(argv, env=env or self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.started.append(process)
        end = time.monotonic() + support.LIMIT
        while len(os.listdir(marks)) < ranks:
            self.assertIsNone(process.poll(), process.poll() is not None and process.stderr.read())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        return process

    def end(self):
        for process in self.started:
            process.terminate()
            process.stderr.close()
            process.wait(timeout=support.LIMIT)

    def stacks(self, *words, env=None):
        return hpclaunch("stacks", *words, env=env or self.env)


class Asked(Running):
    def test_programs_without_python(self):
        process = self.run_ranks("/bin/sleep", SLEEP)
        done = self.ok(self.stacks())
        self.has(done, "2 ranks, process %d" % process.pid, "ranks 0-1 (2)", "sleep")
        found = json.loads(self.ok(self.stacks("--json")).out)
        self.assertEqual([rank["rank"] for rank in found["ranks"]], [0, 1])
        self.assertEqual({one["name"] for rank in found["ranks"] for one in rank["processes"]}, {"sleep"})

    def test_one_rank(self):
        self.run_ranks("/bin/sleep", SLEEP)
        done = self.ok(self.stacks("--rank", "1"))
        self.assertNotIn("0-1", done.out)
        self.has(done, "rank 1")
        self.has(self.ok(self.stacks("--rank", "2"), 2), "the launch has no rank 2", "--rank 1")

    def test_a_rank_that_has_ended(self):
        folder = self.file("go", "")
        os.unlink(folder)
        self.run_ranks("/bin/sh", "-c", 'if [ $RANK = 0 ]; then exit 0; fi; exec sleep ' + SLEEP)
        end = time.monotonic() + support.LIMIT
        while "it has ended" not in self.ok(self.stacks()).out:
            self.assertLess(time.monotonic(), end)

    def test_by_process_and_among_several(self):
        one = self.run_ranks("/bin/sleep", SLEEP)
        other = self.run_ranks("/bin/cat", "/dev/zero", options=["--force"])
        done = self.ok(self.stacks(), 2)
        self.has(done, "2 launches of yours run here", str(one.pid), str(other.pid), "hpclaunch stacks %d" % other.pid)
        self.has(self.ok(self.stacks(str(one.pid))), "sleep")
        self.has(self.ok(self.stacks(str(other.pid))), "cat")

    def test_by_job(self):
        self.run_ranks("/bin/sleep", SLEEP, env={**self.env, "SLURM_JOB_ID": "4711", "SLURM_JOB_NODELIST": support.HOST, "SLURM_NNODES": "1"},
                       options=["--launcher", "local"])
        self.has(self.ok(self.stacks("4711")), "2 ranks")

    def test_the_job_is_not_disturbed(self):
        process = self.run_ranks("/bin/sleep", SLEEP)
        for _ in range(3):
            self.ok(self.stacks())
        self.assertIsNone(process.poll())


class Refused(Running):
    def test_nothing_runs(self):
        self.has(self.ok(self.stacks(), 2), "no launch of yours runs on this machine", "hpclaunch stacks JOB")

    def test_an_unknown_job(self):
        env = {**self.env, "PATH": self.folder}
        self.has(self.ok(self.stacks("4711", env=env), 2), "no launch of yours on this machine has the job or process ID 4711")

    def test_two_jobs(self):
        self.has(self.ok(self.stacks("1", "2"), 2), "one job at a time")

    def test_another_user(self):
        """Who may not signal the ranks may not look at them."""
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        process = self.run_ranks("/bin/sleep", SLEEP)
        client = ("import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0hpclaunch-run-%d'); s.settimeout(10)\n"
                  "try:\n s.sendall(b'stacks 0\\n'); print(repr(s.recv(9)))\nexcept OSError: print(repr(b''))" % process.pid)
        for user, answer in ("65534", "b''"), ("0", "b'ranks 2"):
            words = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "/usr/bin/python3", "-c", client]
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=support.LIMIT)
            self.assertTrue(done.stdout.startswith(answer), done.stdout)

    def test_words_that_are_no_request(self):
        """They are not answered, and disturb nobody."""
        import socket
        process = self.run_ranks("/bin/sleep", SLEEP)
        for words in b"stacks", b"GET / HTTP/1.1\r\n\r\n", b"x" * 4096, b"\n", b"":
            with socket.socket(socket.AF_UNIX) as other:
                other.connect("\0hpclaunch-run-%d" % process.pid)
                other.sendall(words)
        self.has(self.ok(self.stacks()), "2 ranks")


class Elsewhere(Running):
    def srun(self, script):
        folder = os.path.join(self.folder, "bin")
        os.mkdir(folder)
        self.file("bin/srun", "#!/bin/sh\n" + script, 0o755)
        return {**self.env, "PATH": folder + ":/usr/bin:/bin"}

    def test_on_the_first_node_of_a_job(self):
        env = self.srun('echo "$@" >"%s/words"; echo tree\n' % self.folder)
        done = self.ok(self.stacks("4711", "--rank", "3", "--json", env=env))
        self.assertEqual(done.out, "tree\n")
        with open(os.path.join(self.folder, "words")) as file:
            words = file.read().split()
        self.assertEqual(words[0], "--jobid=4711")
        self.assertEqual(words[-5:], ["stacks", "--rank", "3", "--json", "4711"])

    def test_its_failure(self):
        env = self.srun('echo "srun: error: Invalid job id specified" >&2; exit 1\n')
        self.has(self.ok(self.stacks("4711", env=env), 1), "Invalid job id specified")

    def test_not_from_within(self):
        env = {**self.srun("echo no; exit 0\n"), "SLURM_JOB_ID": "4711"}
        self.has(self.ok(self.stacks("4711", env=env), 2), "no launch of yours on this machine")


SPINS = """
import os, shutil, sys, threading
folder, data = sys.argv[1:]
rank = os.environ["RANK"]
def recorder():
    while True:
        with open(folder + "/pipe-%s.pipe" % rank) as pipe:
            pipe.read(1)
        shutil.copy(data + "/rank%s.pickle" % rank, folder + "/new-" + rank)
        os.rename(folder + "/new-" + rank, folder + "/dump-" + rank)
os.mkfifo(folder + "/pipe-%s.pipe" % rank)
threading.Thread(target=recorder, daemon=True).start()
open(folder + "/up-" + rank, "w").close()
while True: pass
"""


class Recorder(Running):
    """Ranks that spin in one place look like a healthy training; the flight recorder knows better."""

    def test_its_numbers_name_the_rank(self):
        folder, data = os.path.join(self.folder, "recorder"), os.path.join(support.ROOT, "tests", "data", "flight_recorder")
        os.mkdir(folder)
        program = self.file("spins.py", SPINS)
        sets = ["--set", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=%s/pipe-" % folder, "--set", "TORCH_FR_DUMP_TEMP_FILE=%s/dump-" % folder]
        done = hpclaunch("run", "--oversubscribe", "-n", "4", *sets, "--stall", "1", "--on-stall", "end", "--grace", "1", "--", "/usr/bin/python3", program, folder, data,
                         env=self.env)
        self.ok(done, 124)
        self.has(done, "no rank has moved", "as a fault of rank 2")


if __name__ == "__main__":
    support.main()
