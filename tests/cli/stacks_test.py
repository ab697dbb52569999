#!/usr/bin/env python3
"""hpclaunch stacks: whom it asks, and what it says when it cannot. Stalls of every kind are in tests/engines/stalls_test.py."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import support
from allowed import MOUNTS, needs
from support import Test, clean_env, hpclaunch, need

support.idle_stdin()

SLEEP = "123.75"
YAMA = os.path.join(support.ROOT, "tests", "support", "yama.py")


def name_of(pid):
    """Of the socket on which a launch is asked."""
    return "hpclaunch-run-%d-%d" % (os.stat("/proc/self/ns/pid").st_ino, pid)


class Running(Test):
    def setUp(self):
        super().setUp()
        self.env = clean_env(XDG_RUNTIME_DIR=self.folder)
        self.started = []
        self.addCleanup(self.end)

    def run_ranks(self, *words, ranks=2, options=(), env=None, around=(), program=None):
        """A launch whose ranks have begun."""
        marks = os.path.join(self.folder, "up%d" % len(self.started))
        os.mkdir(marks)
        script = 'touch "$0/$RANK"; exec "$@"'
        argv = [*around, program or support.HPCLAUNCH, "run", "--oversubscribe", "-n", str(ranks), *options, "--", "/bin/sh", "-c", script, marks, *words]
        process = subprocess.Popen(argv, env=env or self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.started.append(process)
        end = time.monotonic() + support.LIMIT
        while len(os.listdir(marks)) < ranks:
            self.assertIsNone(process.poll(), process.poll() is not None and process.stderr.read())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        return process

    def until(self, true):
        end = time.monotonic() + support.LIMIT
        while not true():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def end_process(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

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

    def test_readers_that_hang(self):
        """More than are started at once: this machine is there all the same."""
        for name in "bin", "libexec/hpclaunch":
            os.makedirs(os.path.join(self.folder, name))
        program = shutil.copy(support.HPCLAUNCH, os.path.join(self.folder, "bin"))
        shutil.copy(support.shim_path(), os.path.join(self.folder, "libexec/hpclaunch"))
        self.file("libexec/hpclaunch/hpclaunch-stacks", "#!/bin/sh\nexec sleep %s\n" % SLEEP, 0o755)
        self.run_ranks("/bin/sleep", SLEEP, ranks=17, program=program)
        done = self.ok(self.stacks())
        self.has(done, "ranks 0-16 (17)", "its stacks could not be read in time")
        self.assertNotIn("does not answer", done.out)

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
        client = ("import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0%s'); s.settimeout(10)\n"
                  "try:\n s.sendall(b'stacks 0\\n'); print(repr(s.recv(9)))\nexcept OSError: print(repr(b''))" % name_of(process.pid))
        for user, answer in ("65534", "b''"), ("0", "b'ranks 2"):
            words = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "/usr/bin/python3", "-c", client]
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=support.LIMIT)
            self.assertTrue(done.stdout.startswith(answer), done.stdout)

    def test_two_containers_with_one_network(self):
        """Their process IDs are the same, and each is asked in its own."""
        if os.geteuid() != 0:
            self.skipTest("only root can make a namespace of process IDs")
        asked = []
        for name, program in ("one", "sleep " + SLEEP), ("two", "tail -f /dev/null"):
            folder = os.path.join(self.folder, name)
            os.makedirs(folder + "/hpclaunch", 0o700)
            script = ("%s run -n 1 -- /bin/sh -c 'touch $0/up; exec %s' %s & while [ ! -e %s/up ]; do sleep 0.05; done; echo $!; %s stacks; echo end; read line"
                      % (support.HPCLAUNCH, program, folder, folder, support.HPCLAUNCH))
            process = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", script], env=clean_env(XDG_RUNTIME_DIR=folder),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.started.append(process)
            asked.append("".join(iter(process.stdout.readline, "end\n")))
        for process in self.started:
            process.stdout.close()
            process.stdin.close()
        self.assertEqual(asked[0].splitlines()[0], asked[1].splitlines()[0])
        for said, program in zip(asked, ("sleep", "tail")):
            self.assertIn(program, said)

    def test_words_that_are_no_request(self):
        """They are not answered, and disturb nobody."""
        process = self.run_ranks("/bin/sleep", SLEEP)
        for words in b"stacks", b"GET / HTTP/1.1\r\n\r\n", b"x" * 4096, b"\n", b"":
            with socket.socket(socket.AF_UNIX) as other:
                other.connect("\0" + name_of(process.pid))
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


LOADS = """
import multiprocessing, time
def fetch():
    time.sleep(1000)
def wait():
    worker.join()
worker = multiprocessing.get_context("fork").Process(target=fetch, daemon=True)
worker.start()
wait()
"""
# The file that says which rules hold, beside the others of its folder.
SCOPE = """mkdir "$0/yama" && cp -r /proc/sys/kernel/. "$0" 2>/dev/null
rm -f "$0/yama/ptrace_scope"; echo "$1" >"$0/yama/ptrace_scope"; mount --bind "$0" /proc/sys/kernel && shift && exec "$@"
"""


@needs(MOUNTS)
class Yama(Running):
    """Where a process may not read any other one of its user."""

    def run_under(self, scope, *words, launcher="local"):
        folder = os.path.join(self.folder, "kernel")
        os.mkdir(folder)
        unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        around = [*unshare, "/bin/sh", "-c", SCOPE, folder, str(scope), "/usr/bin/python3", YAMA, str(scope)]
        self.run_ranks(*words, around=around, options=["--launcher", launcher])

    def functions(self):
        """Of each process of each rank, those of its main thread."""
        found = json.loads(self.ok(self.stacks("--json", "--all-threads")).out)["ranks"]
        return [{frame["function"] for thread in one["threads"] for frame in thread["frames"]}
                for rank in found for one in rank["processes"] if one["name"].startswith("python")]

    def until_all_wait(self):
        end = time.monotonic() + support.LIMIT
        while True:
            seen = self.functions()
            if len(seen) == 4 and sum("fetch" in one for one in seen) == 2 and sum("wait" in one for one in seen) == 2:
                return
            self.assertLess(time.monotonic(), end, seen)

    def check_scope_1(self, launcher):
        program = self.file("loads.py", LOADS)
        self.run_under(1, "/bin/sh", "-c", '"$@"; exit $?', "sh", "/usr/bin/python3", program, launcher=launcher)
        self.until_all_wait()

    def test_what_a_rank_starts_is_read(self):
        """A worker, and a program that is behind a shell: of these nobody but their ancestors may read."""
        self.check_scope_1("local")

    def test_by_the_monitor(self):
        need("mpiexec.hydra")
        self.check_scope_1("hydra")

    def test_nobody_may(self):
        self.run_under(2, "/usr/bin/python3", self.file("loads.py", LOADS))
        end = time.monotonic() + support.LIMIT
        while "no stack: Yama's ptrace_scope is 2" not in (text := self.ok(self.stacks()).out):
            self.assertLess(time.monotonic(), end, text)
        self.assertIn("waits for process", text)


class BeforeTheEnd(Running):
    """What the ranks do shortly before they are ended is in the report."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.folder + "/hpclaunch", 0o700)
        self.report = self.folder + "/report.json"

    def record(self):
        with open(self.report) as file:
            return json.load(file)

    def written(self):
        end = time.monotonic() + support.LIMIT
        while not os.path.exists(self.report):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def start(self, script, *options, seconds=None):
        self.limit = int(time.time()) + (seconds or 0)
        env = self.env if seconds is None else {
            **self.env, "SLURM_JOB_ID": "4711", "SLURM_JOB_NODELIST": support.HOST, "SLURM_JOB_NUM_NODES": "1", "SLURM_TASKS_PER_NODE": "2",
            "SLURM_JOB_UID": str(os.getuid()), "SLURM_JOB_END_TIME": str(self.limit)}
        return self.run_ranks("/bin/sh", "-c", script, options=["--report", self.report, *options], env=env)

    def names(self, record, before):
        seen = record["stacks"]
        self.assertEqual(seen["before"], before)
        self.assertNotIn("stacks", record["attempts"][0])
        return [one["processes"][0]["name"] for one in seen["seen"]["ranks"] if one["processes"]]

    def test_the_time_limit(self):
        process = self.start("exec sleep " + SLEEP, "--launcher", "local", seconds=16)
        self.written()
        record = self.record()  # for the case that hpclaunch is killed with the job
        self.assertEqual((record["status"], record["time_limit"], record["finished"]), (137, False, False))
        self.assertEqual(record["ranks"], {"ok": 0, "failed": 0, "ended": 0, "silent": 2})
        self.assertEqual(self.names(record, "time-limit"), ["sleep", "sleep"])
        self.has(self.ok(hpclaunch("report", self.report, env=self.env)), "was still running at 20", "2 ranks still running then",
                 "\nstacks    before the time limit: all ranks wait in the same place")
        process.terminate()
        process.wait(timeout=support.LIMIT)
        record = self.record()
        self.assertEqual((record["status"], record["time_limit"], record["finished"]), (143, False, True))
        self.assertEqual(self.names(record, "time-limit"), ["sleep", "sleep"])
        self.assertNotIn("stacks  ", self.ok(hpclaunch("report", self.report, env=self.env)).out)  # its end was another

    def test_the_batch_system_ends_it(self):
        daemon = "import os, signal, sys, time; open('/proc/self/comm', 'w').write('slurmstepd'); os.kill(int(sys.argv[1]), signal.SIGTERM); time.sleep(5)"
        for launcher in "local", "hydra":
            if launcher == "hydra":
                need("mpiexec.hydra")
            process = self.start("exec sleep " + SLEEP, "--launcher", launcher, seconds=14)
            self.written()
            self.until(lambda: time.time() > self.limit - 6)
            sender = subprocess.Popen(["/usr/bin/python3", "-c", daemon, str(process.pid)])
            self.addCleanup(sender.wait)
            process.wait(timeout=support.LIMIT)
            record = self.record()
            self.assertEqual((record["interrupted_by"], record["time_limit"], record["finished"]), ("SIGTERM", True, True), launcher)
            self.has(self.ok(hpclaunch("report", self.report, env=self.env)), "the time limit of the job was reached", "\nstacks    before the time limit: ")
            os.unlink(self.report)

    def test_hpclaunch_is_killed_with_the_job(self):
        process = self.start("exec sleep " + SLEEP, "--launcher", "local", seconds=16)
        self.written()
        process.kill()
        process.wait(timeout=support.LIMIT)
        for words in [self.report], ["4711"]:
            self.has(self.ok(hpclaunch("report", *words, env=self.env)), "status    was still running at ", "hpclaunch has not written the end", "stacks    before")

    def test_no_known_end(self):
        process = self.start("exec sleep " + SLEEP)
        process.terminate()
        process.wait(timeout=support.LIMIT)
        self.assertNotIn("stacks", self.record())

    def test_what_is_killed_after_the_grace_period(self):
        process = self.start("trap '' TERM; while :; do sleep 0.05; done", "--grace", "4")
        process.terminate()
        self.written()
        record = self.record()
        self.assertEqual((record["finished"], record["interrupted_by"], record["passed_on"]), (False, "SIGTERM", "SIGTERM"))
        process.wait(timeout=support.LIMIT)
        self.assertEqual(self.names(self.record(), "kill"), ["sh", "sh"])

    def test_ranks_that_stay(self):
        need("mpiexec.hydra")
        process = self.start('test "$RANK" = 0 || exec sleep ' + SLEEP, "--launcher", "hydra", "--end-timeout", "2", "--grace", "2")
        self.assertEqual(process.wait(timeout=support.LIMIT), 124)
        record = self.record()
        self.assertEqual(self.names(record, "end-timeout"), ["sleep"])
        self.assertEqual(record["stacks"]["seen"]["ranks"][0]["missing"], "it has ended")

    def test_the_launcher_ends_during_the_look(self):
        need("mpiexec.hydra")
        stays = ("import os, signal, subprocess, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
                 "os.environ['RANK'] == '0' and subprocess.Popen(['sleep', '%s'], start_new_session=True); time.sleep(%s)" % (SLEEP, SLEEP))
        marks = self.folder + "/monitors"
        os.mkdir(marks)
        process = self.run_ranks("/bin/sh", "-c", 'echo $PPID >"$0/$RANK.new"; mv "$0/$RANK.new" "$0/$RANK"; exec python3 -c "$1"', marks, stays,
                                 options=["--launcher", "hydra", "--grace", "6"])
        self.until(lambda: set(os.listdir(marks)) == {"0", "1"})
        with open(marks + "/1") as file:
            monitor = int(file.read())
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as file:
            launcher = int(file.read().split()[0])
        os.kill(monitor, signal.SIGSTOP)
        self.addCleanup(self.end_process, monitor)
        process.terminate()
        time.sleep(4.5)  # the look is at 3 s of the 6, and waits for the monitor until they are over
        os.kill(launcher, signal.SIGKILL)
        self.assertNotEqual(process.wait(timeout=60), 0)


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

    def test_its_folder_goes_with_the_job(self):
        node = ["--force", "--profile", "none", "--topology", support.machine("devices/xeon-a100-switched.xml")]
        for launcher in "local", "hydra":
            done = hpclaunch("run", "--launcher", launcher, *node, "-n", "2", "--stall", "300", "--", "/bin/sh", "-c",
                             'folder=${TORCH_NCCL_DEBUG_INFO_PIPE_FILE%/*}; echo >"$folder/pipe-$RANK.pipe"; echo "$folder"', env=self.env)
            folder = self.ok(done).out.splitlines()[0]
            self.assertTrue(folder.startswith("/tmp/hpclaunch-stall-"), folder)
            self.assertFalse(os.path.exists(folder))

    def test_the_port_of_ras_is_free(self):
        words = ["run", "--launcher", "local", "--force", "--profile", "none", "--topology", support.machine("devices/xeon-a100-switched.xml"), "-n", "1", "--stall", "300",
                 "--", "/bin/sh", "-c", "echo $MASTER_PORT ${NCCL_RAS_ADDR#*:}"]
        first = list(map(int, self.ok(hpclaunch(*words, env=self.env)).out.split()))
        with socket.socket() as other:
            other.bind(("", first[1]))
            other.listen()
            second = list(map(int, self.ok(hpclaunch(*words, env=self.env)).out.split()))
        self.assertEqual([first[1] - first[0], second[1] - second[0]], [4, 4])
        self.assertNotEqual(first[0], second[0])

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
