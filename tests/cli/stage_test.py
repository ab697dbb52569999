#!/usr/bin/env python3
"""run --stage copy and venv on one machine: what the program runs from, what stays, what is refused, what is left behind.

Two nodes are played by this one: they share the directory that each node has of its own elsewhere.
"""
import fcntl
import os
import shutil
import signal
import subprocess
import tarfile
import time
import unittest
import venv
import zipfile

import fakes
import support
from allowed import needs
from support import Test, clean_env, hpclaunch, need

PREFIX = "import os, sys; os.write(1, sys.prefix.encode() + b'\\n')"

support.idle_stdin()


def load_tests(loader, tests, pattern):
    return fakes.Together(reversed(list(tests)), 2)  # the longest first


class Stage(Test):
    def setUp(self):
        super().setUp()
        self.nodes = os.path.join(self.folder, "node")
        os.mkdir(self.nodes)
        self.place = os.path.join(self.nodes, "hpclaunch-%d" % os.getuid())

    def env(self, **more):
        return clean_env(XDG_CACHE_HOME=os.path.join(self.folder, "shared"), TMPDIR=self.folder, **more)

    def venv(self, name="venv"):
        path = os.path.join(self.folder, name)
        venv.create(path, symlinks=True)
        self.file(name + "/bin/tool", "#!%s/bin/python\nimport sys\nprint('tool', sys.prefix)\n" % path, 0o755)
        return path

    def archive(self, unpack=None, top="env", activate=None):
        """A tar archive of an environment, with a conda-unpack and an activate of these lines."""
        path = self.venv()
        if activate is not None:
            self.file("venv/bin/activate", activate)
        if unpack is not None:
            self.file("venv/bin/conda-unpack", unpack, 0o755)
        with tarfile.open(os.path.join(self.folder, "env.tar.gz"), "w:gz") as tar:
            tar.add(path + "/pyvenv.cfg", top + "/pyvenv.cfg")
            tar.add(path, top)
        return os.path.join(self.folder, "env.tar.gz")

    def words(self, *words, method="copy"):
        return ["run", "-n", "2", "--oversubscribe", "--stage", method, "--stage-to", self.nodes, *words]

    def two_nodes(self, *words):
        hosts = self.file("hosts", "nodeA\nnodeB\n")
        need("mpiexec.hydra")
        return self.words("--launcher", "hydra", "--hostfile", hosts, "--launcher-arg=-launcher", "--launcher-arg=fork", "--ppn", "1",
                          "--master-addr", "198.51.100.1", *words)

    def left(self):
        """What is on the nodes and where archives are made."""
        shared = os.path.join(self.folder, "shared", "hpclaunch")
        found = os.listdir(self.place) if os.path.isdir(self.place) else []
        return found + (os.listdir(shared) if os.path.isdir(shared) else []) + [n for n in os.listdir(self.folder) if n.startswith("hpclaunch-stage-")]

    def staged(self, done, ranks=2):
        prefixes = set(self.ok(done).out.split())
        self.assertEqual(len(done.out.split()), ranks, str(done))
        self.assertEqual(len(prefixes), 1, str(done))
        prefix = prefixes.pop()
        self.assertTrue(prefix.startswith(self.place + "/env-"), str(done))
        return prefix

    def until(self, condition):
        end = time.monotonic() + support.LIMIT
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)


class Copies(Stage):
    def test_the_active_environment(self):
        venv = self.venv()
        done = hpclaunch(*self.words("--venv", venv, "--", "python", "-c", PREFIX), env=self.env())
        self.staged(done)
        self.has(done, "staged %s to " % venv, "on 1 node")
        self.assertEqual(self.left(), [])

    def test_variables_and_scripts_name_the_copy(self):
        venv = self.venv()
        env = self.env(MY_PATH="/x:%s/share:%s-not" % (venv, venv))
        done = hpclaunch(*self.words("-n", "1", "--venv", venv, "--", "/bin/sh", "-c", "echo $VIRTUAL_ENV $MY_PATH $(command -v tool) $(tool)"), env=env)
        root, path, tool, _, ran = self.ok(done).out.split()
        self.assertTrue(root.startswith(self.place), str(done))
        self.assertEqual([path, tool, ran], ["/x:%s/share:%s-not" % (root, venv), root + "/bin/tool", root])

    def test_two_nodes_under_hydra(self):
        self.staged(hpclaunch(*self.two_nodes("--venv", self.venv(), "--", "python", "-c", PREFIX), env=self.env()))
        self.assertEqual(self.left(), [])

    def test_an_archive_with_a_directory_at_its_top(self):
        archive = self.archive()
        shutil.rmtree(os.path.join(self.folder, "venv"))
        done = hpclaunch(*self.two_nodes("--stage-from", archive, "--", "python", "-c", PREFIX), env=self.env())
        self.assertTrue(self.staged(done).endswith("/env"))
        self.assertEqual(self.left(), [])

    def test_a_program_that_only_the_archive_has(self):
        archive = self.archive()
        shutil.rmtree(os.path.join(self.folder, "venv"))
        done = hpclaunch(*self.words("-n", "1", "--stage-from", archive, "--", "tool"), env=self.env())
        self.assertRegex(self.ok(done).out, "^tool %s/env-[0-9a-f]+/env\n$" % self.place)

    def test_an_archive_says_in_activate_where_it_was(self):
        """As Python 3.11 writes it, and 3.12, in which the first line is for Cygwin."""
        where = os.path.join(self.folder, "venv")
        for text in "VIRTUAL_ENV='%s'\nexport VIRTUAL_ENV\n", "    VIRTUAL_ENV=$(cygpath '%s')\n    export VIRTUAL_ENV='%s'\n":
            archive = self.archive(activate=text.replace("%s", where))
            shutil.rmtree(where)
            done = hpclaunch(*self.words("-n", "1", "--stage-from", archive, "--", "tool"), env=self.env())
            self.assertRegex(self.ok(done).out, "^tool %s/env-[0-9a-f]+/env\n$" % self.place)

    def test_the_directory_goes_when_it_is_empty(self):
        self.ok(hpclaunch(*self.words("--venv", self.venv(), "--", "/bin/true"), env=self.env()))
        self.assertFalse(os.path.exists(self.place))

    def test_kept_and_found_again(self):
        words = self.words("--venv", self.venv(), "--stage-keep", "--", "python", "-c", PREFIX)
        first = self.staged(hpclaunch(*words, env=self.env()))
        done = hpclaunch(*words, env=self.env())
        self.assertEqual(self.staged(done), first)
        self.has(done, ": reused")
        words.remove("--stage-keep")
        self.staged(hpclaunch(*words, env=self.env()))
        self.assertEqual(self.left(), [])

    def test_a_changed_environment_is_copied_again(self):
        venv = self.venv()
        words = self.words("--venv", venv, "--stage-keep", "--", "tool")
        self.ok(hpclaunch(*words, env=self.env()))
        self.file("venv/bin/tool", "#!/bin/sh\necho changed\n", 0o755)
        done = hpclaunch(*words, env=self.env())
        self.assertEqual(self.ok(done).out, "changed\n" * 2)

    def test_another_job_on_the_node_keeps_its_copy(self):
        venv = self.venv()
        fifo = os.path.join(self.folder, "fifo")
        os.mkfifo(fifo)
        wait = "import sys; print(sys.prefix, flush=True); open(%r).read(); import json.tool; print(json.tool.__name__)" % fifo
        first = subprocess.Popen([support.HPCLAUNCH, *self.words("-n", "1", "--venv", venv, "--", "python", "-c", wait)], env=self.env(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        prefix = first.stdout.readline().decode().strip()
        self.assertEqual(self.staged(hpclaunch(*self.words("--venv", venv, "--", "python", "-c", PREFIX), env=self.env())), prefix)
        self.assertTrue(os.path.exists(prefix + "/bin/python"))
        open(fifo, "w").close()
        self.assertEqual(first.communicate(timeout=support.LIMIT)[0], b"json.tool\n")
        self.assertEqual(self.left(), [])

    def test_a_progress_line_on_a_terminal_alone(self):
        words = self.words("-n", "1", "--venv", self.venv(), "--", "python", "-c", PREFIX)
        text = support.on_terminal(*words, env=self.env(TERM="xterm"), err=True)
        self.assertIn("\x1b[Khpclaunch: staging to %s: unpack 1/1 nodes" % self.nodes, text)
        self.assertTrue(text.endswith("\r\x1b[K"), text)
        self.assertNotIn("unpack 1/1", hpclaunch(*words, env=self.env()).err)

    def test_after_a_preflight(self):
        self.staged(hpclaunch(*self.two_nodes("--preflight", "--force", "--venv", self.venv(), "--", "python", "-c", PREFIX), env=self.env()))

    def test_the_status_is_the_program_s(self):
        done = hpclaunch(*self.words("-n", "1", "--venv", self.venv(), "--", "python", "-c", "raise SystemExit(7)"), env=self.env())
        self.ok(done, 7)
        self.assertEqual(self.left(), [])


VIRTUALENV = """#!/bin/sh
echo "$*" >>%(log)s
mkdir -p "$2/bin"
cat >"$2/bin/python" <<'END'
#!/bin/sh
echo "$*: no index $PIP_NO_INDEX" >>%(log)s
for file; do :; done
echo "nothing satisfies $(cat "$file")" >&2
exit 1
END
chmod +x "$2/bin/python"
"""


class Wheels(Stage):
    def test_a_virtual_environment_from_wheels(self):
        name = "greeting-1.0-py3-none-any.whl"
        info = "greeting-1.0.dist-info/"
        os.mkdir(os.path.join(self.folder, "wheels"))
        with zipfile.ZipFile(os.path.join(self.folder, "wheels", name), "w") as wheel:
            wheel.writestr("greeting.py", "print('good morning')\n")
            wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
            wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(info + "RECORD", "")
        env = self.env(PIP_FIND_LINKS=os.path.join(self.folder, "wheels"))
        words = self.words("--stage-from", self.file("requirements.txt", "greeting\n"), "--", "python", "-m", "greeting", method="auto")
        self.assertEqual(self.ok(hpclaunch(*words, env=env)).out, "good morning\n" * 2)
        self.assertEqual(self.left(), [])

    def test_a_requirement_that_is_not_there(self):
        """By a stand-in of virtualenv, which is preferred, and of the pip that it makes."""
        self.file("bin/virtualenv", VIRTUALENV % {"log": os.path.join(self.folder, "log")}, 0o755)
        env = self.env(PATH="%s/bin:%s" % (self.folder, os.environ["PATH"]))
        requirements = self.file("requirements.txt", "not-there\n")
        words = self.words("-n", "1", "--stage-from", requirements, "--", "python", "-c", PREFIX, method="auto")
        self.has(self.ok(hpclaunch(*words, env=env), 125), "step build failed", "nothing satisfies not-there")
        self.assertEqual(self.left(), [])
        with open(os.path.join(self.folder, "log")) as file:
            made, asked = file.read().splitlines()
        self.assertRegex(made, "^--no-download %s/env-[0-9a-f]+$" % self.place)
        self.assertEqual(asked, "-m pip install --no-index -q -r %s: no index 1" % requirements)


COPPER = """#!/bin/sh
echo "%(name)s $*" >>%(log)s
while [ $# -gt 0 ]; do
  case $1 in -v) at=$2 ;; esac
  shift
done
"""


@needs("mounts")
class Copper(Stage):
    """Stand-ins for its scripts: a bind mount in place of its own file system."""

    def copper(self, start, stop="umount -l $at\n"):
        self.log = os.path.join(self.folder, "log")
        for name, more in (("launch", start), ("stop", stop)):
            self.file("bin/%s_copper.sh" % name, COPPER % {"name": name, "log": self.log} + more, 0o755)

    def launch(self, *words):
        env = self.env(PATH="%s/bin:%s" % (self.folder, os.environ["PATH"]), HOME=self.folder, USER="me", PYTHONPATH="/mine")
        argv = ["unshare", "-m", support.HPCLAUNCH, *self.words(*words, method="copper")]
        return support.execute(argv, env=env)

    def calls(self):
        with open(self.log) as file:
            return [line.split() for line in file]

    def test_started_read_and_stopped(self):
        self.copper("mkdir -p $at && mount --bind / $at\n")
        done = self.launch("--venv", self.venv(), "-n", "1", "--", "python", "-c", "import os; print(os.environ['PYTHONPATH'])")
        first, second = self.ok(done).out.strip().split(":")
        self.assertEqual(second, "/mine")
        self.assertRegex(first, "^%s/me/copper%s/venv/lib/python[0-9.]+/site-packages$" % (self.nodes, self.folder))
        start, stop = self.calls()
        self.assertEqual([start[0], stop[0]], ["launch", "stop"])
        self.assertEqual(start[1:5], stop[1:])

    def test_conda_is_activated_from_the_view(self):
        self.copper("mkdir -p $at && mount --bind / $at\n")
        venv = self.venv()
        self.file("venv/conda-meta/history", "x")
        done = self.launch("--venv", venv, "-n", "1", "--", "python", "-c", PREFIX)
        self.assertEqual(self.ok(done).out, "%s/me/copper%s\n" % (self.nodes, venv))

    def test_never_ready(self):
        self.copper("exit 0\n", stop="")
        done = self.launch("--venv", self.venv(), "--stage-timeout", "5", "--", "python", "-c", PREFIX)
        self.ok(done, 125)
        self.has(done, "step ready failed", "pyvenv.cfg cannot be read through")
        self.assertEqual([call[0] for call in self.calls()], ["launch", "stop"])

    def test_start_fails(self):
        self.copper("echo no address book; exit 1\n", stop="")
        done = self.launch("--venv", self.venv(), "--", "python", "-c", PREFIX)
        self.ok(done, 125)
        self.has(done, "copper start failed: status 1: no address book")
        self.assertEqual([call[0] for call in self.calls()], ["launch", "stop"])

    def test_stopped_when_the_program_fails(self):
        self.copper("mkdir -p $at && mount --bind / $at\n")
        self.ok(self.launch("--venv", self.venv(), "-n", "1", "--", "python", "-c", "raise SystemExit(3)"), 3)
        self.assertEqual([call[0] for call in self.calls()], ["launch", "stop"])


class Choice(Stage):
    def chosen(self, *words, env=None):
        found = self.json("explain", *words, "stage", env=env or self.env())["choices"]
        return found[0]["value"], found[0]["history"][-1]["why"]

    def test_auto(self):
        venv = self.venv()
        few = self.file("few", "a\nb\n")
        many = self.file("many", "".join("n%d\n" % i for i in range(20)))
        base = ["--launcher", "hydra", "--ppn", "1", "--stage", "auto"]
        self.assertEqual(self.chosen(*base, "--hostfile", few), ("none", "no conda or virtual environment is active"))
        self.assertEqual(self.chosen(*base, "--hostfile", few, "--venv", venv)[0], "none")
        value, why = self.chosen(*base, "--hostfile", many, "--venv", venv)
        self.assertEqual(value, "copy")
        self.assertIn("20 nodes; this is not a Slurm job", why)

    def test_auto_uses_an_archive_on_any_number_of_nodes(self):
        """No program can run from an archive; a tree can be used where it is."""
        archive, tree = self.archive(), os.path.join(self.folder, "venv")
        for name, nodes in ("one", 1), ("fifteen", 15), ("sixteen", 16):
            hosts = self.file(name, "".join("n%d\n" % i for i in range(nodes)))
            base = ["--launcher", "hydra", "--ppn", "1", "--stage", "auto", "--hostfile", hosts]
            value, why = self.chosen(*base, "--stage-from", archive)
            self.assertEqual(value, "copy", nodes)
            self.assertIn("the source is an archive; %d node%s; this is not" % (nodes, "s" if nodes > 1 else ""), why)
            self.assertEqual(self.chosen(*base, "--stage-from", tree)[0], "none" if nodes < 16 else "copy", nodes)
        done = hpclaunch(*self.words("--stage-from", archive, "--", "python", "-c", PREFIX, method="auto"), env=self.env())
        self.assertTrue(self.staged(done).endswith("/env"))

    def test_refused(self):
        venv = self.venv()
        self.refused(125, "run", "--stage", "copy", "--", "/bin/true", says=["no conda or virtual environment is active", "--stage-from"])
        self.refused(125, "run", "--stage", "sbcast", "--venv", venv, "--", "/bin/true", says=["not a Slurm job", "--stage copy"])
        self.refused(125, "run", "--stage", "venv", "--venv", venv, "--", "/bin/true", says=["not a requirements file", "requirements.txt"])
        self.refused(125, "run", "--stage", "copy", "--stage-from", "/nowhere.tar", "--", "/bin/true", says=["--stage-from /nowhere.tar: there is no such file"])
        self.refused(125, "run", "--stage", "rsync", "--", "/bin/true", says=["--stage", "sbcast"])
        self.refused(125, *self.two_nodes("--venv", venv, "--no-supervise", "--", "/bin/true"), env=self.env(), says=["--no-supervise and --stage"])

    def test_a_dry_run_says_that_it_is_left_out(self):
        venv = self.venv()
        script = self.ok(hpclaunch(*self.words("--venv", venv, "--dry-run", "--", "python", "-c", PREFIX), env=self.env())).out
        self.assertIn("# Staging is left out: hpclaunch run --stage does it", script)
        self.assertNotIn(self.place, script)


class Faults(Stage):
    def fails(self, *texts, words, status=125):
        done = hpclaunch(*words, env=self.env())
        self.ok(done, status)
        self.assertEqual(done.out, "", str(done))
        self.has(done, *texts)
        return done

    def test_a_broken_archive(self):
        archive = self.archive()
        with open(archive, "rb+") as file:
            file.truncate(os.path.getsize(archive) - 200)
        self.fails("nodeA", "step unpack failed: ", "tar: ", words=self.two_nodes("--stage-from", archive, "--", "python", "-c", PREFIX))
        self.assertEqual(self.left(), [])

    def test_no_archive_at_all(self):
        self.fails("--stage-from %s/text.tar.gz: " % self.folder, "name a tar archive",
                   words=self.words("--stage-from", self.file("text.tar.gz", "no archive"), "--", "python", "-c", PREFIX))

    def test_no_environment_in_it(self):
        with tarfile.open(os.path.join(self.folder, "other.tar"), "w") as tar:
            tar.add(self.file("readme", "x"), "readme")
        self.fails("step unpack failed: no bin/python in ", words=self.words("--stage-from", self.folder + "/other.tar", "--", "python", "-c", PREFIX))
        self.assertEqual(self.left(), [])

    def test_conda_unpack_fails(self):
        self.fails("nodeA", "step conda-unpack failed: ", "negative padding",
                   words=self.two_nodes("--stage-from", self.archive("raise SystemExit('negative padding')\n"), "--", "python", "-c", PREFIX))
        self.assertEqual(self.left(), [])

    def test_conda_unpack_hangs(self):
        self.fails("step unpack failed: no answer within 3 s (--stage-timeout)",
                   words=self.words("--stage-timeout", "3", "--stage-from", self.archive("import time; time.sleep(600)\n"), "--", "python", "-c", PREFIX))
        self.assertEqual(self.left(), [])

    def test_a_link_or_an_open_directory_in_the_way(self):
        words = self.words("--venv", self.venv(), "--", "python", "-c", PREFIX)
        os.symlink(self.folder, self.place)
        self.fails("step unpack failed: %s is a symbolic link" % self.place, words=words)
        os.unlink(self.place)
        os.mkdir(self.place, 0o755)
        self.fails("the mode of %s is not 700" % self.place, words=words)

    @unittest.skipUnless(os.geteuid() == 0, "only root makes files of others")
    def test_a_directory_of_another_user(self):
        os.mkdir(self.place, 0o700)
        os.chown(self.place, 65534, 65534)
        self.fails("belongs to another user", words=self.words("--venv", self.venv(), "--", "python", "-c", PREFIX))

    def test_no_such_directory_on_the_nodes(self):
        words = self.words("--venv", self.venv(), "--", "python", "-c", PREFIX)
        shutil.rmtree(self.nodes)
        self.fails("%s is not a directory of this node" % self.nodes, "--stage-to", words=words)

    def test_what_starts_no_program(self):
        for command in "env", "verify":
            done = hpclaunch(command, "-n", "1", "--stage", "copy", "--venv", self.venv(command), "--", "python", env=self.env())
            self.assertNotEqual(done.status, 0)
            self.has(done, "%s puts nothing on the nodes: --stage" % command)

    def interrupted(self, number):
        """A launch whose staging is in its last step, stopped there by a signal."""
        mark = os.path.join(self.folder, "mark")
        archive = self.archive("open(%r, 'w').close(); import time; time.sleep(600)\n" % mark)
        words = self.words("-n", "1", "--stage-from", archive, "--", "python", "-c", PREFIX)
        child = subprocess.Popen([support.HPCLAUNCH, *words], env=self.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.until(lambda: os.path.exists(mark))
        child.send_signal(number)
        out, err = child.communicate(timeout=support.LIMIT)
        self.assertEqual(out, b"")
        return child.returncode, err.decode()

    def test_interrupted(self):
        for number in signal.SIGINT, signal.SIGTERM:
            status, err = self.interrupted(number)
            self.assertEqual(status, 128 + number, err)
            self.assertIn("staging was interrupted by signal %d" % number, err)
            self.assertEqual(self.left(), [])
            os.unlink(os.path.join(self.folder, "mark"))

    def test_killed_and_started_again(self):
        self.assertEqual(self.interrupted(signal.SIGKILL)[0], -signal.SIGKILL)
        self.staged(hpclaunch(*self.words("--stage-from", self.archive("print('well')\n"), "--", "python", "-c", PREFIX), env=self.env()))

    def test_the_copy_of_a_killed_launch_does_not_block_its_place(self):
        """Killed while the program runs, hpclaunch removes nothing; its process is gone, so its use counts no more."""
        mark = os.path.join(self.folder, "mark")
        venv = self.venv()
        program = "open(%r, 'w').close(); import time; time.sleep(600)" % mark
        child = subprocess.Popen([support.HPCLAUNCH, *self.words("-n", "1", "--venv", venv, "--", "python", "-c", program)], env=self.env(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until(lambda: os.path.exists(mark))
        child.kill()
        child.wait(support.LIMIT)
        self.assertTrue([name for name in self.left() if name.endswith(".use")])
        self.file("venv/bin/tool", "#!/bin/sh\necho changed\n", 0o755)
        done = hpclaunch(*self.words("--venv", venv, "--", "tool"), env=self.env())
        self.assertEqual(self.ok(done).out, "changed\n" * 2)
        self.assertFalse(os.path.exists(self.place))

    def abandoned(self, path, days=0, lock=False):
        os.makedirs(path)
        with open(os.path.join(path, ".lock" if lock else "packed.tar"), "w") as file:
            file.write("part")
        if days:
            os.utime(path, (time.time() - days * 86400,) * 2)
        return path

    def test_what_a_killed_launch_leaves_goes_with_the_next(self):
        """Also where that stages another environment: the archive where all nodes read it, and the half copy on the node."""
        mark = os.path.join(self.folder, "mark")
        self.venv()
        self.file("venv/bin/conda-unpack", "open(%r, 'w').close(); import time; time.sleep(600)\n" % mark, 0o755)
        child = subprocess.Popen([support.HPCLAUNCH, *self.words("-n", "1", "--venv", self.folder + "/venv", "--", "/bin/true")], env=self.env(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until(lambda: os.path.exists(mark))
        child.kill()
        child.wait(support.LIMIT)
        archives = [name for name in self.left() if name.startswith("hpclaunch-stage-")]
        self.assertEqual(os.listdir(os.path.join(self.folder, "shared", "hpclaunch", archives[0])).count("packed.tar"), 1)
        # The half copy on the node may have gone with its step, which hears of the end as well.
        self.staged(hpclaunch(*self.words("--venv", self.venv("other"), "--", "python", "-c", PREFIX), env=self.env()))
        self.assertEqual(self.left(), [])

    def test_the_archive_goes_when_the_nodes_have_it(self):
        program = "import os; print(*os.listdir(%r))" % os.path.join(self.folder, "shared", "hpclaunch")
        done = self.ok(hpclaunch(*self.words("-n", "1", "--venv", self.venv(), "--", "python", "-c", program), env=self.env()))
        self.assertEqual(done.out, "\n")

    def test_only_what_is_old_or_of_a_dead_process_goes(self):
        here = os.uname().nodename.split(".")[0].lower()
        shared = os.path.join(self.folder, "shared", "hpclaunch")
        stays = [self.abandoned(shared + "/" + name, days, lock) for name, days, lock in
                 (("hpclaunch-stage-%s-aaaaaa" % here, 0, False), ("hpclaunch-stage-%s-bbbbbb" % here, 3, True), ("hpclaunch-stage-n0-aaaaaa", 0, True),
                  ("stage-data", 9, False), ("hpclaunch-stage", 9, False))]
        goes = [self.abandoned(shared + "/" + name, days, lock) for name, days, lock in
                (("hpclaunch-stage-%s-cccccc" % here, 0, True), ("hpclaunch-stage-%s-dddddd" % here, 3, False), ("hpclaunch-stage-n0-bbbbbb", 3, True))]
        os.mkdir(self.place, 0o700)
        on_node = os.path.join(self.place, "")
        stays += [self.abandoned(on_node + "part-n0.1.2.0"), self.abandoned(on_node + "tmp-%s.%d.2" % (here, os.getpid())), self.abandoned(on_node + "tmp-n0.1.2"),
                  self.abandoned(on_node + "env-1"), self.abandoned(on_node + "env-1.use")]
        open(on_node + "env-1/.hpclaunch-stage", "w").close()
        dead = subprocess.Popen(["/bin/true"])
        dead.wait()
        goes += [self.abandoned(on_node + "part-n0.1.3.0"), self.abandoned(on_node + "tmp-%s.%d.2" % (here, dead.pid)), self.abandoned(on_node + "env-2"),
                 self.abandoned(on_node + "part-n0.1.4.0", 3)]
        held = [os.open(stays[1] + "/.lock", os.O_RDWR), os.open(on_node + "part-n0.1.2.0", os.O_RDONLY)]
        try:
            for one in held:
                fcntl.flock(one, fcntl.LOCK_EX)
            link = os.path.join(shared, "hpclaunch-stage-%s-eeeeee" % here)
            os.symlink(stays[3], link)
            self.staged(hpclaunch(*self.words("--venv", self.venv(), "--", "python", "-c", PREFIX), env=self.env()))
            self.assertEqual([path for path in stays + [link] if not os.path.exists(path)], [])
            self.assertEqual([path for path in goes if os.path.exists(path)], [])
        finally:
            for one in held:
                os.close(one)

    def test_a_signal_to_the_program(self):
        mark = os.path.join(self.folder, "mark")
        words = self.words("-n", "1", "--venv", self.venv(), "--", "python", "-c", "open(%r, 'w').close(); import time; time.sleep(600)" % mark)
        child = subprocess.Popen([support.HPCLAUNCH, *words], env=self.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.until(lambda: os.path.exists(mark))
        child.terminate()
        child.communicate(timeout=support.LIMIT)
        self.assertEqual(child.returncode, 143)
        self.assertEqual(self.left(), [])


if __name__ == "__main__":
    support.main()
