#!/usr/bin/python3
"""Writes the XML files of this folder: nodes typed after public documentation, with their caches.

    python3 make.py [FOLDER]

../README.md names the source of each. PCI addresses that no source gives are made up; devices whose place no source
gives are children of the machine.
"""
import os
import sys
import xml.etree.ElementTree as ET

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "devices"))
from make import GIB, Machine, full  # noqa: E402

MIB = 1 << 20
H100 = ("0302", "10de:2330")
INFINIBAND = ("0207", "15b3:1021")
SLINGSHOT = ("0200", "17db:0501")


def nvidia(machine, parent, number, address, ids="10de:2330", model="NVIDIA H100 80GB HBM3"):
    """A GPU and what NVML says about it; returns the OS device."""
    return machine.os_device(machine.pci(parent, address, "0302", ids), "nvml%d" % number, "gpu", "NVML", [
        ("GPUVendor", "NVIDIA Corporation"), ("GPUModel", model), ("NVIDIAUUID", "GPU-00000000-0000-0000-0000-0000000000%02d" % number)])


def adapter(machine, parent, number, address):
    machine.os_device(machine.pci(parent, address, *INFINIBAND), "mlx5_%d" % number, "fabric", infos=[("Port1State", "4")])


def epyc_9654_2x():
    return Machine("pack:2 [numa(memory=%d)] l3:12(size=%d) core:8 pu:2(indexes=2*192:1*2)" % (384 * GIB, 32 * MIB))


def epyc_9654_h100():
    machine = Machine("pack:1 [numa(memory=%d)] l3:12(size=%d) core:8 pu:1" % (749 * GIB, 32 * MIB))
    package = machine.objects("Package")[0]
    gpus = [nvidia(machine, package, at, "0000:%02x:00.0" % (0x01 + 0x40 * at)) for at in range(4)]
    adapter(machine, package, 0, "0000:61:00.0")
    machine.matrix("NVLinkBandwidth", "25", gpus, full(4, 150000))
    return machine


def epyc_9454_h100():
    """Which GPU is near which NUMA node is not published."""
    machine = Machine("pack:1 group:4 [numa(memory=%d)] l3:2(size=%d) core:6 pu:1" % (281 * GIB, 32 * MIB))
    gpus = [nvidia(machine, None, at, "0000:%02x:00.0" % (0x01 + 0x40 * at)) for at in range(4)]
    adapter(machine, None, 0, "0000:61:00.0")
    machine.matrix("NVLinkBandwidth", "25", gpus, full(4, 150000))
    return machine


def epyc_7543p_a100():
    machine = Machine("pack:1 group:4 [numa(memory=%d)] l3:2(size=%d) core:4 pu:2(indexes=2*32:1*2)" % (128 * GIB, 32 * MIB))
    domains = machine.objects("Group")
    gpus = [nvidia(machine, domains[3 - at], at, "0000:%s:00.0" % bus, "10de:20b0", "NVIDIA A100-SXM4-40GB")
            for at, bus in enumerate(("07", "46", "85", "c7"))]
    for number, (domain, bus) in enumerate(((0, "c2"), (2, "41"))):
        machine.os_device(machine.pci(domains[domain], "0000:%s:00.0" % bus, *SLINGSHOT), "hsn%d" % number, "net", "Slingshot")
    machine.matrix("NVLinkBandwidth", "25", gpus, full(4, 100000))
    return machine


def power9(pairs, gpus):
    """Two POWER9 whose cores share L2 and L3 in pairs, and `gpus` V100 beside each; one adapter on two buses."""
    machine = Machine("pack:2 [numa(memory=%d indexes=0,8)] l3:%d(size=%d) l2:1(size=%d) core:2 pu:4" % (256 * GIB, pairs, 10 * MIB, MIB // 2))
    packages = machine.objects("Package")
    places = [(0, "0004:%02x:00.0" % (4 + at)) for at in range(gpus)] + [(1, "0035:%02x:00.0" % (3 + at)) for at in range(gpus)]
    shown = [nvidia(machine, packages[package], at, address, "10de:1db1", "Tesla V100-SXM2-16GB") for at, (package, address) in enumerate(places)]
    for number, address in enumerate(("0003:01:00.0", "0003:01:00.1", "0033:01:00.0", "0033:01:00.1")):
        parent = packages[number // 2]
        machine.os_device(machine.pci(parent, address, "0207", "15b3:1019"), "mlx5_%d" % number, "fabric", infos=[("Port1State", "4" if number % 2 == 0 else "1")])
    link = 150000 // gpus  # a V100 has six links of 25 GB/s, shared by its neighbours and the processor
    machine.matrix("NVLinkBandwidth", "25", shown, [[1000000 if i == j else link if i // gpus == j // gpus else 0
                                                     for j in range(2 * gpus)] for i in range(2 * gpus)])
    return machine


def dgx_h100():
    """Eight rails: a GPU and an adapter below each switch; two more adapters of two ports for storage."""
    machine = Machine("pack:2 [numa(memory=%d)] l3:1(size=%d) core:56 pu:2(indexes=2*112:1*2)" % (1024 * GIB, 105 * MIB))
    packages = machine.objects("Package")
    gpus = []
    rails = (("18", "1b", 0), ("40", "43", 3), ("4f", "52", 4), ("5e", "61", 5), ("9a", "9d", 6), ("c0", "c3", 9), ("ce", "d1", 10), ("dc", "df", 11))
    for at, (network, bus, name) in enumerate(rails):
        first = int(network, 16) - 3
        port = machine.bridge(machine.host_bridge(packages[at // 4], "0000", first, first + 6), 1, "0000:%02x:01.0" % first, first + 1, first + 6)
        upstream = machine.bridge(port, 2, "0000:%02x:00.0" % (first + 1), first + 2, first + 6)
        for slot, address in ((0, network), (4, bus)):
            number = int(address, 16)
            below = machine.bridge(upstream, 3, "0000:%02x:%02x.0" % (first + 2, slot), number, number)
            function = machine.function(below, "0000:%s:00.0" % address, *(INFINIBAND if slot == 0 else H100))
            if slot == 0:
                machine.os_device(function, "mlx5_%d" % name, "fabric", infos=[("Port1State", "4")])
            else:
                gpus.append(machine.os_device(function, "nvml%d" % at, "gpu", "NVML", [
                    ("GPUModel", "NVIDIA H100 80GB HBM3"), ("NVIDIAUUID", "GPU-00000000-0000-0000-0000-0000000000%02d" % at)]))
    for package, bus, first in ((0, "29", 1), (1, "aa", 7)):
        for port in (0, 1):
            function = machine.pci(packages[package], "0000:%s:00.%d" % (bus, port), *INFINIBAND)
            machine.os_device(function, "mlx5_%d" % (first + port), "fabric", infos=[("Port1State", "1")])
    machine.matrix("NVLinkBandwidth", "25", gpus, full(8, 450000))
    return machine


def gh200_4x():
    """Four modules: 72 cores, a GPU whose memory is a NUMA node without CPUs, and an adapter each."""
    machine = Machine("pack:4 [numa(memory=%d)] l3:1(size=%d) core:72 pu:1" % (120 * GIB, 114 * MIB))
    parents = {child: parent for parent in machine.root.iter() for child in parent}
    nodes = machine.objects("NUMANode")
    packages = machine.objects("Package")
    gpus = []
    for at, package in enumerate(packages):
        memory, bus = 4 + 8 * at, "%04x:01:00.0" % (0x09 + 0x10 * at)
        mask, home = 1 << memory, parents[nodes[at]]
        gpus.append(nvidia(machine, package, at, bus, "10de:2342", "NVIDIA GH200 120GB"))
        one = ET.Element("object", dict(nodes[at].attrib, os_index=str(memory), gp_index=str(99000 + at), local_memory=str(96 * GIB),
                                        subtype="GPUMemory", nodeset="0x%08x" % mask, complete_nodeset="0x%08x" % mask))
        ET.SubElement(one, "info", name="PCIBusID", value=bus)
        home.insert(list(home).index(nodes[at]) + 1, one)
        machine.os_device(machine.pci(package, "%04x:01:00.0" % (0x01 + 0x10 * at), *SLINGSHOT), "hsn%d" % at, "net", "Slingshot")
    for one in machine.root.iter("object"):
        if one.get("type") == "NUMANode":
            continue
        for name in ("nodeset", "complete_nodeset", "allowed_nodeset"):
            if one.get(name):
                old = int(one.get(name), 16)
                one.set(name, "0x%08x" % (old | sum(1 << (4 + 8 * at) for at in range(4) if old >> at & 1)))
    machine.matrix("NVLinkBandwidth", "25", gpus, full(4, 150000))
    return machine


MACHINES = {
    "epyc-9654-2x.xml": epyc_9654_2x, "epyc-9654-h100.xml": epyc_9654_h100, "epyc-9454-h100.xml": epyc_9454_h100,
    "epyc-7543p-a100.xml": epyc_7543p_a100, "power9-2x20-v100.xml": lambda: power9(10, 2), "power9-2x22-v100.xml": lambda: power9(11, 3),
    "dgx-h100.xml": dgx_h100, "gh200-4x.xml": gh200_4x,
}


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for name, make in MACHINES.items():
        make().write(os.path.join(folder, name))


if __name__ == "__main__":
    main()
