#!/usr/bin/python3
"""Virtual nodes on one machine, with a real Slurm on them.

    cluster.py up N [--shape plain|real|gpu|real-gpu] [--mode namespaces|ports]   prints the line to `export`
    cluster.py exec NODE COMMAND...     runs it there; `login` is the node from which jobs are submitted
    cluster.py kill NODE                ends the node's slurmd; what runs on the node goes on
    cluster.py crash NODE               ends every process of the node at once, as a panic with a reboot does
    cluster.py crash --silent NODE      and takes its cable out first: nobody is told
    cluster.py start NODE               boots it again, or starts its slurmd again
    cluster.py down

Mode `namespaces`: the whole cluster lives in one PID, network, mount and UTS namespace, whose process 1 is the keeper
(this file). When it ends, for whatever reason, the kernel ends everything in it, and bridge, interfaces and mounts
are gone with their namespaces: nothing has a name on the machine outside, so clusters cannot collide. In it each
node n1, n2, ... has network, mounts and host name of its own: /etc/hosts, hsn0 on a bridge, /dev/shm, /sys.
The keeper lives as long as a pipe from who started it is open, or until `down`.

Mode `ports`: where the kernel permits no namespaces. Several slurmd with a port each; a node's name is then known to
Slurm alone, and programs see the machine's.

Shapes: plain has 64 cores per node for Slurm and binds nothing, gpu the same with 4 GPUs that do not exist, real
has this machine's CPUs and binds for true (task/affinity), real-gpu also has the 4 GPUs.
"""
import argparse
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = ("munged", "slurmctld", "slurmd", "srun", "sinfo", "salloc", "sbatch")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UNSHARE = ["--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
NETWORK = "10.77"
LOGIN_ADDRESS = NETWORK + ".255.254"
DOMAIN = ".hpc.test"  # nodes answer with and without it
READY_WITHIN = 300  # seconds; a cluster of 4 is up after 1
DEVICES = 4
BINDS, HAS_GPUS = ("real", "real-gpu"), ("gpu", "real-gpu")


class Failed(Exception):
    """The cluster cannot be had; the message says why."""


def tool(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":" + SYSTEM_PATH)
    if not path:
        packages = {"munged": "munge", "ip": "iproute2", "nsenter": "util-linux", "unshare": "util-linux"}
        raise Failed("%s is not installed: apt-get install %s" % (name, packages.get(name, "slurm-wlm")))
    return path


def unshare():
    """The command that makes the namespaces; as another user than root with a user namespace around them."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return [tool("unshare")] + user + UNSHARE


def namespaces_work():
    """All that is needed of them: a bridge, a sysfs of its own, a mount."""
    script = "ip link add probe type bridge && mount -t tmpfs tmpfs /dev/shm && mount -t sysfs sysfs /sys"
    done = subprocess.run(unshare() + ["--", "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE)
    return done.returncode == 0, done.stderr.decode(errors="replace").strip()


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def birth(pid):
    """When a process was started, in ticks since boot; None when it is gone or a zombie."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failed(what)
        time.sleep(0.02)


# ---- what both sides know of a cluster: its folder ----------------------------------------------------------

class State:
    """The folder of a cluster: configuration, logs, sockets, pids (those of the cluster's own PID namespace)."""

    def __init__(self, folder):
        self.folder = folder
        with open(self.path("cluster.json")) as file:
            self.__dict__.update(json.load(file))

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    @property
    def names(self):
        return ["n%d" % (i + 1) for i in range(self.nodes)]

    def index(self, node):
        if node not in self.names:
            raise Failed("no node %s; there are %s" % (node, " ".join(self.names)))
        return self.names.index(node)

    def address(self, node):
        return "%s.0.%d" % (NETWORK, self.index(node) + 1) if self.mode == "namespaces" else "127.0.0.1"

    def pid(self, name):
        try:
            with open(self.path("run", name)) as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    def set_pid(self, name, pid):
        with open(self.path("run", name), "w") as file:
            file.write("%d\n" % pid)


def slurm_conf(state, cores):
    spaces = state.mode == "namespaces"
    user = "root" if spaces or os.geteuid() == 0 else __import__("pwd").getpwuid(os.geteuid()).pw_name
    lines = [
        "ClusterName=virtual", "SlurmctldHost=%s" % ("login(%s)" % LOGIN_ADDRESS if spaces else "%s(127.0.0.1)" % os.uname().nodename),
        "SlurmUser=" + user, "SlurmdUser=" + user, "AuthType=auth/munge", "AuthInfo=socket=" + state.path("munge", "socket"),
        "CredType=cred/munge", "SlurmctldPort=%d" % state.port, "StateSaveLocation=" + state.path("ctld"),
        "SlurmdSpoolDir=" + state.path("spool", "%n"), "SlurmctldPidFile=" + state.path("run", "slurmctld.pid"),
        "SlurmdPidFile=" + state.path("run", "slurmd-%n.pid"), "SlurmctldLogFile=" + state.path("log", "slurmctld"),
        "SlurmdLogFile=" + state.path("log", "slurmd-%n"), "ProctrackType=proctrack/linuxproc", "MpiDefault=none",
        "TaskPlugin=task/" + ("affinity" if state.shape in BINDS else "none"), "SwitchType=switch/none",
        "JobAcctGatherType=jobacct_gather/none", "AccountingStorageType=accounting_storage/none",
        "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "SchedulerType=sched/backfill",
        # Steps and jobs follow one another at once; a node that is silent for 10 s is down.
        "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1",
        "SlurmdParameters=config_overrides", "ReturnToService=2", "EnforcePartLimits=ALL", "SlurmdTimeout=10", "KillWait=5",
        "MaxTasksPerNode=512", "PropagateResourceLimits=NONE",
    ]
    if spaces:
        lines.append("SlurmdPort=%d" % (state.port + 1))
    if state.shape in HAS_GPUS:
        lines.append("GresTypes=gpu")
    for i, node in enumerate(state.names):
        where = "NodeHostname=%s NodeAddr=%s" % (node, state.address(node)) if spaces else \
            "NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d" % (state.port + 1 + i)
        lines.append("NodeName=%s %s CPUs=%d RealMemory=4000 %sState=UNKNOWN"
                     % (node, where, cores, "Gres=gpu:fake:%d " % DEVICES if state.shape in HAS_GPUS else ""))
    lines.append("PartitionName=batch Nodes=%s Default=YES MaxTime=INFINITE State=UP" % ",".join(state.names))
    return "\n".join(lines) + "\n"


# ---- the keeper: builds the cluster from inside, and is what it lives by -----------------------------------------

class Keeper:
    def __init__(self, state):
        self.state = state
        self.spaces = state.mode == "namespaces"

    def command(self, *argv, **more):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
        if done.returncode != 0:
            raise Failed("%s: %s" % (" ".join(argv), done.stdout.decode(errors="replace").strip()))

    def ip(self, lines, inside=()):
        self.command(*inside, tool("ip"), "-batch", self.write("ip-batch", "\n".join(lines) + "\n"))

    def write(self, name, text, mode=0o644):
        path = self.state.path(name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def background(self, name, argv, **more):
        """A daemon in the foreground, so that it is a child of the keeper; its words go to a log."""
        with open(self.state.path("log", name), "ab") as log:
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **more)

    def folders(self):
        for name in ("ctld", "spool", "munge", "run", "log", "tmp", "dev", "bin", "jobs", "root"):
            os.makedirs(self.state.path(name), exist_ok=True)
        hosts = ["127.0.0.1 localhost", "%s login" % (LOGIN_ADDRESS if self.spaces else "127.0.0.1")]
        hosts += ["%s %s %s%s" % (self.state.address(node), node, node, DOMAIN) for node in self.state.names]
        self.write("hosts", "\n".join(hosts) + "\n")
        gres = []
        for i in range(DEVICES if self.state.shape in HAS_GPUS else 0):
            os.symlink("/dev/null", self.state.path("dev", "gpu%d" % i))
            gres.append("Name=gpu Type=fake File=%s Flags=nvidia_gpu_env" % self.state.path("dev", "gpu%d" % i))
        self.write("gres.conf", "\n".join(gres) + "\n")
        self.write("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        cores = len(os.sched_getaffinity(0)) if self.state.shape in BINDS else 64
        self.write("slurm.conf", slurm_conf(self.state, cores))
        # Found on PATH by launchers that look for ssh, given by name to those that ask for one.
        self.write(os.path.join("bin", "ssh"), SSH % {"python": sys.executable, "cluster": os.path.abspath(__file__),
                                                      "state": self.state.folder, "domain": DOMAIN}, 0o755)

    def own_name(self, name):
        """Host name and /etc/hosts, by mounts that are seen in this mount namespace only."""
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.sethostname(name.encode(), len(name)) != 0:
            raise Failed("sethostname: " + os.strerror(ctypes.get_errno()))
        self.command(tool("mount"), "--bind", self.state.path("hosts"), "/etc/hosts")

    def network(self):
        lines = ["link set lo up", "link add hsn type bridge", "addr add %s/16 dev hsn" % LOGIN_ADDRESS, "link set hsn up"]
        self.ip(lines)
        self.own_name("login")

    def slurm(self):
        with open(self.state.path("munge", "key"), "wb") as key:
            key.write(os.urandom(128))
        os.chmod(self.state.path("munge", "key"), 0o600)
        munge = self.state.path("munge")
        self.background("munged", [tool("munged"), "--foreground", "--force", "--num-threads=2", "--key-file=" + munge + "/key",
                                   "--socket=" + munge + "/socket", "--pid-file=" + munge + "/pid", "--log-file=" + munge + "/log",
                                   "--seed-file=" + munge + "/seed"])
        wait_until(lambda: os.path.exists(munge + "/socket"), 20, "munged did not come up: " + self.log("munged"))
        self.background("slurmctld-out", [tool("slurmctld"), "-D", "-c", "-f", self.state.path("slurm.conf")])

    def log(self, name):
        try:
            with open(self.state.path("log", name), errors="replace") as file:
                return " | ".join(file.read().splitlines()[-6:])
        except OSError as error:
            return str(error)

    def boot(self, node):
        """A node as it is after power on: its namespaces, held by a process that sleeps, and slurmd."""
        if self.spaces and (self.state.pid(node) is None or birth(self.state.pid(node)) is None):
            self.hold(node)
        if not self.spaces:
            self.state.set_pid(node, os.getpid())
        enter = inside(self.state.pid(node)) + ["--"] if self.spaces else []
        self.write(os.path.join("run", "enter-" + node), " ".join(enter) + "\n")
        self.start_slurmd(node)

    def hold(self, node):
        index = self.state.index(node)
        for mark in ("crashed-", "silent-"):
            if os.path.exists(self.state.path("run", mark + node)):
                os.unlink(self.state.path("run", mark + node))
        ready, told = os.pipe()
        holder = self.background("node-" + node, [tool("unshare"), "--net", "--uts", "--mount", "--propagation", "private", "--",
                                                  sys.executable, os.path.abspath(__file__), "_hold", self.state.folder, node,
                                                  str(told)], pass_fds=[told])
        os.close(told)
        with os.fdopen(ready) as pipe:
            said = pipe.read()
        if said != "ready":
            raise Failed("node %s did not come up: %s" % (node, said))
        self.state.set_pid(node, holder.pid)
        outer = "port%d" % (index + 1)
        subprocess.run([tool("ip"), "link", "del", outer], stderr=subprocess.DEVNULL)  # of its last life
        self.ip(["link add %s type veth peer name hsn0 netns %d" % (outer, holder.pid), "link set %s master hsn" % outer,
                 "link set %s up" % outer])
        self.ip(["link set lo up", "addr add %s/16 dev hsn0" % self.state.address(node), "link set hsn0 up",
                 "route add default via " + LOGIN_ADDRESS], inside=[tool("nsenter"), "-t", str(holder.pid), "-n"])

    def start_slurmd(self, node):
        pid = self.state.pid("slurmd-" + node)
        if pid is not None and birth(pid) is not None:
            return
        os.makedirs(self.state.path("spool", node), exist_ok=True)
        argv = [tool("slurmd"), "-D", "-f", self.state.path("slurm.conf"), "-N", node]
        if self.spaces:
            argv = inside(self.state.pid(node)) + argv
        env = dict(os.environ, PATH=SYSTEM_PATH, TMPDIR=self.state.path("tmp"))
        self.state.set_pid("slurmd-" + node, self.background("slurmd-out-" + node, argv, env=env).pid)

    def keep(self):
        """Reaps what is orphaned until the pipe of who started us ends, or a signal says so."""
        stop = []
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: stop.append(1))
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while not stop:
            ready = select.select([0] if self.state.piped else [], [], [], 0.2)[0]
            if ready and not os.read(0, 100):
                break
            reap()

    def end(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if self.spaces:
                try:
                    os.kill(-1, signal.SIGKILL)  # as process 1: all of this PID namespace and no other
                except ProcessLookupError:
                    pass
            else:
                for pid in descendants(os.getpid()) + users(self.state.path("slurm.conf")):
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            if not reap() and (self.spaces or not users(self.state.path("slurm.conf"))):
                break
            time.sleep(0.01)
        shutil.rmtree(self.state.folder, ignore_errors=True)


def reap():
    """Collects what has ended; False when no child is left."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return True
        except ChildProcessError:
            return False


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child] + descendants(child)
    return found


def users(configuration):
    """Processes with this SLURM_CONF: in mode ports a slurmd that was started again, and jobs, need not descend from the keeper."""
    found = []
    for pid in numbered():
        try:
            with open("/proc/%d/environ" % pid, "rb") as file:
                if b"SLURM_CONF=" + os.fsencode(configuration) in file.read().split(b"\0") and pid != os.getpid():
                    found.append(pid)
        except OSError:
            continue
    return [pid for pid in found if birth(pid) is not None]


def inside(pid):
    return [tool("nsenter"), "-t", str(pid), "-n", "-u", "-m"]


# The ssh of the virtual nodes. Like the real one it stays beside the remote command, carries no environment over, starts
# in $HOME, gives the words to a shell, and does not end the remote command when it is killed. The far end of a
# node that crashed says nothing more; a node that rebooted resets the connection.
SSH = r"""#!/bin/sh
state=%(state)s
while [ $# -gt 0 ]; do
  case $1 in
    -[bcDEeFIiJLlmOopQRSWw]) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=${1#*@}
host=${host%%%(domain)s}
shift
if [ -e "$state/run/silent-$host" ]; then exec sleep 1000000; fi
if [ -e "$state/run/crashed-$host" ] || ! read -r pid <"$state/run/$host"; then
  echo "ssh: connect to host $host port 22: No route to host" >&2
  exit 255
fi 2>/dev/null
env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME="$HOME" USER="${USER:-root}" LANG=C SHELL=/bin/sh \
  TMPDIR="$state/tmp" HPCLAUNCH_TEST_NODE="$host" $(cat "$state/run/enter-$host") \
  /bin/sh -c "cd; $*"
status=$?
if [ -e "$state/run/silent-$host" ]; then exec sleep 1000000; fi
if [ -e "$state/run/crashed-$host" ]; then
  echo "client_loop: send disconnect: Connection reset by peer" >&2
  exit 255
fi
exit $status
"""


def keep(folder):
    """Runs as the keeper; says "ready" or what failed on the pipe whose number is in the state."""
    state = State(folder)
    keeper = Keeper(state)
    if not keeper.spaces:
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: daemons that detach stay ours
    os.environ["SLURM_CONF"] = state.path("slurm.conf")
    answer = 1
    try:
        keeper.folders()
        if keeper.spaces:
            keeper.network()
        keeper.slurm()
        for node in state.names:
            keeper.boot(node)
        wait_until(lambda: idle(state) == state.nodes, READY_WITHIN, "only %d of %d nodes came up: %s; %s"
                   % (idle(state), state.nodes, keeper.log("slurmctld"), keeper.log("slurmd-n1")))
        os.write(answer, b"ready\n")
    except Failed as error:
        os.write(answer, ("failed: %s\n" % error).encode())
    else:
        os.close(answer)
        keeper.keep()
    keeper.end()


def idle(state):
    done = subprocess.run([tool("sinfo"), "-h", "-N", "-t", "idle,alloc,mix", "-o", "%N"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return len(set(done.stdout.split()))


def hold(folder, node, told):
    """The process that a node's namespaces live by, from the inside."""
    state = State(folder)
    keeper = Keeper(state)
    try:
        keeper.own_name(node)
        mount = tool("mount")
        keeper.command(mount, "-t", "sysfs", "sysfs", "/sys")  # /sys/class/net is this network's
        keeper.command(mount, "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup")  # slurmd asks for the folder, not for cgroups
        keeper.command(mount, "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm")
        os.write(told, b"ready")
    except Failed as error:
        os.write(told, str(error).encode())
        return
    os.close(told)
    while True:
        signal.pause()


# ---- from outside -------------------------------------------------------------------------------------------------

class Cluster:
    """with Cluster(2) as cluster: cluster.run("n1", ["hostname"]).

    Raises Failed when it cannot be had. `mode` is what came of it; on other machines tests have to ask.
    """

    def __init__(self, nodes, shape="plain", mode=None, piped=True, folder=None):
        if folder is not None:  # one that runs already
            self.state = State(folder)
            return
        for name in TOOLS:
            tool(name)
        mode, self.why = mode or os.environ.get("HPCLAUNCH_TEST_CLUSTER"), "HPCLAUNCH_TEST_CLUSTER"
        if not mode:
            works, self.why = namespaces_work()
            mode = "namespaces" if works else "ports"
            if not works:
                print("cluster: no namespaces here (%s): mode ports" % self.why, file=sys.stderr)
        folder = tempfile.mkdtemp(prefix="hpclaunch-cluster-")
        os.chmod(folder, 0o755)  # munged wants its socket to be reachable
        self._write(folder, mode=mode, nodes=nodes, shape=shape, piped=piped, port=6817 if mode == "namespaces" else free_ports(nodes + 2))
        space = unshare() + ["--"] if mode == "namespaces" else []
        env = {name: os.environ[name] for name in ("HOME", "USER", "LANG") if name in os.environ}
        with open(os.path.join(folder, "keeper.log"), "wb") as log:
            self.keeper = subprocess.Popen(space + [sys.executable, os.path.abspath(__file__), "_keep", folder],
                                           stdin=subprocess.PIPE if piped else subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=log, env=dict(env, PATH=SYSTEM_PATH), start_new_session=True)
        said = self.keeper.stdout.readline().decode().strip()
        self.keeper.stdout.close()
        if said != "ready":
            self.keeper.wait()
            words = open(os.path.join(folder, "keeper.log"), errors="replace").read() if os.path.exists(folder) else ""
            shutil.rmtree(folder, ignore_errors=True)
            raise Failed(said or "the keeper ended without a word: " + words)
        pid = children(self.keeper.pid)[0] if space else self.keeper.pid
        self._write(folder, keeper=pid, outer=self.keeper.pid, born=birth(pid))
        self.state = State(folder)

    @staticmethod
    def _write(folder, **values):
        path = os.path.join(folder, "cluster.json")
        if os.path.exists(path):
            with open(path) as file:
                values = dict(json.load(file), **values)
        with open(path + ".new", "w") as file:
            json.dump(values, file)
        os.rename(path + ".new", path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()

    @property
    def spaces(self):
        return self.state.mode == "namespaces"

    @property
    def names(self):
        return self.state.names

    def path(self, *parts):
        return self.state.path(*parts)

    def down(self):
        """Ends everything; waits until it has ended."""
        if birth(self.state.keeper) == self.state.born:
            os.kill(self.state.keeper, signal.SIGTERM)
        if hasattr(self, "keeper"):
            if self.keeper.stdin:
                self.keeper.stdin.close()
            self.keeper.wait()
        else:
            wait_until(lambda: birth(self.state.keeper) != self.state.born, 30, "the keeper does not end")
        shutil.rmtree(self.state.folder, ignore_errors=True)

    def environment(self, node, **extra):
        """What a login shell on the node has; nothing of the shell or job that the tests run in."""
        env = {"PATH": self.path("bin") + ":" + SYSTEM_PATH, "HOME": os.environ.get("HOME", "/"), "LANG": "C", "USER": "root",
               "SHELL": "/bin/sh", "TMPDIR": self.path("tmp"), "SLURM_CONF": self.path("slurm.conf"),
               "OMPI_MCA_orte_tmpdir_base": own_folder(self.path("tmp"))}
        env["XDG_RUNTIME_DIR"] = self.path("tmp", "run-" + node)  # a node's own, as /run/user is
        os.makedirs(env["XDG_RUNTIME_DIR"], 0o700, exist_ok=True)
        if not self.spaces and node != "login":
            env["HPCLAUNCH_TEST_NODE"] = node
        env.update(extra)
        return {name: value for name, value in env.items() if value is not None}

    def argv(self, node, argv, cwd=None):
        """The command line that runs argv on the node."""
        words = ["/usr/bin/env", "-C", cwd or self.path("jobs")] + list(argv)
        if not self.spaces:
            return words
        if node != "login":
            if self.state.pid(node) is None:
                raise Failed("no node " + node)
            words = inside(self.state.pid(node)) + ["--"] + words
        return inside(self.state.keeper) + ["-p", "--"] + words

    def popen(self, node, argv, env=None, cwd=None, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.argv(node, argv, cwd), env=self.environment(node) if env is None else env, **more)

    def inner(self, process):
        """The pid, as we see it, of what popen() started in there."""
        if not self.spaces:
            return process.pid
        wait_until(lambda: children(process.pid) or process.poll() is not None, 20, "the command did not start")
        found = children(process.pid)
        return found[0] if found else None

    def run(self, node, argv, env=None, cwd=None, timeout=300):
        """subprocess.CompletedProcess with text; past the time limit it is killed in there and TimeoutExpired is raised.

        Standard input neither speaks nor ends: MPICH's mpiexec 4.0.2 can die of one that ends.
        """
        silent, talker = os.pipe()
        process = self.popen(node, argv, env, cwd, stdin=silent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             errors="replace")
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            for pid in reversed(descendants(process.pid) + [process.pid]):
                os.kill(pid, signal.SIGKILL)
            out, err = process.communicate()
            raise subprocess.TimeoutExpired(argv, timeout, out, err)
        finally:
            os.close(silent)
            os.close(talker)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def _inside(self, *words):
        """A command of this file, in the keeper's place."""
        argv = [sys.executable, os.path.abspath(__file__), *words]
        if self.spaces:
            argv = inside(self.state.keeper) + ["-p", "--"] + argv
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=self.environment("login"))
        if done.returncode != 0:
            raise Failed(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode(errors="replace")

    def kill(self, node):
        self._inside("_kill", self.state.folder, node)

    def crash(self, node, silent=False):
        if not self.spaces:
            raise Failed("nodes can crash in mode namespaces only")
        self._inside("_crash", self.state.folder, node, "silent" if silent else "reset")

    def start(self, node):
        self._inside("_start", self.state.folder, node)
        wait_until(lambda: self.run("login", ["sinfo", "-h", "-n", node, "-t", "idle,alloc,mix", "-o", "%N"]).stdout.strip() == node,
                   60, "node %s did not come back" % node)

    def processes(self):
        """{pid: command line} of all in the cluster but its own daemons."""
        return {int(pid): words for pid, words in json.loads(self._inside("_list", self.state.folder)).items()}

    def pbs(self, nodes, per_node=1, **extra):
        """The environment of a PBS job on the first so many nodes, without anything of Slurm's: names as PBS
        Professional sets them. Hosts are listed per_node times, as with mpiprocs."""
        file = tempfile.NamedTemporaryFile("w", dir=self.path("jobs"), suffix=".pbs", delete=False)
        with file:
            for node in self.names[:nodes]:
                file.write((node + "\n") * per_node)
        number = "%d.virtual" % os.getpid()
        env = self.environment(self.names[0])
        del env["SLURM_CONF"]
        env.update(PBS_NODEFILE=file.name, PBS_JOBID=number, PBS_JOBNAME="test", PBS_ENVIRONMENT="PBS_BATCH", PBS_QUEUE="batch",
                   PBS_O_HOST="login", PBS_O_WORKDIR=self.path("jobs"), PBS_O_HOME=env["HOME"], PBS_O_LOGNAME="root",
                   PBS_O_PATH=env["PATH"], PBS_O_QUEUE="batch", PBS_O_SHELL="/bin/sh", PBS_O_SYSTEM="Linux", PBS_JOBDIR=env["HOME"],
                   PBS_JOBCOOKIE="00000000", PBS_NODENUM="0", PBS_TASKNUM="1", PBS_MOMPORT="15003", NCPUS="1", **extra)
        return env


def own_folder(base):
    """For Open MPI's files, of one job. What jobs of a user share on a node is removed by the last one to leave, under
    the hands of one that starts in that moment: https://github.com/open-mpi/ompi/issues/8510"""
    return tempfile.mkdtemp(prefix="mpi-", dir=base)


def free_ports(count):
    """The first of so many neighbouring TCP ports that nobody has, below those that the kernel deals out."""
    start = 20000 + os.getpid() * 97 % 8000
    for base in range(start, start + 4000, count):
        taken = []
        try:
            for port in range(base, base + count):
                taken.append(socket.create_server(("127.0.0.1", port)))
            return base
        except OSError:
            continue
        finally:
            for one in taken:
                one.close()
    raise Failed("no %d neighbouring ports are free" % count)


# ---- commands that run in the keeper's PID namespace ---------------------------------------------------------------

def space_of(pid):
    try:
        return os.readlink("/proc/%d/ns/net" % pid)
    except OSError:
        return None


def numbered():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def kill_node(state, node):
    state.index(node)
    pid = state.pid("slurmd-" + node)
    if pid is None or birth(pid) is None:
        raise Failed("slurmd of %s does not run" % node)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: birth(pid) is None, 10, "slurmd of %s does not end" % node)


def crash_node(state, node, how):
    index = state.index(node)
    holder = state.pid(node)
    space = space_of(holder)
    if space is None:
        raise Failed("node %s is down" % node)
    for mark in ["crashed-"] + (["silent-"] if how == "silent" else []):
        with open(state.path("run", mark + node), "w"):
            pass
    if how == "silent":
        subprocess.run([tool("ip"), "link", "set", "port%d" % (index + 1), "down"], check=True)
    here = lambda: [pid for pid in numbered() if space_of(pid) == space and birth(pid) is not None]
    # Stopped first, so that none of them sees another one end; children before their parents, since the kernel wakes stopped
    # process groups by SIGHUP and SIGCONT when they become orphans.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in sorted(here(), key=lambda pid: len(descendants(pid))):
            if pid != holder or number == signal.SIGKILL:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
    wait_until(lambda: not here(), 10, "node %s does not die" % node)


def list_processes(state):
    own = {1, os.getpid()} | {state.pid("slurmd-" + node) for node in state.names} | {state.pid(node) for node in state.names}
    daemons = {tool(name) for name in ("munged", "slurmctld", "slurmd")}
    found = {}
    within = set(descendants(state.keeper)) if state.mode == "ports" else set(numbered())
    for pid in within - own:
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        # slurmscriptd is slurmctld's own helper: a fork of it under its own command line.
        if birth(pid) is None or words[0] in daemons or words[0].startswith(("slurmctld:", "slurmscriptd")):
            continue
        found[pid] = " ".join(words).strip()
    print(json.dumps(found))


def main():
    hidden = {"_keep": lambda w: keep(w[0]), "_hold": lambda w: hold(w[0], w[1], int(w[2])),
              "_kill": lambda w: kill_node(State(w[0]), w[1]), "_crash": lambda w: crash_node(State(w[0]), w[1], w[2]),
              "_start": lambda w: Keeper(State(w[0])).boot(w[1]), "_list": lambda w: list_processes(State(w[0]))}
    if len(sys.argv) > 1 and sys.argv[1] in hidden:
        hidden[sys.argv[1]](sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", default=os.environ.get("HPCLAUNCH_CLUSTER"), help="the cluster's folder ($HPCLAUNCH_CLUSTER)")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up")
    up.add_argument("nodes", type=int)
    up.add_argument("--shape", choices=["plain", "real", "gpu", "real-gpu"], default="plain")
    up.add_argument("--mode", choices=["namespaces", "ports"])
    commands.add_parser("down")
    execute = commands.add_parser("exec")
    execute.add_argument("node")
    execute.add_argument("words", nargs=argparse.REMAINDER)
    for name in ("kill", "crash", "start"):
        one = commands.add_parser(name)
        one.add_argument("node")
        if name == "crash":
            one.add_argument("--silent", action="store_true")
    options = parser.parse_args()
    if options.command == "up":
        if not 1 <= options.nodes <= 200:
            raise Failed("from 1 to 200 nodes, not %d" % options.nodes)
        cluster = Cluster(options.nodes, options.shape, options.mode, piped=False)
        print("# %d nodes, mode %s, shape %s\nexport HPCLAUNCH_CLUSTER=%s" % (options.nodes, cluster.state.mode, options.shape,
                                                                              cluster.state.folder))
        return 0
    if not options.state or not os.path.exists(os.path.join(options.state, "cluster.json")):
        raise Failed("no cluster: export HPCLAUNCH_CLUSTER as `up` said, or --state FOLDER")
    cluster = Cluster(0, folder=options.state)
    if options.command == "down":
        cluster.down()
    elif options.command == "exec":
        if options.node != "login":
            cluster.state.index(options.node)
        argv = cluster.argv(options.node, options.words or ["/bin/sh"], os.getcwd())
        os.execve(argv[0], argv, cluster.environment(options.node))
    elif options.command == "crash":
        cluster.crash(options.node, options.silent)
    else:
        {"kill": cluster.kill, "start": cluster.start}[options.command](options.node)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit("cluster: %s" % failure)
