#!/usr/bin/env python3
"""The real shim, as a launcher starts it: black_box.py SHIM none|musl|glibc|checked|aarch64

`checked` is a build with sanitizers; it is not static, so the tests of the system calls leave it out. `aarch64` is run by
QEMU (tests/support/foreign.py), the programs that it starts are this machine's.
"""
import ctypes
import errno
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import channel  # noqa: E402

LIMIT = 300  # seconds; a hang is a failure
SHIM, LIBC = os.path.abspath(sys.argv[1]), sys.argv[2]
HOST = os.uname().nodename
ALLOWED = sorted(os.sched_getaffinity(0))
LIBRARY = ctypes.CDLL(None, use_errno=True)
EMULATED = LIBC == "aarch64"
by_kernel = unittest.skipIf(EMULATED, "QEMU answers in the kernel's place")


def to_list(cpus):
    """The shortest list of the kernel's format."""
    runs = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in runs)


def wire(fields):
    fields = fields if isinstance(fields, bytes) else fields.encode()
    return b"hl2." + mark(fields, 5).encode() + fields


def strings(items):
    items = [item if isinstance(item, bytes) else item.encode() for item in items]
    return (ctypes.c_char_p * (len(items) + 1))(*items, None)


def run(arguments, entries, cpus=None, program=SHIM):
    """Starts the shim with exactly these environment entries, whatever they look like."""
    argv, environment = strings([program, *arguments]), strings(entries)

    def start():
        if cpus is not None:
            os.sched_setaffinity(0, cpus)
        LIBRARY.execve(program.encode(), argv, environment)

    done = subprocess.run([program], preexec_fn=start, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
    return done.returncode, done.stdout, without_qemu(done.stderr.decode())


def without_qemu(err):
    """It adds a line of its own for a process that a signal kills."""
    return re.sub(r"^qemu: uncaught target signal .*\n", "", err, flags=re.MULTILINE) if EMULATED else err


DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def fnv1a(text):
    """FNV-1a of 32 bits."""
    value = 2166136261
    for byte in text if isinstance(text, bytes) else text.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def mark(text, size):
    """A hash as the plan writes it."""
    value = fnv1a(text)
    value ^= value >> 17
    return "".join(DIGITS[value >> 6 * i & 63] for i in range(size))


def run_plan(fields, *entries, arguments=("/usr/bin/env", "-0"), **options):
    return run(arguments, [b"HPCLAUNCH_PLAN=" + wire(fields), *entries], **options)


GREP = ("/bin/grep", "Cpus_allowed_list", "/proc/self/status")


def bound(out):
    return out.decode().split(":")[1].strip()


class Variables(unittest.TestCase):
    @by_kernel
    def test_byte_for_byte(self):
        status, out, err = run_plan(
            ":rank=R:layout=0*2:RANK=@.rank:class=2:LOCAL_RANK=@.local-rank:%78=a%0Ab%FF/%3A%2F",
            "R=3", b"ODD=\xff\n\x01", "RANK=old", "no equals sign", "LAST=", "RANK=older",
            "HPCLAUNCH_PLAN=another")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out, b"R=3\0ODD=\xff\n\x01\0no equals sign\0LAST=\0"
                              b"RANK=3\0LOCAL_RANK=1\0x=:/\0")

    def test_arguments_pass_as_they_are(self):
        arguments = ["", "a b", "--", "-x", "'\"$;\n", "é"]
        status, out, _ = run_plan(":rank=R:layout=0*1:class=1", "R=0",
                                  arguments=["/usr/bin/printf", "<%s>", *arguments])
        self.assertEqual((status, out.decode()), (0, "".join(f"<{a}>" for a in arguments)))

    def test_a_thousand_ranks_on_a_node(self):
        column = "/".join(f"value{i}" for i in range(1000))
        plan = f":rank=R:local=L:layout=0*2:class=1000:V={column}"
        for rank in 0, 999, 1000, 1999:
            status, out, err = run_plan(plan, f"R={rank}", f"L={rank % 1000}")
            self.assertEqual((status, err), (0, ""))
            self.assertTrue(out.endswith(b"V=value%d\0" % (rank % 1000)), out)

    def test_a_large_environment(self):
        entries = [f"VARIABLE_{i}=value" for i in range(16000)]
        status, out, err = run_plan(":rank=R:layout=0*1:class=1:NEW=x", "R=0", *entries)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.count(b"\0"), 16002)
        entries += [f"MORE_{i}=value" for i in range(400)]
        status, out, err = run_plan(":rank=R:layout=0*1:class=1:NEW=x", "R=0", *entries)
        self.assertEqual((status, out), (125, b""))
        self.assertEqual(err, f"hpclaunch: rank 0 on {HOST}: "
                              "the environment has more than 16384 entries\n")

    def test_status_of_the_program_is_the_status(self):
        for want in 0, 1, 42, 255:
            status, _, err = run_plan(":rank=R:layout=0*1:class=1", "R=0",
                                      arguments=("/bin/sh", "-c", f"exit {want}"))
            self.assertEqual((status, err), (want, ""))


class Binding(unittest.TestCase):
    def test_it_binds(self):
        for cpu in ALLOWED:
            status, out, err = run_plan(f":rank=R:layout=0*1:class=2:cpus={ALLOWED[0]}/{cpu}",
                                        "R=1", arguments=GREP)
            self.assertEqual((status, err, bound(out)), (0, "", str(cpu)))

    def test_an_empty_item_leaves_the_mask_alone(self):
        for key in "cpus", "expect":
            status, out, err = run_plan(f":rank=R:layout=0*1:class=2:{key}={ALLOWED[0]}/", "R=1",
                                        arguments=GREP)
            self.assertEqual((status, err, bound(out)), (0, "", to_list(ALLOWED)))

    def check_refusal(self, planned, what, left):
        line = f"hpclaunch: rank 0 on {HOST}: planned CPUs {planned}; {what} {left}\n"
        for verify, status, err, bound_to in (("warn", 0, line, left), ("off", 0, "", left),
                                              ("strict", 125, line, None)):
            got, out, said = run_plan(f":rank=R:verify={verify}:layout=0*1:class=1:cpus={planned}",
                                      "R=0", arguments=GREP)
            self.assertEqual((got, said), (status, err))
            self.assertEqual(bound(out) if out else None, bound_to)

    def test_the_kernel_gives_less(self):
        self.check_refusal(f"{ALLOWED[0]},8191", "the kernel gave only", str(ALLOWED[0]))

    def test_the_kernel_refuses(self):
        self.check_refusal("8190-8191", "the kernel refuses them, the rank has", to_list(ALLOWED))

    def test_the_launcher_bound_as_planned(self):
        for verify in "off", "warn", "strict":
            for cpu in ALLOWED:
                status, out, err = run_plan(
                    f":rank=R:verify={verify}:layout=0*1:class=1:expect={cpu}", "R=0",
                    cpus={cpu}, arguments=GREP)
                self.assertEqual((status, err, bound(out)), (0, "", str(cpu)))

    def check_rebinding(self, planned, found, ending, result):
        line = f"hpclaunch: rank 2 on {HOST}: the launcher bound CPUs {to_list(found)}, planned {planned}"
        for verify, status, err, bound_to in (("warn", 0, line + ending + "\n", result),
                                              ("off", 0, "", to_list(found)),
                                              ("strict", 125, line + "\n", None)):
            got, out, said = run_plan(
                f":rank=R:verify={verify}:layout=0*3:class=1:expect={planned}", "R=2",
                cpus=found, arguments=GREP)
            self.assertEqual((got, said), (status, err))
            self.assertEqual(bound(out) if out else None, bound_to)

    def test_the_launcher_bound_otherwise(self):
        one = str(ALLOWED[0])
        self.check_rebinding(f"{one},8191", {ALLOWED[0]}, f"; the kernel gave only {one}", one)
        if len(ALLOWED) > 1:
            self.check_rebinding(one, set(ALLOWED), "; rebound", one)
            self.check_rebinding(one, {ALLOWED[1]}, "; rebound", one)


CORE = resource.getrlimit(resource.RLIMIT_CORE)


class Limits(unittest.TestCase):
    """core=: the soft limit, never above the hard one."""

    def core(self, word, soft, hard):
        done = subprocess.run(
            [SHIM, sys.executable, "-c", "import resource; print(*resource.getrlimit(resource.RLIMIT_CORE))"],
            env={"R": "0", "HPCLAUNCH_PLAN": wire(f":rank=R:{word}layout=0*1:class=1").decode(),
                 "ASAN_OPTIONS": "disable_coredump=0"},  # else a sanitized build sets the limit itself
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (soft, hard)),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertEqual(done.stderr, b"")
        return tuple(int(word) for word in done.stdout.split())

    def test_soft_limit(self):
        hard = 1 << 20 if CORE[1] == resource.RLIM_INFINITY else min(CORE[1], 1 << 20)
        for word, want in (("", hard // 2), ("core=0:", 0), ("core=1:", min(1, hard)), ("core=999999999999999999:", hard),
                           ("core=unlimited:", hard)):
            self.assertEqual(self.core(word, hard // 2, hard), (want, hard), word)

    @unittest.skipIf(CORE[1] != resource.RLIM_INFINITY, "core dumps have a hard limit here")
    def test_no_hard_limit(self):
        infinity = resource.RLIM_INFINITY
        for word, want in (("core=0:", 0), ("core=8589934592:", 8 << 30), ("core=unlimited:", infinity)):
            self.assertEqual(self.core(word, 4096, infinity), (want, infinity), word)


class Directories(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.folder = self.held.name

    def tearDown(self):
        self.held.cleanup()

    def make(self, *paths, rank=0, local=0):
        """Status and stderr of a rank of two on its node that is to make these."""
        items = "/".join(re.sub(r"[^!-~]|[%:/=@]", lambda m: "%%%02X" % ord(m.group()), path) for path in paths)
        status, _, err = run_plan(f":rank=R:local=L:dir={items}:layout=0*1:class=2", f"R={rank}", f"L={local}",
                                  arguments=("/bin/true",))
        return status, err

    def test_in_order_with_any_name(self):
        first, second = os.path.join(self.folder, "a b:c=%@"), os.path.join(self.folder, "a b:c=%@", "below")
        os.umask(0)
        for rank in 0, 1, 0:  # the second finds them there
            self.assertEqual(self.make(first, second, rank=rank, local=rank), (0, ""))
        for path in first, second:
            self.assertEqual(os.stat(path).st_mode & 0o7777, 0o700)

    def refused(self, path, why):
        line = f"hpclaunch: rank 0 on {HOST}: directory {path} refused: {why}; remove it, or chmod 700 your own\n"
        self.assertEqual(self.make(path), (125, line))
        self.assertEqual(self.make(path, rank=1, local=1), (125, ""))

    def test_only_what_is_ones_own_real_and_closed_is_used(self):
        own, link, plain = (os.path.join(self.folder, name) for name in ("own", "link", "plain"))
        os.mkdir(own, 0o700)
        os.symlink(own, link)
        with open(plain, "w", encoding="utf-8"):
            pass
        self.refused(link, "it is a symbolic link")
        self.refused(plain, "it is not a directory")
        for mode in 0o777, 0o1777, 0o755, 0o770:
            os.chmod(own, mode)
            self.refused(own, "its mode is not 700")
            self.assertEqual(os.stat(own).st_mode & 0o7777, mode)  # what is there is left as it is
        os.chmod(own, 0o2700)  # below a directory that passes its group on
        self.assertEqual(self.make(own), (0, ""))
        if os.geteuid() == 0:
            os.chown(own, 65534, 65534)
            self.refused(own, "it belongs to another user")
        else:
            self.refused("/", "it belongs to another user")

    def test_what_cannot_be_made_is_one_line_per_node(self):
        plain = os.path.join(self.folder, "plain")
        with open(plain, "w", encoding="utf-8"):
            pass
        lost, good = os.path.join(self.folder, "no", "parent"), os.path.join(self.folder, "good")
        line = f"hpclaunch: rank 0 on {HOST}: directory %s: %s\n"
        above = "its parent directory is missing (errno 2)"
        self.assertEqual(self.make(lost), (0, line % (lost, above)))
        self.assertEqual(self.make(lost, rank=1, local=1), (0, ""))
        self.assertEqual(self.make(plain + "/x"), (0, line % (plain + "/x", "a part of the path is not a directory (errno 20)")))
        self.assertEqual(self.make(lost, good, plain + "/x", "/no/such"), (0, line % (lost, above + ", and 2 more")))
        self.assertTrue(os.path.isdir(good))


class Quoted(unittest.TestCase):
    def test_words_that_a_launcher_would_have_read(self):
        entries = [b"HPCLAUNCH_PLAN=" + wire(":rank=R:layout=0*1:class=1"), b"R=0"]
        words = ("-q", "/usr/bin/printf", "<%s>", "a", "%:", "%%x", "%--map-by", "-q", "", "%")
        self.assertEqual(run(words, entries), (0, b"<a><:><%x><--map-by><-q><><>", ""))
        words = ("/usr/bin/printf", "<%s>", "%:", "-q")
        self.assertEqual(run(words, entries), (0, b"<%:><-q>", ""))

    def test_nothing_behind(self):
        self.assertEqual(run(("-q",), [b"HPCLAUNCH_PLAN=" + wire(":rank=R:layout=0*1:class=1"), b"R=0"])[0], 125)


class NamesInBraces(unittest.TestCase):
    PLAN = ":rank=R:layout=0*2:RANK=@.rank:NODE_RANK=@.node:MASTER_ADDR=a%3Ab:class=2:LOCAL_RANK=@.local-rank"

    def test_what_only_the_rank_knows(self):
        words = ["--at={MASTER_ADDR}:{MASTER_PORT}", "{RANK}/{LOCAL_RANK}/{NODE_RANK}", "{{RANK}}", "${RANK}", '{"a": {RANK}}', "{RANK", "{x}"]
        done = run_plan(self.PLAN, "R=3", "MASTER_PORT=29500", arguments=("/usr/bin/printf", "<%s>", *words))
        wanted = ["--at=a:b:29500", "3/1/1", "{RANK}", "${RANK}", '{"a": {RANK}}', "{RANK", "{x}"]
        self.assertEqual(done, (0, "".join("<%s>" % word for word in wanted).encode(), ""))

    def test_the_program_itself_has_its_name(self):
        status, _, err = run_plan(self.PLAN, "R=0", arguments=("/no/{RANK}",))
        self.assertEqual((status, "/no/{RANK}: no such file" in err), (127, True), err)

    def test_a_name_without_a_value(self):
        said = "hpclaunch: rank %d on " + HOST + ": {MASTER_PORT} in an argument: MASTER_PORT is not set; double the braces for the text itself\n"
        words = ("/bin/echo", "{MASTER_PORT}")
        self.assertEqual(run_plan(self.PLAN, "R=0", arguments=words), (125, b"", said % 0))
        self.assertEqual(run_plan(self.PLAN, "R=1", arguments=words), (125, b"", ""))

    def test_more_than_there_is_room_for(self):
        status, out, err = run_plan(self.PLAN, "R=0", arguments=("/bin/echo", "{RANK}" + "x" * 65533, "{RANK}"))
        self.assertEqual((status, out, "longer than 65536 bytes" in err), (125, b"", True), err)
        status, out, err = run_plan(self.PLAN, "R=0", arguments=("/bin/echo", "x" * 65536, "{RANK}"))
        self.assertEqual((status, len(out), err), (0, 65536 + 3, ""))


class Faults(unittest.TestCase):
    PLAN = ":rank=R:local=L:layout=0*2:class=2:A=1/2"

    def check(self, entries, status, err, arguments=("/bin/true",)):
        self.assertEqual(run(arguments, entries), (status, b"", err))

    def check_plan(self, err, *entries, fields=PLAN, status=125, **options):
        self.check([b"HPCLAUNCH_PLAN=" + wire(fields), *entries], status, err, **options)

    def test_usage(self):
        usage = "hpclaunch-shim: usage: hpclaunch-shim /ABSOLUTE/PROGRAM [ARG...]\n"
        for arguments in (), ("",), ("true",), ("./true",), ("--help",):
            self.check([], 125, usage, arguments=arguments)
            self.check(["PMI_RANK=0"], 125, usage, arguments=arguments)
            self.check(["PMI_RANK=1"], 125, "", arguments=arguments)

    def test_no_plan(self):
        line = "hpclaunch-shim: HPCLAUNCH_PLAN is not set: the launcher did not pass it on\n"
        self.check([], 125, line)
        self.check(["R=1"], 125, line)
        self.check(["SLURM_PROCID=0"], 125, line)
        self.check(["SLURM_PROCID=7"], 125, "")

    def test_a_damaged_plan_is_reported_by_rank_0_alone(self):
        damaged = b"HPCLAUNCH_PLAN=" + wire(self.PLAN)[:-3]
        said = [run(["/bin/true"], [damaged, f"R={rank}"]) for rank in range(8)]
        self.assertEqual({status for status, _, _ in said}, {125})
        self.assertEqual("".join(err for _, _, err in said),
                         "hpclaunch-shim: HPCLAUNCH_PLAN: cut short or changed on its way: "
                         "'hl2.%s:rank=R:local=L:layout=0*2:class=2:A='\n" % mark(self.PLAN, 5))
        for name in "PMI_RANK", "PALS_RANKID", "PMIX_RANK":  # cut before rank=
            self.check([b"HPCLAUNCH_PLAN=hl2.abcde:ra", f"{name}=1"], 125, "")

    def test_what_and_where(self):
        self.check_plan("hpclaunch-shim: HPCLAUNCH_PLAN: unknown directive: 'colour=red'\n",
                        "R=0", fields=":rank=R:colour=red:layout=0*1:class=1")
        self.check([b"HPCLAUNCH_PLAN=hl1.19:rank=R:layout=0*1", "R=0"], 125,
                   "hpclaunch-shim: HPCLAUNCH_PLAN: unknown version: 'hl1.19:rank=R:layout=0*1'\n")
        self.check_plan("hpclaunch-shim: R is not set: this is not the planned launcher\n")
        self.check_plan("hpclaunch-shim: R is not a rank: '-1'\n", "R=-1")
        self.check_plan("hpclaunch-shim: R is not a rank: '4294967296'\n", "R=4294967296")
        self.check_plan(f"hpclaunch: rank 0 on {HOST}: L is not set: "
                        "this is not the planned launcher\n", "R=0")
        self.check_plan(f"hpclaunch: rank 0 on {HOST}: L is not a local rank: 'x'\n", "R=0", "L=x")

    def test_more_ranks_than_planned(self):
        line = (f"hpclaunch: rank %d on {HOST}: the plan has 4 ranks, "
                "the launcher started more\n")
        self.check_plan(line % 4, "R=4", "L=1")
        self.check_plan("", "R=5", "L=1")
        self.check_plan(line % 6, "R=6", "L=0")
        self.check_plan(line % 7, "R=7")

    def test_the_launcher_deals_the_ranks_otherwise(self):
        # Rank 1 of a cyclic launcher is the first rank of the second node.
        self.check_plan(f"hpclaunch: rank 1 on {HOST}: L is 0, planned 1: "
                        "the launcher does not distribute the ranks in blocks\n", "R=1", "L=0")

    def test_one_line_whatever_the_bytes(self):
        status, _, err = run(["/bin/true"], ["HPCLAUNCH_PLAN=hl2.3:\n\x1b[31m\n" + "x" * 5000])
        self.assertEqual(status, 125)
        self.assertRegex(err, r"\A[ -~]{1020}\.\.\.\n\Z")

    def test_the_program_cannot_be_started(self):
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "plain")
            with open(plain, "w", encoding="utf-8") as file:
                file.write("neither a binary nor a script\n")
            lost = os.path.join(folder, "lost")
            with open(lost, "w", encoding="utf-8") as file:
                file.write("#!/nowhere/interpreter\n")
            os.chmod(lost, 0o755)
            absent = os.path.join(folder, "absent\n")
            for program, status, why in (
                    (absent, 127, "no such file, or its interpreter is missing (errno 2)"),
                    (lost, 127, "no such file, or its interpreter is missing (errno 2)"),
                    (folder, 126, "permission denied, or not a file (errno 13)"),
                    (plain + "/x", 126, "a part of the path is not a directory (errno 20)"),
                    (plain, 126, "permission denied, or not a file (errno 13)")):
                shown = program.replace("\n", "?")
                line = f"hpclaunch: rank 2 on {HOST}: {shown}: {why}\n"
                self.check_plan(line, "R=2", "L=0", status=status, arguments=[program])
                self.check_plan("", "R=3", "L=1", status=status, arguments=[program])
            os.chmod(plain, 0o755)
            self.check_plan(f"hpclaunch: rank 0 on {HOST}: {plain}: "
                            "not a program for this machine, and no #! line (errno 8)\n",
                            "R=0", "L=0", status=126, arguments=[plain])

    def test_stderr_may_be_closed(self):
        status = subprocess.run([SHIM, "relative"], stderr=None, env={}, check=False,
                                preexec_fn=lambda: os.close(2)).returncode
        self.assertEqual(status, 125)


class Damage(unittest.TestCase):
    """Mutated plans through the program itself: a line and 125, or the program; never a signal."""

    def test_mutations(self):
        source = random.Random(20260116)
        good = wire(f":rank=R:local=L:verify=warn:core=0:layout=0*2/1*1:RANK=@.rank:class=2:A=x/%41"
                    f":cpus={ALLOWED[0]}/{ALLOWED[-1]}:class=1:expect={ALLOWED[0]}")
        seen = set()
        for _ in range(400):
            plan = bytearray(good[good.index(b":"):])
            for _ in range(source.randrange(4)):
                at = source.randrange(len(plan))
                choice = source.randrange(4)
                if choice == 0:
                    plan[at] = source.randrange(1, 256)
                elif choice == 1:
                    del plan[at:at + source.randrange(1, 6)]
                elif choice == 2:
                    plan[at:at] = source.choice([b":", b"/", b"%", b"@.rank", b"99999999999", b"="])
                else:
                    plan[at:at] = plan[source.randrange(len(plan)):][:20]
            plan = bytes(plan).replace(b"\0", b"")
            entries = [b"HPCLAUNCH_PLAN=" + (wire(plan) if source.randrange(4) else good[:9] + plan),
                       b"R=%d" % source.choice([0] * 12 + [1, 4, 5]), b"L=%d" % source.choice([0, 0, 1])]
            if source.randrange(8) == 0:
                entries = entries[source.randrange(3):]
            status, _, err = run(["/bin/sh", "-c", "exit 42"], entries)
            self.assertIn(status, (42, 125), (entries, err))
            self.assertRegex(err, r"\A([ -~]+\n)?\Z", entries)
            seen.add((status, err != ""))
        # All four: silent start, start with a remark, stop with a line, stop that rank 0 reports.
        self.assertTrue({(42, False), (125, True), (125, False)} <= seen, seen)


@unittest.skipIf(LIBC == "checked", "a sanitized build is not static")
class SystemCalls(unittest.TestCase):
    PLAN = f":rank=R:layout=0*1:RANK=@.rank:class=1:cpus={ALLOWED[0]}"

    def trace(self, calls, program, plan=PLAN):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "trace")
            modules = ":".join(f"/opt/module{i}/lib" for i in range(30))
            done = subprocess.run(
                ["strace", "-qq", "-e", f"trace={calls}", "-e", "signal=none", "-o", file, SHIM, program],
                env={"LD_LIBRARY_PATH": modules, "R": "0", "HPCLAUNCH_PLAN": wire(plan)},
                stderr=subprocess.PIPE, check=False)
            with open(file, encoding="utf-8") as lines:
                return done.returncode, [line for line in lines if re.match(r"\w+\(", line)]

    @by_kernel
    def test_no_files(self):
        status, calls = self.trace("%file,%network", "/opt/none")
        self.assertEqual(status, 127)
        names = [line.split("(")[0] for line in calls]
        want = ["execve", "readlink", "execve"] if LIBC == "glibc" else ["execve", "execve"]
        # Where the kernel has no readlink, glibc's own look at itself is a readlinkat.
        self.assertEqual([name.replace("readlinkat", "readlink") for name in names], want, calls)
        if LIBC == "glibc":
            self.assertIn('"/proc/self/exe"', calls[1])

    @by_kernel
    def test_no_files_but_the_directories(self):
        with tempfile.TemporaryDirectory() as there:  # a look at the one that is there already
            items = (there + "/" + there + "-new").replace(there, there.replace("/", "%2F"))
            self.addCleanup(os.rmdir, there + "-new")
            status, calls = self.trace("%file,%network", "/opt/none", ":rank=R:core=0:dir=" + items + ":layout=0*1:class=1")
        self.assertEqual(status, 127)
        names = [line.split("(")[0].replace("mkdirat", "mkdir").replace("newfstatat", "stat").replace("lstat", "stat") for line in calls]
        self.assertEqual([name for name in names if not name.startswith("readlink")], ["execve", "mkdir", "stat", "mkdir", "execve"], calls)

    def test_one_write(self):
        status, calls = self.trace("write,writev,sendmsg,sendto", "/opt/none")
        self.assertEqual((status, len(calls)), (127, 1), calls)
        self.assertTrue(calls[0].startswith("write(2, \"hpclaunch: rank 0 on "), calls)

    @by_kernel
    def test_the_monitor_may_be_read_through(self):
        """Where Yama's ptrace_scope is 1: what the monitor starts may read the program, for one call of each rank."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "trace")
            for stay, want in (":stay=exit", 1), ("", 0):
                subprocess.run(["strace", "-f", "-qq", "-e", "trace=prctl", "-e", "signal=none", "-o", file, SHIM, "/bin/true"],
                               env={"R": "0", "HPCLAUNCH_PLAN": wire(f":rank=R{stay}:layout=0*1:class=1")}, check=True)
                with open(file, encoding="utf-8") as lines:
                    calls = [line for line in lines if "PR_SET_PTRACER" in line]
                self.assertEqual(len(calls), want, calls)

    def test_static(self):
        headers = subprocess.run(["readelf", "-lW", SHIM], stdout=subprocess.PIPE, check=True).stdout
        self.assertIn(b"LOAD", headers)
        self.assertNotIn(b"INTERP", headers)
        self.assertNotIn(b"DYNAMIC", headers)
        if EMULATED:  # kernels for aarch64 have pages of 4 to 64 KiB
            self.assertEqual({line.split()[-1] for line in headers.splitlines() if b" LOAD " in line}, {b"0x10000"})


class Surroundings(unittest.TestCase):
    """What the rank finds around it, against what was planned."""
    OWN = HOST.split(".")[0].lower()

    def environment(self, verify, rank, *entries):
        return run_plan(f":rank=R:verify={verify}:layout=0*1:same=AA*{mark('1', 5)}/BB*{mark('', 5)}:absent=DD/EE:class=2:CC=x", *entries, f"R={rank}")

    def test_the_environment_as_planned(self):
        self.assertEqual(self.environment("strict", 0, "AA=1", "BB=", "CC=y")[::2], (0, ""))

    def test_the_environment_changed_on_the_way(self):
        line = "hpclaunch: rank 0 on %s: environment differs from the plan: AA (changed by the launcher or the job), BB (not passed on), DD (set again; removed)\n" % HOST
        entries = ("AA=2", "DD=secret", "CC=y")
        status, out, err = self.environment("warn", 0, *entries)
        self.assertEqual((status, err), (0, line))
        self.assertEqual(sorted(out.split(b"\0"))[1:], [b"AA=2", b"CC=x", b"R=0"])
        self.assertEqual(self.environment("warn", 1, *entries)[::2], (0, ""))  # the node's first rank has said it
        self.assertEqual(self.environment("strict", 0, *entries)[::2], (125, line))
        self.assertEqual(self.environment("strict", 1, *entries)[::2], (125, line.replace("rank 0", "rank 1")))  # later, if it still lives
        status, out, err = self.environment("off", 0, *entries)
        self.assertEqual((status, err), (0, ""))
        self.assertNotIn(b"DD", out)

    def host(self, verify, marks, rank=0):
        return run_plan(f":rank=R:verify={verify}:hosts={marks}:layout=0*2:class=2", f"R={rank}", arguments=("/bin/true",))[::2]

    def test_the_host_of_the_plan(self):
        own, other = mark(self.OWN, 3), mark("another", 3)
        self.assertEqual(self.host("strict", own + other), (0, ""))
        self.assertEqual(self.host("strict", other + other), (0, ""))  # it may have a name of its own
        self.assertEqual(self.host("strict", "..." + own), (0, ""))
        line = "hpclaunch: rank 0 on %s: this host is node 1 of the plan, the rank belongs to node 0: the launcher uses another node order\n" % HOST
        self.assertEqual(self.host("warn", other + own), (0, line))
        self.assertEqual(self.host("warn", other + own, 1), (0, ""))
        self.assertEqual(self.host("strict", other + own), (125, line))
        self.assertEqual(self.host("strict", other + own, 1), (125, line.replace("rank 0", "rank 1")))
        self.assertEqual(self.host("off", other + own), (0, ""))

    def test_the_host_of_a_large_plan(self):
        own, other = mark(self.OWN, 1), "-" if mark(self.OWN, 1) != "-" else "_"
        def host(verify, marks, rank=0):
            return run_plan(f":rank=R:verify={verify}:order={marks}:layout=0*2:class=2", f"R={rank}", arguments=("/bin/true",))[::2]
        line = "hpclaunch: rank 0 on %s: this host is not node 0 of the plan: the launcher uses another node order\n" % HOST
        self.assertEqual(host("strict", own + other), (0, ""))
        self.assertEqual(host("strict", "." + other), (0, ""))
        self.assertEqual(host("warn", other + own), (0, line))
        self.assertEqual(host("strict", other + own), (125, line))
        self.assertEqual(host("off", other + own), (0, ""))

    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("", 0))
            taken.listen()
            port = taken.getsockname()[1]
            plan = f":port={port}:layout=0*1:class=2:A=x"
            line = "hpclaunch: rank 0 on %s: MASTER_PORT %d is in use on this host; choose another port with --master-port\n" % (HOST, port)
            for verify, want in ("warn", (0, line)), ("strict", (125, line)), ("off", (0, "")):
                self.assertEqual(run_plan(f":rank=R:verify={verify}" + plan, "R=0", arguments=("/bin/true",))[::2], want)
            self.assertEqual(run_plan(":rank=R:verify=strict" + plan, "R=1", arguments=("/bin/true",))[::2], (0, ""))
        self.assertEqual(run_plan(":rank=R:verify=strict" + plan, "R=0", arguments=("/bin/true",))[::2], (0, ""))

    @by_kernel
    def test_a_memory_policy_from_outside(self):
        bind, preferred = 2, 1
        for mode, word in (preferred, "preferred"), (bind, "bind"):
            set_policy = {"x86_64": 238, "aarch64": 237}[os.uname().machine]
            node = ctypes.c_ulong(1)
            with self.subTest(word):
                def policy(mode=mode, node=node):
                    if LIBRARY.syscall(set_policy, mode, ctypes.byref(node), 64) != 0:
                        raise OSError(ctypes.get_errno(), "set_mempolicy")
                line = "hpclaunch: rank 0 on %s: memory policy is %s of NUMA nodes 0, planned is the kernel's own (first touch)\n" % (HOST, word)
                for verify, want in ("warn", (0, line)), ("strict", (125, line)), ("off", (0, "")):
                    done = subprocess.run([SHIM, "/bin/true"], preexec_fn=policy, stderr=subprocess.PIPE,
                                          env={"R": "0", "HPCLAUNCH_PLAN": wire(f":rank=R:verify={verify}:layout=0*1:class=1").decode()})
                    self.assertEqual((done.returncode, done.stderr.decode()), want)


class Parts(unittest.TestCase):
    """CPUs that were counted only."""

    def bound(self, fields, rank=0, verify="warn"):
        status, out, err = run_plan(f":rank=R:verify={verify}:layout=0*1:class=2:{fields}", f"R={rank}", arguments=GREP)
        return status, bound(out) if out else "", err

    def test_the_nth_of_those_granted(self):
        last = len(ALLOWED) - 1
        self.assertEqual(self.bound(f"granted={last + 1}:part=0-0/{last}-{last}"), (0, str(ALLOWED[0]), ""))
        self.assertEqual(self.bound(f"granted={last + 1}:part=0-0/{last}-{last}", 1), (0, str(ALLOWED[-1]), ""))
        self.assertEqual(self.bound(f"part=0-{last}"), (0, to_list(ALLOWED), ""))

    def test_another_number_than_was_granted(self):
        have = len(ALLOWED)
        line = f"hpclaunch: rank 0 on {HOST}: the job was granted {have + 1} CPUs of this node, the rank may use {have} ({to_list(ALLOWED)}): not bound\n"
        self.assertEqual(self.bound(f"granted={have + 1}:part=0-0/1-1"), (0, to_list(ALLOWED), line))
        self.assertEqual(self.bound(f"granted={have + 1}:part=0-0/1-1", verify="strict"), (125, "", line))
        self.assertEqual(self.bound(f"granted={have + 1}:part=0-0/1-1", verify="off"), (0, to_list(ALLOWED), ""))
        line = f"hpclaunch: rank 0 on {HOST}: planned CPUs 1 to {have + 1} of the granted ones, the rank has {have} ({to_list(ALLOWED)}): not bound\n"
        self.assertEqual(self.bound(f"part=0-{have}"), (0, to_list(ALLOWED), line))

    def test_cores_are_counted_in_the_order_of_the_machine(self):
        one = f"counted=0*1*1*{ALLOWED[-1] + 1}*1"  # a core with all hardware threads
        self.assertEqual(self.bound(f"{one}:granted=1:part=0-0"), (0, to_list(ALLOWED), ""))
        line = f"hpclaunch: rank 0 on {HOST}: the job was granted 2 cores of this node, the rank may use 1 ({to_list(ALLOWED)}): not bound\n"
        self.assertEqual(self.bound(f"{one}:granted=2:part=0-0"), (0, to_list(ALLOWED), line))
        back = "counted=" + "/".join(f"{cpu}*1*1*1*1" for cpu in reversed(ALLOWED))
        self.assertEqual(self.bound(f"{back}:granted={len(ALLOWED)}:part=0-0"), (0, str(ALLOWED[-1]), ""))

    def test_names_hold_where_all_of_them_are_granted(self):
        have = len(ALLOWED)
        self.assertEqual(self.bound(f"cpus={ALLOWED[0]}/{ALLOWED[-1]}:granted={have}:part=0-0/0-0", 1), (0, str(ALLOWED[-1]), ""))
        self.assertEqual(self.bound(f"cpus={ALLOWED[-1]}/8000:granted={have}:part=0-0"), (0, str(ALLOWED[0]), ""))


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def state(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


class Staying(unittest.TestCase):
    """Beside the program until that has ended."""

    def stay(self, script, *entries, how="exit", more="", rank=0):
        return run_plan(f":rank=R:stay={how}{more}:layout=0*1:class=4", f"R={rank}", *entries, arguments=("/bin/sh", "-c", script))

    def test_status_output_and_input_are_the_programs(self):
        self.assertEqual(self.stay("echo out; echo err >&2; env"), (0, b"out\nR=0\nPWD=%s\n" % os.getcwd().encode(), "err\n"))
        status, _, err = self.stay("exit 7", rank=3)
        self.assertEqual(status, 7)
        self.assertRegex(err, r"^hpclaunch: rank 3 on \S+: exit status 7 \(pid \d+\)\n$")
        status, _, err = self.stay("kill -SEGV $$")
        self.assertEqual(status, -signal.SIGSEGV)
        self.assertRegex(err, r"^hpclaunch: rank 0 on \S+: killed by signal 11 \(pid \d+\)\n$")
        for name in "TERM", "KILL", "INT", "HUP":  # whoever sends these knows
            self.assertEqual(self.stay("kill -%s $$" % name)[::2], (-getattr(signal, "SIG" + name), ""))

    def test_a_log_has_all_output_and_so_has_the_launcher(self):
        with tempfile.TemporaryDirectory() as folder:
            more = ":log=%s" % (folder + "/logs").replace("/", "%2F")
            for rank in range(2):
                self.assertEqual(self.stay("echo out; echo err >&2; cat", more=more, rank=rank)[1:], (b"out\n", "err\n"))
            for name in "rank-0.log", "rank-1.log":
                with open(os.path.join(folder, "logs", name), encoding="ascii") as file:
                    self.assertEqual(sorted(file), ["err\n", "out\n"])
            status, out, err = self.stay("echo out", more=":log=%2Fdev%2Fnull")
            self.assertEqual((status, out), (0, b"out\n"))
            self.assertIn("cannot open the log file /dev/null/rank-0.log (errno 20)", err)

    def test_a_log_that_cannot_be_written(self):
        """Is said once; the program and the launcher's copy of its output continue."""
        with tempfile.TemporaryDirectory() as folder:
            os.symlink("/dev/full", folder + "/rank-0.log")
            more = ":log=%s" % folder.replace("/", "%2F")
            script = "echo one; sleep 0.2; echo two; sleep 0.2; echo err >&2"
            status, out, err = self.stay(script, more=more)
            self.assertEqual((status, out), (0, b"one\ntwo\n"))
            self.assertRegex(err, r"^hpclaunch: rank 0 on \S+: cannot write the log file \S+ \(errno 28\)\nerr\n$")

    def test_a_failure_kills_the_group(self):
        plan = wire(":rank=R:stay=kill:layout=0*1:class=4").decode()
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "pid")
            done = subprocess.run([SHIM, "/bin/sh", "-c", "sleep 1000 & echo $! > %s; exit 7" % file], env={"R": "0", "HPCLAUNCH_PLAN": plan, "PATH": os.environ["PATH"]},
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, timeout=LIMIT)
            self.assertEqual(done.returncode, -signal.SIGKILL)
            self.assertIn(b"exit status 7", done.stderr)
            with open(file, encoding="ascii") as text:
                pid = int(text.read())
            deadline = time.monotonic() + LIMIT
            while os.path.exists("/proc/%d/exe" % pid) and alive(pid):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
        server = channel.Server(releases=True)
        self.addCleanup(server.close)
        for program, ask, status in ("true", {}, 0), ("false", {"HPCLAUNCH_CHANNEL": server.variable}, 1):  # hpclaunch ends the others itself
            done = subprocess.run([SHIM, "/bin/" + program], env={"R": "0", "HPCLAUNCH_PLAN": plan, **ask}, start_new_session=True, timeout=LIMIT, stderr=subprocess.DEVNULL)
            self.assertEqual(done.returncode, status)

    def start(self, more, script, **extra):
        plan = wire(":rank=R:stay=exit%s:layout=0*1:class=4" % more).decode()
        return subprocess.Popen([SHIM, "/bin/sh", "-c", script], env={"R": "0", "HPCLAUNCH_PLAN": plan, "PATH": os.environ["PATH"], **extra},
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    TRAP = "trap 'echo got; exit 3' USR1; echo ready; while :; do sleep 0.05; done"

    def test_signals_reach_the_program_once(self):
        child = self.start("", self.TRAP)  # the launcher signals the group
        child.stdout.readline()
        os.killpg(child.pid, signal.SIGUSR1)
        self.assertEqual(child.communicate(timeout=LIMIT)[0], b"got\n")
        self.assertEqual(child.returncode, 3)

    def test_a_program_in_a_group_of_its_own_hears_signals(self):
        # timeout(1), which does so, loses a signal that comes before it knows its child's pid.
        leave = "import os, sys; os.setpgid(0, 0); os.execv('/bin/sh', ['sh', '-c', sys.argv[1]])"
        child = self.start("", "exec %s -c \"%s\" \"%s\"" % (sys.executable, leave, self.TRAP.replace("USR1", "TERM")))
        self.assertEqual(child.stdout.readline(), b"ready\n")
        os.killpg(child.pid, signal.SIGTERM)
        self.assertEqual(child.communicate(timeout=LIMIT)[0], b"got\n")
        self.assertEqual(child.returncode, 3)

    def test_a_notice_in_time(self):
        now = int(time.time())
        for at in now - 100, now + 1:
            child = self.start(":notice=%d*%d" % (signal.SIGUSR1, at), self.TRAP)
            child.communicate(timeout=LIMIT)
            self.assertIn(child.returncode, (3, -signal.SIGUSR1))  # the latter: before the shell had set its trap
            self.assertGreaterEqual(time.time(), at)

    def test_the_program_dies_with_the_shim(self):
        child = self.start("", "echo $$; while :; do sleep 0.05; done")
        program = int(child.stdout.readline())
        child.kill()
        child.communicate(timeout=LIMIT)
        deadline = time.monotonic() + LIMIT
        while alive(program):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_a_rank_dies_with_its_parent(self):
        for stay in "", ":stay=exit":
            plan = wire(":rank=R%s:end=with-parent:layout=0*1:class=4" % stay).decode()
            parent = subprocess.Popen(["/bin/sh", "-c", "setsid %s /bin/sh -c 'echo $$; while :; do sleep 0.05; done' & wait" % SHIM], stdout=subprocess.PIPE,
                                      env={"R": "0", "HPCLAUNCH_PLAN": plan, "PATH": os.environ["PATH"]})
            program = int(parent.stdout.readline())
            parent.kill()
            parent.communicate(timeout=LIMIT)
            deadline = time.monotonic() + LIMIT
            while alive(program):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)

    def test_no_copy_of_a_pipe_is_kept(self):
        """A launcher that waits for the end of a rank's output must not wait for the shim."""
        read_end, write_end = os.pipe()
        plan = wire(":rank=R:stay=exit:layout=0*1:class=4").decode()
        child = subprocess.Popen([SHIM, "/bin/sh", "-c", "exec %d>&-; exec >&-; echo closed >&2; read line" % write_end], pass_fds=[write_end], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"R": "0", "HPCLAUNCH_PLAN": plan, "PATH": os.environ["PATH"]})
        os.close(write_end)
        self.assertEqual(child.stderr.readline(), b"closed\n")
        self.assertEqual(child.stdout.read(), b"")
        self.assertEqual(os.read(read_end, 1), b"")
        os.close(read_end)
        child.communicate(b"x\n", timeout=LIMIT)
        self.assertEqual(child.returncode, 0)

    def test_closed_files(self):
        for fd in 0, 1, 2:
            done = subprocess.run(["/bin/sh", "-c", "exec %d>&-; exec %s /bin/sh -c 'exit 4'" % (fd, SHIM)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                  env={"R": "0", "HPCLAUNCH_PLAN": wire(":rank=R:stay=exit:layout=0*1:class=4").decode()}, timeout=LIMIT)
            self.assertEqual(done.returncode, 4)

    def test_signals_are_forwarded_with_closed_stdin(self):
        """The descriptor of signals would be 0, which is closed before the monitor waits."""
        script = "exec 0>&-; exec %s /usr/bin/setsid /bin/sh -c '%s'" % (SHIM, self.TRAP.replace("'", '"'))
        child = subprocess.Popen(["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env={"R": "0", "HPCLAUNCH_PLAN": wire(":rank=R:stay=exit:layout=0*1:class=4").decode(), "PATH": os.environ["PATH"]})
        self.assertEqual(child.stdout.readline(), b"ready\n")
        child.send_signal(signal.SIGUSR1)
        out, _ = child.communicate(timeout=LIMIT)
        self.assertEqual((child.returncode, out), (3, b"got\n"))


class Supervised(unittest.TestCase):
    """The monitor's end of the channel to hpclaunch."""

    WAIT = "echo $$; exec sleep 1000"
    # Python hears each of two signals that come shortly after one another.
    COUNT = ("import os, signal, sys\n"
             "signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'got\\n'))\n"
             "signal.signal(signal.SIGUSR1, lambda *_: os._exit(3))\n"
             "os.write(1, b'ready\\n')\n"
             "while True:\n"
             "    signal.pause()\n")

    def setUp(self):
        self.server = channel.Server()
        self.children = []

    def tearDown(self):
        self.server.close()
        for child in self.children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.communicate(timeout=LIMIT)

    def use(self, **options):
        self.server.close()
        self.server = channel.Server(**options)

    def start(self, script, rank=0, more="", node="", arguments=None, pass_fds=()):
        """As the leader of its group, with the channel to the server."""
        plan = wire(":rank=R:stay=exit%s:layout=0*1:class=16%s" % (more, node)).decode()
        env = {"R": str(rank), "HPCLAUNCH_PLAN": plan, "PATH": os.environ["PATH"], "HPCLAUNCH_CHANNEL": self.server.variable}
        child = subprocess.Popen([SHIM, *(arguments or ("/bin/sh", "-c", script))], env=env, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, pass_fds=pass_fds)
        self.children.append(child)
        return child

    def begin(self, script, rank=0, **more):
        """The child, and its `begun`."""
        child = self.start(script, rank, **more)
        return child, self.server.next(channel.BEGUN, rank)

    def ready(self, child):
        self.assertEqual(child.stdout.readline(), b"ready\n")

    def count(self, rank=0):
        child, begun = self.begin(None, rank, arguments=(sys.executable, "-c", self.COUNT))
        self.ready(child)
        return child, begun

    def release(self, child, rank=0):
        """The end of the shim: status, stdout, stderr."""
        self.server.send(channel.RELEASE, rank)
        return self.finish(child)

    def finish(self, child):
        out, err = child.communicate(timeout=LIMIT)
        return child.returncode, out, without_qemu(err.decode())

    def ended(self, rank=0):
        return self.server.next(channel.ENDED, rank)

    def wait_until(self, what):
        deadline = time.monotonic() + LIMIT
        while not what():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    # ---- what is told ----

    def test_beginning_and_end(self):
        child, begun = self.begin("echo $$; echo err >&2; exit 9", rank=2)
        end = self.ended(2)
        status, out, err = self.release(child, 2)
        self.assertEqual((status, err), (9, "err\n"))
        self.assertEqual((begun.host, begun.pid, end.pid), (HOST, int(out), int(out)))
        self.assertEqual((end.by_signal, end.status, end.core, end.sent, end.tail), (0, 9, 0, 0, b"err\n"))
        self.assertTrue(100 < end.peak_kib < 1000000, end)
        self.assertEqual(end.oom_kills, 0)
        self.assertEqual((self.server.nodes, self.server.rest()), ([0], []))

    def test_killed_by_a_signal(self):
        child, _ = self.begin("ulimit -c 0; kill -SEGV $$")
        end = self.ended()
        self.assertEqual((end.by_signal, end.status, end.core, end.sent, end.tail), (1, signal.SIGSEGV, 0, 0, b""))
        self.assertEqual(self.release(child), (-signal.SIGSEGV, b"", ""))

    def test_the_last_16_kib_of_stderr(self):
        self.use(releases=True)
        for script, tail in (("echo x >&2", b""),  # it has not failed
                             ("echo out; printf 'Gr\\303\\266\\001' >&2; exit 1", b"Gr\xc3\xb6\x01"),
                             ("head -c 16384 /dev/zero | tr '\\0' y >&2; exit 1", b"y" * 16384),
                             ("printf start >&2; head -c 100000 /dev/zero | tr '\\0' y >&2; printf end >&2; exit 1", b"y" * 16381 + b"end")):
            child = self.start(script)
            self.assertTrue(self.finish(child)[2].endswith(tail.decode()))
            self.assertEqual(self.ended().tail, tail)

    def test_a_log_that_is_given_up(self):
        self.use(releases=True)
        with tempfile.TemporaryDirectory() as folder:
            os.symlink("/dev/full", folder + "/rank-00.log")
            for at, error in ((folder, errno.ENOSPC), ("/dev/null", errno.ENOTDIR)):
                child, _ = self.begin("echo out; echo err >&2", more=":log=" + at.replace("/", "%2F"))
                told = self.server.next(channel.LOG)
                self.assertEqual((told.rank, told.number, self.ended().status), (0, error, 0))
                self.assertEqual(self.finish(child), (0, b"out\n", "err\n"))  # hpclaunch prints the line

    def test_the_program_has_nothing_of_the_key(self):
        self.use(releases=True)
        key = self.server.variable.split(".")[2].encode()
        for arguments in (("/usr/bin/env", "-0"), ("/bin/cat", "/proc/self/cmdline"), ("/bin/ls", "/proc/self/fd")):
            child, _ = self.begin(None, arguments=arguments)
            self.ended()
            status, out, err = self.finish(child)
            self.assertEqual((status, err), (0, ""))
            self.assertNotIn(b"HPCLAUNCH", out)
            self.assertNotIn(key, out)
        self.assertLess(len(out.split()), 5 if not EMULATED else 9, out)  # 0, 1, 2 and that of ls
        status, out, _ = run_plan(":rank=R:layout=0*1:class=1", "R=0", "HPCLAUNCH_CHANNEL=" + self.server.variable)  # no monitor
        self.assertEqual((status, out), (0, b"R=0\0"))

    def test_what_stops_the_shim_itself(self):
        """Status and line are those of the rank's end."""
        for more, node, program, status, why in (("", "", "/opt/none", 127, "/opt/none: no such file"), ("", "", "/etc/passwd", 126, "permission denied"),
                                                 (":verify=strict", ":expect=8191", "/bin/true", 125, "planned 8191"),
                                                 (":local=L", "", "/bin/true", 125, "L is not set")):
            child, begun = self.begin(None, more=more, node=node, arguments=(program,))
            end = self.ended()
            self.assertEqual((end.pid, end.by_signal, end.status), (begun.pid, 0, status))
            self.assertIn(why, end.tail.decode())
            self.assertIsNone(child.poll())
            got, _, err = self.release(child)
            self.assertEqual((got, err.strip()), (status, end.tail.decode().strip()))

    # ---- its release ----

    def test_copies_of_pipes_are_kept_until_it_is_alone(self):
        """Their end would tell the launcher of the program's end, and it may kill all ranks then."""
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        child, _ = self.begin("exit 7", pass_fds=[write_end])
        os.close(write_end)
        self.ended()
        self.assertRaises(BlockingIOError, os.read, read_end, 1)
        self.server.close()
        os.set_blocking(read_end, True)
        self.assertEqual(os.read(read_end, 1), b"")
        os.close(read_end)
        self.assertEqual(self.finish(child)[0], 7)

    def test_it_stays_until_it_is_released(self):
        child, _ = self.begin("exit 7")
        self.assertEqual(self.ended().status, 7)
        self.server.send_raw(channel.frame(channel.RELEASE, 1))  # of another rank
        os.kill(child.pid, signal.SIGTERM)
        self.assertEqual(self.server.next(channel.SIGNALLED).number, signal.SIGTERM)  # so it is there
        self.assertEqual(self.release(child), (7, b"", ""))

    def test_alone_when_the_connection_ends(self):
        line = r"^hpclaunch: rank 0 on \S+: exit status 7 \(pid \d+\)\n$"
        child, _ = self.begin("echo ready; read line; exit 7")  # before the end of the program
        self.ready(child)
        self.server.close()
        out, err = child.communicate(b"x\n", timeout=LIMIT)
        self.assertEqual((child.returncode, out), (7, b""))
        self.assertRegex(err.decode(), line)
        self.use()
        child, _ = self.begin("exit 7")  # and after it
        self.ended()
        self.server.close()
        status, _, err = self.finish(child)
        self.assertEqual(status, 7)
        self.assertRegex(err, line)

    def check_alone(self):
        for want in 0, 7:
            status, out, err = self.finish(self.start("echo out; exit %d" % want))
            self.assertEqual((status, out), (want, b"out\n"))
            self.assertRegex(err, r"^hpclaunch: rank 0 on \S+: exit status 7 \(pid \d+\)\n$" if want else "^$")
        self.assertEqual(self.server.rest(), [])
        status, _, err = self.finish(self.start(None, arguments=("/opt/none",)))
        self.assertEqual(status, 127)
        self.assertIn("/opt/none: no such file", err)

    def test_alone_without_hpclaunch(self):
        self.server.close()
        self.check_alone()

    def test_alone_where_the_variable_is_damaged(self):
        good = self.server.variable
        words = good.split(".")
        for variable in ("", "1", good[:-1], good + ".", good + ".0A", good.replace("1.", "2.", 1), good[:-1] + "G", ".".join(words[:4]),
                         ".".join(words[:2] + [words[2][:-2]] + words[3:])):
            self.server.variable = variable
            self.assertEqual(self.finish(self.start("exit 3"))[0], 3, variable)
        self.assertEqual(self.server.connections, [])

    def test_alone_with_somebody_else(self):
        """Who does not have the key, or sends what no hpclaunch sends, learns nothing."""
        head = channel.HEAD
        for options in (dict(key=bytes(16)), dict(challenge=b"HTTP/1.1 400 Bad Request\r\n\r\n"), dict(challenge=head.pack(2**31, 1, channel.CHALLENGE, 0, -1)),
                        dict(challenge=head.pack(0, 1, channel.RELEASE, 0, 0)), dict(challenge=head.pack(32, 2, channel.CHALLENGE, 0, -1) + bytes(20)),
                        dict(challenge=channel.frame(channel.SIGNAL, -1, b"\x0f\0\0\0")), dict(challenge=channel.frame(channel.RELEASE, 0)),
                        dict(challenge=channel.frame(channel.WELCOME, -1, bytes(12)))):
            self.use(**options)
            self.check_alone()

    def test_alone_where_nobody_answers(self):
        self.use(speaks=False)
        status, _, err = self.finish(self.start("exit 7"))
        self.assertEqual(status, 7)
        self.assertIn("exit status 7", err)

    def test_alone_after_what_hpclaunch_does_not_send(self):
        for data in (b"\xff" * 64, channel.frame(channel.HELLO, -1, bytes(28)), channel.frame(channel.BEGUN, 0, bytes(68)),
                     channel.frame(channel.ENDED, 0, bytes(8 + 200)), channel.frame(channel.ENDED, 0, bytes(8 + 16384)), channel.frame(99, 0)):
            self.use()
            child, _ = self.begin("echo ready; read line; exit 7")
            self.ready(child)
            self.server.send_raw(data)
            self.wait_until(lambda: self.server.closed)  # by the monitor
            out, err = child.communicate(b"x\n", timeout=LIMIT)
            self.assertEqual((child.returncode, out), (7, b""))
            self.assertIn(b"exit status 7", err)

    def test_another_address(self):
        self.use(before=("127.0.0.2",), releases=True)  # nobody listens there
        child, _ = self.begin("exit 7")
        self.assertEqual((self.ended().status, self.finish(child)), (7, (7, b"", "")))

    def test_an_address_of_ipv6(self):
        with socket.socket(socket.AF_INET6) as one:
            try:
                one.bind(("::1", 0))
            except OSError as error:
                self.skipTest("no IPv6 on this machine: %s" % error)
        for before in ((), ("127.0.0.2",), ("::1", "127.0.0.2", "::1")):
            with self.subTest(before=before):
                self.use(here="::1", before=before, releases=True)
                child, _ = self.begin("exit 7")
                self.assertEqual((self.ended().status, self.finish(child)), (7, (7, b"", "")))

    # ---- signals ----

    def test_a_signal_for_one_rank_and_for_all(self):
        children = [self.count(rank)[0] for rank in range(3)]
        self.server.send(channel.SIGNAL, 1, signal.SIGTERM)
        self.assertEqual(children[1].stdout.readline(), b"got\n")
        self.server.send(channel.SIGNAL, 0, signal.SIGTERM)
        self.assertEqual(children[0].stdout.readline(), b"got\n")
        self.server.send(channel.SIGNAL, self.server.ALL, signal.SIGUSR1)
        ends = sorted((self.server.next(channel.ENDED) for _ in children), key=lambda end: end.rank)
        self.assertEqual([(end.rank, end.status, end.sent) for end in ends], [(0, 3, signal.SIGTERM), (1, 3, signal.SIGTERM), (2, 3, 0)])
        for rank in range(3):
            self.server.send(channel.RELEASE, rank)
        self.assertEqual([self.finish(child) for child in children], [(3, b"", "")] * 3)  # rank 2 has heard of none of them

    def test_a_signal_reaches_a_wrappers_program(self):
        child, _ = self.begin("%s -c \"%s\"; true" % (sys.executable, self.COUNT.replace("SIGUSR1", "SIGHUP")))
        self.ready(child)
        self.server.send(channel.SIGNAL, 0, signal.SIGTERM)
        self.assertEqual(child.stdout.readline(), b"got\n")
        self.assertEqual((self.ended().status, self.server.rest()), (signal.SIGTERM, []))  # of the shell; none came from outside
        os.killpg(child.pid, signal.SIGHUP)
        self.assertEqual(self.server.next(channel.SIGNALLED).number, signal.SIGHUP)
        self.assertEqual(self.release(child)[:2], (-signal.SIGTERM, b""))

    def test_a_signal_reaches_a_program_that_left_the_group(self):
        for leave in "os.setpgid(0, 0)", "os.setsid()":
            self.use()
            child, _ = self.begin(None, arguments=(sys.executable, "-c", "import os\n%s\n" % leave + self.COUNT))
            self.ready(child)
            self.server.send(channel.SIGNAL, 0, signal.SIGTERM)
            self.assertEqual(child.stdout.readline(), b"got\n")
            os.killpg(child.pid, signal.SIGTERM)  # and so does one of the launcher
            self.assertEqual(child.stdout.readline(), b"got\n")
            self.assertEqual(self.server.next(channel.SIGNALLED).number, signal.SIGTERM)
            self.server.send(channel.SIGNAL, 0, signal.SIGUSR1)
            self.assertEqual(self.ended().status, 3)
            self.assertEqual(self.release(child), (3, b"", ""))

    def test_a_signal_reaches_the_program_of_timeout(self):
        program = self.COUNT.replace("SIGUSR1", "SIGHUP")  # timeout(1) passes that one on
        child, _ = self.begin(None, arguments=(shutil.which("timeout"), "1000", sys.executable, "-c", program))
        self.ready(child)
        self.server.send(channel.SIGNAL, 0, signal.SIGTERM)
        self.assertEqual(child.stdout.readline(), b"got\n")
        self.server.send(channel.SIGNAL, 0, signal.SIGHUP)
        self.assertEqual(self.ended().sent, signal.SIGHUP)
        self.release(child)

    def test_a_signal_where_the_launcher_leads_the_group(self):
        """Only the program: the launcher has sent nothing."""
        plan = wire(":rank=R:stay=exit:layout=0*1:class=1").decode()
        env = {"R": "0", "HPCLAUNCH_PLAN": plan, "PATH": os.environ["PATH"], "HPCLAUNCH_CHANNEL": self.server.variable}
        child = subprocess.Popen(["/bin/sh", "-c", "trap 'echo launcher' TERM; \"$@\"; echo $?", "sh", SHIM, sys.executable, "-c", self.COUNT], env=env,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.children.append(child)
        self.server.next(channel.BEGUN)
        self.ready(child)
        self.server.send(channel.SIGNAL, 0, signal.SIGTERM)
        self.assertEqual(child.stdout.readline(), b"got\n")
        self.server.send(channel.SIGNAL, 0, signal.SIGUSR1)
        self.assertEqual(self.ended().status, 3)
        self.assertEqual(self.release(child), (0, b"3\n", ""))

    def test_a_signal_from_outside_is_told_and_delivered_once(self):
        child, _ = self.count()
        os.killpg(child.pid, signal.SIGTERM)
        told = self.server.next(channel.SIGNALLED)
        self.assertEqual((told.rank, told.number, child.stdout.readline()), (0, signal.SIGTERM, b"got\n"))
        self.server.send(channel.SIGNAL, 0, signal.SIGTERM)  # so that a second one would have been before this one
        self.assertEqual(child.stdout.readline(), b"got\n")
        self.server.send(channel.SIGNAL, 0, signal.SIGUSR1)
        end = self.ended()
        self.assertEqual((end.status, end.sent, self.server.rest()), (3, signal.SIGTERM, []))
        self.assertEqual(self.release(child), (3, b"", ""))

    def test_who_has_ended_it(self):
        """A signal to the group is somebody's; one to the program alone is not."""
        for to_group in True, False:
            child, begun = self.begin(self.WAIT)
            child.stdout.readline()
            if to_group:
                os.killpg(child.pid, signal.SIGTERM)
                self.assertEqual(self.server.next(channel.SIGNALLED).number, signal.SIGTERM)
            else:
                os.kill(begun.pid, signal.SIGTERM)
            end = self.ended()
            self.assertEqual((end.by_signal, end.status, end.sent), (1, signal.SIGTERM, signal.SIGTERM if to_group else 0))
            self.assertEqual(self.release(child)[0], -signal.SIGTERM)
        child, _ = self.begin("kill 0; sleep 1000")
        self.assertEqual(self.ended().sent, 0)
        self.release(child)

    def test_stop_and_continue(self):
        child, begun = self.begin(self.WAIT)
        child.stdout.readline()
        self.server.send(channel.SIGNAL, 0, signal.SIGSTOP)
        self.wait_until(lambda: state(begun.pid) == "T")
        self.server.send(channel.SIGNAL, 0, signal.SIGCONT)
        self.wait_until(lambda: state(begun.pid) != "T")
        self.server.send(channel.SIGNAL, 0, signal.SIGTERM)
        end = self.ended()
        self.assertEqual((end.by_signal, end.status, end.sent), (1, signal.SIGTERM, signal.SIGTERM))
        self.assertEqual(self.release(child)[0], -signal.SIGTERM)

    def test_kill(self):
        child, begun = self.begin("trap '' TERM; sleep 1000 & echo $!; wait; wait")
        other = int(child.stdout.readline())
        self.server.send(channel.SIGNAL, 0, signal.SIGKILL)
        end = self.ended()
        self.assertEqual((end.pid, end.by_signal, end.status, end.sent), (begun.pid, 1, signal.SIGKILL, signal.SIGKILL))
        self.assertEqual(self.release(child), (-signal.SIGKILL, b"", ""))
        self.wait_until(lambda: not alive(other))  # what the program has started goes with it

    # ---- several monitors of a node ----

    def test_one_connection_for_a_node(self):
        for count in 2, 5:
            self.use()
            children = [self.start("read line; exit %d" % rank, rank) for rank in range(count)]
            self.assertEqual([self.server.next(channel.BEGUN, rank).rank for rank in range(count)], list(range(count)))
            for child in children:
                child.stdin.close()
                child.stdin = None
            ends = [self.server.next(channel.ENDED) for _ in children]
            self.assertEqual({(end.rank, end.status) for end in ends}, {(rank, rank) for rank in range(count)})
            self.assertEqual((len(self.server.connections), self.server.nodes), (1, [0]))
            for rank in range(count):
                self.server.send(channel.RELEASE, rank)
            self.assertEqual([self.finish(child)[0] for child in children], list(range(count)))

    def test_the_first_one_stays_for_the_others(self):
        first, _ = self.begin("exit 1")
        second, _ = self.begin("read line; exit 2", rank=1)
        self.ended()
        self.server.send(channel.RELEASE, 0)
        third, _ = self.begin("exit 3", rank=2)
        self.assertEqual(self.ended(2).status, 3)
        self.assertEqual(self.release(third, 2)[0], 3)
        second.stdin.close()
        second.stdin = None
        self.assertEqual(self.ended(1).status, 2)
        self.assertEqual(self.release(second, 1)[0], 2)
        self.assertEqual(self.finish(first)[0], 1)
        self.assertEqual(len(self.server.connections), 1)

    def test_another_one_takes_the_place_of_the_first(self):
        first, begun = self.begin(self.WAIT)
        others = [self.begin(script, rank)[0] for rank, script in ((1, "exit 4"), (2, "read line; exit 5"), (3, "read line; exit 6"))]
        self.assertEqual(self.ended(1).status, 4)
        before = self.server.welcomed[0]
        os.kill(first.pid, signal.SIGKILL)
        self.wait_until(lambda: not alive(begun.pid))
        again = [self.server.next(channel.BEGUN, rank) for rank in (1, 2, 3)] + [self.ended(1)]
        self.assertEqual(again[-1].status, 4)
        self.assertEqual({frame.connection for frame in again}, {self.server.welcomed[-1]})
        self.assertEqual((len(self.server.connections), self.server.nodes), (2, [0, 0]))
        self.assertNotEqual(before, self.server.welcomed[-1])
        for child in others[1:]:
            child.stdin.close()
            child.stdin = None
        ends = [self.server.next(channel.ENDED) for _ in range(2)]
        self.assertEqual({(end.rank, end.status) for end in ends}, {(2, 5), (3, 6)})
        for rank in 1, 2, 3:
            self.server.send(channel.RELEASE, rank)
        self.assertEqual([self.finish(child)[0] for child in others], [4, 5, 6])

    def test_the_folder_of_stall_goes_with_the_last_rank(self):
        with tempfile.TemporaryDirectory(prefix="hpclaunch-stall-", dir="/tmp") as ours, tempfile.TemporaryDirectory(prefix="hpclaunch-other-", dir="/tmp") as other:
            more = ":dir=" + "/".join(path.replace("/", "%2F") for path in (other, ours))
            children = [self.begin(None, rank, arguments=("/bin/sh", "-c", 'echo x >"%s/pipe-$$"; echo ready; read x' % ours), more=more)[0]
                        for rank in range(2)]
            for child in children:
                self.ready(child)
            self.assertEqual(len(os.listdir(ours)), 2)
            for rank, left in (0, 2), (1, None):
                children[rank].stdin.close()
                children[rank].stdin = None
                self.ended(rank)
                self.assertEqual(os.path.isdir(ours) and len(os.listdir(ours)) or None, left)
            for rank in 1, 0:
                self.release(children[rank], rank)
            self.assertTrue(os.path.isdir(other))
            os.mkdir(ours)  # for its end

    def test_one_rank_asks_nccl(self):
        reader = os.path.join(os.path.dirname(SHIM), "hpclaunch-stacks")
        if not os.path.exists(reader):
            self.skipTest("no %s" % reader)
        with socket.socket() as ras:
            ras.bind(("127.0.0.1", 0))
            ras.listen(8)

            def serve():
                try:
                    while True:
                        connection = ras.accept()[0]
                        connection.sendall(b"SERVER PROTOCOL 2\nOK\nOK\nhere\n")
                        asked = b""
                        while b"verbose status" not in asked:
                            asked += connection.recv(4096) or b"verbose status"
                        connection.close()
                except OSError:
                    pass
            threading.Thread(target=serve, daemon=True).start()
            children = [self.begin(self.WAIT, rank)[0] for rank in range(2)]
            for number, asks in (1, 1), (2, 0):
                self.server.ask(number, ras_port=ras.getsockname()[1], ras_rank=asks)
                for rank in range(2):
                    text = b""
                    while True:
                        piece = self.server.next(channel.STACKS, rank)
                        text += piece.text
                        if piece.last:
                            break
                    self.assertIn(b"\nthread\t", text)
                    self.assertEqual(b"\nras\there" in text, rank == asks, text)
            ras.shutdown(socket.SHUT_RDWR)
        for rank in 1, 0:
            self.server.send(channel.SIGNAL, rank, signal.SIGTERM)
            self.ended(rank)
            self.release(children[rank], rank)

    def test_one_that_has_not_read_for_long_comes_back(self):
        """A stopped monitor: what it would miss is lost with its connection, so that hpclaunch says it again."""
        child, _ = self.begin(self.WAIT, 0)
        stopped, _ = self.begin(self.WAIT, 1)
        os.kill(stopped.pid, signal.SIGSTOP)
        self.wait_until(lambda: state(stopped.pid) == "T")
        for _ in range(4000):
            self.server.send(channel.SIGNAL, 1, signal.SIGWINCH)
        self.server.send(channel.SIGNAL, 0, signal.SIGTERM)
        self.assertEqual(self.ended(0).status, signal.SIGTERM)  # all of them have been passed on
        os.kill(stopped.pid, signal.SIGCONT)
        self.server.next(channel.BEGUN, 1)
        self.server.waiting.clear()  # it may have been gone before
        self.server.send(channel.SIGNAL, 1, signal.SIGTERM)
        self.assertEqual(self.ended(1).status, signal.SIGTERM)
        self.assertEqual(self.server.rest(), [])
        for rank, one in (1, stopped), (0, child):  # the first one stays for the others
            self.assertEqual(self.release(one, rank)[0], -signal.SIGTERM)

    def test_all_are_alone_when_the_connection_ends(self):
        children = [self.begin("read line; exit 7", rank)[0] for rank in range(3)]
        self.server.close()
        for child in children:
            _, err = child.communicate(b"\n", timeout=LIMIT)
            self.assertEqual(child.returncode, 7)
            self.assertIn(b"exit status 7", err)

    def test_long_ends_before_there_is_a_connection(self):
        """More than the first one can hold for the others: none of them is lost, nor its own."""
        self.use(speaks=False, before=("127.0.0.1",) * 3)
        script = "read line; head -c 20000 /dev/zero | tr '\\0' y >&2; exit 1"
        first = self.start(script, 0)
        self.wait_until(lambda: self.server.connections)
        others = [self.start(script, rank) for rank in range(1, 12)]
        readers = [threading.Thread(target=child.stderr.read) for child in [first] + others]
        for reader in readers:
            reader.start()
        for child in others + [first]:
            program = self.program_of(child)
            child.stdin.close()
            child.stdin = None
            self.wait_until(lambda: not os.path.exists("/proc/%d" % program))  # its end is known
        self.server.speaks.set()
        self.assertEqual({len(self.ended(rank).tail) for rank in range(12)}, {16384})
        for rank in range(12):
            self.server.send(channel.RELEASE, rank)
        for child, reader in zip([first] + others, readers):
            self.assertEqual(child.wait(timeout=LIMIT), 1)
            reader.join()

    def program_of(self, child):
        def programs():
            with open("/proc/%d/task/%d/children" % (child.pid, child.pid), encoding="ascii") as file:
                return file.read().split()
        self.wait_until(programs)
        return int(programs()[0])


class Report(unittest.TestCase):
    """verify=report: what differs from the plan, as JSON in lines of at most 1,000 bytes."""

    PLAN = (":rank=R:local=L:verify=report:same=A*%s/B*%s:absent=GONE:present=PATH:show=OMP_*/B/RANK:devices=none*nonesuch%s"
            ":layout=0*1:RANK=@.rank:class=2%s")

    def report(self, *entries, more="", node="", program="/usr/bin/env", **options):
        plan = self.PLAN % (mark("a", 5), mark("b", 5), more, node)
        status, out, err = run_plan(plan, *entries, arguments=(program,), **options)
        self.assertEqual((status, err), (0, ""))
        pieces = re.findall(rb"@hpclaunch-report (\S+):(\d+):(\d+) (\d+)/(\d+) (\d+) (.*)", out)
        for host, _, _, number, count, size, text in pieces:
            self.assertEqual((host.decode(), int(size)), (HOST, len(text)))
        self.assertLessEqual(max(map(len, out.split(b"\n"))), 999)
        self.assertEqual([int(piece[3]) for piece in pieces], list(range(1, len(pieces) + 1)))
        return json.loads(b"".join(piece[6] for piece in pieces))

    GOOD = ("R=1", "L=1", "A=a", "B=b", "PATH=/bin")

    def test_as_planned(self):
        found = self.report(*self.GOOD)
        self.assertEqual({"cpus", "launcher_local_rank", "variables", "values"} & set(found), set())
        self.assertEqual({"clock", "cpuset", "memory_allowed", "limits"} - set(found), set())
        self.assertLess(abs(found["clock"] - time.time()), 60)
        common = json.dumps({key: value for key, value in found.items() if key != "clock"}, separators=(",", ":"))[1:-1]
        self.assertEqual(list(self.report(*self.GOOD, more=":usual=" + mark("," + common, 5))), ["clock"])

    def test_what_differs(self):
        found = self.report("R=1", "L=0", "A=other", b"B=\xff\"", "GONE=x", "OMP_X=1", "SECRET=y")
        self.assertEqual(found["variables"], {"A": "%08x" % fnv1a("other"), "B": "%08x" % fnv1a(b"\xff\""), "GONE": "%08x" % fnv1a("x"), "PATH": "--------"})
        self.assertEqual(found["values"], {"B": "\xff\"", "OMP_X": "1"})
        self.assertEqual(found["launcher_local_rank"], 0)
        self.assertEqual(self.report("R=1", *self.GOOD[2:])["launcher_local_rank"], -2)

    def test_cpus(self):
        allowed = sorted(os.sched_getaffinity(0))
        self.assertNotIn("cpus", self.report(*self.GOOD, node=":expect=%d" % allowed[0], cpus={allowed[0]}))
        self.assertNotIn("cpus", self.report(*self.GOOD, node=":cpus=%d" % allowed[0]))
        if len(allowed) > 1:
            self.assertEqual(self.report(*self.GOOD, cpus={allowed[1]})["cpus"], str(allowed[1]))
            self.assertEqual(self.report(*self.GOOD, node=":expect=%d" % allowed[0], cpus={allowed[1]})["cpus"], str(allowed[1]))
            moved = self.report(*self.GOOD, node=":cpus=%d" % allowed[0], cpus={allowed[1]})
            self.assertEqual((moved["cpus_given"], "cpus" in moved), (str(allowed[1]), False))
            self.assertNotIn("cpus_given", self.report(*self.GOOD, node=":cpus=%d" % allowed[0]))

    def test_while_the_program_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script")
            with open(script, "w") as file:
                file.write("#!/bin/sh\n[ $$ -gt 1 ] && A=other OMP_X=1 sleep 1.8\ntrue\n")
            os.chmod(script, 0o700)
            changes = [{"name": "A", "child": 1, "set": 1, "processes": 1}, {"name": "OMP_X", "child": 1, "set": 1, "value": "1", "processes": 1}]
            after = self.report(*self.GOOD, more=":stay=exit:after=1", program=script)["after"]
            self.assertEqual(after, {"threads": 2, "processes": 2, "changes": changes})
            after = self.report(*self.GOOD, more=":stay=exit:after=end", program=script)["after"]
            self.assertEqual(after, {"threads": 2, "processes": 2, "changes": changes, "ran": 1, "exit": 0})
        for when in ("1", "end"):
            after = self.report(*self.GOOD, more=":stay=exit:after=" + when, program="/bin/true")["after"]
            self.assertEqual(after, {"threads": 0, "ran": 0, "exit": 0})

    def test_long_values_come_in_pieces(self):
        self.assertEqual(self.report(*self.GOOD, "OMP_PLACES=" + "{0},\\" * 1000)["values"], {"OMP_PLACES": "{0},\\" * 1000})

    def test_the_first_rank_of_a_node_reports_facts_of_it(self):
        good = ("R=0", "L=0", "A=a", "B=b", "PATH=/bin", "TMPDIR=/nowhere/at/all")
        there = sorted(os.listdir("/sys/bus/pci/devices"))[:1] if os.path.isdir("/sys/bus/pci/devices") else []
        planned = "/".join("%2F" + one.replace(":", "%3A") for one in there + ["ffff:ff:1f.7"])
        facts = self.report(*good, "MASTER_ADDR=10.1.2.3", "MASTER_PORT=0", more=":gpus=" + planned)["facts"]
        self.assertEqual(facts.get("gpus", []), there)
        with open("/sys/devices/system/cpu/online") as file:
            self.assertEqual(facts["online"], file.read().strip())
        self.assertEqual((facts["master"], facts["master_resolves"]), ("10.1.2.3", ["10.1.2.3"]))
        self.assertEqual([(room["path"], room["errno"]) for room in facts["rooms"]], [("/dev/shm", 0), ("/nowhere/at/all", errno.ENOENT)])
        free = os.statvfs("/dev/shm")
        self.assertLess(abs(facts["rooms"][0]["free_bytes"] - free.f_bavail * free.f_frsize), 1 << 28)
        self.assertEqual({"port", "program_problem", "master_problem"} & set(facts), set())
        names = {one["name"] for one in facts.get("interfaces", [])}
        self.assertEqual(names, set(os.listdir("/sys/class/net")) - {"lo", "bonding_masters"})

    def test_addresses_of_interfaces_are_written_as_others_write_them(self):
        facts = self.report("R=0", "L=0", "A=a", "B=b", "PATH=/bin")["facts"]
        for family, name in ((socket.AF_INET, "inet"), (socket.AF_INET6, "inet6")):
            found = re.findall(r" %s ([0-9a-f.:]+)/" % name, subprocess.run(["ip", "addr"], stdout=subprocess.PIPE, universal_newlines=True).stdout) if shutil.which("ip") else []
            wanted = {socket.inet_ntop(family, socket.inet_pton(family, one)) for one in found if not one.startswith(("127.", "fe80:")) and one != "::1"}
            given = {one for interface in facts.get("interfaces", []) for one in interface["addresses"] if (":" in one) == (name == "inet6")}
            if found:
                self.assertEqual(given, wanted)

    def test_names_and_ports_of_the_rendezvous(self):
        good = ("R=0", "L=0", "A=a", "B=b", "PATH=/bin")
        facts = self.report(*good, "MASTER_ADDR=localhost")["facts"]
        self.assertTrue(set(facts["master_resolves"]) & {"127.0.0.1", "::1"}, facts)
        facts = self.report(*good, "MASTER_ADDR=no-such-host.invalid")["facts"]
        self.assertIn(facts.get("master_problem", ""), ("", '"no-such-host.invalid": Name or service not known'))
        self.assertNotIn("master_resolves", facts)
        for family, own in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            taken = socket.socket(family)
            taken.bind((own, 0))
            taken.listen(1)
            port = str(taken.getsockname()[1])
            self.assertEqual(self.report(*good, "MASTER_PORT=" + port)["facts"]["port"], {"errno": errno.EADDRINUSE})
            taken.close()

    def test_a_program_that_cannot_be_started(self):
        for program, problem in (("/no/such/one", "does not exist"), ("/etc", "is a directory"), ("/etc/passwd", "is not executable")):
            facts = self.report("R=0", "L=0", "A=a", "B=b", "PATH=/bin", program=program)["facts"]
            self.assertEqual(facts["program_problem"], 'program "%s" %s' % (program, problem))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
