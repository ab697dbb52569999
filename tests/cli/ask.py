"""Questions to hpclaunch-ask (tests/support/ask.cpp): the program in one process, which answers in milliseconds what a
process of its own would answer after its start. Commands that start something are no questions."""
import itertools
import os
import resource
import subprocess
import threading

LIMITS = [value for name, value in vars(resource).items() if name.startswith("RLIMIT_")]
# These print and end, whatever their options are.
PRINTING = {"plan", "env", "explain", "script", "lint", "topo", "profile", "completion", "report", "complete", "man", "help", "--help", "-h",
            "--version", "-V"}
STARTING = {"run", "torchrun", "submit"}  # these print with --dry-run or --help
# The loader and the sanitizers read these once, when a process starts.
AT_START = ("LD_", "GLIBC_TUNABLES", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")


def is_question(words):
    before = words[:words.index("--")] if "--" in words else words
    if not words or words[0] not in STARTING:
        return bool(words) and words[0] in PRINTING
    if words[0] == "torchrun":  # what follows the program is its own
        before = list(itertools.takewhile(lambda word: word.startswith("-"), words[1:]))
    return bool({"--dry-run", "--help", "-h"} & set(before))


def inherited():
    """What a new process would take over from this one and the driver has taken over long ago."""
    return os.sched_getaffinity(0), [resource.getrlimit(limit) for limit in LIMITS]


def at_start(env):
    return {name: value for name, value in env.items() if name.startswith(AT_START)}


class Driver:
    """One process; a new one after one that died, which is an error of the question it had."""

    def __init__(self, program):
        self.program = program
        self.child = None
        self.inherited = inherited()
        self.lock = threading.Lock()  # tests of a file may run in threads (fakes.Together)

    def answers(self, words, env):
        return is_question(words) and at_start(env) == at_start(os.environ) and self.inherited == inherited()

    def ask(self, words, env, stdin, cwd):
        with self.lock:
            return self.answer(words, env, stdin, cwd)

    def answer(self, words, env, stdin, cwd):
        if self.child is None:
            self.child = subprocess.Popen([self.program, "--questions"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        texts = [cwd or os.getcwd(), *words, *("%s=%s" % entry for entry in env.items())]
        question = b"%d %d %d\n" % (len(words), len(env), len(stdin or b""))
        question += b"".join(os.fsencode(text) + b"\0" for text in texts) + (stdin or b"")
        try:
            self.child.stdin.write(question)
            self.child.stdin.flush()
            head = self.child.stdout.readline()
            status, out, err = (int(number) for number in head.split())
            return status, self.child.stdout.read(out), self.child.stdout.read(err)
        except (BrokenPipeError, ValueError):
            ended, self.child = self.child.wait(), None
            raise AssertionError("hpclaunch-ask ended with %s (its report is above) when it was asked: hpclaunch %s" % (ended, " ".join(words)))

    def close(self):
        """The driver's own verdict: leaks are found when it ends."""
        if self.child is None:
            return 0
        self.child.stdin.close()
        self.child.stdout.close()
        return self.child.wait()
