#!/usr/bin/env python3
"""strip.py RECORDING... : removes from recordings of lstopo, in place, what names a machine or is not read.

Kept: objects with their sets, sizes of memory and caches, PCI and OS devices, and the infos of KEPT.
"""
import sys
import xml.etree.ElementTree as ET

KEPT = {"Backend", "CPUModel", "CPUVendor", "GPUVendor", "LinuxCgroup", "PCIDevice", "PCIVendor", "Port", "hwlocVersion"}
DROPPED = {"page_type", "support", "cpukind", "memattr"}  # elements


def strip(parent):
    for one in list(parent):
        unread = one.tag in DROPPED or (one.tag == "info" and one.get("name") not in KEPT)
        if unread or (one.get("type") == "OSDev" and one.get("osdev_type") == "0"):
            parent.remove(one)
        else:
            strip(one)


for path in sys.argv[1:]:
    tree = ET.parse(path)
    strip(tree.getroot())
    ET.indent(tree, "")
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
    with open(path, "w", encoding="utf-8") as out:
        out.write(head + ET.tostring(tree.getroot(), encoding="unicode") + "\n")
