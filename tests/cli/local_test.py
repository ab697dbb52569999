#!/usr/bin/env python3
"""hpclaunch run on this machine, without any launcher."""
import os
import re
import shutil
import subprocess
import sys

import support
from allowed import needs
from support import Test, clean_env, cpu_list, execute, hpclaunch, need

ALLOWED = os.sched_getaffinity(0)


def counts():
    """Rank counts that need not share cores, then those that must."""
    return [n for n in (1, 2, 5) if n <= len(ALLOWED)], [n for n in (1, 2, 5) if n > len(ALLOWED)]


class Ranks(Test):
    def test_identity(self):
        for n in (1, 2, 5):
            with self.subTest(n):
                ranks = self.ranks_environment("run", "-n", str(n), "--oversubscribe")
                self.assertEqual(sorted(ranks), list(range(n)))
                ports = {env[b"MASTER_PORT"] for env in ranks.values()}
                self.assertEqual(len(ports), 1)
                for rank, env in ranks.items():
                    for name in (b"RANK", b"LOCAL_RANK", b"HPCLAUNCH_LOCAL_RANK"):
                        self.assertEqual(env[name], b"%d" % rank)
                    for name in (b"WORLD_SIZE", b"LOCAL_WORLD_SIZE", b"LOCAL_SIZE", b"HPCLAUNCH_LOCAL_SIZE"):
                        self.assertEqual(env[name], b"%d" % n)
                    for name in (b"GROUP_RANK", b"NODE_RANK", b"CROSS_RANK", b"HPCLAUNCH_NODE"):
                        self.assertEqual(env[name], b"0")
                    self.assertEqual(env[b"GROUP_WORLD_SIZE"], b"1")
                    self.assertEqual(env[b"MASTER_ADDR"], b"127.0.0.1")
                    self.assertNotIn(b"HPCLAUNCH_PLAN", env)

    def test_binding_is_what_the_plan_says(self):
        apart, crowded = counts()
        for n in apart + crowded:
            with self.subTest(n):
                plan = self.json("plan", "-n", str(n), "--oversubscribe")
                self.ranks_environment("run", "-n", str(n), "--oversubscribe")
                bound = [self.bound(rank) for rank in range(n)]
                self.assertEqual(bound, [cpu_list(r["cpus"]) for r in plan["classes"][0]["ranks"]])
                self.assertLessEqual(set().union(*bound), ALLOWED)
                if n in apart:
                    self.assertEqual(sum(map(len, bound)), len(set().union(*bound)))

    def test_without_binding(self):
        self.ranks_environment("run", "-n", "2", "--oversubscribe", "--bind-via", "none")
        self.assertEqual([self.bound(0), self.bound(1)], [ALLOWED, ALLOWED])

    def test_what_the_user_exported_stays(self):
        mine = {"MINE": "a b\nc 'd'", "EMPTY": "", "OMP_NUM_THREADS": "1", "PYTHONPATH": "/x:/y", "OMP_PROC_BIND": "close"}
        env = self.ranks_environment("run", "-n", "1", env=clean_env(**mine))[0]
        for name, value in mine.items():
            self.assertEqual(env[name.encode()], value.encode())

    def test_set_and_unset(self):
        env = self.ranks_environment("run", "-n", "1", "--set", "A=1=2", "--set", "EMPTY=", "--set", "OMP_NUM_THREADS=7",
                                     "--unset", "GONE", "--unset", "MKL_NUM_THREADS", env=clean_env(GONE="x"))[0]
        self.assertEqual([env[b"A"], env[b"EMPTY"], env[b"OMP_NUM_THREADS"]], [b"1=2", b"", b"7"])
        self.assertNotIn(b"GONE", env)
        self.assertNotIn(b"MKL_NUM_THREADS", env)

    def test_set_path_finds_the_program(self):
        self.file("bin/our-tool", "#!/bin/sh\necho found\n", 0o755)
        path = os.path.join(self.folder, "bin") + ":/usr/bin:/bin"
        self.assertEqual(self.ok(hpclaunch("run", "-n", "1", "--set", "PATH=" + path, "our-tool")).out, "found\n")

    def test_arguments_pass_as_bytes(self):
        words = [b"a b", b"it's \"x\"", b"", b"-n", b"--", b"--help", b"two\nlines", b"$HOME `id` \\ *", b"\xff\xfe", "\u65e5".encode(), b"="]
        show = self.file("show.py", "import os,sys\nsys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))\n")
        for separator in (["--"], []):
            done = self.ok(hpclaunch("run", "-n", "1", *separator, sys.executable, show, *words))
            self.assertEqual(done.raw_out, b"\0".join(words))

    def test_working_directory_and_relative_programs(self):
        self.file("here.sh", "#!/bin/sh\npwd\n", 0o755)
        done = self.ok(hpclaunch("run", "-n", "1", "./here.sh", cwd=self.folder))
        self.assertEqual(done.out.strip(), os.path.realpath(self.folder))

    def test_input_goes_to_rank_0(self):
        done = self.ok(hpclaunch("run", "-n", "3", "--oversubscribe", "--", "/bin/sh", "-c", 'echo "$RANK:$(cat)"', stdin=b"abc\n"))
        self.assertEqual(sorted(done.out.split()), ["0:abc", "1:", "2:"])

    def test_label(self):
        done = self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--label", "--", "/bin/sh", "-c", "echo hello; echo oops >&2"))
        self.assertEqual(sorted(done.out.splitlines()), sorted(line for line in done.out.splitlines() if line.endswith("hello")))
        self.assertEqual(len(set(done.out.splitlines())), 2)
        self.assertEqual(len([line for line in done.err.splitlines() if line.endswith("oops")]), 2)

    def test_the_output_of_some_ranks(self):
        """What a rank wrote before it failed is shown all the same, and its log is whole."""
        logs = os.path.join(self.folder, "filtered")
        done = hpclaunch("run", "-n", "3", "--oversubscribe", "--local-ranks-filter", "2,1", "--log-dir", logs, "--", "/bin/sh", "-c", "echo out $RANK; echo err $RANK >&2; [ $RANK != 0 ]")
        self.ok(done, 1)
        self.assertEqual(sorted(done.out.splitlines()), ["out 1", "out 2"])
        self.assertEqual([line for line in sorted(done.err.splitlines()) if line.startswith("err")], ["err 1", "err 2"])
        self.has(done, "rank 0 failed first", "  | out 0", "  | err 0")
        with open(os.path.join(logs, "rank-0.log")) as file:
            self.assertEqual(sorted(file), ["err 0\n", "out 0\n"])
        self.assertEqual(sorted(self.ok(hpclaunch("run", "-n", "3", "--oversubscribe", "--local-ranks-filter", "0, 2", "--", "/bin/sh", "-c", "echo $RANK")).out.split()), ["0", "2"])
        self.refused(125, "run", "-n", "1", "--local-ranks-filter", "a", "--", "/bin/true", says=['"a" is no list of local ranks'])

    def test_a_program_that_takes_the_rendezvous_as_arguments(self):
        words = ["--master_addr={MASTER_ADDR}", "{MASTER_PORT}", "{RANK} {LOCAL_RANK} {NODE_RANK}", "{{RANK}}", "${RANK}", '{"rank": {RANK}}', "{HOME}"]
        done = self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--master-port", "7013", "--", "/bin/sh", "-c", 'IFS="|"; echo "$*"', "sh", *words))
        self.assertEqual(sorted(done.out.splitlines()), ["--master_addr=127.0.0.1|7013|%d %d 0|{RANK}|${RANK}|{\"rank\": {RANK}}|{HOME}" % (rank, rank) for rank in range(2)])

    def test_jobs_that_only_a_number_tells_apart_have_different_ports(self):
        """SGE's JOB_ID without a host file; two equal launches side by side in one job, too."""
        def port(job):
            [setting] = [s for s in self.json("plan", "-n", "1", env=clean_env(JOB_ID=job))["env"] if s["name"] == "MASTER_PORT"]
            return setting["value"]
        self.assertNotEqual(port("7"), port("8"))
        self.assertEqual(port("7"), port("7"))
        first = subprocess.Popen([support.HPCLAUNCH, "run", "-n", "1", "--", "/bin/sh", "-c", "echo $MASTER_PORT; exec cat >/dev/null"],
                                 env=clean_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        taken = first.stdout.readline().strip()
        second = self.ok(hpclaunch("run", "-n", "1", "--", "/bin/sh", "-c", "echo $MASTER_PORT; exec cat >/dev/null"))
        first.communicate(timeout=support.LIMIT)
        self.assertNotEqual(second.out.strip(), taken)

    def test_nothing_sleeps(self):
        """From the command line to the program's first instruction, and after its end, daemons of it included."""
        need("strace")
        daemon = ["/bin/sh", "-c", "(trap '' TERM; setsid sleep 1000 >/dev/null 2>&1 &) ; exit 0"]
        for words in (["run", "--dry-run", "--topology", support.machine("laptop-8.xml"), "-n", "2", "--", "/bin/true"], ["plan", "-n", "1"],
                      ["run", "-n", "2", "--oversubscribe", "--", "/bin/true"], ["run", "-n", "1", "--", *daemon],
                      ["run", "-n", "2", "--oversubscribe", "--", "/bin/sh", "-c", "kill -9 $$"]):
            with self.subTest(words):
                file = self.folder + "/calls"
                execute(["strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=nanosleep,clock_nanosleep,execve", "-o", file, support.HPCLAUNCH, *words],
                        env=support.traced_env())
                with open(file) as calls:
                    lines = calls.read().splitlines()
                sleepers = {line.split()[0] for line in lines if re.search(r'execve\("/(usr/)?bin/sleep"', line)}
                self.assertEqual([line for line in lines if "nanosleep" in line and line.split()[0] not in sleepers], [])
                self.assertTrue(any("execve(" in line for line in lines), "nothing traced")

    def test_what_is_above_a_rank_may_read_it(self):
        """Also where Yama's ptrace_scope is 1: one call of each rank, which names the process that started it."""
        need("strace")
        file = self.folder + "/calls"
        execute(["strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=prctl,execve", "-o", file, support.HPCLAUNCH, "run", "-n", "3",
                 "--oversubscribe", "--", "/bin/true"], env=support.traced_env())
        with open(file) as calls:
            lines = calls.read().splitlines()
        ranks = {line.split()[0] for line in lines if 'execve("/bin/true"' in line}
        named = [line for line in lines if "PR_SET_PTRACER" in line and line.split()[0] in ranks]
        self.assertEqual((len(ranks), len(named)), (3, 3), lines)

    def test_much_output_takes_few_calls(self):
        """A pipe is written as far as it has room, not a page at a time after a look whether it has."""
        need("strace")
        size, file = 16 << 20, self.folder + "/calls"
        trace = ["strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=write,poll,execve", "-o", file]
        program = ["/bin/sh", "-c", "yes %s | head -c %d" % ("0123456789" * 7, size // 2)]
        job = subprocess.Popen([*trace, support.HPCLAUNCH, "run", "-n", "2", "--oversubscribe", "--", *program],
                               env=support.traced_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        got = 0
        while piece := os.read(job.stdout.fileno(), 1 << 20):
            got += len(piece)
        self.assertEqual(job.wait(), 0)
        self.assertIn(got - size, (0, 1, 2))  # newlines of ours behind the last lines, which are cut
        with open(file) as calls:
            lines = calls.read().splitlines()
        programs = {line.split()[0] for line in lines if re.search(r'execve\("(?!.*/hpclaunch")', line)}
        ours = [line for line in lines if line.split()[0] not in programs]
        self.assertGreater(sum("write(" in line for line in ours), size // (64 << 10))
        self.assertLess(len(ours), size // (3 << 10))  # 8,500 by pages

    @needs("own mounts")
    def test_a_launcher_is_asked_once_for_its_version(self):
        """Its answer is kept for as long as the file stays the same; what others could have written is not believed."""
        need("strace")
        mpiexec = self.folder + "/mpiexec.hydra"
        shutil.copy(need("mpiexec.hydra"), mpiexec)
        file = self.folder + "/calls"

        def asked(inside):
            words = [support.HPCLAUNCH, "run", "--dry-run", "-n", "2", "--oversubscribe", "--launcher", mpiexec, "--", "/bin/true"]
            trace = ["strace", "-f", "-qq", "-s", "4000", "-e", "signal=none", "-e", "trace=execve", "-o", file, *words]
            done = execute(["unshare", "--map-root-user", "--mount", "sh", "-c", inside + ' && exec "$@"', "-", *trace], env=support.traced_env())
            self.assertIn("-bind-to", self.ok(done).out)
            with open(file) as calls:
                return calls.read().count('"--version"')
        memory = self.folder + "/memory"  # in place of /run/user and /dev/shm
        os.mkdir(memory)
        own = "for at in /run /dev/shm; do mount --bind %s $at; done" % memory
        self.assertEqual([asked(own) for _ in range(3)], [1, 0, 0])
        os.utime(mpiexec)
        self.assertEqual([asked(own) for _ in range(2)], [1, 0])
        kept = [os.path.join(memory, name) for name in os.listdir(memory) if "version" in name]
        self.assertEqual(len(kept), 2)
        kept = max(kept, key=os.path.getmtime)
        with open(kept) as text:
            whole = text.read()
        for broken in ("", "x", whole[:-1], whole[:40], "x" * 70000):
            with self.subTest(broken[:50]):
                with open(kept, "w") as text:
                    text.write(broken)
                self.assertEqual([asked(own) for _ in range(2)], [1, 0])
        os.chmod(kept, 0o644)
        instead = os.path.join("/tmp", os.path.basename(kept))
        self.addCleanup(lambda: os.path.exists(instead) and os.remove(instead))
        self.assertEqual(asked(own), 1)

    def test_log_dir(self):
        logs = os.path.join(self.folder, "new", "logs")
        self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--log-dir", logs, "--", "/bin/sh", "-c", 'echo "I am $RANK"'))
        text = {}
        for name in os.listdir(logs):
            with open(os.path.join(logs, name)) as file:
                text[name] = file.read()
        self.assertEqual(text, {"rank-0.log": "I am 0\n", "rank-1.log": "I am 1\n"})


class Statuses(Test):
    def test_the_programs_own(self):
        for status in (0, 1, 2, 17, 125, 126, 127, 255):
            self.ok(hpclaunch("run", "-n", "1", "--", "/bin/sh", "-c", "exit %d" % status), status)

    def test_signals(self):
        for number in (9, 11, 15):
            done = hpclaunch("run", "-n", "1", "--", "/bin/sh", "-c", "kill -%d $$" % number)
            self.ok(done, 128 + number)
            self.has(done, "signal %d" % number)

    def test_the_first_failed_rank(self):
        script = "if [ $RANK = 1 ]; then echo last words; exit 21; fi; sleep 300"
        done = hpclaunch("run", "-n", "3", "--oversubscribe", "--grace", "5", "--", "/bin/sh", "-c", script)
        self.ok(done, 21)
        self.has(done, "rank 1 failed first", "host " + support.HOST, "exit status 21", "last words")
        self.assertRegex(done.err, r"pid \d+")

    def test_success_is_silent(self):
        done = self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--", "/bin/true"))
        self.assertEqual([done.out, done.err], ["", ""])

    def test_a_program_that_goes_away_before_the_ranks_start(self):
        script = self.file("bad-interpreter", "#!/no/such/interpreter\n", 0o755)
        done = hpclaunch("run", "-n", "1", "--", script)
        self.ok(done, 127)
        self.has(done, "bad-interpreter", "interpreter")


class OtherMachine(Test):
    """A plan for a machine that is not this one is noticed at the rank."""

    def setUp(self):
        super().setUp()
        base = max(ALLOWED) + 1000  # no CPU here has such a number
        self.there = self.file("there.json", '{"schema": 1, "hostname": "there", "allowed": "%d-%d", "cores": [{"pus": "%d"}, {"pus": "%d"}]}'
                               % (base, base + 1, base, base + 1))
        self.first = base

    def test_warn(self):
        done = self.ok(hpclaunch("run", "-n", "1", "--cpus-per-rank", "1", "--topology", self.there, "--", "/bin/sh", "-c", "echo ran"))
        self.assertEqual(done.out, "ran\n")
        self.has(done, "hpclaunch: rank 0 on ", "planned CPUs %d" % self.first, "the kernel refuses them")

    def test_strict(self):
        done = hpclaunch("run", "-n", "1", "--cpus-per-rank", "1", "--verify", "strict", "--topology", self.there, "--", "/bin/sh", "-c", "echo ran")
        self.ok(done, 125)
        self.assertEqual(done.out, "")
        self.has(done, "planned CPUs %d" % self.first)

    def test_off(self):
        done = self.ok(hpclaunch("run", "-n", "1", "--cpus-per-rank", "1", "--verify", "off", "--topology", self.there, "--", "/bin/sh", "-c", "echo ran"))
        self.assertEqual([done.out, done.err], ["ran\n", ""])


if __name__ == "__main__":
    support.main()
