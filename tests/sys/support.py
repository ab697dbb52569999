"""What the tests of local and supervised jobs share: a job's processes, and waiting for what must come.

Processes are recognised by a variable of their environment that only one test's job has, so that "nothing is
left" is asked of /proc and of nothing else. No test asks how long something took; LIMIT is there so that a
hang is a failure.
"""
import os
import signal
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
import allowed  # noqa: E402,F401

LIMIT = 300  # seconds
HANDLED = (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP)


class Marked:
    """A job whose processes all carry a mark that no other job has."""

    count = 0

    def __init__(self):
        Marked.count += 1
        self.number = Marked.count
        self.mark = "HPCLAUNCH_TEST_MARK=job-%d-%d" % (os.getpid(), self.number)

    def pids(self):
        """Of every process that is there and carries the mark."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as file:
                    if self.mark.encode() in file.read().split(b"\0"):
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def after_the_launch(self, fifo, *signals):
        """Sends them while the driver, whose launch is over, waits at the FIFO of its --pause."""
        with open(fifo, "w"):  # waits for its reader
            for number in signals:
                self.process.send_signal(number)

    def until(self, condition, what):
        limit = time.monotonic() + LIMIT
        while not condition():
            if time.monotonic() > limit:
                raise AssertionError("never came: %s; there are %s" % (what, self.pids()))
            time.sleep(0.01)
