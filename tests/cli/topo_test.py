#!/usr/bin/env python3
"""hpclaunch topo: the tree and the JSON of the live node and of every recorded machine."""
import json
import os
import re
import xml.etree.ElementTree as ElementTree

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

    def test_the_xml_of_this_node_has_its_pci_devices(self):
        folder = "/sys/bus/pci/devices"
        there = len(os.listdir(folder)) if os.path.isdir(folder) else 0
        path = self.file("live.xml", self.ok(hpclaunch("topo", "--xml")).raw_out)
        objects = [one.get("type") for one in ElementTree.parse(path).iter("object")]
        self.assertEqual(there > 0, objects.count("PCIDev") + objects.count("Bridge") > 0)
        from_file, live = (json.loads(hpclaunch("topo", "--json", *words).out) for words in (("--topology", path), ()))
        on_pci = [nic["name"] for nic in live["nics"] if nic.get("pci")]
        self.assertEqual([name for name in on_pci if name not in {nic["name"] for nic in from_file["nics"]}], [])

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

    def svg(self, text):
        """The document's root, after what every picture of ours keeps to."""
        root = ElementTree.fromstring(text)
        self.assertEqual(root.tag, SVG + "svg")
        self.assertEqual(root.get("role"), "img")
        labels = {item.get("id"): item for item in root if item.get("id")}
        for name in root.get("aria-labelledby").split():
            self.assertTrue(labels[name].text.strip(), name)
        self.assertEqual({item.tag for item in root.iter()} - {SVG + name for name in DRAWN}, set())
        self.assertEqual(re.findall(r"https?://[^\s\"]*|@import|@font-face|href|url\((?!#)", text),
                         ["http://www.w3.org/2000/svg"])
        self.assertIn("@media (prefers-color-scheme:dark)", text)
        width, height = int(root.get("width")), int(root.get("height"))
        for item in root.iter(SVG + "rect"):
            self.assertLessEqual(int(item.get("x") or 0) + int(item.get("width")), width)
            self.assertLessEqual(int(item.get("y") or 0) + int(item.get("height")), height)
        return root

    def pus(self, root):
        titles = [item.text for item in root.iter(SVG + "title")]
        return sorted(int(re.match(r"CPU (\d+)", text).group(1)) for text in titles if text.startswith("CPU "))

    def test_svg_of_every_machine(self):
        for name in machines():
            with self.subTest(name):
                path = os.path.join(self.folder, "picture.svg")
                done = self.ok(hpclaunch("topo", "--topology", machine(name), "--svg", path))
                self.assertEqual([done.out, done.err], ["", ""])
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                self.assertEqual(hpclaunch("topo", "--topology", machine(name), "--svg", "-").out, text)
                there = Machine(machine(name))
                root = self.svg(text)
                self.assertEqual(self.pus(root), sorted(set().union(*there.cores)))
                said = " ".join(item.text for item in root.iter(SVG + "title"))
                for index in there.numa:
                    self.assertRegex(said, r"\bNUMA node %d\b" % index)

    def test_terminal_pictures(self):
        for name in machines():
            with self.subTest(name):
                plain = self.ok(hpclaunch("topo", "--topology", machine(name), "--picture"))
                plain.raw_out.decode("ascii")
                self.assertLessEqual(max(map(len, plain.out.splitlines())), 100)
                numbers = {int(n) for n in re.findall(r"\b\d+\b", plain.out)}
                for core in Machine(machine(name)).cores:
                    if core <= Machine(machine(name)).allowed:
                        self.assertIn(min(core), numbers)

    def test_a_large_machine(self):
        cores = [{"pus": "%d,%d" % (c, c + 2048), "package": c // 1024, "numa": -1} for c in range(2048)]
        packages = [{"os_index": p, "pus": "%d-%d,%d-%d" % (1024 * p, 1024 * p + 1023, 1024 * p + 2048, 1024 * p + 3071)}
                    for p in range(2)]
        path = self.file("large.json", json.dumps({"schema": 1, "packages": packages, "cores": cores}))
        root = self.svg(self.ok(hpclaunch("topo", "--topology", path, "--svg", "-")).out)
        self.assertEqual(self.pus(root), list(range(4096)))
        self.assertLessEqual(int(root.get("width")), 1100)

    def test_names_of_others_stay_text(self):
        evil = "</title><script>alert(1)</script>&amp;\u0007\u001b[2J\u202e\uffff\ufffe]]>"
        path = self.file("evil.json", json.dumps({
            "schema": 1, "hostname": evil, "packages": [{"os_index": 0, "model": evil, "pus": "0"}], "cores": [{"pus": "0"}],
            "devices": [{"index": 0, "vendor": "nvidia", "model": evil, "uuid": evil, "pci": evil, "instances": [evil]}],
            "nics": [{"name": evil, "fabric": evil, "addresses": [evil]}]}))
        root = self.svg(self.ok(hpclaunch("topo", "--topology", path, "--svg", "-")).out)
        self.assertIn("<script>alert(1)</script>&amp;", root.find(SVG + "title").text)
        picture = self.ok(hpclaunch("topo", "--topology", path, "--picture", env=support.clean_env(LC_ALL="C.UTF-8")))
        for bad in "\x07\x1b\u202e":
            self.assertNotIn(bad, picture.out)

    def test_where_a_picture_cannot_go(self):
        one = ("topo", "--topology", machine("single-pu.xml"))
        self.refused(2, *one, "--svg", self.folder, says=["--svg", "not a regular file"])
        self.refused(2, *one, "--svg", os.path.join(self.folder, "not", "there.svg"), says=["--svg", "cannot write"])
        self.refused(2, *one, "--svg", "a.svg", "--json", says=["only one of"])
        self.refused(2, *one, "--picture", "--json", says=["only one of"])
        self.refused(2, *one, "--picture", "--svg", "-", says=["only one of"])


SVG = "{http://www.w3.org/2000/svg}"
DRAWN = ("svg", "title", "desc", "style", "defs", "pattern", "g", "rect", "text", "path", "circle")


if __name__ == "__main__":
    support.main()
