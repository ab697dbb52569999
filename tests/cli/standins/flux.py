"""Flux, for launcher.py: its questions and its shells, as a real flux-core 0.88.0 with four brokers was seen to answer.

CONFIG: hosts ("f[1-4]", in Flux's order); cores (of each node; 0: as many as asked for); grants (of each host, {"core":
"0-3", "gpu": "0"}); lost (hosts that have gone: `hostlist local` still has them); jobid; left (`job timeleft`); busy
(`flux run` waits for nodes, and prints nothing); jobs (what `flux jobs` prints).

What is not nice of the real one is played too: with exit-on-error the leader's shell ends with its last batch of output
(0.5 s), kills the ranks of its own node at once, and the others 5 s after a TERM.
"""
import json
import os
import selectors
import signal
import subprocess
import sys
import time

import channel  # launcher.py has its folder in the path

OPTIONS = {"-N": 1, "--nodes": 1, "-n": 1, "--ntasks": 1, "--tasks-per-node": 1, "-x": 0, "--exclusive": 0, "--requires": 1, "--taskmap": 1, "-o": 1,
           "--setopt": 1, "--setattr": 1, "--label-io": 0, "-l": 0, "--env": 1, "-c": 1, "-g": 1, "--cwd": 1}
NAMES = {signal.SIGKILL: "Killed", signal.SIGSEGV: "Segmentation fault", signal.SIGABRT: "Aborted", signal.SIGTERM: "Terminated"}
JOB = "\u0192ABC123"


def say(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def leave(text, status=1):
    say(text)
    sys.exit(status)


def resources(hosts, config):
    """R of these hosts: ranks in Flux's own numbers, one entry for each."""
    every = config["all"]
    whole = {"core": "0-%d" % (config["cores"] - 1)} if config.get("cores") else {}  # none named: all that there are
    entries = [{"rank": str(every.index(host)), "children": config.get("grants", {}).get(host, whole)} for host in hosts]
    return {"version": 1, "execution": {"R_lite": entries, "starttime": 0.0, "expiration": 0.0, "nodelist": [",".join(hosts)] if hosts else []}}


def answer(words, config):
    """What a question prints; None for one that is none."""
    up = [host for host in config["all"] if host not in config.get("lost", ())]
    if words[:1] == ["hostlist"]:
        return ",".join(up if "avail" in words else config["all"])
    if words[:2] == ["resource", "R"]:
        return json.dumps(resources(up if any(word in ("up", "--states=up") for word in words) else config["all"], config))
    if words[:2] == ["resource", "list"]:
        return "free nodes: 0 "
    if words == ["getattr", "jobid"]:
        return config["jobid"] if "jobid" in config else leave("flux-getattr: jobid: No such file or directory")
    if words[:2] == ["job", "timeleft"]:
        return str(config.get("left", 4294967295))
    if words[:1] == ["jobs"]:
        return "\n".join(config.get("jobs", ()))
    return None


def ntasks(counts, size, cores):
    """The tasks on each node that -n and -N give; Flux has a core for each task."""
    if cores and size > cores * counts:
        say("0.032s: flux-shell: ERROR: error distributing %d tasks over R\n0.032s: flux-shell: FATAL: failed to initialize shell info" % size)
        leave("flux-job: task(s) exited with exit code 1")
    return [size // counts + (node < size % counts) for node in range(counts)]


class Flux:
    def __init__(self, options, config):
        given = {name.lstrip("-"): value for name, value in options}
        self.shell = dict(value.partition("=")[::2] for name, value in options if name in ("-o", "--setopt"))
        nodes = int(given.get("N") or given.get("nodes"))
        size = given.get("n") or given.get("ntasks")
        if size and "tasks-per-node" in given:
            leave("flux-run: ERROR: Per-resource options can't be used with per-task options. (See --help for details)")
        hosts = [host for host in config["all"] if host not in config.get("lost", ())]
        if given.get("requires", "").startswith("host:"):
            wanted = config["expand"](given["requires"][len("host:"):])
            for host in wanted:
                if host not in config["all"]:
                    leave("flux-run: ERROR: host constraint contains invalid hosts: host '%s' not found" % host)
            hosts = [host for host in hosts if host in wanted]
        if len(hosts) < nodes:
            leave("0.021s: job.exception %s type=alloc severity=0 unsatisfiable request: need %d exclusive node(s), only %d eligible" % (JOB, nodes, len(hosts)))
        self.hosts = hosts[:nodes]
        self.counts = ntasks(nodes, int(size), config.get("cores", 0)) if size else [int(given["tasks-per-node"])] * nodes
        self.size = sum(self.counts)
        if given.get("taskmap", "block").startswith("manual:"):
            self.map(json.loads(given["taskmap"][len("manual:"):]))
        self.label = "%d: " if "label-io" in given or "l" in given else None
        self.busy = config.get("busy")
        self.waits = os.path.join(config["record"], "waits")

    def map(self, blocks):
        places = [(node, tasks) for first, nodes, tasks, repeat in blocks for _ in range(repeat) for node in range(first, first + nodes)]
        total = sum(tasks for _, tasks in places)
        if total != self.size:
            say("0.042s: flux-shell[0]: ERROR: invalid taskmap: got %d total tasks, expected %d" % (total, self.size))
            leave("0.042s: flux-shell[0]: FATAL: failed to set new shell taskmap")
        self.leader = self.hosts[0]
        self.hosts, self.counts = [self.hosts[node] for node, _ in places], [tasks for _, tasks in places]

    def variables(self, rank, local, node):
        return {"FLUX_TASK_RANK": rank, "FLUX_TASK_LOCAL_ID": local, "FLUX_JOB_SIZE": self.size, "FLUX_JOB_NNODES": len(self.hosts),
                "FLUX_JOB_ID": JOB, "PMI_RANK": rank, "PMI_SIZE": self.size}

    def seconds(self, name, default):
        text = self.shell.get(name, default)
        try:
            return float(text)
        except ValueError:
            leave("0.040s: flux-shell[0]: FATAL: plugin 'output': shell.init failed")


class Shells:
    """The ranks that run, their output in batches, and how they end."""

    def __init__(self, job):
        self.job, self.tasks, self.batch, self.due = job, {}, [], None
        self.timeout = job.seconds("output.batch-timeout", "0.5")
        self.wait = selectors.DefaultSelector()

    def start(self, program, rank, local, node):
        env = {**os.environ, **{name: str(value) for name, value in self.job.variables(rank, local, node).items()}}
        try:
            child = subprocess.Popen(program, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            self.signal(signal.SIGKILL)
            leave("0.040s: flux-shell[%d]: FATAL: task %d (host %s): start failed: %s: %s" % (node, rank, self.job.hosts[node], program[0], error.strerror),
                  126 if isinstance(error, PermissionError) else 127)
        self.tasks[rank] = (child, node)
        for pipe, to in ((child.stdout, sys.stdout.buffer), (child.stderr, sys.stderr.buffer)):
            os.set_blocking(pipe.fileno(), False)
            self.wait.register(pipe, selectors.EVENT_READ, (rank, to))

    def signal(self, number, where=lambda node: True):
        for child, node in self.tasks.values():
            if where(node) and child.poll() is None:
                os.killpg(child.pid, number)

    def flush(self):
        for rank, to, text in self.batch:
            label = (self.job.label % rank).encode() if self.job.label else b""
            to.write(b"".join(label + line for line in text.splitlines(True)))
            to.flush()
        self.batch, self.due = [], None

    def read(self, patience):
        for key, _ in self.wait.select(patience):
            text = key.fileobj.read()
            if text:
                self.batch.append((*key.data, text))
                self.due = self.due or time.monotonic() + self.timeout
            elif text == b"":
                self.wait.unregister(key.fileobj)
        if self.due and time.monotonic() >= self.due:
            self.flush()

    def fail(self, rank, code, program):
        how = "Exit %d" % code if code > 0 else NAMES.get(-code, "Unknown signal %d" % -code)
        note = "%s: task rank %d on host %s failed (%s) and exit-on-error is set" % (os.path.basename(program[0]), rank, self.job.hosts[self.tasks[rank][1]], how)
        self.batch = []  # the leader's shell is gone, and with it what it held
        leader = getattr(self.job, "leader", self.job.hosts[0])
        own = lambda node: self.job.hosts[node] == leader
        self.signal(signal.SIGKILL, own)
        self.signal(signal.SIGTERM, lambda node: not own(node))
        say("0.370s: flux-shell[0]: FATAL: task-exit: " + note)
        say("0.367s: job.exception %s type=exec severity=0 %s" % (JOB, note))
        end = time.monotonic() + 5
        while any(child.poll() is None for child, _ in self.tasks.values()):
            if time.monotonic() > end:
                self.signal(signal.SIGKILL)
            time.sleep(0.01)

    def run(self, program):
        seen = set()
        while len(seen) < len(self.tasks) or self.wait.get_map():
            self.read(0.01)
            for rank, (child, _) in self.tasks.items():
                if rank in seen or child.poll() is None:
                    continue
                seen.add(rank)
                if child.returncode != 0 and "exit-on-error" in self.job.shell:
                    self.fail(rank, child.returncode, program)
                    return self.status(child.returncode)
        self.flush()
        return max(self.status(child.returncode) for child, _ in self.tasks.values())

    @staticmethod
    def status(code):
        return code if code >= 0 else 128 - code


def run(job, program):
    shells = Shells(job)
    interrupts = []

    def forward(number, _):
        if number != signal.SIGINT:
            return say("flux-job: kill: job is not running") if job.busy else shells.signal(number)
        interrupts.append(number)
        if len(interrupts) == 1:
            return say("flux-job: one more ctrl-C within 2s to cancel or ctrl-Z to detach")
        say("3.379s: job.exception %s type=cancel severity=0 interrupted by ctrl-C" % JOB)
        if job.busy:
            sys.exit(1)
        shells.signal(signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT):
        signal.signal(number, forward)
    if job.busy:
        open(job.waits, "w").close()  # signals are answered from here on
    while job.busy:
        time.sleep(60)  # no node is free: not a word
    first = 0
    for node, count in enumerate(job.counts):
        if node in (0, len(job.counts) - 1):
            for local in range(count):
                shells.start(program, first + local, local, node)
        else:
            channel.play(node, job.hosts[node], range(first, first + count))
        first += count
    status = shells.run(program)
    if status > 128:
        say("flux-job: task(s) %s" % NAMES.get(status - 128, "Unknown signal %d" % (status - 128)))
    elif status:
        say("flux-job: task(s) exited with exit code %d" % status)
    return status
