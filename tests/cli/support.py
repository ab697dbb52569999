"""What the black-box tests of the command line share. Each test file is started as

    python3 FILE_test.py PATH_OF_HPCLAUNCH [unittest arguments]

and must pass on a machine with one core and on one with hundreds. Where hpclaunch-ask lies beside the program
(ask.py), it answers what only prints. Any program that is installed will do as well: scripts/test --installed PREFIX.
"""
import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest
import xml.etree.ElementTree

import ask

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests", "support"))
import allowed  # noqa: E402
import runtime  # noqa: E402
MACHINES = os.path.join(ROOT, "tests", "machines")
HOST = os.uname().nodename
LIMIT = 300  # seconds; far above what any command here needs
KEPT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "USER")

# Held while a program is written and while a process is started (fakes.Together): a process that starts meanwhile has the
# program open until its own exec, and whoever starts the program then is told "text file busy".
WRITING = threading.RLock()

HPCLAUNCH = None
DRIVER = None
COMMANDS = ("run", "torchrun", "bind", "script", "submit", "plan", "env", "explain", "verify", "doctor", "stacks", "lint", "topo", "profile", "report", "completion")
SHARING = ("run", "torchrun", "script", "submit", "plan", "env", "explain", "verify", "doctor")  # take the shared options
LAUNCHING = ("run", "script", "submit", "plan", "env", "explain", "verify")


class Done:
    """How a command ended; text is decoded in a way that loses no byte."""

    def __init__(self, status, out, err):
        self.status, self.raw_out, self.raw_err = status, out, err
        self.out = out.decode("utf-8", "surrogateescape")
        self.err = err.decode("utf-8", "surrogateescape")

    def __str__(self):
        return "status %s\n--- stdout\n%s\n--- stderr\n%s" % (self.status, self.out[-3000:], self.err[-3000:])


def clean_env(**extra):
    """An environment in which nothing of this shell, batch job or CI run changes a plan."""
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    env["LC_ALL"] = "C"
    env["HPCLAUNCH_CPU_QUOTA"] = "none"  # a container that runs the tests may have one
    env["XDG_RUNTIME_DIR"] = runtime.folder()
    env["RES_OPTIONS"] = "attempts:1 timeout:1"  # names of nodes that nobody knows: a name server that is silent costs 1 s, not 10
    env.update(extra)
    return {name: value for name, value in env.items() if value is not None}


def on_terminal(*words, columns=80, rows=40, env=None, err=False):
    """stdout of a command whose stdout is a terminal of that size; with `err`, its stderr as well."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    child = subprocess.Popen([HPCLAUNCH, *words], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave if err else subprocess.DEVNULL,
                             env=env or clean_env(TERM="xterm-256color", LC_ALL="C.UTF-8"))
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(master)
    child.wait(LIMIT)
    return text.decode().replace("\r\n", "\n")


def traced_env(**extra):
    """The same for a program under strace, where LeakSanitizer cannot work."""
    return clean_env(ASAN_OPTIONS="detect_leaks=0", **extra)


def idle_stdin():
    """For tests of MPICH's mpiexec: a standard input that neither says anything nor ends. Version 4.0.2 passes the end
    of it on to a proxy that may have gone already, and dies of SIGPIPE or ends with 255, with or without hpclaunch."""
    global IDLE
    IDLE = True


IDLE = False


def execute(argv, env=None, stdin=None, cwd=None):
    env = clean_env() if env is None else env
    if DRIVER and argv[0] == HPCLAUNCH and DRIVER.answers(argv[1:], env):
        return Done(*DRIVER.ask(argv[1:], env, stdin, cwd))
    silent, talker = os.pipe() if IDLE and stdin is None else (subprocess.DEVNULL, None)
    try:
        done = subprocess.run(argv, env=env, cwd=cwd, timeout=LIMIT,
                              stdin=silent if stdin is None else None, input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        if talker is not None:
            os.close(silent)
            os.close(talker)
    return Done(done.returncode, done.stdout, done.stderr)


def hpclaunch(*words, env=None, stdin=None, cwd=None):
    return execute([HPCLAUNCH, *words], env, stdin, cwd)


def shim_path():
    return os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(HPCLAUNCH))), "libexec", "hpclaunch", "hpclaunch-shim")


def machine(name):
    return os.path.join(MACHINES, name)


def machines():
    return sorted(n for n in os.listdir(MACHINES) if n.endswith((".xml", ".json")))


def need(*programs):
    """The first of them that is here; a missing one is a failure, never a skip."""
    for program in programs:
        path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/bin:/bin:/usr/sbin:/sbin")
        if path:
            return path
    raise AssertionError("not installed: " + " or ".join(programs))


def cpu_list(text):
    """"0-2,5" as a set."""
    cpus = set()
    for part in text.split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def entries(null_separated):
    """env -0 as a dict of bytes."""
    return dict(entry.split(b"=", 1) for entry in null_separated.split(b"\0") if b"=" in entry)


class Machine:
    """A recorded machine, read without any code of the product."""

    def __init__(self, path):
        self.cores = []    # sets of OS indices, in the file's order
        self.numa = {}     # OS index -> set of OS indices of PUs
        self.caches = []   # (level, set)
        self.packages = [] # sets
        self.allowed = set()
        (self._json if path.endswith(".json") else self._xml)(path)

    def _json(self, path):
        with open(path) as file:
            data = json.load(file)
        self.cores = [cpu_list(core["pus"]) for core in data["cores"]]
        self.numa = {node["os_index"]: cpu_list(node["pus"]) for node in data.get("numa_nodes", [])}
        self.packages = [cpu_list(package["pus"]) for package in data.get("packages", [])]
        self.caches = [(cache["level"], cpu_list(cache["pus"])) for cache in data.get("caches", [])]
        self.allowed = cpu_list(data["allowed"])

    def _xml(self, path):
        root = xml.etree.ElementTree.parse(path).getroot()
        top = root.find("object")
        every, cores = set(), []
        parent = {child: item for item in top.iter("object") for child in item}

        def cpuset(item, name="cpuset"):
            bits = 0
            for word in item.get(name).split(","):
                bits = bits << 32 | (int(word, 16) if word else 0)
            return {i for i in range(bits.bit_length()) if bits >> i & 1}

        for item in top.iter("object"):
            kind = item.get("type")
            if kind == "PU":
                every.add(int(item.get("os_index")))
            elif kind == "Core":
                cores.append(cpuset(item))
            elif kind in ("Package", "Socket"):
                self.packages.append(cpuset(item))
            elif kind == "NUMANode":
                # Format 1 has no memory beside memory: it writes a second node as one without CPUs, next to the first.
                near = item if cpuset(item) or root.get("version") else parent[item]
                self.numa[int(item.get("os_index"))] = cpuset(near)
            elif kind in ("L2Cache", "L3Cache") or (kind == "Cache" and int(item.get("depth", "1")) > 1):
                self.caches.append((int(item.get("depth", kind[1:2] if kind != "Cache" else "2")), cpuset(item)))
        self.cores = cores or [{pu} for pu in sorted(every)]
        self.allowed = cpuset(top, "allowed_cpuset" if top.get("allowed_cpuset") else "cpuset") & every
        self.cores = [core & every for core in self.cores]
        self.numa = {index: cpus & every for index, cpus in self.numa.items()}

    def usable(self):
        """The parts of cores that are allowed."""
        return [core & self.allowed for core in self.cores if core & self.allowed]

    def numa_of_cores(self):
        """Distinct CPU sets of NUMA nodes that have allowed CPUs."""
        found = []
        for cpus in self.numa.values():
            part = cpus & self.allowed
            if part and part not in found:
                found.append(part)
        return found


class Test(unittest.TestCase):
    """Assertions that show all of a command's output when they fail."""

    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hpclaunch-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def file(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with WRITING, open(path, "wb") as out:
            out.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)
        return path

    def ok(self, done, status=0):
        self.assertEqual(done.status, status, str(done))
        return done

    def has(self, done, *texts):
        for text in texts:
            self.assertIn(text, done.out + done.err, str(done))

    def refused(self, status, *words, says=(), env=None, cwd=None):
        """An error: this exit status, a message on stderr in the agreed form, nothing on stdout."""
        done = hpclaunch(*words, env=env, cwd=cwd)
        self.ok(done, status)
        self.assertEqual(done.out, "", str(done))
        lines = done.err.splitlines()
        self.assertTrue(lines, str(done))
        for line in lines:
            self.assertTrue(line.startswith("hpclaunch: "), str(done))
        message = lines[0][len("hpclaunch: "):]
        self.assertFalse(message.endswith("."), str(done))
        for text in says:
            self.assertIn(text, done.err, str(done))
        return done

    def json(self, *words, env=None, status=None):
        done = hpclaunch(words[0], "--json", *words[1:], env=env)
        self.assertIn(done.status, (0, 1) if status is None else (status,), str(done))
        return json.loads(done.out)

    def ranks_environment(self, *words, env=None, argv=None, stdin=None):
        """Starts a job that stores `env -0` and /proc/self/status of each rank; by rank, as bytes."""
        into = tempfile.mkdtemp(dir=self.folder)
        script = self.file("record.sh", "#!/bin/sh\n/usr/bin/env -0 > \"$1/$RANK.env\"\ncat /proc/self/status > \"$1/$RANK.status\"\n", 0o755)
        command = [*words, "--", script, into] if argv is None else [w.replace("@INTO@", into) for w in argv]
        done = hpclaunch(*command, env=env) if argv is None else execute(command, env)
        self.ok(done)
        ranks = {}
        for name in os.listdir(into):
            if name.endswith(".env"):
                with open(os.path.join(into, name), "rb") as file:
                    ranks[int(name[:-4])] = entries(file.read())
        self.last, self.into = done, into
        return ranks

    def bound(self, rank):
        """Cpus_allowed_list of a rank of the last ranks_environment()."""
        with open(os.path.join(self.into, "%d.status" % rank)) as file:
            for line in file:
                if line.startswith("Cpus_allowed_list:"):
                    return cpu_list(line.split()[1])
        raise AssertionError("no Cpus_allowed_list")


def main():
    global HPCLAUNCH, DRIVER
    if len(sys.argv) < 2:
        sys.exit("usage: %s PATH_OF_HPCLAUNCH [unittest arguments]" % sys.argv[0])
    HPCLAUNCH = os.path.abspath(sys.argv[1])
    if os.access(HPCLAUNCH + "-ask", os.X_OK):
        DRIVER = ask.Driver(HPCLAUNCH + "-ask")
    del sys.argv[1]
    status = allowed.run()
    if DRIVER and DRIVER.close() != 0:
        sys.exit("hpclaunch-ask found something wrong when it ended (above)")
    sys.exit(status)
