#!/usr/bin/env python3
"""Devices of machines that other people have: what topo and plan make of hwloc's XML, held against our own reading of it."""
import collections
import os
import re
import xml.etree.ElementTree

import support
from support import MACHINES, Test, cpu_list, machine

FOLDER = os.path.join(MACHINES, "devices")
VENDORS = {"10de": "nvidia", "1002": "amd", "8086": "intel"}
BLADE = [4, 5, 2, 3, 6, 7, 0, 1]


def files():
    return sorted(name for name in os.listdir(FOLDER) if name.endswith(".xml"))


def path(name):
    return machine(os.path.join("devices", name))


class Device:
    def __init__(self, busid, vendor, cpus):
        self.busid, self.vendor, self.cpus = busid, vendor, cpus


def devices_in(name):
    """The accelerators that PCI shows, one for each partition, by address; and all CPUs."""
    top = xml.etree.ElementTree.parse(path(name)).getroot().find("object")
    parent = {child: item for item in top.iter("object") for child in item}

    def cpuset(item):
        bits = 0
        for word in item.get("cpuset").split(","):
            bits = bits << 32 | (int(word, 16) if word else 0)
        return {i for i in range(bits.bit_length()) if bits >> i & 1}

    found = []
    for item in top.iter("object"):
        if item.get("type") != "PCIDev":
            continue
        kind, vendor, device = re.match(r"(....) \[(....):(....)", item.get("pci_type")).groups()
        busid = item.get("pci_busid")
        if vendor not in VENDORS or (kind[:2] != "03" and kind != "1200"):
            continue
        if (vendor == "8086" and busid.startswith("0000:00:")) or (vendor, device) == ("1002", "515e"):
            continue  # a processor's own graphics; the picture of a service processor (ES1000)
        home = item
        while not home.get("cpuset") or not cpuset(home):  # a node whose CPUs are not shown is near to its package's
            home = parent[home]
        parts = sum(1 for child in item.iter("object") if (child.get("name") or "").startswith("rsmi"))
        found += [Device(busid, VENDORS[vendor], cpuset(home))] * max(1, parts)
    return sorted(found, key=lambda one: tuple(int(part, 16) for part in re.split("[:.]", one.busid))), cpuset(top)


class Topologies(Test):
    def test_devices_are_those_of_the_file(self):
        self.assertGreaterEqual(len(files()), 15)
        for name in files():
            if name in ("gpus-without-pci.xml", "mi300a-tpx-lost.xml", "xeon-2x8-k40.xml"):
                continue  # without PCI, with parts outside of it, with two vendors: tests/probe/devices_test.cpp
            want, everywhere = devices_in(name)
            with self.subTest(name):
                node = self.json("topo", "--topology", path(name))
                got = node.get("devices", [])
                self.assertEqual([(d["index"], d["pci"], d["vendor"]) for d in got],
                                 [(i, d.busid, d.vendor) for i, d in enumerate(want)])
                whole = len({tuple(cpu_list(n["pus"])) for n in node["numa_nodes"] if n["pus"]}) == 1
                for device, theirs in zip(got, want):
                    if theirs.cpus != everywhere or whole:
                        self.assertEqual(cpu_list(device["pus"]), theirs.cpus)
                        homes = [cpu_list(n["pus"]) for n in node["numa_nodes"] if n["os_index"] == device["numa"] and n["pus"]]
                        self.assertTrue(all(theirs.cpus <= home for home in homes))

    def test_the_text_can_be_read_back(self):
        for name in ("mi300a-cpx.xml", "xeon-pvc.xml", "xeon-a100-switched.xml"):
            with self.subTest(name):
                text = self.ok(support.hpclaunch("topo", "--json", "--topology", path(name))).out
                again = self.ok(support.hpclaunch("topo", "--json", "--topology", self.file("node.json", text))).out
                self.assertEqual(again, text)


class Plans(Test):
    def ranks(self, name, n, *more):
        return self.json("plan", "--profile", "none", "--topology", path(name), "-n", str(n), *more)["classes"][0]["ranks"]

    def test_one_rank_for_each_device_sits_beside_it(self):
        for name in files():
            node = self.json("topo", "--topology", path(name))
            devices = node.get("devices", [])
            vendors = {device["vendor"] for device in devices}
            if len(vendors) != 1:
                continue  # nothing to place, or no mask that counts them all
            if not all(cpu_list(device["pus"]) & cpu_list(node["allowed"]) for device in devices):
                continue  # nothing near a device is allowed
            for n in (len(devices), 2 * len(devices)):
                if n > len(node["cores"]):
                    continue
                with self.subTest("%s, %d ranks" % (name, n)):
                    ranks = self.ranks(name, n)
                    used = collections.Counter(rank["device"] for rank in ranks)
                    self.assertEqual(used, {device["index"]: n // len(devices) for device in devices})
                    sets = [cpu_list(rank["cpus"]) for rank in ranks]
                    self.assertEqual(sum(map(len, sets)), len(set().union(*sets)), "a CPU in two ranks")
                    for rank, cpus in zip(ranks, sets):
                        near = cpu_list(devices[rank["device"]]["pus"])
                        self.assertLessEqual(cpus, near, "rank %d is far from its device" % rank["local_rank"])

    def test_a_blade_of_mi250x_from_pci_alone(self):
        """The order that its site's own users have to know by heart (docs/sites/frontier.md)."""
        for name in ("mi250x-blade.xml", "mi250x-blade-unplaced.xml"):
            with self.subTest(name):
                self.assertEqual([rank["device"] for rank in self.ranks(name, 8)], BLADE)
        plan = self.json("plan", "--profile", "none", "--topology", path("mi250x-blade.xml"), "-n", "8", "--gpu-view", "own")
        masks = [setting["value"] for setting in plan["env"] if setting["name"] == "ROCR_VISIBLE_DEVICES"]
        self.assertEqual(masks, [{"per_rank": [[str(gcd) for gcd in BLADE]]}])

    def test_local_rank_is_the_device_or_the_place_on_the_node(self):
        words = ("plan", "--profile", "none", "--topology", path("xeon-h100-switches.xml"), "-n", "8", "--gpu-view", "own")
        for what, value in (("device", "0"), ("node", {"fact": "local-rank"})):
            plan = self.json(*words, "--local-rank", what, "--", "/bin/true")
            self.assertEqual([one["value"] for one in plan["env"] if one["name"] == "LOCAL_RANK"], [value])

    def test_adapters_below_the_same_switch(self):
        """Pairs by number would give devices 1 and 2 an adapter of device 0, from which every byte takes the way over the root."""
        name = "xeon-h100-switches.xml"
        ranks = self.ranks(name, 8)
        self.assertEqual([rank["device"] for rank in ranks], list(range(8)))
        # 1 and 2 share the one adapter of their switch; 3 has none there, and takes the one that nobody has.
        self.assertEqual([rank["nic"] for rank in ranks], [0, 2, 2, 1, 3, 4, 5, 6])
        node = self.json("topo", "--topology", path(name))
        for rank in ranks:
            device, nic = node["devices"][rank["device"]], node["nics"][rank["nic"]]
            if rank["device"] != 3:
                self.assertEqual(device["bridges"][:3], nic["bridges"][:3])
        said = self.ok(support.hpclaunch("explain", "nics", "--profile", "none", "--topology", path(name), "-n", "8")).out
        self.assertIn("below the same PCI bridge", " ".join(said.split()))


if __name__ == "__main__":
    support.main()
