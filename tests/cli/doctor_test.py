#!/usr/bin/env python3
"""hpclaunch doctor: each planted fault is found and named, and nothing else."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import fakes
import support
import allowed
from support import ROOT, Test, clean_env, execute, hpclaunch, need

IGNORED = {"memlock", "open-files"}  # of the machine that runs the tests


def load_tests(loader, tests, pattern):
    return fakes.Together(tests, 2)  # beside the one that waits for libfabric


class Doctor(Test):
    """A small torch with its NCCL, an interpreter that says where it is, and a libfabric that answers at once. The real
    ones are asked by test_the_real_python, test_a_provider, test_the_real_torch and test_what_it_costs."""

    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.mkdtemp(prefix="hpclaunch-test-")
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        cls.fabric = os.path.join(cls.made, "fabric")
        fakes.libfabric(cls.fabric)
        site = os.path.join(cls.made, "site")
        nccl = cls.compiled(site, "nvidia/nccl/lib", "libnccl.so.2")
        cls.compiled(site, "torch", "_C.cpython-1.so", needs=[nccl], rpath="$ORIGIN/../nvidia/nccl/lib")
        os.mkdir(os.path.join(site, "torch", "lib"))

    def setUp(self):
        super().setUp()
        self.home = os.path.join(self.folder, "home")
        self.site = os.path.join(self.folder, "site")
        os.makedirs(self.home)
        shutil.copytree(os.path.join(self.made, "site"), self.site)
        self.prefix = os.path.join(self.folder, "prefix")
        self.python = self.file("bin/python3", fakes.python_of_doctor(self.site, self.prefix), 0o755)
        self.file("site/torch/__init__.py", "raise SystemExit('torch was imported')\n")
        self.file("site/torch/version.py", "__version__ = '2.8.7+cu1'\ncuda: Optional[str] = '1.2'\nhip: Optional[str] = None\n")
        self.nccl = os.path.join(self.site, "nvidia/nccl/lib", "libnccl.so.2")

    @staticmethod
    def compiled(site, folder, name, needs=(), rpath="", body="int hpclaunch_test;", more=()):
        return fakes.library(os.path.join(site, folder, name), body + "\n", "-Wl,-soname," + name, *needs,
                             *(["-Wl,-rpath," + rpath, "-Wl,--enable-new-dtags"] if rpath else []), *more)

    def library(self, *words, **more):
        return self.compiled(self.site, *words, **more)

    def env(self, real_fabric=False, **env):
        """That of clean_env; the libfabric is behind the folders of LD_LIBRARY_PATH."""
        env = {"HOME": self.home, "PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": "", **env}
        if not real_fabric:
            env.setdefault("FAKE_LIBFABRIC", "all")
            env["LD_LIBRARY_PATH"] += ":" * bool(env["LD_LIBRARY_PATH"]) + self.fabric
        return clean_env(**env)

    def examine(self, *words, **env):
        done = hpclaunch("doctor", "--profile", "none", "--json", *(words or ("--python", self.python)), env=self.env(**env))
        rows = json.loads(done.out)["rows"]
        faults = {row["id"]: row for row in rows if row["verdict"] != "ok" and row["id"] not in IGNORED}
        self.assertEqual(done.status, 1 if any(row["verdict"] in ("warning", "error") for row in rows) else 0, str(done))
        return rows, faults

    def found(self, fault, says, **env):
        _, faults = self.examine(**env)
        self.assertEqual(list(faults), [fault], faults)
        self.assertIn(says, faults[fault]["message"])
        self.assertTrue(faults[fault]["fix"])

    def test_a_sound_machine(self):
        rows, faults = self.examine()
        self.assertEqual(faults, {})
        torch = [row["found"] for row in rows if row["area"] == "torch"]
        self.assertEqual(torch, ["2.8.7+cu1, CUDA 1.2 in %s/torch" % self.site, "libnccl.so.2 is " + os.path.realpath(self.nccl)])

    def test_the_real_python(self):
        """As test_a_sound_machine; without packages of its own, so that it has no torch either where the system has one."""
        self.python = self.file("bin/real/python3", fakes.bare_python(self.site), 0o755)
        rows, faults = self.examine(real_fabric=True)
        self.assertEqual(faults, {})
        self.assertIn([row["found"] for row in rows if row["area"] == "python"],
                      [["%s, prefix %s" % (self.python, prefix)] for prefix in (sys.prefix, sys.base_prefix)])
        self.assertEqual([row["found"] for row in rows if row["area"] == "torch"][0], "2.8.7+cu1, CUDA 1.2 in %s/torch" % self.site)
        shutil.rmtree(os.path.join(self.site, "torch"))
        self.found("no-torch", "has no torch")

    def test_scheduler_and_launcher(self):
        host = os.uname().nodename
        for words, env, says in (((), {}, {"launcher": r"local \(", "scheduler": "none"}),
                                 ((), {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": host, "SLURM_NNODES": "1"}, {"scheduler": "Slurm, job 7$"}),
                                 (("--launcher", "hydra"), {}, {"launcher": r"hydra \(.*\): \d"})):
            rows, _ = self.examine("--python", self.python, *words, **env)
            for area, text in says.items():
                self.assertRegex([row["found"] for row in rows if row["area"] == area][0], text)

    def test_two_copies_of_nccl(self):
        other = self.library("other", "libnccl.so.2")
        self.found("two-libraries", "libnccl.so.2 is also at", LD_LIBRARY_PATH=os.path.dirname(other))

    def test_a_link_to_the_same_file_is_no_copy(self):
        os.makedirs(os.path.join(self.folder, "links"))
        os.symlink(self.nccl, os.path.join(self.folder, "links", "libnccl.so.2"))
        _, faults = self.examine(LD_LIBRARY_PATH=os.path.join(self.folder, "links"))
        self.assertEqual(faults, {})

    def test_a_library_that_is_not_there(self):
        ccl = self.library("ccl", "libccl.so.77")
        self.library("torch", "_C.cpython-1.so", needs=[self.nccl, ccl], rpath="$ORIGIN/../nvidia/nccl/lib")
        self.found("library-missing", "torch needs libccl.so.77")

    def test_a_library_of_another_version(self):
        for version in ("NEW", "OLD"):  # the program was linked with the first, the second is there
            script = self.file("versions", "%s { global: hpclaunch_test; };\n" % version)
            path = self.library("nvidia/nccl/lib", "libnccl.so.2", more=["-Wl,--version-script," + script])
            if version == "NEW":
                self.library("torch", "_C.cpython-1.so", needs=[path], rpath="$ORIGIN/../nvidia/nccl/lib", body="extern int hpclaunch_test; int *use(void) { return &hpclaunch_test; }")
        self.found("library-version", "version `NEW' not found")

    def test_a_glibc_that_is_too_old(self):
        script = self.file("versions", "GLIBC_9.99 { global: hpclaunch_test; };\n")
        newer = self.library("newer", "libc.so.6", more=["-nostdlib", "-Wl,--version-script," + script])
        self.library("torch", "_C.cpython-1.so", needs=[newer, self.nccl], rpath="$ORIGIN/../nvidia/nccl/lib", more=["-nostdlib"],
                     body="extern int hpclaunch_test; int *use(void) { return &hpclaunch_test; }")
        self.found("library-version", "version `GLIBC_9.99' not found")

    def test_a_torch_that_is_broken(self):
        os.truncate(os.path.join(self.site, "torch", "_C.cpython-1.so"), 100)
        self.found("torch-broken", "_C.cpython-1.so")
        os.unlink(os.path.join(self.site, "torch", "_C.cpython-1.so"))
        self.found("torch-broken", "no extension module _C")
        shutil.rmtree(os.path.join(self.site, "torch"))
        self.found("no-torch", "has no torch")

    def test_a_python_that_is_broken(self):
        self.file("bin/python3", "#!/bin/sh\necho no encodings >&2\nexit 1\n", 0o755)
        self.found("python-broken", "no encodings")
        _, faults = self.examine("--python", "/no/python")
        self.assertEqual(list(faults), ["no-python"])

    def test_a_plugin(self):
        fabric = self.library("fabric", "libfabric.so.7")
        plugin = self.library("ofi", "libnccl-net.so", needs=[fabric])
        ofi = os.path.dirname(plugin)
        rows, faults = self.examine(LD_LIBRARY_PATH="%s:%s" % (ofi, os.path.dirname(fabric)))
        self.assertEqual((faults, [row["found"] for row in rows if row["area"] == "plug-in"]), ({}, [plugin]))
        self.found("plugin-broken", "libfabric.so.7", LD_LIBRARY_PATH=ofi)
        os.truncate(plugin, 64)
        self.found("plugin-broken", plugin, LD_LIBRARY_PATH=ofi)

    def test_a_plugin_for_a_newer_libfabric(self):
        for version in ("FABRIC_9.9", "FABRIC_1.0"):
            script = self.file("versions", "%s { global: hpclaunch_test; };\n" % version)
            fabric = self.library("fabric", "libfabric.so.7", more=["-Wl,--version-script," + script])
            if version == "FABRIC_9.9":
                plugin = self.library("ofi", "libnccl-net.so", needs=[fabric], body="extern int hpclaunch_test; int *use(void) { return &hpclaunch_test; }")
        self.found("plugin-broken", "version `FABRIC_9.9' not found", LD_LIBRARY_PATH="%s:%s" % (os.path.dirname(plugin), os.path.dirname(fabric)))

    def test_what_torch_has_loaded_serves_a_plugin(self):
        """As CUDA's runtime of a wheel does, which no path of the loader has."""
        runtime = self.library("torch/lib", "libcudart.so.77")
        self.library("torch", "_C.cpython-1.so", needs=[self.nccl, runtime], rpath="$ORIGIN/../nvidia/nccl/lib:$ORIGIN/lib")
        plugin = self.library("ofi", "libnccl-net.so", needs=[runtime])
        rows, faults = self.examine(LD_LIBRARY_PATH=os.path.dirname(plugin))
        self.assertEqual((faults, [row["found"] for row in rows if row["area"] == "plug-in"]), ({}, [plugin]))

    def test_a_network_that_needs_a_plugin(self):
        node = json.loads(hpclaunch("topo", "--topology", support.machine("single-pu.xml"), "--json").out)
        for kind, found in (("slingshot", ["plugin-missing"]), ("infiniband", [])):
            node["nics"] = [{"name": "hsn0", "kind": kind}]
            words = ("--topology", self.file("node.json", json.dumps(node)), "--python", self.python)
            self.assertEqual(list(self.examine(*words)[1]), found)
            self.assertEqual(self.examine(*words, NCCL_NET="Socket")[1], {})

    def test_a_plugin_of_another_version(self):
        looks = "#include <dlfcn.h>\nvoid* hpclaunch_test(void* p) { void* a = dlsym(p, \"ncclNetPlugin_v%d\"); return a ? a : dlsym(p, \"ncclNetPlugin_v%d\"); }"
        self.library("nvidia/nccl/lib", "libnccl.so.2", body=looks % (8, 7))
        plugin = self.library("ofi", "libnccl-net.so", body="int ncclNetPlugin_v7, ncclNetPlugin_v6;")
        ofi = os.path.dirname(plugin)
        self.assertEqual(self.examine(LD_LIBRARY_PATH=ofi)[1], {})
        self.library("ofi", "libnccl-net.so", body="int ncclNetPlugin_v6, ncclNetPlugin_v5;")
        self.found("plugin-version", "version 5, 6 of NCCL's network interface", LD_LIBRARY_PATH=ofi)
        self.library("ofi", "libnccl-net.so", body="int ncclNetPlugin_v11;")
        self.found("plugin-version", "looks for 7, 8", LD_LIBRARY_PATH=ofi)

    def test_a_plugin_that_is_asked_for_and_missing(self):
        self.found("plugin-missing", "NCCL_NET=AWS Libfabric", NCCL_NET="AWS Libfabric")
        self.found("plugin-missing", "NCCL_NET_PLUGIN=ofi", NCCL_NET_PLUGIN="ofi")
        for env in ({"NCCL_NET": "IB"}, {"NCCL_NET_PLUGIN": "none"}):
            self.assertEqual(self.examine(**env)[1], {})
        self.library("torch", "_C.cpython-1.so")  # NCCL is linked into it, or it has none
        self.found("plugin-missing", "NCCL_NET=AWS Libfabric", NCCL_NET="AWS Libfabric")
        self.file("site/torch/version.py", "__version__ = '2.8.7+cpu'\n")
        self.assertEqual(self.examine(NCCL_NET="AWS Libfabric")[1], {})

    def test_a_provider(self):
        rows, _ = self.examine(real_fabric=True)
        self.assertTrue(any("providers" in row["found"] for row in rows if row["area"] == "libfabric"), "not installed: libfabric1")
        _, faults = self.examine(real_fabric=True, FI_PROVIDER="cxi")
        self.assertEqual(list(faults), ["provider-missing"])
        self.assertRegex(faults["provider-missing"]["message"], r"FI_PROVIDER=cxi: libfabric 1\.\d+ \(/.*\) offers .*tcp")
        self.assertEqual(self.examine(real_fabric=True, FI_PROVIDER="tcp")[1], {})
        for entries in ("cxi", "psm3,tcp;ofi_rxm", "verbs"):
            self.assertEqual(self.examine(FI_PROVIDER=entries)[1], {})
        self.found("provider-missing", "FI_PROVIDER=psm3,sockets: libfabric 2.5 (%s/libfabric.so.1) offers" % self.fabric, FI_PROVIDER="psm3,sockets")

    def limited(self, *limits):
        """The status and the rows under these limits, as prlimit has them."""
        done = execute([need("prlimit"), *limits, support.HPCLAUNCH, "doctor", "--profile", "none", "--json", "--python", self.python], env=self.env())
        return done.status, json.loads(done.out)["rows"]

    def test_limits(self):
        status, rows = self.limited("--memlock=65536", "--nofile=256")
        self.assertEqual({row["id"] for row in rows if "id" in row}, {"memlock", "open-files"})
        self.assertEqual(status, 1)

    def test_a_provider_of_the_libfabric_that_the_plugin_loads(self):
        fabric = shutil.copytree(self.fabric, os.path.join(self.folder, "fabric"))
        plugin = self.library("ofi", "libnccl-net.so", needs=[os.path.join(fabric, "libfabric.so.1")], rpath=fabric)
        env = {"LD_LIBRARY_PATH": os.path.dirname(plugin), "real_fabric": True}  # where the loader finds one by itself
        self.assertEqual(self.examine(FI_PROVIDER="cxi", FAKE_LIBFABRIC="all", **env)[1], {})
        self.found("provider-missing", "FI_PROVIDER=psm3: libfabric 2.5 (%s/libfabric.so.1) offers" % fabric, FI_PROVIDER="psm3", FAKE_LIBFABRIC="all", **env)

    def test_a_libfabric_that_fails(self):
        for mode, says in (("none", "offers no provider"), ("crash", "SIGSEGV"), ("hang", "took longer than 5 seconds")):
            self.found("provider-missing", says, FI_PROVIDER="cxi", FAKE_LIBFABRIC=mode)

    def test_a_small_stack(self):
        _, rows = self.limited("--stack=%d" % (1 << 20))
        self.assertEqual({row["id"] for row in rows if "id" in row} - IGNORED, {"stack"})
        self.assertRegex([row["found"] for row in rows if row["area"] == "limits" and "found" in row][0], r"stack 1 MiB, core ")

    def test_limits_of_login_nodes(self):
        with open(support.HPCLAUNCH, "rb") as program:
            sanitized = b"__asan_init" in program.read()  # it reserves 16 TiB of addresses
        _, rows = self.limited("--nproc=400", *([] if sanitized else ["--as=%d:unlimited" % (64 << 30)]))
        ids = {row["id"] for row in rows if "id" in row}
        self.assertEqual(ids - IGNORED, {"processes"} | (set() if sanitized else {"address-space"}))

    def test_folders_that_variables_name(self):
        self.found("no-tmpdir", "/gone/tmp", TMPDIR="/gone/tmp")
        self.found("no-tmpdir", "/proc/self", TMPDIR="/proc/self")
        self.assertEqual(self.examine(TMPDIR=self.folder, TRITON_CACHE_DIR=self.folder + "/new/cache", HF_HOME="relative")[1], {})
        self.found("cache-unusable", "TRITON_CACHE_DIR=/proc/self/cache", TRITON_CACHE_DIR="/proc/self/cache")

    def test_what_the_loader_is_told(self):
        self.found("preload-missing", "/gone/lib.so", LD_PRELOAD="/gone/lib.so")
        self.found("library-path-here", "empty entry", LD_LIBRARY_PATH=":/usr/lib")

    def test_a_proxy_that_does_not_answer(self):
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        words = ("--network", "--python", self.python)
        good = {"https_proxy": "http://user:secret@127.0.0.1:%d/" % port, "no_proxy": "localhost"}
        self.assertEqual(self.examine(*words, **good)[1], {})
        listener.close()
        _, faults = self.examine(*words, **good)
        self.assertEqual(list(faults), ["proxy-silent"])
        self.assertIn("127.0.0.1 port %d: Connection refused" % port, faults["proxy-silent"]["message"])
        self.assertNotIn("secret", str(faults))
        self.assertEqual(self.examine(**good)[1], {})  # not asked for: not touched
        _, faults = self.examine(*words, all_proxy="socks5://no.such.host.invalid:1080", no_proxy="x")
        self.assertEqual(list(faults), ["proxy-silent"])

    def test_an_environment_that_is_not_the_one_on_path(self):
        self.found("environment-shadowed", "VIRTUAL_ENV=/elsewhere", VIRTUAL_ENV="/elsewhere")
        self.assertEqual(self.examine(CONDA_PREFIX=self.prefix)[1], {})
        self.found("pythonpath-version", "of Python 3.2", PYTHONPATH="/x/lib/python3.2/site-packages")
        local = os.path.join(self.home, ".local", "lib")
        shutil.copytree(os.path.join(self.site, "torch"), os.path.join(local, "torch"))
        shutil.copytree(os.path.join(self.site, "nvidia"), os.path.join(local, "nvidia"))
        python = self.file("bin/python4", fakes.bare_python(local), 0o755)
        _, faults = self.examine("--python", python)
        self.assertEqual(list(faults), ["user-packages"])

    def test_home(self):
        self.found("no-home", "HOME is not set", HOME="")
        self.found("no-home", "/not/there", HOME="/not/there")
        self.found("home-read-only", "cannot be written", HOME="/proc/self")

    def mounted(self, mounts, **env):
        """The rows in a mount namespace, after a shell has run `mounts` there."""
        allowed.require("mounts")
        done = subprocess.run(["unshare", "-m", "sh", "-ec", mounts + '\nexec "$@"', "sh", support.HPCLAUNCH, "doctor", "--profile", "none", "--json",
                               "--python", self.python], env=self.env(**env), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(done.stdout, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        return rows, {row["id"]: row for row in rows if "id" in row and row["id"] not in IGNORED}

    def test_a_full_file_system(self):
        _, faults = self.mounted("mount -t tmpfs -o size=4k none '%s'; head -c 4096 /dev/zero > '%s/x'; mount -t tmpfs -o size=32m none /dev/shm" % (self.home, self.home))
        self.assertEqual(set(faults), {"home-full", "shared-memory-full"})

    def test_no_shared_memory(self):
        _, faults = self.mounted("mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3")
        self.assertEqual(list(faults), ["no-shared-memory"])

    def test_huge_pages(self):
        """The kernel's folder of pools, with pages of 2 MiB: in the pool, free, and that it may add."""
        pool = os.path.join("pools", "hugepages-2048kB")
        asks = {"HUGETLB_MORECORE": "yes", "HUGETLB_DEFAULT_PAGE_SIZE": "2M"}
        for total, free, more, found in ((0, 0, 0, ["huge-pages"]), (8, 0, 0, ["huge-pages"]), (8, 8, 0, []), (0, 0, 512, [])):
            for name, value in (("nr_hugepages", total), ("free_hugepages", free), ("nr_overcommit_hugepages", more)):
                self.file(os.path.join(pool, name), "%d\n" % value)
            mounts = "mount --bind '%s/pools' /sys/kernel/mm/hugepages" % self.folder
            rows, faults = self.mounted(mounts, **asks)
            self.assertEqual(list(faults), found, (total, free, more))
        self.assertEqual([row["found"].split(", ")[0] for row in rows if row["area"] == "huge pages"], ["0 free of 0 of 2 MiB and 512 on demand"])
        for env, says in ((dict(asks, HUGETLB_DEFAULT_PAGE_SIZE="1G"), "HUGETLB_MORECORE=yes: none of 0 huge pages of 1 GiB"),
                          ({"UCX_MM_HUGETLB_MODE": "y", "HUGETLB_MORECORE": "thp"}, None)):
            _, faults = self.mounted(mounts, **env)
            self.assertEqual(list(faults), ["huge-pages"] if says else [])
            self.assertIn(says or "", str(faults))

    def test_the_driver_of_a_device(self):
        """NVIDIA's, as the kernel shows it, and its library."""
        self.file("site/torch/version.py", "__version__ = '2.8.7'\ncuda: Optional[str] = '12.8'\n")
        self.library("driver", "libcuda.so.1")
        def rows(version, **env):
            return self.mounted("mount -t tmpfs none /sys/module; mkdir /sys/module/nvidia; echo %s > /sys/module/nvidia/version" % version, **env)
        folder = os.path.join(self.site, "driver")
        self.assertEqual(list(rows("550.54.15")[1]), ["driver-library"])
        found, faults = rows("550.54.15", LD_LIBRARY_PATH=folder)
        self.assertEqual((faults, [row["found"] for row in found if row["area"] == "driver"]),
                         ({}, ["nvidia 550.54.15, libcuda.so.1 is %s/libcuda.so.1" % folder]))
        _, faults = rows("470.82.01", LD_LIBRARY_PATH=folder)
        self.assertEqual(list(faults), ["known-issue"])
        self.assertIn("cuda 12.8 with nvidia-driver 470.82.01 does not start: programs built with CUDA 12 need driver 525", faults["known-issue"]["message"])
        os.rename(os.path.join(folder, "libcuda.so.1"), os.path.join(folder, "libcuda.so.550.54.15"))
        os.symlink("libcuda.so.550.54.15", os.path.join(folder, "libcuda.so.1"))  # the package cuda-compat
        self.assertEqual(rows("470.82.01", LD_LIBRARY_PATH=folder)[1], {})

    def planted(self, folder, **env):
        """The findings where a library stands in for the kernel below a folder."""
        with open(support.HPCLAUNCH, "rb") as program:
            if b"__asan_init" in program.read():
                self.skipTest("AddressSanitizer has to be the first library")
        library = os.path.join(self.folder, "kernel.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, os.path.join(ROOT, "tests", "cli", "standins", "kernel.c")], check=True)
        return self.examine(LD_PRELOAD=library, PLANTED=folder, **env)[1]

    def test_home_at_its_quota(self):
        faults = self.planted(self.home)
        self.assertEqual(list(faults), ["home-full"])
        self.assertIn("Disk quota exceeded", faults["home-full"]["message"])

    def test_a_python_on_nfs(self):
        faults = self.planted(self.site)
        self.assertEqual(list(faults), ["python-on-nfs"])
        self.assertIn(self.site + "/torch is on NFS", faults["python-on-nfs"]["message"])

    def test_what_the_shell_has_left(self):
        self.found("stale-module", "/gone/tool/1.lua", LOADEDMODULES="tool/1", _LMFILES_="/gone/tool/1.lua")
        self.found("proxy-for-all", "http_proxy set", http_proxy="http://user:secret@p:3128")
        self.assertEqual(self.examine(http_proxy="http://p:3128", no_proxy="localhost")[1], {})
        for name in ("a", "b"):
            self.file("%s/hpclaunch" % name, "#!/bin/sh\n", 0o755)
        self.found("two-installations", "/a/hpclaunch, then ", PATH="%s/a:%s/b:/usr/bin:/bin" % (self.folder, self.folder))

    def test_an_mpi_program_under_another_launcher(self):
        _, faults = self.examine("--python", self.python, "--launcher", "local", "-n", "2", "--oversubscribe", "--", self.mpi_program())
        self.assertEqual(list(faults), ["mpi-mismatch"])

    def test_a_program_of_mpich_under_open_mpi(self):
        words = ("--launcher", "openmpi", "-n", "2", "--oversubscribe", "--")
        _, faults = self.examine("--python", self.python, *words, self.mpi_program("libmpich.so.12"))
        self.assertIn("not supported by launcher openmpi", faults.pop("mpi-mismatch")["message"])
        self.assertEqual(faults, {})
        self.assertEqual(self.examine("--python", self.python, *words, self.mpi_program())[1], {})

    def test_the_mpi_of_mpi4py(self):
        """The interpreter is that of the program."""
        self.library("packages/mpi4py", "MPI.abi3.so", needs=[self.library("mpi", "libmpich.so.12")])
        words = ("--launcher", "openmpi", "-n", "2", "--oversubscribe", "--", self.python, self.file("train.py", "from mpi4py import MPI\n"))
        rows, faults = self.examine(*words, PYTHONPATH=os.path.join(self.site, "packages"))
        self.assertEqual(list(faults), ["mpi-mismatch"])
        self.assertIn("%s, prefix %s" % (self.python, self.prefix), [row["found"] for row in rows if row["area"] == "python"])
        self.assertIn("mpi4py/MPI.abi3.so needs libmpich.so.12", faults["mpi-mismatch"]["message"])

    def mpi_program(self, name="libmpi.so.40"):
        library = self.library("mpi", name)
        path = os.path.join(self.folder, "program")
        subprocess.run(["cc", "-o", path, "-xc", "-", "-xnone", "-Wl,--no-as-needed", library], input=b"int main(void) { return 0; }", check=True)
        return path

    def calls(self, *words):
        """What strace saw: processes, files that were opened, and calls that reach other machines."""
        folder = tempfile.mkdtemp(dir=self.folder)  # a file for each process: what they do at once is in one piece
        done = execute([need("strace"), "-ff", "-qq", "-s", "500", "-e", "signal=none", "-e", "trace=execve,openat,connect,sendto,sendmsg,sendmmsg",
                        "-o", folder + "/trace", support.HPCLAUNCH, "doctor", "--profile", "none", *words],
                       env=self.env(real_fabric=True, ASAN_OPTIONS="detect_leaks=0"))
        self.assertIn(done.status, (0, 1), str(done))
        lines = []
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), errors="replace") as file:
                lines += file.readlines()
        return ([line for line in lines if "execve(" in line and "= 0" in line], [line for line in lines if "openat(" in line and " = -1 " not in line],
                [line for line in lines if re.search(r"AF_INET6?\b", line)])

    def test_what_it_costs(self):
        """Counted, not timed: processes, files, and nothing that leaves this machine."""
        programs, files, network = self.calls("--python", "/no/python")
        self.assertLessEqual(len(programs), 2, "".join(programs))
        self.assertLessEqual(len(files), 160, "".join(files))
        self.assertEqual(network, [])
        programs, _, network = self.calls("--python", self.python)
        self.assertLessEqual(len(programs), 7, "".join(programs))
        self.assertEqual(network, [])
        self.assertTrue(all("getent" not in line for line in programs))

    def test_every_finding_is_documented_and_planted(self):
        ids = set()
        for folder, _, names in os.walk(os.path.join(ROOT, "src", "job", "doctor")):
            for name in names:
                with open(os.path.join(folder, name)) as file:
                    ids |= {word for word in re.findall(r'"([a-z]+(?:-[a-z]+)+)"', file.read()) if not word.startswith("preflight-")}
        with open(os.path.join(ROOT, "docs", "doctor.md")) as file:
            page = file.read()
        tests = ""
        for name in ("doctor_test.py", "verify_test.py"):
            with open(os.path.join(ROOT, "tests", "cli", name)) as file:
                tests += file.read()
        ids -= {"site-unknown", "aws-ofi-nccl", "intel-mpi", "nvidia-driver"}  # of the plan, and not reported here; components
        self.assertEqual([one for one in sorted(ids) if one not in page], [])
        self.assertEqual([one for one in sorted(ids) if '"%s"' % one not in tests], [])

    def test_versions_that_do_not_work_together(self):
        version = 'const char hpclaunch_version[] = "%s";'
        self.file("site/torch/version.py", "__version__ = '2.1.0+cu121'\ncuda: Optional[str] = '12.1'\n")
        folder = os.path.join(self.site, "ofi")
        for nccl, plugin, env, says in (("2.18.1+cuda12.1", None, {}, ["nccl 2.18.1 may compute wrong results"]),
                                        ("2.18.1+cuda12.1", None, {"NCCL_PROTO": "^LL128"}, []),
                                        ("2.21.5+cuda12.4", "1.13.2", {}, []),
                                        ("2.21.5+cuda12.4", "1.11.0", {}, []),
                                        ("2.21.5+cuda12.4", "1.11.0", {"LOADEDMODULES": "efa/1.36.0"}, ["aws-ofi-nccl 1.11.0 with efa 1.36.0 may crash"]),
                                        ("2.21.5+cuda12.4", None, {"LOADEDMODULES": "rocm/6.3.1:rccl/2.22.3", "RCCL_MSCCL_ENABLE": "0"},
                                         ["rccl 2.22.3 with rocm 6.3.1 may hang"])):
            self.library("nvidia/nccl/lib", "libnccl.so.2", body=version % ("NCCL version " + nccl))
            if plugin:
                self.library("ofi", "libnccl-net.so", body=version % ("aws-ofi-nccl " + plugin))
            rows, _ = self.examine("--python", self.python, LD_LIBRARY_PATH=folder if plugin else "", **env)
            found = [row["message"] for row in rows if row.get("id") == "known-issue" and row["verdict"] != "note"
                     and not row["message"].startswith("libfabric")]  # this machine's real one
            self.assertEqual({one.split(":")[0] for one in found}, set(says), (nccl, plugin, env))
            self.assertIn("nccl " + nccl.split("+")[0], [row["found"] for row in rows if row["area"] == "versions" and "found" in row][0])

    def test_a_library_that_is_newer_than_what_was_read(self):
        self.file("site/torch/version.py", "__version__ = '99.1.0+cu1'\ncuda: Optional[str] = '1.2'\n")
        rows, faults = self.examine()
        self.assertEqual(list(faults), ["newer-than-known"])
        self.assertRegex(faults["newer-than-known"]["message"], r"torch 99\.1\.0\S* is newer than PyTorch [0-9.]+, up to which its variables are known")
        self.assertEqual(faults["newer-than-known"]["verdict"], "note")

    def test_no_plan(self):
        _, faults = self.examine("--python", self.python, "--launcher", "nothing")
        self.assertEqual(list(faults), ["no-plan"])

    def test_secrets_are_not_shown(self):
        done = hpclaunch("doctor", "--python", self.python, env=self.env(http_proxy="http://user:secret@p:3128", HF_TOKEN="hf_abc"))
        self.assertNotIn("secret", done.out + done.err)
        self.assertNotIn("hf_abc", done.out + done.err)

    def test_another_machine_is_said(self):
        done = hpclaunch("doctor", "--profile", "aurora", "--python", self.python, env=self.env())
        self.assertIn("only a compute node can tell", " ".join(done.out.split()))

    def test_the_real_torch(self):
        rows, _ = self.examine("--python", fakes.python_with_torch(), real_fabric=True)
        self.assertRegex([row["found"] for row in rows if row["area"] == "torch" and "found" in row][0], r"^\d+\.\d.* in /.*/torch$")
        self.assertEqual([row for row in rows if row["area"] == "torch" and row["verdict"] == "error"], [])


if __name__ == "__main__":
    support.main()
