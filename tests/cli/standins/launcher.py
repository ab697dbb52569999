"""Stands in for a site's launcher: PALS mpiexec, Slurm's srun, Flux's flux.

    launcher.py CONFIG pals|slurm|flux ARGUMENTS...

It reads the options by the launcher's own grammar and stops at any that the launcher does not have, writes down
how it was called, and starts on this machine every rank of the job's first and last node, each with the
variables that the real one gives it. It binds nothing: the site's cores are not here. What the product does
must follow from its arguments alone, so nothing of the product is used here.

CONFIG (JSON): record (a folder), gpu_order (the device of each local rank under srun's --gpu-bind=closest).
"""
import json
import os
import re
import subprocess
import sys

# option -> takes a value. A value stands behind "=" or in the next word, for one letter also right behind it.
OPTIONS = {
    "pals": {"-n": 1, "-np": 1, "--np": 1, "-ppn": 1, "--ppn": 1, "-d": 1, "--depth": 1, "--cpu-bind": 1, "--mem-bind": 1,
             "--gpu-bind": 1, "--env": 1, "--genv": 1, "--envall": 0, "--genvall": 0, "--envnone": 0, "--envlist": 1,
             "--hosts": 1, "--hostfile": 1, "--pmi": 1, "--wdir": 1, "-l": 0, "--label": 0, "--line-buffer": 0,
             "--abort-on-failure": 0, "--no-abort-on-failure": 0, "--no-vni": 0, "--no-transfer": 0, "--rlimits": 1},
    "slurm": {"-N": 1, "--nodes": 1, "-n": 1, "--ntasks": 1, "--ntasks-per-node": 1, "-c": 1, "--cpus-per-task": 1,
              "--distribution": 1, "--nodelist": 1, "--cpu-bind": 1, "--mem-bind": 1, "--gpu-bind": 1, "--gpus-per-node": 1,
              "--gpus-per-task": 1, "--export": 1, "--kill-on-bad-exit": 1, "--wait": 1, "--chdir": 1, "--label": 0, "-l": 0,
              "--output": 1, "--error": 1, "--mpi": 1, "--exact": 0, "--overlap": 0, "--unbuffered": 0, "-u": 0, "--network": 1},
    "flux": {"-N": 1, "--nodes": 1, "-n": 1, "--ntasks": 1, "-x": 0, "--exclusive": 0, "--requires": 1, "-o": 1, "--setopt": 1,
             "--setattr": 1, "--label-io": 0, "-l": 0, "--env": 1, "-c": 1, "-g": 1, "--cwd": 1},
}


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
            if at == len(words):
                fail("%s needs a value" % name)
            value, at = words[at], at + 1
        if not known[name] and equals:
            fail("%s takes no value" % name)
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


class Flux:
    def __init__(self, options, config):
        self.size = int(last(options, "-n", "--ntasks"))
        nodes = int(last(options, "-N", "--nodes"))
        required = last(options, "--requires")
        self.hosts = hosts_of_list(required[len("host:"):] if required else config["hosts"])[:nodes]
        if len(self.hosts) < nodes:
            fail("unsatisfiable request")
        self.counts = spread(self.size, nodes)

    def variables(self, rank, local, node):
        return {"FLUX_TASK_RANK": rank, "FLUX_TASK_LOCAL_ID": local, "FLUX_JOB_SIZE": self.size, "FLUX_JOB_NNODES": len(self.hosts),
                "FLUX_JOB_ID": "\u0192ABC123", "PMI_RANK": rank, "PMI_SIZE": self.size}


def main():
    with open(sys.argv[1]) as file:
        config = json.load(file)
    kind, words = sys.argv[2], sys.argv[3:]
    if words == ["--version"]:
        print({"pals": "mpiexec 1.8.0", "slurm": "slurm 24.11.5", "flux": "commands: 0.88.0\nlibflux-core: 0.88.0"}[kind])
        return 0
    if kind == "flux" and words[:2] == ["hostlist", "local"]:
        print(config["hosts"])
        return 0
    with open(os.path.join(config["record"], "call.json"), "x") as file:
        json.dump({"argv": words, "env": dict(os.environ)}, file)
    if kind == "flux":
        if words[:1] != ["run"]:
            fail("no command %s" % words[:1])
        words = words[1:]
    options, program = parse(kind, words)
    job = {"pals": Pals, "slurm": Slurm, "flux": Flux}[kind](options, config)
    if sum(job.counts) != job.size:
        fail("%d ranks, but the nodes take %d" % (job.size, sum(job.counts)))
    started, first = [], 0
    for node, count in enumerate(job.counts):
        for local in range(count if node in (0, len(job.counts) - 1) else 0):
            own = {name: str(value) for name, value in job.variables(first + local, local, node).items()}
            started.append(subprocess.Popen(program, env={**os.environ, **own}))
        first += count
    return max(child.wait() for child in started)


sys.exit(main())
