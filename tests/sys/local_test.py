"""The local launcher as a stranger meets it: local_test.py DRIVER."""
import itertools
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import HANDLED, LIMIT, Marked, allowed

DRIVER = os.path.abspath(sys.argv.pop(1))
SH = "/bin/sh"
PYTHON = sys.executable


class Job(Marked):
    """A running driver whose descendants carry a mark."""

    def __init__(self, *args, **options):
        super().__init__()
        name, value = self.mark.split("=")
        env = dict(os.environ, **{name: value})
        options.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen([DRIVER, *map(str, args)], env=env, stdout=options.pop("stdout", subprocess.PIPE),
                                        stderr=options.pop("stderr", subprocess.PIPE), **options)

    def wait(self, feed=None):
        self.out, self.err = self.process.communicate(feed, timeout=LIMIT)
        self.status = self.process.returncode
        return self

    def until_gone(self):
        self.until(lambda: not self.pids(), "the end of all processes")

    def chain(self):
        """The launcher's processes: started by the user, guard, supervisor."""
        guard = children(self.process.pid)[0]
        return self.process.pid, guard, children(guard)[0]


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""


def signalled(pid):
    """Has it a signal that it has not taken?"""
    with open(f"/proc/{pid}/status") as file:
        return any(line.startswith(("ShdPnd", "SigPnd")) and int(line.split()[1], 16) != 0 for line in file)


def children(pid):
    return [int(p) for p in filter(str.isdigit, os.listdir("/proc")) if parent(p) == pid]


def run(*args, **options):
    return Job(*args, **options).wait()


# Starts a process that leaves its parent, its session and its group, then says so in a file.
DAEMON = """
import os, sys, time, signal
def daemon(path):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            open(path, "w").write(str(os.getpid()))
            time.sleep(1000)
        os._exit(0)
    os.wait()
    while not os.path.exists(path): time.sleep(0.01)
"""


class Statuses(unittest.TestCase):
    def test_success(self):
        job = run("-n", 5, SH, "-c", "echo $RANK $HPCLAUNCH_LOCAL_RANK")
        self.assertEqual((job.status, job.err), (0, b""))
        self.assertEqual(sorted(job.out.split(b"\n"))[1:], [b"%d %d" % (i, i) for i in range(5)])

    def test_exit_status_and_report(self):
        job = run("-n", 4, SH, "-c", "test $RANK = 2 || exec sleep 1000; echo last words >&2; exit 7")
        self.assertEqual(job.status, 7)
        self.assertRegex(job.err, rb"rank 2 failed first: host this-node, pid \d+, exit status 7, [\d.]+ s after")
        self.assertIn(b"\n  | last words\n", job.err)
        self.assertIn(b"stopped 3 other ranks", job.err)
        job.until_gone()

    def test_signal(self):
        job = run("-n", 2, SH, "-c", "test $RANK = 1 && kill -SEGV $$; exec sleep 1000")
        self.assertEqual(job.status, 128 + signal.SIGSEGV)
        self.assertIn(b"rank 1 failed first", job.err)
        self.assertIn(b"SIGSEGV (signal 11", job.err)

    def test_one_rank_reports_without_repeating(self):
        job = run(SH, "-c", "echo said; exit 3")
        self.assertEqual((job.status, job.out), (3, b"said\n"))
        self.assertIn(b"rank 0 failed: ", job.err)
        self.assertNotIn(b"said", job.err)

    def test_codes_of_the_shim(self):
        self.assertEqual(run("-n", 3, "/no/such/program").status, 127)
        self.assertEqual(run("-n", 3, "/etc/passwd").status, 126)

    def test_no_shim(self):
        job = run("-n", 50, "--shim", "/no/shim", "/bin/true")
        self.assertEqual(job.status, 125)
        self.assertIn(b"program_not_found: cannot execute \"/no/shim\": No such file", job.err)

    def test_crash_explains_the_exits_around_it(self):
        # Rank 1 exits at the very moment at which rank 2 is killed.
        job = run("-n", 3, SH, "-c", "case $RANK in 0) exec sleep 1000;; 1) exit 1;; 2) kill -KILL $$;; esac")
        self.assertIn(job.status, (1, 137))  # 137 unless the two are further apart than the settling time
        self.assertRegex(job.err, rb"rank [12] failed first")

    def test_a_local_rank_that_was_exported_is_replaced(self):
        os.environ["HPCLAUNCH_LOCAL_RANK"] = "77"
        try:
            job = run("-n", 2, "/usr/bin/env")
        finally:
            del os.environ["HPCLAUNCH_LOCAL_RANK"]
        found = sorted(line for line in job.out.splitlines() if line.startswith(b"HPCLAUNCH_LOCAL_RANK="))
        self.assertEqual(found, [b"HPCLAUNCH_LOCAL_RANK=0", b"HPCLAUNCH_LOCAL_RANK=1"])

    def test_closed_standard_files(self):
        job = run("-n", 2, SH, "-c", "exit 4", preexec_fn=lambda: [os.close(fd) for fd in (0, 1, 2)])
        self.assertEqual(job.status, 4)


class Signals(unittest.TestCase):
    def started(self, *args, ranks=2, **options):
        job = Job(*args, **options)
        text = b""
        while text.count(b"ready") < ranks:
            text += os.read(job.process.stdout.fileno(), 4096)
        return job

    def test_each_is_passed_on_once(self):
        script = """
import signal, sys, time
got = []
for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2"):
    signal.signal(getattr(signal, "SIG" + name), lambda n, frame: got.append(n))
print("ready", flush=True)
while not got: time.sleep(0.01)
time.sleep(0.3)
print("got", got, flush=True)
"""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
            job = self.started("-n", 2, PYTHON, "-c", script)
            job.process.send_signal(number)
            job.wait()
            self.assertEqual((job.status, job.out), (0, b"got [%d]\n" % number * 2), job.err)

    def test_status_when_all_end_by_the_signal(self):
        job = self.started("-n", 2, SH, "-c", "echo ready; exec sleep 1000")
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait().status, 128 + signal.SIGTERM)
        self.assertEqual(job.err, b"hpclaunch: sent SIGTERM to the ranks; no rank failed before\n")
        job.until_gone()

    def test_what_ends_after_the_signal_has_not_failed(self):
        """Whether a rank ends by the signal, catches it and exits, or ends for another's sake."""
        ends = "case $RANK in 0) trap 'exit 1' $0;; 1) trap 'exit 130' $0;; 2) trap 'kill -SEGV $$' $0;; esac; echo ready; while :; do sleep 0.05; done"
        for name in "INT", "TERM", "HUP", "QUIT":
            number = signal.Signals["SIG" + name]
            job = self.started("-n", 4, SH, "-c", ends, name, ranks=4)
            job.process.send_signal(number)
            self.assertEqual(job.wait().status, 128 + number, job.err)
            self.assertNotIn(b"failed first", job.err)
            self.assertIn(b"; no rank failed before\n", job.err)
            self.assertIn(b"hpclaunch: rank 2 ended with SIGSEGV after it was signalled to stop\n", job.err)

    def test_a_failure_before_the_signal_is_named(self):
        job = self.started("-n", 2, SH, "-c", "trap '' TERM; echo ready; test $RANK = 1 && exit 7; while :; do sleep 0.05; done")
        job.until(lambda: len([p for p in job.pids() if p not in job.chain() and name_of(p) == "sh"]) == 1, "the end of rank 1")
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.wait().status, 7)
        self.assertIn(b"hpclaunch: rank 1 failed first: ", job.err)

    def test_a_signal_to_every_process_of_the_job(self):
        """As some batch systems send it: a rank may end by it before hpclaunch knows of it."""
        job = self.started("-n", 2, SH, "-c", "echo ready; exec sleep 1000")
        supervisor = job.chain()[2]
        ranks = [p for p in job.pids() if p not in job.chain()]
        os.kill(supervisor, signal.SIGSTOP)  # so that it learns of both at once
        os.kill(ranks[0], signal.SIGTERM)
        job.process.send_signal(signal.SIGTERM)
        job.until(lambda: not signalled(job.process.pid), "the signal is passed on")
        os.kill(supervisor, signal.SIGCONT)
        self.assertEqual(job.wait().status, 128 + signal.SIGTERM)
        self.assertEqual(job.err, b"hpclaunch: sent SIGTERM to the ranks; no rank failed before\n")

    def test_kill_after_grace(self):
        job = self.started("--grace", "0.2", "-n", 2, SH, "-c", "trap '' TERM; echo ready; while :; do sleep 1; done")
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait().status, 128 + signal.SIGTERM)
        self.assertEqual(job.err, b"hpclaunch: sent SIGTERM to the ranks; killed 2 ranks that still ran 0.2 s later\n")
        job.until_gone()

    def test_kill_after_grace_of_a_failure(self):
        job = run("--grace", "0.2", "-n", 2, SH, "-c", "test $RANK = 1 && exit 5; trap '' TERM; while :; do sleep 1; done")
        self.assertEqual(job.status, 5)
        job.until_gone()

    def test_second_interrupt_kills(self):
        job = self.started("-n", 2, SH, "-c", "trap '' INT TERM; echo ready; while :; do sleep 1; done")
        while job.process.poll() is None:  # two that are not seen apart count as one; more of them change nothing
            job.process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        self.assertEqual(job.wait().status, 128 + signal.SIGINT)
        job.until_gone()

    def test_a_signal_after_the_launch_does_not_replace_its_status(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo = os.path.join(folder, "fifo")
            os.mkfifo(fifo)
            for command, status in (("exit 3", 3), ("kill -TERM $$", 143), ("exit 0", 0)):
                job = Job("--pause", fifo, "-n", 2, SH, "-c", command)
                job.after_the_launch(fifo, *HANDLED)
                self.assertEqual(job.wait().status, status, job.err)
            job = Job("--pause", fifo, "--shim", "/no/shim", "/bin/true")  # nothing was started
            job.after_the_launch(fifo, *HANDLED)
            self.assertEqual(job.wait().status, 125, job.err)

    def test_nohup(self):
        job = self.started("-n", 2, SH, "-c", "echo ready; sleep 0.5; grep SigIgn /proc/$$/status",
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        job.process.send_signal(signal.SIGHUP)
        job.wait()
        self.assertEqual(job.status, 0)
        for line in job.out.split(b"\n")[:2]:
            self.assertEqual(int(line.split()[1], 16) & 1, 1, line)

    def test_ranks_start_with_default_signals(self):
        job = run("-n", 2, "/bin/grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")
        self.assertEqual({line.split()[1] for line in job.out.splitlines()}, {b"0" * 16}, job.out)

    def test_stop_and_continue(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        fifo = os.path.join(folder.name, "fifo")
        os.mkfifo(fifo)
        both = os.open(fifo, os.O_RDWR)  # a rank's open waits for no one
        self.addCleanup(os.close, both)
        job = self.started("-n", 2, SH, "-c", "echo ready; read line <$0; echo on", fifo)
        ranks = [p for p in job.pids() if p not in job.chain()]
        job.process.send_signal(signal.SIGTSTP)

        def state(pid):
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rpartition(")")[2].split()[0]

        job.until(lambda: all(state(p) == "T" for p in ranks + [job.process.pid]), "a stop")
        job.process.send_signal(signal.SIGCONT)
        os.write(both, b"\n\n")
        self.assertEqual(job.wait().status, 0)

    def test_interrupt_from_a_terminal_comes_once(self):
        script = ("import signal,time\ngot=[]\nsignal.signal(signal.SIGINT,lambda n,f:got.append(n))\n"
                  "print('ready',flush=True)\nwhile not got: time.sleep(0.01)\ntime.sleep(0.3)\nprint('got',len(got))")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(DRIVER, [DRIVER, "-n", "2", PYTHON, "-c", script])
        text, sent = b"", False
        while True:
            self.assertTrue(select.select([terminal], [], [], LIMIT)[0], "silence")
            try:
                piece = os.read(terminal, 4096)
            except OSError:
                break
            if not piece:
                break
            text += piece
            if text.count(b"ready") == 2 and not sent:
                sent = True
                os.write(terminal, b"\x03")
        self.assertEqual(os.waitpid(pid, 0)[1], 0, text)
        self.assertEqual(text.count(b"got 1\r\n"), 2, text)
        os.close(terminal)


class NothingSurvives(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def daemons(self, end, ranks=2):
        """A job whose every rank has a daemon; `end` is what the rank does then."""
        path = os.path.join(self.folder.name, "daemon-")
        job = Job("-n", ranks, PYTHON, "-c", DAEMON + f"daemon('{path}' + os.environ['RANK'])\n" + end)
        job.paths = [path + str(rank) for rank in range(ranks)]
        return job

    def until_daemons(self, job):
        job.until(lambda: all(os.path.exists(p) and os.path.getsize(p) for p in job.paths), "the daemons")

    def test_daemons_end_with_the_job(self):
        job = self.daemons("")
        self.assertEqual(job.wait().status, 0, job.err)
        self.assertEqual(job.pids(), [])

    def test_daemons_end_after_a_failure(self):
        job = self.daemons("os._exit(9)")
        self.assertEqual(job.wait().status, 9)
        self.assertEqual(job.pids(), [])

    def kill(self, *which):
        job = self.daemons("time.sleep(1000)")
        self.until_daemons(job)
        chain = job.chain()
        for place in which:
            os.kill(chain[place], signal.SIGSTOP)  # so that they fall together
        for place in which:
            os.kill(chain[place], signal.SIGKILL)
        job.until_gone()
        job.wait()
        return job

    def test_kill_of_the_process_the_user_started(self):
        self.kill(0)

    def test_kill_of_the_supervisor(self):
        self.assertEqual(self.kill(2).status, 128 + signal.SIGKILL)

    def test_kill_of_any_two(self):
        self.kill(0, 1)
        self.setUp()
        self.kill(0, 2)
        self.setUp()
        self.kill(1, 2)

    def test_kill_of_all_three(self):
        """In any order, none of them with time to act: ranks and their children end all the same."""
        for order in itertools.permutations(range(3)):
            job = Job("-n", 2, SH, "-c", "(sleep 1000 & echo up; wait) & sleep 1000 & wait")
            for _ in range(2):
                self.assertEqual(os.read(job.process.stdout.fileno(), 3), b"up\n")
            chain = job.chain()
            for place in range(3):
                os.kill(chain[place], signal.SIGSTOP)
            for place in order:
                os.kill(chain[place], signal.SIGKILL)
            job.until_gone()
            job.wait()

    def test_kill_of_the_guard_is_harmless(self):
        go = os.path.join(self.folder.name, "go")
        job = Job("-n", 2, SH, "-c", "echo ready; while [ ! -e $0 ]; do sleep 0.05; done; echo end", go)
        self.assertEqual(os.read(job.process.stdout.fileno(), 5), b"ready")
        os.kill(job.chain()[1], signal.SIGKILL)
        open(go, "w").close()
        self.assertEqual(job.wait().status, 0)
        self.assertEqual(job.out.count(b"end"), 2)

    def test_the_guard_has_another_name(self):
        job = Job(SH, "-c", "echo ready; exec sleep 1000")
        os.read(job.process.stdout.fileno(), 5)
        guard = job.chain()[1]

        def text(name):
            with open(f"/proc/{guard}/{name}", "rb") as file:
                return file.read().strip(b"\0\n")

        job.until(lambda: text("comm") == b"hpl-guard" and text("cmdline") == b"hpl-guard", "the name")
        job.process.kill()
        job.until_gone()
        job.wait()

    def test_what_we_did_not_start_lives(self):
        stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        try:
            self.kill(0)
            self.assertIsNone(stranger.poll())
        finally:
            stranger.kill()
            stranger.wait()

    def test_children_from_before_our_exec_live(self):
        # The shell's background jobs become children of the program that it execs.
        note = os.path.join(self.folder.name, "pids")
        for tail in ("exit 3", "exec sleep 1000"):
            script = (f"sleep 1000 & echo $! >{note}; (sleep 1000 & echo $! >>{note}); "
                      f"exec {DRIVER} -n 2 {SH} -c '{tail}'")
            shell = subprocess.Popen([SH, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if tail == "exit 3":
                self.assertEqual(shell.wait(LIMIT), 3)
            else:
                limit = time.monotonic() + LIMIT
                guards = []
                while not guards and time.monotonic() < limit:
                    time.sleep(0.01)
                    guards = [p for p in children(shell.pid) if name_of(p) == "hpl-guard" and children(p)]
                os.kill(children(guards[0])[0], signal.SIGKILL)
                self.assertEqual(shell.wait(LIMIT), 137)
            with open(note) as file:
                pids = [int(line) for line in file]
            self.assertEqual(len(pids), 2)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)  # ProcessLookupError here: it was ended

    def test_a_process_that_keeps_running_away(self):
        script = ("import os,time\n"
                  "if os.fork() == 0:\n"
                  "    while True:\n"
                  "        if os.fork(): os._exit(0)\n"
                  "        os.setsid()\n")
        job = run("-n", 1, PYTHON, "-c", script)
        self.assertEqual(job.status, 0)
        self.assertEqual(job.pids(), [])

    def test_a_pipe_that_a_stranger_holds_is_not_waited_for(self):
        # The rank hands its stdout to a process outside the job and ends.
        path = os.path.join(self.folder.name, "socket")
        import socket
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen(1)
        script = (f"import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect('{path}')\n"
                  "socket.send_fds(s,[b'x'],[1])\nprint('done')\n")
        job = Job("-n", 2, PYTHON, "-c", "import os\nif os.environ['RANK']=='0':\n " + script.replace("\n", "\n "))
        connection = server.accept()[0]
        held = socket.recv_fds(connection, 1, 1)[1]
        self.assertEqual(job.wait().status, 0)
        self.assertEqual(job.out, b"done\n")
        for fd in held:
            os.close(fd)
        connection.close()
        server.close()


class Output(unittest.TestCase):
    def test_lines_of_a_thousand_ranks_stay_whole(self):
        # Lines of several sizes, some longer than a pipe's page, marked at both ends.
        script = ("i=0; x=$(printf '%03000d' 0); while [ $i -lt 5 ]; do "
                  "echo \"<$RANK:$i:$x$x>\"; echo \"<$RANK:$i:$x>\" >&2; i=$((i+1)); done")
        job = run("-n", 1000, SH, "-c", script, stderr=subprocess.STDOUT)
        self.assertEqual(job.status, 0, job.out[-2000:])
        lines = job.out.splitlines()
        self.assertEqual(len(lines), 10000)
        self.assertEqual(len(set(lines)), 10000)
        for line in lines:
            self.assertRegex(line, rb"^<\d+:\d:(0{3000}|0{6000})>$")

    def test_labels(self):
        job = run("--label", "-n", 12, SH, "-c", "printf 'a\\rb\\r\\nc\\n'")
        want = b"".join(b"[%2d] a\r[%2d] b\r\n[%2d] c\n" % (r, r, r) for r in range(12))
        self.assertEqual(sorted(job.out.split(b"\n")), sorted(want.split(b"\n")))

    def test_bytes_of_one_rank_pass_unchanged(self):
        data = bytes(range(256)) * 3000
        job = Job("/bin/cat", stdin=subprocess.PIPE).wait(data)
        self.assertEqual(job.out, data)

    def test_stdin_is_for_rank_0(self):
        job = Job("-n", 3, SH, "-c", "cat >/dev/null; test $RANK = 0 || exit 0; echo end",
                  stdin=subprocess.PIPE).wait(b"x" * 200000)
        self.assertEqual((job.status, job.out), (0, b"end\n"))
        job = Job("--label", "-n", 3, "/bin/cat", stdin=subprocess.PIPE).wait(b"one\n")
        self.assertEqual(job.out, b"[0] one\n")

    def test_prompt_of_rank_0_shows(self):
        job = Job("-n", 2, SH, "-c", "test $RANK = 1 && exit 0; printf 'name? '; read name; echo hello $name",
                  stdin=subprocess.PIPE)
        self.assertTrue(select.select([job.process.stdout], [], [], LIMIT)[0])
        self.assertEqual(os.read(job.process.stdout.fileno(), 100), b"name? ")
        self.assertEqual(job.wait(b"you\n").out, b"hello you\n")

    def test_a_rank_that_closes_its_output(self):
        job = run("-n", 2, SH, "-c", "exec >&- 2>&-; sleep 0.2; exit $((RANK * 6))")
        self.assertEqual(job.status, 6)

    def test_a_flood_does_not_starve_the_others(self):
        job = Job("-n", 3, SH, "-c", "test $RANK = 1 && { echo here >&2; exit 0; }; exec yes", stdout=subprocess.DEVNULL)
        self.assertTrue(select.select([job.process.stderr], [], [], LIMIT)[0])
        self.assertEqual(os.read(job.process.stderr.fileno(), 5), b"here\n")
        job.process.terminate()
        self.assertEqual(job.wait().status, 128 + signal.SIGTERM)

    def test_a_reader_that_leaves_ends_the_job(self):
        job = Job("-n", 3, "/usr/bin/yes")
        os.read(job.process.stdout.fileno(), 2)
        job.process.stdout.close()
        self.assertEqual(job.process.wait(LIMIT), 128 + signal.SIGPIPE)
        self.assertEqual(job.process.stderr.read(), b"hpclaunch: the reader of standard output has exited (SIGPIPE); no rank failed before\n")
        job.process.stderr.close()
        job.until_gone()

    def test_signals_are_heard_while_nobody_reads(self):
        job = Job("-n", 2, "/usr/bin/yes")
        os.read(job.process.stdout.fileno(), 2)  # signals are heard; the pipe is full now, or will be
        job.process.send_signal(signal.SIGTERM)
        job.until(lambda: not [p for p in job.pids() if p not in job.chain()], "the end of the ranks")
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.process.wait(LIMIT), 128 + signal.SIGTERM)
        job.wait()

    def test_full_disk_is_said_and_no_success(self):
        with open("/dev/full", "wb") as full:
            job = run("-n", 2, SH, "-c", "echo $RANK", stdout=full)
        self.assertEqual(job.status, 125)
        self.assertEqual(job.err.count(b"cannot write the ranks' output: No space left"), 1)


class LogFiles(unittest.TestCase):
    def test_one_file_per_rank(self):
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "new", "logs")
            job = run("--label", "--log-dir", place, "-n", 11, SH, "-c", "echo out $RANK; echo err >&2")
            self.assertEqual(job.status, 0)
            self.assertIn(b"[ 3] out 3\n", job.out)
            self.assertEqual(sorted(os.listdir(place)), [f"rank-{r:02}.log" for r in range(11)])
            for rank in range(11):
                with open(os.path.join(place, f"rank-{rank:02}.log")) as file:
                    self.assertEqual(sorted(file.read().splitlines()), ["err", f"out {rank}"])

    def test_nothing_is_overwritten(self):
        with tempfile.TemporaryDirectory() as folder:
            for launch in range(1, 4):
                job = run("--log-dir", folder, "-n", 2, SH, "-c", f"echo {launch}")
                place = folder if launch == 1 else os.path.join(folder, str(launch))
                self.assertEqual(job.err.count(place.encode() + b"\n"), launch > 1)
                with open(os.path.join(place, "rank-1.log")) as file:
                    self.assertEqual(file.read(), f"{launch}\n")

    def test_the_report_names_the_log(self):
        with tempfile.TemporaryDirectory() as folder:
            job = run("--log-dir", folder, "-n", 2, SH, "-c", "exit $RANK")
            self.assertIn(f"full output of rank 1: {folder}/rank-1.log\n".encode(), job.err)

    def test_no_place(self):
        job = run("--log-dir", "/dev/null/logs", "/bin/true")
        self.assertEqual(job.status, 125)
        self.assertRegex(job.err, rb"system: cannot create log files in /dev/null/logs: Not a directory")


class Limits(unittest.TestCase):
    def test_file_limit_of_the_ranks_is_the_users(self):
        script = f"ulimit -Sn 100; exec {DRIVER} -n 200 {SH} -c 'ulimit -Sn'"
        done = subprocess.run([SH, "-c", script], capture_output=True, timeout=LIMIT, check=True)
        self.assertEqual(set(done.stdout.split()), {b"100"})

    def test_too_few_files(self):
        script = f"ulimit -n 100; exec {DRIVER} -n 200 /bin/true"
        done = subprocess.run([SH, "-c", script], capture_output=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"200 ranks need 664 open files, 100 are allowed", done.stderr)


if __name__ == "__main__":
    sys.exit(allowed.run())
