"""What the ranks of ends_test.py run. Standard library only.

python3 ending.py save FOLDER: until a signal comes; its handler needs 3 s to write FOLDER/RANK.saved, and every signal
is a line of FOLDER/RANK.
python3 ending.py ring FOLDER: a number goes round through all ranks, over sockets, until a peer is gone.
Each rank leaves FOLDER/up-RANK when it is ready.
"""
import os
import signal
import socket
import sys
import time

WHAT, FOLDER = sys.argv[1:3]
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SECONDS = 3


def path(name):
    return os.path.join(FOLDER, name)


def up():
    with open(path("up-%d" % RANK), "w"):
        pass


def save():
    def handler(number, _):
        with open(path(str(RANK)), "a") as file:
            file.write("%s\n" % signal.Signals(number).name)
        with open(path("%d.part" % RANK), "w") as file:
            for part in range(10):
                time.sleep(SECONDS / 10)
                file.write("%d\n" % part)
        os.rename(path("%d.part" % RANK), path("%d.saved" % RANK))
        sys.exit(0)

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, handler)
    up()
    while True:
        time.sleep(0.1)


def ring():
    with socket.create_server(("", 0)) as server:
        with open(path("new-%d" % RANK), "w") as file:
            file.write("%s %d" % (os.uname().nodename, server.getsockname()[1]))
        os.rename(path("new-%d" % RANK), path("at-%d" % RANK))
        behind = path("at-%d" % ((RANK + 1) % WORLD))
        while not os.path.exists(behind):
            time.sleep(0.02)
        with open(behind) as file:
            host, port = file.read().split()
        to = socket.create_connection((host, int(port)))
        source = server.accept()[0]
    if RANK == 0:
        to.sendall(b"x")
    first = True
    while True:
        if not source.recv(1):
            raise ConnectionError("rank %d: the rank before it is gone" % RANK)
        if first:
            up()
        first = False
        time.sleep(0.01)
        to.sendall(b"x")


{"save": save, "ring": ring}[WHAT]()
