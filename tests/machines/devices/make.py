#!/usr/bin/python3
"""Writes the XML files of this folder that have devices and are nobody's recording.

    python3 make.py [FOLDER]

lstopo (2.9) writes the processors from a synthetic description; this puts PCI functions, OS devices and bandwidth
matrices where hwloc puts them on the machine that has the shape: below the package, NUMA group or cache that is nearest,
or below the machine where the firmware does not say. ../README.md names the recordings that the shapes were learnt from.
"""
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

GIB = 1 << 30


class Machine:
    def __init__(self, description, board=None, host=None):
        text = subprocess.run(["lstopo", "--input", description, "--of", "xml", "-"], stdout=subprocess.PIPE, check=True).stdout
        self.root = ET.fromstring(text)
        self.top = self.root.find("object")
        self.gp = 100000
        for name, value in (("DMIBoardName", board), ("HostName", host)):
            if value:
                ET.SubElement(self.top, "info", name=name, value=value)
                self.top.insert(0, self.top[-1])
                del self.top[-1]
        for name in ("SyntheticDescription",):
            for info in self.top.findall("info[@name='%s']" % name):
                self.description = info.get("value")

    def objects(self, kind):
        return [one for one in self.root.iter("object") if one.get("type") == kind]

    def add(self, parent, kind, infos=(), **attributes):
        self.gp += 1
        one = ET.SubElement(parent, "object", type=kind, gp_index=str(self.gp), **attributes)
        for name, value in infos:
            ET.SubElement(one, "info", name=name, value=str(value))
        return one

    def host_bridge(self, parent, domain, first, last):
        """A host bridge, with buses from `first` to `last`; `parent` None: the machine."""
        return self.add(self.top if parent is None else parent, "Bridge", bridge_type="0-1", depth="0",
                        bridge_pci="%s:[%02x-%02x]" % (domain, first, last))

    def bridge(self, parent, depth, address, first, last):
        """A port of a root or of a switch, with the buses below it."""
        return self.add(parent, "Bridge", bridge_type="1-1", depth=str(depth), bridge_pci="%s:[%02x-%02x]" % (address[:4], first, last),
                        pci_busid=address, pci_type="0604 [1022:1453] [0000:0000] 00", pci_link_speed="0.000000")

    def function(self, parent, address, class_id, ids):
        return self.add(parent, "PCIDev", pci_busid=address, pci_type="%s [%s] [0000:0000] 00" % (class_id, ids), pci_link_speed="0.000000")

    def pci(self, parent, address, class_id, ids):
        """A function behind a host bridge of its own and that one's port; on bus 0 without the port."""
        domain, bus = address[:4], int(address[5:7], 16)
        if bus == 0:
            return self.function(self.host_bridge(parent, domain, 0, 0), address, class_id, ids)
        host = self.host_bridge(parent, domain, bus - 1, bus)
        port = self.bridge(host, 1, "%s:%02x:01.0" % (domain, bus - 1), bus, bus)
        return self.function(port, address, class_id, ids)

    def switch(self, parent, bus, members):
        """A root port on root bus `bus`, below it a switch with a member on each of its ports; the members' functions in order.
        `members`: (class, IDs)."""
        last = bus + 2 + len(members)
        port = self.bridge(self.host_bridge(parent, "0000", bus, last), 1, "0000:%02x:01.0" % bus, bus + 1, last)
        upstream = self.bridge(port, 2, "0000:%02x:00.0" % (bus + 1), bus + 2, last)
        return [self.function(self.bridge(upstream, 3, "0000:%02x:%02x.0" % (bus + 2, at), bus + 3 + at, bus + 3 + at),
                              "0000:%02x:00.0" % (bus + 3 + at), class_id, ids) for at, (class_id, ids) in enumerate(members)]

    def os_device(self, parent, name, kind, subtype=None, infos=()):
        attributes = {"name": name, "osdev_type": {"gpu": "1", "net": "2", "fabric": "3", "coproc": "5"}[kind]}
        if subtype:
            attributes["subtype"] = subtype
        return self.add(parent, "OSDev", infos, **attributes)

    def matrix(self, name, kind, objects, values):
        words = " ".join("%s:%s" % (one.get("type"), one.get("gp_index")) for one in objects) + " "
        matrix = ET.SubElement(self.root, "distances2hetero", nbobjs=str(len(objects)), kind=kind, name=name)
        index = ET.SubElement(matrix, "indexes", length=str(len(words)))
        index.text = words
        numbers = " ".join(str(value) for row in values for value in row) + " "
        ET.SubElement(matrix, "u64values", length=str(len(numbers))).text = numbers

    def in_cgroup(self, cpus):
        """The same as lstopo writes it in a cgroup that has these CPUs alone: the others are not shown."""
        for options in (["--disallowed", "--allow", cpus], []):
            with tempfile.NamedTemporaryFile(suffix=".xml") as whole:
                self.write(whole.name)
                command = ["lstopo", "--input", whole.name, "--whole-io", "--of", "xml"] + options + ["-"]
                self.root = ET.fromstring(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        return self

    def write(self, path):
        # hwloc's own reader wants the objects before the matrices, and those before what is supported.
        late = [one for one in self.root if one.tag == "support" or one.tag == "cpukind"]
        for one in late:
            self.root.remove(one)
        for parent in self.root.iter("object"):
            parent[:] = [one for one in parent if one.tag != "object"] + [one for one in parent if one.tag == "object"]
        ET.indent(self.root)
        with open(path, "w") as file:
            file.write('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n')
            file.write(ET.tostring(self.root, encoding="unicode") + "\n")


def full(count, value, own=1000000):
    return [[own if i == j else value for j in range(count)] for i in range(count)]


BLADE = "pack:1 group:4 [numa(memory=137438953472)] l3:2(size=33554432) core:8 pu:%s"
GCDS = (("c1", 6), ("c6", 7), ("c9", 2), ("ce", 3), ("d1", 0), ("d6", 1), ("d9", 4), ("de", 5))  # bus, L3
HSN = (("c5", 7), ("cd", 3), ("d5", 1), ("dd", 5))


def mi250x():
    """Below the caches, as hwloc places them there; nothing but PCI: no library of AMD's was there to ask."""
    machine = Machine(BLADE % "2(indexes=2*64:1*2)", board="HPE CRAY EX235A")
    caches = machine.objects("L3Cache")
    for bus, cache in GCDS:
        machine.pci(caches[cache], "0000:%s:00.0" % bus, "0380", "1002:7408")
    for number, (bus, cache) in enumerate(HSN):
        machine.os_device(machine.pci(caches[cache], "0000:%s:00.0" % bus, "0200", "17db:0501"), "hsn%d" % number, "net",
                          infos=[("Address", "02:00:00:00:0b:%02x" % (0x30 + number))])
    return machine


def mi250x_unplaced():
    """An older hwloc on the same board, one thread per core: everything below the machine; ROCm SMI was asked."""
    machine = Machine(BLADE % "1", board="HPE CRAY EX235A", host="node-c")
    shown = []
    for number, (bus, _) in enumerate(GCDS):
        shown.append(machine.os_device(machine.pci(None, "0000:%s:00.0" % bus, "0380", "1002:7408"), "rsmi%d" % number, "gpu", "RSMI", [
            ("Backend", "RSMI"), ("GPUVendor", "AMD"), ("GPUModel", "AMD INSTINCT MI200 (MCM) OAM"), ("AMDUUID", "%x" % (0xc0c769deeb660000 + number)),
            ("XGMIHiveID", "ecf1eb77854c2e18"), ("RSMIVRAMSize", 67092480)]))
    for number, (bus, _) in enumerate(HSN):
        machine.os_device(machine.pci(None, "0000:%s:00.0" % bus, "0200", "17db:0501"), "hsn%d" % number, "net")
    machine.matrix("XGMIBandwidth", "25", shown, full(8, 100000))
    return machine


def mi300a(parts, lost=False):
    """Four processors with their GPUs in `parts` each; `lost`: an older hwloc, which finds a place for the first part only."""
    machine = Machine("pack:4 [numa(memory=137438953472)] l3:3(size=33554432) core:8 pu:2(indexes=2*96:1*2)")
    packages = machine.objects("Package")
    shown = []
    for package in range(4):
        nic = machine.pci(packages[package], "%04x:01:00.0" % package, "0200", "17db:0501")
        machine.os_device(nic, "hsi%d" % package, "net", "Slingshot")
        gpu = machine.pci(packages[package], "%04x:02:00.0" % package, "1200", "1002:74a0")
        for part in range(parts):
            number = package * parts + part
            home = packages[package] if lost and part else gpu
            shown.append(machine.os_device(home, "rsmi%d" % number, "gpu", "RSMI", [
                ("Backend", "RSMI"), ("GPUVendor", "AMD"), ("GPUModel", "AMD Instinct MI300A"),
                ("AMDUUID", "%x" % (0x9a00000000000000 + number)), ("RSMIVRAMSize", 134217728 // parts)]))
    return machine


def power9():
    """Two packages, NUMA nodes 0 and 8, six memories of GPUs left out: those of V100 are shown to the kernel as nodes of their own."""
    machine = Machine("pack:2 [numa(memory=137438953472 indexes=0,8)] l3:11(size=10485760) l2:1(size=524288) core:2 pu:4")
    packages = machine.objects("Package")
    shown = []
    for number, (address, package) in enumerate((("0004:04:00.0", 0), ("0004:05:00.0", 0), ("0035:03:00.0", 1), ("0035:04:00.0", 1))):
        gpu = machine.pci(packages[package], address, "0302", "10de:1db1")
        infos = [("GPUVendor", "NVIDIA Corporation"), ("GPUModel", "Tesla V100-SXM2-16GB")]
        machine.os_device(gpu, "cuda%d" % number, "coproc", "CUDA", infos + [("CUDAGlobalMemorySize", 16515072)])
        shown.append(machine.os_device(gpu, "nvml%d" % number, "gpu", "NVML",
                                       infos + [("NVIDIAUUID", "GPU-00000000-0000-0000-0000-00000000000%d" % number)]))
    for number, (address, package) in enumerate((("0003:01:00.0", 0), ("0003:01:00.1", 0), ("0033:01:00.0", 1), ("0033:01:00.1", 1))):
        adapter = machine.pci(packages[package], address, "0207", "15b3:1019")
        machine.os_device(adapter, "ib%d" % number, "net", infos=[("Address", "00:00:18:87:fe:80" + ":00" * 14)])
        machine.os_device(adapter, "mlx5_%d" % number, "fabric", infos=[("Port1State", "4" if number % 2 == 0 else "1")])
    machine.os_device(machine.pci(packages[0], "0005:01:00.0", "0200", "14e4:1657"), "enP5p1s0f0", "net", infos=[("Address", "70:e2:84:14:a2:49")])
    machine.pci(packages[0], "0002:02:00.0", "0300", "1a03:2000")  # the service processor's picture
    machine.matrix("NVLinkBandwidth", "25", shown + packages, [
        [1000000, 75000, 0, 0, 75000, 0], [75000, 1000000, 0, 0, 75000, 0], [0, 0, 1000000, 75000, 0, 75000],
        [0, 0, 75000, 1000000, 0, 75000], [75000, 75000, 0, 0, 1000000, 0], [0, 0, 75000, 75000, 0, 1000000]])
    return machine


def mi50():
    """Two processors of four NUMA nodes each and eight GPUs, two of them on four of the nodes; the numbers of PCI run against
    those of ROCm SMI nowhere."""
    machine = Machine("pack:2 group:4 [numa(memory=34359738368)] l3:2(size=16777216) core:3 pu:2(indexes=2*48:1*2)")
    groups = machine.objects("Group") or machine.objects("NUMANode")
    for number, (address, group) in enumerate((("0000:03:00.0", 3), ("0000:06:00.0", 3), ("0000:24:00.0", 1), ("0000:27:00.0", 1),
                                               ("0000:83:00.0", 7), ("0000:86:00.0", 7), ("0000:a0:00.0", 5), ("0000:a3:00.0", 5))):
        machine.os_device(machine.pci(groups[group], address, "0380", "1002:66a1"), "rsmi%d" % number, "gpu", "RSMI", [
            ("GPUVendor", "AMD"), ("GPUModel", "Radeon Instinct MI50 32GB"), ("AMDUUID", "%x" % (0x7bc6484172e62000 + number)),
            ("XGMIHiveID", "0"), ("RSMIVRAMSize", 33538048)])
    adapter = machine.pci(groups[0], "0000:41:00.0", "0207", "15b3:101b")
    machine.os_device(adapter, "ib0", "net")
    machine.os_device(adapter, "mlx5_0", "fabric", infos=[("Port1State", "4")])
    machine.pci(groups[2], "0000:62:00.0", "0300", "1a03:2000")
    return machine


def g4dn():
    """Eight T4, four near each package, no library of NVIDIA's."""
    machine = Machine("pack:2 [numa(memory=206158430208)] l3:1(size=37486592) core:24 pu:2(indexes=2*48:1*2)")
    packages = machine.objects("Package")
    for address, package in (("18", 0), ("19", 0), ("35", 0), ("36", 0), ("e7", 1), ("e8", 1), ("f4", 1), ("f5", 1)):
        machine.pci(packages[package], "0000:%s:00.0" % address, "0302", "10de:1eb8")
    machine.pci(packages[0], "0000:00:03.0", "0300", "1d0f:1111")
    machine.os_device(machine.pci(packages[1], "0000:cf:00.0", "0200", "1d0f:ec20"), "ens5", "net", infos=[("Address", "0a:11:22:33:44:55")])
    return machine


def p4d():
    """Eight A100 and six switches between them, four EFA."""
    machine = Machine("pack:2 [numa(memory=618475290624)] l3:1(size=37486592) core:24 pu:2(indexes=2*48:1*2)")
    packages = machine.objects("Package")
    shown, switches = [], []
    for number, bus in enumerate(("10", "10", "20", "20", "90", "90", "a0", "a0")):
        gpu = machine.pci(packages[number // 4], "0000:%s:1%s.0" % (bus, "cd"[number % 2]), "0302", "10de:20b0")
        shown.append(machine.os_device(gpu, "nvml%d" % number, "gpu", "NVML", [
            ("GPUModel", "NVIDIA A100-SXM4-40GB"), ("NVIDIAUUID", "GPU-00000000-0000-0000-0000-0000000000a%d" % number)]))
    for number in range(6):
        switches.append(machine.pci(packages[1], "0000:c%d:00.0" % number, "0680", "10de:1af1"))
        switches[-1].set("subtype", "NVSwitch")
    for number, bus in enumerate(("10", "20", "90", "a0")):
        machine.os_device(machine.pci(packages[number // 2], "0000:%s:1b.0" % bus, "0200", "1d0f:efa1"), "rdmap%ss27" % int(bus, 16), "fabric")
    machine.os_device(machine.pci(packages[0], "0000:00:05.0", "0200", "1d0f:ec20"), "ens32", "net", infos=[("Address", "0a:11:22:33:44:55")])
    rows = [[1000000 if i == j else 50000 if (i < 8) != (j < 8) else 0 for j in range(14)] for i in range(14)]
    machine.matrix("NVLinkBandwidth", "25", shown + switches, rows)
    return machine


def switches():
    """Eight H100 and seven InfiniBand adapters below switches that do not all have as many of both: on the first package one GPU with
    two adapters, two with one, one with none. The switches of a package share its NUMA node."""
    machine = Machine("pack:2 [numa(memory=1099511627776)] l3:1(size=110100480) core:16 pu:1")
    gpu, adapter = ("0302", "10de:2330"), ("0207", "15b3:1021")
    number = 0
    for package, below in enumerate((((gpu, adapter, adapter), (gpu, gpu, adapter), (gpu,)), ((adapter, adapter, gpu, gpu), (gpu, gpu, adapter, adapter)))):
        for at, members in enumerate(below):
            for function in machine.switch(machine.objects("Package")[package], 0x15 + 0x80 * package + 0x20 * at, members):
                if function.get("pci_type").startswith("0207"):
                    machine.os_device(function, "mlx5_%d" % number, "fabric", infos=[("Port1State", "4")])
                    number += 1
    return machine


def cgroup():
    """A GPU and an adapter on each of four NUMA nodes, seen from a job that has node 0 and two cores of node 3."""
    machine = Machine("pack:2 group:2 [numa(memory=68719476736)] core:4 pu:1")
    for number, group in enumerate(machine.objects("Group")):
        machine.pci(group, "0000:%02x:00.0" % (0x01 + 64 * number), "0302", "10de:20b0")
        adapter = machine.pci(group, "0000:%02x:00.0" % (0x11 + 64 * number), "0207", "15b3:101b")
        machine.os_device(adapter, "mlx5_%d" % number, "fabric", infos=[("Port1State", "4")])
    return machine.in_cgroup("0x300f")


def snc2():
    """GPUs and adapters below the packages, where the firmware names none of the two NUMA nodes; adapters of two ports."""
    machine = Machine("pack:2 group:2 [numa(memory=68719476736)] l3:1(size=33554432) core:8 pu:1")
    packages = machine.objects("Package")
    for number in range(4):
        machine.pci(packages[1], "0000:%02x:00.0" % (0x81 + 16 * number), "0302", "10de:20b2")
    for number, (address, states) in enumerate((("0000:31:00.0", "44"), ("0000:e1:00.0", "14"))):
        adapter = machine.pci(packages[number], address, "0207", "15b3:1003")
        for port in (1, 2):
            machine.os_device(adapter, "ib%d" % (2 * number + port - 1), "net",
                              infos=[("Address", "00:00:18:87:fe:80" + ":00" * 14), ("Port", port)])
        machine.os_device(adapter, "mlx4_%d" % number, "fabric", infos=[("Port%dState" % (1 + at), state) for at, state in enumerate(states)])
    return machine


def shares():
    """Two adapters of InfiniBand; the first is shared out to the host itself (SR-IOV): four functions beside it, each with an interface."""
    machine = Machine("pack:2 [numa(memory=68719476736)] l3:1(size=33554432) core:8 pu:1")
    packages = machine.objects("Package")
    for number in range(4):
        machine.pci(packages[number // 2], "0000:%02x:00.0" % (0x41 + 32 * number), "0302", "10de:2330")
    for package, bus, functions in ((0, 0x31, 5), (1, 0xb1, 1)):
        port = machine.bridge(machine.host_bridge(packages[package], "0000", bus - 1, bus), 1, "0000:%02x:01.0" % (bus - 1), bus, bus)
        for number in range(functions):
            function = machine.function(port, "0000:%02x:00.%d" % (bus, number), "0207", "15b3:%s" % ("101c" if number else "101b"))
            name = "ibp%ds0" % bus + ("v%d" % (number - 1) if number else "")
            machine.os_device(function, name, "net", infos=[("Address", "00:00:18:87:fe:80" + ":00" * 14), ("Port", 1)])
            machine.os_device(function, "mlx5_%d" % (5 * package + number), "fabric", infos=[("Port1State", "4")])
    return machine


def pvc():
    """Six GPUs of two tiles, Level Zero was asked (COMPOSITE); Xe-Link between tiles of one number; eight Slingshot ports."""
    machine = Machine("pack:2 [numa(memory=549755813888)] l3:1(size=110100480) core:52 pu:2(indexes=2*104:1*2)")
    packages = machine.objects("Package")
    tiles = []
    for number, (domain, bus) in enumerate((d, b) for d in (0, 1) for b in ("18", "42", "6c")):
        gpu = machine.pci(packages[domain], "%04x:%s:00.0" % (domain, bus), "0380", "8086:0bd6")
        ze = machine.os_device(gpu, "ze%d" % number, "coproc", "LevelZero", [
            ("Backend", "LevelZero"), ("LevelZeroUUID", "01000000-0000-0000-0000-0000%08x" % number), ("LevelZeroModel", "Intel(R) Data Center GPU Max 1550"),
            ("LevelZeroSubdevices", 2), ("LevelZeroHBMSize", 134217728)])
        tiles.append([machine.os_device(ze, "ze%d.%d" % (number, tile), "coproc", "LevelZero",
                                        [("LevelZeroSubdeviceID", tile), ("LevelZeroHBMSize", 67108864)]) for tile in (0, 1)])
    for number in range(8):
        nic = machine.pci(packages[number // 4], "%04x:%02x:00.0" % (number // 4, (0x16, 0x17, 0x40, 0x41)[number % 4]), "0200", "17db:0501")
        machine.os_device(nic, "hsn%d" % number, "net", "Slingshot")
    machine.pci(packages[0], "0000:03:00.0", "0300", "1a03:2000")
    flat = [one for pair in tiles for one in pair]
    machine.matrix("XeLinkBandwidth", "25", flat, [[1000000 if i == j else 26500 if i % 2 == j % 2 else 0 for j in range(12)] for i in range(12)])
    return machine


def pvc_flat():
    """One package with two GPUs whose tiles Level Zero shows as devices of their own (FLAT)."""
    machine = Machine("pack:1 [numa(memory=549755813888)] l3:1(size=110100480) core:8 pu:1")
    for number, bus in enumerate(("18", "42")):
        gpu = machine.pci(machine.objects("Package")[0], "0000:%s:00.0" % bus, "0380", "8086:0bd5")
        for tile in (0, 1):
            machine.os_device(gpu, "ze%d" % (2 * number + tile), "coproc", "LevelZero",
                              [("LevelZeroModel", "Intel(R) Data Center GPU Max 1550"), ("LevelZeroHBMSize", 67108864)])
    return machine


def grace():
    """One processor with its GPU, whose memory is a NUMA node without CPUs."""
    machine = Machine("pack:1 [numa(memory=515396075520)] l3:1(size=119537664) core:72 pu:1")
    package = machine.objects("Package")[0]
    machine.pci(package, "0009:01:00.0", "0302", "10de:2342")
    node = machine.objects("NUMANode")[0]
    package_of = {child: parent for parent in machine.root.iter() for child in parent}
    memory = dict(node.attrib, os_index="1", gp_index="99999", local_memory=str(96 * GIB), subtype="GPUMemory",
                  nodeset="0x00000002", complete_nodeset="0x00000002")
    home = package_of[node]
    home.insert(list(home).index(node) + 1, ET.Element("object", memory))
    ET.SubElement(home[list(home).index(node) + 1], "info", name="PCIBusID", value="0009:01:00.0")
    for one in machine.root.iter("object"):
        if one.get("nodeset") == "0x00000001" and one is not node:
            for name in ("nodeset", "complete_nodeset", "allowed_nodeset"):
                if one.get(name):
                    one.set(name, "0x00000003")
    machine.os_device(machine.pci(package, "0002:01:00.0", "0207", "15b3:1021"), "mlx5_0", "fabric", infos=[("Port1State", "4")])
    return machine


def laptop():
    """A processor's own graphics, and a wireless card."""
    machine = Machine("pack:1 [numa(memory=17179869184)] l3:1(size=12582912) core:8 pu:2")
    gpu = machine.pci(None, "0000:00:02.0", "0300", "8086:46a6")
    machine.os_device(gpu, "opencl0d0", "coproc", "OpenCL", [("GPUVendor", "Intel(R) Corporation"), ("GPUModel", "Intel(R) Iris(R) Xe Graphics")])
    machine.os_device(machine.pci(None, "0000:00:14.3", "0280", "8086:51f0"), "wlp0s20f3", "net", infos=[("Address", "0a:11:22:33:44:55")])
    return machine


def no_pci():
    """What a container without /sys shows: names of CUDA and NVML, and no PCI function."""
    machine = Machine("pack:2 [numa(memory=137438953472)] core:8 pu:1")
    packages = machine.objects("Package")
    for number in range(4):
        machine.os_device(packages[number // 2], "cuda%d" % number, "coproc", "CUDA", [("GPUModel", "NVIDIA A100"), ("CUDAGlobalMemorySize", 41943040)])
        machine.os_device(packages[number // 2], "nvml%d" % number, "gpu", "NVML", [("NVIDIAUUID", "GPU-00000000-0000-0000-0000-00000000000%d" % number)])
    return machine


MACHINES = {
    "mi250x-blade.xml": mi250x, "mi250x-blade-unplaced.xml": mi250x_unplaced, "mi300a-spx.xml": lambda: mi300a(1),
    "mi300a-tpx.xml": lambda: mi300a(3), "mi300a-cpx.xml": lambda: mi300a(6), "mi300a-tpx-lost.xml": lambda: mi300a(3, True),
    "power9-v100.xml": power9, "epyc-mi50.xml": mi50, "xeon-t4.xml": g4dn, "xeon-a100-switched.xml": p4d,
    "xeon-h100-switches.xml": switches, "xeon-pvc.xml": pvc,
    "xeon-pvc-flat.xml": pvc_flat, "xeon-snc2-package1.xml": snc2, "epyc-a100-cgroup.xml": cgroup, "xeon-h100-shares.xml": shares,
    "grace-hopper.xml": grace, "laptop-graphics.xml": laptop, "gpus-without-pci.xml": no_pci,
}


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for name, make in MACHINES.items():
        make().write(os.path.join(folder, name))


if __name__ == "__main__":
    main()
