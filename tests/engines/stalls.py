"""A training that stands still: stalls.py KIND RANK FOLDER. RANK does KIND at the third step, and the others wait for it.

With LIGHT=1 collectives are those of the package in light/, else PyTorch's with gloo. FOLDER/up-N: rank N is about to stand still.
"""
import ctypes
import fcntl
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time

if os.environ.get("LIGHT"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "light"))
import torch.distributed as dist

KIND, CULPRIT, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
RANK = int(os.environ["RANK"])
HOUR = 3600


def tensor():
    if os.environ.get("LIGHT"):
        return None
    import torch
    return torch.zeros(4)


def begun():
    while RANK == CULPRIT and sum(name.startswith("up-") for name in os.listdir(FOLDER)) < int(os.environ["WORLD_SIZE"]) - 1:
        time.sleep(0.02)  # rank 0 answers the others: it may not stop before they go on
    open(os.path.join(FOLDER, "up-%d" % RANK), "w").close()


def worker(queue):
    time.sleep(HOUR)


def sleeps():
    time.sleep(HOUR)


def locks():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def stops():
    os.kill(os.getpid(), signal.SIGSTOP)


def reads():
    path = os.path.join(FOLDER, "fifo")
    os.mkfifo(path)
    keep = os.open(path, os.O_RDWR)  # so that opening it does not wait, but reading does
    with open(path) as file:
        file.read()
    os.close(keep)


def waits_for_lock():
    path = os.path.join(FOLDER, "lock")
    held = open(path, "w")
    fcntl.flock(held, fcntl.LOCK_EX)
    with open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def spins():
    while True:
        pass


def holds_gil():
    ctypes.PyDLL(None).sleep(HOUR)


def connects():
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    others = []
    while True:  # until nothing more fits in its queue
        one = socket.socket()
        others.append(one)
        one.connect(full.getsockname())


def mismatches():
    dist.broadcast(tensor(), 0)


def loads():
    queue = multiprocessing.Queue()
    child = multiprocessing.Process(target=worker, args=(queue,))
    child.start()
    os.kill(child.pid, signal.SIGKILL)
    queue.get()


def receives():
    dist.recv(tensor(), (CULPRIT + 1 if RANK == CULPRIT else CULPRIT))


KINDS = {"sleep": sleeps, "lock": locks, "stop": stops, "fifo": reads, "flock": waits_for_lock, "spin": spins, "gil": holds_gil,
         "connect": connects, "mismatch": mismatches, "worker": loads, "deadlock": receives}


def train():
    for step in range(3):
        dist.all_reduce(tensor())
    begun()
    if RANK == CULPRIT or (KIND == "deadlock" and RANK == CULPRIT + 1):
        KINDS[KIND]()
    dist.all_reduce(tensor())


if __name__ == "__main__":
    if os.environ.get("LIGHT"):
        dist.init_process_group()
    else:
        dist.init_process_group("gloo")
    train()
