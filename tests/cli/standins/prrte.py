"""Stands in for Open MPI 5's mpirun (a prterun 3.0.8) and PRRTE 4.1's prterun, as they were seen to behave.

    prrte.py CONFIG openmpi|prrte ARGUMENTS...

It reads the command line as they do, that of the program included, writes down how it was called, and starts on this
machine every rank of the job's first and last node. Nothing of the product is used here.

CONFIG (JSON): record (a folder); lose: a file whose appearance is the moment in which the last node is lost.
"""
import json
import os
import selectors
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import channel  # noqa: E402

KIND = sys.argv[2]
NEW = KIND == "prrte"  # 3.0.13 and later: other spellings, which are looked for in all words
VERSIONS = {"openmpi": "mpirun (Open MPI) 5.0.7\n\nReport bugs to https://www.open-mpi.org/community/help/",
            "prrte": "prterun (PRRTE) 4.1.0\n\nReport bugs to: https://github.com/openpmix/prrte"}
RENAMED = {"--map-by": "--mapby", "--rank-by": "--rankby", "--bind-to": "--bindto", "--runtime-options": "--rtos"}
ROOT = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] + ["PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"] * NEW
VALUES = {"-n": 1, "-np": 1, "--n": 1, "--np": 1, "-H": 1, "--host": 1, "--hostfile": 1, "--output": 1, "-x": 1, "--mca": 2, "--prtemca": 2, "--pmixmca": 2,
          "--wdir": 1, "--display": 1, "--personality": 1}
VALUES.update(dict.fromkeys(RENAMED.values() if NEW else RENAMED, 1))
RULE = "-" * 74
TAG = "[1,%d]<%s>: "
STEP = 0.25  # s between CONT, TERM and KILL


def leave(status, text=""):
    """As they end: the text between two lines of dashes."""
    if text:
        print("%s\n%s\n%s" % (RULE, text, RULE), file=sys.stderr, flush=True)
    os._exit(status)


def unrecognized(option):
    leave(213, "An unrecognized option was included on the %s command line:\n\n  Option: %s" % ("prterun" if NEW else "mpirun", option))


def rewritten(words):
    """What is done to all words before they are read, those of the program included; and the personality."""
    personality, once = "ompi" if KIND == "openmpi" else None, []
    if not NEW:
        return words, personality
    for at, word in enumerate(words):
        if word == "--personality" and at + 1 < len(words):
            personality = words[at + 1]
        new = RENAMED.get(word, word)
        if new in ("--bindto", "--rankby"):
            if new in once:
                leave(251, 'ERROR: The "%s" command line option was listed more than once on the command line.' % ("bind-to" if new == "--bindto" else new))
            once.append(new)
        words[at] = new
    for at, word in enumerate(words):
        if word == "--":
            break
        if word in ("--mca", "--prtemca", "--pmixmca"):
            if at + 2 >= len(words):
                leave(213, "The provided command line option requires passing two values:\n\n  Option:  %s <MCA param name> <param value>" % word)
            if word == "--prtemca":
                os.environ["PRTE_MCA_" + words[at + 1]] = words[at + 2]
    return words, personality


def parse(words):
    found, at = [], 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        name, equals, value = words[at].partition("=")
        if name not in VALUES:
            unrecognized(words[at])
        at += 1
        if not equals:
            if at + VALUES[name] > len(words):
                unrecognized(name)
            value, at = "=".join(words[at:at + VALUES[name]]), at + VALUES[name]
        found.append((name, value))
    program = words[at + 1:] if words[at:at + 1] == ["--"] else words[at:]
    if not program or ":" in program:
        leave(1, "there is no one program: %s" % program)
    return found, program


def last(options, *names):
    values = [value for name, value in options if name in names]
    return values[-1] if values else None


def label_of(host):
    return host if host.replace(".", "").isdigit() else host.partition(".")[0]


def setting(name):
    """OMPI_MCA_* of PRRTE's frameworks are PRRTE's."""
    return os.environ.get("PRTE_MCA_" + name, os.environ.get("OMPI_MCA_" + name if name.startswith(("state_", "rmaps_")) else "", ""))


def no_slots(count, program):
    leave(1, "There are not enough slots available in the system to satisfy the %d\nslots that were requested by the application:\n\n  %s\n\n"
             "Either request fewer procs for your application, or make more slots\navailable for use." % (count, program))


class Job:
    def __init__(self, options, personality, program):
        if os.getuid() == 0 and any(name not in os.environ for name in ROOT):
            leave(1, "prterun has detected an attempt to run as root.")
        self.size = int(last(options, "-n", "-np", "--n", "--np"))
        self.ompi, self.program = personality == "ompi", program
        self.place(last(options, "-H", "--host"), last(options, "--hostfile"), last(options, "--map-by", "--mapby"))
        if "node" in (setting("rankby") if NEW else "", setting("rmaps_default_ranking_policy")):
            self.order.sort(key=lambda place: (place[1], place[0]))
        self.binds = last(options, "--bind-to", "--bindto") != "none"
        self.tags = (last(options, "--output") or (setting("output") if NEW else "")) == "tag"
        self.passed = [value for name, value in options if name == "-x"]
        loose = last(options, "--runtime-options", "--rtos") or (setting("rtos") if NEW else "")
        self.lenient = "error-nonzero-status=0" in loose or setting("state_base_error_non_zero_exit") == "0"
        self.pid = os.getpid()

    def place(self, named, path, mapping):
        slots, names = {}, {}  # by the part before the first dot
        if path:
            with open(path) as file:
                items = [(line.split()[0], int(line.partition("slots=")[2] or 10 ** 6)) for line in file if line.strip()]
        else:
            pairs = [(item.split(":") + ["1"])[:2] for item in named.split(",")]
            items = [(host, int(count)) for host, count in pairs]
        for host, count in items:
            label = label_of(host)
            names.setdefault(label, host)
            lost = label != host and not path  # the count of a qualified name
            slots[label] = slots.get(label, 0) + (0 if lost else count)
        self.nodes, self.hosts = list(names), list(names.values())
        kind, _, rest = mapping.partition(":")
        if kind == "ppr":
            count, _, qualifier = rest.partition(":node")
            counts = [int(count)] * len(self.nodes)
            if qualifier != ":OVERSUBSCRIBE" and any(count > slots[node] for count, node in zip(counts, self.nodes)):
                no_slots(self.size, self.program[0])
        elif mapping == "slot":
            left = self.size
            counts = []
            for node in self.nodes:
                counts.append(min(slots[node], left))
                left -= counts[-1]
            if left:
                no_slots(self.size, self.program[0])
        else:
            leave(1, "not played here: --map-by %s" % mapping)
        if sum(counts) != self.size:
            leave(1, "Your job has requested more processes than the ppr for\nthis topology can support:\n\n  App: %s" % self.program[0])
        self.counts = counts
        self.order = [(node, local) for node, count in enumerate(counts) for local in range(count)]

    def environment(self, node):
        """All but PMIX_* and PRTE_* on the first node, which is this one; what is named with -x everywhere."""
        if node == 0:
            env = {name: value for name, value in os.environ.items() if not name.startswith(("PMIX_", "PRTE_"))}
        else:
            env = {name: value for name, value in os.environ.items() if name in ("HOME", "LC_ALL") or name.startswith("OMPI_")}
            env.update(SSH_CONNECTION="10.77.0.1 40000 10.77.0.2 22", SHELL="/bin/sh", PWD="/", _="/bin/sh")
        for name in self.passed:
            key, equals, value = name.partition("=")
            if not equals and key not in os.environ:
                leave(1, "could not find environment variable %s" % key)
            env[key] = value if equals else os.environ[key]
        return env

    def variables(self, rank, node, local):
        own = {"PMIX_RANK": rank, "PMIX_NAMESPACE": "prterun-%s-%d@1" % (self.nodes[0], self.pid), "PMIX_HOSTNAME": self.nodes[node], "PMIX_VERSION": "6.1.0",
               "PMIX_GDS_MODULE": "hash", "PMIX_SECURITY_MODE": "native", "PMIX_BFROP_BUFFER_TYPE": "PMIX_BFROP_BUFFER_NON_DESC", "PMIX_SERVER_TMPDIR": "/tmp",
               "PMIX_SYSTEM_TMPDIR": "/tmp", "PMIX_PARAM_FILE_PASSED": 1, "PRTE_LAUNCHED": 1, "PRTE_SHARED_FS": 1, "OPAL_USER_PARAMS_GIVEN": 1}
        own.update(dict.fromkeys(("PMIX_SERVER_URI%d" % n for n in (12, 20, 21, 3, 4, 41, 51, 61)), "prterun@0.0;tcp4://127.0.0.1:1"))
        if self.ompi:
            on_node = self.counts[node]
            own.update({"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": self.size, "OMPI_COMM_WORLD_LOCAL_RANK": local, "OMPI_COMM_WORLD_LOCAL_SIZE": on_node,
                        "OMPI_COMM_WORLD_NODE_RANK": local, "OMPI_UNIVERSE_SIZE": self.size, "OMPI_WORLD_SIZE": self.size, "OMPI_WORLD_LOCAL_SIZE": on_node,
                        "OMPI_COMMAND": self.program[0], "OMPI_ARGV": " ".join(self.program[1:]), "OMPI_NUM_APP_CTX": 1, "OMPI_FILE_LOCATION": "/tmp",
                        "OMPI_MCA_cpu_type": "generic", "OMPI_MCA_initial_wdir": os.getcwd(), "OMPI_MCA_num_procs": self.size})
        return {name: str(value) for name, value in own.items()}

    def start(self, rank, node, local):
        cpus = sorted(os.sched_getaffinity(0))
        one = {cpus[local % len(cpus)]}
        pipe = subprocess.PIPE if self.tags else None
        return subprocess.Popen(self.program, env={**self.environment(node), **self.variables(rank, node, local)}, stdout=pipe, stderr=pipe,
                                stdin=None if rank == 0 else subprocess.DEVNULL, preexec_fn=(lambda: os.sched_setaffinity(0, one)) if self.binds else None)

    def run(self, lose):
        self.ranks, tags = {}, selectors.DefaultSelector()  # rank: (node, process)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.stopped)
        for rank, (node, local) in enumerate(self.order):
            if node in (0, len(self.counts) - 1):
                self.ranks[rank] = (node, self.start(rank, node, local))
        for node in range(1, len(self.counts) - 1):
            channel.play(node, self.hosts[node], [rank for rank, (own, _) in enumerate(self.order) if own == node])
        for rank, (_, child) in self.ranks.items():
            for name, pipe in (("stdout", child.stdout), ("stderr", child.stderr)):
                if pipe:
                    tags.register(pipe, selectors.EVENT_READ, [rank, name, b""])
        status, waiting = 0, dict(self.ranks)
        while waiting or tags.get_map():
            self.relay(tags)
            if lose and os.path.exists(lose):
                self.lose()
                lose, waiting = None, dict(self.ranks)
            for rank, (node, child) in list(waiting.items()):
                code = child.poll()
                if code is None:
                    continue
                del waiting[rank]
                if code and not status and not self.lenient:
                    status = self.failed(rank, node, child, code, [other for _, other in waiting.values()])
        return status

    @staticmethod
    def relay(tags):
        if not tags.get_map():
            time.sleep(0.01)
        for key, _ in tags.select(0.01):
            rank, name, rest = key.data
            data = os.read(key.fd, 65536)
            *lines, key.data[2] = (rest + data).split(b"\n")
            if not data:
                tags.unregister(key.fileobj)
                lines += [key.data[2]] if key.data[2] else []
            for line in lines:
                os.write(1 if name == "stdout" else 2, (TAG % (rank, name)).encode() + line + b"\n")

    def failed(self, rank, node, child, code, others):
        name = "[prterun-%s-%d@1,%d]" % (self.nodes[0], self.pid, rank)
        if code > 0:
            text = ("prterun detected that one or more processes exited with non-zero status,\nthus causing the job to be terminated. "
                    "The first process to do so was:\n\n   Process name: %s\n   Exit code:    %d" % (name, code))
        else:
            text = "prterun noticed that process rank %d with PID %d on node %s exited on\nsignal %d (%s)." % (
                rank, child.pid, self.nodes[node], -code, signal.strsignal(-code))
        print("%s\n%s\n%s" % (RULE, text, RULE), file=sys.stderr, flush=True)
        stop(others)
        return code if code > 0 else 128 - code

    def lose(self):
        """The ranks of the last node are gone with it. It takes minutes to notice that, and then its status is 0."""
        for rank, (node, child) in list(self.ranks.items()):
            if node == len(self.nodes) - 1:
                child.kill()
                child.wait()
                del self.ranks[rank]

    def stopped(self, number, frame):
        """3.0 ends ranks in order; 4.1 sends its own node's KILL at once, the others CONT and TERM, and does not wait."""
        here = [child for node, child in self.ranks.values() if NEW and node == 0]
        for child in here:
            child.kill()
        others = [child for _, child in self.ranks.values() if child not in here and child.poll() is None]
        if NEW:
            for child in others:
                child.send_signal(signal.SIGCONT)
                child.terminate()
            os._exit(1)
        stop(others)
        os._exit(1)


def stop(children):
    for child in children:
        child.send_signal(signal.SIGCONT)
        child.terminate()
    until = time.monotonic() + STEP
    for child in children:
        try:
            child.wait(max(0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()


def main():
    with open(sys.argv[1]) as file:
        config = json.load(file)
    words = sys.argv[3:]
    if words == ["--version"]:
        print(VERSIONS[KIND])
        return 0
    with open(os.path.join(config["record"], "call.json"), "x") as file:
        json.dump({"argv": words, "env": dict(os.environ)}, file)
    words, personality = rewritten(list(words))
    options, program = parse(words)
    return Job(options, personality, program).run(config.get("lose"))


sys.exit(main())
