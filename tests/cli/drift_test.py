"""A node that is not the planned one: what differs is named, and --on-drift decides."""
import json
import os

import support
from support import hpclaunch


class Drift(support.Test):
    def setUp(self):
        super().setUp()
        self.node = self.json("topo", status=0)
        self.allowed = sorted(os.sched_getaffinity(0))

    def topology(self, change):
        node = json.loads(json.dumps(self.node))
        change(node)
        return self.file("node.json", json.dumps(node))

    def more_cores(self, node):
        """The live machine and a package that it has not."""
        last = max(cpu for core in node["cores"] for cpu in support.cpu_list(core["pus"]))
        number = 1 + max([p["os_index"] for p in node.get("packages", [])] + [0])
        pus = "%d-%d" % (last + 1, last + 4)
        node.pop("allowed", None)
        if node.get("packages"):
            node["packages"].append({"os_index": number, "pus": pus})
        for cpu in range(last + 1, last + 5):
            node["cores"].append({"package": number if node.get("packages") else -1, "pus": str(cpu)})
        self.missing = pus

    def plan(self, file, *words):
        return hpclaunch("plan", "--topology", file, *words, "-n", "1", "--", "/bin/true")

    def test_the_node_itself_is_no_drift(self):
        done = self.plan(self.topology(lambda node: None), "--on-drift", "fail")
        self.ok(done)
        self.assertNotIn("node-differs", done.out + done.err)

    def test_without_a_word_a_file_is_not_compared(self):
        done = self.plan(self.topology(self.more_cores))
        self.ok(done)
        self.assertNotIn("node-differs", done.out + done.err)

    def test_each_way(self):
        file = self.topology(self.more_cores)
        self.has(self.plan(file, "--on-drift", "warn"), "[node-differs]", "CPUs %s are missing" % self.missing, "replan")
        self.has(self.plan(file, "--on-drift", "fail"), "[node-differs]", "CPUs %s are missing" % self.missing)
        words = ("--topology", file, "-n", "1", "--launcher", "local")
        done = hpclaunch("run", "--on-drift", "fail", *words, "--", "/bin/echo", "started")
        self.ok(done, 125)
        self.has(done, "not started", self.missing)
        self.assertNotIn("started\n", done.out)
        done = hpclaunch("run", "--on-drift", "replan", *words, "--", "/bin/echo", "started")
        self.ok(done)
        self.has(done, "started", "planned for this node")
        plan = self.json("plan", "--on-drift", "replan", *words)
        cpus = support.cpu_list(plan["classes"][0]["ranks"][0]["cpus"])
        self.assertEqual(sorted(cpus), self.allowed)

    def test_what_is_strict_about_ranks_is_strict_about_nodes(self):
        """Only where --on-drift says nothing, and only against what is compared anyway: a profile's node."""
        words = ("--profile", "aurora", "--launcher", "local", "-n", "1")
        done = hpclaunch("run", *words, "--verify", "strict", "--", "/bin/echo", "started")
        if os.cpu_count() == 208:
            return
        self.ok(done, 125)
        self.has(done, "node-differs", "missing")

    def test_other_words_are_refused(self):
        self.refused(2, "plan", "--on-drift", "ignore", "--", "/bin/true", says=["replan"])

    def test_a_missing_device_is_named(self):
        def change(node):
            node["devices"] = [{"index": 0, "vendor": "nvidia", "pci": "0000:fe:1f.0"}]
        file = self.topology(change)
        if self.node.get("devices"):
            self.has(self.plan(file, "--on-drift", "warn"), "0000:fe:1f.0 is missing")
        elif "devices" in self.node:  # PCI was read, and has none
            self.has(self.plan(file, "--on-drift", "warn"), "no device, planned 1")
            plan = self.json("plan", "--topology", file, "--on-drift", "replan", "-n", "1", "--", "/bin/true")
            self.assertIsNone(plan["classes"][0]["ranks"][0]["device"])
        else:  # nothing could be probed, so devices are not judged
            self.assertNotIn("node-differs", self.plan(file, "--on-drift", "warn").out)


if __name__ == "__main__":
    support.main()
