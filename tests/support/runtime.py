"""A runtime directory for each thread of tests: launches of one user know of each other by it, those of other tests must not."""
import atexit
import os
import shutil
import tempfile
import threading

OWN = threading.local()


def folder():
    if getattr(OWN, "pid", None) != os.getpid():
        OWN.pid, OWN.folder = os.getpid(), tempfile.mkdtemp(prefix="hpclaunch-run-")
        atexit.register(shutil.rmtree, OWN.folder, ignore_errors=True)
    return OWN.folder
