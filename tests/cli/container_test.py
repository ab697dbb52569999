#!/usr/bin/env python3
"""run --container with stand-ins for engines that distributions lack: what reaches the ranks, what the line is, what is refused.

The stand-in of apptainer has its documented command line and its rules for variables, and changes root with a namespace.
"""
import os
import shutil
import sys

import support
from allowed import MOUNTS, needs
from support import Test, clean_env, hpclaunch, need

# exec [options] DIR PROGRAM...: the image's .env wins over the host's variables; PATH and HOME are set anew.
APPTAINER = r'''#!%(python)s -IS
import os, sys
words = sys.argv[1:]
if words[:1] != ["exec"]:
    sys.exit("FATAL: unknown command")
words.pop(0)
binds = []
while words[0].startswith("-"):
    option, _, value = words.pop(0).partition("=")
    if option == "--bind":
        binds.append(value.split(":")[:2])
    elif option not in ("--nv", "--fakeroot"):
        print("FATAL: unknown flag: " + option, file=sys.stderr)
        sys.exit(255)
root = words.pop(0)
env = {n: v for n, v in os.environ.items() if n not in ("PATH", "HOME", "LD_LIBRARY_PATH") and not n.startswith("APPTAINER_")}
with open(root + "/.env") as lines:
    env.update(line.rstrip("\n").split("=", 1) for line in lines)
env.update(PATH="/usr/local/bin:/bin", HOME="/root")
script = ['/bin/mount --rbind /dev "$0/dev"', '/bin/mount --rbind /proc "$0/proc"']
for source, target in binds:
    os.makedirs(root + target, exist_ok=True)
    script.append("/bin/mount --bind '%%s' '%%s'" %% (source, root + target))
script.append('exec /usr/sbin/chroot "$0" "$@"')
unshare = ["/usr/bin/unshare", "-m", "--propagation", "private"] if os.getuid() == 0 else ["/usr/bin/unshare", "-Urm"]
os.execvpe(unshare[0], unshare + ["/bin/sh", "-ec", "\n".join(script), root] + words, dict(env))
'''

ODD = {"ODD": "a b\"$c`d'\n\\u000A%:/=@,\t", "EMPTY": "", "LONG": "x" * 20000}


class Container(Test):
    def setUp(self):
        super().setUp()
        self.root = os.path.join(self.folder, "root")
        for name in ("bin", "proc", "dev", "tmp", "etc", "root"):
            os.makedirs(os.path.join(self.root, name))
        shutil.copy(need("busybox"), os.path.join(self.root, "bin", "busybox"))
        for name in ("sh", "env", "cat", "sleep", "grep"):
            os.symlink("busybox", os.path.join(self.root, "bin", name))
        # The traps: names that the plan sets, with values of the image's.
        self.file("root/.env", "RANK=9\nOMP_NUM_THREADS=99\nMASTER_PORT=1\nLD_LIBRARY_PATH=/image/lib\nHPCLAUNCH_NODE=7\n")
        self.bin = os.path.join(self.folder, "engines")
        self.file("engines/apptainer", APPTAINER % {"python": sys.executable}, 0o755)

    def env(self, **more):
        return clean_env(PATH=self.bin + ":" + os.environ["PATH"], **more)

    def run_in(self, *words, engine="apptainer", env=None, command="run"):
        given = ["--oversubscribe"]
        for option, value in (("--profile", "none"), ("--container", self.root), ("--container-engine", engine)):
            if option not in words:
                given += [option, value]
        return hpclaunch(command, "--launcher", "local", *given, *words, env=env or self.env(), cwd=self.folder)

    @needs(MOUNTS)
    def test_values_and_the_images_own(self):
        sets = [word for name, value in ODD.items() for word in ("--set", "%s=%s" % (name, value))]
        done = self.run_in("-n", "2", *sets, "--", "sh", "-c", "cat /proc/self/environ > out.$RANK; pwd > cwd.$RANK")
        self.ok(done)
        self.assertNotIn("hpclaunch: rank", done.err)
        for rank in range(2):
            with open(os.path.join(self.folder, "out.%d" % rank), "rb") as file:
                found = support.entries(file.read())
            for name, value in ODD.items():
                self.assertEqual(found[name.encode()].decode(), value)
            self.assertEqual(found[b"RANK"], b"%d" % rank)
            self.assertEqual(found[b"HPCLAUNCH_NODE"], b"0")
            self.assertNotIn(found[b"OMP_NUM_THREADS"], (b"99", b""))
            self.assertNotEqual(found[b"MASTER_PORT"], b"1")
            self.assertEqual(found[b"LD_LIBRARY_PATH"], b"/image/lib")
            self.assertTrue(found[b"PATH"].startswith(b"/usr/local/bin:/bin"), found[b"PATH"])
            self.assertNotIn(b"HPCLAUNCH_PLAN", found)
            with open(os.path.join(self.folder, "cwd.%d" % rank)) as file:
                self.assertEqual(file.read().strip(), self.folder)

    @needs(MOUNTS)
    def test_unset_holds_against_the_image(self):
        done = self.run_in("-n", "1", "--unset", "MASTER_PORT", "--", "sh", "-c", "echo [$MASTER_PORT]")
        self.ok(done)
        self.assertEqual(done.out, "[]\n", str(done))

    @needs(MOUNTS)
    def test_verify_inside_without_shell_or_python(self):
        for name in ("sh", "env", "cat", "sleep", "grep"):
            os.unlink(os.path.join(self.root, "bin", name))
        done = self.run_in("-n", "2", "--", "busybox", command="verify")
        self.ok(done)
        self.assertEqual(done.out, "2 of 2 ranks as planned on 1 node\n", str(done))

    def test_line_has_engine_shim_program_in_this_order(self):
        done = self.run_in("-n", "1", "--container-bind", self.bin + ":/engines", "--dry-run", "--", "train", "x")
        self.ok(done)
        words = done.out.replace("\\\n", " ").split()
        at = [words.index(os.path.join(self.bin, "apptainer")), words.index("exec", words.index(os.path.join(self.bin, "apptainer"))), words.index(self.root),
              words.index(support.shim_path()), words.index("train")]
        self.assertEqual(at, sorted(at), done.out)
        self.assertIn("--bind=%s:/engines" % self.bin, words)

    @needs(MOUNTS)
    def test_refused(self):
        for words, status, part in [
                (["--container-engine", "docker", "--", "sh"], 125, "docker cannot run ranks"),
                (["--container-engine", "enroot", "--", "sh"], 127, "container engine enroot not found on PATH"),
                (["--container-engine", "nosuch", "--", "sh"], 125, "invalid value \"nosuch\" for --container-engine"),
                (["--container-engine", "pyxis", "--", "sh"], 125, "pyxis is entered by srun; the launcher is local"),
                (["--container", "/nowhere/x.sif", "--", "sh"], 127, "image \"/nowhere/x.sif\" does not exist"),
                (["--", "nosuch"], 127, "program \"nosuch\" does not exist in image"),
                (["--", "/bin"], 126, "program \"/bin\" is a directory in image"),
                (["--container-bind", "/nowhere", "--", "sh"], 125, "--container-bind: \"/nowhere\" does not exist"),
                (["--container-bind", "/a:b", "--", "sh"], 125, "invalid value \"/a:b\" for --container-bind"),
                (["--venv", self.folder, "--", "sh"], 125, "--venv and --container exclude each other")]:
            with self.subTest(words=words):
                done = self.run_in("-n", "1", *words)
                self.assertEqual(done.status, status, str(done))
                self.assertIn(part, done.err, str(done))

    def test_engines_own_failure(self):
        profile = self.file("bad.json", '{"schema": 1, "name": "bad", "doc": "d", "containers": '
                                        '[{"engine": "apptainer", "options": ["--no-such-flag"], "why": "w"}]}')
        done = self.run_in("-n", "2", "--profile", profile, "--", "sh")
        self.assertEqual(done.status, 125, str(done))
        self.assertIn("(status 255): FATAL: unknown flag: --no-such-flag", done.err)

    @needs(MOUNTS)
    def test_status_and_signal_of_the_program(self):
        self.assertEqual(self.run_in("-n", "1", "--", "sh", "-c", "exit 7").status, 7)
        self.assertEqual(self.run_in("-n", "1", "--", "sh", "-c", "kill -9 $$").status, 137)

    def test_explained(self):
        done = self.run_in("-n", "1", "container", command="explain")
        self.ok(done)
        self.assertIn("--container, by apptainer (found at %s/apptainer)" % self.bin, " ".join(done.out.split()))

    @needs(MOUNTS)
    def test_a_secret_is_not_in_the_wire(self):
        done = self.run_in("-n", "1", "--set", "MY_TOKEN=hush", "--", "sh", "-c", "echo $MY_TOKEN")
        self.ok(done)
        self.assertEqual(done.out, "hush\n")
        self.assertNotIn("hush", self.run_in("-n", "1", "--set", "MY_TOKEN=hush", "--dry-run", "--", "sh").out)


if __name__ == "__main__":
    support.main()
