#!/usr/bin/env python3
"""run, run --dry-run and env are prefixes of one another: ranks get the same environment by each way."""
import json
import os
import re
import subprocess

import support
from support import Test, clean_env, entries, execute, hpclaunch, need

HOSTILE = {
    "V_EMPTY": b"", "V_SPACE": b" lead and trail ", "V_QUOTES": b"it's \"quoted\" `id`", "V_NEWLINE": b"one\ntwo\n\nthree\n",
    "V_SEMI": b"a;b & c | d > /tmp/x", "V_DOLLAR": b"$HOME ${HOME} $(id) $$", "V_BACKSLASH": b"\\ \\n \\\\ end\\",
    "V_UNICODE": "caf\u00e9 \u65e5\u672c \U0001f680".encode(), "V_BANG": b"hi! !! !$", "V_GLOB": b"* ? [a] {a,b} ~ #",
    "V_DASH": b"-n", "V_EQUALS": b"A=1=2", "V_CONTROL": b"\x01\x1b[31m\t\r",
}
PORT = ("--master-port", "23457")
# What a shell or the launcher itself adds to the environment of a program it starts.
NOT_OURS = {b"_", b"PWD", b"OLDPWD", b"SHLVL", b"HYDI_CONTROL_FD", b"PMI_FD"}


def set_options():
    words = []
    for name, value in HOSTILE.items():
        words += ["--set", os.fsdecode(name.encode() + b"=" + value)]
    return words


class SameForTheRanks(Test):
    def compare(self, first, second):
        self.assertEqual(sorted(first), sorted(second))
        for rank in first:
            names = (set(first[rank]) | set(second[rank])) - NOT_OURS
            for name in sorted(names):
                self.assertEqual(first[rank].get(name), second[rank].get(name), "rank %d: %r" % (rank, name))

    def words(self, command, script, *more):
        return [command, "-n", "3", "--oversubscribe", *PORT, *set_options(), "--unset", "GONE", *more, "--", script, "@INTO@"]

    def both(self, shell, *more):
        env = clean_env(GONE="x", MINE="kept as it is", OMP_SCHEDULE="static", MY_PATH="a:b")
        script = self.file("record.sh", '#!/bin/sh\n/usr/bin/env -0 > "$1/$RANK.env"\ncat /proc/self/status > "$1/$RANK.status"\n', 0o755)
        direct = self.ranks_environment(argv=[support.HPCLAUNCH, *self.words("run", script, *more)], env=env)
        self.assertEqual(sorted(direct), [0, 1, 2])
        bound = [self.bound(rank) for rank in range(3)]
        dry = self.ok(hpclaunch(*self.words("run", script, "--dry-run", *more), env=env))
        # Equal but for the folder that the records go to, which was written as @INTO@:
        batch = self.file("job.sh", dry.out)
        with open(batch) as file:
            self.assertIn("@INTO@", file.read())
        into = self.into
        with open(batch, "w") as file:
            file.write(dry.out.replace("@INTO@", into + "-dry"))
        os.mkdir(into + "-dry")
        self.ok(execute([*shell, batch], env))
        by_script = {}
        for rank in range(3):
            with open("%s-dry/%d.env" % (into, rank), "rb") as file:
                by_script[rank] = entries(file.read())
        self.compare(direct, by_script)
        self.into = into + "-dry"
        self.assertEqual(bound, [self.bound(rank) for rank in range(3)])
        for name, value in HOSTILE.items():
            self.assertEqual(direct[0][name.encode()], value)
        self.assertNotIn(b"GONE", direct[0])
        self.assertNotIn(b"HPCLAUNCH_PLAN", direct[0])
        self.assertEqual(direct[0][b"MINE"], b"kept as it is")

    def test_dry_run_under_sh(self):
        self.both([need("sh")])

    def test_dry_run_under_dash_with_reasons(self):
        self.both([need("dash")], "-v")

    def test_dry_run_under_bash_and_hydra(self):
        need("mpiexec.hydra")
        support.idle_stdin()
        self.both([need("bash")], "--launcher", "hydra")

    def test_dry_run_starts_nothing(self):
        mark = os.path.join(self.folder, "mark")
        self.ok(hpclaunch("run", "--dry-run", "-n", "1", "--", "/usr/bin/touch", mark))
        self.assertFalse(os.path.exists(mark))

    def test_dry_run_for_a_program_elsewhere(self):
        done = self.ok(hpclaunch("run", "--dry-run", "-n", "1", "--", "/elsewhere/bin/train"))
        self.assertIn("/elsewhere/bin/train", done.out)
        self.assertIn("program-not-here", done.err)

    def test_env_and_the_printed_launch_line(self):
        script = self.file("record.sh", '#!/bin/sh\n/usr/bin/env -0 > "$1/$RANK.env"\ncat /proc/self/status > "$1/$RANK.status"\n', 0o755)
        direct = self.ranks_environment(argv=[support.HPCLAUNCH, *self.words("run", script)])
        argv = json.loads(hpclaunch("plan", "--json", *self.words("run", script)[1:]).out)["argv"]
        text = self.file("env.sh", self.ok(hpclaunch(*self.words("env", script))).raw_out)
        again = self.ranks_environment(argv=[need("sh"), "-c", 'eval "$(cat "$0")"; exec "$@"', text, *argv])
        self.compare(direct, again)

    def test_verbose_says_why(self):
        quiet = hpclaunch("run", "--dry-run", "-n", "1", *PORT, "--", "/bin/true").out
        loud = hpclaunch("run", "--dry-run", "-v", "-n", "1", *PORT, "--", "/bin/true").out
        self.assertIn("# builtin: one thread per core", loud)
        def commands(text):
            return [line for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(commands(quiet), commands(loud))


class Formats(Test):
    """Each format, read by what it is for, gives back each value byte for byte."""

    def text(self, form, *more, values=None):
        words = []
        for name, value in (HOSTILE if values is None else values).items():
            words += ["--set", os.fsdecode(name.encode() + b"=" + value)]
        done = self.ok(hpclaunch("env", "-n", "1", "--format", form, *words, *more))
        return self.file("values." + form, done.raw_out)

    def check(self, argv, values=None):
        done = self.ok(execute(argv, clean_env(GONE="x")))
        self.assertEqual(done.err, "")
        got = entries(done.raw_out)
        for name, value in (HOSTILE if values is None else values).items():
            self.assertEqual(got.get(name.encode()), value, name)
        self.assertNotIn(b"GONE", got)
        self.assertEqual(got[b"WORLD_SIZE"], b"1")
        self.assertTrue(got[b"HPCLAUNCH_PLAN"].startswith(b"hl2."))

    def test_sh(self):
        for more in ([], ["-v"]):
            path = self.text("sh", "--unset", "GONE", *more)
            for shell in ("sh", "dash", "bash"):
                self.check([need(shell), "-c", '. "$0"; exec /usr/bin/env -0', path])
                self.check([need(shell), "-c", 'eval "$(cat "$0")"; exec /usr/bin/env -0', path])

    def test_csh(self):
        path = self.text("csh", "--unset", "GONE")
        for shell in ("tcsh", "csh"):
            self.check([need(shell), "-f", "-c", "source %s; exec /usr/bin/env -0" % path])

    def test_fish(self):
        path = self.text("fish", "--unset", "GONE")
        self.check([need("fish"), "--no-config", "-c", "source %s; exec /usr/bin/env -0" % path])

    def test_json(self):
        with open(self.text("json", "--unset", "GONE")) as file:
            data = json.load(file)
        self.assertEqual(data["schema"], 1)
        self.assertEqual({n: data["set"][n].encode() for n in HOSTILE}, HOSTILE)
        self.assertIn("GONE", data["unset"])

    def test_what_a_format_cannot_hold_is_an_error(self):
        self.refused(2, "env", "-n", "1", "--format", "dotenv", "--unset", "GONE", says=["GONE"])
        self.refused(2, "env", "-n", "1", "--format", "json", "--set", os.fsdecode(b"RAW=\xff\xfe"), says=["RAW"])
        self.refused(2, "env", "-n", "1", "--set", "not-a-name=1", says=["not-a-name"])
        self.refused(2, "env", "--format", "yaml", says=["yaml"])

    def test_bytes_that_are_not_utf8(self):
        values = {"RAW": b"\xff\xfe\x80 end"}
        self.check([need("sh"), "-c", '. "$0"; exec /usr/bin/env -0', self.text("sh", "--unset", "GONE", values=values)], values)

    def test_dotenv_and_lmod_name_all(self):
        plain = {"V_SIMPLE": b"a b $c"}
        with open(self.text("dotenv", values=plain)) as file:
            self.assertIn("V_SIMPLE='a b $c'\n", file.read())
        with open(self.text("lmod", "--unset", "GONE", values=plain)) as file:
            text = file.read()
        self.assertIn('setenv("V_SIMPLE", "a b $c")', text)
        self.assertIn('unsetenv("GONE")', text)


class Ports(Test):
    def port(self, *words, **extra):
        text = self.ok(hpclaunch("env", "-n", "1", *words, env=clean_env(**extra)), 0).out
        return int(re.search(r"(?m)^export MASTER_PORT=(\d+)$", text).group(1))

    def test_outside_the_kernels_range(self):
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            low, high = map(int, file.read().split())
        for job in range(20):
            port = self.port(PBS_JOBID=str(job))
            self.assertTrue(port < low or port > high or (low <= 1024 and high >= 65535), port)
            self.assertGreaterEqual(port, 1024)

    def test_given_ones_hold(self):
        self.assertEqual(self.port("--master-port", "23456"), 23456)
        found = self.json("plan", "-n", "1", env=clean_env(MASTER_PORT="23456"))["env"]
        self.assertEqual([s["value"] for s in found if s["name"] == "MASTER_PORT"], ["23456"])

    def test_a_port_in_use_is_refused(self):
        import socket
        with socket.socket() as taken:
            taken.bind(("0.0.0.0", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = hpclaunch("run", "-n", "1", "--master-port", str(port), "--", "/bin/true")
            self.ok(done, 125)
            self.has(done, "port-taken", str(port))

    def test_a_chosen_port_is_free(self):
        import socket
        words = ("-n", "1", "--", "/bin/true")
        env = clean_env(PBS_JOBID="1.taken")
        def port():
            text = self.ok(hpclaunch("env", *words, env=env)).out
            return int(re.search(r"(?m)^export MASTER_PORT=(\d+)$", text).group(1))
        first = port()
        with socket.socket() as taken:
            taken.bind(("0.0.0.0", first))
            taken.listen()
            self.assertNotEqual(port(), first)

    def test_two_runs_at_once(self):
        script = 'echo "$MASTER_PORT"; read line'
        runs = [subprocess.Popen([support.HPCLAUNCH, "run", "-n", "1", "--", "/bin/sh", "-c", script], env=clean_env(),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)]
        try:
            ports = [run.stdout.readline().strip() for run in runs]
            self.assertEqual(len(set(ports)), 3, ports)
        finally:
            for run in runs:
                run.stdin.write(b"go\n")
                run.stdin.close()
                self.assertEqual(run.wait(support.LIMIT), 0)
                run.stdout.close()


if __name__ == "__main__":
    support.main()
