#!/usr/bin/env python3
"""hpclaunch profile: list, show, validate, test, schema; formats, scopes, exit statuses."""
import grp
import json
import os
import pwd
import re
import shutil
import subprocess
import xml.etree.ElementTree

import support
from support import ROOT, Test, execute, hpclaunch, need

PROFILES = os.path.join(ROOT, "profiles")
EXAMPLES = os.path.join(ROOT, "examples")
TODAY = "2026-12-01"

NODE = {"name": "compute", "packages": 2, "cores_per_numa": 4, "threads_per_core": 2, "numa_memory_mb": 1024,
        "reserved": {"cores": "0,4", "why": "the system's"},
        "devices": {"vendor": "nvidia", "list": [{"numa": 0}, {"numa": 1}]}}
BINDING = {"id": "two", "when": {"ranks_per_node": 2}, "per": "package", "first": 1, "stride": 1, "cores": "0-1",
           "roles": {"helper": {"from": "base", "first": 2}}, "why": "next to the device"}
RULE = {"id": "debug", "default": {"NCCL_DEBUG": "WARN"}, "why": "warnings cost nothing"}
GOOD = {"schema": 1, "name": "good", "doc": "An example", "detect": [{"env": "GOOD_SITE", "like": "good"}],
        "nodes": [NODE], "bindings": [BINDING], "rules": [RULE],
        "expect": [{"name": "two", "options": ["-N", "1", "--ppn", "2"], "cpus": "1-2:5-6", "devices": "0:1",
                    "set": {"NCCL_DEBUG": "WARN"}, "absent": ["NCCL_ALGO"]}]}


def changed(base=None, **keys):
    """A copy of a profile with keys replaced; None takes one away."""
    profile = json.loads(json.dumps(GOOD if base is None else base))
    profile.update(keys)
    return {key: value for key, value in profile.items() if value is not None}


class ProfileTest(Test):
    def setUp(self):
        super().setUp()
        self.env = support.clean_env(HPCLAUNCH_PROFILE_PATH="", XDG_CONFIG_HOME=self.folder + "/none")

    def profile(self, *words, env=None, cwd=None):
        return hpclaunch("profile", *words, env=env or self.env, cwd=cwd)

    def write(self, profile, name=None, folder="p"):
        return self.file("%s/%s.json" % (folder, name or profile["name"]), json.dumps(profile, indent=1))

    def findings(self, action, *files, status=1):
        done = self.ok(self.profile(action, "--format", "json", *files), status)
        return [finding for one in json.loads(done.out)["profiles"] for finding in one["diagnostics"]]

    def found(self, rule, profile, severity="error", says="", action="validate"):
        """Validating this profile says this, with a place; returns the finding."""
        path = self.write(profile)
        findings = self.findings(action, path)
        fits = [f for f in findings if f["id"] == rule and f["severity"] == severity and says in f["message"]]
        self.assertTrue(fits, "%s/%s/%s not in %s" % (rule, severity, says, json.dumps(findings, indent=1)))
        self.assertEqual(fits[0]["where"]["file"], path)
        self.assertGreater(fits[0]["where"].get("line", 1), 0)
        return fits[0]


class Good(ProfileTest):
    def test_a_good_profile_is_clean(self):
        path = self.write(GOOD)
        done = self.ok(self.profile("validate", path))
        self.assertEqual(done.err, "")
        self.assertIn("good: clean\n", done.out)
        done = self.ok(self.profile("test", path))
        self.assertRegex(done.out, r"good: 1 case, [\d,]+ invariants checked on \d+ plans")
        self.assertRegex(done.out, r"1 profile: 1 case, [\d,]+ invariants checked, 0 failed")

    def test_every_rank_count_is_planned(self):
        path = self.write(GOOD)
        text = self.ok(self.profile("test", path)).out
        plans, refused = re.search(r"on (\d+) plans \((\d+) refused", text).groups()
        # 16 PUs, two views; 6 cores are not reserved.
        self.assertGreaterEqual(int(plans), 32)
        self.assertGreaterEqual(int(refused), 2 * 10)

    def test_shipped_profiles(self):
        names = [row["name"] for row in json.loads(self.ok(self.profile("list", "--format", "json")).out)["profiles"]]
        files = {name[:-5] for kind in ("site", "part") for name in os.listdir(os.path.join(PROFILES, kind))
                 if name.endswith(".json")}
        self.assertEqual(set(names), files)


class List(ProfileTest):
    def rows(self, env, status=0):
        done = self.ok(self.profile("list", "--format", "json", env=env), status)
        return {row["name"]: row for row in json.loads(done.out)["profiles"]}

    def test_scopes_shadow(self):
        site = self.write(changed(doc="of the site"), folder="site")
        other = self.write(changed(name="other"), folder="site")
        user = self.write(changed(doc="of the user"), folder="config/hpclaunch/profiles")
        env = support.clean_env(HPCLAUNCH_PROFILE_PATH=os.path.dirname(site), XDG_CONFIG_HOME=self.folder + "/config")
        rows = self.rows(env)
        self.assertEqual((rows["good"]["scope"], rows["good"]["file"]), ("user", user))
        self.assertEqual(rows["good"]["shadows"], [site])
        self.assertEqual(rows["good"]["doc"], "of the user")
        self.assertEqual((rows["other"]["scope"], rows["other"]["file"]), ("site", other))
        text = self.ok(self.profile("list", env=env)).out
        self.assertIn("hides " + site, text)
        self.assertIn("of the user", self.ok(self.profile("show", "good", env=env)).out)
        builtin = [name for name, row in rows.items() if row["scope"] == "builtin"]
        self.assertTrue(builtin)
        self.write(changed(name=builtin[0]), folder="config/hpclaunch/profiles")
        row = self.rows(env)[builtin[0]]
        self.assertEqual(row["scope"], "user")
        self.assertTrue(row["shadows"][0].startswith("builtin:"))

    def test_states(self):
        folder = os.path.dirname(self.write(changed(name="piece", part=True, detect=None, expect=None)))
        self.write(changed(retired={"date": "2025-01-02", "successor": "next"}))
        self.write(changed(name="next"))
        self.file("p/broken.json", "{")
        env = support.clean_env(HPCLAUNCH_PROFILE_PATH=folder, XDG_CONFIG_HOME=self.folder + "/none")
        rows = self.rows(env, 1)
        self.assertEqual({name: rows[name]["state"] for name in ("piece", "good", "next", "broken")},
                         {"piece": "part", "good": "retired", "next": "active", "broken": "broken"})
        self.assertEqual(rows["good"]["retired"], {"date": "2025-01-02", "successor": "next"})
        self.assertIn("retired 2025-01-02 -> next", self.profile("list", env=env).out)


class Show(ProfileTest):
    def test_flattened_with_origins(self):
        base = self.write({"schema": 1, "name": "base", "doc": "a part", "part": True,
                           "rules": [dict(RULE, id="from-base"), dict(RULE, id="again")]})
        path = self.write(changed(extends=["base"], rules=[dict(RULE, id="again", why="ours")]))
        shown = json.loads(self.ok(self.profile("show", path, "--format", "json")).out)["profiles"][0]
        rules = {rule["id"]: rule for rule in shown["rules"]}
        self.assertEqual([rule["id"] for rule in shown["rules"]], ["from-base", "again"])
        self.assertEqual((rules["from-base"]["origin"]["profile"], os.path.realpath(rules["from-base"]["origin"]["file"])),
                         ("base", os.path.realpath(base)))
        self.assertEqual((rules["again"]["origin"]["profile"], rules["again"]["why"]), ("good", "ours"))
        self.assertGreater(rules["again"]["origin"]["line"], 1)
        self.assertEqual(len(shown["nodes"][0]["topology"]["cores"]), 8)
        self.assertEqual(shown["bindings"][0]["when"], {"ranks_per_node": {"eq": "2"}})
        text = self.ok(self.profile("show", path)).out
        for words in ("from-base  (base, ", "NCCL_DEBUG = WARN", "why         ours", "ranks_per_node = 2",
                      "2 packages, 2 NUMA nodes, 8 cores, 16 hardware threads, 2 devices", "base 1 + 1 * i"):
            self.assertIn(words, text)

    def test_reasons_one_by_one(self):
        whys = {"NCCL_DEBUG": "warnings cost nothing", "NCCL_ALGO": "trees are faster here", "make_dirs": "logs go there"}
        rule = dict(RULE, unset=["NCCL_ALGO"], make_dirs=["/tmp/${user}"], why=whys, disputed={"NCCL_ALGO": "others keep it"})
        path = self.write(changed(rules=[rule]))
        shown = json.loads(self.ok(self.profile("show", path, "--format", "json")).out)["profiles"][0]["rules"][0]
        self.assertEqual((shown["why"], shown["disputed"]), (whys, rule["disputed"]))
        text = self.ok(self.profile("show", path)).out
        for words in ["why         %s: %s" % pair for pair in whys.items()] + ["disputed    NCCL_ALGO: others keep it"]:
            self.assertIn(words, text)
        page = self.ok(self.profile("page", path)).out
        for change, why in (("`NCCL_DEBUG=WARN`", "NCCL_DEBUG"), ("unset `NCCL_ALGO`", "NCCL_ALGO"), ("directory `/tmp/${user}`", "make_dirs")):
            self.assertRegex(page, r"(?m)^\| %s +\| +\| %s +\|$" % (re.escape(change), whys[why]))
        site = ("--profile", path, "-N", "2")
        for name, why in (("NCCL_DEBUG", whys["NCCL_DEBUG"]), ("NCCL_ALGO", whys["NCCL_ALGO"]), ("directories", whys["make_dirs"])):
            said = self.ok(hpclaunch("explain", *site, name, "--json", env=dict(self.env, NCCL_ALGO="ring"))).out
            made = [entry for entry in json.loads(said)["env"] + json.loads(said)["choices"] if entry["name"] == name][0]["history"][-1]
            self.assertEqual((made["why"], made.get("disputed")), (why, "others keep it" if name == "NCCL_ALGO" else None))
        script = self.ok(hpclaunch("run", "--dry-run", "-v", "--profile", path, "--launcher", "local", "-n", "2", "--", "true", env=self.env)).out
        self.assertIn("warnings cost nothing", script)

    def test_every_builtin(self):
        rows = json.loads(self.profile("list", "--format", "json").out)["profiles"]
        names = [row["name"] for row in rows if row["state"] != "broken"]
        done = self.ok(self.profile("show", *names))
        for name in names:
            self.assertRegex(done.out, r"(?m)^%s  \S" % re.escape(name))
        shown = json.loads(self.ok(self.profile("show", "--format", "json", *names)).out)["profiles"]
        self.assertEqual([one["name"] for one in shown], names)

    def test_mistakes(self):
        self.refused(2, "profile", "show", says=["show needs the name of a profile"])
        self.refused(2, "profile", "show", "no-such-site-of-ours", says=['no profile "no-such-site-of-ours"'])
        self.write(GOOD)
        env = support.clean_env(HPCLAUNCH_PROFILE_PATH=self.folder + "/p", XDG_CONFIG_HOME=self.folder)
        self.refused(2, "profile", "show", "goood", env=env, says=["did you mean good?"])


class Install(ProfileTest):
    def setUp(self):
        super().setUp()
        self.site, self.user = self.folder + "/site", self.folder + "/config/hpclaunch/profiles"
        self.env = support.clean_env(HPCLAUNCH_PROFILE_PATH=self.folder + "/weaker:" + self.site, XDG_CONFIG_HOME=self.folder + "/config")

    def test_where_it_goes(self):
        mine = self.write(GOOD)
        old = os.umask(0o002)
        self.addCleanup(os.umask, old)
        done = self.ok(self.profile("install", mine, "--system"))
        self.assertEqual(done.out, "installed %s/good.json\n" % self.site)
        self.assertEqual(os.stat(self.site + "/good.json").st_mode & 0o777, 0o644)
        with open(mine) as one, open(self.site + "/good.json") as other:
            self.assertEqual(one.read(), other.read())
        # The user's is stronger, and says so; then the site's is hidden, and that is an error.
        done = self.ok(self.profile("install", mine, "--user"))
        self.assertEqual(done.out, "installed %s/good.json; it hides %s/good.json\n" % (self.user, self.site))
        self.refused(2, "profile", "install", mine, "--system", env=self.env, says=["which %s/good.json hides" % self.user])
        self.assertIn("user", self.profile("list").out)
        self.assertEqual(os.listdir(self.user), ["good.json"])

    def test_builtin_is_hidden(self):
        with open(PROFILES + "/site/polaris.json") as file:
            mine = self.file("p/polaris.json", file.read())
        self.assertIn("it hides builtin:profiles/site/polaris.json", self.ok(self.profile("install", mine, "--user")).out)

    def test_refused(self):
        mine = self.write(GOOD)
        for words in ([mine], [mine, "--user", "--system"], ["good", "--user"], [mine, mine, "--user"]):
            self.refused(2, "profile", "install", *words, env=self.env, says=["one file, and --user or --system"])
        broken = self.write(changed(rules=3), folder="q")
        self.assertIn("expected a list", self.ok(self.profile("install", broken, "--user"), 1).out)
        wrong_name = self.write(GOOD, "else")
        self.ok(self.profile("install", wrong_name, "--user"), 1)
        # What lies beside a file does not come along.
        self.write(changed(name="base"), folder="r")
        above = self.write(changed(name="above", extends=["base"], nodes=None, bindings=None, rules=None, expect=None), folder="r")
        self.refused(2, "profile", "install", above, "--user", env=self.env, says=["extends what is not installed", "base"])
        self.assertFalse(os.path.exists(self.user))
        os.makedirs(self.user)
        os.chmod(self.user, 0o777)
        self.refused(2, "profile", "install", mine, "--user", env=self.env, says=["writable by others", "chmod o-w"])
        self.assertEqual(os.listdir(self.user), [])

    def test_folder_of_the_prefix(self):
        """PREFIX/etc of an installation is searched, below /etc's."""
        os.makedirs(self.folder + "/prefix/bin")
        program = self.folder + "/prefix/bin/hpclaunch"
        shutil.copy(support.HPCLAUNCH, program)
        self.write(GOOD, folder="prefix/etc/hpclaunch/profiles")
        env = support.clean_env(XDG_CONFIG_HOME=self.folder + "/none")
        done = subprocess.run([program, "profile", "list"], stdout=subprocess.PIPE, text=True, env=env, timeout=support.LIMIT)
        self.assertRegex(done.stdout, r"(?m)^good +site")


class Validate(ProfileTest):
    def test_all_problems_of_a_broken_file(self):
        path = self.file("p/good.json", '{\n "schema": 1,\n "name": "good",\n "doc": "x",\n "rulse": [],\n "stacks": 3\n}\n')
        findings = self.findings("validate", path)
        self.assertGreaterEqual(len(findings), 2)
        self.assertEqual({f["severity"] for f in findings}, {"error"})
        where = [f["where"] for f in findings if "rulse" in f["message"]][0]
        self.assertEqual((where["line"], where["column"]), (5, 2))
        text = self.profile("validate", path).out
        self.assertIn("%s:5:2: error: " % path, text)
        self.assertRegex(text, r"try: .*rules")
        self.file("p/bad.json", "")
        self.ok(self.profile("validate", self.folder + "/p/bad.json"), 1)

    def test_file_name(self):
        path = self.write(GOOD, "else")
        self.assertIn("good.json", self.profile("validate", path).out)
        self.ok(self.profile("validate", path), 1)

    def test_extends(self):
        self.found("schema", changed(extends=["nowhere"]), says='no profile "nowhere"')
        self.write({"schema": 1, "name": "other", "doc": "x", "part": True, "extends": ["good"]})
        done = self.ok(self.profile("validate", self.write(changed(extends=["other"]))), 1)
        self.assertIn("circle: good -> other -> good", done.out)

    def test_extends_what_lies_beside_or_was_named(self):
        part = {"schema": 1, "name": "piece", "doc": "x", "part": True}
        self.write(part, folder="tree/part")
        self.ok(self.profile("validate", self.write(changed(extends=["piece"]), folder="tree/site")))
        path = self.write(changed(extends=["piece"]), folder="alone")
        self.ok(self.profile("validate", path), 1)
        self.ok(self.profile("validate", path, self.write(part, folder="far")))
        self.ok(self.profile("validate", "good.json", cwd=os.path.dirname(self.write(changed(extends=["piece"]), folder="tree/part"))))

    def test_catalogue(self):
        rule = lambda **values: changed(rules=[dict(RULE, default=values)])
        self.found("bad-value", rule(NCCL_DEBUG="LOUD"), says="NCCL_DEBUG")
        fix = self.found("unknown-variable", rule(FI_CXI_OVFLOW_BUF_SIZE="8388608"), says="FI_CXI_OVFLOW_BUF_SIZE")["fix"]
        self.assertIn("FI_CXI_OFLOW_BUF_SIZE", fix)
        self.found("unknown-variable", rule(NCCL_DEBUGG="${user}"), "warning", says="NCCL_DEBUGG")
        # A value with a fact in it cannot be judged.
        self.ok(self.profile("validate", self.write(rule(NCCL_DEBUG="${env.LEVEL}"))))
        self.found("unknown-variable", changed(rules=[dict(RULE, when={"env.NCCL_DEBUGG": "x"})]), "warning")

    def test_age(self):
        path = self.write(changed(rules=[dict(RULE, source="https://example.org/", checked="2025-06-01"),
                                         dict(RULE, id="b", source="https://example.org/", checked="2025-06-01")]))
        self.ok(self.profile("validate", "--today", TODAY, path))
        done = self.ok(self.profile("validate", "--today", "2026-12-02", path), 1)
        self.assertIn("rule debug and 1 more: last compared with the source on 2025-06-01", done.out)
        self.assertEqual(done.out.count("[stale]"), 1)
        self.assertIn("in the future", self.ok(self.profile("validate", "--today", "2025-05-31", path), 1).out)
        self.found("stale", changed(rules=[dict(RULE, source="https://example.org/")]), "warning", says="no date of the last comparison")
        for day in ("soon", "2026-1-1", "2026-13-01", ""):
            self.refused(2, "profile", "validate", "--today", day, path)

    def test_conditions(self):
        stacks = [{"name": "old", "doc": "x"}, {"name": "new", "doc": "x"}]
        when = lambda **tests: changed(stacks=stacks, rules=[dict(RULE, when=tests)])
        for wrong in (when(stack="nwe"), when(device_mode="tile"), when(node_type="login"), when(gpu_view="mine")):
            path = self.write(wrong)
            self.ok(self.profile("validate", path), 1)
        self.assertIn('did you mean "new"?', self.profile("validate", self.write(when(stack="nwe"))).out)
        for never in ({"nodes": {"gt": 16, "lt": 17}}, {"nodes": {"eq": 1, "gt": 1}}, {"env.A": {"set": False, "like": "x*"}},
                      {"module.a": {"eq": "1", "ge": "2"}}):
            self.found("never-holds", when(**never), "warning")
        for sometimes in ({"nodes": {"gt": 16, "lt": 18}}, {"module.a": {"gt": "2", "lt": "3"}}, {"env.A": {"set": False, "unlike": "x"}}):
            self.ok(self.profile("validate", self.write(when(**sometimes))))

    def one(self, profile, rule, severity, says, fix, line):
        """This mistake is one finding, in the line with this text."""
        path = self.write(profile)
        findings = self.findings("validate", path)
        self.assertEqual([(f["id"], f["severity"]) for f in findings], [(rule, severity)], json.dumps(findings, indent=1))
        self.assertIn(says, findings[0]["message"])
        self.assertIn(fix, findings[0]["fix"])
        with open(path) as file:
            text = file.read().split("\n")[findings[0]["where"]["line"] - 1]
        self.assertEqual(text[findings[0]["where"]["column"] - 1:].rstrip(",[{ "), line)

    def silent(self, profile):
        self.assertEqual(self.findings("validate", self.write(profile), status=0), [])

    NICS = [{"name": "ib0", "fabric": "mlx5_0"}, {"name": "ib1", "fabric": "mlx5_1"}]
    SITE = dict(GOOD, expect=[], bindings=[], stacks=[{"name": "old"}, {"name": "new"}], nodes=[
        dict(NODE, nics=NICS),
        {"name": "cpu", "packages": 1, "cores_per_numa": 4, "nics": [{"name": "eth0"}], "when": {"env.SLURM_JOB_PARTITION": "cpu"}}])

    def of_rule(self, **keys):
        return {key: value for key, value in dict(self.SITE, rules=[dict(RULE, **keys)]).items() if value != []}

    def test_values_that_a_fact_never_has(self):
        anything = 'write 4, [4, 8] or {"ge": 4, "le": 8}'
        for fact, value, fix in (("nodes", ">4", '{"gt": 4}'), ("ranks", ">= 4", '{"ge": 4}'), ("ranks_per_node", "<4", '{"lt": 4}'), ("devices", "!=4", '{"ne": 4}'),
                                 ("units", "=4", '{"eq": 4}'), ("min_cores", "4+", anything), ("live.cores", "4-8", anything), ("ranks_per_device", "1.5", anything),
                                 ("module.rocm", ">=6", '{"ge": 6}'), ("module.rocm", "> 6.1", '{"gt": "6.1"}')):
            self.one(self.of_rule(when={fact: value}), "schema", "error", '"%s"' % value, fix, '"%s": "%s"' % (fact, value))
        self.one(self.of_rule(when={"nodes": {"gt": "4 nodes"}}), "schema", "error", 'never "4 nodes"', anything, '"gt": "4 nodes"')
        self.one(self.of_rule(when={"env.X": {"set": True, "equals": "a"}}), "schema", "error", 'unknown operator "equals"', "operators: eq", '"equals": "a"')
        self.one(self.of_rule(when={"launcher": "srun"}), "schema", "error", 'never "srun"', "jsrun", '"launcher": "srun"')
        self.one(self.of_rule(when={"stack": "nwe"}), "schema", "error", 'unknown stack "nwe"', 'did you mean "new"?', '"stack": "nwe"')
        for right in ({"nodes": "4"}, {"nodes": ["4", 8]}, {"devices": {"ge": "2"}}, {"env.X": ">4"}, {"module.rocm": ["6", ""]}, {"module.rocm": {"like": ">*"}}):
            self.silent(self.of_rule(when=right))

    def test_conditions_that_no_job_meets(self):
        for fact, test, fix in (("devices", 8, "0 to 2"), ("devices", {"gt": 2}, "0 to 2"), ("devices", {"like": "8"}, "0 to 2"), ("units", 4, "0 to 2"),
                                ("min_cores", {"gt": 8}, "0 to 8"), ("nodes", 0, "1 or more"), ("nodes", {"lt": 1}, "1 or more"), ("nodes", {"set": False}, ""),
                                ("ranks_per_node", {"lt": 1}, ""), ("ranks_per_node", {"gt": 4, "ne": 5, "lt": 6}, ""), ("stack", {"like": "nwe*"}, "new, old"),
                                ("node_type", {"like": "gpu*"}, "compute, cpu, live"), ("launcher", {"like": "mpi*"}, "hydra"), ("in_job", {"like": "t*"}, "no, yes"),
                                ("module.rocm", {"gt": "7", "lt": "6"}, ""), ("env.X", {"eq": "a", "unlike": "a*"}, "")):
            text = '"%s": %s' % (fact, json.dumps(test)) if not isinstance(test, dict) else '"%s":' % fact
            self.one(self.of_rule(when={fact: test}), "never-holds", "warning", "no job of this profile satisfies %s " % fact, fix, text)
        self.one(self.of_rule(when={"node_type": "cpu", "devices": {"gt": 0}}), "never-holds", "warning", "satisfies node_type = cpu, devices > 0", "", '"when":')
        for right in ({"devices": {"ge": 2}}, {"nodes": 1000}, {"devices": {"like": "[12]"}}, {"devices": 0}, {"node_type": "live", "devices": 8}, {"node_type": "compute", "devices": 2},
                      {"nodes": {"like": "1?", "gt": 15}}, {"stack": {"like": "n*"}}, {"module.rocm": {"ge": "6", "lt": "7"}}, {"module.rocm": {"lt": "6"}},
                      {"module.rocm": {"ge": "2025", "like": "2026*"}}, {"live.cores": {"set": False}}, {"stack": {"set": False}}, {"min_cores": 8}):
            self.silent(self.of_rule(when=right))
        # Other profiles may give a part other nodes; the node itself may have other cores than its model.
        self.silent({"schema": 1, "name": "piece", "doc": "x", "part": True, "nodes": [NODE], "rules": [dict(RULE, when={"devices": 8})]})
        self.silent(changed(nodes=[dict(NODE, use="live")], rules=[dict(RULE, when={"units": 14, "min_cores": 9})]))

    def test_facts_that_are_not_known_yet(self):
        site = lambda **keys: {key: value for key, value in dict(self.SITE, **keys).items() if value != []}
        cpu = dict(self.SITE["nodes"][1], when={"env.X": "y", "nodes": 1})
        service = dict(NODE, services=[{"name": "s", "cores": "1", "when": [{"nodes": 1}, {"devices": 3}]}])
        for profile, says, fix, line in (
                (site(nodes=[NODE, cpu]), "node cpu: ", "when a node type is chosen", '"nodes": 1'),
                (site(stacks=[{"name": "a", "when": [{"nodes": 1}, {"env.X": "y", "even": "yes"}]}]), "stack a: ", "when a stack is chosen", '"even": "yes"'),
                (site(bindings=[dict(BINDING, when={"min_cores": 4})]), "binding two: ", "when a binding is chosen", '"min_cores": 4'),
                (site(nodes=[service]), "service s: ", "0 to 2", '"devices": 3')):
            self.one(profile, "never-holds", "warning", says, fix, line)
        self.silent(site(bindings=[dict(BINDING, when={"even": "yes", "stack": "old", "cores_divide": {"ne": "yes"}})]))

    def test_words_that_are_no_options(self):
        for system, word, fix in (("slurm", "exclusive", "--exclusive"), ("slurm", "mem=0", "--mem=0"), ("slurm", "c 4", "-c 4"), ("slurm", "--exclusve", "--exclusive"),
                                  ("slurm", "#SBATCH --exclusive", "--exclusive"), ("slurm", "-l place=scatter", "man sbatch"), ("pbs", "l place=scatter", "-l place=scatter"),
                                  ("pbs", "place=scatter", "-l place=scatter"), ("pbs", "--exclusive", "man qsub"), ("pbs", "-K x", "man qsub"), ("flux", "exclusive", "--exclusive"),
                                  ("flux", "--exclsive", "--exclusive"), ("lsf", "alloc_flags smt4", "-alloc_flags smt4"), ("sge", "h_rt=1:0:0", "-l h_rt=1:0:0"), ("cobalt", "attrs x=y", "--attrs x=y")):
            self.one(self.of_rule(batch={system: ["-q x", word]}), "not-an-option", "warning" if word[0] == "-" else "error", '"%s" is not an option of ' % word, fix, '"%s"' % word)
        for launcher, words, fix in (("pals", ["pmi=pmix"], "--pmi=pmix"), ("pals", ["--pmi pmix"], "--pmi=pmix"), ("slurm", ["--a=b", "exact"], "--exact")):
            self.one(self.of_rule(launch={launcher: words}), "not-an-option", "warning" if words[-1][0] == "-" else "error", "is not an option of " + launcher, fix, '"%s"' % words[-1])
        for system, words in (("slurm", ["--exclusive", "--exclus", "-N 4", "-c${min_cores}", "--uenv=x", "--of-a-plugin=x", "${env.X}"]), ("pbs", ["-lplace=scatter", "-k doe", "-V"]),
                              ("flux", ["-x", "-o fastload", "--amd-gpumode=TPX"]), ("lsf", ["-alloc_flags x"]), ("sge", ["-pe mpi 4", "-cwd"]), ("cobalt", ["--attrs x"])):
            self.silent(self.of_rule(batch={system: words}))
        self.silent(self.of_rule(launch={"pals": ["--pmi", "pmix", "--a=b c"], "slurm": ["-c${min_cores}"]}))

    def test_interfaces_that_no_node_has(self):
        on_gpus = lambda **values: self.of_rule(when={"node_type": "compute"}, default=values)
        for name, value, missing in (("GLOO_SOCKET_IFNAME", "ib9", "ib9"), ("GLOO_SOCKET_IFNAME", "ib", "ib"), ("NCCL_SOCKET_IFNAME", "hsn", "hsn"), ("NCCL_SOCKET_IFNAME", "=ib", "ib"),
                                     ("NCCL_SOCKET_IFNAME", "ib0,ib9", "ib9"), ("FI_TCP_IFACE", "eth0", "eth0"), ("NCCL_IB_HCA", "mlx4", "mlx4"), ("UCX_NET_DEVICES", "mlx5_7:1", "mlx5_7"),
                                     ("FI_CXI_DEVICE_NAME", "cxi0", "cxi0")):
            self.one(on_gpus(**{name: value}), "unknown-interface", "warning", '%s names "%s"' % (name, missing), "ib0", '"%s": "%s"' % (name, value))
        self.one(self.of_rule(require={"GLOO_SOCKET_IFNAME": "ib9"}),
                 "unknown-interface", "warning", "ib9", "one of ib0, ib1, eth0", '"GLOO_SOCKET_IFNAME": "ib9"')
        for name, value in (("GLOO_SOCKET_IFNAME", "ib1"), ("GLOO_SOCKET_IFNAME", "lo"), ("GLOO_SOCKET_IFNAME", "${env.X}"), ("NCCL_SOCKET_IFNAME", "ib"), ("NCCL_SOCKET_IFNAME", "^docker0,veth"),
                            ("NCCL_IB_HCA", "mlx5_0:1,mlx5_1"), ("NCCL_IB_HCA", "=mlx5_0"), ("UCX_NET_DEVICES", "mlx5_0:1,ib0"), ("UCX_NET_DEVICES", "all"), ("FI_OFI_RXM_DETECT_HMEM_IFACE", "1")):
            self.silent(on_gpus(**{name: value}))
        # Nothing is said where a node has no interfaces in its model, or has them without such names, or is read itself.
        for node in (NODE, dict(NODE, nics=[{"fabric": "mlx5_0"}]), dict(NODE, nics=self.NICS, use="live")):
            self.silent(changed(nodes=[node], rules=[dict(RULE, default={"GLOO_SOCKET_IFNAME": "ib9"})]))

    def test_one_mistake_is_one_finding(self):
        node = lambda **keys: dict(self.SITE, bindings=[BINDING], expect=GOOD["expect"], nodes=[{key: value for key, value in dict(NODE, **keys).items() if value is not None}])
        late = {"A": "${value.A}", "B": "${value.B}", "C": "${value.C}"}
        for profile, says, line in ((node(packages="2"), "expected a whole number", '"packages": "2"'), (node(packages=1), "core 4 does not exist", '"cores": "0,4"'),
                                    (node(packages=None, packges=2), 'unknown key "packges"', '"packges": 2'), (node(devices={"vendor": "nvidia", "lits": [{}, {}]}), 'unknown key "lits"', '"lits":'),
                                    (self.of_rule(whne={"value.A": "1"}, default=late), 'unknown key "whne"', '"whne":'),
                                    (self.of_rule(default={"X": {"each": "ranks", "item": "${local_rank}:${cpus}"}}), "is not one of rank, unit", '"each": "ranks"')):
            self.one(dict((key, value) for key, value in profile.items() if value != []), "schema", "error", says, "", line)
        self.one(self.of_rule(when={"env.NCCL_DEBUGG": {"set": True, "ne": "x"}}), "unknown-variable", "warning", "NCCL_DEBUGG", "NCCL_DEBUG", '"env.NCCL_DEBUGG":')

    def test_roles(self):
        value = {"each": "rank", "item": "${role.helpr}", "join": ","}
        fix = self.found("unknown-role", changed(rules=[dict(RULE, default={"CCL_WORKER_AFFINITY": value})]))["fix"]
        self.assertIn("${role.helper}", fix)

    def test_signals(self):
        self.found("no-signals", changed(detect=None), "warning")
        for pattern in ("?*", "*.*", "[a-z]*", "[!x]*"):
            self.found("proves-all", changed(detect=[{"env": "PBS_JOBID", "like": pattern}]))
        self.found("proves-all", changed(detect=[{"host": "*-*"}]))
        self.found("schema", changed(detect=[{"host": "*"}]), says="every machine")
        for good in ({"host": "*-*", "proves": False}, {"env": "SITE", "like": "[gG][oO]*"}, {"host": "login*"}):
            self.ok(self.profile("validate", self.write(changed(detect=[good]))))

    def test_one_reason_that_names_some_of_several_variables(self):
        both = dict(RULE, default={"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/tmp/log"})
        for key, other in (("why", {}), ("disputed", {"why": "logs"})):
            rule = dict(both, **{**other, key: "NCCL_DEBUG is quiet at WARN"})
            fix = self.found("partial-reason", changed(rules=[rule]), "warning",
                             '"%s" names NCCL_DEBUG, not NCCL_DEBUG_FILE' % key)["fix"]
            self.assertIn('"%s": {"NCCL_DEBUG": "..."}' % key, fix)
        for why in ("warnings cost nothing", "NCCL_DEBUG and NCCL_DEBUG_FILE: logs", "MY_NCCL_DEBUG and NCCL_DEBUG_SUBSYS are others",
                    {"NCCL_DEBUG": "as NCCL_DEBUG_FILE", "NCCL_DEBUG_FILE": "a log"}):
            self.ok(self.profile("validate", self.write(changed(rules=[dict(both, why=why)]))))
        self.found("schema", changed(rules=[dict(both, why={"NCCL_DEBUG": "quiet"})]), says='no reason for "NCCL_DEBUG_FILE"')
        self.found("schema", changed(rules=[dict(both, why={"NCCL_DEBUGG": "quiet"})]), says='the rule does nothing with "NCCL_DEBUGG"')
        self.found("schema", changed(rules=[dict(RULE, core_limit="0", why={"NCCL_DEBUG": "quiet"})]), says='no reason for "core_limit"')

    def test_secrets_and_directories(self):
        self.found("secret", changed(rules=[dict(RULE, default={"WANDB_API_KEY": "0123456789abcdef"})]))
        finding = self.found("secret", changed(rules=[dict(RULE, default={"MY_THING": "hf_0123456789abcdefghij"})]))
        self.assertNotIn("0123456789", json.dumps(finding))
        self.found("shared-directory", changed(rules=[dict(RULE, make_dirs=["/home/${user}/cache"])]), "warning")
        self.found("schema", changed(rules=[dict(RULE, make_dirs=["/tmp/../home/x"])]))
        for directory in ("/tmp/${user}", "/dev/shm/x", "/mnt/bb/${user}"):
            self.ok(self.profile("validate", self.write(changed(rules=[dict(RULE, make_dirs=[directory])]))))

    def test_successor(self):
        self.found("schema", changed(retired={"date": "2025-01-01", "successor": "nowhere"}), says="nowhere")

    def test_a_file_that_others_may_write(self):
        path = self.write(GOOD)
        os.chmod(path, 0o666)
        done = self.ok(self.profile("validate", path), 1)
        self.assertIn("is writable by group or others", done.out)
        self.assertIn("chmod go-w", done.out)
        self.refused(2, "plan", "--profile", path, "-n", "1", env=self.env, says=["is writable by group or others", "chmod go-w"])
        os.chmod(path, 0o644)
        self.ok(self.profile("validate", path))

    def test_a_group_of_ones_own(self):
        """Many systems give each user a group of the same name, and files to that group."""
        path = self.write(GOOD)
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid)
        private = group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}
        os.chown(path, -1, user.pw_gid)
        os.chmod(path, 0o664)
        self.ok(self.profile("validate", path), 0 if private else 1)
        others = [number for number in ([54321] if os.geteuid() == 0 else os.getgroups()) if number != user.pw_gid]
        for number in others[:1]:
            os.chown(path, -1, number)
            os.chmod(path, 0o664)
            self.assertIn("is writable by group or others", self.ok(self.profile("validate", path), 1).out)

    def test_what_cannot_be_done(self):
        good = self.write(GOOD)
        done = self.ok(self.profile("validate", self.folder + "/none.json", good), 2)
        self.assertIn("none.json", done.err)
        self.assertIn("good: clean", done.out)
        self.ok(self.profile("validate", self.folder + "/"), 2)
        self.ok(self.profile("test", self.folder + "/none.json"), 2)
        self.refused(2, "profile", "validat", says=["did you mean validate?"])
        self.refused(2, "profile", says=["profile"])
        self.refused(2, "profile", "list", "x")
        self.refused(2, "profile", "test", "--topology", "x", good)
        self.refused(2, "profile", "list", "--format", "junit")
        self.refused(2, "profile", "validate", "--format", "yaml")


class Cases(ProfileTest):
    def case(self, **keys):
        case = dict(GOOD["expect"][0])
        case.update(keys)
        return changed(expect=[{key: value for key, value in case.items() if value is not None}])

    def test_each_difference_is_shown(self):
        for keys, text in (({"cpus": "1-2:5-7"}, 'cpus: expected "1-2:5-7", got "1-2:5-6"'),
                           ({"devices": "1:0"}, 'devices: expected "1:0", got "0:1"'),
                           ({"set": {"NCCL_DEBUG": "INFO"}}, 'NCCL_DEBUG: expected "INFO", got "WARN"'),
                           ({"set": {"NCCL_ALGO": "Ring"}}, 'NCCL_ALGO: expected "Ring", got nothing'),
                           ({"set": {"RANK": "0"}}, 'RANK: expected "0" on every rank, got "0:1"'),
                           ({"absent": ["NCCL_DEBUG"]}, 'NCCL_DEBUG: expected nothing, got "WARN"'),
                           ({"per_rank": {"RANK": "1:0"}}, 'RANK: expected "1:0", got "0:1"'),
                           ({"argv": ["mpiexec"]}, "argv: expected [mpiexec], got [hpclaunch"),
                           ({"argv_has": ["--np"]}, "argv: expected --np, got [hpclaunch"),
                           ({"argv_lacks": ["launch-local"]}, "argv: expected no launch-local"),
                           ({"core_limit": "0"}, 'core_limit: expected "0", got ""'),
                           ({"reports": ["debug"]}, "reports: expected debug, got []"),
                           ({"options": ["-N", "1", "--ppn", "3"]}, 'cpus: expected "1-2:5-6"'),
                           ({"options": ["--rnaks", "3"]}, 'unknown option --rnaks'),
                           ({"options": ["-N", "1", "--ppn", "99"]}, "no plan: ")):
            finding = self.found("case-differs" if "expected" in text else
                                 "case-options" if "option" in text else "case-refused", self.case(**keys), says=text, action="test")
            self.assertIn('case "two": ', finding["message"])

    def test_what_is_right_is_right(self):
        env = {"NCCL_ALGO": "Ring", "NCCL_DEBUG": "INFO"}
        path = self.write(self.case(set={"NCCL_ALGO": "Ring", "NCCL_DEBUG": "INFO", "WORLD_SIZE": "2"}, env=env, absent=["NCCL_PROTO"],
                                    per_rank={"RANK": "0:1", "LOCAL_RANK": "0:1", "NCCL_DEBUG": "INFO:INFO"}, argv_has=["launch-local"],
                                    argv_lacks=["hpclaunch-shim", "python"]))
        self.ok(self.profile("test", path))

    def test_refusals(self):
        keys = {"cpus": None, "devices": None, "set": None, "absent": None}
        many = ["-N", "1", "--ppn", "99"]
        self.ok(self.profile("test", self.write(self.case(options=many, refused="99 ranks", **keys))))
        self.found("case-differs", self.case(options=many, refused="because of rain", **keys), action="test")
        self.found("case-accepted", self.case(refused="99 ranks", **keys), action="test")

    def test_broken_profiles_fail(self):
        path = self.file("p/good.json", "{")
        done = self.ok(self.profile("test", path), 1)
        self.assertIn("[unusable]", done.out)

    def test_parts_are_skipped(self):
        path = self.write({"schema": 1, "name": "piece", "doc": "x", "part": True})
        self.assertIn("piece: a part, tested with the profiles that extend it", self.ok(self.profile("test", path)).out)


class Laws(ProfileTest):
    def test_two_ranks_on_one_core(self):
        # The spans of a package's two ranks overlap: such a rule is not used, so that the laws hold.
        binding = dict(BINDING, when={"ranks_per_node": 4}, stride=1, cores="0-1")
        self.ok(self.profile("test", self.write(changed(bindings=[binding], expect=None))))

    def test_list_of_the_wrong_length(self):
        # The item holds the separator, but not where the law can see it.
        rule = dict(RULE, default={"EXAMPLE_LIST": {"each": "rank", "item": "${user}", "join": "e"}})
        self.found("invariant-list-length", changed(rules=[rule], expect=None), says="EXAMPLE_LIST", action="test")
        rule = dict(RULE, default={"EXAMPLE_LIST": {"each": "rank", "item": "${local_rank}", "join": ","}})
        self.ok(self.profile("test", self.write(changed(rules=[rule], expect=None))))

    def test_value_that_nothing_reads(self):
        rule = dict(RULE, default={"NCCL_DEBUG": "LEVEL${ranks_per_node}"})
        finding = self.found("invariant-known-variable", changed(rules=[rule], expect=None), says="NCCL_DEBUG", action="test")
        self.assertIn("--node-type compute", finding["message"])
        done = self.profile("test", self.write(changed(rules=[rule], expect=None)))
        self.assertRegex(done.out, r"more plans for node type compute violate this invariant")

    def test_far_ranks_are_counted(self):
        devices = {"vendor": "nvidia", "list": [{"numa": 1}, {"numa": 1}]}
        path = self.write(changed(nodes=[dict(NODE, devices=devices)], bindings=None, expect=None))
        self.assertRegex(self.ok(self.profile("test", path)).out, r"report ranks far from their devices")


class Formats(ProfileTest):
    NASTY = 'two, 100%: <"&">'

    def files(self):
        case = dict(GOOD["expect"][0], name=self.NASTY, cpus="0:1")
        return self.write(changed(expect=[case])), self.write(changed(name="fine"))

    def test_json(self):
        document = json.loads(self.ok(self.profile("test", "--format", "json", *self.files()), 1).out)
        self.assertEqual((document["schema"], document["action"], document["clean"]), (1, "test", False))
        self.assertEqual([one["name"] for one in document["profiles"]], ["good", "fine"])
        self.assertEqual(document["profiles"][1]["diagnostics"], [])
        self.assertEqual(document["profiles"][0]["cases"], 1)
        self.assertGreater(document["profiles"][0]["invariants"], 100)
        self.assertIn(self.NASTY, document["profiles"][0]["diagnostics"][0]["message"])

    def test_junit(self):
        root = xml.etree.ElementTree.fromstring(self.ok(self.profile("test", "--format", "junit", *self.files()), 1).raw_out)
        self.assertEqual(root.tag, "testsuites")
        suites = {suite.get("name"): suite for suite in root.findall("testsuite")}
        self.assertEqual(list(suites), ["good", "fine"])
        self.assertEqual((suites["good"].get("failures"), suites["fine"].get("failures")), ("1", "0"))
        for suite in suites.values():
            self.assertEqual(len(suite.findall("testcase")), int(suite.get("tests")))
            self.assertGreater(len(suite.findall("testcase")), 8)
        failed = [case for case in suites["good"].findall("testcase") if case.find("failure") is not None]
        self.assertEqual([case.get("name") for case in failed], [self.NASTY])
        self.assertIn("cpus: expected", failed[0].find("failure").get("message"))
        self.assertEqual(int(root.get("tests")), sum(int(suite.get("tests")) for suite in suites.values()))
        root = xml.etree.ElementTree.fromstring(self.ok(self.profile("validate", "--format", "junit", *self.files())).raw_out)
        self.assertEqual(root.get("failures"), "0")

    def test_github(self):
        good, fine = self.files()
        out = self.ok(self.profile("test", "--format", "github", good, fine), 1).out
        lines = out.splitlines()
        self.assertEqual(len(lines), 1, out)
        match = re.fullmatch(r"::error file=([^,:]+),line=(\d+),col=(\d+),title=([^,:]+)::(.*)", lines[0])
        self.assertTrue(match, lines[0])
        self.assertEqual(match.group(1), good)
        self.assertIn("100%25", match.group(5))
        self.assertNotRegex(match.group(5), r"%(?!25|0D|0A)")
        self.assertEqual(self.ok(self.profile("validate", "--format", "github", fine)).out, "")
        stale = self.write(changed(rules=[dict(RULE, source="https://example.org/")]))
        self.assertRegex(self.ok(self.profile("validate", "--format", "github", stale), 1).out, r"\A::warning file=.*%0Atry: ")

    def test_no_control_bytes_in_text(self):
        path = self.file("p/good.json", '{"schema": 1, "name": "good", "doc": "x", "\\u001b[31m": 1}')
        out = self.ok(self.profile("validate", path), 1).raw_out
        self.assertNotIn(b"\x1b", out)


class Schema(ProfileTest):
    def test_schema(self):
        """For editors: it names every key of a profile, and says that files may have comments."""
        schema = json.loads(self.ok(self.profile("schema")).out)
        self.assertIs(schema["allowComments"], True)
        self.assertLessEqual({"nodes", "rules", "expect"}, set(schema["properties"]))
        self.assertEqual(schema["properties"]["nodes"]["items"]["properties"]["use"]["enum"], ["model", "live"])


class Examples(ProfileTest):
    def test_workflow(self):
        with open(os.path.join(EXAMPLES, "profile-ci.yml")) as file:
            text = file.read()
        commands = [line.strip()[len("run: "):] for line in text.splitlines() if line.strip().startswith("run: hpclaunch")]
        self.assertEqual(len(commands), 2)
        self.write(GOOD, folder="repo/profiles/site")
        env = dict(self.env, PATH=os.path.dirname(support.HPCLAUNCH) + ":" + self.env["PATH"])
        for command in commands:
            self.ok(execute(["sh", "-e", "-c", command], env, cwd=self.folder + "/repo"))
        self.write(changed(detect=[{"host": "*-*"}], expect=[dict(GOOD["expect"][0], cpus="7")]), folder="repo/profiles/site")
        for command in commands:
            done = self.ok(execute(["sh", "-e", "-c", command], env, cwd=self.folder + "/repo"), 1)
            self.assertTrue(done.out.startswith("::error file=profiles/site/good.json,"), str(done))

    def test_pre_commit_hook(self):
        git = need("git")
        env = dict(self.env, PATH=os.path.dirname(support.HPCLAUNCH) + ":" + self.env["PATH"], HOME=self.folder,
                   GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@example.org",
                   GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@example.org")
        repo = os.path.join(self.folder, "repo")
        run = lambda *words: execute([git, *words], env, cwd=repo)
        os.mkdir(repo)
        self.ok(run("init", "-q"))
        with open(os.path.join(EXAMPLES, "pre-commit-profiles.sh")) as file:
            self.file("repo/.git/hooks/pre-commit", file.read(), 0o755)
        self.file("repo/other.txt", "x")
        self.ok(run("add", "other.txt"))
        self.ok(run("commit", "-q", "-m", "no profile"))
        self.write(GOOD, folder="repo/profiles/site")
        self.ok(run("add", "."))
        self.ok(run("commit", "-q", "-m", "good"))
        bad = changed(expect=[dict(GOOD["expect"][0], cpus="7")])
        self.write(bad, folder="repo/profiles/site")
        self.ok(run("add", "."))
        self.write(GOOD, folder="repo/profiles/site")  # what is staged counts, not what lies there
        done = run("commit", "-q", "-m", "bad")
        self.assertNotEqual(done.status, 0, str(done))
        self.assertIn('expected "7"', done.out + done.err)
        self.assertEqual(run("log", "--format=%s", "-1").out, "good\n")


class Update(ProfileTest):
    TEXT = """{ // kept
  "schema": 1, "name": "good", "doc": "x", "detect": [{"env": "GOOD_SITE", "like": "good"}],
  "nodes": [%s],
  "rules": [{"id": "debug", "default": {"NCCL_DEBUG": "WARN"}, "why": "warnings cost nothing"}],
  "expect": [
    {"name": "right", "options": ["-N", "1", "--ppn", "1"], "devices": "0"},   // this one is right
    {"name": "wrong",  /* two blanks */ "options": ["-N", "1", "--ppn", "2"], "cpus" : "0:1", "devices": "0:1",
     "set": {"NCCL_DEBUG":   "INFO", "WORLD_SIZE": "2"}, "per_rank": {"RANK": "1:0"},
     "argv": ["hpclaunch",
              "nothing"], "argv_has": ["--there"], "batch": []},
    {"name": "refused", "options": ["-N", "1", "--ppn", "900"], "refused": "no such words"}
  ]
}
""" % json.dumps(NODE)

    def test_what_comes_out_now_is_written(self):
        path = self.file("p/good.json", self.TEXT)
        before = self.ok(self.profile("test", path), 1).out
        self.assertIn('cpus: expected "0:1", got "', before)
        done = self.ok(self.profile("test", "--update", path), 1)  # "argv_has" is for people
        self.assertRegex(done.out, r'good.json:7:5: case "wrong"\n(.*\n)*- "cpus": "0:1"\n\+ "cpus": "1-3,9-11:5-7,13-15"\n')
        self.assertRegex(done.out, r'- "argv": \["hpclaunch",\n-  *"nothing"\]\n\+ "argv": \["')
        self.assertIn("good.json: 5 values updated\n", done.out)
        self.assertRegex(done.out, r"case \"wrong\": argv: expected --there.*\n(.*\n)*good: 3 cases, .*; 1 case failed")
        with open(path) as file:
            text = file.read()
        new = json.loads(re.sub(r"//.*|/\*.*?\*/", "", text))["expect"]
        self.assertEqual((new[1]["set"], new[1]["per_rank"], new[1]["batch"]), ({"NCCL_DEBUG": "WARN", "WORLD_SIZE": "2"}, {"RANK": "0:1"}, []))
        expected = self.TEXT
        for old, fresh in (('"0:1", "devices"', '"%s", "devices"' % new[1]["cpus"]), ('"INFO"', '"WARN"'), ('"1:0"', '"0:1"'),
                           ('["hpclaunch",\n              "nothing"]', json.dumps(new[1]["argv"], separators=(",", ":"))),
                           ('"no such words"', json.dumps(new[2]["refused"]))):
            self.assertEqual(expected.count(old), 1)
            expected = expected.replace(old, fresh)
        self.assertEqual(text, expected)
        again = self.profile("test", "--update", path)
        self.assertIn("good.json: 0 values updated\n", again.out)
        with open(path) as file:
            self.assertEqual(file.read(), text)

    def test_what_cannot_be_updated(self):
        self.refused(2, "profile", "test", "--update", says=["--update needs the profiles to change"])
        self.refused(2, "profile", "validate", "--update", "aurora", says=["validate takes no --update"])
        self.refused(2, "profile", "test", "--update", "--format", "json", "aurora", says=["--format json with --update"])
        self.refused(2, "profile", "test", "--update", "aurora", env=self.env, says=["aurora is builtin and cannot be changed"])
        self.assertIn("cannot be read", self.ok(self.profile("test", "--update", self.file("p/bad.json", "{")), 1).out)

    def test_a_file_that_cannot_be_written(self):
        name = "g" * 250  # with .json as long as a file name may be: there is none for the new text beside it, for root either
        path = self.file("p/%s.json" % name, self.TEXT.replace('"name": "good"', '"name": "%s"' % name))
        self.refused(2, "profile", "test", "--update", path, env=self.env, says=["--update", "cannot write"])
        with open(path) as file:
            self.assertIn('"cpus" : "0:1"', file.read())


if __name__ == "__main__":
    support.main()
