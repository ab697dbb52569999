#!/usr/bin/python3
"""A computer that is not here: a real Linux kernel on an emulated machine with the CPUs of a supercomputer's node.

    emulated_node.py --cache FOLDER --shape 1x64|2x52 COMMAND...     runs it in there as root, with sh -c

1x64 has one package of 64 cores, 4 NUMA nodes and 8 L3 caches; 2x52 two packages of 52 cores, a NUMA node each. Both
have two hardware threads per core, numbered c and c + cores. Affinity, /sys and hwloc are true there. QEMU emulates every
CPU on those that are here (no KVM), so it is slow: something between half a minute and two for a start.

On the PCI root of each NUMA node are display devices of vendor 1002 (8 or 6, no driver takes them) and network devices,
hsn0 and so on (4 or 8), with addresses 10.88.0.1 and so on.

The guest's root is this machine's, read-only (9p), under a layer of memory that is lost; /out in the guest is FOLDER/out
here. The kernel is the distribution's, fetched with apt-get and unpacked into FOLDER, not installed.
"""
import argparse
import glob
import gzip
import os
import shutil
import struct
import subprocess
import sys
import time

# gpus, nics: the NUMA node of each, in the order of their PCI addresses and of the numbers in their names.
SHAPES = {"1x64": {"packages": 1, "dies": 8, "cores": 8, "numa": 4, "memory": 512,
                   "gpus": (3, 3, 1, 1, 0, 0, 2, 2), "nics": (3, 1, 0, 2)},
          "2x52": {"packages": 2, "dies": 1, "cores": 52, "numa": 2, "memory": 1024,
                   "gpus": (0, 0, 0, 1, 1, 1), "nics": (0, 0, 0, 0, 1, 1, 1, 1)}}
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_net")
QEMU = "qemu-system-x86_64"
LIMIT = 600  # seconds for a boot; 208 CPUs take about 60 on 2 idle cores

INIT = """#!/bin/busybox sh
export PATH=/bin
busybox mkdir -p /proc /sys /dev /low /up /root
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
if busybox grep -q only-table /proc/cmdline; then
  echo BEGIN-TABLE
  busybox base64 /sys/firmware/acpi/tables/APIC
  echo END-TABLE
  busybox poweroff -f
fi
for module in $(busybox cat /order); do busybox insmod /modules/$module.ko; done
share="trans=virtio,version=9p2000.L,msize=262144"
busybox mount -t 9p -o $share,ro,cache=loose root /low
busybox mount -t tmpfs memory /up
busybox mkdir /up/upper /up/work
busybox mount -t overlay -o lowerdir=/low,upperdir=/up/upper,workdir=/up/work overlay /root
busybox mkdir -p /root/out /root/dev /root/proc /root/sys /root/tmp
busybox mount -t 9p -o $share out /root/out
for place in proc sys dev; do busybox mount -o move /$place /root/$place; done
busybox mkdir -p /root/dev/shm
busybox mount -t tmpfs memory /root/dev/shm
busybox chroot /root /bin/sh /out/start
busybox poweroff -f
"""

# The last byte of the hardware address is the number.
NAME_INTERFACES = """for device in /sys/class/net/e*; do
  [ -e "$device/device" ] || continue
  number=$((0x$(cut -d: -f6 "$device/address")))
  ip link set "${device##*/}" name "hsn$number"
  ip link set "hsn$number" up
  ip address add "10.88.$number.1/24" dev "hsn$number"
done
"""


class Missing(Exception):
    """What is not here, and how to get it."""


def program(name, package):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/bin:/bin:/usr/sbin:/sbin")
    if not path:
        raise Missing("%s is not installed: apt-get install %s" % (name, package))
    return path


# ---- the kernel, and the smallest system that can mount the real one --------------------------------------------

def fetch_kernel(cache):
    """Unpacks the distribution's kernel; the paths of its image and of its modules."""
    tree = os.path.join(cache, "kernel")
    if not glob.glob(tree + "/boot/vmlinuz-*"):
        apt = program("apt-get", "apt")
        depends = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], stdout=subprocess.PIPE, text=True, check=True).stdout
        names = [line.split()[-1] for line in depends.splitlines() if "Depends:" in line and "linux-image-" in line]
        if not names:
            raise Missing("no package linux-image-amd64 in the lists of apt: apt-get update")
        part = os.path.join(cache, "fetch")
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part)
        done = subprocess.run([apt, "-o", "APT::Sandbox::User=root", "download", names[0]], cwd=part, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        packages = glob.glob(part + "/*.deb")
        if done.returncode != 0 or not packages:
            raise Missing("the kernel %s cannot be fetched: %s" % (names[0], done.stdout.strip()))
        subprocess.run([program("dpkg-deb", "dpkg"), "-x", packages[0], tree + ".new"], check=True)
        shutil.rmtree(tree, ignore_errors=True)
        os.rename(tree + ".new", tree)
        shutil.rmtree(part)
    return glob.glob(tree + "/boot/vmlinuz-*")[0], glob.glob(tree + "/lib/modules/*")[0]


def module_order(folder):
    """Files of the modules that are needed, each behind those that it depends on."""
    files = {}
    for where, _, names in os.walk(folder):
        files.update({name[:-3].replace("-", "_"): os.path.join(where, name) for name in names if name.endswith(".ko")})
    order = []

    def add(name):
        name = name.replace("-", "_")
        if name not in files:
            return  # built into the kernel
        if name in [known for known, _ in order]:
            return
        with open(files[name], "rb") as file:
            data = file.read()
        at = data.index(b"depends=") + len(b"depends=")
        for other in data[at:data.index(b"\0", at)].decode().split(","):
            if other:
                add(other)
        order.append((name, files[name]))

    for name in MODULES:
        add(name)
    return order


def archive(files):
    """A cpio archive (newc) of {path: (mode, bytes)}."""
    out = b""
    for number, (path, (mode, data)) in enumerate(list(files.items()) + [("TRAILER!!!", (0, b""))]):
        name = path.encode() + b"\0"
        head = b"070701" + b"".join(b"%08X" % n for n in (number + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0))
        out += head + name
        out += b"\0" * (-len(out) % 4) + data
        out += b"\0" * (-len(out) % 4)
    return out


def small_system(modules):
    with open(program("busybox", "busybox-static"), "rb") as file:
        busybox = file.read()
    files = {"bin": (0o40755, b""), "modules": (0o40755, b""), "bin/busybox": (0o100755, busybox), "init": (0o100755, INIT.encode())}
    order = module_order(modules)
    for name, path in order:
        with open(path, "rb") as file:
            files["modules/%s.ko" % name] = (0o100644, file.read())
    files["order"] = (0o100644, (" ".join(name for name, _ in order) + "\n").encode())
    return gzip.compress(archive(files), 1)


# ---- the numbering of hardware threads ---------------------------------------------------------------------------

def reordered(table):
    """The firmware's APIC table with the first threads of all cores first: the kernel numbers CPUs in its order.

    ACPI 6, 5.2.12: a header of 44 bytes, then entries of kind, length, ...; kind 0 has the APIC id in its 4th byte, kind 9
    (x2APIC) as 32 bits from its 5th. A table in the initial file system replaces the firmware's if its revision, at
    byte 24, is newer (kernel: admin-guide/acpi/initrd_table_override). Byte 9 makes the sum of all bytes 0.
    """
    cpus, others, at = [], [], 44
    while at < len(table):
        kind, size = table[at], table[at + 1]
        entry = table[at:at + size]
        at += size
        if kind in (0, 9):
            number = entry[3] if kind == 0 else struct.unpack_from("<I", entry, 4)[0]
            cpus.append((number & 1, number, entry))
        else:
            others.append(entry)
    new = bytearray(table[:44] + b"".join(entry for _, _, entry in sorted(cpus)) + b"".join(others))
    struct.pack_into("<I", new, 24, struct.unpack_from("<I", table, 24)[0] + 1)
    new[9] = 0
    new[9] = -sum(new) % 256
    return bytes(new)


def pci_devices(shape):
    """GPUs and network devices, each behind a port on a root complex of its NUMA node. A bus number is a place in the order."""
    nodes = list(dict.fromkeys(shape["gpus"]))
    argv = []
    for place, node in enumerate(nodes):
        argv += ["-device", "pxb-pcie,id=pxb%d,bus_nr=%d,bus=pcie.0,numa_node=%d" % (node, 64 + 32 * place, node)]
    for number, node in enumerate(shape["gpus"]):
        argv += ["-device", "pcie-root-port,id=g%d,bus=pxb%d,chassis=%d,slot=%d,addr=%x" % (number, node, number + 1, number, number),
                 "-device", "ati-vga,bus=g%d,romfile=,vgamem_mb=1" % number]
    for number, node in enumerate(shape["nics"]):
        argv += ["-device", "pcie-root-port,id=h%d,bus=pxb%d,chassis=%d,slot=%d,addr=%x" % (number, node, number + 33, number + 32, number + 16),
                 "-netdev", "hubport,id=n%d,hubid=0" % number,
                 "-device", "virtio-net-pci,bus=h%d,netdev=n%d,romfile=,mac=52:54:00:00:01:%02x" % (number, number, number)]
    return argv


def boot(shape, kernel, initrd, words, console, shared=None, limit=LIMIT):
    """One life of the machine; ends when it powers off. Seconds taken."""
    cpus = shape["packages"] * shape["dies"] * shape["cores"]
    argv = [program(QEMU, "qemu-system-x86"), "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "Haswell-noTSX", "-smp",
            "%d,sockets=%d,dies=%d,cores=%d,threads=2" % (2 * cpus, shape["packages"], shape["dies"], shape["cores"]),
            "-m", "%dM" % (shape["memory"] * shape["numa"])]
    for node in range(shape["numa"]):
        argv += ["-object", "memory-backend-ram,id=m%d,size=%dM" % (node, shape["memory"]), "-numa", "node,nodeid=%d,memdev=m%d" % (node, node)]
    dies = shape["packages"] * shape["dies"]
    for die in range(dies):
        where = "socket-id=%d" % (die // shape["dies"]) + (",die-id=%d" % (die % shape["dies"]) if shape["dies"] > 1 else "")
        argv += ["-numa", "cpu,node-id=%d,%s" % (die * shape["numa"] // dies, where)]
    for tag, path, more in (("root", "/", ",readonly=on,multidevs=remap"), ("out", shared, "")) if shared else ():
        argv += ["-fsdev", "local,id=%s,path=%s,security_model=none%s" % (tag, path, more),
                 "-device", "virtio-9p-pci,fsdev=%s,mount_tag=%s,bus=pcie.0" % (tag, tag)]
    argv += pci_devices(shape)
    argv += ["-kernel", kernel, "-initrd", initrd, "-nic", "none", "-vga", "none", "-display", "none", "-monitor", "none", "-serial",
             "file:" + console, "-no-reboot", "-append",
             "console=ttyS0 panic=-1 quiet nokaslr tsc=reliable mitigations=off nowatchdog rcupdate.rcu_cpu_stall_suppress=1 " + words]
    begin = time.monotonic()
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise Missing("the emulated node did not end within %d s; its last words: %s" % (limit, tail(console)))
    if done.returncode != 0:
        raise Missing("%s ended with %d: %s" % (QEMU, done.returncode, done.stdout.strip()[-1000:]))
    return time.monotonic() - begin


def tail(console):
    with open(console, errors="replace") as file:
        return " | ".join(file.read().splitlines()[-8:])


def prepare(cache, name):
    """Kernel and initial file system of a shape, made once."""
    os.makedirs(cache, exist_ok=True)
    kernel, modules = fetch_kernel(cache)
    ready = os.path.join(cache, "initrd-" + name)
    if not os.path.exists(ready):
        small = small_system(modules)
        plain = os.path.join(cache, "initrd-plain-" + name)
        with open(plain, "wb") as file:
            file.write(small)
        console = os.path.join(cache, "console-table-" + name)
        boot(SHAPES[name], kernel, plain, "only-table maxcpus=1", console)
        with open(console, errors="replace") as file:
            text = file.read()
        if "END-TABLE" not in text:
            raise Missing("no APIC table from the emulated machine: " + tail(console))
        import base64
        table = base64.b64decode(text.split("BEGIN-TABLE")[1].split("END-TABLE")[0])
        folders = {path: (0o40755, b"") for path in ("kernel", "kernel/firmware", "kernel/firmware/acpi")}
        with open(ready + ".new", "wb") as file:
            file.write(archive({**folders, "kernel/firmware/acpi/apic.aml": (0o100644, reordered(table))}))
            file.write(small)
        os.rename(ready + ".new", ready)
        os.unlink(plain)
    return kernel, ready


def run(cache, name, script):
    """Runs a script of sh in there: (status, output, seconds). What it writes to /out is in CACHE/out-NAME."""
    kernel, initrd = prepare(cache, name)
    out = os.path.join(cache, "out-" + name)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    with open(os.path.join(out, "script"), "w") as file:
        file.write(script + "\n")
    with open(os.path.join(out, "start"), "w") as file:
        file.write("export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8\n"
                   "hostname emulated\necho 127.0.0.1 localhost emulated >/etc/hosts\n"
                   "ip link set lo up\n" + NAME_INTERFACES + "sh /out/script >/out/output 2>&1 </dev/null\necho $? >/out/status\nsync\n")
    console = os.path.join(cache, "console-" + name)
    took = boot(SHAPES[name], kernel, initrd, "", console, shared=out)
    try:
        with open(os.path.join(out, "status")) as file:
            status = int(file.read())
        with open(os.path.join(out, "output"), errors="replace") as file:
            return status, file.read(), took
    except (OSError, ValueError):
        raise Missing("the emulated node ended before the command did: " + tail(console))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="1x64")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    status, output, took = run(os.path.abspath(options.cache), options.shape, " ".join(options.words))
    sys.stdout.write(output)
    print("emulated node: %.0f s" % took, file=sys.stderr)
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Missing as what:
        sys.exit("emulated_node: %s" % what)
