#!/usr/bin/env python3
"""foreign.py QEMU COMMAND...: COMMAND where the kernel starts programs for aarch64 by QEMU (qemu-aarch64, user mode).

In a user namespace of its own, with its own binfmt_misc (Linux 6.7): nothing outside changes. Status 77: not possible here; where the environment has
CI=true, a container that forbids user namespaces is a failure.
"""
import ctypes
import os
import sys

from allowed import SKIPPED

NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
MISC = "/proc/sys/fs/binfmt_misc"
# The ELF header of programs and libraries for aarch64, and which of its bits count.
MAGIC = rb"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = rb"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"


def write(path, data):
    with open(path, "wb", buffering=0) as file:
        file.write(data)


def skip(why, status=SKIPPED):
    print("left out: %s" % why, file=sys.stderr)
    os._exit(status)


def main(qemu, command):
    library = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    mapped = 65536 if user == 0 else 1
    to_child, to_parent = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        if library.unshare(NEW_USER | NEW_MOUNTS) != 0:
            skip("no user namespaces here: %s" % os.strerror(ctypes.get_errno()), 1 if os.environ.get("CI") == "true" else SKIPPED)
        os.write(to_parent[1], b"x")
        if os.read(to_child[0], 1) != b"x":
            skip("no ids in the user namespace")
        for fd in to_child + to_parent:
            os.close(fd)
        if library.mount(b"none", MISC.encode(), b"binfmt_misc", 0, None) != 0:
            skip("binfmt_misc in a user namespace (Linux 6.7): %s" % os.strerror(ctypes.get_errno()))
        # F: the interpreter is opened now, and so is found in every root. P: argv[0] is kept.
        write(MISC + "/register", b":aarch64:M::" + MAGIC + b":" + MASK + b":" + os.fsencode(qemu) + b":PF")
        os.execvp(command[0], command)
    os.close(to_parent[1])
    os.close(to_child[0])
    if os.read(to_parent[0], 1) == b"x":
        try:
            if user != 0:
                write("/proc/%d/setgroups" % child, b"deny")
            write("/proc/%d/gid_map" % child, b"0 %d %d" % (group, mapped))
            write("/proc/%d/uid_map" % child, b"0 %d %d" % (user, mapped))
            os.write(to_child[1], b"x")
        except OSError as error:
            print("skipped: %s" % error, file=sys.stderr)
    os.close(to_child[1])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
