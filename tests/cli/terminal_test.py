#!/usr/bin/env python3
"""What people see: on a terminal of a given size, in colour and without, in a pipe; completion; Ctrl-C."""
import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import termios
import time
import xml.etree.ElementTree as ElementTree

import support
from support import COMMANDS, LIMIT, Test, clean_env, hpclaunch, machine, need, on_terminal

ESCAPE = re.compile("\033\\[[0-9;]*m")
AURORA = ("--profile", "aurora", "--ppn", "12")


def until(fd, seen):
    text, end = "", time.monotonic() + LIMIT
    while not seen(text):
        assert time.monotonic() < end, text
        if select.select([fd], [], [], 1)[0]:
            text += os.read(fd, 65536).decode()
    return text


def sites():
    document = json.loads(hpclaunch("profile", "list", "--format", "json").out)
    return [one["name"] for one in document["profiles"] if one["state"] != "part"]


def widest(text):
    return max(len(line) for line in ESCAPE.sub("", text).splitlines())


class Width(Test):
    def hosts(self, names):
        return self.file("hosts", "".join(name + "\n" for name in names))

    def test_a_terminal_is_filled_and_no_more(self):
        picture = ("plan", "--topology", machine("hbm-2x48-snc4.json"), "-n", "8", "--picture")
        for words in (picture, ("plan", *AURORA, "-N", "4"), ("plan", "-v", *AURORA, "-N", "4"), ("topo", "--topology", machine("hbm-2x48-snc4.json"))):
            for columns in (66, 80, 132, 200):
                self.assertLessEqual(widest(on_terminal(*words, columns=columns)), columns, words)
        wide, narrow = (on_terminal("plan", "-v", *AURORA, "-N", "4", columns=columns) for columns in (200, 80))
        self.assertGreater(widest(wide), 120)
        self.assertLess(len(wide.splitlines()), len(narrow.splitlines()))

    def test_only_words_without_a_blank_are_wider(self):
        for site in ("aurora", "frontier", "perlmutter"):
            for line in ESCAPE.sub("", on_terminal("explain", "--profile", site, "-N", "4")).splitlines():
                if len(line) > 80:
                    self.assertLessEqual(len(line.split()), 4, line)

    def test_columns_overrides_the_terminal(self):
        env = clean_env(TERM="xterm", LC_ALL="C.UTF-8", COLUMNS="70")
        self.assertLessEqual(widest(on_terminal("plan", "-v", *AURORA, "-N", "4", columns=200, env=env)), 70)
        for odd in ("", "0", "x", "7"):
            env = clean_env(TERM="xterm", COLUMNS=odd)
            self.assertLessEqual(widest(on_terminal("plan", "-v", *AURORA, "-N", "4", columns=90, env=env)), 90)

    def test_a_terminal_without_a_size_has_the_width_of_a_pipe(self):
        self.assertLessEqual(widest(on_terminal("plan", "-v", *AURORA, "-N", "4", columns=0, rows=0)), 100)

    def test_a_pipe_has_a_fixed_width_whatever_the_terminal(self):
        plain = hpclaunch("plan", "-v", *AURORA, "-N", "4").out
        self.assertEqual(hpclaunch("plan", "-v", *AURORA, "-N", "4", env=clean_env(COLUMNS="60", TERM="xterm-256color")).out, plain)
        self.assertLessEqual(widest(plain), 100)

    def test_help_is_as_wide_as_the_terminal(self):
        for columns in (60, 80, 200):
            for word in ("-h", "--help"):
                self.assertLessEqual(widest(on_terminal("run", word, columns=columns)), max(columns, 70))
        self.assertGreater(widest(on_terminal("run", "--help", columns=200)), 100)

    def test_a_plan_of_512_nodes_is_one_screen(self):
        for names in (["x4%05dc0" % i for i in range(512)], ["node%03d" % i for i in range(512)]):
            text = on_terminal("plan", *AURORA, "-N", "512", "--hostfile", self.hosts(names), "--", "python3", "train.py", columns=80)
            self.assertLessEqual(len(text.splitlines()), 40, text)
            self.assertLessEqual(widest(text), 80)
            plain = ESCAPE.sub("", text)
            for words in ("6144 on 512 nodes", "FI_MR_CACHE_MONITOR=userfaultfd", "command", "train.py", "76-79"):
                self.assertIn(words, plain)
            self.assertNotIn("WORLD_SIZE", plain)
            env = clean_env(TERM="xterm", OMP_NUM_THREADS="2", NCCL_DEBUG="INFO", FI_PROVIDER="cxi")
            more = on_terminal("plan", *AURORA, "-N", "512", "--hostfile", self.hosts(names), "--", "python3", "train.py", columns=80, env=env)
            self.assertLessEqual(len(more.splitlines()), 40, more)

    def test_a_plan_of_512_nodes_of_every_site_is_one_screen_with_its_diagnostics(self):
        for site in sites():
            for ranks in (("--ppn", "12"), ()) if site in ("aurora", "sunspot") else (("--ppn", "12"),):
                text = on_terminal("plan", "--profile", site, *ranks, "-N", "512", "--", "python3", "train.py", columns=80, err=True)
                remarks = sum(line.startswith(("hpclaunch: note", "hpclaunch: warning")) for line in ESCAPE.sub("", text).splitlines())
                self.assertLessEqual(len(text.splitlines()), 40 if remarks <= 1 else 46, text)
                self.assertLessEqual(widest(text), 80, text)
                for words in ("on 512 nodes", "environment", "command", "train.py"):
                    self.assertIn(words, text)
        self.assertRegex(text, r"\(\d+ more\)|command")

    def test_variables_that_were_typed_are_never_left_out(self):
        sets = [word for i in range(30) for word in ("--set", "MINE_%02d=%s" % (i, "x" * 30))]
        text = on_terminal("plan", *AURORA, "-N", "512", *sets, columns=80)
        self.assertEqual(len(set(re.findall(r"MINE_\d\d=", text))), 30)
        self.assertRegex(text, r"\(\d+ more\)")

    def test_diagnostics_are_wrapped_on_a_terminal_only(self):
        words = ("plan", "--profile", "frontier", "--ppn", "12", "-N", "2")
        piped = hpclaunch(*words).err.splitlines()
        self.assertGreater(max(map(len, piped)), 90)
        self.assertTrue(all(line.startswith("hpclaunch: ") for line in piped), piped)
        for columns in (40, 80):
            text = on_terminal(*words, columns=columns, err=True)
            self.assertIn(" ".join(" ".join(piped).split()), " ".join(text.split()))
            said = text.split("program ")[0]
            self.assertTrue(all(len(line) <= columns or len(line.split()) == 1 for line in said.splitlines()), said)
        self.assertLessEqual(widest(on_terminal("plan", "--ranks", "two", columns=60, err=True)), 60)

    def test_a_narrow_terminal_gets_narrow_text(self):
        for columns in (20, 30, 39):
            text = on_terminal("run", "-h", columns=columns)
            self.assertEqual(text, on_terminal("run", "-h", columns=40))
        self.assertEqual(on_terminal("run", "-h", columns=90, env=clean_env(COLUMNS="7")), text)

    def test_profiles_are_wrapped_on_a_terminal_only(self):
        for words in (("profile", "list"), ("profile", "show", "aurora")):
            self.assertGreater(widest(hpclaunch(*words).out), 120)
            text = ESCAPE.sub("", on_terminal(*words, columns=80))
            for line in text.splitlines():
                self.assertTrue(len(line) <= 80 or len(line.split()) <= 3, line)
            self.assertEqual(text.split(), hpclaunch(*words).out.split())

    def test_every_entry_of_the_help_is_one_line_at_100_columns(self):
        for command in COMMANDS:
            lines = on_terminal(command, "--help", columns=100).splitlines()
            if command != "profile":
                self.assertEqual([line for line in lines if line.startswith(" " * 30)], [], command)
            self.assertLessEqual(len(on_terminal(command, "-h").splitlines()), len(on_terminal(command, "--help").splitlines()))

    def test_short_help_is_one_screen_and_long_help_has_all(self):
        for command in COMMANDS:
            short, long = (on_terminal(command, word, columns=80) for word in ("-h", "--help"))
            self.assertLessEqual(len(short.splitlines()), 40, command)
            for option in re.findall(r"(?m)^  .*?(--[\w-]+)", long):
                shown = short + (hpclaunch("run", "-h").out if command == "torchrun" else "")
                pair = "--[no-]" + option.removeprefix("--no-").removeprefix("--")
                self.assertTrue(option in shown or pair in shown or option.rsplit("-", 1)[0] + "-..." in shown, (command, option))
        self.assertGreater(len(on_terminal("run", "--help").splitlines()), 60)


class Colour(Test):
    def picture(self, env, ranks=16):
        return on_terminal("plan", "--topology", machine("hbm-2x48-snc4.json"), "-n", str(ranks), "--picture", env=env)

    def backgrounds(self, text):
        return set(re.findall(r"48;5;(\d+)", text))

    def test_sixteen_ranks_have_sixteen_colours_where_there_are_256(self):
        for env in ({"TERM": "xterm-256color"}, {"TERM": "tmux-256color"}, {"TERM": "xterm", "COLORTERM": "truecolor"}, {"TERM": "xterm-direct"}):
            text = self.picture(clean_env(**env))
            self.assertEqual(len(self.backgrounds(text)), 16, env)
            # Letters and ground are both set, from the fixed part of the table: light and dark screens look alike.
            self.assertEqual(len(re.findall("38;5;16;48;5;", text)), len(re.findall("48;5;", text)))
            for colour in map(int, self.backgrounds(text)):
                black = self.contrast_with_black(colour)
                self.assertGreaterEqual(black, 4.5)
                self.assertGreaterEqual(21 / black, 1.25, colour)  # with white

    def contrast_with_black(self, colour):
        levels = (0, 95, 135, 175, 215, 255)
        cube = [levels[(colour - 16) // step % 6] / 255 for step in (36, 6, 1)]
        red, green, blue = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in cube]
        return (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) / 0.05

    def test_eight_colours_elsewhere(self):
        text = self.picture(clean_env(TERM="xterm"))
        self.assertEqual(self.backgrounds(text), set())
        self.assertIn("\033[0;30;4", text)

    def test_no_colour(self):
        for env in ({"TERM": "dumb"}, {"TERM": "xterm-256color", "NO_COLOR": "1"}, {"NO_COLOR": "x", "COLORTERM": "truecolor", "TERM": "xterm"}, {}):
            for words in (("plan", *AURORA), ("explain", *AURORA), ("topo",), ("plan", "--picture", *AURORA), ("run", "-h")):
                self.assertNotIn("\033", on_terminal(*words, env=clean_env(**env)), (env, words))
        self.assertIn("\033", on_terminal("plan", *AURORA, env=clean_env(TERM="xterm", NO_COLOR="")))


class Hosts(Test):
    """Text about many nodes is short, whatever their names."""

    def names(self, kind):
        shuffle = random.Random(7)
        letters = lambda: "".join(shuffle.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(8))
        return {"numbered": ["x4%05dc0s%db0n0.hostmgmt2000.cm.example.org" % (i // 8, i % 8) for i in range(10624)],
                "random": ["%s%d" % (letters(), i) for i in range(10624)],
                "gaps": ["n%06d" % i for i in sorted(shuffle.sample(range(10 ** 6), 10624))]}[kind]

    def test_bytes_at_10624_nodes(self):
        for kind in ("numbered", "random", "gaps"):
            hosts = self.file("hosts", "".join(name + "\n" for name in self.names(kind)))
            for words, most in ((("explain",), 25000), (("explain", "hosts"), 4000), (("plan",), 5000), (("plan", "-v"), 10000)):
                done = hpclaunch(words[0], *AURORA, "-N", "10624", "--hostfile", hosts, *words[1:])
                self.assertLess(len(done.raw_out), most, (kind, words))
                self.assertLess(len(done.raw_err), 2000, (kind, words))
            self.assertIn("10624 nodes", hpclaunch("plan", *AURORA, "-N", "10624", "--hostfile", hosts).out)

    def test_brackets(self):
        hosts = self.file("hosts", "n08\nn09\nn10\nn12\ngpu1\n")
        done = hpclaunch("plan", "--topology", machine("laptop-8.xml"), "--hostfile", hosts, "--launcher", "hydra")
        self.has(done, "hosts     n[08-10,12],gpu1\n")
        plan = self.json("plan", "--topology", machine("laptop-8.xml"), "--hostfile", hosts, "--launcher", "hydra")
        self.assertEqual(plan["hosts"], ["n08", "n09", "n10", "n12", "gpu1"])


class Plan(Test):
    def test_verbose_has_every_variable_and_each_reason_once(self):
        done = hpclaunch("plan", "-v", *AURORA, "-N", "4")
        flat = " ".join(done.out.split())
        for one in self.json("plan", *AURORA, "-N", "4")["env"]:
            self.assertIn(one["name"] + "=", flat)
        self.assertEqual(flat.count("one thread per core, as OMP_NUM_THREADS"), 1)
        self.assertLess(len(done.out.splitlines()), 80)

    def test_verbose_has_the_whole_command(self):
        for site in ("aurora", "polaris", "beluga"):
            words = ("--profile", site, "--ppn", "12", "-N", "4", "--", "/bin/echo", "word " * 30)
            argv = self.json("plan", *words)["argv"]
            flat = "".join(on_terminal("plan", "-v", *words).split("command")[-1].split()).replace("'", "")
            self.assertIn("".join("".join(argv).split()), flat)
            self.assertNotIn("bytes)", flat)

    def test_values_with_blanks_are_quoted(self):
        done = hpclaunch("plan", "-n", "1", "--set", "NCCL_NET=AWS Libfabric", "--set", "A=b")
        self.has(done, "  command line:  A=b  NCCL_NET='AWS Libfabric'\n")

    def test_default_names_what_a_plain_launch_lacks(self):
        words = ("plan", "--topology", machine("laptop-8.xml"), "-n", "2", "--set", "MINE=7")
        self.has(hpclaunch(*words), "  command line:  MINE=7\n")
        self.assertNotIn("OMP_NUM_THREADS", hpclaunch(*words).out)
        self.has(hpclaunch(*words, "-v"), "OMP_NUM_THREADS=")
        env = clean_env(OMP_NUM_THREADS="3")
        self.has(hpclaunch(*words, env=env), "OMP_NUM_THREADS=3")
        self.assertNotIn("hf_secret", hpclaunch(*words, "--set", "HF_TOKEN=hf_secret").out)


class Json(Test):
    def test_explain(self):
        words = ("--topology", machine("laptop-8.xml"), "-n", "2")
        plan = self.json("plan", *words)
        told = self.json("explain", *words)
        self.assertEqual(told["schema"], 1)
        self.assertEqual([one["name"] for one in told["env"]], [one["name"] for one in plan["env"]])
        self.assertEqual(told["choices"][0]["name"], plan["choices"][0]["name"])
        one = self.json("explain", *words, "OMP_NUM_THREADS", "launcher")
        self.assertEqual([[s["name"] for s in one[kind]] for kind in ("choices", "env")], [["launcher"], ["OMP_NUM_THREADS"]])
        self.assertEqual(hpclaunch("explain", "--json", *words, "OMP_NUM_TREADS").status, 1)
        notes = self.json("explain", "--profile", "aurora", "-N", "1", "copper")["notes"]
        self.assertEqual([note["name"] for note in notes], ["copper"])

    def test_every_document_has_its_version(self):
        for words in (("plan", "-n", "1"), ("explain", "-n", "1"), ("topo",)):
            self.assertEqual(self.json(*words)["schema"], 1)

    def test_topo_writes_hwloc_xml(self):
        text = self.ok(hpclaunch("topo", "--xml")).out
        self.assertRegex(ElementTree.fromstring(text).get("version", ""), r"^\d")
        again = self.file("node.xml", text)
        live, read = (self.json("topo", *more) for more in ((), ("--topology", again)))
        self.assertEqual(live["cores"], read["cores"])
        self.assertIn("<topology", self.ok(hpclaunch("topo", "--xml", "--topology", machine("laptop-8.xml"))).out)
        self.refused(2, "topo", "--xml", "--topology", machine("hbm-2x48-snc4.json"), says=["hwloc XML", "--json"])
        self.refused(2, "topo", "--xml", "--json", says=["--xml"])


class Complete(Test):
    def offered(self, *words, env=None):
        return [line.split("\t")[0] for line in self.ok(hpclaunch("complete", "--", *words, env=env)).out.splitlines()]

    def test_values(self):
        profiles = [line.split()[0] for line in hpclaunch("profile", "list").out.splitlines()[1:] if line.strip()]
        offered = self.offered("run", "--profile", "")
        for name in ("aurora", "frontier", "none", "@files"):
            self.assertIn(name, offered)
        self.assertIn("aurora", profiles)
        self.assertEqual(self.offered("run", "--profile", "auro"), ["aurora", "@files"])
        self.assertEqual(self.offered("run", "--profile=auro"), ["--profile=aurora", "@files"])
        self.assertEqual(self.offered("run", "--profile", "=", "auro"), ["aurora", "@files"])  # bash splits at "="
        self.assertIn("slurm", self.offered("run", "--launcher", ""))
        stacks = self.offered("plan", "--profile", "aurora", "--stack", "")
        self.assertIn("frameworks-2024", stacks)
        self.assertLess(set(stacks), set(self.offered("plan", "--stack", "")))
        self.assertTrue(self.offered("plan", "--profile", "perlmutter", "--node-type", ""))
        self.assertIn("tile", self.offered("plan", "--profile", "aurora", "--device-mode", ""))
        self.assertIn("NCCL_DEBUG=", self.offered("run", "--set", "NCCL_DEB"))
        self.assertIn("NCCL_DEBUG", self.offered("run", "--unset", "NCCL_DEB"))
        self.assertIn("NCCL_DEBUG", self.offered("explain", "NCCL_DEB"))
        self.assertEqual(self.offered("run", "--log-dir", ""), ["@directories"])

    def test_profiles_that_can_be_used(self):
        self.assertEqual(sorted(self.offered("plan", "--profile", "")), sorted([*sites(), "none", "@files"]))
        self.assertLess(set(sites()), set(self.offered("profile", "show", "")))
        stacks = self.offered("plan", "--stack", "")
        self.assertEqual(len(stacks), len(set(stacks)))

    def test_choices(self):
        offered = self.offered("explain", "")
        for site in sites():
            for choice in self.json("plan", "--profile", site, "-N", "2")["choices"]:
                if not re.match(r"-|batch ", choice["name"]):
                    self.assertIn(choice["name"], offered)
        self.assertEqual(self.offered("explain", "cpu"), ["cpu-bind"])

    def in_bash(self, *lines):
        """What an interactive bash makes of each line and TAB."""
        folder = os.path.join(self.folder, "here")
        for name in ("plan", "aurora", "files"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        path = os.path.dirname(support.HPCLAUNCH) + ":" + os.environ["PATH"]
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, b"\x28\x00\xc8\x00" + b"\x00" * 4)
        child = subprocess.Popen([need("bash"), "--norc", "--noprofile", "-i"], stdin=slave, stdout=slave, stderr=slave, cwd=folder,
                                 env=clean_env(TERM="dumb", PATH=path, PS1="$ ", INPUTRC="/dev/null"), start_new_session=True,
                                 preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        os.write(master, b"source <(hpclaunch completion bash); echo rea''dy\n")
        until(master, lambda text: "ready\r\n" in text and text.endswith("$ "))
        found = []
        for line in lines:
            os.write(master, line.encode() + b"\t")
            os.write(master, b"|")  # read after the completion
            text = until(master, lambda text: "|" in text)
            found.append(text.split("$ ")[-1].replace("\a", "").split("|")[0].strip("\r"))
            os.write(master, b"\x15\n")  # clears the line
            until(master, lambda text: text.endswith("\n$ "))
        os.write(master, b"exit\n")
        child.wait(LIMIT)
        os.close(master)
        return found

    def test_in_bash(self):
        wanted = {"hpclaunch run --set OMP_NUM_TH": "hpclaunch run --set OMP_NUM_THREADS=",
                  "hpclaunch run --set=OMP_NUM_TH": "hpclaunch run --set=OMP_NUM_THREADS=",
                  "hpclaunch run --unset OMP_NUM_TH": "hpclaunch run --unset OMP_NUM_THREADS ",
                  "hpclaunch pl": "hpclaunch plan ",
                  "hpclaunch plan --profile auro": "hpclaunch plan --profile aurora ",
                  "hpclaunch plan --profile=auro": "hpclaunch plan --profile=aurora ",
                  "hpclaunch plan --log-dir fi": "hpclaunch plan --log-dir files/",
                  "hpclaunch run ./pl": "hpclaunch run ./plan/",
                  "hpclaunch explain cpu": "hpclaunch explain cpu-bind "}
        self.assertEqual(dict(zip(wanted, self.in_bash(*wanted))), wanted)

    def test_words(self):
        self.assertEqual(self.offered("pl"), ["plan"])
        self.assertEqual(set(self.offered("")) - {"--help", "--version"}, set(COMMANDS))
        self.assertEqual(self.offered("profile", "val"), ["validate"])
        self.assertIn("aurora", self.offered("profile", "show", "au"))
        self.assertEqual(self.offered("topo", ""), [])
        self.assertEqual(self.offered("frobnicate", ""), [])
        self.assertEqual(self.offered("completion", ""), ["bash", "zsh", "fish"])

    def test_no_command_of_path(self):
        folder = os.path.dirname(self.file("bin/zzz-on-path", "#!/bin/sh\n", 0o755))
        env = clean_env(PATH=folder + ":" + os.environ["PATH"])
        for words in (("run", "zzz"), ("run", "--", "zzz"), ("run", ""), ("run", "python3", "--la")):
            self.assertEqual(self.offered(*words, env=env), ["@files"])


class Run(Test):
    def test_verbose_prints_the_start(self):
        done = self.ok(hpclaunch("run", "-v", "-n", "2", "--oversubscribe", "--", "/bin/echo", "hello world"))
        self.assertEqual(done.out, "hello world\n" * 2)
        first, second = done.err.splitlines()[:2]
        self.assertRegex(first, r"^hpclaunch: starting 2 ranks on 1 node \(%s\) with local$" % re.escape(support.HOST))
        self.assertIn("'hello world'", second)
        self.assertEqual(self.ok(hpclaunch("run", "-n", "1", "--", "/bin/true")).err, "")

    def test_ctrl_c_says_what_it_waits_for(self):
        script = "trap 'exit 3' TERM; trap : INT; echo ready; while :; do sleep 0.05; done"
        for again, grace, end in ((False, "0.5", "hpclaunch: interrupted (Ctrl-C); killed 2 ranks that still ran 0.5 s later\r\n"),
                                  (True, "100", "hpclaunch: interrupted (Ctrl-C); killed 2 ranks\r\n")):
            master, slave = pty.openpty()
            child = subprocess.Popen([support.HPCLAUNCH, "run", "-n", "2", "--oversubscribe", "--grace", grace, "--", "/bin/sh", "-c", script],
                                     stdin=slave, stdout=slave, stderr=slave, env=clean_env(TERM="xterm"), start_new_session=True,
                                     preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
            os.close(slave)
            until(master, lambda text: text.count("ready") == 2)
            os.write(master, b"\003")
            text = until(master, lambda text: "again to kill\r\n" in text)
            self.assertIn("hpclaunch: stopping: waiting up to %s s for 2 ranks; Ctrl-C again to kill\r\n" % grace, text)
            if again:
                os.write(master, b"\003")
            text = until(master, lambda text: "killed 2 ranks" in text and text.endswith("\n"))
            self.assertTrue(text.endswith(end), text)
            self.assertNotIn("failed", text)
            self.assertEqual(child.wait(LIMIT), 128 + signal.SIGINT)
            os.close(master)


if __name__ == "__main__":
    support.main()
