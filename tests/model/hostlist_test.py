#!/usr/bin/env python3
"""Lists of hosts as Slurm itself expands them: random lists and damaged ones, against `scontrol show hostnames`, which
needs no daemon but a configuration to read. Where we differ on purpose is written down in src/model/hostlist.cpp; each
difference is told here by its own test of the text, so that no other one passes for it.

    python3 hostlist_test.py PATH_OF_HOSTLIST_DRIVER [unittest arguments]
"""
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

DRIVER = None
END = "zz-end-zz"       # stands between lists that one scontrol expands
SLURM_RANGE = 65536     # hosts in one range of Slurm's
DAMAGED = 1500 if "HPCLAUNCH_TEST_ALL" in os.environ else 400  # each is a start of scontrol


def scontrol(text, env):
    """None: it complains, which may leave the exit status at 0, and some of the hosts out."""
    # What begins with a dash would be an option.
    # 22.05 counts without end from "[8a134-8134]": 5 s of processor time, however busy the machine is.
    done = subprocess.run(["scontrol", "show", "hostnames", END + "," + text], env=env, capture_output=True, timeout=600,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (5, 5)))
    if done.stderr or done.returncode != 0:
        return None
    return done.stdout.decode("latin-1").split()[1:]


def ours(lists):
    """For each list its hosts, or None."""
    text = b"".join(one.encode("latin-1") + b"\0" for one in lists)
    done = subprocess.run([DRIVER], input=text, capture_output=True, check=True, timeout=600)
    answers = done.stdout.decode("latin-1").split("\0")[:-1]
    assert len(answers) == len(lists), (len(answers), len(lists))
    return [answer.split("\n")[1:] if answer[0] == "+" else None for answer in answers]


class Lists:
    """Random lists of the grammar in the header of src/model/hostlist.cpp."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self, empty=0.2):
        if self.random.random() < empty:
            return ""
        return "".join(self.random.choice(["n", "x", "gpu", "rack", "-", ".", "1", "07", "_", "c"]) for _ in range(self.random.randint(1, 3)))

    def range(self):
        first = self.random.choice([0, 1, 5, 8, 9, 98, 99, 998, self.random.randint(0, 20000)])
        width = self.random.choice([0, 0, 2, 3, 6])
        if self.random.random() < 0.4:
            return str(first).zfill(width)
        last = first + self.random.choice([0, 1, 2, 3, 12])
        return "%s-%s" % (str(first).zfill(width), str(last).zfill(self.random.choice([0, width])))

    def group(self):
        return "[%s]" % ",".join(self.range() for _ in range(self.random.choice([1, 1, 2, 3])))

    def token(self):
        groups = self.random.choice([0, 0, 1, 1, 1, 1, 2, 2, 3, 4])
        if groups == 0:
            return self.text(0) + str(self.random.randint(0, 99))
        return "".join(self.text() + self.group() for _ in range(groups))

    def separator(self):
        return self.random.choice([",", ",", ",", ",,"])

    def list(self):
        out = self.token()
        for _ in range(self.random.choice([0, 0, 1, 2, 4])):
            out += self.separator() + self.token()
        return out

    def damaged(self):
        text = list(self.list())
        for _ in range(self.random.choice([1, 1, 2])):
            at = self.random.randrange(len(text) + 1)
            what = self.random.choice("idr")
            if what == "i" or at == len(text):
                text.insert(at, self.random.choice("[],-x 09a*"))
            elif what == "d":
                del text[at]
            else:
                text[at] = self.random.choice("[],-x 09a*")
            if not text:
                text = ["n"]
        return "".join(text)


def tokens(text):
    """Split at separators outside of brackets, as Slurm's _next_tok does."""
    out, depth, token = [], 0, ""
    for c in text:
        if c == "[":
            depth += 1
        if c == "]":
            depth -= 1
        if c in ", \t\n" and depth <= 0:
            out.append(token)
            token, depth = "", 0
        else:
            token += c
    return [t for t in out + [token] if t]


# What Slurm takes and we refuse: it reads something, and surely not what was meant.
def has_loose_bracket(text):
    """"n[1-2" is one host "n]" for Slurm, "n1]" a host of that name."""
    depth = 0
    for c in text:
        depth += (c == "[") - (c == "]")
        if depth not in (0, 1):
            return True
    return depth != 0


def has_open_range(text):
    """"n[1-]" is n1."""
    return re.search(r"\[[^\]]*\d-[ ]*[,\]]", text) is not None


def has_rest_of_a_number(text):
    """"n[1a-2]" is n01 and n02: the end of the first number is passed over."""
    return re.search(r"\[[^\]]*[^\[\],]*[^\d\[\],-][^\[\],-]*-", text) is not None


def has_blank_in_brackets(text):
    """"n[1, 2]" is n1 and n02."""
    return re.search(r"\[[^\]]*[ \t\n]", text) is not None


ODD = (has_loose_bracket, has_open_range, has_rest_of_a_number, has_blank_in_brackets)


# What we take and Slurm refuses.
def has_suffix(text):
    """"n[1-2]-ib0": since Slurm 23.11 only."""
    return any(re.search(r"\][^\[\]]+$", token) for token in tokens(text))


def is_large(text):
    """More than 65,536 hosts in one range, or numbers beyond 32 bits."""
    for low, high in re.findall(r"(\d+)-(\d+)", text):
        if int(high) - int(low) >= SLURM_RANGE:
            return True
    return any(len(number) > 9 for number in re.findall(r"\d+", text))


class HostLists(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        path = os.environ.get("PATH", "") + ":/usr/bin:/bin"
        if shutil.which("scontrol", path=path) is None:
            raise AssertionError("not installed: scontrol (package slurm-client)")
        cls.folder = tempfile.mkdtemp(prefix="hpclaunch-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        conf = os.path.join(cls.folder, "slurm.conf")
        with open(conf, "w") as file:
            file.write("ClusterName=test\nSlurmctldHost=localhost\n")
        cls.env = {"PATH": path, "SLURM_CONF": conf, "LC_ALL": "C"}
        if scontrol("n[1-2]", cls.env) != ["n1", "n2"]:
            raise AssertionError("scontrol show hostnames does not work here")
        cls.suffixes = scontrol("n[1-2]-x", cls.env) is not None

    def slurms(self, lists):
        """Well-formed lists, many in each call."""
        answers = []
        for at in range(0, len(lists), 100):
            batch = lists[at:at + 100]
            hosts = scontrol(",".join(one + "," + END for one in batch), self.env)
            self.assertIsNotNone(hosts, batch[:3])
            answer = []
            for host in hosts:
                if host == END:
                    answers.append(answer)
                    answer = []
                else:
                    answer.append(host)
        self.assertEqual(len(answers), len(lists))
        return answers

    def test_well_formed_lists(self):
        lists = Lists(1)
        texts = [lists.list() for _ in range(4000)]
        for text, want, have in zip(texts, self.slurms(texts), ours(texts)):
            self.assertEqual(have, want, text)
        self.assertGreater(sum(text.count("[") > 2 for text in texts), 500)

    def test_text_behind_the_last_bracket(self):
        """Slurm 23.11 can; an older one says what the list is without it, and the text comes behind each host."""
        lists = Lists(2)
        bare = ["".join(lists.text() + lists.group() for _ in range(lists.random.randint(1, 3))) for _ in range(1000)]
        ends = [lists.random.choice(["-ib0", "s0b0n0", ".site.org", "x"]) for _ in bare]
        texts = [a + b for a, b in zip(bare, ends)]
        if self.suffixes:
            wanted = self.slurms(texts)
        else:
            wanted = [[host + end for host in hosts] for hosts, end in zip(self.slurms(bare), ends)]
        for text, want, have in zip(texts, wanted, ours(texts)):
            self.assertEqual(have, want, text)

    def test_damaged_lists(self):
        lists = Lists(3)
        texts = [lists.damaged() for _ in range(DAMAGED)]
        counts = {"both": 0, "neither": 0, "slurm": 0, "ours": 0}
        for text, have in zip(texts, ours(texts)):
            if have is not None and len(have) > 50000:  # scontrol takes minutes
                continue
            if have is None and any(odd(text) for odd in ODD):  # Slurm may read anything, and 22.05 may count without end
                continue
            want = scontrol(text, self.env)
            if want is not None and have is not None:
                counts["both"] += 1
                self.assertEqual(have, want, text)
            elif want is None and have is None:
                counts["neither"] += 1
            elif have is None:
                counts["slurm"] += 1
                self.assertFalse(want, text)
            else:
                counts["ours"] += 1
                self.assertTrue(has_suffix(text) or is_large(text), text)
        self.assertGreater(counts["both"], DAMAGED / 5, counts)
        self.assertGreater(counts["neither"], DAMAGED / 25, counts)

    def test_the_differences_are_as_documented(self):
        for text, want in (("n[1-2", ["n]"]), ("n1]", ["n1]"]), ("n[1-]", ["n1"]), ("n[1a-2]", ["n01", "n02"]), ("n[1, 2]", ["n1", "n02"])):
            self.assertEqual((scontrol(text, self.env), ours([text])), (want, [None]), text)
        text = "n[1-%d]" % (SLURM_RANGE + 1)
        self.assertIsNone(scontrol(text, self.env))
        self.assertEqual(len(ours([text])[0]), SLURM_RANGE + 1)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: %s PATH_OF_HOSTLIST_DRIVER [unittest arguments]" % sys.argv[0])
    DRIVER = os.path.abspath(sys.argv[1])
    del sys.argv[1]
    unittest.main()
