#!/usr/bin/env python3
"""hpclaunch explain: who decided, who lost, and what is kept secret."""
import json
import re

import support
from support import Test, clean_env, hpclaunch, machine

HERE = ("--topology", machine("laptop-8.xml"), "-n", "2")


def blocks(text):
    """{"NAME": [(verdict, layer, value), ...]}, newest first."""
    found = {}
    for line in text.splitlines():
        if line.startswith("== "):  # the library whose variables follow
            continue
        if line and not line.startswith(" "):
            name = line
            found[name] = []
        match = re.match(r"  (value|overridden) +(builtin|default|environment|require|computed|command line) +(.*?)(?:  +\S.*)?$", line)
        if match:
            found[name].append(match.groups())
    return found


class Explain(Test):
    def explain(self, *words, env=None, status=0):
        done = self.ok(hpclaunch("explain", *HERE, *words, env=env), status)
        return blocks(done.out)

    def test_everything(self):
        found = self.explain()
        plan = self.json("plan", *HERE)
        names = [s["name"] for s in plan["choices"]] + [s["name"] for s in plan["env"]]
        self.assertEqual(sorted(found), sorted(names))
        for name, history in found.items():
            self.assertEqual([h[0] for h in history], ["value"] + ["overridden"] * (len(history) - 1), name)

    def test_rules_that_do_not_hold_are_named_with_what_they_lack(self):
        done = self.ok(hpclaunch("explain", "--profile", "aurora", "--stack", "frameworks-2024", "-N", "16", "FI_CXI_OFLOW_BUF_SIZE"))
        self.has(done, "not set by hpclaunch", "inactive    rule cxi-queues of profile aurora", "needs nodes > 16, and it is 16")
        done = self.ok(hpclaunch("explain", "--profile", "aurora", "--stack", "frameworks-2024", "-N", "1", "--ppn", "48",
                                 "CCL_WORKER_AFFINITY", env=dict(clean_env(), CCL_WORKER_AFFINITY="1")))
        self.has(done, 'exported as "1"', "rule ccl-workers", "ranks_per_node = 12, and it is 48")

    def test_documented_names_that_nothing_decided(self):
        for name in ("granted-devices", "signal", "core-limit", "device-mode", "network"):
            done = self.ok(hpclaunch("explain", *HERE, name))
            self.assertTrue(done.out.startswith(name + "\n  nothing decided here\n  what        "), done.out)
        self.ok(hpclaunch("explain", *HERE, "granted-device"), 1)

    def test_values_and_reasons_begin_in_one_column(self):
        for line in hpclaunch("explain", *HERE, "OMP_NUM_THREADS").out.splitlines()[1:]:
            self.assertRegex(line, r"^(  [\w ]{11} | {14})\S")

    def test_notes_of_the_profile(self):
        words = ("explain", "--profile", "aurora", "-N", "1")
        done = self.ok(hpclaunch(*words, "copper"))
        self.assertTrue(done.out.startswith("copper\n  note        Importing Python at scale with Copper: --stage copper"), done.out)
        self.has(done, "source      https://docs.alcf.anl.gov/aurora/data-management/copper/copper/, checked on 20")
        self.assertNotIn("not set by hpclaunch", done.out)
        for site, note in (("frontier", "nvme"), ("frontier", "hang"), ("frontier", "torchrun"), ("narval", "mps"), ("polaris", "mps")):
            self.has(self.ok(hpclaunch("explain", "--profile", site, "-N", "1", note)), "\n  note        ")
        self.has(self.ok(hpclaunch(*words)), "notes of the profile", "  copper               Importing Python")
        done = self.ok(hpclaunch(*words, "coper"), 1)
        self.has(done, "did you mean copper?")
        self.ok(hpclaunch("explain", *HERE, "copper"), 1)

    def test_no_raw_control_bytes(self):
        """Names are typed, pasted and read from files: none may move the cursor or change its colour."""
        evil = "\x1b]0;x\x07\x1b[31mred\u202e"
        folder = self.file("evil.json", "{}")
        for words in (("explain", evil), ("explain", "-n", "1", "HOME\x1b[2J"), (evil,), ("plan", "--profile", evil), ("plan", evil), ("run", "--", "/" + evil),
                      ("run", "--launcher", evil, "--", "true"), ("plan", "--" + evil), ("profile", "show", evil), ("explain", "EVIL"),
                      ("plan", "--topology", evil), ("plan", "--hostfile", evil), ("profile", "validate", folder + evil), ("lint", evil), ("help", evil)):
            done = hpclaunch(*words, env=clean_env(EVIL=evil))
            for byte in ("\x1b", "\x07", "\u202e"):
                self.assertNotIn(byte, done.out + done.err, words)

    def test_names_in_the_order_asked(self):
        self.assertEqual(list(self.explain("OMP_NUM_THREADS", "cpu-bind", "RANK", "launcher")),
                         ["OMP_NUM_THREADS", "cpu-bind", "RANK", "launcher"])

    def test_choices(self):
        found = self.explain("cpu-bind", "ranks", "nodes", "ranks-per-node", "bind-via", "hosts")
        self.assertEqual(found["cpu-bind"][0], ("value", "computed", "0-3 / 4-7"))
        self.assertEqual(found["ranks"][0][:3], ("value", "command line", "2"))
        self.assertEqual(found["bind-via"][0][:2], ("value", "builtin"))

    def test_placement_in_words(self):
        done = self.ok(hpclaunch("explain", "--topology", machine("xeon-2x52-smt2.xml"), "-n", "104", "placement"))
        self.has(done, "  0-51  NUMA node 0, CPUs 0-51,104-155 (1 core each)", "52-103  NUMA node 1, CPUs 52-103,156-207 (1 core each)")
        self.assertLess(len(done.out.splitlines()), 8)
        whole = self.json("topo", "--topology", machine("xeon-2x52-smt2.xml"), status=0)
        whole["allowed"] = "1-51,53-103,105-155,157-207"
        whole["devices"] = [{"index": i, "vendor": "intel", "numa": i // 2} for i in range(4)]
        whole["nics"] = [{"name": "hsn%d" % i, "fabric": "cxi%d" % i, "numa": i, "kind": "slingshot", "state": "up"} for i in range(2)]
        node = ("--topology", self.file("node.json", json.dumps(whole)))
        done = self.ok(hpclaunch("explain", *node, "placement"))
        self.assertIn("2 GPU 2 on NUMA node 1, NIC cxi1, CPUs 53-78,157-182 (26 cores); CPUs 52,156 are not allowed here", " ".join(done.out.split()))
        self.has(self.ok(hpclaunch("explain", *node, "nics")), "cxi0 / cxi0 / cxi1 / cxi1")
        self.assertEqual([r["nic"] for r in self.json("plan", *node)["classes"][0]["ranks"]], [0, 0, 1, 1])
        self.assertRegex(self.ok(hpclaunch("plan", *node)).out, r"local +ranks +device +NIC +package +NUMA +cores +CPUs\n +0 +0 +0 +cxi0 ")

    def test_every_decision_says_why(self):
        lines = self.ok(hpclaunch("explain", *HERE)).out.splitlines()
        for above, below in zip(lines, lines[1:]):
            if re.match(r"  (value|overridden)", above):
                self.assertRegex(below, r"^ {10,}\S", above)

    def test_unknown_names(self):
        done = self.ok(hpclaunch("explain", *HERE, "OMP_NUM_THREDS"), 1)
        self.assertEqual(done.out, "")
        self.has(done, "did you mean OMP_NUM_THREADS?")
        done = self.ok(hpclaunch("explain", *HERE, "NCCL_QQQ_XYZZY"), 1)
        self.assertRegex(done.err, r"NCCL_QQQ_XYZZY is not known up to NCCL \d+\.\d+\.\d+, and not set by hpclaunch")
        done = self.ok(hpclaunch("explain", *HERE, "XYZZY_QQQ", "RANK"), 1)
        self.assertEqual(list(blocks(done.out)), ["RANK"])
        self.assertIn("XYZZY_QQQ", done.err)

    def test_an_export_beats_a_default(self):
        found = self.explain("OMP_NUM_THREADS", "MKL_NUM_THREADS", env=clean_env(OMP_NUM_THREADS="3"))
        self.assertEqual(found["OMP_NUM_THREADS"], [("value", "environment", "3"), ("overridden", "builtin", "4")])
        self.assertEqual(found["MKL_NUM_THREADS"][0], ("value", "builtin", "3"))

    def test_an_export_yields_to_what_follows_from_the_plan(self):
        found = self.explain("RANK", "WORLD_SIZE", env=clean_env(RANK="5", WORLD_SIZE="77"))
        self.assertEqual([h[:3] for h in found["RANK"]], [("value", "computed", "<rank>"), ("overridden", "environment", "5")])
        self.assertEqual([h[:3] for h in found["WORLD_SIZE"]], [("value", "computed", "2"), ("overridden", "environment", "77")])

    def test_the_command_line_beats_all(self):
        found = self.explain("--set", "OMP_NUM_THREADS=2", "--unset", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
                             env=clean_env(OMP_NUM_THREADS="3", MKL_NUM_THREADS="3"))
        self.assertEqual([h[1] for h in found["OMP_NUM_THREADS"]], ["command line", "environment", "builtin"])
        self.assertEqual(found["MKL_NUM_THREADS"][0], ("value", "command line", "(unset)"))

    def test_values_that_are_seldom_meant_are_said_before_the_launch(self):
        def said(env, *words):
            return hpclaunch("plan", *HERE, *words, "--", "/bin/true", env=clean_env(**env)).err
        self.assertIn("warning: FI_MR_CACHE_MONITOR=memhooks", said({"FI_MR_CACHE_MONITOR": "memhooks"}))
        self.assertIn("note: NCCL_P2P_DISABLE=1", said({}, "--set", "NCCL_P2P_DISABLE=1"))
        self.assertIn("CCL_KVS_MODE=mpi", said({"CCL_KVS_MODE": "mpi", "CCL_ATL_TRANSPORT": "ofi"}))
        self.assertNotIn("CCL_KVS_MODE", said({"CCL_KVS_MODE": "mpi", "CCL_ATL_TRANSPORT": "mpi"}))
        # One node: what only nodes would feel is not said. A profile's own values have their reasons there.
        self.assertNotIn("NCCL_IB_DISABLE", said({"NCCL_IB_DISABLE": "1"}))
        done = hpclaunch("plan", "--profile", "aurora", "-N", "2", "--", "/bin/true", env=clean_env())
        self.assertNotIn("-setting]", done.err)

    def test_the_later_of_two_on_the_command_line(self):
        found = self.explain("--set", "A=1", "--set", "A=2", "A")
        self.assertEqual(found["A"], [("value", "command line", "2"), ("overridden", "command line", "1")])

    def test_secrets_are_hidden(self):
        secret = "hunter2hunter2"
        env = clean_env(MY_API_KEY=secret, WANDB_TOKEN=secret)
        words = ("--set", "DB_PASSWORD=" + secret, "--set", "MY_API_KEY=" + secret + "x", "--set", "PLAIN=seen")
        for command in (("explain",), ("plan",), ("plan", "--json")):
            done = hpclaunch(*command, *HERE, *words, env=env)
            self.assertIn(done.status, (0, 1))
            self.assertNotIn(secret, done.out + done.err, command)
            self.assertIn("seen", done.out)
            self.assertIn("DB_PASSWORD", done.out)

    def test_env_prints_no_secret(self):
        words = ("env", *HERE, "--set", "MY_API_KEY=hunter2", "--set", "PLAIN=seen")
        for format, comment in (("sh", "# "), ("csh", "# "), ("fish", "# "), ("dotenv", "# "), ("lmod", "-- "), ("json", None)):
            with self.subTest(format):
                for env in (clean_env(), clean_env(MY_API_KEY="another")):
                    done = self.ok(hpclaunch(*words, "--format", format, env=env), 2)
                    self.has(done, "the value of MY_API_KEY is secret", "export MY_API_KEY", "--show-secrets")
                    self.assertNotIn("hunter2", done.out + done.err)
                done = hpclaunch(*words, "--format", format, env=clean_env(MY_API_KEY="hunter2"))
                if done.status == 0:  # dotenv cannot remove variables
                    self.assertNotIn("hunter2", done.out + done.err)
                    self.assertIn("seen", done.out)
                    self.assertEqual((comment or "MY") + "MY_API_KEY is inherited" in done.out, comment is not None)
                self.assertIn(format, "dotenv" if done.status else format)
        self.assertIn("hunter2", self.ok(hpclaunch(*words, "--show-secrets")).out)

    def test_a_dry_run_refers_to_secrets(self):
        """The script goes into files and tickets: it takes a typed secret from the environment that it runs in."""
        words = ("run", "--dry-run", "--verify", "off", "-n", "1", "--set", "HF_TOKEN=hunter2'x", "--set", "PLAIN=seen", "--", "/usr/bin/printenv", "HF_TOKEN", "PLAIN")
        done = self.ok(hpclaunch(*words))
        self.assertNotIn("hunter2", done.out + done.err)
        script = self.file("dry.sh", done.out)
        ran = support.execute(["/bin/sh", script], clean_env())
        self.assertNotEqual(ran.status, 0)
        self.has(ran, "HF_TOKEN", "export it first")
        self.assertEqual(self.ok(support.execute(["/bin/sh", script], clean_env(HF_TOKEN="hunter2'x"))).out, "hunter2'x\nseen\n")
        shown = self.ok(hpclaunch("run", "--show-secrets", *words[1:])).out
        self.assertEqual(self.ok(support.execute(["/bin/sh", self.file("shown.sh", shown)], clean_env())).out, "hunter2'x\nseen\n")

    def test_leftovers_of_a_launcher(self):
        support.need("mpiexec.hydra")
        done = self.ok(hpclaunch("explain", *HERE, "--launcher", "hydra", "HYDRA_BINDING", env=clean_env(HYDRA_BINDING="rr")))
        self.assertEqual([h[:3] for h in blocks(done.out)["HYDRA_BINDING"]],
                         [("value", "computed", "(unset)"), ("overridden", "environment", "rr")])


if __name__ == "__main__":
    support.main()
