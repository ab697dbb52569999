#!/usr/bin/python3
"""A shim that only stays beside the program: for tests of what stays beside the launcher. It knows one host file's worth of
layout from STANDIN_LAYOUT ("host:ranks host:ranks"), starts the program, and tells hpclaunch of it.

    STANDIN_MUTE=3,4     these ranks are gone without an end
    STANDIN_SUPPORT      the folder of channel.py
"""
import os
import resource
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.environ["STANDIN_SUPPORT"])
import channel  # noqa: E402

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def main():
    rank = int(os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["STANDIN_RANK"])
    nodes = [entry.split(":") for entry in os.environ["STANDIN_LAYOUT"].split()]
    node, first = 0, 0
    while rank >= first + int(nodes[node][1]):
        first += int(nodes[node][1])
        node += 1
    forwarded = (*ENDING, signal.SIGUSR1, signal.SIGUSR2)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, forwarded)  # until they can be passed on: the program may be ready first
    hpclaunch = channel.Channel.from_environment(node)
    environment = {name: value for name, value in os.environ.items() if name != "HPCLAUNCH_CHANNEL"}

    def begin():
        # In a group of its own: Hydra and Slurm signal a rank's whole group, and it shall hear of each signal once.
        os.setpgrp()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    program = subprocess.Popen(sys.argv[1:], env=dict(environment, RANK=str(rank)), stderr=subprocess.PIPE, preexec_fn=begin)
    sent = []

    def pass_on(got):
        if got in ENDING:
            sent.append(got)
        if program.poll() is None:
            os.killpg(program.pid, got)

    def forward(got, frame):  # the launcher signals our group
        if hpclaunch and got in ENDING:
            hpclaunch.signalled(rank, got)
        pass_on(got)
    if hpclaunch:
        hpclaunch.begun(rank, program.pid, nodes[node][0])
    for number in forwarded:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    released = threading.Event()

    def listen():
        for what, whose, number in iter(hpclaunch.wait, None):
            if what == channel.SIGNAL:
                pass_on(number)
            elif whose == rank:
                break
        released.set()
    if hpclaunch:
        threading.Thread(target=listen, daemon=True).start()
    tail = b""
    for line in program.stderr:
        os.write(2, line)
        tail = (tail + line)[-16384:]
    status = program.wait()
    if hpclaunch and str(rank) not in os.environ.get("STANDIN_MUTE", "").split(","):
        how = dict(exit=status) if status >= 0 else dict(signal=-status)
        hpclaunch.ended(rank, program.pid, sent=sent[-1] if sent else 0, tail=tail if status else b"",
                        peak_kib=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, **how)
        released.wait()
    os._exit(status if status >= 0 else 128 - status)


main()
