#!/usr/bin/env python3
"""Help, docs/reference/cli.md, manual page and completions name the same commands and options."""
import glob
import os
import re
import subprocess

import support
from support import COMMANDS, ROOT, Test, execute, hpclaunch, need


def options_of_help(command):
    """Each spelling in the first column of COMMAND --help."""
    found = set()
    for line in hpclaunch(command, "--help").out.splitlines():
        match = re.match(r"  ((?:-\w|--[\w-]+)(?:, (?:-\w|--[\w-]+))*)(?: |$)", line)
        if match:
            found.update(match.group(1).split(", "))
    return found


def on_path():
    return support.clean_env(PATH=os.path.dirname(os.path.realpath(support.HPCLAUNCH)) + ":" + os.environ["PATH"])


def page():
    with open(os.path.join(ROOT, "docs", "reference", "cli.md")) as file:
        return file.read()


def sections():
    """docs/reference/cli.md by its headings of second level, as lists of lines."""
    parts, name = {}, ""
    for line in page().splitlines():
        if line.startswith("## "):
            name = line[3:]
        parts.setdefault(name, []).append(line)
    return parts


def options_of_table(lines):
    """Spellings in the first cell of each row: | `-n`, `--ranks N` | ... |"""
    found = set()
    for line in lines:
        if line.startswith("| `-"):
            found.update(word.split()[0] for word in re.findall(r"`(-[^`]+)`", line.split(" | ")[0]))
    return found


class Page(Test):
    def test_options(self):
        parts = sections()
        shared = options_of_table(parts["Options of run, plan, env and explain"])
        self.assertGreater(len(shared), 20)
        for command in COMMANDS:
            documented = options_of_table(parts["hpclaunch " + command]) | {"-h", "--help"}
            if command in support.SHARING:
                self.assertEqual(documented & shared, set(), command)
                documented |= shared
            self.assertEqual(documented, options_of_help(command), command)

    def test_usage_lines_and_choices(self):
        text = page()
        for command in COMMANDS:
            usage = re.search(r"(?m)^Usage: (.*)$", hpclaunch(command, "--help").out).group(1).strip()
            self.assertIn(usage, text)
        self.assertEqual(hpclaunch("complete", "--", "run", "--bind-via", "").out, "launcher\nshim\nnone\n")
        for option in ("--bind-via", "--gpu-view", "--local-rank", "--verify", "--on-drift", "--launcher"):
            for choice in hpclaunch("complete", "--", "run", option, "").out.split():
                self.assertIn("`%s`" % choice, text)

    def test_names_only_commands_that_exist(self):
        text = page()
        for name in re.findall(r"(?m)^## hpclaunch (\S+)", text):
            self.assertIn(name, COMMANDS)

    def test_no_line_wider_than_the_page(self):
        for number, line in enumerate(page().splitlines(), 1):
            self.assertLessEqual(len(line), 220, "line %d" % number)


class Tests(Test):
    def test_every_option_of_run_is_typed_by_a_test(self):
        """CONTRIBUTING.md, "An option of run"."""
        text = ""
        for name in glob.glob(os.path.join(ROOT, "tests", "**", "*_test.py"), recursive=True):
            if not name.endswith("docs_test.py"):
                with open(name, encoding="utf-8") as file:
                    text += file.read()
        typed = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text))
        for line in hpclaunch("run", "--help").out.splitlines():
            names = re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", re.split(r"  +", line.strip())[0]) if line.startswith("  -") else []
            if names:
                self.assertTrue(typed & set(names), "tests/cli/: expected a test that types %s and looks at what it does" % " or ".join(names))


class Manual(Test):
    def test_has_every_option(self):
        page = self.ok(hpclaunch("man")).out
        plain = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "")
        shared, commands = plain.split(".SH SHARED OPTIONS", 1)[1].split(".SH COMMANDS", 1)
        parts = re.split(r"(?m)^\.SS hpclaunch ", commands)
        by_command = {part.split()[0]: part for part in parts[1:]}
        self.assertEqual(sorted(by_command), sorted(COMMANDS))
        for command in COMMANDS:
            for option in options_of_help(command):
                line = r"(?m)^(.*, )?%s(,| |$)" % re.escape(option)
                self.assertRegex(by_command[command] + (shared if command in support.SHARING else ""), line, command)
        self.assertEqual(plain.count("\n--hostfile "), 1, "shared options stand once")
        self.assertIn(".SH EXAMPLES", plain)

    def test_formats_without_a_warning(self):
        page = self.file("hpclaunch.1", hpclaunch("man").out)
        done = execute([need("groff"), "-man", "-ww", "-Tascii", page])
        self.ok(done)
        self.assertEqual(done.err, "")
        text = re.sub("\x1b\\[[0-9;]*m|.\b", "", done.out)
        for words in ("NAME", "SYNOPSIS", "EXIT STATUS", "--ranks-per-node", "hpclaunch run"):
            self.assertIn(words, text)
        self.assertNotIn("\\", text.replace("\\n", ""))


class Completion(Test):
    def bash(self, *words):
        """COMPREPLY for a line of these words, with the cursor at the end of the last one."""
        script = self.file("hpclaunch.bash", hpclaunch("completion", "bash").out)
        line = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hpclaunch; printf "%s\\n" "${COMPREPLY[@]}"'
        done = self.ok(execute([need("bash"), "--norc", "-c", line, "x", script, *words], cwd=self.folder, env=on_path()))
        self.assertEqual(done.err, "")
        return done.out.split()

    def test_bash_script_is_one(self):
        script = self.file("hpclaunch.bash", hpclaunch("completion", "bash").out)
        self.assertEqual(self.ok(execute([need("bash"), "-n", script])).err, "")

    def test_bash_commands(self):
        self.assertEqual(self.bash("hpclaunch", "ru"), ["run"])
        self.assertEqual(set(self.bash("hpclaunch", "")) - {"--help", "--version"}, set(COMMANDS))

    def test_bash_options(self):
        self.assertEqual(self.bash("hpclaunch", "run", "--lau"), ["--launcher", "--launcher-arg"])
        self.assertEqual(self.bash("hpclaunch", "run", "-n", "2", "--dry"), ["--dry-run"])
        self.assertEqual(self.bash("hpclaunch", "topo", "--js"), ["--json"])
        for command in COMMANDS:
            offered = set(self.bash("hpclaunch", command, "-")) - {"--"}
            expected = options_of_help(command)
            self.assertEqual(expected - offered - {"-h"}, set(), command)
            self.assertEqual(offered - expected, set(), command)

    def test_bash_values(self):
        self.assertEqual(self.bash("hpclaunch", "run", "--bind-via", "l"), ["launcher"])
        self.assertEqual(self.bash("hpclaunch", "env", "--format", "d"), ["dotenv"])
        self.assertEqual(self.bash("hpclaunch", "completion", "f"), ["fish"])
        self.file("some.xml", "")
        self.assertEqual(self.bash("hpclaunch", "plan", "--topology", "so"), ["some.xml"])

    def test_bash_values_of_the_sites(self):
        self.assertEqual(self.bash("hpclaunch", "run", "--profile", "fronti"), ["frontier"])
        self.assertEqual(self.bash("hpclaunch", "run", "--profile", "=", "fronti"), ["frontier"])
        self.assertIn("frameworks-2024", self.bash("hpclaunch", "run", "--profile", "aurora", "--stack", ""))
        self.assertEqual(self.bash("hpclaunch", "explain", "NCCL_DEBUG_SUB"), ["NCCL_DEBUG_SUBSYS"])
        self.assertEqual(self.bash("hpclaunch", "run", "bas"), [])  # a command of PATH

    def test_bash_after_the_program_offers_files(self):
        self.file("train.py", "")
        self.assertEqual(self.bash("hpclaunch", "run", "--", "python3", "tra"), ["train.py"])
        self.assertEqual(self.bash("hpclaunch", "run", "--", "python3", "--lau"), [])

    def test_fish(self):
        script = self.file("hpclaunch.fish", hpclaunch("completion", "fish").out)
        self.assertEqual(self.ok(execute([need("fish"), "--no-execute", script])).err, "")
        def offered(line):
            done = self.ok(execute([need("fish"), "--no-config", "-c", 'source $argv[1]; complete -C "$argv[2]"', script, line], env=on_path()))
            return [row.split("\t")[0] for row in done.out.splitlines()]
        self.assertEqual(offered("hpclaunch ru"), ["run"])
        self.assertEqual(sorted(offered("hpclaunch run --lau")), ["--launcher", "--launcher-arg"])
        self.assertEqual(offered("hpclaunch run --bind-via l"), ["launcher"])
        self.assertEqual(offered("hpclaunch completion f"), ["fish"])

    def test_zsh(self):
        text = self.ok(hpclaunch("completion", "zsh")).out
        self.assertTrue(text.startswith("#compdef hpclaunch torchrun-hpclaunch\n"))
        # bash reads the same quotes; it knows enough of the rest to find one that is left open.
        path = self.file("_hpclaunch", text)
        self.assertEqual(subprocess.run([need("bash"), "-n", path], stderr=subprocess.PIPE).stderr, b"")


if __name__ == "__main__":
    support.main()
