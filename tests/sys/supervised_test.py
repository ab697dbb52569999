"""What stays beside a launcher, with launchers made up for it: supervised_test.py DRIVER.

A made-up launcher is a Python script in which end(rank, ...) writes what the shim of that rank would.
"""
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import HANDLED, LIMIT, Marked, allowed

DRIVER = os.path.abspath(sys.argv.pop(1))
PYTHON = sys.executable

PRELUDE = """
import os, signal, subprocess, sys, time
layout = [int(n) for n in os.environ["LAYOUT"].split(",")]
tag = os.environ.get("TAG", "")
def head(rank):
    node, first = 0, 0
    while rank >= first + layout[node]:
        first += layout[node]
        node += 1
    place = (os.environ["HPCLAUNCH_RECORDS"], rank, node, node + 1, 1000 + rank)
    return (tag % rank if "%" in tag else tag) + "@hpclaunch %s rank=%d node=%d host=n%d pid=%d " % place
def err(text):
    os.write(2, text.encode("latin-1"))
def end(rank, how="exit=0", tail=(), at=None):
    for line in tail:
        err(head(rank) + "tail=" + line + "\\n")
    err(head(rank) + "at=%.6f " % (time.time() if at is None else at) + how + "\\n")
def ready():
    open(os.environ["READY"], "w").close()
def note(text):
    with open(os.environ["NOTES"], "a") as file:
        file.write(text + "\\n")
ranks = range(sum(layout))
"""


class Job(Marked):
    def __init__(self, folder, script, *args, layout="4,4", tag="", **options):
        super().__init__()
        self.folder = folder
        self.ready, self.notes = folder + "/ready%d" % self.number, folder + "/notes%d" % self.number
        self.summary = folder + "/out%d" % self.number
        path = folder + "/launcher%d.py" % self.number
        with open(path, "w") as file:
            file.write(PRELUDE + script)
        env = dict(os.environ, LAYOUT=layout, TAG=tag, READY=self.ready, NOTES=self.notes)
        env.update([self.mark.split("=")])
        options.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen([DRIVER, "--layout", layout, "--out", self.summary, *args, PYTHON, path], env=env,
                                        stdout=options.pop("stdout", subprocess.PIPE), stderr=options.pop("stderr", subprocess.PIPE), **options)

    def wait(self, feed=None):
        self.out, self.err = (b if b is None else b.decode("latin-1") for b in self.process.communicate(feed, timeout=LIMIT))
        self.status = self.process.returncode
        self.said = self.read(self.summary).split("\n")[0]
        return self

    def read(self, path):
        if not os.path.exists(path):
            return ""
        with open(path) as file:
            return file.read()

    def until_ready(self):
        self.until(lambda: os.path.exists(self.ready), "the launcher is ready")
        return self

    def launcher(self):
        return [pid for pid in self.pids() if pid != self.process.pid]


class Test(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory(prefix="hpclaunch-test-")
        self.addCleanup(self.place.cleanup)

    def job(self, script, *args, **options):
        job = Job(self.place.name, script, *args, **options)
        self.addCleanup(self.gone, job)
        return job

    def gone(self, job):
        job.until(lambda: not job.pids(), "the end of all processes")

    def run_job(self, script, *args, **options):
        return self.job(script, *args, **options).wait()


class Ends(Test):
    def test_all_well_and_nothing_said(self):
        job = self.run_job("print('out', flush=True)\nerr('err\\n')\n[end(rank) for rank in ranks]")
        self.assertEqual([job.status, job.out, job.err], [0, "out\n", "err\n"])
        self.assertEqual(job.said, "ok 8 failed 0 ended 0 launcher-exit 0")

    def test_tags(self):
        for tag in ("[%d] ", "%d: ", "n1 %d: ", "[1,%d]<stderr>:"):
            job = self.run_job("[end(rank, tail=['x'] if rank == 1 else [], how='exit=%d' % (rank == 1)) for rank in ranks]", tag=tag)
            self.assertEqual(job.status, 1, tag)
            self.assertNotIn("@hpclaunch", job.err)

    def test_the_first_in_time_is_named_whatever_the_launcher_says(self):
        job = self.run_job("""
begin = time.time()
time.sleep(0.3)
end(6, 'exit=1', at=begin + 0.2)
end(5, 'exit=7', tail=['one', 'two'], at=begin + 0.1)
for rank in (0, 1, 2, 3, 4, 7): end(rank, 'signal=15 sent=15', at=begin + 0.3)
sys.exit(143)
""")
        self.assertEqual(job.status, 7)
        self.assertRegex(job.err, r"^hpclaunch: rank 5 failed first: host n2, pid 1005, exit status 7, \d+\.\d s after start\n"
                                  r"hpclaunch: last output of rank 5:\n  \| one\n  \| two\nhpclaunch: 1 other rank also failed\n"
                                  r"hpclaunch: the launcher stopped 6 other ranks\n$")
        self.assertEqual(job.said, "ok 0 failed 2 ended 6 launcher-exit 143 first 5")

    def test_a_signal(self):
        job = self.run_job("end(0, 'signal=11 core=1')\nsys.exit(11)", layout="1")
        self.assertEqual(job.status, 139)
        self.assertIn("rank 0 failed: host n1, pid 1000, SIGSEGV (signal 11, core dumped)", job.err)

    def test_a_node_that_fell_silent_is_named_first(self):
        """The launcher has noticed it, and ended the others: no rank of these is to blame."""
        job = self.run_job("[err(head(rank) + 'begun\\n') for rank in (0, 4)]\n[end(rank, 'signal=15 sent=15') for rank in range(4)]\nsys.exit(143)")
        self.assertEqual(job.status, 143)
        self.assertEqual(job.err, "hpclaunch: node n2 failed first: no exit status from ranks 4-7 on n2\nhpclaunch: the launcher stopped 4 ranks\n"
                                  "hpclaunch: other exited with status 143\n")

    def test_nodes_that_never_start(self):
        """The launcher waits for ever: the job is ended at the limit, and says for whom it waited."""
        for started, missing, limit in (((), "ranks 0-3 on n1, ranks 4-7 on n2", 1), ((4,), "ranks 0-3 on n1", 15)):  # Python starts within 15 s
            job = self.run_job("[err(head(rank) + 'begun\\n') for rank in %r]\ntime.sleep(1000)" % (started,), "--start-timeout", str(limit))
            self.assertEqual([job.status, job.err.splitlines()[0]], [125, "hpclaunch: %s did not start within %d s; stopped other" % (missing, limit)])
        job = self.run_job("time.sleep(2)\n[end(rank) for rank in ranks]", "--start-timeout", "0")
        self.assertEqual([job.status, job.err], [0, ""])

    def test_a_full_device_is_no_success(self):
        with open("/dev/full", "w") as full:
            self.assertEqual(self.run_job("err('lost\\n')\n[end(rank) for rank in ranks]", stderr=full).status, 125)
            self.assertEqual(self.run_job("print('lost')\n[end(rank) for rank in ranks]", stdout=full).status, 125)

    def test_output_to_a_file_passes_whole(self):
        with tempfile.TemporaryFile("w+") as file:
            file.write("before\n")
            file.flush()
            self.assertEqual(self.run_job("[print('%05d' % n * 200) for n in range(5000)]\nsys.stdout.write('end')\n[end(rank) for rank in ranks]",
                                          stdout=file).status, 0)
            file.seek(0)
            self.assertEqual(file.read(), "before\n" + "".join("%05d" % n * 200 + "\n" for n in range(5000)) + "end")

    def test_a_lost_node_is_no_success(self):
        job = self.run_job("[end(rank) for rank in range(4)]")
        self.assertEqual([job.status, job.err], [137, "hpclaunch: no exit status from ranks 4-7 on n2: node lost, or killed with the launcher\n"])
        self.assertEqual(job.said, "ok 4 failed 0 ended 0 silent n2:4-7 launcher-exit 0")

    def test_a_lost_node_is_the_one_that_the_launcher_names(self):
        begun = "[err(head(rank) + 'begun\\n') for rank in (0, 4)]\n"
        for name, says in (("n2", "err('  HNP daemon   : [j@0,0] on node n1\\n  Remote daemon: [j@0,1] on node n2\\n')"),
                           ("n1", "print('  Local host:    n2\\n  Remote host:   n1\\n')")):
            job = self.run_job(begun + says, "--launcher", "prrte")
            self.assertEqual(job.status, 137)
            self.assertIn("hpclaunch: node %s failed first: no exit status from ranks" % name, job.err)
        job = self.run_job(begun, "--launcher", "prrte")
        self.assertEqual(job.status, 137)
        self.assertIn("hpclaunch verify names nodes that do not answer", job.err)

    def test_the_launcher_fails_alone(self):
        job = self.run_job("[end(rank) for rank in ranks]\nsys.exit(9)")
        self.assertEqual([job.status, job.err], [9, "hpclaunch: other exited with status 9, but all ranks exited with 0\n"])

    def test_the_launcher_fails_at_the_start(self):
        job = self.run_job("err('no such queue\\n')\nsys.exit(3)")
        self.assertEqual(job.status, 3)
        self.assertEqual(job.err, "no such queue\nhpclaunch: no exit status from ranks 0-3 on n1, ranks 4-7 on n2: the launcher may not have started them\n"
                                  "hpclaunch: other exited with status 3\n")

    def test_the_launcher_is_killed(self):
        job = self.job("end(0)\nready()\ntime.sleep(1000)").until_ready()
        os.kill(job.launcher()[0], signal.SIGKILL)
        job.wait()
        self.assertEqual(job.status, 137)
        self.assertIn("hpclaunch: other was stopped by SIGKILL (signal 9)\n", job.err)
        self.assertIn("no exit status from ranks 1-3 on n1, ranks 4-7 on n2", job.err)

    def test_no_launcher(self):
        for path, text in (("/no/launcher", "No such file"), ("/etc/passwd", "Permission denied")):
            done = subprocess.run([DRIVER, path], stderr=subprocess.PIPE, timeout=LIMIT)
            self.assertEqual(done.returncode, 125)
            self.assertIn(text.encode(), done.stderr)

    def test_records_are_asked_for(self):
        keys = [self.run_job("print(os.environ['HPCLAUNCH_RECORDS'])\nend(0)", layout="1").out for _ in range(2)]
        self.assertRegex(keys[0], "^[0-9a-f]{16}\n$")
        self.assertNotEqual(*keys)
        job = self.run_job("print(os.environ['SLURM_DISABLE_STATUS'])\nend(0)", "--launcher", "slurm", layout="1")
        self.assertEqual(job.out, "1\n")


class Output(Test):
    def test_everything_but_records_passes(self):
        text = "".join("line %d \\xff@hpclaunch rank=1 no\\n" % i for i in range(5000)) + "no newline"
        job = self.run_job("err(%r)\n[end(rank) for rank in ranks]" % text.encode().decode("unicode_escape"))
        self.assertEqual(job.status, 0)
        self.assertEqual(job.err, text.encode().decode("unicode_escape") + "\n")

    def test_a_flood_with_records_in_it(self):
        job = self.run_job("""
line = 'x' * 99 + '\\n'
for rank in ranks:
    for i in range(20): err(line * 1000)
    end(rank)
""")
        self.assertEqual(job.status, 0)
        self.assertEqual(job.err, ("x" * 99 + "\n") * 160000)

    def test_a_reader_that_stalls_is_waited_for(self):
        script = "for i in range(100): err('y' * 99999 + '\\n')\n[end(rank) for rank in ranks]\n"
        job = self.job(script)
        os.read(job.process.stderr.fileno(), 10)
        job.wait()
        self.assertEqual([job.status, len(job.err)], [0, 100 * 100000 - 10])

    def test_a_reader_that_leaves_does_not_end_the_job(self):
        reader, writer = os.pipe()
        job = self.job("ready()\nwhile not os.path.exists(os.environ['READY'] + '2'): time.sleep(0.01)\n"
                       "for i in range(10): err('z' * 99999 + '\\n')\n[end(rank) for rank in ranks]\nprint('end', flush=True)", stderr=writer)
        os.close(writer)
        job.until_ready()
        os.close(reader)
        open(job.ready + "2", "w").close()
        job.wait()
        self.assertEqual([job.status, job.out], [0, "end\n"])

    READER = "hpclaunch: the reader of standard output has exited (SIGPIPE); no rank failed before\n"

    def unread(self, script, *args, **options):
        """A job whose output is read up to its third byte."""
        reader, writer = os.pipe()
        job = self.job("[err(head(rank) + 'begun\\n') for rank in (0, 4)]\n" + script, *args, stdout=writer, **options)
        os.close(writer)
        os.read(reader, 2)
        os.close(reader)
        return job.wait()

    def test_a_reader_of_stdout_that_leaves_is_named(self):
        """However the launcher ends then; where its stdout passes through hpclaunch it is ended."""
        floods = "while True: os.write(1, b'y' * 99 + b'\\n')"
        stops = "def term(*a):\n    [end(rank, 'signal=15 sent=15') for rank in ranks]\n    os._exit(1)\nsignal.signal(signal.SIGTERM, term)\n"
        for name, script, args in (("killed by the signal", "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n" + floods, ()),
                                   ("exits", "try:\n    %s\nexcept OSError: sys.exit(255)" % floods, ()),
                                   ("through hpclaunch", stops + floods, ("--launcher", "prrte")),
                                   ("both streams", stops + "while True: err('y' * 99 + '\\n')", ())):
            job = self.unread(script, *args, stderr=subprocess.STDOUT if name == "both streams" else subprocess.PIPE)
            self.assertEqual([job.status, job.err], [141, None if name == "both streams" else self.READER], name)

    def test_what_failed_before_the_reader_left_is_named(self):
        job = self.unread("end(5, 'exit=7')\nos.write(1, b'yy')\ntime.sleep(1)\nos.write(1, b'y')\nos.write(1, b'y')")
        self.assertEqual(job.status, 7)
        self.assertIn("rank 5 failed first: ", job.err)

    def test_output_that_nobody_read_is_no_success(self):
        script = "os.write(1, b'yy')\nwhile os.path.exists(os.environ['READY']): time.sleep(0.01)\nos.write(1, b'y')\n[end(rank) for rank in ranks]"
        reader, writer = os.pipe()
        job = self.job("ready()\n" + script, "--launcher", "prrte", stdout=writer)
        os.close(writer)
        os.read(reader, 2)
        os.close(reader)
        os.unlink(job.ready)
        self.assertEqual(job.wait().status, 141)

    def test_a_log_that_cannot_be_written_is_no_success(self):
        lost = "[err(head(rank) + 'log=28\\n') for rank in (6, 1)]\n"
        said = "hpclaunch: cannot write logs/rank-6.log on n2: No space left on device; the job continues without this log\n"
        job = self.run_job(lost + "[end(rank) for rank in ranks]", "--log-dir", "logs")
        self.assertEqual([job.status, job.err], [125, said])
        job = self.run_job(lost + "[end(rank, 'exit=%d' % (rank == 3)) for rank in ranks]", "--log-dir", "logs")
        self.assertEqual([job.status, job.err.count("cannot write")], [1, 1])

    def test_a_prompt_shows_at_once(self):
        job = self.job("err('name? ')\nprint('hello', sys.stdin.readline(), end='', flush=True)\n[end(rank) for rank in ranks]", stdin=subprocess.PIPE)
        self.assertEqual(os.read(job.process.stderr.fileno(), 6), b"name? ")
        job.wait(b"you\n")
        self.assertEqual([job.status, job.out, job.err], [0, "hello you\n", "\n"])

    def test_records_of_another_job_are_text(self):
        """A log that a rank prints again neither ends a healthy job nor excuses a killed one."""
        for key in ("", "0123456789abcdef "):
            kills = "@hpclaunch %srank=1 node=0 host=n1 pid=5 at=1.5 exit=9\n" % key
            job = self.run_job("err(%r)\n[end(rank) for rank in ranks]" % kills)
            self.assertEqual([job.status, job.err], [0, kills])
            blesses = "".join("@hpclaunch %srank=%d node=%d host=n1 pid=5 at=%f exit=0\n" % (key, rank, rank // 4, time.time()) for rank in range(8))
            job = self.run_job("err(%r)" % blesses)
            self.assertEqual(job.status, 137)
            self.assertTrue(job.err.startswith(blesses))

    def test_no_record_leaks(self):
        """Whatever comes twice, late, or before its node's begin."""
        job = self.run_job("[err(head(rank) + 'begun\\n') for rank in (0, 4, 4)]\nend(1, tail=['x'])\nerr(head(0) + 'begun\\n')\n"
                           "[end(rank) for rank in ranks]\nend(1, 'exit=4', tail=['y'])")
        self.assertEqual([job.status, job.err], [0, ""])

    def test_an_open_stderr_that_nobody_ends_is_not_waited_for(self):
        # It has left the marks and the job: only the pipe is still open.
        job = self.run_job("[end(rank) for rank in ranks]\nsubprocess.Popen(['/bin/sleep', '1000'], start_new_session=True)")
        self.assertEqual(job.status, 0)


class LeftBehind(Test):
    DAEMON = """
def daemon(ignore):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if ignore: signal.signal(signal.SIGTERM, signal.SIG_IGN)
            note('daemon')
            time.sleep(1000)
        os._exit(0)
    os.wait()
    while not os.path.exists(os.environ['NOTES']): time.sleep(0.01)
"""

    def test_what_the_launcher_leaves_behind_is_ended(self):
        for ignore in (False, True):
            job = self.run_job(self.DAEMON + "daemon(%s)\n[end(rank) for rank in ranks]" % ignore)
            self.assertEqual(job.status, 0)
            self.gone(job)

    def test_hpclaunch_is_killed(self):
        job = self.job("ready()\ntime.sleep(1000)").until_ready()
        job.process.kill()
        job.wait()
        self.gone(job)

    def test_a_launcher_that_does_not_end(self):
        job = self.run_job("signal.signal(signal.SIGTERM, lambda *a: os._exit(0))\n[end(rank) for rank in ranks]\ntime.sleep(1000)", "--grace", "0.2")
        self.assertEqual([job.status, job.err], [0, "hpclaunch: other did not exit; stopped it\n"])

    def test_a_launcher_that_ignores_term_after_a_failure(self):
        job = self.run_job("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nend(2, 'exit=5')\ntime.sleep(1000)", "--launcher", "hydra", "--slow", "--grace", "0.2")
        self.assertEqual(job.status, 5)
        self.assertIn("rank 2 failed first", job.err)
        self.assertIn("hydra did not exit; stopped it", job.err)
        self.assertIn("launcher-signal 9", job.said)

    def test_a_launcher_that_goes_on_after_a_failure_is_told(self):
        job = self.run_job("""
def term(*a):
    end(0, 'signal=15 sent=15')
    os._exit(15)
signal.signal(signal.SIGTERM, term)
end(1, 'exit=7')
while True: time.sleep(1000)
""", "--slow", layout="2")
        self.assertEqual(job.status, 7)
        self.assertIn("hpclaunch: stopped 1 other rank\n", job.err)


class Signals(Test):
    SCRIPT = """
def got(number, frame):
    note(signal.Signals(number).name)
    if number in (signal.SIGTERM, signal.SIGINT):
        [end(rank, 'signal=%d sent=%d' % (number, number)) for rank in ranks]
        os._exit(1)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, got)
ready()
while True: time.sleep(1000)
"""

    def sent(self, number, *args):
        job = self.job(self.SCRIPT, *args).until_ready()
        job.process.send_signal(number)
        return job

    def test_term(self):
        job = self.sent(signal.SIGTERM).wait()
        self.assertEqual([job.status, job.read(job.notes)], [143, "SIGTERM\n"])
        self.assertIn("sent SIGTERM to the ranks", job.err)

    def test_what_srun_gets(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
            job = self.sent(number, "--launcher", "slurm").wait()
            self.assertEqual([job.status, job.read(job.notes)], [128 + number, "SIGINT\n"])
            self.assertIn("; no rank failed before\n", job.err)
            self.assertNotIn("failed first", job.err)

    def test_the_first_signal_that_ends_programs_counts(self):
        job = self.job("for number in (signal.SIGINT, signal.SIGUSR1): signal.signal(number, lambda n, f: note(signal.Signals(n).name))\n"
                       "signal.signal(signal.SIGTERM, lambda *a: os._exit(7))\nready()\nwhile True: time.sleep(1000)").until_ready()
        for number in signal.SIGINT, signal.SIGUSR1:
            job.process.send_signal(number)
            job.until(lambda: signal.Signals(number).name in job.read(job.notes), "the signal")
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait().status, 130)
        self.assertIn("hpclaunch: interrupted (Ctrl-C); no rank failed before\n", job.err)

    def test_a_failure_before_the_signal_is_named(self):
        """Also where its record is still unread."""
        job = self.job("end(5, 'exit=7')\n" + self.SCRIPT).until_ready()
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait().status, 7)
        self.assertIn("hpclaunch: rank 5 failed first: ", job.err)
        self.assertIn("hpclaunch: sent SIGTERM to the ranks\n", job.err)
        self.assertIn("first 5", job.said)

    def test_what_mpich_gets(self):
        job = self.sent(signal.SIGHUP, "--launcher", "hydra").wait()
        self.assertEqual([job.status, job.read(job.notes)], [129, "SIGTERM\n"])
        job = self.sent(signal.SIGUSR2, "--launcher", "hydra")
        line = job.process.stderr.readline()
        self.assertEqual(line, b"hpclaunch: ignoring SIGUSR2: it would end hydra\n")
        job.process.send_signal(signal.SIGUSR1)
        job.until(lambda: job.read(job.notes) == "SIGUSR1\n", "USR1")
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait().status, 143)

    def test_a_whole_group_is_signalled_and_the_launcher_hears_it_once(self):
        job = self.job(self.SCRIPT, start_new_session=True).until_ready()
        os.killpg(job.process.pid, signal.SIGUSR1)
        job.until(lambda: job.read(job.notes), "USR1")
        job.process.send_signal(signal.SIGTERM)
        job.wait()
        self.assertEqual(job.read(job.notes), "SIGUSR1\nSIGTERM\n")

    def test_ctrl_c_in_a_terminal_is_heard_once(self):
        master, slave = pty.openpty()
        def own_terminal():
            os.setsid()
            import fcntl, termios
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        job = self.job(self.SCRIPT, stdin=slave, preexec_fn=own_terminal)
        os.close(slave)
        job.until_ready()
        os.write(master, b"\x03")
        job.wait()
        os.close(master)
        self.assertEqual([job.status, job.read(job.notes)], [130, "SIGINT\n"])

    def test_a_second_int_does_not_wait_for_the_grace_period(self):
        job = self.job("signal.signal(signal.SIGINT, lambda *a: note('INT'))\nready()\nwhile True: time.sleep(1000)", "--grace", "9999").until_ready()
        job.process.send_signal(signal.SIGINT)
        job.until(lambda: job.read(job.notes), "INT")
        job.process.send_signal(signal.SIGINT)
        job.wait()
        self.assertEqual(job.status, 130)

    def test_grace_after_a_signal(self):
        job = self.job("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nready()\nwhile True: time.sleep(1000)", "--grace", "0.2", "--launcher", "hydra").until_ready()
        job.process.send_signal(signal.SIGTERM)
        job.wait()
        self.assertEqual(job.status, 143)

    def test_a_signal_after_the_launch_does_not_replace_its_status(self):
        fifo = os.path.join(self.place.name, "fifo")
        os.mkfifo(fifo)
        for ends, status in (("end(1, 'exit=3')\nend(0)\nsys.exit(3)", 3), ("[end(rank) for rank in ranks]", 0)):
            job = self.job(ends, "--pause", fifo, layout="2")
            job.after_the_launch(fifo, *HANDLED)
            self.assertEqual(job.wait().status, status, job.err)

    def test_nohup(self):
        job = self.job(self.SCRIPT, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)).until_ready()
        job.process.send_signal(signal.SIGHUP)
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait().read(job.notes), "SIGTERM\n")

    def test_stop_and_go_on(self):
        job = self.job(self.SCRIPT).until_ready()
        def state():
            with open("/proc/%d/stat" % job.process.pid) as file:
                return file.read().rpartition(")")[2].split()[0]
        job.process.send_signal(signal.SIGTSTP)
        job.until(lambda: state() == "T", "stopped")
        job.process.send_signal(signal.SIGCONT)
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait().status, 143)


if __name__ == "__main__":
    sys.exit(allowed.run())
