#!/usr/bin/python3
"""Ranks in containers of real engines: podman, Charliecloud and bubblewrap, as the distribution packages them.

The image is a directory with a static busybox: no Python, no libraries. What a rank finds inside is compared with what the same
plan gives it outside. A PyTorch training runs on two nodes in a container that has the distribution's /usr.
"""
import json
import os
import re
import shutil
import signal
import subprocess

import engines
from engines import EXAMPLE, cpu_list, need, support, wait_until

# Each rank writes its environment and CPUs beside the others.
SCRIPT = "cat /proc/self/environ > env.$RANK; grep Cpus_allowed_list /proc/self/status > cpus.$RANK; hostname > host.$RANK"
# Of the container, of this process, of this launch or of the launcher's instance.
OWN = re.compile(r"PATH|HOME|HOSTNAME|TERM|PWD|OLDPWD|SHLVL|USER|_|CH_RUNNING|container|LD_LIBRARY_PATH|TMPDIR|MASTER_PORT|LANG|LC_ALL"
                 r"|SLURM_.*|SLURMD_.*|SRUN_.*|PMI_.*|HPCLAUNCH_LAUNCH.*|.*_OPTIONS|PYTHONDONTWRITEBYTECODE|TORCHELASTIC_RUN_ID")
# This kind of machine has hybrid cgroups, and root may not raise limits.
PODMAN = {"engine": "podman", "options": ["--cgroups=disabled", "--ulimit=nproc=4096:4096"], "why": "as this sandbox permits"}
CGROUP = "mountpoint -q /sys/fs/cgroup && umount -R /sys/fs/cgroup; mkdir -p /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec \"$0\" \"$@\""


def make_root(folder, links=()):
    for name in ("bin", "proc", "sys", "dev", "tmp", "etc", "run", "root", "home", "mnt"):
        if name not in links:
            os.makedirs(os.path.join(folder, name))
    for name in links:
        os.symlink("usr/" + name, os.path.join(folder, name))
    with open(folder + "/etc/passwd", "w") as file:
        file.write("root:x:0:0:root:/root:/bin/sh\n")
    for name in ("group", "hosts", "resolv.conf"):
        open(os.path.join(folder, "etc", name), "w").close()
    if "bin" not in links:
        shutil.copy(need("busybox"), folder + "/bin/busybox")
        for name in ("sh", "env", "cat", "sleep", "grep", "hostname"):
            os.symlink("busybox", os.path.join(folder, "bin", name))


def read(folder):
    """{rank: (environment without what is a container's own, CPUs, host)}"""
    ranks = {}
    for name in sorted(os.listdir(folder)):
        if name.startswith("env."):
            rank = int(name[4:])
            with open(os.path.join(folder, name), "rb") as file:
                env = {k.decode(): v for k, v in support.entries(file.read()).items() if not OWN.fullmatch(k.decode()) and b"/mpi-" not in v}  # a folder of this launch
            with open(os.path.join(folder, "cpus.%d" % rank)) as file, open(os.path.join(folder, "host.%d" % rank)) as host:
                ranks[rank] = (env, cpu_list(file.read().split()[1]), host.read().strip())
    return ranks


class Container(engines.Test):
    nodes = 2

    def setUp(self):
        super().setUp()
        self.own_nodes()
        self.root = os.path.join(self.folder, "root")
        make_root(self.root)
        self.profile_file = self.file("podman.json", json.dumps(
            {"schema": 1, "name": "sandbox", "doc": "podman in this sandbox", "containers": [PODMAN]}))

    def options(self, engine, root=None):
        return ["--profile", self.profile_file, "--container", root or self.root, "--container-engine", engine]

    def observed(self, name, nodes, ppn, options, engine):
        place = os.path.join(self.folder, name)
        os.mkdir(place)
        words = ["run", "--ppn", str(ppn), "--oversubscribe", "--master-port", "29555", *([] if nodes == 2 else ["--launcher", "local", "--force"]), "--set", "ODD=a b\"$c`d'\n\\u000A,", *options, "--", "sh", "-c", SCRIPT]
        argv = [support.HPCLAUNCH, *words]
        argv = [*self.salloc(2), *argv] if nodes == 2 else argv
        if engine == "podman":
            argv = ["unshare", "-m", "sh", "-c", CGROUP, *argv]
        done = self.cluster.run("login" if nodes == 2 else "n1", argv, cwd=place, env=self.cluster.environment("login", USER="root"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("hpclaunch: rank", done.stderr)
        return read(place)

    def same(self, engine, nodes, counts):
        for ppn in counts:
            with self.subTest(engine=engine, nodes=nodes, ppn=ppn):
                out = self.observed("%s-out-%d-%d" % (engine, nodes, ppn), nodes, ppn, ["--profile", "none"], "")
                inside = self.observed("%s-in-%d-%d" % (engine, nodes, ppn), nodes, ppn, self.options(engine), engine)
                self.assertEqual(sorted(out), list(range(nodes * ppn)))
                self.assertEqual(sorted(inside), sorted(out))
                for rank in out:
                    self.assertEqual(inside[rank][1:], out[rank][1:], "rank %d: CPUs, host" % rank)
                    planned = {n: v for n, v in out[rank][0].items() if engine != "podman" or n in inside[rank][0]}
                    self.assertEqual(inside[rank][0], planned, "rank %d" % rank)
                    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "OMP_NUM_THREADS", "ODD"):
                        self.assertEqual(inside[rank][0].get(name), out[rank][0][name], name)
        self.nothing_left()

    def test_charliecloud_on_one_node(self):
        self.same("charliecloud", 1, (1, 2, 4))

    def test_bubblewrap_on_one_node(self):
        self.same("bubblewrap", 1, (1, 2, 4))

    def test_charliecloud_on_two_nodes(self):
        self.same("charliecloud", 2, (1, 2))

    def test_bubblewrap_on_two_nodes(self):
        self.same("bubblewrap", 2, (1, 2))

    def test_podman_on_two_nodes(self):
        self.same("podman", 2, (1, 2))

    def test_podman_on_one_node(self):
        self.same("podman", 1, (1, 2, 4))

    def test_verify_on_two_nodes(self):
        for engine in ("charliecloud", "bubblewrap"):
            done = self.allocation(2, "verify", "--ppn", "2", "--oversubscribe", *self.options(engine), "--", "sh",
                                   env=self.cluster.environment("login", USER="root"))
            self.assertEqual(done.out, "4 of 4 ranks as planned on 2 nodes\n", str(done))

    def test_program_missing_in_the_image(self):
        done = self.on("n1", "run", "--force", "-n", "2", "--oversubscribe", *self.options("bubblewrap"), "--", "python3")
        self.assertEqual(done.status, 127, str(done))
        self.assertIn("program \"python3\" does not exist in image", done.err)

    def ended(self, how, engine="podman"):
        """A container that sleeps is ended by a signal to hpclaunch; nothing of it stays."""
        argv = [support.HPCLAUNCH, "run", "-n", "2", "--oversubscribe", "--grace", "3600", *self.options(engine), "--", "sh", "-c", "echo > begun.$RANK; exec sleep 7%d" % os.getpid()]
        if engine == "podman":
            argv = ["unshare", "-m", "sh", "-c", CGROUP, *argv]
        process = subprocess.Popen(argv, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   env=support.clean_env(USER="root"))
        try:
            wait_until(lambda: all(os.path.exists("%s/begun.%d" % (self.folder, r)) for r in range(2)) or process.poll() is not None, support.LIMIT, "the ranks have not begun")
            process.send_signal(how)
            process.communicate(timeout=support.LIMIT)  # without an init process in the container an hour of grace would pass
            left = lambda: subprocess.run(["pgrep", "-f", "%s|sleep 7%d" % (self.root, os.getpid())], stdout=subprocess.PIPE).stdout.split()
            sleeping = lambda: [p for p in left() if int(p) != os.getpid()]
            wait_until(lambda: not sleeping(), support.LIMIT, "left behind: %s" % sleeping())
            return process.returncode
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def test_signal_reaches_the_program_in_podman(self):
        self.assertEqual(self.ended(signal.SIGTERM), 143)

    def test_calls_that_name_our_files(self):
        """At most two more for each rank than without a container."""
        ours = os.path.dirname(os.path.realpath(support.shim_path()))

        def count(name, options, ranks):
            trace = os.path.join(self.folder, name)
            done = subprocess.run(["strace", "-f", "-qq", "-s", "4096", "-e", "trace=file", "-o", trace, support.HPCLAUNCH, "run", "--force", "-n", str(ranks),
                                   "--oversubscribe", *options, "--", "sleep", "0"], cwd=self.folder, env=support.traced_env(USER="root"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(trace, errors="replace") as file:
                return sum(1 for line in file if '"%s' % ours in line.split(", [")[0])

        for engine in ("bubblewrap", "charliecloud"):
            more = [count("%s-%d" % (engine, ranks), options, ranks) for options in ([], self.options(engine)) for ranks in (2, 6)]
            outside, inside = (more[1] - more[0]) / 4, (more[3] - more[2]) / 4
            self.assertGreaterEqual(outside, 1)
            self.assertLessEqual(inside, outside + 2, engine)

    def test_killed_with_podman(self):
        self.assertEqual(self.ended(signal.SIGKILL), -signal.SIGKILL)

    def test_killed_with_charliecloud(self):
        self.assertEqual(self.ended(signal.SIGKILL, "charliecloud"), -signal.SIGKILL)

    def test_training_on_two_nodes(self):
        root = os.path.join(self.folder, "torch")
        links = [name for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin") if os.path.islink("/" + name)]
        make_root(root, links)
        os.mkdir(root + "/usr")
        losses = set()
        for engine in ("charliecloud", "bubblewrap"):
            binds = [word for path in ("/usr", "/etc/hosts", "/etc/alternatives", support.ROOT) if engine != "charliecloud" or path != "/etc/hosts"
                     for word in ("--container-bind", path)]
            done = self.allocation(2, "run", "--ppn", "2", "--oversubscribe", *self.meeting(), *self.options(engine, root), *binds, "--",
                                   "/usr/bin/python3", EXAMPLE, "--device", "cpu", "--steps", "6",
                                   env=self.cluster.environment("login", USER="root"))
            self.assertEqual(done.status, 0, str(done))
            end = re.search(r"(?m)^done: 6 steps on 4 ranks .* loss ([\d.]+) -> ([\d.]+), models equal$", done.out)
            self.assertTrue(end, str(done))
            self.assertLess(float(end[2]), float(end[1]))
            losses.add(end.groups())
        self.assertEqual(len(losses), 1)


class EnteredBySrun(engines.Test):
    """pyxis and CSCS's container engine, as containers_spank.c has them: real srun, slurmstepd and roots."""

    nodes = 2
    IMAGE = {"RANK": "9", "WORLD_SIZE": "9", "MASTER_ADDR": "image", "OMP_NUM_THREADS": "99", "PYTORCH_VERSION": "2.9", "PATH": "/bin", "OF_IMAGE": "1"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        engines.own_nodes(cls.cluster)  # its containers are mount namespaces
        plugin, images = cls.cluster.path("containers.so"), cls.cluster.path("images")
        subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", plugin, os.path.join(engines.HERE, "containers_spank.c")], check=True)
        os.mkdir(images)
        make_root(os.path.join(images, "bare"))
        with open(os.path.join(images, "bare", "etc", "environment"), "w") as file:
            file.writelines("%s=%s\n" % item for item in cls.IMAGE.items())
        with open(cls.cluster.path("plugstack.conf"), "w") as file:
            file.write("required %s %s\n" % (plugin, images))

    def options(self, engine):
        if engine == "pyxis":
            return ["--container", "bare", "--container-engine", engine]
        shim = os.path.dirname(os.path.realpath(support.shim_path()))
        mounts = ", ".join('"%s:%s"' % (path, path) for path in (shim, self.folder, self.cluster.path("jobs")))
        definition = self.file("bare.toml", 'image = "bare"\nmounts = [%s]\n' % mounts)
        return ["--container", definition, "--container-engine", engine]

    def start(self, place, ppn, options, env=()):
        place = os.path.join(self.folder, place)
        os.mkdir(place)
        words = ["run", "--ppn", str(ppn), "--oversubscribe", "--master-port", "29555", "--set", "ODD=a b\"c`d'", *options, "--", "sh", "-c", SCRIPT]
        done = self.cluster.run("login", [*self.salloc(2), support.HPCLAUNCH, *words], cwd=place, env=self.cluster.environment("login", USER="root", **dict(env)))
        return done, place

    def test_inside_as_outside(self):
        for ppn in (1, 2, 4):
            out = read(self.succeeds(*self.start("out-%d" % ppn, ppn, [])))
            for engine in ("pyxis", "ce"):
                with self.subTest(engine=engine, ppn=ppn):
                    inside = read(self.succeeds(*self.start("%s-%d" % (engine, ppn), ppn, self.options(engine))))
                    self.assertEqual(sorted(inside), list(range(2 * ppn)))
                    for rank in out:
                        self.assertEqual(inside[rank][1:], out[rank][1:], "rank %d: CPUs, host" % rank)
                        env, want = inside[rank][0], out[rank][0]
                        self.assertEqual(env.pop("OF_IMAGE", None), b"1")  # it was there
                        self.assertEqual(env.pop("PYTORCH_VERSION", None), b"2.9")
                        self.assertEqual(env, want, "rank %d" % rank)
        self.nothing_left()

    def succeeds(self, done, place):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("hpclaunch: rank", done.stderr)
        return place

    def test_verify(self):
        for engine in ("pyxis", "ce"):
            done = self.allocation(2, "verify", "--ppn", "2", "--oversubscribe", *self.options(engine), "--", "sh", env=self.cluster.environment("login", USER="root"))
            self.assertEqual(done.out, "4 of 4 ranks as planned on 2 nodes\n", str(done))

    def test_what_is_not_there(self):
        done, _ = self.start("none", 1, ["--container", "other", "--container-engine", "pyxis"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("failed to import", done.stderr)
        done, _ = self.start("program", 1, [*self.options("pyxis"), "--verify", "off"])
        self.assertEqual(done.returncode, 0, done.stderr)
        words = ["run", "--ppn", "1", *self.options("pyxis"), "--", "python3"]
        done = self.allocation(2, *words, env=self.cluster.environment("login", USER="root"))
        self.assertEqual(done.status, 127, str(done))
        self.assertIn("python3", done.err)


if __name__ == "__main__":
    engines.main()
