"""Stands in for a site's launcher: PALS mpiexec, Slurm's srun, Flux's flux, Intel MPI's mpiexec, jsrun; for Open MPI 5's
mpirun and PRRTE's prterun it starts prrte.py.

    launcher.py CONFIG pals|slurm|flux|intelmpi|jsrun|openmpi|prrte ARGUMENTS...

It reads the options by the launcher's own grammar and stops at any that the launcher does not have, writes down
how it was called, and starts on this machine every rank of the job's first and last node, each with the
variables that the real one gives it. It binds nothing, for the site's cores are not here; those that bind unasked
(Intel MPI, jsrun) put each rank on one CPU unless they are told not to. What the product does must follow
from its arguments alone, so nothing of the product is used here.

CONFIG (JSON): record (a folder), gpu_order (the device of each local rank under srun's --gpu-bind=closest), hosts
(of a Flux instance, or of an LSF job with jsrun); more of Flux in flux.py.
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "support")]  # the tests start Python with -I
import channel  # noqa: E402
import flux  # noqa: E402

# option -> takes a value. A value stands behind "=" or in the next word, for one letter also right behind it.
OPTIONS = {
    "pals": {"-n": 1, "-np": 1, "--np": 1, "-ppn": 1, "--ppn": 1, "-d": 1, "--depth": 1, "--cpu-bind": 1, "--mem-bind": 1,
             "--gpu-bind": 1, "--env": 1, "--genv": 1, "--envall": 0, "--genvall": 0, "--envnone": 0, "--envlist": 1,
             "--hosts": 1, "--hostfile": 1, "--pmi": 1, "--wdir": 1, "-l": 0, "--label": 0, "--line-buffer": 0,
             "--abort-on-failure": 0, "--no-abort-on-failure": 0, "--no-vni": 0, "--no-transfer": 0, "--rlimits": 1},
    "slurm": {"-N": 1, "--nodes": 1, "-n": 1, "--ntasks": 1, "--ntasks-per-node": 1, "-c": 1, "--cpus-per-task": 1,
              "--distribution": 1, "--nodelist": 1, "--cpu-bind": 1, "--mem-bind": 1, "--gpu-bind": 1, "--gpus-per-node": 1,
              "--gpus-per-task": 1, "--export": 1, "--kill-on-bad-exit": 1, "--wait": 1, "--chdir": 1, "--label": 0, "-l": 0,
              "--output": 1, "--error": 1, "--mpi": 1, "--exact": 0, "--overlap": 0, "--overcommit": 0, "--unbuffered": 0, "-u": 0, "--network": 1},
    "flux": flux.OPTIONS,
    "intelmpi": {"-n": 1, "-np": 1, "-ppn": 1, "-perhost": 1, "-hosts": 1, "-f": 1, "-hostfile": 1, "-machinefile": 1,
                 "-genvall": 0, "-genvnone": 0, "-genv": 2, "-prepend-rank": 0, "-l": 0, "-bootstrap": 1, "-rmk": 1,
                 "-print-rank-map": 0, "-wdir": 1, "-iface": 1},
    "jsrun": {"-n": 1, "--nrs": 1, "-r": 1, "--rs_per_host": 1, "-a": 1, "--tasks_per_rs": 1, "-c": 1, "--cpu_per_rs": 1,
              "-g": 1, "--gpu_per_rs": 1, "-b": 1, "--bind": 1, "-d": 1, "--launch_distribution": 1, "-E": 1, "--env": 1,
              "-X": 1, "--exit_on_error": 1, "--stdio_mode": 1, "--smpiargs": 1, "-M": 1, "-l": 1, "--latency_priority": 1},
}
ONCE = ("intelmpi",)  # "duplicate setting"


def fail(text):
    sys.exit("%s: stand-in: %s" % (sys.argv[2], text))


def parse(kind, words):
    """The options as (name, value) pairs, and the program's own words."""
    known, found, at = OPTIONS[kind], [], 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        name, equals, value = words[at].partition("=")
        at += 1
        if not name.startswith("--") and name not in known and len(name) > 2:
            name, value, equals = name[:2], words[at - 1][2:], "="
        if name not in known:
            fail("unrecognized option '%s'" % name)
        if known[name] and not equals:
            if at + known[name] > len(words):
                fail("%s needs a value" % name)
            value, at = "=".join(words[at:at + known[name]]), at + known[name]
        if not known[name] and equals:
            fail("%s takes no value" % name)
        if kind in ONCE and name != "-genv" and name in [given for given, _ in found]:
            fail("duplicate setting: %s" % name)
        found.append((name, value if known[name] else None))
    if at < len(words) and words[at] == "--":
        at += 1
    if at == len(words):
        fail("no program")
    return found, words[at:]


def last(options, *names):
    values = [value for name, value in options if name in names]
    return values[-1] if values else None


def hosts_of_list(text):
    """a[08-11,13],b of Slurm and Flux; no more than one group in a name."""
    hosts = []
    for token in re.findall(r"[^,\[\]]+(?:\[[^\]]*\][^,\[\]]*)?", text):
        before, bracket, rest = token.partition("[")
        if not bracket:
            hosts.append(before)
            continue
        ranges, _, behind = rest.partition("]")
        for part in ranges.split(","):
            low, _, high = part.partition("-")
            for number in range(int(low), int(high or low) + 1):
                hosts.append("%s%0*d%s" % (before, len(low), number, behind))
    return hosts


def hosts_of_file(path):
    with open(path) as file:
        return list(dict.fromkeys(line.strip() for line in file if line.strip()))


class Pals:
    """Ranks in blocks of --ppn; with --pmi=pmix PMIx has the ranks, and PMI_SIZE is nobody's."""

    def __init__(self, options, config):
        self.size = int(last(options, "-n", "-np", "--np"))
        hosts = last(options, "--hosts")
        self.hosts = hosts.split(",") if hosts else hosts_of_file(last(options, "--hostfile") or os.environ["PBS_NODEFILE"])
        per_node = int(last(options, "-ppn", "--ppn"))
        self.counts = [min(per_node, max(0, self.size - per_node * node)) for node in range(len(self.hosts))]
        self.pmix = last(options, "--pmi") == "pmix"

    def variables(self, rank, local, node):
        own = {"PALS_RANKID": rank, "PALS_LOCAL_RANKID": local, "PALS_LOCAL_SIZE": self.counts[node], "PALS_NODEID": node,
               "PALS_APID": "4e0b5f0c-1d1a-4d2c-9c55-0123456789ab", "PALS_DEPTH": 1}
        if self.pmix:
            own.update({"PMIX_RANK": rank, "PMIX_LOCAL_RANK": local})
        else:
            own.update({"PMI_RANK": rank, "PMI_SIZE": self.size, "PMI_LOCAL_RANK": local, "PMI_LOCAL_SIZE": self.counts[node]})
        return own


def spread(size, nodes):
    return [size // nodes + (node < size % nodes) for node in range(nodes)]


class Slurm:
    def __init__(self, options, config):
        self.size = int(last(options, "-n", "--ntasks"))
        nodes = int(last(options, "-N", "--nodes"))
        self.hosts = hosts_of_list(last(options, "--nodelist") or os.environ["SLURM_JOB_NODELIST"])
        if len(self.hosts) < nodes:
            fail("error: Only allocated %d nodes asked for %d" % (len(self.hosts), nodes))
        self.hosts = self.hosts[:nodes]
        per_node = last(options, "--ntasks-per-node")
        if per_node and int(per_node) * nodes < self.size:
            fail("more tasks than --ntasks-per-node and --nodes hold")
        self.counts = spread(self.size, nodes)
        export = last(options, "--export") or os.environ.get("SLURM_EXPORT_ENV", "ALL")
        if export != "ALL":
            fail("--export=%s: the environment would not reach the ranks" % export)
        self.order = config.get("gpu_order") if last(options, "--gpus-per-task") else None

    def variables(self, rank, local, node):
        own = {"SLURM_PROCID": rank, "SLURM_LOCALID": local, "SLURM_NODEID": node, "SLURM_STEP_ID": 0,
               "SLURM_NTASKS": self.size, "SLURM_STEP_NUM_TASKS": self.size, "SLURM_STEP_NUM_NODES": len(self.hosts),
               "SLURMD_NODENAME": self.hosts[node]}
        if self.order:
            own["ROCR_VISIBLE_DEVICES"] = self.order[local]
        return own


def one_cpu(local):
    """What a launcher's own binding does: a core for each rank."""
    cpus = sorted(os.sched_getaffinity(0))
    return {cpus[local % len(cpus)]}


class IntelMpi:
    """Nodes are filled; the batch system's counts win over -ppn unless told otherwise; pins unless told otherwise."""

    def __init__(self, options, config):
        self.size = int(last(options, "-n", "-np"))
        path = last(options, "-machinefile")
        if path:
            with open(path) as file:
                pairs = [line.strip().split(":") for line in file if line.strip()]
            self.hosts, self.counts = [host for host, _ in pairs], [int(count) for _, count in pairs]
        else:
            named = last(options, "-hosts")
            self.hosts = named.split(",") if named else hosts_of_file(last(options, "-f", "-hostfile"))
            per_node = int(last(options, "-ppn", "-perhost"))
            if "PBS_NODEFILE" in os.environ and os.environ.get("I_MPI_JOB_RESPECT_PROCESS_PLACEMENT") not in ("0", "off", "disable", "no"):
                per_node = 1
            self.counts = [min(per_node, max(0, self.size - per_node * node)) for node in range(len(self.hosts))]
        if any(":" in host for host in self.hosts):
            fail("host names without counts are wanted")
        self.label = "[%d] " if any(name in ("-prepend-rank", "-l") for name, _ in options) else None
        self.pins = os.environ.get("I_MPI_PIN", "1") not in ("0", "off", "disable", "no")
        self.env = None if any(name == "-genvnone" for name, _ in options) else dict(os.environ)

    def bound(self, local):
        return one_cpu(local) if self.pins else None

    def environment(self, node):
        return self.env if self.env is not None else {}

    def variables(self, rank, local, node):
        return {"PMI_RANK": rank, "PMI_SIZE": self.size, "MPI_LOCALRANKID": local, "MPI_LOCALNRANKS": self.counts[node],
                "PMI_FD": 9, "I_MPI_HYDRA_VERSION": 1}


class Jsrun:
    """Resource sets: -r of them on each host of the job, -a ranks in each. The environment goes everywhere."""

    def __init__(self, options, config):
        sets, on_host = int(last(options, "-n", "--nrs")), int(last(options, "-r", "--rs_per_host") or 1)
        tasks = int(last(options, "-a", "--tasks_per_rs") or 1)
        self.hosts = hosts_of_list(config["hosts"])
        if sets > on_host * len(self.hosts) or sets % on_host:
            fail("Error: Resources requested are not available")
        self.hosts = self.hosts[:sets // on_host]
        if last(options, "-d", "--launch_distribution") != "packed":
            fail("cyclic and plane distributions are not played here")
        whole = last(options, "-c", "--cpu_per_rs") == "ALL_CPUS"
        self.binds = not whole or last(options, "-b", "--bind") != "none"
        self.counts = [tasks * on_host] * len(self.hosts)
        self.size = sum(self.counts)
        self.label = "%d: " if last(options, "--stdio_mode") == "prepended" else None

    def bound(self, local):
        return one_cpu(local) if self.binds else None

    def variables(self, rank, local, node):
        own = {"JSM_NAMESPACE_RANK": rank, "JSM_NAMESPACE_SIZE": self.size, "JSM_NAMESPACE_LOCAL_RANK": local,
               "JSM_NAMESPACE_LOCAL_SIZE": self.counts[node], "PMIX_RANK": rank}
        own.update({"OMPI_COMM_WORLD_" + name: own["JSM_NAMESPACE_" + name] for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")})
        return own


KINDS = {"pals": Pals, "slurm": Slurm, "flux": flux.Flux, "intelmpi": IntelMpi, "jsrun": Jsrun}
PROGRAMS = {"openmpi": "prrte.py", "prrte": "prrte.py"}  # with a grammar of their own
VERSIONS = {"pals": "mpiexec 1.8.0", "slurm": "slurm 24.11.5", "flux": "commands: 0.88.0\nlibflux-core: 0.88.0",
            "intelmpi": "Intel(R) MPI Library for Linux* OS, Version 2021.15 Build 20250213 (id: d233448)", "jsrun": "jsrun 10.3.0.2"}


def start(job, program, rank, local, node):
    env = job.environment(node) if hasattr(job, "environment") else os.environ
    own = {name: str(value) for name, value in job.variables(rank, local, node).items()}
    cpus = job.bound(local) if hasattr(job, "bound") else None
    tagged = getattr(job, "label", None)
    return subprocess.Popen(program, env={**env, **own}, stdout=subprocess.PIPE if tagged else None,
                            preexec_fn=(lambda: os.sched_setaffinity(0, cpus)) if cpus else None)


def finish(job, rank, child):
    if getattr(job, "label", None):
        for line in child.communicate()[0].decode("utf-8", "surrogateescape").splitlines():
            print(job.label % rank + line)
    return child.wait()


def main():
    if sys.argv[2] in PROGRAMS:
        other = os.path.join(os.path.dirname(os.path.abspath(__file__)), PROGRAMS[sys.argv[2]])
        os.execv(sys.executable, [sys.executable, "-I", "-S", other, *sys.argv[1:]])
    with open(sys.argv[1]) as file:
        config = json.load(file)
    kind, words = sys.argv[2], sys.argv[3:]
    if words == ["--version"]:
        print(VERSIONS[kind])
        return 0
    if kind == "flux":
        config.update(all=hosts_of_list(config["hosts"]), expand=hosts_of_list)
        said = flux.answer(words, config)
        if said is not None:
            print(said)
            return 0
    with open(os.path.join(config["record"], "call.json"), "x") as file:
        json.dump({"argv": words, "env": dict(os.environ)}, file)
    if kind == "flux":
        if words[:1] != ["run"]:
            fail("no command %s" % words[:1])
        words = words[1:]
    options, program = parse(kind, words)
    job = KINDS[kind](options, config)
    if sum(job.counts) != job.size:
        fail("%d ranks, but the nodes take %d" % (job.size, sum(job.counts)))
    if kind == "flux":
        return flux.run(job, program)
    started, first = [], 0
    for node, count in enumerate(job.counts):
        if node in (0, len(job.counts) - 1):
            started += [(first + local, start(job, program, first + local, local, node)) for local in range(count)]
        else:
            channel.play(node, job.hosts[node], range(first, first + count))
        first += count
    return max(finish(job, rank, child) for rank, child in started)


sys.exit(main())
