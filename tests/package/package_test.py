#!/usr/bin/env python3
"""What scripts/package makes of a build: each package is made, installed, used and removed; the program runs where there is
nothing but the C library.
usage: package_test.py BUILD"""
import glob
import json
import os
import re
import resource
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, os.path.join(ROOT, "packaging"))
sys.path.append(os.path.join(ROOT, "tests", "support"))
sys.dont_write_bytecode = True
import allowed  # noqa: E402
import elf  # noqa: E402

PORTABLE = os.path.join(BUILD, "portable", "bin", "hpclaunch")
LIMIT = 120
RANKS = "echo rank $RANK of $WORLD_SIZE, $MINE"


def execute(*words, env=None, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          timeout=LIMIT, env=env, **more)


def plain(**more):
    """An environment with nothing of the build, of a batch system, or of ours."""
    return dict({"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C"}, **more)


def python_with_torch():
    """The path of a Python that can import torch, or None."""
    for python in filter(None, (os.environ.get("HPCLAUNCH_TEST_PYTHON"), sys.executable, "/usr/bin/python3")):
        if shutil.which(python) and execute(python, "-c", "import torch").returncode == 0:
            return python
    return None


def needs(program):
    return allowed.asks(lambda: shutil.which(program) is None and program + " is not installed")


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="hpclaunch-package.")
        cls.out = os.path.join(cls.folder, "out")
        # rpm and lintian take their seconds: without rpmbuild there is no rpm.
        kinds = ["wheel", "tar", "deb", "sbom"] + (["rpm"] if shutil.which("rpmbuild") else [])
        cls.made = execute(os.path.join(ROOT, "scripts", "package"), BUILD, cls.out, *kinds)

    @classmethod
    def tearDownClass(cls):
        subprocess.run(["chmod", "-R", "u+w", cls.folder], check=False)
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.assertEqual(self.made.returncode, 0, self.made.stdout)
        self.place = tempfile.mkdtemp(dir=self.folder)

    def package(self, ending):
        found = glob.glob(self.out + "/*" + ending)
        self.assertEqual(len(found), 1, "packages %s: %s" % (ending, found))
        return found[0]

    def works(self, prefix, *before):
        """Two ranks by the program and by its second name, with what is installed beside it."""
        for words in ([prefix + "/bin/hpclaunch", "run", "--launcher", "local", "-n", "2", "--oversubscribe", "--", "/bin/sh", "-c", RANKS],
                      [prefix + "/bin/torchrun-hpclaunch", "--nproc_per_node=2", "--no-python", "/bin/sh", "-c", RANKS]):
            done = execute(*before, *words, env=plain(MINE="passed on"))
            self.assertEqual(done.returncode, 0, done.stdout)
            for rank in (0, 1):
                self.assertIn("rank %d of 2, passed on" % rank, done.stdout)

    def listing(self, folder):
        """Files and folders, without those that Python writes when it runs."""
        found = [os.path.relpath(os.path.join(place, name), folder) for place, folders, names in os.walk(folder) for name in folders + names]
        return sorted(path for path in found if "__pycache__" not in path)

    def venv(self, name, python=sys.executable, *options):
        """The folder of a new virtual environment, and pip in it."""
        folder = os.path.join(self.place, name)
        done = execute(python, "-m", "venv", *options, folder)
        if done.returncode != 0:
            allowed.leave_out("no virtual environment can be made here: " + done.stdout.split("\n")[0])
        return folder, self.pip(folder)

    @staticmethod
    def pip(folder):
        return [folder + "/bin/python", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]

    def nothing_left(self, folder, before):
        """pip leaves the folders that hold no file of ours themselves, such as share/zsh: empty, and none by our name."""
        now = self.listing(folder)
        self.assertEqual(sorted(set(before) - set(now)), [])
        for path in set(now) - set(before):
            self.assertNotIn("hpclaunch", path)
            self.assertTrue(os.path.isdir(os.path.join(folder, path)), path)

    def ok(self, *words, **more):
        done = execute(*words, **more)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_symbols(self):
        if not os.path.exists(PORTABLE):
            self.skipTest("no portable program in this build")
        program = elf.Program(PORTABLE)
        self.assertLessEqual(program.floor(), (2, 28), program.versions)
        self.assertEqual(set(program.needed), {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"})
        said = json.loads(execute(PORTABLE, "--version", "--json").stdout)
        self.assertEqual(said["glibc"]["floor"], ".".join(map(str, program.floor())))
        self.assertEqual(said["needs"], program.needed)
        self.assertEqual(set(said["libraries"]), {"fmt", "CLI11", "nlohmann_json", "hwloc"})
        self.assertTrue(all(said["libraries"].values()), said)
        # The reader itself, against another one.
        other = execute("readelf", "-W", "--dyn-syms", PORTABLE).stdout
        self.assertIn("@GLIBC_%s" % said["glibc"]["floor"], other)

    def test_same_bytes(self):
        again = os.path.join(self.place, "again")
        self.assertEqual(execute(os.path.join(ROOT, "scripts", "package"), BUILD, again, "wheel", "tar", "deb", "sbom").returncode, 0)
        for name in os.listdir(again):
            with open(os.path.join(again, name), "rb") as one, open(os.path.join(self.out, name), "rb") as other:
                self.assertEqual(one.read(), other.read(), name)

    def test_tarball(self):
        with tarfile.open(self.package(".tar.gz")) as archive:
            archive.extractall(self.place)
        (name,) = os.listdir(self.place)
        moved = os.path.join(self.place, "another place")
        os.rename(os.path.join(self.place, name), moved)
        self.works(moved)
        for licence in ("LICENSE", "licences/hwloc", "licences/fmt", "licences/libstdc++"):
            self.assertGreater(os.path.getsize(moved + "/share/doc/hpclaunch/" + licence), 500)

    @needs("bwrap")
    @allowed.needs("bwrap")
    def test_only_libc(self):
        """A root with the C library, a static shell and the tarball: no libstdc++, no hwloc."""
        busybox = shutil.which("busybox")
        if busybox is None or "not a dynamic" not in execute("ldd", busybox).stdout:
            allowed.leave_out("no static busybox is here")
        root = os.path.join(self.place, "root")
        for name in ("bin", "proc", "dev", "tmp"):
            os.makedirs(root + "/" + name)
        shutil.copy(busybox, root + "/bin/sh")
        for word in execute("ldd", PORTABLE).stdout.split():
            if word.startswith("/"):
                os.makedirs(root + os.path.dirname(word), exist_ok=True)
                shutil.copy(os.path.realpath(word), root + word)
        with tarfile.open(self.package(".tar.gz")) as archive:
            archive.extractall(root)
        os.rename(glob.glob(root + "/hpclaunch-*")[0], root + "/opt")
        for name in ("dirname", "readlink"):
            os.symlink("sh", root + "/bin/" + name)
        inside = ["bwrap", "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
        self.works("/opt", *inside)
        self.only_python(root, inside)
        bad = execute(*inside, "/opt/bin/hpclaunch", "run", "--no-such-option", "--", "/bin/sh")  # an exception inside
        self.assertEqual(bad.returncode, 125, bad.stdout)
        self.assertIn("--no-such-option", bad.stdout)

    @needs("podman")
    @allowed.needs("mounts")
    def test_image(self):
        """scripts/image: nothing in it but the tarball and the C library, and two ranks run in it."""
        podman = self.place + "/podman"
        with open(podman, "w") as file:
            file.write("#!/bin/sh\nexec podman --root %s/store --runroot %s/run \"$@\"\n" % (self.place, self.place))
        os.chmod(podman, 0o755)
        self.ok(os.path.join(ROOT, "scripts", "image"), self.package(".tar.gz"), "hpclaunch:test", podman)
        space = "mountpoint -q /sys/fs/cgroup && umount -R /sys/fs/cgroup; mkdir -p /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec \"$0\" \"$@\""
        out = self.ok("unshare", "-m", "sh", "-c", space, podman, "run", "--rm", "--cgroups=disabled", "--network=host", "--ulimit=nproc=4096:4096", "--ulimit=nofile=1024:1024", "hpclaunch:test",
                      "run", "--launcher", "local", "-n", "2", "--oversubscribe", "--label", "--", "/opt/hpclaunch/bin/hpclaunch", "--version")
        self.assertIn("[0] hpclaunch ", out)
        self.assertIn("[1] hpclaunch ", out)
        refused = execute(os.path.join(ROOT, "scripts", "image"), "no-tarball")
        self.assertEqual(refused.returncode, 2, refused.stdout)

    def only_python(self, root, inside):
        """The wheel in a virtual environment, a Python and its libraries: no bash reads bin/activate."""
        python = "/usr/bin/python3"
        if not os.path.exists(python):
            return
        _, pip = self.venv("maker")  # a Python without pip can make it
        self.ok(*pip, "install", "--no-index", "--ignore-installed", "--prefix", root + "/wheel", self.package(".whl"))
        library = self.ok(python, "-c", "import os; print(os.path.dirname(os.__file__))").strip()
        binds = ["--ro-bind", os.path.realpath(python), "/wheel/bin/python3", "--ro-bind", library, library]
        for word in set(execute("ldd", python).stdout.split()):
            if word.startswith("/"):
                binds += ["--ro-bind", os.path.realpath(word), word]
        for place in ("/wheel/bin/python3", library):
            os.makedirs(root + os.path.dirname(place), exist_ok=True)
        inside = ["bwrap", "--bind", root, "/", *binds, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
        os.symlink("python3", root + "/wheel/bin/python")
        with open(root + "/wheel/pyvenv.cfg", "w") as file:
            file.write("home = /usr/bin\n")
        code = "import os, sys; print('rank %s of %s, %s' % (os.environ['RANK'], os.environ['WORLD_SIZE'], sys.prefix))"
        out = self.ok(*inside, "/wheel/bin/hpclaunch", "run", "--launcher", "local", "-n", "2", "--oversubscribe", "--", "python", "-c", code,
                      env=plain())
        self.assertIn("Python is that of /wheel", out)
        for rank in (0, 1):
            self.assertIn("rank %d of 2, /wheel" % rank, out)

    def test_wheel_is_one(self):
        path = self.package(".whl")
        self.assertLess(os.path.getsize(path), 6 << 20)
        floor = elf.Program(PORTABLE).floor() if os.path.exists(PORTABLE) else None
        if floor:
            self.assertIn("-manylinux_%d_%d_" % floor[:2], path)
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            (record,) = [archive.read(name).decode() for name in names if name.endswith("/RECORD")]
            self.assertEqual([line.split(",")[0] for line in record.splitlines()], names)
            for name in names:
                if name.endswith("bin/hpclaunch-shim") or ".data/scripts/" in name:
                    self.assertTrue(archive.getinfo(name).external_attr >> 16 & stat.S_IXUSR, name)

    def test_wheel_in_a_venv(self):
        """From nothing to two ranks, then the same version over itself, and nothing left of it."""
        def used():
            children = resource.getrusage(resource.RUSAGE_CHILDREN)
            return children.ru_utime + children.ru_stime

        begun = used()
        venv, pip = self.venv("venv")
        before, made = self.listing(venv), used()
        self.ok(*pip, "install", "--no-index", self.package(".whl"))
        self.works(venv)
        # Processor time: that of a clock is the load's. A virtual environment alone takes some seconds of it.
        self.assertLess(used() - begun, 10, "of these, the virtual environment: %.1f s" % (made - begun))
        installed = self.listing(venv)
        for more in ([], ["--force-reinstall"]):
            self.ok(*pip, "install", "--no-index", *more, self.package(".whl"))
            self.assertEqual(self.listing(venv), installed)
            self.works(venv)
        with open(venv + "/bin/hpclaunch", "rb") as file:
            self.assertEqual(file.read(4), b"\x7fELF")
        self.ok(*pip, "uninstall", "-y", "hpclaunch")
        self.nothing_left(venv, before)

    def test_python_of_the_venv(self):
        venv, pip = self.venv("venv")
        self.ok(*pip, "install", "--no-index", self.package(".whl"))
        # The virtual environment's python, through the link; no Python runs before it.
        code = "import sys; print('prefix', sys.prefix)"
        done = execute(venv + "/bin/hpclaunch", "run", "--launcher", "local", "-n", "1", "--", "python", "-c", code,
                       env=plain(PATH=venv + "/bin:/usr/bin:/bin"))
        self.assertIn("prefix " + venv, done.stdout)
        # By its path, while the environment is not active; an active one is another wish.
        for words, more in ((("python", "-c", code), {}), (("-m", "platform"), {}), (("python3", "-c", code), {"VIRTUAL_ENV": "/elsewhere"})):
            done = execute(venv + "/bin/hpclaunch", "run", "--launcher", "local", "-n", "1", "--", *words, env=plain(PATH="/usr/bin:/bin", **more))
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual("Python is that of " + venv in done.stdout, not more, done.stdout)
            if words[-1] == code:
                self.assertEqual("prefix " + venv in done.stdout, not more, done.stdout)

    def test_wheel_in_a_moved_and_in_a_read_only_prefix(self):
        venv, pip = self.venv("venv")
        before = self.listing(venv)
        self.ok(*pip, "install", "--no-index", self.package(".whl"))
        moved = os.path.join(self.place, "moved here")
        os.rename(venv, moved)
        self.works(moved)
        out = self.ok(moved + "/bin/hpclaunch", "run", "--launcher", "local", "-n", "1", "--", "python", "-c",
                      "import sys; print('prefix', sys.prefix)", env=plain())
        self.assertIn("prefix " + moved, out)
        execute("chmod", "-R", "a-w", moved)
        inside = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", moved, moved]  # for root, whom modes do not hinder
        if not shutil.which("bwrap") or execute(*inside, "true").returncode != 0:
            inside = []
        self.works(moved, *inside)
        execute("chmod", "-R", "u+w", moved)
        self.ok(*self.pip(moved), "uninstall", "-y", "hpclaunch")
        self.nothing_left(moved, before)

    def test_wheel_with_pytorch(self):
        """What a user does first: installs the wheel beside PyTorch and trains on two ranks."""
        python = python_with_torch()
        if python is None:
            allowed.leave_out("no Python here has torch")
        venv, pip = self.venv("venv", python, "--system-site-packages")
        before = self.listing(venv)
        self.ok(*pip, "install", "--no-index", self.package(".whl"))
        example = venv + "/share/doc/hpclaunch/examples/train_ddp.py"
        train = ["run", "--launcher", "local", "-n", "2", "--oversubscribe", "--", "python", example, "--device", "cpu", "--steps", "12"]
        out = self.ok(venv + "/bin/hpclaunch", *train, env=plain())
        self.assertRegex(out, r"(?m)^done: 12 steps on 2 ranks .*, models equal$")
        for rank in (0, 1):
            self.assertRegex(out, r"(?m)^rank %d/2  local %d " % (rank, rank))
        self.assertIn("Python is that of " + venv, out)
        self.ok(*pip, "uninstall", "-y", "hpclaunch")
        self.nothing_left(venv, before)

    @needs("dpkg-deb")
    def test_deb(self):
        path = self.package(".deb")
        program = elf.Program(PORTABLE if os.path.exists(PORTABLE) else BUILD + "/bin/hpclaunch")
        self.assertEqual(execute("dpkg-deb", "-f", path, "Depends").stdout.strip(), "libc6 (>= %d.%d)" % program.floor()[:2])
        self.assertEqual(execute("dpkg-deb", "-f", path, "Architecture").stdout.strip(), {"x86_64": "amd64", "aarch64": "arm64"}[program.machine])
        self.assertEqual(execute("dpkg-deb", "-x", path, self.place).returncode, 0)
        self.works(self.place + "/usr")
        self.assertEqual(os.listdir(self.place), ["usr"])
        for file in ("man/man1/hpclaunch.1.gz", "zsh/vendor-completions/_hpclaunch", "doc/hpclaunch/copyright"):
            self.assertGreater(os.path.getsize(self.place + "/usr/share/" + file), 0)
        # Installed and removed by dpkg itself, below a root of its own.
        root = os.path.join(self.place, "root")
        os.makedirs(root + "/var/lib/dpkg/info")
        for name in ("status", "available"):
            open(root + "/var/lib/dpkg/" + name, "w").close()
        dpkg = ["dpkg", "--root=" + root, "--force-depends", "--force-not-root", "--force-script-chrootless", "--log=/dev/null"]
        path_of_root = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
        done = execute(*dpkg, "-i", path, env=path_of_root)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.works(root + "/usr")
        done = execute(*dpkg, "-P", "hpclaunch", env=path_of_root)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertFalse(os.path.exists(root + "/usr"), done.stdout)

    @needs("rpmbuild")
    def test_rpm(self):
        path = self.package(".rpm")
        wants = execute("rpm", "-qp", "--requires", path).stdout.split("\n")
        foreign = [one for one in wants if one and not one.startswith(("libc.so", "libm.so", "libdl.so", "libpthread.so", "rpmlib(", "rtld(", "/bin/sh"))]
        self.assertEqual(foreign, [])
        self.assertIn("libc.so.6(GLIBC_2.14)(64bit)", wants)
        files = execute("rpm", "-qpl", path).stdout.split()
        self.assertNotIn("/usr/bin", files)
        self.assertIn("/usr/libexec/hpclaunch/hpclaunch-shim", files)
        self.assertIn("/usr/libexec/hpclaunch/hpclaunch-stacks", files)
        root = os.path.join(self.place, "root")
        os.makedirs(root)
        rpm = ["rpm", "--root", root, "--dbpath", "/var/lib/rpm"]
        done = execute(*rpm, "-i", "--nodeps", "--ignorearch", path)
        if "chroot" in done.stdout and "ermitted" in done.stdout:
            allowed.leave_out("rpm may not enter a root here")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.works(root + "/usr")
        self.assertEqual(execute(*rpm, "-e", "hpclaunch").returncode, 0)
        self.assertFalse(os.path.exists(root + "/usr/bin/hpclaunch"))
        self.assertFalse(os.path.exists(root + "/usr/libexec/hpclaunch"))

    def test_bill_of_materials(self):
        with open(self.package(".spdx.json")) as file:
            document = json.load(file)
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        names = {one["name"]: one for one in document["packages"]}
        self.assertEqual(set(names), {"hpclaunch", "fmt", "CLI11", "nlohmann_json", "hwloc", "libstdc++"})
        known = {one["SPDXID"] for one in document["packages"]} | {"SPDXRef-DOCUMENT"}
        for relation in document["relationships"]:
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, known)
        for one in document["packages"]:
            self.assertTrue(one["versionInfo"], one)
            self.assertRegex(one["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            self.assertIn(one["primaryPackagePurpose"], ("APPLICATION", "LIBRARY"))
            for reference in one.get("externalRefs", []):
                self.assertEqual((reference["referenceCategory"], reference["referenceType"]), ("PACKAGE-MANAGER", "purl"))
                self.assertRegex(reference["referenceLocator"], r"^pkg:github/[^/]+/[^/@]+@[^@]*%s$" % re.escape(one["versionInfo"]))
        self.assertEqual([one["name"] for one in document["packages"] if "externalRefs" not in one], ["hpclaunch", "libstdc++"])

    def test_recipes(self):
        """Filled in as scripts/release does: Python that compiles; EasyBuild's also runs, with one sum for each source."""
        texts = {}
        for name in ("spack/package.py", "easybuild/hpclaunch.eb"):
            with open(os.path.join(ROOT, "packaging", name + ".in")) as file:
                texts[name] = re.sub(r"@[A-Z0-9_]+@", "1", file.read())
            compile(texts[name], name, "exec")
        recipe = {"SOURCE_TAR_GZ": "hpclaunch-1.tar.gz"}
        exec(texts["easybuild/hpclaunch.eb"], recipe)  # our own text
        self.assertEqual(len(recipe["sources"]), len(recipe["checksums"]))
        for key in ("name", "version", "homepage", "description", "toolchain", "easyblock", "moduleclass", "sanity_check_paths"):
            self.assertTrue(recipe[key], key)
        with open(os.path.join(ROOT, "cmake", "Install.cmake")) as file:
            installed = file.read()
        for path in recipe["sanity_check_paths"]["files"]:
            self.assertIn(os.path.basename(path).replace("hpclaunch-shim", "HPCLAUNCH_SHIM").replace("hpclaunch-stacks", "HPCLAUNCH_STACKS").replace("hpclaunch-node", "HPCLAUNCH_NODE"), installed)

    def test_module_files(self):
        with tarfile.open(self.package(".tar.gz")) as archive:
            archive.extractall(self.place)
        (prefix,) = glob.glob(self.place + "/hpclaunch-*")
        modules = prefix + "/share/modulefiles/hpclaunch"
        version = json.loads(execute(prefix + "/bin/hpclaunch", "--version", "--json").stdout)["version"]
        self.assertEqual(sorted(os.listdir(modules)), [version, version + ".lua"])
        changes = []
        lua = shutil.which("lua5.3") or shutil.which("lua")
        if lua:
            head = """function myFileName() return arg[1] end function myModuleVersion() return "1" end
                function pathJoin(a, b) return a .. "/" .. b end function prepend_path(n, v) print(n .. "=" .. v) end
                function whatis() end function help() end function conflict() end dofile(arg[1])"""
            script = os.path.join(self.place, "try.lua")
            with open(script, "w") as file:
                file.write(head)
            changes.append(execute(lua, script, modules + "/%s.lua" % version).stdout)
        tcl = shutil.which("tclsh")
        if tcl:
            script = os.path.join(self.place, "try.tcl")
            with open(script, "w") as file:
                file.write("set ModulesCurrentModulefile [lindex $argv 0]\nproc prepend-path {n v} {puts $n=$v}\n"
                           "proc module-whatis a {}\nproc conflict a {}\nsource $ModulesCurrentModulefile\n")
            changes.append(execute(tcl, script, modules + "/" + version).stdout)
        for one in changes:
            self.assertEqual(one.split("\n")[:2], ["PATH=%s/bin" % prefix, "MANPATH=%s/share/man" % prefix])


if __name__ == "__main__":
    sys.exit(allowed.run())
