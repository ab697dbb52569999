#!/usr/bin/env python3
"""hpclaunch profile new: from any machine comes a profile that validates, holds its laws and is that machine."""
import json
import os
import random
import re

import support
from support import Test, cpu_list, hpclaunch, machine, machines

# A program with sanitizers is slow: there each fifth machine has to do.
EVERY = int(os.environ.get("HPCLAUNCH_TEST_EVERY", "1"))

TODAY = "2026-12-01"
MIB = 1 << 20


def text_of(cpus):
    return ",".join(str(cpu) for cpu in sorted(cpus))


def node(packages=1, numa=1, cores=4, threads=1, l3=0, first_numa=0, **more):
    """A machine as `topo --json` prints one: cores numbered in order, siblings after all cores."""
    total, each = packages * numa * cores, numa * cores
    pus = lambda low, high: {core + t * total for core in range(low, high) for t in range(threads)}
    groups = lambda count, width: [pus(i * width, (i + 1) * width) for i in range(count)]
    made = {"schema": 1, "hostname": "node0123", "cores": [
        {"package": c // each, "numa": first_numa + c // cores, "pus": text_of(pus(c, c + 1))} for c in range(total)]}
    made["packages"] = [{"os_index": i, "model": "Example CPU", "pus": text_of(g)} for i, g in enumerate(groups(packages, each))]
    made["numa_nodes"] = [{"os_index": first_numa + i, "memory_bytes": 64 << 30, "pus": text_of(g)}
                          for i, g in enumerate(groups(packages * numa, cores))]
    if l3:
        made["caches"] = [{"level": 3, "size_bytes": 32 << 20, "pus": text_of(g)} for g in groups(packages * numa * l3, cores // l3)]
    made.update(more)
    return made


def devices(vendor, places, **more):
    return [dict({"index": i, "vendor": vendor, "model": "Example GPU", "pci": "0000:%02x:00.0" % (16 + i), "memory_bytes": 64 << 30,
                  "numa": numa}, **more) for i, numa in enumerate(places)]


def nics(kind, names, fabric="", numa=0, **more):
    return [dict({"name": name, "numa": numa, "kind": kind, "fabric": fabric.replace("#", str(i)), "state": "up",
                  "addresses": ["10.0.0.%d" % (i + 1), "fd00::1"]}, **more) for i, name in enumerate(names)]


def without(made, *keys):
    return {key: value for key, value in made.items() if key not in keys}


def random_machine(rng):
    """Odd numbering, odd memory, odd devices; always a machine that could be."""
    threads, l3 = rng.choice((1, 1, 2, 4)), rng.choice((0, 0, 1, 2))
    made = node(rng.randint(1, 3), rng.randint(1, 3), rng.choice((1, 2, 3, 4)) * max(1, l3), threads, l3, rng.choice((0, 0, 0, 5)))
    numas = [numa["os_index"] for numa in made["numa_nodes"]]
    spare = max(numas) + 1
    if rng.random() < 0.3:
        made["numa_nodes"] += [{"os_index": spare + 2 * i, "memory_bytes": rng.choice((0, 96 << 30)),
                                "pus": rng.choice(("", made["numa_nodes"][0]["pus"]))} for i in range(rng.randint(1, 3))]
    if rng.random() < 0.2:  # siblings side by side
        for c, core in enumerate(made["cores"]):
            core["pus"] = text_of(range(c * threads, (c + 1) * threads))
        for groups in ("packages", "numa_nodes", "caches"):
            for group in made.get(groups, []):
                cores = sorted(cpu for cpu in cpu_list(group["pus"]) if cpu < len(made["cores"]))
                group["pus"] = text_of(c * threads + t for c in cores for t in range(threads))
    every = sorted(set().union(*(cpu_list(core["pus"]) for core in made["cores"])))
    if rng.random() < 0.2:
        made["allowed"] = text_of(rng.sample(every, rng.randint(1, len(every))))
    if rng.random() < 0.2:
        for key in ("packages", "caches"):
            made.pop(key, None)
        made["cores"] = [without(core, "package") for core in made["cores"]]
    vendor = rng.choice(("nvidia", "amd", "intel", ""))
    if vendor:
        made["devices"] = devices(vendor, [rng.choice(numas + [-1]) for _ in range(rng.randint(1, 8))],
                                  subdevices=2 if vendor == "intel" and rng.random() < 0.5 else 0)
        for device in made["devices"]:
            if rng.random() < 0.2:
                device["pus"] = rng.choice(made["cores"])["pus"]
            if rng.random() < 0.1:
                device["pci"] = ""
    kind = rng.choice(("slingshot", "infiniband", "roce", "efa", "omni-path", "ethernet", "", None))
    if kind is not None:
        made["nics"] = nics(kind, ["n%d" % i for i in range(rng.randint(1, 5))], rng.choice(("", "f#")), rng.choice(numas + [-1]),
                            state=rng.choice(("up", "down", "")))
    return made


HSN = nics("slingshot", ["hsn0", "hsn1"], "cxi#")
MIG = ["MIG-1b2c", "MIG-3d4e"]
MADE = {
    "tiles": node(2, 1, 26, 2, devices=devices("intel", [0, 0, 0, 1, 1, 1], subdevices=2, uuid="GPU-1"), nics=HSN),
    "one-tile": node(2, devices=devices("intel", [0, 1])),
    "crossed-gcds": node(1, 4, 4, 2, 2, devices=devices("amd", [3, 3, 1, 1, 0, 0, 2, 2]), nics=HSN,
                         links=[{"from": 0, "to": 1, "kind": "xgmi", "lanes": 4}]),
    "part-of-a-numa-node": node(1, 1, 8, 2, 4, devices=[dict(device, pus="%d-%d,%d-%d" % (2 * i, 2 * i + 1, 8 + 2 * i, 9 + 2 * i))
                                                        for i, device in enumerate(devices("amd", [0, 0, 0, 0]))]),
    "partitions": node(4, 1, 6, 2, devices=devices("amd", [i // 6 for i in range(24)], partition="CPX", pci="0000:01:00.0")),
    "superchips": node(2, 1, 8, devices=devices("nvidia", [0, 1]), nics=nics("slingshot", ["hsn0"], "cxi#"), numa_nodes=[
        {"os_index": 0, "memory_bytes": 120 << 30, "pus": "0-7"}, {"os_index": 1, "memory_bytes": 120 << 30, "pus": "8-15"},
        {"os_index": 4, "memory_bytes": 96 << 30, "pus": ""}, {"os_index": 12, "memory_bytes": 96 << 30, "pus": ""}]),
    "memory-number-between": dict(node(2, 1, 4), cores=[{"package": c // 4, "numa": 2 * (c // 4), "pus": str(c)} for c in range(8)], numa_nodes=[
        {"os_index": 0, "pus": "0-3"}, {"os_index": 1, "pus": ""}, {"os_index": 2, "pus": "4-7"}]),
    "mig": node(2, 1, 8, devices=devices("nvidia", [0, 1], partition="MIG", instances=MIG)),
    "one-mig": node(2, 1, 8, devices=[dict(d, instances=MIG * (1 - i)) for i, d in enumerate(devices("nvidia", [0, 1]))]),
    "two-vendors": node(2, devices=[dict(d, vendor=v) for d, v in zip(devices("amd", [0, 1]), ("nvidia", "amd"))]),
    "two-models": node(2, devices=[dict(d, model="Model %d" % i) for i, d in enumerate(devices("nvidia", [0, 1]))]),
    "device-numbers": node(2, devices=[dict(d, index=2 * i + 1) for i, d in enumerate(devices("nvidia", [0, 1]))]),
    "one-package-only": node(2, 2, 4, devices=devices("nvidia", [2, 2, 2, 2])),
    "nowhere": node(2, devices=devices("nvidia", [-1, -1], pci="")),
    "strange-pci": node(2, devices=devices("nvidia", [0, 1], pci="10000:01:00.0")),
    "more-devices-than-cores": node(1, 1, 2, devices=devices("nvidia", [0, 0, 0, 0])),
    "one-core": node(1, 1, 1, devices=devices("nvidia", [0])),
    "least": {"schema": 1, "cores": [{"pus": "0"}]},
    "no-packages": without(dict(node(1, 1, 4), cores=[{"pus": str(c)} for c in range(4)],
                                devices=[dict(d, pus="0-1") for d in devices("nvidia", [-1])]), "packages", "numa_nodes"),
    "holes": node(2, 1, 4, 2, allowed="1-3,6-7,9-11,13-15"),
    "device-without-cores": node(2, 1, 4, allowed="0-3", devices=devices("nvidia", [0, 1])),
    "hybrid": dict(node(1, 1, 4), cores=[{"package": 0, "numa": 0, "pus": p} for p in ("0-1", "2-3", "4", "5")],
                   packages=[{"os_index": 0, "pus": "0-5"}], numa_nodes=[{"os_index": 0, "pus": "0-5"}], devices=devices("intel", [0])),
    "core-gone-beside-memory": dict(
        node(2, 1, 4), cores=[{"package": c // 4, "numa": c // 4, "pus": str(c)} for c in range(7)],
        packages=[{"os_index": 0, "pus": "0-3"}, {"os_index": 1, "pus": "4-6"}],
        numa_nodes=[{"os_index": n, "memory_bytes": 16 << 30, "pus": "0-3" if n % 2 == 0 else "4-6"} for n in range(4)]),
    "interfaces-of-packages": node(2, 2, 4, devices=devices("nvidia", [2, 3]), nics=[
        dict(one, numa=-1, pus=pus) for one, pus in zip(HSN, ("0-7", "8-15"))]),
    "numa-from-three": node(2, 1, 4, first_numa=3, devices=devices("nvidia", [3, 4])),
    "shared-l2": node(1, 1, 4, caches=[{"level": 2, "pus": "0-1"}, {"level": 2, "pus": "2-3"}]),
    "infiniband": node(2, devices=devices("nvidia", [0, 1]), nics=nics("infiniband", ["ib0", ""], "mlx5_#", provider="verbs;ofi_rxm") +
                       nics("ethernet", ["eno1"], "mlx5_9", 1)),
    "efa": node(2, devices=devices("nvidia", [0, 1]), nics=nics("efa", ["", ""], "rdmap#s6") + nics("ethernet", ["ens5"])),
    "roce": node(2, devices=devices("amd", [0, 1]), nics=nics("roce", ["enp1s0f0np0", "enp1s0f1np1"], "mlx5_#")),
    "omni-path": node(2, nics=nics("omni-path", ["ib0"], "hfi1_#")),
    "ethernet": node(2, devices=devices("nvidia", [0, 1]), nics=nics("ethernet", ["eno1", "eno2"])),
    "slingshot-down": node(2, devices=devices("nvidia", [0, 1]), nics=nics("slingshot", ["hsn0"], state="down") + nics("ethernet", ["eno1"])),
    "not-all-slingshot": node(2, devices=devices("nvidia", [0, 1]), nics=HSN + nics("ethernet", ["hsnmgmt"])),
    "unknown-kind": node(2, nics=nics("carrier-pigeon", ["cp0"])),
}
NASTY = ("*", "?[", "0", "1234", "none", "a.json", "-", "x" * 300, "a\nb // \"c\"", "\u2028 \\ \t", "//", "*/", "}]", "${name}", "$", "K\u00f6ln7",
         "\U0001f600", "\x7f\x1b[31m", "%s{}", "node 1", "'", "[a-z]*", "\\", "a//b", ".", "..")


class Machines(Test):
    def setUp(self):
        super().setUp()
        self.env = support.clean_env(HPCLAUNCH_PROFILE_PATH="", XDG_CONFIG_HOME=self.folder + "/none", PATH="/nothing")

    def new(self, topology, name="fresh", env=None):
        text = self.ok(hpclaunch("profile", "new", "--name", name, "--topology", topology, env=env or self.env)).out
        return self.file("new/%s.json" % name, text), text

    def given(self, made):
        return self.file("node.json", json.dumps(made))

    def passes(self, action, path):
        today = ["--today", TODAY] if action == "validate" else []
        done = hpclaunch("profile", action, *today, path, env=self.env)
        with open(path) as file:
            self.assertEqual(done.status, 0, "%s\n%s" % (done, file.read()))
        return done.out

    def shown(self, path):
        return json.loads(self.ok(hpclaunch("profile", "show", "--format", "json", path, env=self.env)).out)["profiles"][0]

    def check(self, topology, plans_equal=False):
        """The laws for every machine; returns the text. `plans_equal`: also where the model is not used inside a job."""
        path, text = self.new(topology)
        self.passes("validate", path)
        self.assertRegex(self.passes("test", path), r"fresh: [1-9]\d* cases?, [\d,]+ invariants")
        self.check_comments(text)
        real = json.loads(self.ok(hpclaunch("topo", "--json", "--topology", topology, env=self.env)).out)
        model = self.shown(path)["nodes"][0]
        if model["use"] == "model":
            self.check_same(real, model["topology"], text)
        self.assertEqual([core["pus"] for core in real["cores"]], [core["pus"] for core in model["topology"]["cores"]])
        if plans_equal or model["use"] == "model":
            self.check_plans(topology, real, path)
        return text

    def check_comments(self, text):
        """Comments are prose or suggestions, and with all suggestions taken up the file is a profile still."""
        lines = []
        for line in text.splitlines():
            comment = re.fullmatch(r"( *)//( *)(.*)", line)
            self.assertRegex(line, r"\A[ -~]*\Z|K\u00f6ln|\U0001f600|\ufffd|\u2028")
            if comment and comment.group(3)[:1] in tuple("\"{}[]"):
                line = comment.group(1) + comment.group(2)[1:] + comment.group(3)
            elif comment:
                self.assertRegex(comment.group(3), r"\A(\Z|[^\"{}\[\]\s])")
            lines.append(line)
        name = re.search(r'^  "name": "(.*)",$', text, re.M).group(1)
        path = self.file("taken/%s.json" % name, "\n".join(lines) + "\n")
        self.passes("validate", path)

    def check_same(self, real, model, text):
        """The model read back is the machine, as far as a kind of node goes."""
        self.assertEqual([core["pus"] for core in model["cores"]], [core["pus"] for core in real["cores"]])
        for place, groups in (("package", "packages"), ("numa", "numa_nodes")):
            if real.get(groups):
                self.assertEqual([core[place] for core in model["cores"]], [core[place] for core in real["cores"]])
        memory = {numa["os_index"]: (numa["pus"], numa.get("memory_bytes", 0) // MIB) for numa in real.get("numa_nodes", [])}
        modelled = {numa["os_index"]: (numa["pus"], numa.get("memory_bytes", 0) // MIB) for numa in model["numa_nodes"]}
        self.assertTrue(modelled == memory or not memory, (modelled, memory))
        near = lambda whole, device: device.get("pus") or next((n["pus"] for n in whole["numa_nodes"] if n["os_index"] == device.get("numa", -1)), "")
        keys = ("index", "vendor", "model", "subdevices", "partition")
        plain = lambda device: [device.get(key, 0 if key in ("index", "subdevices") else "") for key in keys]
        self.assertEqual(len(real.get("devices", [])), len(model.get("devices", [])))
        for a, b in zip(real.get("devices", []), model.get("devices", [])):
            self.assertEqual((plain(a), near(real, a), a["memory_bytes"] // MIB), (plain(b), near(model, b), b["memory_bytes"] // MIB))
            self.assertIn(b.get("pci", ""), (a["pci"], ""))
        self.check_nics(real, model, text)
        for nic in model.get("nics", []):
            self.assertFalse({"addresses", "state", "speed_mbps"} & {key for key, value in nic.items() if value})

    def check_nics(self, real, model, text):
        """Each interface that has a name is in the model, or is said to be left out."""
        named = [nic for nic in real.get("nics", []) if nic.get("name") or nic.get("fabric")]
        kept = lambda nic: [nic.get(key, "") for key in ("name", "fabric", "numa")]
        words = re.sub(r"\n *// *", " ", text)
        there = [kept(nic) for nic in model.get("nics", [])]
        left = [nic for nic in named if kept(nic) not in there]
        self.assertEqual([kept(nic) for nic in named if nic not in left], there)
        self.assertEqual("ranks do not get them:" in words, left != [])
        for nic in left:
            self.assertIn('%s (' % json.dumps(nic.get("name") or nic["fabric"]), words)

    def check_plans(self, topology, real, path):
        """A plan made from the profile is the plan made from the machine."""
        if cpu_list(real["allowed"]) != set().union(*(cpu_list(core["pus"]) for core in real["cores"])):
            return
        if self.shown(path).get("extends"):
            return  # tiles have no mode without a profile
        model = self.shown(path)["nodes"][0]["topology"]
        for count in sorted({1, 2, 3, len(real.get("devices", [])) or 4, 7}):
            words = ["--ppn", str(count), "-N", "1", "--json", "--launcher", "slurm"]
            ranks = []
            for source, whole in ((["--profile", path], model), (["--profile", "none", "--topology", topology], real)):
                done = hpclaunch("plan", *source, *words, env=self.env)
                self.assertTrue(done.out or re.search("cores? available", done.err), str(done))
                plan = json.loads(done.out) if done.out else None
                ranks.append((plan["gpu_view"], [self.place(rank, whole) for rank in plan["classes"][0]["ranks"]]) if plan else done.err)
            self.assertEqual(ranks[0], ranks[1], "%s ranks" % count)

    def place(self, rank, whole):
        nic = whole["nics"][rank["nic"]] if rank["nic"] is not None else {}
        cpus = cpu_list(rank["cpus"])
        return {"cores": [c for c, core in enumerate(whole["cores"]) if cpu_list(core["pus"]) & cpus], "cpus": len(cpus), "unit": rank["unit"],
                "device": rank["device"], "nic": (nic.get("name"), nic.get("fabric"))}


class Recorded(Machines):
    def test_every_machine(self):
        for name in machines()[::EVERY]:
            with self.subTest(machine=name):
                self.check(machine(name), True)

    def test_short_entries_share_lines(self):
        _, text = self.new(machine("documented/epyc-7543p-a100.xml"))
        self.assertIn('          {"package": 0, "numa": 0, "pus": "0,32"}, {"package": 0, "numa": 0, "pus": "1,33"},\n', text)
        model = text[text.index('"topology": {'):text.index('"stacks"')]
        self.assertLess(model.count("\n"), 80)


class Made(Machines):
    def test_every_machine(self):
        texts = {}
        some = dict(sorted(MADE.items())[::EVERY])
        for name, made in some.items():
            with self.subTest(machine=name):
                texts[name] = self.check(self.given(made))
        self.assertEqual({name for name, text in texts.items() if '"use": "model"' not in text}, {"mig", "one-mig"} & set(some))

    def test_interfaces_that_no_rank_gets_are_left_out(self):
        ports = nics("infiniband", ["ib0", "ib1", "ib2"], "mlx5_#") + nics("roce", ["st0"], "mlx5_7") + nics("ethernet", ["eno1"])
        ports[1]["state"] = "down"
        ports[0]["speed_mbps"], ports[2]["speed_mbps"] = 100000, 400000
        text = self.check(self.given(node(2, devices=devices("nvidia", [0, 1]), nics=ports)))
        self.assertIn('ranks do not get them: "ib0" (slower than others), "ib1" (down), "st0" (RoCE beside InfiniBand), '
                      '"eno1" (Ethernet beside a fabric).', re.sub(r"\n *// *", " ", text))
        for value in ('"NCCL_SOCKET_IFNAME": "=ib2"', '"GLOO_SOCKET_IFNAME": "ib2"', '"NCCL_IB_HCA": "=mlx5_2"', '"UCX_NET_DEVICES": "mlx5_2:1"'):
            self.assertIn(value, text)
        text = self.check(self.given(node(2, devices=devices("nvidia", [0, 1]), nics=ports[1:2])))
        self.assertNotIn('"nics": [', text)

    def test_the_schema_is_named(self):
        text = self.check(self.given(node(2)))
        self.assertRegex(text, r'\n{\n  "\$schema": "profile-schema.json",\n  "schema": 1,\n')
        self.assertIn("hpclaunch profile schema > profile-schema.json", text)

    def test_numa_nodes_are_found_by_their_cores(self):
        """Numbers like those of POWER9 stay."""
        path, _ = self.new(self.given(dict(MADE["numa-from-three"], nics=nics("infiniband", ["ib0"], numa=4))))
        model = self.shown(path)["nodes"][0]["topology"]
        self.assertEqual([device["numa"] for device in model["devices"]], [3, 4])
        self.assertEqual([nic["numa"] for nic in model["nics"]], [4])
        self.check(self.given(MADE["numa-from-three"]), True)

    def test_bridges_are_kept(self):
        ways = [["0000:10", "0000:10:0%d.0" % i, "0000:1%d:00.0" % (1 + i)] for i in (0, 1)]
        made = node(1, devices=[dict(d, bridges=ways[i // 3] + ["0000:2%d:00.0" % i]) for i, d in enumerate(devices("nvidia", [0, 0, 0, 0]))],
                    nics=[dict(nic, bridges=ways[i]) for i, nic in enumerate(nics("infiniband", ["ib0", "ib1"], "mlx5_#"))])
        path, _ = self.new(self.given(made))
        model = self.shown(path)["nodes"][0]["topology"]
        self.assertEqual([device["bridges"] for device in model["devices"]], [ways[i // 3] + ["0000:2%d:00.0" % i] for i in range(4)])
        self.check(self.given(made))

    def test_links_are_kept(self):
        """Four devices in a ring that is not that of their numbers: ranks go round it, with the profile as without."""
        links = [{"from": a, "to": b, "kind": "nvlink", "lanes": 2} for a, b in ((0, 2), (0, 3), (1, 2), (1, 3))]
        four = devices("nvidia", [0, 0, 0, 0])
        given = self.given(node(1, devices=four, links=links))
        ranks = self.json("plan", "--topology", given, "--profile", "none", "-n", "4")["classes"][0]["ranks"]
        self.assertIn(ranks[1]["device"], (2, 3))
        self.check(given, True)
        links = [dict(link, **{"from": 2 * link["from"], "to": 2 * link["to"]}) for link in links]
        given = self.given(node(1, devices=[dict(d, index=2 * d["index"]) for d in four], links=links))
        path, _ = self.new(given)
        self.assertEqual(self.shown(path)["nodes"][0]["topology"]["links"], links)

    def test_random_machines(self):
        for seed in range(0, 20, EVERY):
            with self.subTest(seed=seed):
                self.check(self.given(random_machine(random.Random(seed))))

    def test_tiles(self):
        path, text = self.new(self.given(MADE["tiles"]))
        profile = self.shown(path)
        self.assertEqual(profile["extends"], ["intel-max"])
        plan = lambda *words: json.loads(self.ok(hpclaunch("plan", "--profile", path, "--json", "-N", "1", "--launcher", "slurm", *words, env=self.env)).out)
        self.assertEqual(plan()["world_size"], 12)
        self.assertEqual(plan("--device-mode", "gpu")["world_size"], 6)
        self.assertIn('"--device-mode", "gpu"', text)

    def test_a_driver_that_keeps_its_own_order_shows_ranks_their_own(self):
        for vendor, places, view in (("intel", [1, 0], "own"), ("intel", [0, 1], "all"), ("amd", [1, 0], "all"), ("intel", [0, -1], "all")):
            path, _ = self.new(self.given(node(2, devices=devices(vendor, places))))
            plan = self.ok(hpclaunch("plan", "--profile", path, "--json", "-N", "1", "--launcher", "slurm", env=self.env))
            self.assertEqual(json.loads(plan.out)["gpu_view"], view, (vendor, places))

    def test_ranks_that_share_devices_see_their_own_as_without_the_profile(self):
        topology = self.given(node(2, devices=devices("nvidia", [0, 1])))
        path, _ = self.new(topology)
        for source in (["--profile", path], ["--profile", "none", "--topology", topology]):
            for ranks, view in (2, "all"), (3, "own"):
                # Other launches of this machine, as tests beside this one, are a warning.
                plan = json.loads(hpclaunch("plan", *source, "--json", "-N", "1", "--launcher", "slurm", "-n", str(ranks), env=self.env).out)
                self.assertEqual(plan["gpu_view"], view, (source, ranks))

    def test_mig_is_left_to_the_node(self):
        path, text = self.new(self.given(MADE["mig"]))
        self.assertNotIn("MIG-1b2c", text)
        self.assertIn("MIG instances have names of their own on each node: inside a job the node is probed", text.replace("\n  //", ""))
        self.assertEqual(self.shown(path)["defaults"]["gpu_view"], "own")

    def test_nothing_of_one_node_only(self):
        for name in ("tiles", "infiniband"):
            _, text = self.new(self.given(MADE[name]))
            for word in ("GPU-1", "10.0.0.", "fd00::"):
                self.assertNotIn(word, text)

    def test_holes_become_a_guess(self):
        _, text = self.new(self.given(MADE["holes"]))
        self.assertIn("CPUs 0,4-5,8,12 were not available", re.sub(r"\n *// *", " ", text))
        self.assertIn('// "reserved": {"cores": "0,4", "why"', text)
        _, text = self.new(self.given(dict(MADE["hybrid"], allowed="1-5")))
        self.assertNotIn('// "reserved"', text)

    def rules(self, made):
        path, text = self.new(self.given(made))
        live = {rule["id"]: rule.get("default", {}) for rule in self.shown(path)["rules"]}
        return live, set(re.findall(r'^    //   "id": "([a-z-]+)"', text, re.M)), text

    def test_rules_follow_from_the_hardware(self):
        live, hints, text = self.rules(MADE["crossed-gcds"])
        self.assertEqual(live, {"sockets": {"NCCL_SOCKET_IFNAME": "hsn"}, "warnings": {"NCCL_DEBUG": "WARN"}})
        self.assertEqual(hints, {"gloo", "libfabric", "nccl-plugin", "nccl-cross-nic", "nccl-gpu-direct", "ranks-share-a-device", "miopen-cache"})
        self.assertIn('{"FI_PROVIDER": "cxi"}', text)
        live, hints, text = self.rules(MADE["infiniband"])
        self.assertEqual(set(live), {"warnings"})
        self.assertEqual(hints, {"sockets", "gloo", "libfabric", "nccl-adapters", "ucx-adapters", "nccl-cross-nic", "ranks-share-a-device"})
        for value in ('"NCCL_IB_HCA": "=mlx5_0,mlx5_1"', '"UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1"', '"FI_PROVIDER": "verbs;ofi_rxm"',
                      '"NCCL_SOCKET_IFNAME": "ib"'):
            self.assertIn(value, text)
        live, hints, text = self.rules(MADE["efa"])
        self.assertEqual((set(live), hints), ({"warnings"}, {"libfabric", "nccl-plugin", "efa-rdma", "nccl-cross-nic", "ranks-share-a-device"}))
        live, hints, text = self.rules(MADE["tiles"])
        self.assertEqual((set(live) - {"tracebacks"}, hints & {"oneccl-interface", "oneccl-transport", "nccl-plugin", "sockets"}),
                         (set(live) - {"tracebacks"}, {"oneccl-interface", "oneccl-transport"}))
        self.assertIn("tracebacks", live)
        live, hints, text = self.rules(MADE["slingshot-down"])
        self.assertEqual((set(live), hints), ({"warnings"}, {"ranks-share-a-device"}))
        live, hints, text = self.rules(MADE["not-all-slingshot"])
        self.assertEqual(live["sockets"], {"NCCL_SOCKET_IFNAME": "=hsn0,hsn1"})
        live, hints, text = self.rules(node(2))
        self.assertEqual((set(live), hints), ({"tracebacks"}, set()))

    def test_hostile_names(self):
        for number, name in enumerate(NASTY):
            with self.subTest(name=name):
                made = node(2, hostname=name, devices=devices("nvidia", [0, 1], model=name, partition=name),
                            nics=nics("slingshot", [name], pci="") + nics("infiniband", ["ib0"], name))
                made["packages"][0]["model"] = name
                path, text = self.new(self.given(made))
                self.passes("validate", path)
                self.passes("test", path)
                self.check_comments(text)
                done = hpclaunch("profile", "new", "--topology", self.given(made), env=self.env)
                own = re.search(r'^  "name": "([A-Za-z0-9.-]+)",$', self.ok(done).out, re.M).group(1)
                self.passes("validate", self.file("%d/%s.json" % (number, own), done.out))


class Site(Machines):
    def test_host_pattern(self):
        for host, pattern in (("node0123", "node*"), ("x1000c0s0b0n1.example.org", "x*c*s*b*n*.example.org"), ("1234", "1234"),
                              ("a[b]c*1", "a?b?c?*"), ("", "fresh*"), ("a" * 200, "a" * 128 + "*")):
            path, _ = self.new(self.given(node(2, hostname=host)))
            self.assertEqual(self.shown(path)["detect"], [{"host": pattern, "proves": False}], host)

    def test_what_the_shell_has(self):
        env = dict(self.env, SLURM_CLUSTER_NAME="clus*ter", PBS_JOBID="12.server.example", LOADEDMODULES="gcc/12.3:a$b/1:torch/2.6", SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n1")
        text = self.ok(hpclaunch("profile", "new", "--name", "here", env=env)).out
        self.assertIn('// {"env": "SLURM_CLUSTER_NAME", "like": "clus\\\\*ter"},', text)
        self.assertIn('// {"env": "PBS_JOBID", "like": "*.server.example"},', text)
        self.assertIn('// {"env": "X"', text.replace("SLURM_CLUSTER_NAME", "X"))
        self.assertIn('[{"module.gcc": {"ge": "12.3"}}]', text)
        self.assertIn('\n  "scheduler": "slurm",\n', text)
        self.assertIn('"batch": {"slurm": ["--exclusive"]}', text)
        path = self.file("new/here.json", text)
        self.passes("validate", path)
        self.passes("test", path)

    def test_a_proving_signal_chooses_the_profile(self):
        env = dict(self.env, SLURM_CLUSTER_NAME="cl*ster")
        path, text = self.new(self.given(node(2)), "mine", env)
        self.file("site/mine.json", text.replace('// {"env"', '{"env"'))
        plan = lambda name: hpclaunch("plan", "-n", "1", "--json", "--topology", self.given(node(2)), "--launcher", "slurm",
                                      env=dict(env, HPCLAUNCH_PROFILE_PATH=self.folder + "/site", SLURM_CLUSTER_NAME=name))
        chosen = lambda name: [c["value"] for c in json.loads(self.ok(plan(name)).out)["choices"] if c["name"] == "profile"]
        self.assertEqual(chosen("cl*ster"), ["mine"])
        self.assertNotEqual(chosen("cluster"), ["mine"])

    def launcher(self, name, says, **extra):
        self.file("bin/" + name, "#!/bin/sh\necho '%s'\n" % says, 0o755)
        env = dict(self.env, PATH=self.folder + "/bin:/usr/bin:/bin", **extra)
        path, text = self.new(self.given(MADE["crossed-gcds"]), env=env)
        self.passes("validate", path)
        self.passes("test", path)
        self.check_comments(text)
        return text

    def test_launcher(self):
        text = self.launcher("srun", "slurm 24.05.1", SLURM_JOB_ID="7")
        self.assertIn('\n  "launcher": "slurm",\n', text)
        self.assertIn('"options": ["-N", "2"]', text)
        self.assertIn('"set": {"NCCL_DEBUG": "WARN", "NCCL_SOCKET_IFNAME": "hsn"}', text)

    def test_a_launcher_outside_of_a_job_is_a_suggestion(self):
        text = self.launcher("mpiexec", "mpiexec (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/")
        self.assertIn('\n  // "launcher": "openmpi",\n', text)
        self.assertIn("/bin/mpiexec, version 4.1.4", text)

    def test_a_changed_plan_fails_its_case(self):
        path, text = self.new(machine("laptop-8.xml"))
        self.file("new/fresh.json", text.replace('// "reserved"', '"reserved"'))
        done = self.ok(hpclaunch("profile", "test", path, env=self.env), 1)
        self.assertIn("cpus: expected", done.out)

    def test_this_node(self):
        text = self.ok(hpclaunch("profile", "new", "--name", "here", env=self.env)).out
        path = self.file("new/here.json", text)
        self.passes("validate", path)
        self.passes("test", path)
        self.check_comments(text)
        self.ok(hpclaunch("plan", "--profile", path, "-n", "1", "--launcher=local", "--master-port=23458", env=self.env))

    def test_refusals(self):
        for name in ("none", "a b", "x.json", "a/b", "-x", "."):
            self.refused(2, "profile", "new", "--name=" + name, says=["--name"])
        self.refused(2, "profile", "new", "--topology", self.folder + "/none.xml")
        self.refused(2, "profile", "new", "--topology", self.file("broken.json", "{"))
        self.refused(2, "profile", "new", "word")


if __name__ == "__main__":
    support.main()
