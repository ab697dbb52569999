#!/usr/bin/env python3
"""hpclaunch topo: the tree and the JSON of the live node and of every recorded machine."""
import json
import os
import re

import support
from support import Machine, Test, cpu_list, hpclaunch, machine, machines


class Topo(Test):
    def test_round_trip_of_every_machine(self):
        for name in machines():
            with self.subTest(name):
                first = self.ok(hpclaunch("topo", "--topology", machine(name), "--json"))
                path = self.file("copy.json", first.raw_out)
                again = self.ok(hpclaunch("topo", "--topology", path, "--json"))
                self.assertEqual(first.raw_out, again.raw_out)
                self.assertEqual(hpclaunch("topo", "--topology", machine(name)).out, hpclaunch("topo", "--topology", path).out)

    def test_json_is_what_the_file_says(self):
        for name in machines():
            with self.subTest(name):
                data = json.loads(hpclaunch("topo", "--topology", machine(name), "--json").out)
                there = Machine(machine(name))
                self.assertEqual(data["schema"], 1)
                self.assertEqual(sorted(map(sorted, (cpu_list(core["pus"]) for core in data["cores"]))),
                                 sorted(map(sorted, there.cores)))
                self.assertEqual(cpu_list(data["allowed"]), there.allowed)
                self.assertEqual({node["os_index"]: cpu_list(node["pus"]) for node in data["numa_nodes"]}
                                 if there.numa else {}, there.numa)
                if there.packages:
                    self.assertEqual(len(data["packages"]), len(there.packages))

    def test_both_xml_formats_are_among_the_machines(self):
        versions = set()
        for name in machines():
            if name.endswith(".xml"):
                with open(machine(name)) as file:
                    versions.add("2" if re.search(r'<topology version="2', file.read(4000)) else "1")
        self.assertEqual(versions, {"1", "2"})

    def test_tree_of_every_machine(self):
        for name in machines():
            with self.subTest(name):
                done = self.ok(hpclaunch("topo", "--topology", machine(name)))
                there = Machine(machine(name))
                self.assertEqual(done.err, "")
                head = done.out.splitlines()[0]
                self.assertRegex(head, r"\b%d cores?\b" % len(there.cores))
                self.assertRegex(head, r"\b%d PUs?\b" % sum(map(len, there.cores)))
                done.raw_out.decode("ascii")
                self.assertLessEqual(max(map(len, done.out.splitlines())), 100)

    def test_live(self):
        data = json.loads(self.ok(hpclaunch("topo", "--json")).out)
        self.assertEqual(data["hostname"], support.HOST)
        self.assertEqual(cpu_list(data["allowed"]), os.sched_getaffinity(0))
        path = self.file("live.json", json.dumps(data))
        self.assertEqual(hpclaunch("topo").out, hpclaunch("topo", "--topology", path).out)

    def test_live_under_a_narrower_mask(self):
        one = min(os.sched_getaffinity(0))
        taskset = support.need("taskset")
        done = self.ok(support.execute([taskset, "-c", str(one), support.HPCLAUNCH, "topo", "--json"]))
        self.assertEqual(cpu_list(json.loads(done.out)["allowed"]), {one})
        plan = support.execute([taskset, "-c", str(one), support.HPCLAUNCH, "plan", "--json"])
        ranks = json.loads(plan.out)["classes"][0]["ranks"]
        self.assertEqual([rank["cpus"] for rank in ranks], [str(one)])


if __name__ == "__main__":
    support.main()
