#!/usr/bin/env python3
"""hpclaunch plan on recorded machines: laws, held against our own reading of the files, and golden tables."""
import json
import os
import re
import xml.etree.ElementTree as ElementTree

import support
from support import HOST, ROOT, Machine, Test, clean_env, cpu_list, hpclaunch, machine, machines

GOLDEN = os.path.join(ROOT, "tests", "golden", "cli")


def counts_for(cores):
    return sorted({n for n in (1, 2, 3, 5, 7, 8, 12, 16, cores // 2, cores - 1, cores) if 1 <= n <= cores})


def setting(plan, name):
    return next(s for s in plan["env"] if s["name"] == name)["value"]


def per_rank(value, ranks):
    return value["per_rank"][0] if isinstance(value, dict) else [value] * ranks


class Laws(Test):
    def check(self, name, node, plan, n, exact=None):
        ranks = plan["classes"][0]["ranks"]
        self.assertEqual([len(ranks), plan["world_size"]], [n, n])
        cores = node.usable()
        sets = [cpu_list(rank["cpus"]) for rank in ranks]
        self.assertEqual(sum(map(len, sets)), len(set().union(*sets)), "a CPU in two ranks")
        self.assertLessEqual(set().union(*sets), node.allowed)
        for rank, cpus in zip(ranks, sets):
            own = [core for core in cores if core & cpus]
            self.assertEqual(set().union(*own), cpus, "half a core")
            self.assertEqual(rank["cores"], len(own))
            if exact:
                self.assertEqual(len(own), exact)
        if not exact:
            self.assertEqual(set().union(*sets), node.allowed, "a core is idle")
        numa = node.numa_of_cores()
        room = sum(len([c for c in cores if c <= part]) // (exact or 1) for part in numa)
        if numa and n >= len(numa) and n <= room:
            for cpus in sets:
                self.assertTrue(any(cpus <= part for part in numa), "%s spans NUMA nodes" % sorted(cpus))
        if numa:
            for rank, cpus in zip(ranks, sets):
                if rank["numa"] is not None:
                    self.assertLessEqual(cpus, node.numa[rank["numa"]])
        threads = per_rank(setting(plan, "OMP_NUM_THREADS"), n)
        self.assertEqual([int(t) for t in threads], [rank["cores"] for rank in ranks])
        self.assertEqual(per_rank(setting(plan, "MKL_NUM_THREADS"), n), threads)
        self.assertEqual([setting(plan, "WORLD_SIZE"), setting(plan, "LOCAL_WORLD_SIZE")], [str(n)] * 2)

    def test_every_machine(self):
        self.assertGreaterEqual(len(machines()), 6)
        for name in machines():
            node = Machine(machine(name))
            for n in counts_for(len(node.usable())):
                with self.subTest("%s, %d ranks" % (name, n)):
                    self.check(name, node, self.json("plan", "--topology", machine(name), "-n", str(n)), n)

    def test_exact_widths(self):
        for name, n, width in (("xeon-2x52-smt2.xml", 5, 20), ("xeon-2x52-smt2.xml", 2, 8), ("epyc-1x64-nps4.xml", 8, 4),
                               ("epyc-1x64-nps4.xml", 3, 20), ("power9-4x20-smt4.xml", 8, 10), ("hbm-2x48-snc4.json", 12, 7),
                               ("xeon-2x8-allowed-holes.xml", 3, 2), ("arm-80-nosmt.xml", 6, 13)):
            with self.subTest("%s, %d x %d" % (name, n, width)):
                plan = self.json("plan", "--topology", machine(name), "-n", str(n), "--cpus-per-rank", str(width))
                self.check(name, Machine(machine(name)), plan, n, width)

    def test_without_a_count_one_rank_per_numa_node(self):
        for name in machines():
            node = Machine(machine(name))
            with self.subTest(name):
                plan = self.json("plan", "--topology", machine(name))
                self.assertGreaterEqual(plan["world_size"], 1)
                self.assertEqual(plan["world_size"], max(1, len(node.numa_of_cores())))

    def test_more_ranks_than_cores(self):
        for name in ("single-pu.xml", "laptop-8.xml", "xeon-2x8-allowed-holes.xml"):
            cores = len(Machine(machine(name)).usable())
            words = ["plan", "--topology", machine(name), "-n", str(cores + 1)]
            self.refused(2, *words, says=["%d ranks" % (cores + 1), "--oversubscribe"])
            plan = self.json(*words, "--oversubscribe")
            ranks = plan["classes"][0]["ranks"]
            self.assertEqual(len(ranks), cores + 1)
            self.assertEqual(set(per_rank(setting(plan, "OMP_NUM_THREADS"), cores + 1)), {"1"})
            self.assertEqual(set().union(*(cpu_list(r["cpus"]) for r in ranks)), Machine(machine(name)).allowed)

    def test_equal_facts_equal_bytes(self):
        words = ["plan", "--topology", machine("epyc-1x64-nps4.xml"), "-n", "6", "--master-port", "12345", "--", "/bin/sh"]
        for more in ([], ["--json"]):
            one, two = (hpclaunch(*words[:-2], *more, *words[-2:]) for _ in range(2))
            self.assertEqual(one.raw_out, two.raw_out)

    def test_bind_via_none_binds_nothing(self):
        plan = self.json("plan", "--topology", machine("laptop-8.xml"), "-n", "2", "--bind-via", "none")
        self.assertEqual([r["cpus"] for r in plan["classes"][0]["ranks"]], [None, None])
        self.assertEqual(plan["bind_via"], "none")

    def test_exit_status_tells_remarks(self):
        self.json("plan", "-n", "1", status=0)
        self.json("plan", "-n", "1", env=clean_env(WORLD_SIZE="9"), status=1)
        done = hpclaunch("plan", "-n", "1", env=clean_env(WORLD_SIZE="9"))
        self.ok(done, 1)
        self.assertIn("export-overruled", done.err)
        plan = self.json("plan", "-n", "1", env=clean_env(WORLD_SIZE="9"))
        self.assertEqual([f["id"] for f in plan["diagnostics"]], ["export-overruled"])

    def test_another_machine_gets_bare_names(self):
        folder = os.path.dirname(self.file("srun", "#!/bin/sh\necho slurm 24.05.0\n", 0o755))
        self.file("train", "#!/bin/sh\n", 0o755)
        done = hpclaunch("plan", "--profile", "fir", "train", env=clean_env(PATH=folder + ":" + os.environ["PATH"]))
        self.assertNotIn(folder, done.out)
        self.has(done, "  srun --", "program   train")

    def test_a_program_that_is_not_here_is_a_remark(self):
        plan = self.json("plan", "-n", "1", "--topology", machine("laptop-8.xml"), status=0)
        self.assertIsNone(plan["program"])
        done = hpclaunch("plan", "--json", "-n", "1", "--", "/elsewhere/train")
        self.ok(done, 1)
        self.assertIn("program-not-here", done.out)


class Pictures(Test):
    """plan --svg and --picture; what a picture is at all is held by topo_test.py and the unit tests."""

    SVG = "{http://www.w3.org/2000/svg}"

    def picture(self, *words, status=0):
        root = ElementTree.fromstring(self.ok(hpclaunch("plan", *words, "--svg", "-"), status).out)
        return root, root.find(self.SVG + "desc").text, [item.text for item in root.iter(self.SVG + "title")]

    def test_every_machine(self):
        for name in machines():
            for n in (1, 3, 12):
                with self.subTest("%s, %d ranks" % (name, n)):
                    if n > len(Machine(machine(name)).usable()):
                        continue
                    words = ("--topology", machine(name), "-n", str(n))
                    _, words_of_it, titles = self.picture(*words)
                    owners = {}
                    for title in titles:
                        found = re.match(r"CPU (\d+)(?:, rank (\d+))?", title)
                        if found and found.group(2):
                            owners.setdefault(int(found.group(2)), set()).add(int(found.group(1)))
                    ranks = self.json("plan", *words)["classes"][0]["ranks"]
                    self.assertEqual(owners, {i: cpu_list(rank["cpus"]) for i, rank in enumerate(ranks)})
                    for i, rank in enumerate(ranks):
                        self.assertRegex(words_of_it, r"(?m)^rank %d: CPUs? %s\b" % (i, re.escape(rank["cpus"])))
                    terminal = self.ok(hpclaunch("plan", *words, "--picture"))
                    terminal.raw_out.decode("ascii")
                    self.assertLessEqual(max(map(len, terminal.out.splitlines())), 100)

    def node(self):
        """Two packages; both devices and the interface on the first."""
        halves = ["0-3", "4-7"]
        return self.file("node.json", json.dumps({
            "schema": 1, "packages": [{"os_index": p, "pus": pus} for p, pus in enumerate(halves)],
            "numa_nodes": [{"os_index": p, "pus": pus} for p, pus in enumerate(halves)],
            "cores": [{"pus": str(c), "package": c // 4, "numa": c // 4} for c in range(8)],
            "devices": [{"index": d, "vendor": "nvidia", "numa": 0} for d in (0, 1)]}))

    def test_far_and_near(self):
        far = ("--topology", self.node(), "-n", "2", "--cpus-per-rank", "4")
        _, words, titles = self.picture(*far)
        self.assertRegex(words, r"FAR: 1 of 2 ranks")
        self.assertRegex(words, r"(?m)^rank 1: CPUs 4-7, device 1 \(FAR: on another package\)")
        self.assertIn("rank 1 is far from device 1: on another package", titles)
        picture = self.ok(hpclaunch("plan", *far, "--picture"))
        self.has(picture, "device 1: rank 1 FAR", "1! 1! 1! 1!")
        near = ("--topology", self.node(), "-n", "2", "--cpus-per-rank", "2")
        _, words, titles = self.picture(*near)
        self.assertNotIn("FAR", words)
        self.assertNotIn("FAR", self.ok(hpclaunch("plan", *near, "--picture")).out)

    def test_one_picture_for_each_kind_of_node(self):
        hosts = self.file("hosts", "n1\nn2\nn3\n")
        words = ("--topology", machine("laptop-8.xml"), "--hostfile", hosts, "--launcher", "hydra", "-n", "5", "--ppn", "2")
        done = hpclaunch("plan", *words, "--svg", "-")
        self.assertIn(done.status, (0, 1), str(done))
        root = ElementTree.fromstring(done.out)
        said = root.find(self.SVG + "desc").text
        self.assertRegex(said, r"(?m)^2 nodes: n\[1-2\]; numbers are local ranks; local rank 0 = global ranks 0, 2\.$")
        self.assertRegex(said, r"(?m)^1 node: n3; numbers are local ranks; local rank 0 = global rank 4\.$")
        picture = hpclaunch("plan", *words, "--picture")
        self.has(picture, "2 nodes: n[1-2]", "1 node: n3")

    def test_into_a_file(self):
        path, words = self.file("picture.svg", "old"), ["--topology", machine("laptop-8.xml")]
        done = self.ok(hpclaunch("plan", *words, "-n", "2", "--svg", path))
        self.assertEqual(done.out, "")
        self.assertEqual(os.listdir(self.folder), ["picture.svg"])
        self.assertEqual(ElementTree.parse(path).getroot().tag, self.SVG + "svg")
        text = self.ok(hpclaunch("plan", "-n", "2", *words, "--svg", "-")).out
        for line in (["--svg", "-n", "2", *words], ["-n", "2", *words, "--svg"], ["-n", "2", *words, "--svg", "--"]):
            self.assertEqual(self.ok(hpclaunch("plan", *line, cwd=self.folder)).out, text)
        self.assertEqual(os.listdir(self.folder), ["picture.svg"])
        self.refused(2, "plan", "-n", "1", "--svg", self.folder, says=["--svg", "not a regular file"])
        self.refused(2, "plan", "-n", "1", "--svg", path, "--json", says=["only one of"])


class Mask(Test):
    def test_a_topology_of_this_machine_under_a_narrower_mask(self):
        whole = self.file("node.json", self.ok(hpclaunch("topo", "--json")).out)
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[:1])
        try:
            plan = json.loads(hpclaunch("plan", "--json", "--topology", whole, "-n", "1").out)
        finally:
            os.sched_setaffinity(0, allowed)
        self.assertEqual(plan["classes"][0]["ranks"][0]["cpus"], str(allowed[0]))
        other = json.loads(hpclaunch("plan", "--json", "--topology", machine("xeon-2x52-smt2.xml"), "-n", "1").out)
        self.assertNotEqual(other["classes"][0]["ranks"][0]["cpus"], str(allowed[0]))


class Golden(Test):
    """The whole table. What differs between machines and builds is put back by a name."""

    def normal(self, text):
        text = text.replace(support.shim_path(), "SHIM").replace(os.path.realpath(support.HPCLAUNCH), "HPCLAUNCH")
        text = re.sub(r"(?m)^(hosts +)%s$" % re.escape(HOST), r"\1HOST", text)
        head, _, command = text.partition("\ncommand\n")  # how it is broken depends on how long the paths are
        return head + "\ncommand\n" + "".join("  %s\n" % word for word in command.split())

    def golden(self, name, *words):
        done = hpclaunch("plan", "-v", "--master-port", "12345", "--master-addr", "10.0.0.1", *words, "--", "/bin/sh", "train.sh")
        self.ok(done)
        text = self.normal(done.out)
        path = os.path.join(GOLDEN, name)
        if os.environ.get("HPCLAUNCH_GOLDEN") == "update":
            os.makedirs(GOLDEN, exist_ok=True)
            with open(path, "w") as out:
                out.write(text)
        with open(path) as file:
            self.assertEqual(file.read(), text, "golden file tests/golden/cli/%s (HPCLAUNCH_GOLDEN=update rewrites it)" % name)

    def test_laptop(self):
        self.golden("laptop-8-n3.plan", "--topology", machine("laptop-8.xml"), "-n", "3")

    def test_two_packages_with_siblings(self):
        self.golden("xeon-2x52-smt2-n12.plan", "--topology", machine("xeon-2x52-smt2.xml"), "-n", "12")

    def test_four_numa_nodes_in_a_package(self):
        self.golden("epyc-1x64-nps4-n8x4.plan", "--topology", machine("epyc-1x64-nps4.xml"), "-n", "8", "--cpus-per-rank", "4",
                    "--label", "--grace", "5")

    def test_ddr_and_hbm(self):
        self.golden("knl-snc4-flat.plan", "--topology", machine("knl-snc4-flat.xml"))

    def test_holes(self):
        self.golden("xeon-2x8-allowed-holes-n2.plan", "--topology", machine("xeon-2x8-allowed-holes.xml"), "-n", "2")


if __name__ == "__main__":
    support.main()
