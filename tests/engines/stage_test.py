#!/usr/bin/python3
"""run --stage sbcast on two virtual nodes of a real Slurm: each node has a /dev/shm of its own."""
import os
import subprocess

import engines
from engines import EXAMPLE, support, wait_until

PYTHON = os.environ.get("HPCLAUNCH_TEST_PYTHON", "/usr/bin/python3")
WHERE = "import os, sys; os.write(1, ('%s %s\\n' % (sys.prefix, os.uname().nodename)).encode())"
FOLDER = "/dev/shm/hpclaunch-%d" % os.getuid()


class Stage(engines.Test):
    nodes = 2

    def setUp(self):
        super().setUp()
        self.own_nodes()
        self.env = self.cluster.environment("login", TMPDIR=self.folder, XDG_CACHE_HOME=os.path.join(self.folder, "cache"))

    def venv(self, unpack=None, megabytes=0):
        path = os.path.join(self.folder, "venv")
        subprocess.run([PYTHON, "-m", "venv", "--system-site-packages", "--without-pip", path], check=True)
        if unpack is not None:
            self.file("venv/bin/conda-unpack", unpack, 0o755)
        self.file("venv/data", os.urandom(megabytes << 20))
        return path

    def archive(self, **more):
        subprocess.run(["tar", "-C", self.venv(**more), "-czf", os.path.join(self.folder, "env.tgz"), "."], check=True)
        return os.path.join(self.folder, "env.tgz")

    def words(self, *words, method="sbcast"):
        return ["run", "--ppn", "1", "--oversubscribe", "--stage", method, "--stage-to", "/dev/shm", *words]

    def launch(self, *words, nodes=2, **more):
        return self.allocation(nodes, *self.words(*words, **more), env=self.env)

    def node(self, node, *words):
        return self.cluster.run(node, list(words)).stdout

    def clean(self):
        """Nothing of it is on a node, on this machine, or running."""
        for node in self.cluster.names:
            self.assertEqual(self.node(node, "sh", "-c", "ls -A %s 2>/dev/null" % FOLDER), "", node)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("hpclaunch-stage-")], [])
        self.nothing_left()

    def staged(self, done):
        self.ok(done)
        found = sorted(line.split() for line in done.out.splitlines())
        self.assertEqual([node for _, node in found], self.cluster.names, str(done))
        self.assertTrue(all(prefix.startswith(FOLDER + "/env-") for prefix, _ in found), str(done))

    def fails(self, done, *texts):
        self.ok(done, 125)
        self.assertEqual(done.out, "", str(done))
        self.has(done, *texts)


class Broadcast(Stage):
    def test_the_active_environment(self):
        done = self.launch("--venv", self.venv(), "--", "python", "-c", WHERE)
        self.staged(done)
        self.has(done, "on 2 nodes", "broadcast", "unpack")
        self.clean()

    def test_where_srun_would_pass_nothing_on(self):
        self.env["SLURM_EXPORT_ENV"] = "NONE"
        show = "import os; os.write(1, (os.environ['VIRTUAL_ENV'] + ' ' + os.uname().nodename + '\\n').encode())"
        self.staged(self.launch("--venv", self.venv(), "--", "python", "-c", show))
        self.clean()

    def test_found_again(self):
        archive = self.archive()
        words = ["--stage-from", archive, "--", "python", "-c", WHERE]
        self.staged(self.launch("--stage-keep", *words))
        done = self.launch("--stage-keep", *words)
        self.staged(done)
        self.has(done, ": reused")
        # A node that was away has it no more, and gets it alone.
        self.node("n2", "rm", "-rf", FOLDER)
        self.staged(self.launch(*words))
        self.clean()

    def test_copy_under_slurm(self):
        self.staged(self.launch("--venv", self.venv(), "--", "python", "-c", WHERE, method="copy"))
        self.clean()

    def test_copy_in_a_pbs_job(self):
        """Its ssh carries no environment over: the launcher does, and names are passed to Open MPI."""
        venv = self.venv()
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        for launcher, more in ("hydra", {}), ("openmpi", root):
            env = self.cluster.pbs(2, XDG_CACHE_HOME=os.path.join(self.folder, "cache"), **more)
            done = self.on("n1", *self.words("--launcher", launcher, "--venv", venv, "--", "python", "-c", WHERE, method="copy"), env=env)
            self.staged(done)
            self.clean()

    def test_a_training_from_it(self):
        done = self.launch("--venv", self.venv(), "--", "python", EXAMPLE, "--device", "cpu", "--steps", "3")
        self.ok(done)
        self.has(done, "done: 3 steps on 2 ranks", "models equal")
        self.clean()

    def test_part_of_the_job(self):
        self.fails(self.launch("--venv", self.venv(), "-N", "1", "--", "python", "-c", WHERE), "does not use all nodes of the job", "--stage copy")


class Faults(Stage):
    def small(self, node, kilobytes):
        self.cluster.run(node, ["mount", "-t", "tmpfs", "-o", "mode=1777,size=%dk" % kilobytes, "tmpfs", "/dev/shm"])
        self.addCleanup(self.cluster.run, node, ["umount", "/dev/shm"])

    def test_no_room_for_the_archive(self):
        self.small("n2", 500)
        self.fails(self.launch("--stage-from", self.archive(megabytes=2), "--", "python", "-c", WHERE), "n2, step prepare failed: ", "bytes free")
        self.clean()

    def test_a_disk_that_is_full_when_it_is_unpacked(self):
        self.small("n2", 3000)
        self.fails(self.launch("--stage-from", self.archive(megabytes=2), "--", "python", "-c", WHERE), "n2, step unpack failed: ", "No space left")
        self.clean()

    def test_sbcast_fails_on_a_node(self):
        self.file("bin/sbcast", "#!/bin/sh\necho 'sbcast: error: REQUEST_FILE_BCAST(n2): Unspecified error' >&2\nexit 255\n", 0o755)
        self.env["PATH"] = self.folder + "/bin:" + self.env["PATH"]
        self.fails(self.launch("--venv", self.venv(), "--", "python", "-c", WHERE), "n2, step broadcast failed: Unspecified error", "full disk")
        self.clean()

    def test_a_file_that_arrives_in_part(self):
        self.file("bin/sbcast", '#!/bin/sh\nhead -c 1000 "$1" >"$1.part" && exec /usr/bin/sbcast "$1.part" "$2"\n', 0o755)
        self.env["PATH"] = self.folder + "/bin:" + self.env["PATH"]
        self.fails(self.launch("--venv", self.venv(), "--", "python", "-c", WHERE), "n1 and 1 other node, step check failed: 1000 of")
        self.clean()

    def test_no_archive(self):
        self.fails(self.launch("--stage-from", "/nowhere.tgz", "--", "python", "-c", WHERE), "/nowhere.tgz", "no such file")

    def test_a_node_fails_at_the_end(self):
        unpack = "import os\nif os.uname().nodename == 'n2': raise SystemExit('negative padding')\n"
        self.fails(self.launch("--stage-from", self.archive(unpack=unpack), "--", "python", "-c", WHERE), "n2, step conda-unpack failed: negative padding")
        self.clean()

    def test_a_node_hangs(self):
        unpack = "import os, time\nif os.uname().nodename == 'n2': time.sleep(600)\n"
        done = self.launch("--stage-timeout", "8", "--stage-from", self.archive(unpack=unpack), "--", "python", "-c", WHERE)
        self.fails(done, "n2, step unpack failed: no answer within 8 s (--stage-timeout)")
        self.clean()

    def test_interrupted_and_started_again(self):
        mark = os.path.join(self.folder, "mark")
        archive = self.archive(unpack="import os, time\nopen(%r, 'w').close()\nif not os.path.exists(%r): time.sleep(600)\n" % (mark, mark + "2"))
        words = self.words("--stage-from", archive, "--", "python", "-c", WHERE)
        process = self.cluster.popen("login", [*self.salloc(2), support.HPCLAUNCH, *words], env=self.env, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True)
        wait_until(lambda: os.path.exists(mark), 60, "staging did not start")
        hpclaunch = [pid for pid, line in self.cluster.processes().items() if line.startswith(support.HPCLAUNCH + " run")]
        self.assertEqual(len(hpclaunch), 1, self.cluster.processes())
        self.cluster.run("login", ["kill", "-INT", str(hpclaunch[0])])
        said = process.communicate(timeout=support.LIMIT)[0]
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("staging was interrupted by signal 2", said)
        self.clean()
        open(mark + "2", "w").close()
        self.staged(self.launch("--stage-from", archive, "--", "python", "-c", WHERE))
        self.clean()


if __name__ == "__main__":
    engines.main()
