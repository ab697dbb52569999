"""What `hpclaunch stacks` has to say of each kind of stall in stalls.py."""
import collections
import re

Expected = collections.namedtuple("Expected", "function kinds")

EXPECTED = {
    "sleep": Expected("sleeps", {"outside"}),
    "lock": Expected("locks", {"outside"}),
    "stop": Expected("stops", {"stopped"}),
    "fifo": Expected("reads", {"outside"}),
    "flock": Expected("waits_for_lock", {"outside"}),
    "spin": Expected("spins", {"outside"}),
    "gil": Expected("holds_gil", {"outside"}),
    "connect": Expected("connects", {"outside"}),
    "mismatch": Expected("mismatches", {"mismatch", "outside"}),
    "worker": Expected("loads", {"dead-worker"}),
    "deadlock": Expected("receives", {"deadlock", "outside"}),
    "lost node": Expected(None, {"gone"}),
}
PLANTED = [kind for kind in EXPECTED if kind != "lost node"]  # by stalls.py itself

MARKS = {"sleeps": "time.sleep(HOUR)", "locks": "lock.acquire()", "stops": "os.kill(", "reads": "file.read()", "waits_for_lock": "fcntl.flock(file",
         "spins": "while True", "holds_gil": "ctypes", "connects": "one.connect", "mismatches": "dist.broadcast", "loads": "queue.get", "receives": "dist.recv"}


def line_of(path, function):
    """The last line of the function that has its mark."""
    found, inside = 0, False
    with open(path) as file:
        for number, line in enumerate(file, 1):
            if re.match(r"def |if ", line):
                inside = line.startswith("def %s(" % function)
            if inside and MARKS[function] in line:
                found = number
    assert found, function
    return found


def culprits_of(kind, culprit, ranks=0):
    """Those that may be named."""
    if kind == "lost node":
        return set(range(culprit, culprit + ranks // 3))
    return {culprit, culprit + 1} if kind == "deadlock" else {culprit}


def wrong_in(kind, culprit, verdict, program, ranks=0):
    """What a verdict misses; None: the kind, a rank that is to blame and none beside, its line."""
    expected, named = EXPECTED[kind], set(verdict["culprits"])
    if verdict["kind"] not in expected.kinds:
        return "kind"
    if culprit not in named or not named <= culprits_of(kind, culprit, ranks):
        return "ranks"
    if expected.function is None:
        return None
    place = verdict.get("place", "")
    line = "" if kind == "spin" else ":%d" % line_of(program, expected.function)  # its loop has two lines
    return None if re.search(r"stalls\.py%s\S* %s$" % (line, expected.function), place) else "place"
