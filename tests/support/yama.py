#!/usr/bin/env python3
"""yama.py SCOPE PROGRAM...: runs a program where the kernel's Yama would be, with its rules for ptrace_scope 1 and 2.

A filter of system calls (seccomp) hands over those that need a process's memory; here they are allowed as security/yama/yama_lsm.c
does it: scope 1 to ancestors of the process and to what the process has named by PR_SET_PTRACER, and that one's descendants; scope 2
to nobody. Root is no exception. The file /proc/sys/kernel/yama/ptrace_scope is the caller's to make.
"""
import array
import ctypes
import errno
import fcntl
import os
import re
import socket
import struct
import sys
import threading

MACHINE = os.uname().machine
READV, PRCTL, OPENAT, SECCOMP = {"x86_64": (310, 157, 257, 317), "aarch64": (270, 167, 56, 277)}[MACHINE]
RECEIVE, SEND = 0xC0502100, 0xC0182101
CONTINUE = 1
SET_PTRACER = 0x59616D61
libc = ctypes.CDLL(None, use_errno=True)


def install():
    """The filter; (its listener)"""
    calls = (READV, PRCTL, OPENAT)
    program = [(0x20, 0, 0, 0)]
    for place, number in enumerate(calls):
        program.append((0x15, len(calls) - place, 0, number))
    program += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x7FC00000)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in program))
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(text)))
    libc.prctl(38, 1, 0, 0, 0)
    listener = libc.syscall(SECCOMP, 1, 8, filters)
    assert listener >= 0, os.strerror(ctypes.get_errno())
    return listener


def status(pid, key):
    with open("/proc/%d/status" % pid) as file:
        return int(re.search(r"^%s:\s*(-?\d+)" % key, file.read(), re.M)[1])


def is_below(process, ancestor):
    """The same one, or a descendant."""
    while process not in (0, ancestor):
        process = status(process, "PPid")
    return process == ancestor


class Rules:
    def __init__(self, scope):
        self.scope, self.named = scope, {}

    def may_read(self, reader, process):
        process = status(process, "Tgid")
        if reader == process:
            return True
        if self.scope >= 2:
            return False
        return is_below(process, reader) or (process in self.named and is_below(reader, self.named[process]))

    def error(self, task, number, arguments):
        """0: it may."""
        caller = status(task, "Tgid")
        if number == PRCTL:
            if arguments[0] == SET_PTRACER:
                self.named[caller] = arguments[1]
            return 0
        if number == READV:
            return 0 if self.may_read(caller, arguments[0]) else errno.EPERM
        with open("/proc/%d/mem" % task, "rb") as memory:
            memory.seek(arguments[1])
            path = memory.read1(64).split(b"\0")[0]
        found = re.fullmatch(rb"/proc/(\d+)/(mem|task/\d+/syscall)", path)
        return 0 if not found or self.may_read(caller, int(found[1])) else errno.EACCES


def watch(listener, rules):
    while True:
        asked = bytearray(80)
        try:
            fcntl.ioctl(listener, RECEIVE, asked)
        except FileNotFoundError:  # who asked was killed
            continue
        except OSError:
            return
        what, task, _, number, _, _, *arguments = struct.unpack("=QIIiIQ6Q", asked)
        try:
            error = rules.error(task, number, arguments)
        except (OSError, TypeError):  # it has ended
            error = 0
        try:
            fcntl.ioctl(listener, SEND, struct.pack("=QqiI", what, 0, -error, 0 if error else CONTINUE))
        except FileNotFoundError:
            pass


def main():
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        # Not sent by this process's own name: what it is needs no call that waits for an answer.
        listener = install()
        theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
        os.close(listener)
        theirs.close()
        os.execvp(sys.argv[2], sys.argv[2:])
    theirs.close()
    _, more, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
    listener = array.array("i", more[0][2])[0]
    threading.Thread(target=watch, args=(listener, Rules(int(sys.argv[1]))), daemon=True).start()
    for number in (2, 15):
        __import__("signal").signal(number, lambda number, _: os.kill(child, number))
    _, end = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(end) & 0xFF)


if __name__ == "__main__":
    main()
