"""A job that sums over its ranks, step by step, and keeps a checkpoint; a fault is planted in it. Standard library only.

python3 checkpointing.py FOLDER STEPS FAULT: FAULT is "RANK:STEP:HOW:ATTEMPTS" or "none"; HOW is exit=N, raise, KILL, SEGV,
ABRT, early (status 0 while others need it), or wait (until somebody kills it).
Rank 0 writes FOLDER/checkpoint after each step and FOLDER/result at the end. Each rank leaves FOLDER/pid-RANK-ATTEMPT.
"""
import os
import signal
import socket
import sys
import time

FOLDER, STEPS, FAULT = sys.argv[1], int(sys.argv[2]), sys.argv[3]
RANK, WORLD, ATTEMPT = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "HPCLAUNCH_RESTART"))


def planted(step):
    if FAULT == "none":
        return
    rank, at, how, attempts = FAULT.split(":")
    if (RANK, step) != (int(rank), int(at)) or ATTEMPT >= int(attempts):
        return
    if how.startswith("exit="):
        sys.exit(int(how[5:]))
    if how == "raise":
        raise RuntimeError("planted at step %d" % step)
    if how == "early":
        os._exit(0)
    if how == "wait":
        time.sleep(600)
    os.kill(os.getpid(), getattr(signal, "SIG" + how))


def lines(connection):
    return connection.makefile("rw", buffering=1)


def meet():
    """Streams to all others at rank 0, else one to rank 0."""
    where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if RANK == 0:
        with socket.create_server(("", where[1])) as server:
            server.settimeout(300)
            return [lines(server.accept()[0]) for _ in range(1, WORLD)]
    end = time.monotonic() + 300
    while True:
        try:
            return [lines(socket.create_connection(where, 300))]
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def read(stream):
    try:
        line = stream.readline()
    except OSError:
        line = ""
    if not line:
        time.sleep(0.5)  # who ended first must end first: only that is judged
        sys.exit("rank %d: connection closed by peer" % RANK)
    return int(line)


def summed(value, streams):
    """The sum over all ranks, at all ranks."""
    if RANK == 0:
        total = value + sum(read(stream) for stream in streams)
        for stream in streams:
            stream.write("%d\n" % total)
        return total
    streams[0].write("%d\n" % value)
    return read(streams[0])


with open(os.path.join(FOLDER, "pid-%d-%d" % (RANK, ATTEMPT)), "w") as file:
    file.write(str(os.getpid()))
STREAMS = meet()
DONE, TOTAL = 0, 0
if os.path.exists(os.path.join(FOLDER, "checkpoint")):
    with open(os.path.join(FOLDER, "checkpoint")) as file:
        DONE, TOTAL = map(int, file.read().split())
summed(0, STREAMS)  # all have read it
for STEP in range(DONE, STEPS):
    planted(STEP)
    TOTAL = (TOTAL * 31 + summed((STEP + 1) * (RANK + 7), STREAMS)) % 1000003
    if RANK == 0:
        with open(os.path.join(FOLDER, "new"), "w") as file:
            file.write("%d %d" % (STEP + 1, TOTAL))
        os.replace(os.path.join(FOLDER, "new"), os.path.join(FOLDER, "checkpoint"))
if RANK == 0:
    with open(os.path.join(FOLDER, "result"), "w") as file:
        file.write("%d %d" % (ATTEMPT, TOTAL))
