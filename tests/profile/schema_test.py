#!/usr/bin/env python3
"""The schema that `hpclaunch profile schema` prints and the loader accept and refuse the same files.

    schema_test.py PROFILE_CHECK SOURCE_FOLDER

Each case changes one thing in a small profile that both accept. LOADER_ONLY lists what a schema cannot
say; there the loader must refuse and the schema must accept, so that a rule that moves is noticed.
"""
import copy
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:  # the distribution's Python has it when another one is first on PATH
    if os.path.realpath(sys.executable) == os.path.realpath("/usr/bin/python3") or not os.path.exists("/usr/bin/python3"):
        print("skipped: python3-jsonschema is not installed")
        sys.exit(77)
    os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv)

CHECK, ROOT = sys.argv[1:3]
DELETE = object()

BASE = {
    "schema": 1, "name": "base",
    "retired": {"date": "2025-09-12", "successor": "newer"},
    "job": {"account": "PROJECT", "queues": [{"name": "debug", "nodes": [1, 2]}]},
    "defaults": {"ranks_per_device": 1},
    "detect": [{"env": "A", "like": "b*"}],
    "nodes": [{"name": "n", "packages": 2, "cores_per_numa": 8, "threads_per_core": 2,
               "devices": {"vendor": "amd", "list": [{"numa": 0}]}, "nics": [{"name": "hsn0"}]}],
    "stacks": [{"name": "s", "when": [{"module.x": "1"}], "modules": {"load": ["x/1"]}}],
    "device_modes": [{"name": "m", "unit": "device"}],
    "bindings": [{"id": "b", "cores": "0-3", "why": "so"}],
    "rules": [{"id": "r", "default": {"X": "1"}, "why": "so"}],
    "notes": [{"id": "n", "title": "t", "text": "x"}],
    "expect": [{"name": "c", "cpus": "0-3:4-7"}],
}

GOOD = [
    ("", {}),
    ("/$schema", "../schema.json"), ("/doc", "text with $ and ${ in it"), ("/part", False), ("/extends", ["a", "b.c-1"]),
    ("/launcher", "flux"), ("/scheduler", "flux"), ("/scheduler", "lsf"), ("/lsf_launch_node", True), ("/rules/0/batch", {"sge": ["-x"]}), ("/defaults", {}),
    ("/detect/0", {"host": "x[0-9]*"}), ("/detect/0", {"host": "*", "proves": False}), ("/detect/0/proves", False),
    ("/retired/why", "it was replaced"), ("/notes/0/source", "http://a.b/c#d"), ("/notes/0/checked", "2024-02-29"),
    ("/nodes/0/use", "live"), ("/nodes/0/siblings", "adjacent"), ("/nodes/0/numa_memory_mb", 5),
    ("/nodes/0/numa_memory_mb", [5, 6]), ("/nodes/0/memory_only_numa", [{"os_index": 2}]),
    ("/nodes/0/reserved", {"cores": "0,8-9"}), ("/nodes/0/l3_per_numa", 4), ("/nodes/0/devices/list", [{}, {}]),
    ("/nodes/0/share", {"cores": 8, "exact": True, "memory_mb": 1024, "core_memory_mb": 100, "devices": [1]}), ("/nodes/0/share", {"core_memory_mb": 1}),
    ("/job/queues/0/share", {"cores": 7, "memory_mb": 61440}),
    ("/rules/0/batch", {"slurm": ["--mem=${job_memory}"]}), ("/rules/0/when", {"job_part": "no", "job_memory": {"set": True}}),
    ("/nodes/0/devices/partition", "CPX"), ("/nodes/0/nics/0/kind", "omni-path"),
    ("/nodes/0/nics/0/cores", "0-3"), ("/nodes/0/nics/0/bridges", ["0000:17"]), ("/nodes/0/devices/list/0/bridges", ["0000:17", "0000:17:01.0", "0000:18:00.0"]),
    ("/job", {"queues": [{"nodes": [1, None], "minutes": [5, 60], "source": "https://a.b/c"}, {"name": "a"}]}), ("/job/account", DELETE), ("/job/queues", DELETE),
    ("/job/filesystems", "home:eagle"), ("/job/constraint", "thp_never&nvidia_vboost_enabled"), ("/job/queues/0/option", "-q"), ("/job/queues/0/checked", "2026-01-31"),
    ("/stacks/0/modules", {"purge": True, "use": ["/soft/modulefiles"], "load": ["a", "b/1.2-3"], "conda": "/opt/env"}), ("/stacks/0/modules", DELETE),
    ("/nodes/0/when", {"env.X": "y"}), ("/stacks/0/when", [{"nodes": 1}, {"env.X": ["a", ""]}]),
    ("/device_modes/0/mask_item", "${device}.${subdevice}"),
    ("/bindings/0/at", [[1], [2]]), ("/bindings/0/at", [1, 2]), ("/bindings/0/roles", {"w": {"first": 1}}),
    ("/bindings/0/roles", {"w": {"from": "group", "first": 1, "stride": 2}}),
    ("/bindings/0", {"id": "b", "split": True, "first": 1, "why": "so"}),
    ("/bindings/0", {"id": "b", "per": "numa", "split": True, "across": True, "siblings": True, "why": "so"}), ("/job/queues/0/node_types", ["n"]),
    ("/bindings/0/when", {"ranks_per_node": [6, 12]}),
    ("/rules/0/when", {"nodes": {"gt": 16, "le": "1024"}, "module.x": {"ge": "2025.3"}, "value.Y": {"set": True}}),
    ("/rules/0/when", {"env.X": {"unlike": ["*a*", "b"]}, "in_job": "yes", "launcher": {"ne": "pals"}}),
    ("/rules/0/when", {"devices": ["4", 8], "ranks": {"like": "1?", "ne": ""}, "module.x": ["=x", "6"], "env.X": ">4"}),
    ("/rules/0/default/X", ""), ("/rules/0/default/X", "$$ ${env.ROOT} ${local_rank} ${role.w}"),
    ("/rules/0/default/X", {"each": "rank", "item": "${cpus}"}),
    ("/rules/0/default/X", {"each": "unit", "item": "${unit}:${ranks_per_device}", "join": ";"}),
    ("/rules/0/launch", {"pals": ["--pmi=${stack}"]}), ("/rules/0/batch", {"pbs": ["-l x"]}),
    ("/rules/0/core_limit", "unlimited"), ("/rules/0/core_limit", "1048576"), ("/rules/0/core_limit", "9" * 18), ("/rules/0/make_dirs", ["${env.TMPDIR}/x", "/tmp/..x"]),
    ("/rules/0/report", {"severity": "note", "message": "${nodes} nodes", "fix": "use $HOME"}),
    ("/expect/0/reports", []), ("/expect/0", {"name": "c", "refused": "x"}), ("/expect/0/set", {"A": ""}),
    ("/rules/0/why", {"X": "so"}), ("/rules/0/disputed", {"X": "others say 2"}), ("/rules/0/disputed", "others say 2"),
    ("/bindings/0/across", False), ("/bindings/0/split", False), ("/nodes/0", {"name": "n", "topology": {"schema": 1, "cores": [{"pus": "0"}, {"pus": "1"}]}, "reserved": {"cores": "0"}}),
]

BAD = [
    ("/schema", 2), ("/schema", DELETE), ("/schema", "1"), ("/name", DELETE), ("/name", "a b"), ("/name", ""), ("/name", "none"),
    ("/name", "x.json"), ("/name", ".x"), ("/doc", ""), ("/doc", 1), ("/doc", None), ("/doc", "a\u0007"), ("/rule", []), ("/rules", []),
    ("/rules", {}), ("/part", "yes"), ("/extends", []), ("/extends", "a"), ("/extends", ["a", "a"]),
    ("/extends", ["x/y.json"]), ("/launcher", "slrum"), ("/lsf_launch_node", "yes"), ("/scheduler", "loadleveler"),
    ("/defaults/ranks_per_device", 0), ("/defaults/ranks_per_device", "1"), ("/defaults/ranks_per_device", 1.5), ("/defaults/view", "all"),
    ("/defaults/gpu_view", "al"), ("/defaults/fill", "x"), ("/defaults/mps", "yes"), ("/retired/date", "2025-13-01"), ("/retired/date", DELETE),
    ("/detect/0", {}), ("/detect/0/env", "A=B"),
    ("/detect/0/proves", 1),
    ("/notes/0/why", "ends."), ("/notes/0/source", "page 7"), ("/notes/0/checked", "24-1-1"), ("/notes/0/printed_why", "x"),
    ("/notes/0/text", DELETE), ("/notes/0/id", "a b"),
    ("/nodes/0/packages", 0), ("/nodes/0/packages", DELETE), ("/nodes/0/use", "alive"), ("/nodes/0/numa_memory_mb", [0, 1]),
    ("/nodes/0/reserved", {}), ("/nodes/0/reserved", {"cores": "0-"}), ("/nodes/0/reserved", {"cores": 0}),
    ("/nodes/0/devices/vendor", "nvida"), ("/nodes/0/devices/list", []), ("/nodes/0/devices/list/0/pci", "18:00.0"),
    ("/nodes/0/devices/list/0/pci", "0000:18:00.A"), ("/nodes/0/nics/0", {}), ("/nodes/0/nics/0/kind", "token-ring"), ("/nodes/0/devices/partition", ""),
    ("/nodes/0/nics/0/bridges", []), ("/nodes/0/nics/0/bridges", [1]), ("/nodes/0/nics/0/bridges", ["0000:17:01.0"]),
    ("/nodes/0/devices/list/0/bridges", ["0000:17", "0000:17"]), ("/nodes/0/devices/list/0/bridges", "0000:17"),
    ("/nodes/0/nics/0/speed", 1),
    ("/job/queues/0/share", {}), ("/job/queues/0/share", {"core": 7}), ("/nodes/0/share", {}), ("/nodes/0/share", {"memory_mb": 5}), ("/nodes/0/share", {"cores": 0}), ("/nodes/0/share", {"cores": 1, "devices": []}),
    ("/nodes/0/share", {"cores": "1"}), ("/nodes/0/share", True), ("/rules/0/when", {"job_part": "maybe"}),
    ("/nodes/0/when", {"node_type": "x"}), ("/nodes/0/when", {"value.X": "1"}), ("/nodes/0/memory_only_numa", [{}]),
    ("/job", {}), ("/job/account", ""), ("/job/account", "$HOME"), ("/job/account", "-A x"), ("/job/accounts", "x"), ("/job/queues", []), ("/job/queues", {}),
    ("/job/queues/0/nodes", [1]), ("/job/queues/0/nodes", [1, 2, 3]), ("/job/queues/0/nodes", 5), ("/job/queues/0/nodes", [None, 5]), ("/job/queues/0/nodes", [1, 0]),
    ("/job/queues/0/minutes", [-1, 5]), ("/job/queues/0/minutes", ["1", 5]), ("/job/queues/0/option", "-x"), ("/job/queues/0/name", "a;b"), ("/job/queues/0/hours", 1),
    ("/bindings/0", {"id": "b", "split": True, "across": 1, "why": "so"}),
    ("/job/queues/0/node_types", []), ("/job/queues/0/node_types", "n"), ("/job/queues/0/node_types", ["n", "n"]),
    ("/job/filesystems", "a'b"), ("/job/constraint", "a\nb"),
    ("/stacks/0/modules", {}), ("/stacks/0/modules", ["x"]), ("/stacks/0/modules/load", []), ("/stacks/0/modules/load", ["-f"]), ("/stacks/0/modules/load", ["a b"]),
    ("/stacks/0/modules/load", ["$(x)"]), ("/stacks/0/modules/use", ["soft"]), ("/stacks/0/modules/use", ["/soft;x"]), ("/stacks/0/modules/conda", "a b"), ("/stacks/0/modules/purge", "yes"),
    ("/stacks/0/when", {"nodes": 1}), ("/stacks/0/when", [{"stack": "x"}]), ("/stacks/0/when", []),
    ("/device_modes/0/unit", "tile"), ("/device_modes/0/mask", "A B"), ("/device_modes/0/mask_item", "${devise}"),
    ("/bindings/0/why", DELETE), ("/bindings/0/cores", DELETE), ("/bindings/0/cores", "a"), ("/bindings/0/first", -1),
    ("/bindings/0/first", 4096), ("/bindings/0/at", []), ("/bindings/0/at", [[1], []]),
    ("/bindings/0/groups", [0, 0]), ("/bindings/0/per", "socket"),
    ("/bindings/0/roles", {"a b": {"first": 1}}), ("/bindings/0/roles", {"w": {}}), ("/bindings/0/when", {"value.X": "1"}),
    ("/rules/0/why", DELETE), ("/rules/0/why", ""), ("/rules/0/why", {}), ("/rules/0/why", {"X": "ends."}), ("/rules/0/why", {"X": 1}), ("/rules/0/why", ["so"]),
    ("/rules/0/disputed", {"X": ""}), ("/notes/0/why", {"X": "so"}), ("/bindings/0/why", {"X": "so"}), ("/rules/0/id", DELETE), ("/rules/0/default", DELETE), ("/rules/0/default", {}),
    ("/rules/0/defualt", {"X": "1"}), ("/rules/0/default/X", 8), ("/rules/0/default/X", "$HOME"), ("/rules/0/default/X", "${nods}"),
    ("/rules/0/default/X", "${env.}"), ("/rules/0/default/X", {"each": "ranks", "item": "1"}), ("/rules/0/default/X", {"each": "rank"}),
    ("/rules/0/default/X", {"each": "unit", "item": "${cpus}"}), ("/rules/0/default/X=Y", "1"), ("/rules/0/default", {"": "1"}),
    ("/rules/0/unset", []), ("/rules/0/unset", ["A", 7]), ("/rules/0/unset", "A"),
    ("/rules/0/when", {}), ("/rules/0/when", {"node": 1}), ("/rules/0/when", {"local_rank": 0}), ("/rules/0/when", {"role.x": 1}),
    ("/rules/0/when", {"env.": "x"}), ("/rules/0/when", {"nodes": {"gtt": 1}}), ("/rules/0/when", {"nodes": {}}),
    ("/rules/0/when", {"nodes": ">4"}), ("/rules/0/when", {"devices": [1, "x"]}), ("/rules/0/when", {"ranks": {"ne": -1}}), ("/rules/0/when", {"units": {"ge": "1.5"}}),
    ("/rules/0/when", {"module.x": ">= 6.1"}), ("/rules/0/when", {"module.x": {"ne": ["6", "<7"]}}),
    ("/rules/0/when", {"nodes": {"gt": "many"}}), ("/rules/0/when", {"nodes": {"gt": [1]}}), ("/rules/0/when", {"nodes": True}),
    ("/rules/0/when", {"stack": []}), ("/rules/0/when", {"stack": 1.5}), ("/rules/0/when", {"in_job": "true"}),
    ("/rules/0/when", {"env.X": {"set": 1}}), ("/rules/0/when", {"env.X": {"like": ""}}),
    ("/rules/0/launch", {"plas": ["-x"]}), ("/rules/0/launch", {"pals": []}), ("/rules/0/launch", {"pals": ["${local_rank}"]}),
    ("/rules/0/batch", {"loadleveler": ["-x"]}), ("/rules/0/core_limit", "1G"), ("/rules/0/core_limit", 0), ("/rules/0/core_limit", "007"), ("/rules/0/core_limit", "1" + "0" * 18),
    ("/rules/0/make_dirs", ["tmp"]), ("/rules/0/make_dirs", ["/tmp/../etc"]), ("/rules/0/make_dirs", ["/tmp/${unit}"]),
    ("/rules/0/report", {"severity": "bad", "message": "x"}), ("/rules/0/report", {"severity": "note"}),
    ("/expect/0/cpus", DELETE), ("/expect/0/cpus", "0:"), ("/expect/0/argv", []), ("/expect/0/name", DELETE),
    ("/expect/0/per_rank", {"A": 1}), ("/expect/0/cpu", "1"),
    # keys that have no effect together
    ("/part", True),
    ("/detect/0/like", DELETE),
    ("/detect/0/host", "x"), ("/detect/0", {"host": "*"}),
    ("/detect/0", {"host": "x", "like": "y"}),
    ("/nodes/0/nics/0", {"name": "hsn0", "numa": 0, "cores": "0"}),
    ("/bindings/0/across", True),
    ("/bindings/0", {"id": "b", "split": True, "across": True, "groups": [1, 0], "why": "so"}),
    ("/bindings/0", {"id": "b", "split": True, "across": True, "interleave": True, "why": "so"}),
    ("/bindings/0/split", True),
    ("/bindings/0/roles", {"w": {"first": 1, "stride": 1}}),
    ("/bindings/0", {"id": "b", "cores": "0", "at": [1], "stride": 2, "why": "so"}),
    ("/expect/0/refused", "x"),
    ("/detect/0", {"env": "A"}), ("/detect/0", {"host": "*", "proves": True}), ("/nodes/0/topology", {"schema": 1, "cores": [{"pus": "0"}]}),
    ("/bindings/0", {"id": "b", "split": False, "why": "so"}), ("/bindings/0", {"id": "b", "split": True, "at_least": 1, "why": "so"}),
    ("/bindings/0/roles", {"w": {"from": "base", "first": 1, "stride": 1}}), ("/bindings/0", {"id": "b", "cores": "0", "at": [1], "first": 2, "why": "so"}),
    ("/bindings/0", {"id": "b", "split": True, "across": True, "roles": {"w": {"first": 1}}, "why": "so"}),
]

LOADER_ONLY = [  # equal names, sums, numbers that must exist, the calendar, and what depends on the text of another key
    ("/rules/1", {"id": "r", "default": {"X": "1"}, "why": "so"}),
    ("/retired/date", "2025-02-30"),
    ("/nodes/0/l3_per_numa", 3), ("/nodes/0/numa_memory_mb", [1, 2, 3]),
    ("/nodes/0", {"name": "n", "packages": 64, "numa_per_package": 64, "cores_per_numa": 8}),
    ("/nodes/0/reserved", {"cores": "99"}), ("/nodes/0/reserved", {"cores": "5-2"}), ("/nodes/0/reserved", {"cores": "0-15"}),
    ("/nodes/0/share", {"cores": 17}), ("/nodes/0/share", {"cores": 1, "devices": [2]}), ("/nodes/0/memory_only_numa", [{"os_index": 0}]), ("/nodes/0/devices/list/0/numa", 7), ("/nodes/0/devices/list/0/cores", "99"),
    ("/nodes/0/devices/list", [{"pci": "0000:18:00.0"}, {"pci": "0000:18:00.0"}]),
    ("/bindings/0/cores", "3-0"), ("/bindings/0/at", [[1, 2], [1]]),
    ("/rules/0/default/X", "${value.Y}"), ("/rules/0/unset", ["X"]),
    ("/rules/0/why", {"X": "so", "Y": "so"}), ("/rules/0/why", {"Y": "so"}), ("/rules/0/disputed", {"Y": "no"}),
    ("/rules/0", {"id": "r", "default": {"X": "1", "Y": "2"}, "why": {"X": "so"}}),
    ("/rules/0", {"id": "r", "default": {"X": "1"}, "core_limit": "0", "why": {"X": "so"}}),
    ("/expect/0/cpus", "5-2"),
    ("/job/queues/0/nodes", [5, 2]),
    ("/defaults/ranks_per_device", 1.0),  # a whole number to JSON Schema
]


def changed(pointer, value):
    document = copy.deepcopy(BASE)
    if not pointer:
        return document
    at = document
    keys = pointer[1:].split("/")
    for key in keys[:-1]:
        at = at[int(key)] if isinstance(at, list) else at[key]
    if value is DELETE:
        del at[keys[-1]]
    elif isinstance(at, list) and int(keys[-1]) == len(at):
        at.append(value)
    elif isinstance(at, list):
        at[int(keys[-1])] = value
    else:
        at[keys[-1]] = value
    return document


def load(path):
    with open(path, encoding="utf-8") as handle:
        text = handle.read()
    return json.loads(re.sub(r'("(?:\\.|[^"\\\n])*")|//[^\n]*', lambda m: m.group(1) or "", text))


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = json.loads(subprocess.run([CHECK], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout)
        cls.validator = jsonschema.Draft7Validator(cls.schema)

    def accepted(self, document):
        return not list(self.validator.iter_errors(document))

    def loaded(self, documents):
        """What the loader says of each, '' when nothing."""
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for i, document in enumerate(documents):
                files.append(os.path.join(folder, "%d.json" % i))
                with open(files[-1], "w", encoding="utf-8") as handle:
                    json.dump(document, handle, ensure_ascii=False)
            printed = subprocess.run([CHECK] + files, stdout=subprocess.PIPE, universal_newlines=True).stdout
        said = ["" for _ in documents]
        for line in printed.splitlines():
            number, text = re.match(r".*?/(\d+)\.json:(.*)", line).groups()
            said[int(number)] += "" if text == " OK" else text
        self.assertEqual(len(re.findall(r": OK$", printed, re.M)), said.count(""))
        return said

    def agree(self, cases, schema, loader):
        documents = [changed(*case) for case in cases]
        for (pointer, value), document, said in zip(cases, documents, self.loaded(documents)):
            shown = "%s = %s" % (pointer, "(none)" if value is DELETE else json.dumps(value))
            with self.subTest(shown):
                self.assertEqual(said == "", loader, "loader on %s: %s" % (shown, said or "accepts"))
                self.assertEqual(self.accepted(document), schema, "schema on " + shown)

    def test_the_schema_is_a_schema(self):
        jsonschema.Draft7Validator.check_schema(self.schema)

    def test_good(self):
        self.agree(GOOD, True, True)

    def test_bad(self):
        self.agree(BAD, False, False)

    def test_what_only_the_loader_can_tell(self):
        self.agree(LOADER_ONLY, True, False)

    def test_files(self):
        files = sorted(glob.glob(os.path.join(ROOT, "profiles/site/*.json")) + glob.glob(os.path.join(ROOT, "profiles/part/*.json")))
        for path in files + [os.path.join(ROOT, "tests/profile/full.json")]:
            with self.subTest(path):
                problems = ["/%s: %s" % ("/".join(map(str, e.path)), e.message[:200]) for e in self.validator.iter_errors(load(path))]
                self.assertEqual(problems, [])
                said = subprocess.run([CHECK, path], stdout=subprocess.PIPE, universal_newlines=True).stdout
                self.assertEqual(said, path + ": OK\n")

    def test_the_schema_knows_the_facts_of_the_manual(self):
        with open(os.path.join(ROOT, "docs/reference/profile-format.md"), encoding="utf-8") as handle:
            rows = re.findall(r"^\| (`.*?) \| (job|rank) \|", handle.read(), re.M)
        facts = {scope: {name for names, at in rows if at == scope for name in re.findall(r"`([^`]+)`", names)}
                 for scope in ("job", "rank")}
        definitions = self.schema["definitions"]
        self.assertEqual(set(definitions["condition"]["properties"]), facts["job"])
        for name, wanted in (("job_template", facts["job"]), ("rank_template", facts["job"] | facts["rank"]),
                             ("unit_template", facts["job"] | {"unit"})):
            listed = definitions[name]["pattern"].split(r"\{(", 1)[1].rsplit(r")\}", 1)[0].split("|")
            self.assertEqual({fact.replace("\\", "") for fact in listed if "[" not in fact}, wanted, name)

    def test_every_key_is_explained_and_every_object_closed(self):
        def walk(node, place):
            if isinstance(node, dict):
                for key, value in node.get("properties", {}).items() if "additionalProperties" in node and not place.startswith("/definitions/tests") else ():
                    if "$ref" not in value:
                        self.assertTrue(value.get("description"), "%s/%s has no description" % (place, key))
                if node.get("type") == "object":
                    self.assertIsNot(node.get("additionalProperties", True), True, place + " is open")
                for key, value in node.items():
                    walk(value, place + "/" + key)
            elif isinstance(node, list):
                for i, value in enumerate(node):
                    walk(value, "%s/%d" % (place, i))
        walk(self.schema, "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
