"""What the machine permits to the tests. A container may forbid namespaces and mounts: what needs them is left out then, with one
line that says what is forbidden. Where CI=true is in the environment it fails instead, so that nothing is left out unseen.

    @needs("mounts")                       a test, or a class of them
    require("mounts")                      in a test or a setUpClass
    sys.exit(allowed.run())                unittest.main; 77 where no test of the file could run
"""
import functools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import unittest

SKIPPED = 77  # SKIP_RETURN_CODE of ctest

# What a test does, and the least that does the same. The kernel answers, not the version of anything.
TRIALS = {
    "mounts": ("mount namespaces", ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/tmp"]),
    "own mounts": ("mounts in a user namespace", ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/tmp"]),
    "processes": ("processes in a user namespace", ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "true"]),
    "network": ("networks in a user namespace", ["unshare", "--map-root-user", "--net", "true"]),
    "host name": ("host names in a user namespace", ["unshare", "--map-root-user", "--uts", "sh", "-c", "echo n1 > /proc/sys/kernel/hostname"]),
    "bwrap": ("bubblewrap's namespaces", ["bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "true"]),
}
MOUNTS = "mounts" if os.geteuid() == 0 else "own mounts"  # what this user makes without help
SYSTEM_PATH = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
said = set()
# Before the test file takes its own words out; without names of tests.
STARTED_AS = [sys.executable, *(word for word in sys.argv if not re.match(r"-|[A-Z]\w*(\.\w+)*$", word))]


@functools.lru_cache(maxsize=None)
def answer(*argv):
    """"" when it works, else what it says. A program that is not installed is no matter of permission: "", and the test fails."""
    program = shutil.which(argv[0], path=SYSTEM_PATH)
    if program is None:
        return ""
    try:
        done = subprocess.run([program, *argv[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              env=dict(os.environ, PATH=SYSTEM_PATH, LC_ALL="C"))
    except subprocess.TimeoutExpired:
        return "no answer within 60 s"
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return "" if done.returncode == 0 else (lines or ["status %d" % done.returncode])[0]


def refused(what):
    """Why this machine does not permit it; "" where it does."""
    title, argv = TRIALS[what]
    why = answer(*argv)
    return "%s are not permitted here (%s)" % (title, why) if why else ""


def leave_out(reason):
    """Skips the test; with CI=true it fails."""
    if os.environ.get("CI") == "true":
        raise AssertionError(reason)
    if reason not in said:
        said.add(reason)
        print("left out: %s" % reason, file=sys.stderr, flush=True)
    raise unittest.SkipTest(reason)


def require(*what):
    for one in what:
        if reason := refused(one):
            leave_out(reason)


def asks(reason):
    """Marks a test or a class of tests: it is left out where `reason()` has one."""
    def mark(test):
        inner = test.setUpClass.__func__ if isinstance(test, type) else test

        @functools.wraps(inner)
        def asked(*args, **more):
            if why := reason():
                leave_out(why)
            return inner(*args, **more)
        if inner is test:
            return asked
        test.setUpClass = classmethod(asked)
        return test
    return mark


def needs(*what):
    return asks(lambda: next(filter(None, map(refused, what)), ""))


class Result(unittest.TextTestResult):
    succeeded = False

    def addSuccess(self, test):
        super().addSuccess(test)
        self.succeeded = True


class Runner(unittest.TextTestRunner):
    resultclass = Result


def run(**more):
    """The status of the test file: 0 well, 1 failed, SKIPPED when every test was left out."""
    # A shell's background job ignores these, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    result = unittest.main(module="__main__", exit=False, testRunner=Runner, **more).result
    if not result.wasSuccessful():
        for name in sorted({getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors}):
            print("again: %s %s" % (shlex.join(STARTED_AS), name.replace("__main__.", "")), file=sys.stderr)
        return 1
    return SKIPPED if result.skipped and not result.succeeded else 0
