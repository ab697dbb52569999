#!/usr/bin/env python3
"""hpclaunch-stacks on living processes: stacks_test.py STACKS none|musl|glibc|checked

A process is ready when its snapshot says so: nothing here depends on how long anything takes.
"""
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import allowed  # noqa: E402

LIMIT = 120  # seconds; a hang is a failure
STACKS, LIBC = os.path.abspath(sys.argv[1]), sys.argv[2]
NOBODY = 65534
ROOT = os.geteuid() == 0
OLDEST, NEWEST = 9, 14


def is_program(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\177ELF"


def interpreters():
    """One for each minor version that is at hand, as {minor: path}, and those that are linked in another way."""
    found = {}
    home = os.path.expanduser("~/.pyenv/versions/3.*/bin/python3.*")
    for path in [sys.executable, *(folder + "/python3.%d" % minor for minor in range(6, 16) for folder in ("/usr/bin", "/usr/local/bin")), *sorted(glob.glob(home))]:
        path = os.path.realpath(path)
        match = re.search(r"/python3\.(\d+)$", path)
        if match and os.path.exists(path) and is_program(path):
            found.setdefault((int(match[1]), path.startswith("/usr/")), path)
    return {key: path for key, path in sorted(found.items())}


PYTHONS = interpreters()
WALKED = {key: path for key, path in PYTHONS.items() if OLDEST <= key[0] <= NEWEST}


# One that every user may run.
OPEN = next((path for path in WALKED.values() if not ROOT or os.path.realpath(path).startswith("/usr/")), None)


def unescape(field):
    """Bytes, or None."""
    if field == b"-":
        return None
    return re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), field)


class Record:
    """A snapshot: processes by number, each with threads by number, each with frames (line, function, file)."""

    def __init__(self, text):
        self.text = text
        self.processes, self.cut = {}, []
        lines = text.split(b"\n")
        assert lines[-1] == b"" and lines[-2] == b"end", text[-200:]
        assert re.fullmatch(rb"stacks\t1\t\d{13}", lines[0]), lines[0]
        process = thread = None
        for line in lines[1:-2]:
            kind, *fields = line.split(b"\t")
            assert not re.search(rb"[\x00-\x1f\x7f]", b"".join(fields)), line
            b"".join(fields).decode("utf-8")
            words = [unescape(field) for field in fields]
            if kind == b"process":
                assert len(words) == 9, line
                process = dict(zip("pid parent state cpu switches bytes python name command".split(), words), threads={}, unread=None, sockets=[], cut=[])
                self.processes[int(words[0])] = process
            elif kind == b"unread":
                (process["unread"],) = words
            elif kind == b"thread":
                assert len(words) == 10, line
                thread = dict(zip("tid state main cpu switches wchan call waits gil name".split(), words), frames=[], cut=[])
                process["threads"][int(words[0])] = thread
            elif kind == b"socket":
                assert len(words) == 2, line
                process["sockets"].append(words)
            elif kind == b"frame":
                assert len(words) == 3, line
                thread["frames"].append((int(words[0]), *((word or b"").decode("utf-8", "surrogateescape") for word in words[1:])))
            elif kind == b"cut":
                self.cut.append(words[0].decode())
                (thread or process)["cut"].append(words[0].decode())
            else:
                raise AssertionError(line)


def execute(pid, *options, **more):
    return subprocess.run([STACKS, *options, str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT, **more)


def snapshot(pid, *options, **more):
    done = execute(pid, *options, **more)
    assert (done.returncode, done.stderr) == (0, b""), done
    return Record(done.stdout)


def as_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return file.read().split()


class Case(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = held.name
        os.chmod(self.folder, 0o755)

    def start(self, *words, **more):
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **more)
        self.addCleanup(self.stop, child)
        return child.pid

    @staticmethod
    def stop(child):
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()

    def python(self, text, path=None, interpreter=sys.executable, name="train.py", words=(), **more):
        """Starts a program of this text, and keeps where it has "# NAME"."""
        program = os.path.join(self.folder, name)
        text = textwrap.dedent(text)
        with open(program, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        self.program = program
        self.lines = {match[1]: number for number, line in enumerate(text.split("\n"), 1) for match in re.finditer(r"# (\w+)$", line)}
        return self.start(interpreter, "-I", program, *words, **more)

    def until(self, pid, good, *options, **more):
        """The first snapshot that is good."""
        end = time.monotonic() + LIMIT
        while True:
            last = snapshot(pid, *options, **more)
            if pid in last.processes and good(last.processes[pid]):
                return last
            self.assertLess(time.monotonic(), end, last.text[:3000].decode())
            time.sleep(0.01)

    def main(self, pid, *options, at=None, **more):
        """The main thread, once it waits for something, with its innermost frame of the program at a mark."""
        def good(process):
            thread = process["threads"].get(pid)
            if at is not None:
                return thread and thread["waits"] and [line for line, _, file in thread["frames"] if file == self.program][:1] == [self.lines[at]]
            return thread and thread["waits"]
        return self.until(pid, good, *options, **more).processes[pid]["threads"][pid]


NESTED = '''
    import asyncio, time
    class Loader:
        def __init__(self):
            self.turn = 0
        def step(self, depth):
            if depth:
                return self.step(depth - 1)  # recursion
            return [self.read(i) for i in range(1)]  # list
        def read(self, _):
            for value in self.values():  # loop
                return value
        def values(self):
            yield from (time.sleep(  # sleep
                1000) for _ in (1,))
    %s
    def très_long():
        try:
            raise ValueError
        except ValueError:
            return (lambda: Loader().step(
                2  # inner
            ))()  # outer
    async def train():
        return très_long()  # coroutine
    asyncio.run(train())  # module
''' % ("\n" * 400)


class Interpreters(Case):
    """Each that is here: the frames are those that Python itself would print."""

    def test_frames(self):
        for (minor, _), path in WALKED.items():
            with self.subTest(path):
                pid = self.python(NESTED, interpreter=path)
                thread = self.main(pid, at="sleep")
                mine = [(line, name.split(".")[-1]) for line, name, file in thread["frames"] if file == self.program]
                at = self.lines
                want = [(at["sleep"], "<genexpr>"), (at["sleep"], "values"), (at["loop"], "read")]
                want += [(at["list"], "<listcomp>")] if minor < 12 else []
                want += [(at["list"], "step"), (at["recursion"], "step"), (at["recursion"], "step")]
                self.assertEqual(mine[:len(want)], want)
                rest = mine[len(want):]
                self.assertEqual([name for _, name in rest], ["<lambda>", "très_long", "train", "<module>"])
                self.assertEqual([line for line, _ in rest[2:]], [at["coroutine"], at["module"]])
                self.assertIn("asyncio/base_events.py", "".join(file for _, _, file in thread["frames"]))
                if minor >= 11:
                    self.assertIn("Loader.values.<locals>.<genexpr>", thread["frames"][0])

    def test_as_python_prints_them(self):
        """Of a thread that another one looks at."""
        text = '''
            import sys, threading, json, os
            names = []
            class Reader(threading.Thread):
                def run(self):
                    with open(names[0]) as file:
                        return file.read(
                            )
            def wait(event):
                (lambda: event.wait(
                    None))()
            names.append(sys.argv[1])
            threads = [Reader(daemon=True), threading.Thread(target=wait, args=(threading.Event(),), daemon=True)]
            for thread in threads:
                thread.start()
            def frames(thread):
                at, found = sys._current_frames()[thread.ident], []
                while at:
                    code = at.f_code
                    found.append([at.f_lineno, getattr(code, "co_qualname", code.co_name), code.co_filename])
                    at = at.f_back
                return found
            while sys.stdin.readline():
                print(json.dumps({thread.native_id: frames(thread) for thread in threads}), flush=True)
        '''
        fifo = os.path.join(self.folder, "fifo")
        os.mkfifo(fifo)
        for path in WALKED.values():
            with self.subTest(path):
                program = os.path.join(self.folder, "train.py")
                with open(program, "w", encoding="utf-8") as file:
                    file.write(textwrap.dedent(text))
                with subprocess.Popen([path, "-I", program, fifo], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
                    try:
                        end = time.monotonic() + LIMIT
                        while True:
                            child.stdin.write(b"\n")
                            child.stdin.flush()
                            told = {int(tid): [tuple(frame) for frame in frames] for tid, frames in json.loads(child.stdout.readline()).items()}
                            seen = snapshot(child.pid).processes[child.pid]["threads"]
                            if {tid: seen[tid]["frames"] for tid in told if tid in seen} == told and all(one["waits"] for one in seen.values()):
                                break
                            self.assertLess(time.monotonic(), end, (told, seen))
                    finally:
                        child.kill()
                self.assertEqual(len(told), 2)
                self.assertEqual({one["waits"] for one in seen.values()}, {b"fifo " + fifo.encode(), b"futex", b"pipe"})

    def test_the_file_is_gone_and_its_name_says_nothing(self):
        """Symbols and version are in memory."""
        for (_, system), path in WALKED.items():
            if system and not re.search(r"/libpython3", subprocess.check_output(["ldd", path], universal_newlines=True)):
                copy = os.path.join(self.folder, "program")
                shutil.copy(path, copy)
                pid = self.python("import time\ntime.sleep(1000)  # sleep", interpreter=copy)
                self.main(pid, at="sleep")
                os.unlink(copy)
                self.assertEqual(self.main(pid, at="sleep")["frames"], [(self.lines["sleep"], "<module>", self.program)])

    def test_older(self):
        for (minor, _), path in PYTHONS.items():
            if minor < OLDEST:
                with self.subTest(path):
                    pid = self.start(path, "-c", "import time; time.sleep(1000)")
                    process = self.until(pid, lambda one: pid in one["threads"] and one["threads"][pid]["waits"] == b"sleep").processes[pid]
                    self.assertEqual(process["unread"], b"Python 3.%d is older than 3.9" % minor)
                    self.assertEqual(process["python"], b"3.%d" % minor)

    def test_forked(self):
        """The number of its thread is another one after fork(2)."""
        for path in WALKED.values():
            with self.subTest(path):
                pid = self.python("""
                    import os, time
                    def child():
                        time.sleep(1000)  # child
                    if os.fork() == 0:
                        child()
                    os.wait()  # parent
                """, interpreter=path)
                end = time.monotonic() + LIMIT
                while True:
                    seen = snapshot(pid)
                    at = [[frame[0] for frame in process["threads"][number]["frames"][:1]] for number, process in seen.processes.items()]
                    if at == [[self.lines["parent"]], [self.lines["child"]]]:
                        break
                    self.assertLess(time.monotonic(), end, seen.text[:3000].decode())
                (_, child) = seen.processes
                self.assertEqual(seen.processes[child]["parent"], b"%d" % pid)


class Threads(Case):
    def test_the_gil_is_held_in_c(self):
        for path in WALKED.values():
            with self.subTest(path):
                pid = self.python("""
                    import ctypes, threading
                    def count():
                        while True:
                            pass  # count
                    threading.Thread(target=count, daemon=True).start()
                    ctypes.PyDLL(None).sleep(1000)  # held
                """, interpreter=path)
                process = self.until(pid, lambda one: [thread["waits"] for thread in one["threads"].values()] == [b"sleep", b"futex"]).processes[pid]
                main = process["threads"].pop(pid)
                self.assertEqual((main["gil"], main["main"], main["frames"][0][0]), (b"gil", b"main", self.lines["held"]))
                (other,) = process["threads"].values()
                self.assertEqual((other["gil"], other["waits"], other["frames"][0][1]), (None, b"futex", "count"))

    def test_a_busy_loop(self):
        pid = self.python("""
            def spin(depth):
                while depth == 0:
                    pass
                spin(depth - 1)  # spin
            spin(5)  # module
        """)
        thread = self.until(pid, lambda one: [name for _, name, _ in one["threads"][pid]["frames"]] == ["spin"] * 6 + ["<module>"]).processes[pid]["threads"][pid]
        self.assertEqual(thread["frames"][1:], [(self.lines["spin"], "spin", self.program)] * 5 + [(self.lines["module"], "<module>", self.program)])
        self.assertLessEqual(set(thread["cut"]), {"changing"})

    def test_which_are_listed(self):
        text = """
            import threading, time
            from concurrent.futures import ThreadPoolExecutor
            from multiprocessing.pool import ThreadPool
            pools = [ThreadPoolExecutor(4), ThreadPool(3)]
            assert list(pools[0].map(abs, range(-9, 0))) == list(range(9, 0, -1))
            assert pools[1].map(abs, [-1]) == [1]
            def busy():
                time.sleep(1000)  # busy
            pools[0].submit(busy)
            pools[1].apply_async(busy)
            time.sleep(1000)  # main
        """
        for path in WALKED.values():
            with self.subTest(path):
                pid = self.python(text, interpreter=path)
                process = self.until(pid, lambda one: [thread["waits"] for thread in one["threads"].values()] == [b"sleep"] * 3).processes[pid]
                self.assertEqual(sorted(thread["frames"][0][0] for thread in process["threads"].values()),
                                 [self.lines["busy"], self.lines["busy"], self.lines["main"]])
                everything = snapshot(pid, "--all-threads").processes[pid]["threads"]
                self.assertEqual(set(everything), {int(tid) for tid in os.listdir("/proc/%d/task" % pid)})
                self.assertGreaterEqual(len(everything), 8)

    def test_a_hundred_thousand_frames(self):
        pid = self.python("""
            import sys, threading, time
            sys.setrecursionlimit(200000)
            threading.stack_size(1 << 29)
            def deep(n):
                if n == 0:
                    time.sleep(1000)  # deepest
                return deep(n - 1)  # deep
            thread = threading.Thread(target=deep, args=(100000,), daemon=True)
            thread.start()
            thread.join()
        """)
        deepest = ("deepest", "time")
        def good(process):
            return any(thread["frames"] and thread["frames"][0][0] == self.lines[deepest[0]] for thread in process["threads"].values())
        threads = self.until(pid, good).processes[pid]["threads"]
        (thread,) = [thread for tid, thread in threads.items() if tid != pid]
        self.assertEqual(len(thread["frames"]), 200)
        self.assertEqual({frame[0] for frame in thread["frames"][1:]}, {self.lines["deep"]})
        self.assertEqual(thread["cut"], ["frames"])

    def test_more_threads_than_are_listed(self):
        pid = self.python("""
            import _thread, time
            _thread.stack_size(1 << 16)
            for i in range(599):
                _thread.start_new_thread(time.sleep, (1000,))
            time.sleep(1000)  # all
        """)
        self.main(pid, at="all")
        seen = snapshot(pid, "--all-threads", "--most", str(1 << 20))
        self.assertEqual((len(seen.processes[pid]["threads"]), seen.cut), (512, ["threads"]))

    def test_names_of_threads(self):
        names = [b"a b\tc\nd\\e\x1b", b"-", "é".encode(), b"\xff) S 1", b"((("]
        pid = self.python("""
            import ctypes, sys, threading, time, os
            libc = ctypes.CDLL(None)
            def named(name):
                libc.prctl(15, name, 0, 0, 0)
                time.sleep(1000)  # named
            for name in sys.argv[1:]:
                threading.Thread(target=named, args=(os.fsencode(name),), daemon=True).start()
            time.sleep(1000)
        """, words=names)
        seen = self.until(pid, lambda one: [thread["waits"] for thread in one["threads"].values()] == [b"sleep"] * (len(names) + 1))
        self.assertEqual({thread["name"] for tid, thread in seen.processes[pid]["threads"].items() if tid != pid}, set(names))
        self.assertIn(b"\t\\x2d\n", seen.text)


class Names(Case):
    def test_hostile_names(self):
        """Of files, functions and the command: tabs, newlines, escapes, what is no UTF-8, and 100,000 characters."""
        hostile = "/tmp/\t\n\\\x1b[31m\udcff\U0001f600-é\u4e2d"
        for path in WALKED.values():
            with self.subTest(path):
                pid = self.python("""
                    import time, types
                    hostile = %r
                    code = compile("import time\\ndef f():\\n  time.sleep(1000)\\ndef g():\\n  f()\\n", hostile, "exec")
                    space = {}
                    exec(code, space)
                    def renamed(function, name):
                        new = {"co_name": name, "co_qualname": name} if hasattr(code, "co_qualname") else {"co_name": name}
                        function.__code__ = function.__code__.replace(**new)
                    renamed(space["f"], "-")
                    renamed(space["g"], "x" * 100000)
                    space["g"]()
                """ % hostile, interpreter=path)
                thread = self.until(pid, lambda one: one["threads"][pid]["waits"] == b"sleep" and len(one["threads"][pid]["frames"]) == 3).processes[pid]["threads"][pid]
                self.assertEqual(thread["frames"][0], (3, "-", hostile))
                self.assertEqual(thread["frames"][1], (5, "x" * 512 + "...", hostile))

    def test_the_command(self):
        pid = self.start(sys.executable, "-c", "import time; time.sleep(1000)", "a b", "\t", "x" * 1000)
        process = self.until(pid, lambda one: one["python"]).processes[pid]
        self.assertTrue(process["command"].startswith(sys.executable.encode() + b" -c import time; time.sleep(1000) a b \t xxx"))
        self.assertEqual(len(process["command"]), 256)


class Waits(Case):
    def check(self, text, *want, words=(), at="wait"):
        pid = self.python("import sys, os, socket, time\n" + textwrap.dedent(text), words=words)
        thread = self.main(pid, at=at)
        if thread["waits"] is None or not any(re.fullmatch(one, thread["waits"].decode()) for one in want):  # on its way
            thread = self.until(pid, lambda one: any(re.fullmatch(pattern, (one["threads"][pid]["waits"] or b"").decode()) for pattern in want)).processes[pid]["threads"][pid]
        return thread

    def test_files(self):
        path = os.path.join(self.folder, "a b\nc")
        os.mkfifo(path)
        other = os.path.join(self.folder, "other")
        os.mkfifo(other)
        self.check("open(sys.argv[1])  # wait", "fifo " + re.escape(path), words=[path])
        keep = os.open(other, os.O_RDWR)
        self.addCleanup(os.close, keep)
        self.check("file = os.open(sys.argv[1], os.O_RDONLY)\nos.read(file, 1)  # wait", "fifo " + re.escape(other), words=[other])
        self.check("a, b = os.pipe()\nos.read(a, 1)  # wait", "pipe")
        self.check("a, b = os.pipe()\nos.write(b, bytes(1 << 20))  # wait", "pipe")

    def test_locks(self):
        path = os.path.join(self.folder, "lock")
        import fcntl
        with open(path, "w") as file, open(path + "2", "w") as second:
            fcntl.flock(file, fcntl.LOCK_EX)
            fcntl.lockf(second, fcntl.LOCK_EX)
            self.check("import fcntl\nfile = open(sys.argv[1], 'w')\nfcntl.flock(file, fcntl.LOCK_EX)  # wait", "lock " + re.escape(path), words=[path])
            self.check("import fcntl\nfile = open(sys.argv[1] + '2', 'w')\nfcntl.lockf(file, fcntl.LOCK_EX)  # wait", "lock " + re.escape(path) + "2", words=[path])

    def test_sockets(self):
        for family, host, shown in ((socket.AF_INET, "127.0.0.1", "127.0.0.1"), (socket.AF_INET6, "::1", "[::1]"), (socket.AF_INET6, "::ffff:127.0.0.1", "127.0.0.1")):
            with socket.socket(socket.AF_INET6 if ":" in shown else socket.AF_INET) as server:
                try:
                    server.bind((host.replace("::ffff:", "") if ":" not in shown else host, 0))
                except OSError:
                    continue  # no IPv6 here
                server.listen()
                port = server.getsockname()[1]
                connect = "one = socket.socket(%d)\none.connect(('%s', %d))\n" % (family, host, port)
                for wait in ("one.recv(1)", "import select; select.select([one], [], [])", "import select; p = select.poll(); p.register(one); p.modify(one, select.POLLIN); p.poll()"):
                    self.check(connect + wait + "  # wait", re.escape("tcp %s:%d" % (shown, port)))
        pid = self.python("import socket, time\na = socket.create_server(('127.0.0.1', 0))\nb = socket.create_connection(a.getsockname())\nc = a.accept()\ntime.sleep(1000)  # wait")
        self.main(pid, at="wait")
        sockets = {tuple(one) for one in snapshot(pid).processes[pid]["sockets"]}
        (listens,) = [own for own, peer in sockets if peer is None]
        (other,) = [own for own, peer in sockets if peer == listens]
        self.assertEqual(sockets, {(listens, None), (other, listens), (listens, other)})
        self.check("one = socket.create_server(('127.0.0.1', 0))\none.accept()  # wait", r"listen 127\.0\.0\.1:\d+")
        self.check("a, b = socket.socketpair()\na.recv(1)  # wait", "unix")
        self.check("a = socket.socket(type=socket.SOCK_DGRAM)\na.bind(('127.0.0.1', 0))\na.recv(1)  # wait", "udp")

    def test_others(self):
        pid = self.python("import os\npid = os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '1000')\nos.waitpid(pid, 0)  # wait")
        thread = self.main(pid, at="wait")
        child = max(snapshot(pid).processes)
        self.assertEqual(thread["waits"], b"child %d" % child)
        self.check("import threading\nthreading.Lock().acquire() and time.sleep(1000)  # wait", "sleep")
        self.check("import select\nselect.epoll().poll()  # wait", "epoll")
        self.check("lock = __import__('_thread').allocate_lock()\nlock.acquire()\nlock.acquire()  # wait", "futex")
        self.check("a = os.open('/dev/null', os.O_RDONLY)\nimport select\nselect.select([], [], [], 1000)  # wait", "sleep")


class Rights(Case):
    SLEEP = "import time\ntime.sleep(1000)  # sleep\n"

    @unittest.skipUnless(ROOT and OPEN, "needs root, to become another user, and a Python that others may run")
    def test_as_an_ordinary_user(self):
        pid = self.python(self.SLEEP, interpreter=OPEN, preexec_fn=as_nobody)
        thread = self.main(pid, at="sleep", preexec_fn=as_nobody)
        self.assertEqual((thread["waits"], thread["state"], len(thread["frames"])), (b"sleep", b"S", 1))

    @unittest.skipUnless(ROOT, "needs root to become another user")
    def test_of_another_user(self):
        pid = self.python(self.SLEEP)
        self.main(pid, at="sleep")
        process = snapshot(pid, preexec_fn=as_nobody).processes[pid]
        self.assertEqual((process["unread"], process["python"]), (b"it belongs to another user", None))
        self.assertEqual((process["threads"][pid]["state"], process["threads"][pid]["frames"]), (b"S", []))

    @unittest.skipUnless(OPEN, "needs a Python that others may run")
    def test_undumpable(self):
        who = as_nobody if ROOT else None
        pid = self.python("import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n" + self.SLEEP, interpreter=OPEN, preexec_fn=who)
        process = self.until(pid, lambda one: one["unread"] == b"it is undumpable", preexec_fn=who).processes[pid]
        self.assertEqual((process["threads"][pid]["state"] in (b"S", b"R"), process["threads"][pid]["frames"]), (True, []))

    def filtered(self, *numbers):
        """The process as it is seen where these calls are forbidden."""
        pid = self.python(self.SLEEP)
        self.main(pid, at="sleep")

        def forbid():
            rows = []
            for number in numbers:  # of pread, those of a page: the program's own start reads other sizes
                size = [(0x20, 0, 0, 32), (0x15, 0, 1, 4096)] if number != numbers[0] else []
                rows += [(0x20, 0, 0, 0), (0x15, 0, 1 + len(size), number), *size, (0x06, 0, 0, 0x00050001)]
            rows.append((0x06, 0, 0, 0x7fff0000))
            buffer = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in rows))
            filters = struct.pack("HxxxxxxP", len(rows), ctypes.addressof(buffer))
            library = ctypes.CDLL(None)
            library.prctl(38, 1, 0, 0, 0)
            assert library.prctl(22, 2, filters, 0, 0) == 0
        process = snapshot(pid, preexec_fn=forbid).processes[pid]
        return process["unread"], process["threads"][pid]["waits"], [frame[0] for frame in process["threads"][pid]["frames"]]

    def test_the_call_is_filtered(self):
        """As Yama or a container may forbid it: then by the file of its memory, and not at all where that is forbidden as well."""
        readv, pread = {"x86_64": (310, 17), "aarch64": (270, 67)}[os.uname().machine]
        self.assertEqual(self.filtered(readv), (None, b"sleep", [self.lines["sleep"]]))
        self.assertEqual(self.filtered(readv, pread), (b"its memory cannot be read (Operation not permitted)", b"sleep", []))

    def test_stopped(self):
        pid = self.python(self.SLEEP)
        self.main(pid, at="sleep")
        os.kill(pid, signal.SIGSTOP)
        process = self.until(pid, lambda one: one["state"] == b"T").processes[pid]
        self.assertEqual([frame[0] for frame in process["threads"][pid]["frames"]], [self.lines["sleep"]])
        os.kill(pid, signal.SIGCONT)
        self.until(pid, lambda one: one["state"] == b"S")

    @allowed.needs("processes")
    def test_in_a_container(self):
        """Its own processes, mounts and user; its threads have other numbers inside."""
        words = allowed.TRIALS["processes"][1][:-1]
        text = textwrap.dedent("""
            import threading, time
            def inside():
                time.sleep(1000)
            threading.Thread(target=inside).start()
            time.sleep(1000)
        """)
        for path in WALKED.values():
            with self.subTest(path):
                pid = self.start(*words, path, "-I", "-c", text)
                end = time.monotonic() + LIMIT
                while True:
                    seen = snapshot(pid)
                    inner = [one for one in seen.processes.values() if one["python"]]
                    frames = [thread["frames"] for one in inner for thread in one["threads"].values()]
                    if len(frames) == 2 and all(frames) and frames[0][0][0] == 6 and frames[1][0][0] == 4:
                        break
                    self.assertLess(time.monotonic(), end, seen.text[:3000].decode())
                self.assertEqual(len(seen.processes), 2)


class Processes(Case):
    def test_workers(self):
        """Of a loader of data, forked and spawned."""
        pid = self.python("""
            import multiprocessing, time
            def fetch(n):
                time.sleep(1000)  # fetch
            if __name__ == "__main__":
                for method in "fork", "spawn":
                    for i in range(2):
                        multiprocessing.get_context(method).Process(target=fetch, args=(i,), daemon=True).start()
                time.sleep(1000)  # main
        """)
        end = time.monotonic() + LIMIT
        while True:
            seen = snapshot(pid)
            at = [thread["frames"][0][0] for process in seen.processes.values() for thread in process["threads"].values() if thread["frames"]]
            if at.count(self.lines.get("fetch")) == 4 and self.lines["main"] in at:
                break
            self.assertLess(time.monotonic(), end, seen.text[:3000].decode())
        self.assertEqual(next(iter(seen.processes)), pid)

    def test_more_than_are_read(self):
        pid = self.start("/bin/sh", "-c", "for i in $(seq 70); do sleep 1000 & done; wait")
        seen = self.until(pid, lambda _: len(children(pid)) == 70)
        seen = snapshot(pid)
        self.assertEqual((len(seen.processes), seen.cut), (64, ["processes"]))
        self.assertEqual(seen.processes[pid]["unread"], None)

    def test_what_belongs_to_it(self):
        """A process beside it, as of a container that its engine does not keep below itself."""
        pid, other = self.start("/bin/sleep", "1000"), self.start("/bin/sh", "-c", "sleep 1000 & wait")
        self.until(other, lambda _: children(other))
        seen = Record(execute(pid, str(other)).stdout)
        self.assertEqual(list(seen.processes), [other, pid, *map(int, children(other))])  # the helper puts its PID last

    def test_most_bytes(self):
        pid = self.start("/bin/sh", "-c", "for i in $(seq 70); do sleep 1000 & done; wait")
        self.until(pid, lambda _: len(children(pid)) == 70)
        for most in 256, 1000, 4000:
            done = execute(pid, "--most", str(most))
            self.assertLessEqual(len(done.stdout), most)
            self.assertGreater(len(done.stdout), most - 300)
            self.assertEqual(Record(done.stdout).cut, ["bytes"])

    def test_no_process_and_wrong_words(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        self.assertEqual(execute(ended.pid).returncode, 1)
        for words in ([], ["0"], ["-1"], ["x"], ["--most", "1", "1"], ["--most", "1"], ["--what", "1"], ["--ras"], ["1x"]):
            done = subprocess.run([STACKS, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, b""), words)
            self.assertEqual(done.stderr, b"usage: hpclaunch-stacks [--all-threads] [--ras HOST:PORT] [--most BYTES] PID [PID...]\n")

    def test_a_dead_child(self):
        pid = self.python("import os, time\nif os.fork() == 0: os._exit(3)\ntime.sleep(1000)  # sleep")
        self.main(pid, at="sleep")
        end = time.monotonic() + LIMIT
        while True:
            seen = snapshot(pid)
            dead = [one for number, one in seen.processes.items() if number != pid]
            if [one["state"] for one in dead] == [b"Z"]:
                break
            self.assertLess(time.monotonic(), end, seen.text[:3000].decode())
        self.assertEqual((dead[0]["unread"], dead[0]["python"]), (None, None))


class Ras(Case):
    """A server that says what NCCL's does, and some that do not."""

    def answer(self, *answers, then=b"", family=socket.AF_INET, keep=False):
        """What the snapshot has, and what the server was told: an answer for each line, then text before the end."""
        pid = self.start("sleep", "1000")
        told = []
        with socket.socket(family) as server:
            server.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
            server.listen()
            port = server.getsockname()[1]

            def serve():
                peer, _ = server.accept()
                with peer, peer.makefile("rb") as lines:
                    for answer in answers:
                        told.append(lines.readline())
                        peer.sendall(answer)
                    if answers:
                        told.append(lines.readline())
                    try:
                        peer.sendall(then)
                    except OSError:
                        pass
                    while keep and lines.readline():
                        pass
            thread = threading.Thread(target=serve)
            thread.start()
            where = ("[::1]:%d" if family == socket.AF_INET6 else "localhost:%d") % port
            done = execute(pid, "--ras", where, "--most", str(1 << 22))
            thread.join(LIMIT)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        lines = done.stdout.split(b"\n")
        self.assertEqual(lines[-2:], [b"end", b""])
        return [unescape(line[4:]) for line in lines if line.startswith(b"ras\t")], told

    HELLO = b"SERVER PROTOCOL 2\n"

    def test_json_and_text(self):
        text = b'{"a": 1,\n\n "b": "x\ty\\"}'
        seen, told = self.answer(self.HELLO, b"OK\n", b"OK\n", then=text)
        self.assertEqual(told, [b"client protocol 2\n", b"timeout 1\n", b"set format json\n", b"verbose status\n"])
        self.assertEqual(b"\n".join(seen), text.replace(b"\n\n", b"\n"))
        seen, told = self.answer(self.HELLO, b"OK\n", b"ERROR: unknown command\n", then=b"NCCL version 2.24\n0 ranks\n", family=socket.AF_INET6)
        self.assertEqual(seen, [b"NCCL version 2.24", b"0 ranks"])
        seen, _ = self.answer(self.HELLO, b"OK\n", b"OK\n", then=b"x" * 200000 + b"\n")
        self.assertEqual([len(line) for line in seen], [200000])

    def test_what_is_no_answer(self):
        self.assertEqual(self.answer(b"HTTP/1.1 400\n")[0], [])
        self.assertEqual(self.answer()[0], [])
        self.assertEqual(self.answer(self.HELLO, keep=True)[0], [])  # for at most two seconds
        seen, _ = self.answer(self.HELLO, b"OK\n", b"OK\n", then=b"half", keep=True)
        self.assertEqual(seen, [b"half"])
        seen, _ = self.answer(self.HELLO, b"OK\n", b"OK\n", then=(b"x" * 99 + b"\n") * (1 << 16))
        self.assertLessEqual(sum(len(line) + 1 for line in seen), 1 << 18)
        pid = self.start("sleep", "1000")
        for where in ("localhost", "localhost:", "localhost:99999", "host:1", "1.2.3:4", "256.0.0.1:1", "1.2.3.4.5:6", "", "[::2]:3", "127.0.0.1:1"):
            self.assertNotIn(b"\nras", execute(pid, "--ras", where).stdout)


class C(Case):
    def test_threads(self):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            allowed.leave_out("no C compiler is here")
        source = os.path.join(self.folder, "ranks.c")
        with open(source, "w") as file:
            file.write(textwrap.dedent("""
                #define _GNU_SOURCE
                #include <pthread.h>
                #include <unistd.h>
                #include <stdio.h>
                static int ends[2];
                static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
                static void* reads(void* x) { char c; pthread_setname_np(pthread_self(), "reader"); return (void*)read(ends[0], &c, 1); }
                static void* locks(void* x) { pthread_setname_np(pthread_self(), "locker"); pthread_mutex_lock(&lock); return x; }
                static void* spins(void* x) { pthread_setname_np(pthread_self(), "spinner"); for (;;) __asm__ volatile(""); return x; }
                static void* idles(void* x) { pause(); return x; }
                int main(int argc, char** argv) {
                  pthread_t t;
                  pthread_mutex_lock(&lock);
                  pipe(ends);
                  pthread_create(&t, 0, reads, 0);
                  pthread_create(&t, 0, locks, 0);
                  pthread_create(&t, 0, spins, 0);
                  for (int i = 1; i < argc; ++i) pthread_create(&t, 0, idles, 0);
                  sleep(1000);
                }
            """))
        program = os.path.join(self.folder, "ranks")
        subprocess.run([compiler, "-O1", "-pthread", "-o", program, source], check=True, stderr=subprocess.DEVNULL)

        def good(process):
            seen = {thread["name"]: thread for thread in process["threads"].values()}
            return {name: seen[name]["waits"] for name in (b"ranks", b"reader", b"locker") if name in seen} == {b"ranks": b"sleep", b"reader": b"pipe", b"locker": b"futex"}
        pid = self.start(program)
        process = self.until(pid, good).processes[pid]
        self.assertEqual((process["python"], process["unread"], len(process["threads"])), (None, None, 4))
        spinner = self.until(pid, lambda one: any((thread["name"], thread["call"]) == (b"spinner", b"running") for thread in one["threads"].values()))
        self.assertIsNotNone(spinner)
        many = self.start(program, *["x"] * 20)
        self.until(many, lambda _: len(os.listdir("/proc/%d/task" % many)) == 24)
        seen = snapshot(many)
        self.assertEqual((len(seen.processes[many]["threads"]), seen.cut), (16, ["threads"]))
        self.assertEqual(len(snapshot(many, "--all-threads").processes[many]["threads"]), 24)

    def test_the_section_of_a_static_program(self):
        """It has no symbols to look up, and a section; the version there counts, not the one of the name."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            allowed.leave_out("no C compiler is here")
        source = os.path.join(self.folder, "static.c")
        with open(source, "w") as file:
            file.write('#include <unistd.h>\nstruct { char c[8]; unsigned long v[63]; } r __attribute__((section(".PyRuntime"), used)) = {"xdebugpy", {0x03630000}};\n'
                       "int main() { sleep(1000); }\n")
        program = os.path.join(self.folder, "python3.12")
        done = subprocess.run([compiler, "-static", "-o", program, source], check=False, stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            allowed.leave_out("no static C library is here")
        pid = self.start(program)
        process = self.until(pid, lambda one: one["python"]).processes[pid]
        self.assertEqual((process["python"], process["unread"]), (b"3.99", b"Python 3.99 is newer than 3.14"))


@unittest.skipIf(LIBC == "checked" or not shutil.which("strace"), "a sanitized build calls more; or no strace")
class Cost(Case):
    def calls(self, pid, *options):
        trace = os.path.join(self.folder, "trace")
        subprocess.run(["strace", "-qq", "-e", "signal=none", "-o", trace, STACKS, *options, str(pid)], stdout=subprocess.DEVNULL, check=True)
        with open(trace) as lines:
            return [line for line in lines if re.match(r"\w+\(", line)]

    def test_system_calls(self):
        """Fewer than 600 for a rank with three threads and 20 frames; each takes some microseconds."""
        pid = self.python("""
            import threading, time
            def deep(n):
                return deep(n - 1) if n else time.sleep(1000)  # deep
            for i in range(2):
                threading.Thread(target=deep, args=(10,), daemon=True).start()
            deep(20)
        """)
        self.until(pid, lambda one: [thread["waits"] for thread in one["threads"].values()] == [b"sleep"] * 3)
        calls = self.calls(pid)
        self.assertLess(len(calls), 600)
        names = {call.split("(")[0] for call in calls}
        self.assertFalse(names & {"ptrace", "kill", "tgkill", "process_vm_writev", "pidfd_send_signal"}, names)
        opened = [re.search(r'"(.*?)"', call)[1] for call in calls if call.startswith("open")]
        self.assertEqual([path for path in opened if not path.startswith("/proc/")], [])


if __name__ == "__main__":
    sys.exit(allowed.run(argv=[sys.argv[0], *sys.argv[3:]]))
