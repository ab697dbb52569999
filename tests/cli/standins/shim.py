#!/usr/bin/python3
"""A shim that writes records and does nothing else: for tests of what stays beside the launcher. It knows one host file's
worth of layout from STANDIN_LAYOUT ("host:ranks host:ranks"), starts the program, and says how it ended.

    STANDIN_MUTE=3,4     these ranks say nothing
"""
import os
import signal
import subprocess
import sys
import time


def main():
    rank = int(os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["STANDIN_RANK"])
    nodes = [entry.split(":") for entry in os.environ["STANDIN_LAYOUT"].split()]
    node, first = 0, 0
    while rank >= first + int(nodes[node][1]):
        first += int(nodes[node][1])
        node += 1
    forwarded = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, forwarded)  # until they can be passed on: the program may be ready first

    def begin():
        # In a group of its own: Hydra and Slurm signal a rank's whole group, and it shall hear of each signal once.
        os.setpgrp()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    program = subprocess.Popen(sys.argv[1:], env=dict(os.environ, RANK=str(rank)), stderr=subprocess.PIPE, preexec_fn=begin)
    sent = []

    def forward(got, frame):  # the launcher signals our group
        sent.append(got)
        os.killpg(program.pid, got)
    for number in forwarded:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    tail = []
    for line in program.stderr:
        os.write(2, line)
        tail = (tail + [line.rstrip(b"\n")])[-10:]
    status = program.wait()
    if str(rank) in os.environ.get("STANDIN_MUTE", "").split(",") or not os.environ.get("HPCLAUNCH_RECORDS"):
        os._exit(abs(status))
    head = b"@hpclaunch %s rank=%d node=%d host=%s pid=%d " % (os.environ["HPCLAUNCH_RECORDS"].encode(), rank, node, nodes[node][0].encode(), program.pid)
    if status:
        for line in tail:
            os.write(2, head + b"tail=" + line + b"\n")
    by = [number for number in sent if number not in (signal.SIGUSR1, signal.SIGUSR2)]
    os.write(2, head + (b"at=%.6f " % time.time()) + (b"exit=%d" % status if status >= 0 else b"signal=%d" % -status) + (b" sent=%d" % by[-1] if by else b"") + b"\n")
    os._exit(status if status >= 0 else 128 - status)


main()
