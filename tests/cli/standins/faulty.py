#!/usr/bin/env python3
"""A launcher that does what a broken one does: speaks Hydra's command line, starts every rank on this machine.

    faulty.py FAULT[,FAULT...] HYDRA ARGUMENTS...

Each node of -hosts is this machine, under the host's own name (a UTS namespace). Faults:
  drop=NAME        rank 1 and those after it lose a variable
  set=NAME=VALUE   every rank gets another value
  wide             binds nothing
  narrow           binds every rank to the first CPU
  swap             local ranks count backwards
  order            the nodes come in the opposite order
  fewer            the last rank is not started
  hang[=FILE]      the last rank makes FILE, never ends, and ignores TERM
  noise            prints on standard output, before, between and inside lines
  tag              puts "[rank] " before each line
  fail             exits with 9 at the end
  dead             exits with 9 at once
"""
import os
import subprocess
import sys
import time


def main():
    faults = dict((fault.partition("=")[0], fault.partition("=")[2]) for fault in sys.argv[1].split(",") if fault)
    words = sys.argv[2:]
    if words == ["--version"]:
        print("HYDRA build details:\n    Version:                                 4.0.2")
        return 0
    if "dead" in faults:
        return 9
    options, at = {}, 0
    while words[at].startswith("-"):
        options[words[at]] = words[at + 1]
        at += 2
    program, binding = words[at:], options["-bind-to"]
    hosts = [(name, int(count)) for name, _, count in (host.rpartition(":") for host in options["-hosts"].split(","))]
    names = [name for name, _ in hosts]
    if "order" in faults:
        names.reverse()
    sets = binding[len("user:"):].split(",") if binding.startswith("user:") else []
    ranks, number, total = [], 0, sum(count for _, count in hosts)
    for (_, count), name in zip(hosts, names):
        for local in range(count):
            env = dict(os.environ, PMI_RANK=str(number), PMI_SIZE=str(total),
                       MPI_LOCALRANKID=str(count - 1 - local if "swap" in faults else local), MPI_LOCALNRANKS=str(count))
            if "drop" in faults and number > 0:
                env.pop(faults["drop"], None)
            if "set" in faults:
                key, _, value = faults["set"].partition("=")
                env[key] = value
            command = program
            cpus = "0" if "narrow" in faults else sets[local].replace("+", ",") if sets and "wide" not in faults else None
            if cpus is not None:
                command = ["taskset", "-c", cpus] + command
            command = ["unshare", "--map-root-user", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name] + command
            if "fewer" in faults and number == total - 1:
                continue
            if "hang" in faults and number == total - 1:
                command = ["sh", "-c", "trap '' TERM; [ -z \"$0\" ] || : > \"$0\"; while :; do sleep 1000; done", faults["hang"]]
            ranks.append((number, subprocess.Popen(command, env=env, stdout=subprocess.PIPE)))
            number += 1
    if "noise" in faults:
        sys.stdout.write("module load: welcome\nno newline at its end")
    status = 0
    for number, rank in ranks:
        for line in rank.stdout:
            sys.stdout.write(("[%d] " % number if "tag" in faults else "") + line.decode())
            if "noise" in faults:
                sys.stdout.write("@hpclaunch rank=0 nothing of ours\n{}\n\0\n")
            sys.stdout.flush()
        status = max(status, rank.wait())
    return 9 if "fail" in faults else status


if __name__ == "__main__":
    sys.exit(main())
