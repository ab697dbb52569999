#!/usr/bin/env python3
"""The catalogue of variables from outside: its files against the published schema, the program that
compiles them against broken input, and what `hpclaunch` says with it.

    knowledge_test.py HPCLAUNCH HPCLAUNCH_CATALOGUE SOURCE_FOLDER
"""
import datetime
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HPCLAUNCH, CATALOGUE, ROOT = sys.argv[1:4]
FILES = sorted(glob.glob(os.path.join(ROOT, "profiles/variables/*.json")))
DATA = [f for f in FILES if not f.endswith("/schema.json")]
MACHINE = os.path.join(ROOT, "tests/machines/laptop-8.xml")


def load(path):
    with open(path, encoding="ascii") as handle:
        return json.loads(re.sub(r"^\s*//.*$", "", handle.read(), flags=re.M))


SCHEMA = load(os.path.join(ROOT, "profiles/variables/schema.json"))
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def is_kind(value, kind):
    return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def faults(value, schema, place=""):
    """The part of JSON Schema that ours uses, so that the test needs no package."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_kind(value, kind) for kind in kinds):
        yield "%s: not %s" % (place, kinds)
        return
    if "enum" in schema and value not in schema["enum"]:
        yield "%s: %r not among %s" % (place, value, schema["enum"])
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield "%s: %r against %s" % (place, value, schema["pattern"])
    if "anyOf" in schema and all(list(faults(value, one, place)) for one in schema["anyOf"]):
        yield "%s: none of anyOf" % place
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        yield "%s: empty" % place
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0) or (schema.get("uniqueItems") and len(set(map(str, value))) < len(value)):
            yield "%s: empty or not unique" % place
        for item in value:
            yield from faults(item, schema.get("items", {}), place)
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield "%s: no %s" % (place, name)
        for name, member in value.items():
            other = schema.get("additionalProperties", True)
            if not re.search(schema.get("propertyNames", {}).get("pattern", ""), name):
                yield "%s: name %r" % (place, name)
            if name in schema.get("properties", {}):
                yield from faults(member, schema["properties"][name], place + "/" + name)
            elif other is False:
                yield "%s: unknown member %s" % (place, name)
            elif isinstance(other, dict):
                yield from faults(member, other, place + "/" + name)


def run(*words, env=None):
    clean = {"PATH": os.environ["PATH"], "HOME": "/"}
    clean.update(env or {})
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=clean, timeout=120)


def compiled(texts, *options):
    """How hpclaunch-catalogue ends with these files, and what it writes."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, "f%d.json" % i) for i in range(len(texts))]
        for path, text in zip(paths, texts):
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(text)
        output = os.path.join(folder, "out.cpp")
        done = run(CATALOGUE, *options, output, *paths)
        text = ""
        if os.path.exists(output):
            with open(output, encoding="ascii") as handle:
                text = handle.read()
        return done, text


class Data(unittest.TestCase):
    def test_files_obey_the_schema(self):
        self.assertGreater(len(DATA), 40)
        for path in DATA:
            self.assertEqual(list(faults(load(path), SCHEMA, os.path.basename(path))), [])

    def test_names_are_sorted_and_stand_in_one_file_only(self):
        home = {}
        for path in DATA:
            names = list(load(path).get("variables", {}))
            self.assertEqual(names, sorted(names), path)
            for name in names:
                self.assertNotIn(name, home)
                home[name] = path
        self.assertGreater(len(home), 6000)

    def test_a_prefix_of_a_library_is_a_family(self):
        """CONTRIBUTING.md, "A variable or library"."""
        families = load(os.path.join(ROOT, "profiles/variables/families.json"))["families"]
        for path in DATA:
            names = load(path).get("variables", {})
            prefixes = {name.split("_")[0] + "_" for name in names}
            if len(names) < 2 or len(prefixes) > 1:
                continue
            prefix = prefixes.pop()
            self.assertTrue([family for family in families if family.startswith(prefix) or prefix.startswith(family.rstrip("*"))],
                            'profiles/variables/families.json: expected "%s*": %s has all names that begin so; say in "unknown" what '
                            "other names mean" % (prefix, os.path.basename(path)))

    def test_sentences_are_sentences_of_one_line(self):
        for path in DATA:
            for name, v in load(path).get("variables", {}).items():
                what = v.get("what", "X.")
                self.assertRegex(what, r"^[A-Z0-9].*[^.]\.$|^X\.$", name)
                self.assertLessEqual(len(what), 160, name)


def newest_release():
    """The date in CHANGELOG.md's or CITATION.cff's newest release; None before the first."""
    dates = []
    for name, pattern in (("CHANGELOG.md", r"^## \[[0-9.]+\] - (\d{4}-\d{2}-\d{2})"), ("CITATION.cff", r"^date-released: \W?(\d{4}-\d{2}-\d{2})")):
        with open(os.path.join(ROOT, name), encoding="utf-8") as handle:
            dates += re.findall(pattern, handle.read(), re.M)
    return max(map(datetime.date.fromisoformat, dates), default=None)


def stale(release):
    """Libraries that were read more than 90 days before a release, with the date."""
    read = {load(path)["library"]: load(path)["read"]["on"] for path in DATA if "variables" in load(path)}
    return {name: on for name, on in read.items() if (release - datetime.date.fromisoformat(on)).days > 90}


class Age(unittest.TestCase):
    def test_a_release_has_fresh_facts(self):
        release = newest_release()
        if release is None:
            with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as handle:
                self.assertIn("Nothing has been released yet", handle.read())
        else:
            self.assertEqual(stale(release), {}, "read again with scripts/refresh-variables before %s is released" % release)

    def test_90_days_are_counted(self):
        day = datetime.date.fromisoformat(load(os.path.join(ROOT, "profiles/variables/nccl.json"))["read"]["on"])
        self.assertNotIn("nccl", stale(day + datetime.timedelta(days=90)))
        self.assertIn("nccl", stale(day + datetime.timedelta(days=91)))


class Compiler(unittest.TestCase):
    """hpclaunch-catalogue: every mistake has a file and a line."""

    GOOD = """{
  "library": "x", "title": "X", "read": {"up_to": "X 1.2", "on": "2026-11-28"},
  "variables": {
    "X_A": {"type": "int", "min": 1, "default": 2, "read_by": "r:p", "confidence": "source"},
    "X_B": {"type": "enum", "values": ["a", "b"], "default": "a", "read_by": "r:p", "confidence": "docs"}
  }
}
"""

    def compile(self, *texts):
        return compiled(texts)

    def refuses(self, text, line, *parts):
        done, output = self.compile(text)
        self.assertEqual((done.returncode, output), (1, ""), done.stderr)
        self.assertRegex(done.stderr, r"f0\.json:%d(:\d+)?: error: " % line)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_good_and_the_same_twice(self):
        first, text = self.compile(self.GOOD)
        self.assertEqual((first.returncode, first.stderr), (0, ""))
        self.assertIn("X_A", text)
        self.assertEqual(self.compile(self.GOOD)[1], text)

    def test_mistakes(self):
        good = self.GOOD
        self.refuses(good.replace('"min"', '"mni"'), 4, 'unknown key "mni"', 'did you mean "min"?')
        self.refuses(good.replace('"enum"', '"enmu"'), 5, '"enmu" is not one of', 'did you mean "enum"?')
        self.refuses(good.replace('"default": 2', '"default": 0'), 4, "the default of X_A", "is below 1")
        self.refuses(good.replace('"default": "a"', '"default": "c"'), 5, "the default of X_B", "is not a or b")
        self.refuses(good.replace('["a", "b"]', '["a", "a"]'), 5, '"values" has "a" twice')
        self.refuses(good.replace("X_B", "X_A"), 5, '"X_A" appears twice')
        self.refuses(good.replace("X_B", "W"), 5, "W comes after X_A", "sort the names")
        self.refuses(good.replace("X_B", "X-B"), 5, '"X-B" is not a variable name')
        self.refuses(good.replace(', "confidence": "docs"', ""), 5, '"confidence" is missing')
        self.refuses(good.replace('"read_by": "r:p", "confidence": "docs"', '"confidence": "docs"'), 5, '"read_by" is missing')
        self.refuses(good.replace('"type": "int"', '"type": "int", "what": "No stop"'), 4, "full stop")
        self.refuses(good.replace('"type": "int"', '"type": "int", "note": "caf\u00e9"'), 4, "printable ASCII")
        self.refuses(good.replace('"type": "int"', '"type": "int", "renamed": "X_C"'), 4, "renamed to X_C")
        self.refuses(good.replace('"title": "X",', '"title": "X", "sentences": "required",'), 4, 'no sentence "what"')
        self.refuses(good.replace('"on": "2026-11-28"', '"on": "yesterday"'), 2, '"yesterday" is not a date')
        self.refuses(good.replace(', "read": {"up_to": "X 1.2", "on": "2026-11-28"}', ""), 1, '"read" is missing')
        self.refuses(good.replace('"min": 1,', '"min": "1",'), 4, '"min" must be an integer')
        self.refuses(good.replace("\"source\"},\n", "\"source\"},,\n"), 4)
        self.refuses("", 1)
        self.refuses("[]", 1, "expected an object")
        self.refuses("{}", 1, 'none of "variables"')
        self.refuses('{"cautions": {"X": [{"kind": "slow", "why": "w", "source": "s"}]}}', 1, "X is not a variable")
        self.refuses('{"cautions": {"X": [{"kind": "fast", "why": "w", "source": "s"}]}}', 1, '"fast"')
        self.refuses('{"misspellings": {"X": {"meant": "Y"}}}', 1, "Y is not a variable")
        issue = '{"known_issues": [{"id": "i", "when": {"rccl": {"%s": "%s"}}, %s"effect": "hang", "why": "w", "fix": "f", "source": "s", "checked": "2026-11-25"}]}'
        self.refuses(issue % ("before", "2.1", ""), 1, '"before" is none of eq, ne')
        self.refuses(issue % ("lt", "next", ""), 1, '"next" is not a version')
        self.refuses(issue % ("lt", "2.1", '"with": ["!X"], '), 1, "X is not a variable")
        self.refuses(issue.replace("%s\": \"%s\"", "") % "", 1)

    def test_a_name_in_two_files(self):
        done, _ = self.compile(self.GOOD, self.GOOD)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"f1\.json:4:5: error: X_A is also in .*f0\.json:4")

    def test_every_cut_is_refused_and_none_crashes(self):
        for end in range(0, len(self.GOOD) - 2, 7):
            done, output = self.compile(self.GOOD[:end])
            self.assertEqual((done.returncode, output), (1, ""), self.GOOD[:end])

    def test_the_table_is_constant(self):
        text = self.compile(self.GOOD)[1]
        for table in ("char kText[]", "Row<Library> kLibrary[]", "Row<Variable> kVariable[]",
                      "Row<Misspelling> kMisspelling[]", "Row<Family> kFamily[]"):
            self.assertIn("constexpr " + table, text)
        self.assertIn("constinit const Table kTable", text)


class Rows(unittest.TestCase):
    """hpclaunch-catalogue --rows: lists of rows (include/hpclaunch/rows.h)."""

    GOOD = """{
  "schema": 1,
  // a comment
  "mpi": [
    {"name": "a", "title": "A", "libraries": ["liba.so"], "srun": ["pmix"]},
    {"name": "a", "title": "B \\"?\\" é", "libraries": ["libb.so", "libc.so"], "srun": ["pmi2"]}
  ],
  "exclusions": [
    {"system": "x", "id": "1", "where": ["job"], "of": ["--a"], "with": ["--b", ["--cc", "-c"]], "effect": "ignored", "source": "s"}
  ]
}
"""

    def compile(self, *texts):
        return compiled(texts, "--rows")

    def refuses(self, text, place, *parts):
        done, output = self.compile(text)
        self.assertEqual((done.returncode, output), (1, ""), done.stderr)
        self.assertIn("f0.json:%s: error: " % place, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_rows_are_constants_and_the_same_twice(self):
        done, text = self.compile(self.GOOD)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("constexpr MpiNames kMpiNames[] = {", text)
        self.assertIn("std::span<const Exclusion> rows<Exclusion>()", text)
        self.assertIn('"B \\042\\077\\042 \\303\\251"', text)
        self.assertNotIn("StartingProgram", text)
        self.assertEqual(self.compile(self.GOOD)[1], text)

    def test_mistakes(self):
        good = self.GOOD
        self.refuses(good.replace(', "srun": ["pmix"]', ""), "5:5", '"srun" is missing')
        self.refuses(good.replace('"srun": ["pmix"]', '"srnu": ["pmix"]'), "5:59", 'unknown key "srnu"', 'did you mean "srun"?')
        self.refuses(good.replace('["liba.so"]', '"liba.so"'), "5:33", "expected a list of strings")
        self.refuses(good.replace('["liba.so"]', '[7]'), "5:47", "expected a string")
        self.refuses(good.replace('"A"', "true"), "5:19", "expected a string")
        self.refuses(good.replace('"libc.so"', '"libb.so"'), "6:67", '"libb.so" is there twice')
        self.refuses(good.replace('"A"', '"T"').replace('"B \\"?\\" é"', '"T"'), "6:19", '"T" is there twice')
        self.refuses(good.replace('"ignored"', '"ignroed"'), "9:98", '"ignroed" is not one of refused, ignored', 'did you mean "ignored"?')
        self.refuses(good.replace('"mpi": [', '"mip": ['), "4:3", 'unknown key "mip"', 'did you mean "mpi"?')
        self.refuses(good.replace('"schema": 1', '"schema": 2'), "2:3", "this program reads schema 1")
        self.refuses(good.replace("],\n", "],,\n"), "7:5")
        self.refuses("", "1:1")

    def test_a_name_in_two_files(self):
        done, _ = self.compile(self.GOOD, self.GOOD)
        self.assertEqual(done.returncode, 1)
        self.assertIn('f1.json:5:19: error: "A" is there twice', done.stderr)



class Program(unittest.TestCase):
    def explain(self, *names, status=0, env=None):
        done = run(HPCLAUNCH, "explain", "--topology", MACHINE, "-n", "2", *names, env=env)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_explain_adds_what_is_known(self):
        out = self.explain("OMP_NUM_THREADS").stdout
        self.assertIn("  accepts ", out)
        self.assertIn("  library     OpenMP", out)

    def test_explain_knows_what_the_plan_does_not_decide(self):
        out = self.explain("NCCL_IB_DISABLE").stdout
        self.assertIn("not set by hpclaunch", out)
        self.assertIn("NVIDIA/nccl:", out)
        self.assertIn("FI_CXI_OFLOW_BUF_SIZE", self.explain("FI_CXI_OVFLOW_BUF_SIZE").stdout)

    def test_explain_keeps_inside_the_width(self):
        for name in ("CCL_WORKER_AFFINITY", "FI_CXI_OFLOW_BUF_SIZE", "NCCL_ALGO", "MPIR_CVAR_ENABLE_GPU"):
            for line in self.explain(name).stdout.splitlines():
                self.assertTrue(len(line) <= 100 or " " not in line[13:], line)

    def test_explain_of_nothing(self):
        done = self.explain("MY_OWN", status=1)
        self.assertEqual(done.stdout, "")
        done = self.explain("NCCL_IB_DISBLE", "RANK", status=1)
        self.assertIn("did you mean NCCL_IB_DISABLE?", done.stderr)
        self.assertIn("RANK", done.stdout)

    def dry_run(self, *words, env=None):
        return run(HPCLAUNCH, "run", "--dry-run", "--topology", MACHINE, "-n", "2", *words, "--", "true", env=env)

    def test_set_is_checked(self):
        for words, parts in (
                ("NCCL_IB_DISABLE=true", ("error", "[bad-value]", "try: --set NCCL_IB_DISABLE=1")),
                ("FI_CXI_OVFLOW_BUF_SIZE=8", ("error", "[unknown-variable]", "try: --set FI_CXI_OFLOW_BUF_SIZE=8")),
                ("NCCL_SOKET_IFNAME=hsn0", ("warning", "[unknown-variable]", "try: --set NCCL_SOCKET_IFNAME=hsn0")),
                ("NCCL_TREE_THRESHOLD=0", ("warning", "[old-variable]", "try: hpclaunch explain NCCL_ALGO"))):
            done = self.dry_run("--set", words)
            self.assertEqual(done.returncode, 125 if "error" in parts else 0)
            for part in parts:
                self.assertIn(part, done.stderr)

    def test_errors_refuse_a_start_and_force_goes_on(self):
        line = [HPCLAUNCH, "run", "-n", "1", "--set", "NCCL_IB_DISABLE=true", "--", "sh", "-c", "echo started"]
        done = run(*line)
        self.assertEqual((done.returncode, done.stdout), (125, ""))
        line.insert(2, "--force")
        done = run(*line)
        self.assertEqual((done.returncode, done.stdout), (0, "started\n"), done.stderr)

    def test_exports_are_left_alone(self):
        quiet = self.dry_run(env={"NCCL_IB_DISABLE": "true", "NCCL_SOKET_IFNAME": "x", "MINE": "1"})
        self.assertEqual(quiet.stderr, "")
        done = self.dry_run(env={"FI_CXI_OVFLOW_BUF_SIZE": "8", "OMP_NUM_THREADS": "many"})
        self.assertEqual(done.stderr.count("warning: exported: "), 2)
        self.assertNotIn("error", done.stderr)


class Object(unittest.TestCase):
    def test_the_table_costs_no_relocations_and_no_code_at_start(self):
        found = glob.glob(os.path.join(os.path.dirname(CATALOGUE), "CMakeFiles/hpclaunch_knowledge.dir/generated/catalogue.cpp.*"))
        found = [f for f in found if f.endswith((".o", ".obj"))]
        if not found:
            self.skipTest("the compiler left no object file here")
        try:
            sections = run("readelf", "-SW", found[0]).stdout
            symbols = run("readelf", "-sW", found[0]).stdout
        except FileNotFoundError:
            self.skipTest("no readelf")
        if "__asan" in symbols:
            self.skipTest("the sanitizer registers every table at start")
        size = {name: int(octal, 16) for name, octal in
                re.findall(r"\] (\S+) +\S+ +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) ", sections)}
        self.assertGreater(size[".rodata"], 500000)
        self.assertFalse([name for name in size if name.startswith((".init_array", ".ctors"))])
        # Constant for a program at a fixed address (.rodata), written by the loader for another one (.data.rel.ro).
        pointers = sum(bytes_ for name, bytes_ in size.items() if name.startswith((".rela.data", ".rela.rodata"))) / 24
        self.assertLessEqual(pointers, 8)  # of kTable itself


class Refresh(unittest.TestCase):
    """scripts/refresh-variables: a checkout of a library against its file."""

    def test_new_and_missing_names(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "a.cc"), "w", encoding="utf-8") as source:
                source.write('NCCL_PARAM(IbDisable, "IB_DISABLE", 0);\nNCCL_PARAM(Invented, "INVENTED_HERE", 0);\nncclGetEnv("NCCL_ALGO");\n')
            done = run(os.path.join(ROOT, "scripts", "refresh-variables"), "nccl", folder)
            lines = done.stdout.splitlines()
            self.assertEqual([line for line in lines if line.startswith("new")], ["new      NCCL_INVENTED_HERE  a.cc"])
            self.assertIn("missing  NCCL_SOCKET_IFNAME", lines)
            self.assertNotIn("missing  NCCL_ALGO", lines)
            self.assertNotEqual(run(os.path.join(ROOT, "scripts", "refresh-variables"), "nccl", folder + "/none").returncode, 0)

    def new(self, library, name, text, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as source:
                source.write(text)
            if words:
                author = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
                for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "one"]):
                    self.assertEqual(run("git", "-C", folder, *command).returncode, 0)
                os.remove(path)  # only git has it
            done = run(os.path.join(ROOT, "scripts", "refresh-variables"), library, folder, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("new")]

    def test_each_source_has_its_way(self):
        for library, name, text, expected in (
                ("libfabric-cxi", "prov/cxi/src/a.c", 'fi_param_define(&cxip_prov, "rdzv_invented", FI_PARAM_BOOL, "x");', ["FI_CXI_RDZV_INVENTED"]),
                ("aws-ofi-nccl", "include/a.h", 'OFI_NCCL_PARAM_INT(x, "INVENTED", 1)', ["OFI_NCCL_INVENTED"]),
                ("vllm", "vllm/envs.py", '    "VLLM_INVENTED": lambda: os.getenv("VLLM_INVENTED", "0"),\n', ["VLLM_INVENTED"]),
                ("accelerate", "src/a.py", 'a = parse_flag_from_env("ACCELERATE_INVENTED")', ["ACCELERATE_INVENTED"]),
                ("accelerate", "tests/a.py", 'a = os.environ["ACCELERATE_INVENTED"]', []),
                ("mpich", "src/a.c", "    - name        : MPIR_CVAR_INVENTED\n", ["MPIR_CVAR_INVENTED"]),
                ("ucc", "src/a.c", 'getenv("UCC_INVENTED")', ["UCC_INVENTED"])):
            with self.subTest(library + " " + name):
                self.assertEqual(self.new(library, name, text), expected)

    @unittest.skipUnless(shutil.which("git"), "no git")
    def test_a_revision_of_a_git_directory(self):
        self.assertEqual(self.new("nccl", "src/a.cc", 'NCCL_PARAM(Invented, "INVENTED_HERE", 0);', "--at", "HEAD"), ["NCCL_INVENTED_HERE"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=1)
