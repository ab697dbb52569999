"""What stays beside a launcher, with launchers made up for it: supervised_test.py DRIVER.

A made-up launcher is a Python script which has the monitors of all ranks in it, with a connection for each node:
begin(rank) and end(rank, ...) tell what the monitor of that rank would, heard() is what hpclaunch tells them.
"""
import os
import pty
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import HANDLED, LIMIT, Marked, allowed

DRIVER = os.path.abspath(sys.argv.pop(1))
PYTHON = sys.executable

SUPPORT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support")
PRELUDE = """
import os, select, signal, subprocess, sys, time
sys.path.insert(0, os.environ["SUPPORT"])
from channel import Channel, RELEASE, SIGNAL
layout = [int(n) for n in os.environ["LAYOUT"].split(",")]
nodes = {}
begun = set()
def node_of(rank):
    node, first = 0, 0
    while rank >= first + layout[node]:
        first += layout[node]
        node += 1
    return node
def connect(node):
    one = Channel.from_environment(node)
    one.socket.settimeout(None)
    return one
def channel(rank):
    node = node_of(rank)
    if node not in nodes:
        nodes[node] = connect(node)
    return nodes[node]
def begin(rank):
    begun.add(rank)
    channel(rank).begun(rank, 1000 + rank, "n%d" % (node_of(rank) + 1))
def end(rank, how="exit=0", tail=()):
    if rank not in begun:
        begin(rank)
    what = {name: int(number) for name, number in (word.split("=") for word in how.split())}
    channel(rank).ended(rank, 1000 + rank, tail="".join(line + "\\n" for line in tail).encode(), **what)
def heard():
    while nodes:
        ready = select.select([one.socket for one in nodes.values()], [], [])[0]
        for node, one in list(nodes.items()):
            while one.socket in ready:
                found = one.wait()
                if found is None:
                    del nodes[node]
                    break
                yield (node,) + found
                if not one.bytes:
                    break
def until_signal(number):
    next(one for one in heard() if one[1] == SIGNAL and one[3] == number)
def hold():
    "The connections outlive the launcher, as those of other nodes do."
    if os.fork() == 0:
        time.sleep(1000)
def err(text):
    os.write(2, text.encode("latin-1"))
def ready(which=""):
    open(os.environ["READY"] + which, "w").close()
def gate():
    while not os.path.exists(os.environ["READY"] + "2"): time.sleep(0.01)
def note(text):
    with open(os.environ["NOTES"], "a") as file:
        file.write(text + "\\n")
ranks = range(sum(layout))
"""
BEGIN = "[begin(rank) for rank in ranks]\n"
END = "[end(rank) for rank in ranks]\n"
STOPPED = "'signal=15 sent=15'"


class Job(Marked):
    def __init__(self, folder, script, *args, layout="4,4", **options):
        super().__init__()
        self.folder = folder
        self.ready, self.notes = folder + "/ready%d" % self.number, folder + "/notes%d" % self.number
        self.summary = folder + "/out%d" % self.number
        path = folder + "/launcher%d.py" % self.number
        with open(path, "w") as file:
            file.write(PRELUDE + script)
        env = dict(os.environ, LAYOUT=layout, SUPPORT=SUPPORT, READY=self.ready, NOTES=self.notes)
        env.update([self.mark.split("=")])
        options.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen([DRIVER, "--layout", layout, "--out", self.summary, *args, PYTHON, path], env=env,
                                        stdout=options.pop("stdout", subprocess.PIPE), stderr=options.pop("stderr", subprocess.PIPE), **options)

    def wait(self):
        self.out, self.err = (b if b is None else b.decode("latin-1") for b in self.process.communicate(timeout=LIMIT))
        self.status = self.process.returncode
        self.said = self.read(self.summary).split("\n")[0]
        return self

    def read(self, path):
        if not os.path.exists(path):
            return ""
        with open(path) as file:
            return file.read()

    def until_ready(self, which=""):
        self.until(lambda: os.path.exists(self.ready + which), "the launcher is ready")
        return self

    def open_gate(self):
        open(self.ready + "2", "w").close()

    def state(self):
        with open("/proc/%d/stat" % self.process.pid) as file:
            return file.read().rpartition(")")[2].split()[0]

    def launcher(self):
        """Its process, a child of the driver."""
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as file:
            return int(file.read().split()[0])


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
        job = self.run_job("print('out', flush=True)\nerr('err\\n')\n" + END)
        self.assertEqual([job.status, job.out, job.err], [0, "out\n", "err\n"])
        self.assertEqual(job.said, "ok 8 failed 0 ended 0 launcher-exit 0")

    def test_the_first_in_time_is_named_whatever_the_launcher_says(self):
        job = self.run_job(BEGIN + """
end(6, 'exit=7', tail=['one', 'two'])
until_signal(signal.SIGTERM)
end(5, 'exit=1')
for rank in (0, 1, 2, 3, 4, 7): end(rank, 'signal=15 sent=15')
sys.exit(143)
""")
        self.assertEqual(job.status, 7)
        self.assertRegex(job.err, r"^hpclaunch: rank 6 failed first: host n2, pid 1006, exit status 7, \d+\.\d s after start\n"
                                  r"hpclaunch: last output of rank 6:\n  \| one\n  \| two\nhpclaunch: 1 other rank also failed\n"
                                  r"hpclaunch: stopped 6 other ranks\n$")
        self.assertEqual(job.said, "ok 0 failed 2 ended 6 launcher-exit 143 first 6")

    def test_a_signal(self):
        job = self.run_job("end(0, 'signal=11 core=1')\nsys.exit(11)", layout="1")
        self.assertEqual(job.status, 139)
        self.assertIn("rank 0 failed: host n1, pid 1000, SIGSEGV (signal 11, core dumped)", job.err)

    def test_a_node_that_is_lost_is_named_first(self):
        """The others are stopped: no rank of these is to blame."""
        job = self.run_job(BEGIN + "nodes.pop(1).close()\nuntil_signal(signal.SIGTERM)\n"
                           "end(0, 'exit=1')\n[end(rank, %s) for rank in (1, 2, 3)]\nsys.exit(143)" % STOPPED)
        self.assertEqual(job.status, 137)
        lines = job.err.splitlines()
        self.assertEqual(lines[0], "hpclaunch: node n2 failed first: its connection ended, with ranks 4-7 on n2 running")
        self.assertIn("hpclaunch: rank 0 failed after that: host n1, ", lines[1])
        self.assertEqual(lines[2:], ["hpclaunch: stopped 3 other ranks"])

    def test_a_node_is_lost_and_no_rank_failed(self):
        job = self.run_job(BEGIN + "nodes.pop(1).close()\nuntil_signal(signal.SIGTERM)\n[end(rank, %s) for rank in range(4)]\nsys.exit(143)" % STOPPED)
        self.assertEqual([job.status, job.err], [137, "hpclaunch: node n2 failed first: its connection ended, with ranks 4-7 on n2 running\n"
                                                      "hpclaunch: stopped 4 ranks\n"])

    def test_a_launcher_that_waits_for_a_lost_node_is_ended(self):
        """No grace period: nobody is left who would use it."""
        job = self.run_job(BEGIN + "nodes.pop(1).close()\nuntil_signal(signal.SIGTERM)\n[end(rank, %s) for rank in range(4)]\ntime.sleep(1000)" % STOPPED,
                           "--grace", "9999")
        self.assertEqual(job.status, 137)
        self.assertTrue(job.err.startswith("hpclaunch: node n2 failed first: "), job.err)
        self.assertIn("launcher-signal 15", job.said)

    def test_another_monitor_of_the_node_takes_over(self):
        job = self.run_job(BEGIN + "other = connect(1)\nfor rank in (5, 6, 7): other.begun(rank, 1000 + rank, 'n2')\n"
                           "end(4)\nnodes.pop(1).close()\nnodes[1] = other\n[end(rank) for rank in ranks if rank != 4]")
        self.assertEqual([job.status, job.err], [0, ""])

    def test_nodes_that_never_start(self):
        """The launcher waits for ever: the job is ended at the limit, and says for whom it waited."""
        job = self.run_job("time.sleep(1000)", "--start-timeout", "1")
        self.assertEqual([job.status, job.err.splitlines()[0]],
                         [125, "hpclaunch: ranks 0-3 on n1, ranks 4-7 on n2 did not start within 1 s; stopped other"])
        job = self.run_job("time.sleep(2)\n" + END, "--start-timeout", "0")
        self.assertEqual([job.status, job.err], [0, ""])

    def test_ranks_that_stay_are_named_and_ended(self):
        job = self.run_job(BEGIN + "end(0)\nend(5)\nuntil_signal(signal.SIGTERM)\nend(1, 'exit=1 sent=15')\n"
                           "[end(rank, %s) for rank in (2, 3, 4, 6, 7)]\nsys.exit(1)" % STOPPED, "--end-timeout", "1")
        self.assertEqual(job.status, 124)
        self.assertRegex(job.err, r"^hpclaunch: 2 ranks ended with 0, the first \d+ s ago; still running: ranks 1-3 on n1, ranks 4,6-7 on n2\n"
                                  r"hpclaunch: ended 6 ranks that stayed after the others had ended \(--end-timeout\)\n"
                                  r"hpclaunch: other exited with status 1\n$")
        self.assertEqual(job.said, "ok 2 failed 0 ended 6 launcher-exit 1")

    def test_a_full_device_is_no_success(self):
        with open("/dev/full", "w") as full:
            self.assertEqual(self.run_job("err('lost\\n')\n" + END, stderr=full).status, 125)
            self.assertEqual(self.run_job("print('lost')\n" + END, stdout=full).status, 125)

    def test_output_to_a_file_passes_whole(self):
        with tempfile.TemporaryFile("w+") as file:
            file.write("before\n")
            file.flush()
            self.assertEqual(self.run_job("[print('%05d' % n * 200) for n in range(5000)]\nsys.stdout.write('end')\n" + END, stdout=file).status, 0)
            file.seek(0)
            self.assertEqual(file.read(), "before\n" + "".join("%05d" % n * 200 + "\n" for n in range(5000)) + "end")

    def test_ranks_without_an_end_are_no_success(self):
        job = self.run_job(BEGIN + "hold()\n[end(rank) for rank in range(4)]")
        self.assertEqual([job.status, job.err], [137, "hpclaunch: no exit status from ranks 4-7 on n2: killed later, or node lost\n"])
        self.assertEqual(job.said, "ok 4 failed 0 ended 0 silent n2:4-7 launcher-exit 0")

    def test_a_node_that_never_connected(self):
        """Its ranks run unsupervised, and the launcher knows how they ended."""
        for status in 0, 9:
            job = self.run_job("[end(rank) for rank in range(4)]\nsys.exit(%d)" % status)
            self.assertEqual(job.status, status)
            self.assertRegex(job.err, r"^hpclaunch: no connection from ranks 4-7 on n2: not started, or connections to 127\.0\.0\.1 port \d+ are refused or dropped\n")
            self.assertEqual(job.err.count("\n"), 1 if status == 0 else 2)

    def test_the_launcher_fails_alone(self):
        job = self.run_job(END + "sys.exit(9)")
        self.assertEqual([job.status, job.err], [9, "hpclaunch: other exited with status 9, but all ranks exited with 0\n"])

    def test_the_launcher_fails_at_the_start(self):
        job = self.run_job("err('no such queue\\n')\nsys.exit(3)", "--here")
        self.assertEqual([job.status, job.err], [125, "no such queue\nhpclaunch: no rank has started\nhpclaunch: other exited with status 3\n"])
        job = self.run_job("sys.exit(3)")  # on another machine the ranks may have run, and not reached us
        self.assertEqual(job.status, 3)
        self.assertIn("hpclaunch: no connection from ranks 0-3 on n1, ranks 4-7 on n2: not started, or connections to ", job.err)

    def test_the_launcher_is_killed(self):
        job = self.job(BEGIN + "end(0)\nhold()\nready()\ntime.sleep(1000)").until_ready()
        os.kill(job.launcher(), signal.SIGKILL)
        job.wait()
        self.assertEqual(job.status, 137)
        self.assertEqual(job.err, "hpclaunch: no exit status from ranks 1-3 on n1, ranks 4-7 on n2: killed later, or node lost\n"
                                  "hpclaunch: other was stopped by SIGKILL (signal 9)\n")

    def test_no_launcher(self):
        for path, text in (("/no/launcher", "No such file"), ("/etc/passwd", "Permission denied")):
            done = subprocess.run([DRIVER, path], stderr=subprocess.PIPE, timeout=LIMIT)
            self.assertEqual(done.returncode, 125)
            self.assertIn(text.encode(), done.stderr)

    def test_where_the_monitors_connect(self):
        os.environ["HPCLAUNCH_CHANNEL"] = "of a launch around this one"
        self.addCleanup(os.environ.pop, "HPCLAUNCH_CHANNEL")
        seen = [self.run_job("print(os.environ['HPCLAUNCH_CHANNEL'])\nend(0)", layout="1").out for _ in range(2)]
        self.assertRegex(seen[0], r"^1\.[0-9A-F]{16}\.[0-9A-F]{32}\.[0-9A-F]{4}\.7F000001\n$")
        self.assertNotEqual(*(one.split(".")[2] for one in seen))

    def test_too_few_descriptors(self):
        """The job goes on, and the launcher alone says how it went."""
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        for status in 0, 3:
            job = self.run_job("print(os.environ.get('HPCLAUNCH_CHANNEL'))\nsys.exit(%d)" % status, preexec_fn=few)
            self.assertEqual([job.status, job.out], [status, "None\n"])
            self.assertEqual(job.err, "hpclaunch: 2 nodes need 66 open files, 64 are allowed: the job continues unsupervised\n"
                                      "hpclaunch: try: raise the hard limit (ulimit -Hn)\n"
                                      + "hpclaunch: other exited with status 3\n" * (status == 3))

    def test_the_launcher_has_our_limit_of_descriptors(self):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (50, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        job = self.run_job("import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n" + END, preexec_fn=few)
        self.assertEqual([job.status, job.out, job.err], [0, "50\n", ""])


class Releases(Test):
    """A monitor exits when it is released, and only then the launcher knows of its rank's end."""

    SCRIPT = """
seen = []
def until_released(*wanted):
    for node, what, rank, number in heard():
        if what == SIGNAL: seen.append('signal %d' % number) if node == 0 else None
        if what == RELEASE: seen.append('release %d' % rank)
        if all('release %d' % rank in seen for rank in wanted): return
"""

    IGNORES = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"  # it is next to be ended

    def test_who_ended_well_goes_at_once(self):
        job = self.run_job(self.SCRIPT + BEGIN + "end(1)\nuntil_released(1)\nend(0)\nuntil_released(0)\nprint(seen)", layout="2")
        self.assertEqual([job.status, job.out], [0, "['release 1', 'release 0']\n"])

    def test_who_failed_goes_when_the_others_had_their_time(self):
        job = self.run_job(self.SCRIPT + BEGIN + """
end(1, 'exit=7')
until_signal(signal.SIGTERM)
end(0, 'signal=15 sent=15')
until_released(0, 1)
print(sorted(seen))
sys.exit(15)
""", layout="2")
        self.assertEqual([job.status, job.out], [7, "['release 0', 'release 1']\n"])
        self.assertIn("hpclaunch: stopped 1 other rank\n", job.err)

    def test_who_does_not_end_gets_kill_and_then_the_launcher_may_know(self):
        job = self.run_job(self.IGNORES + self.SCRIPT + BEGIN + "end(1, 'exit=7')\nuntil_released(1)\nprint(seen)\nsys.exit(9)", "--grace", "0.2", layout="2")
        self.assertEqual([job.status, job.out], [7, "['signal 15', 'signal 9', 'release 1']\n"])

    def test_an_end_that_comes_late_is_released_too(self):
        job = self.run_job(self.IGNORES + self.SCRIPT + BEGIN + "end(1, 'exit=7')\nuntil_released(1)\nend(0, 'signal=9 sent=9')\nuntil_released(0)\nsys.exit(9)",
                           "--grace", "0.2", "--launcher", "other", layout="2")
        self.assertEqual([job.status, job.said], [7, "ok 0 failed 1 ended 1 launcher-exit 9 first 1"])

    def test_a_rank_that_begins_after_the_signal_gets_it(self):
        job = self.run_job("begin(0)\nbegin(1)\nend(0, 'exit=7')\nuntil_signal(signal.SIGTERM)\nbegin(2)\nuntil_signal(signal.SIGTERM)\n"
                           "end(1, %s)\nend(2, %s)\nsys.exit(7)" % (STOPPED, STOPPED), layout="2,1")
        self.assertEqual([job.status, job.said], [7, "ok 0 failed 1 ended 2 launcher-exit 7 first 0"])


class Output(Test):
    def test_everything_passes_in_its_order(self):
        """Both streams in one file, as they come."""
        with tempfile.TemporaryFile() as file:
            job = self.run_job("for i in range(5000):\n    os.write(1, b'line %d \\xff\\0\\n' % i)\n    os.write(2, b'@hpclaunch rank=1 no\\r')\n"
                               "os.write(2, b'no newline')\n" + END, stdout=file, stderr=file)
            file.seek(0)
            self.assertEqual(job.status, 0)
            self.assertEqual(file.read(), b"".join(b"line %d \xff\0\n@hpclaunch rank=1 no\r" % i for i in range(5000)) + b"no newline")

    def test_a_report_begins_its_own_line(self):
        with tempfile.TemporaryFile("w+") as file:
            self.run_job("err('45%')\nend(1, 'exit=3')\nsys.exit(3)", stderr=file, layout="2")
            file.seek(0)
            self.assertRegex(file.read(), "^45%\nhpclaunch: rank 1 failed first: ")

    def test_a_reader_of_stderr_that_leaves_does_not_end_the_job(self):
        reader, writer = os.pipe()
        job = self.job("ready()\ngate()\nend(1, 'exit=3')\nend(0)\nprint('end', flush=True)\nsys.exit(3)", stderr=writer, layout="2")
        os.close(writer)
        job.until_ready()
        os.close(reader)
        job.open_gate()
        job.wait()
        self.assertEqual([job.status, job.out], [3, "end\n"])

    READER = "hpclaunch: the reader of standard output has exited (SIGPIPE); no rank failed before\n"

    def unread(self, script, *args, **options):
        """A job whose output is read up to its third byte."""
        reader, writer = os.pipe()
        job = self.job(BEGIN + "hold()\nos.write(1, b'yy')\n" + script, *args, stdout=writer, **options)
        os.close(writer)
        os.read(reader, 2)
        os.close(reader)
        job.open_gate()
        return job.wait()

    def test_a_reader_of_stdout_that_leaves_is_named(self):
        """However the launcher ends then."""
        floods = "while True: os.write(1, b'y' * 99 + b'\\n')"
        for name, script in (("killed by the signal", "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n" + floods),
                             ("exits", "try:\n    %s\nexcept OSError: os._exit(255)" % floods)):
            job = self.unread("gate()\n" + script)
            self.assertEqual([job.status, job.err.splitlines(True)[0]], [141, self.READER], name)
            self.assertNotIn("failed first", job.err)
        job = self.unread("gate()\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\n" + floods, stderr=subprocess.STDOUT)
        self.assertEqual(job.status, 141)

    def test_what_failed_before_the_reader_left_is_named(self):
        job = self.unread("end(5, 'exit=7')\nuntil_signal(signal.SIGTERM)\ngate()\ntry: os.write(1, b'y')\nexcept OSError: os._exit(255)")
        self.assertEqual(job.status, 7)
        self.assertIn("rank 5 failed first: ", job.err)

    def test_a_log_that_cannot_be_written_is_no_success(self):
        lost = BEGIN + "[channel(rank).log(rank, 28) for rank in (6, 5)]\n"
        said = "hpclaunch: cannot write logs/rank-6.log on n2: No space left on device; the job continues without this log\n"
        job = self.run_job(lost + END, "--log-dir", "logs")
        self.assertEqual([job.status, job.err], [125, said])
        job = self.run_job(lost + "[end(rank, 'exit=%d' % (rank == 3)) for rank in ranks]", "--log-dir", "logs")
        self.assertEqual([job.status, job.err.count("cannot write")], [1, 1])

    def test_what_comes_twice_adds_nothing(self):
        job = self.run_job("[begin(rank) for rank in (0, 4, 4)]\nend(1, tail=['x'])\nbegin(0)\n" + END + "begin(1)\nend(1, 'exit=4', tail=['y'])")
        self.assertEqual([job.status, job.err], [0, ""])

    def test_an_open_stderr_that_nobody_ends_is_not_waited_for(self):
        with tempfile.TemporaryFile() as file:
            job = self.run_job(END + "subprocess.Popen(['/bin/sleep', '1000'], start_new_session=True)", stdout=file, stderr=file)
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
            job = self.run_job(self.DAEMON + "daemon(%s)\n" % ignore + END)
            self.assertEqual(job.status, 0)
            self.gone(job)

    def test_hpclaunch_is_killed(self):
        job = self.job(BEGIN + "ready()\ntime.sleep(1000)").until_ready()
        job.process.kill()
        job.wait()
        self.gone(job)

    def test_a_launcher_that_does_not_end(self):
        job = self.run_job("signal.signal(signal.SIGTERM, lambda *a: os._exit(0))\n" + END + "time.sleep(1000)", "--grace", "0.2")
        self.assertEqual([job.status, job.err], [0, "hpclaunch: other did not exit; stopped it\n"])

    def test_a_launcher_that_ignores_term_after_a_failure(self):
        job = self.run_job("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + BEGIN + "end(2, 'exit=5')\ntime.sleep(1000)", "--launcher", "hydra", "--grace", "0.2")
        self.assertEqual(job.status, 5)
        self.assertIn("rank 2 failed first", job.err)
        self.assertIn("hydra did not exit; stopped it", job.err)
        self.assertIn("launcher-signal 9", job.said)


class Signals(Test):
    """They go to the ranks over the channel, as they are; to the launcher only while no rank has begun."""

    SCRIPT = """
ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
for number in ENDS + (signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, lambda n, frame: note("launcher " + signal.Signals(n).name))
[begin(rank) for rank in ranks]
ready()
for node, what, rank, number in heard():
    if what != SIGNAL or node != 0 or rank > 0: continue
    note(signal.Signals(number).name)
    if number in ENDS:
        [end(rank, 'signal=%d sent=%d' % (number, number)) for rank in ranks]
        os._exit(1)
"""
    IGNORES = BEGIN + """
ready()
for node, what, rank, number in heard():
    if what == SIGNAL and node == 0 and rank <= 0: note(signal.Signals(number).name)
"""

    def sent(self, number, *args):
        job = self.job(self.SCRIPT, *args).until_ready()
        job.process.send_signal(number)
        return job

    def test_term(self):
        job = self.sent(signal.SIGTERM).wait()
        self.assertEqual([job.status, job.read(job.notes)], [143, "SIGTERM\n"])
        self.assertEqual(job.err, "hpclaunch: sent SIGTERM to the ranks; no rank failed before\n")

    def test_every_launcher(self):
        for launcher in "slurm", "hydra", "flux", "prrte":
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
                job = self.sent(number, "--launcher", launcher).wait()
                self.assertEqual([job.status, job.read(job.notes)], [128 + number, signal.Signals(number).name + "\n"], launcher)
                self.assertIn("; no rank failed before\n", job.err)
                self.assertNotIn("failed first", job.err)

    def test_a_signal_that_ends_nothing(self):
        for launcher in "slurm", "hydra":
            job = self.sent(signal.SIGUSR2, "--launcher", launcher)
            job.until(lambda: job.read(job.notes) == "SIGUSR2\n", "USR2")
            job.process.send_signal(signal.SIGUSR1)
            job.until(lambda: job.read(job.notes) == "SIGUSR2\nSIGUSR1\n", "USR1")
            job.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait().status, 143)
            self.assertNotIn("USR", job.err)

    def test_before_a_rank_has_begun_the_launcher_gets_it(self):
        job = self.job("def term(*a):\n    note('launcher SIGTERM')\n    os._exit(1)\nsignal.signal(signal.SIGTERM, term)\nready()\ntime.sleep(1000)").until_ready()
        job.process.send_signal(signal.SIGTERM)
        job.wait()
        self.assertEqual([job.status, job.read(job.notes)], [143, "launcher SIGTERM\n"])
        self.assertTrue(job.err.startswith("hpclaunch: sent SIGTERM to the ranks; no rank failed before\n"), job.err)

    def test_the_first_signal_that_ends_programs_counts(self):
        job = self.job(self.IGNORES + "    if what == SIGNAL and number == signal.SIGTERM: os._exit(7)").until_ready()
        for number in signal.SIGINT, signal.SIGUSR1:
            job.process.send_signal(number)
            job.until(lambda: signal.Signals(number).name in job.read(job.notes), "the signal")
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait().status, 130)
        self.assertIn("hpclaunch: interrupted (Ctrl-C); no rank failed before\n", job.err)

    def test_a_failure_before_the_signal_is_named(self):
        """Also where its end is still unread."""
        job = self.job(BEGIN + "ready()\ngate()\nend(5, 'exit=7')\nready('3')\nuntil_signal(signal.SIGTERM)\n"
                       "[end(rank, %s) for rank in ranks if rank != 5]\nos._exit(1)" % STOPPED).until_ready()
        job.process.send_signal(signal.SIGSTOP)
        job.until(lambda: job.state() == "T", "stopped")
        job.open_gate()
        job.until_ready("3")
        job.process.send_signal(signal.SIGTERM)
        job.process.send_signal(signal.SIGCONT)
        self.assertEqual(job.wait().status, 7)
        self.assertIn("hpclaunch: rank 5 failed first: ", job.err)
        self.assertIn("hpclaunch: sent SIGTERM to the ranks\n", job.err)
        self.assertIn("first 5", job.said)

    def test_a_batch_system_signals_the_ranks_itself(self):
        """Those that say so do not get it again."""
        with open("/proc/self/comm") as file:
            daemon = file.read().strip()
        job = self.job(BEGIN + """
for rank in (0, 1, 2, 3, 6): channel(rank).signalled(rank, signal.SIGTERM)
ready()
got = set()
for node, what, rank, number in heard():
    if what != SIGNAL: continue
    note('%s %d' % (signal.Signals(number).name, rank))
    got.add(rank)
    if len(got) == 3: break
[end(rank, 'signal=15 sent=15') for rank in ranks]
os._exit(1)
""", "--daemon", daemon).until_ready()
        job.process.send_signal(signal.SIGTERM)
        job.wait()
        self.assertEqual([job.status, job.read(job.notes)], [143, "SIGTERM 4\nSIGTERM 5\nSIGTERM 7\n"])

    def test_a_whole_group_is_signalled_and_the_ranks_hear_it_once(self):
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
        notes = job.read(job.notes).splitlines()  # the launcher's own one is the terminal's
        self.assertEqual([job.status, notes.count("SIGINT")], [130, 1])
        self.assertLessEqual(notes.count("launcher SIGINT"), 1)

    def test_a_second_int_does_not_wait_for_the_grace_period(self):
        job = self.job(self.IGNORES, "--grace", "9999").until_ready()
        job.process.send_signal(signal.SIGINT)
        job.until(lambda: job.read(job.notes), "INT")
        job.process.send_signal(signal.SIGINT)
        job.wait()
        self.assertEqual([job.status, job.read(job.notes)], [130, "SIGINT\nSIGKILL\n"])

    def test_grace_after_a_signal(self):
        job = self.job("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + self.IGNORES, "--grace", "0.2", "--launcher", "hydra").until_ready()
        job.process.send_signal(signal.SIGTERM)
        job.wait()
        self.assertEqual([job.status, job.read(job.notes)], [143, "SIGTERM\nSIGKILL\n"])

    def test_a_signal_after_the_launch_does_not_replace_its_status(self):
        fifo = os.path.join(self.place.name, "fifo")
        os.mkfifo(fifo)
        for ends, status in (("end(1, 'exit=3')\nend(0)\nsys.exit(3)", 3), (END, 0)):
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
        job.process.send_signal(signal.SIGTSTP)
        job.until(lambda: job.state() == "T", "stopped")
        job.process.send_signal(signal.SIGCONT)
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait().status, 143)


if __name__ == "__main__":
    sys.exit(allowed.run())
