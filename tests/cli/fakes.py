"""What stands in for large or slow parts of a machine, and programs for tests that are no larger than what they show."""
import concurrent.futures
import contextlib
import os
import subprocess
import sys
import threading
import unittest.mock

import support
from support import ROOT, need

# The rest of an #!/bin/sh: the answers to the one question that doctor has for an interpreter. Any other fails.
PYTHON = """
case "$1 $2" in "-c import"*"find_spec('torch')"*) ;; *) echo "not the question of doctor: $*" >&2; exit 3 ;; esac
echo '%(prefix)s'
echo %(version)s
[ ! -d '%(torch)s' ] || echo '%(torch)s'
[ -d '%(torch)s' ] || echo
"""


def python_of_doctor(site, prefix="/fake/prefix", version="3.77"):
    """A script that answers as an interpreter with `site` in its path, and without any other package."""
    return "#!/bin/sh" + PYTHON % {"torch": os.path.join(site, "torch"), "prefix": prefix, "version": version}


def bare_python(site):
    """The real interpreter with `site` in its path and without the packages of the system, which may have a torch too."""
    return "#!/bin/sh\nPYTHONPATH='%s' exec '%s' -S \"$@\"\n" % (site, sys.executable)


def python_with_torch():
    """The first interpreter with torch.distributed, which is not imported to find out."""
    look = "import importlib.util, os; s = importlib.util.find_spec('torch'); print(s and os.path.isfile(os.path.join(os.path.dirname(s.origin), 'distributed', '__init__.py')))"
    for python in filter(None, (os.environ.get("HPCLAUNCH_TEST_PYTHON"), sys.executable, "/usr/bin/python3", "python3")):
        try:
            found = subprocess.run([python, "-c", look], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError:
            continue
        if found.stdout.strip() == b"True":
            return python
    raise AssertionError("no Python with torch; install python3-torch, or name one in HPCLAUNCH_TEST_PYTHON")


def library(path, source, *words):
    """A shared library of this C text, or of a file that ends with .c."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    text = None if source.endswith(".c") else source.encode()
    subprocess.run([need("cc", "gcc"), "-shared", "-fPIC", "-o", path, *(["-xc", "-", "-xnone"] if text else [source]), "-Wl,--no-as-needed", *words],
                   input=text, check=True)
    return path


def libfabric(folder):
    """One that answers at once: the real one looks for hardware, a third of a second long. FAKE_LIBFABRIC says what it answers."""
    return library(os.path.join(folder, "libfabric.so.1"), os.path.join(ROOT, "tests", "probe", "fake_libfabric.c"), "-Wl,-soname,libfabric.so.1")


def need_names_of_functions(test):
    """For tests that count calls by name: an installed program may be stripped, one that was just built may not."""
    if subprocess.run([need("nm", "llvm-nm"), support.HPCLAUNCH], stdout=subprocess.PIPE, check=True).stdout.strip():
        return
    if os.environ.get("HPCLAUNCH_TEST_INSTALLED") == "1":
        test.skipTest("the installed program has no names of functions")
    test.fail("no names of functions in " + support.HPCLAUNCH)


class Together(unittest.TestSuite):
    """Up to `most` tests at once, each in a thread of its own: for files in which some wait for times of the product, which
    nothing can shorten. For `load_tests`."""

    def __init__(self, tests, most):
        super().__init__(tests)
        self.most = most

    def run(self, result, debug=False):
        lock = threading.Lock()
        for name in [name for name in dir(result) if name.startswith("add") or name in ("startTest", "stopTest")]:
            setattr(result, name, locked(lock, getattr(result, name)))
        tests = list(cases(self))
        with contextlib.ExitStack() as after:
            for one in dict.fromkeys(map(type, tests)):
                after.callback(one.doClassCleanups)
                one.setUpClass()
                after.callback(one.tearDownClass)
            after.enter_context(unittest.mock.patch.object(subprocess.Popen, "__init__", locked(support.WRITING, subprocess.Popen.__init__)))
            pool = after.enter_context(concurrent.futures.ThreadPoolExecutor(self.most))
            for done in [pool.submit(test.run, result) for test in tests]:
                done.result()
        return result


def locked(lock, function):
    def call(*words, **more):
        with lock:
            return function(*words, **more)
    return call


def cases(suite):
    for test in suite:
        yield from cases(test) if isinstance(test, unittest.TestSuite) else [test]
