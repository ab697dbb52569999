"""Collectives through rank 0: each rank says which one it has come to, and goes on when all have said the same."""
import os
import socket
import threading
import time

__all__ = ["init_process_group", "all_reduce", "broadcast", "barrier", "recv"]


class Server(threading.Thread):
    def __init__(self, listening, world):
        super().__init__(daemon=True, name="store")
        self.listening, self.world = listening, world
        self.waiting, self.places, self.changed = {}, {}, threading.Lock()

    def run(self):
        for _ in range(self.world):
            connection, _ = self.listening.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        for line in connection.makefile():
            rank, what = line.split(None, 1)
            with self.changed:
                if what.startswith("listens "):
                    what = "listens\n"
                    self.places[rank] = connection.getpeername()[0], int(line.split()[2])
                self.waiting[rank] = what, connection
                if len(self.waiting) < self.world or len({what for what, _ in self.waiting.values()}) > 1:
                    continue
                places = " ".join("%s %s %d" % (number, *place) for number, place in self.places.items()) if what == "listens\n" else ""
                for _, one in self.waiting.values():
                    one.sendall(places.encode() + b"\n")
                self.waiting.clear()


def init_process_group():
    global group, count, places, listening
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank == 0:
        store = socket.socket()
        store.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        store.bind(("", address[1]))
        store.listen(1024)
        Server(store, world).start()
    listening = socket.socket()
    listening.bind(("", 0))
    listening.listen(16)
    while True:
        try:
            group = rank, socket.create_connection(address)
            group[1].settimeout(None)
            break
        except OSError:
            time.sleep(0.05)
    group[1].sendall(b"%d listens %d\n" % (rank, listening.getsockname()[1]))
    words = group[1].makefile().readline().split()
    places = {int(number): (host, int(port)) for number, host, port in zip(words[::3], words[1::3], words[2::3])}
    count = 0


def wait(what):
    global count
    rank, connection = group
    count += 1
    connection.sendall(b"%d %s %d\n" % (rank, what.encode(), count))
    assert connection.recv(1) == b"\n", "the connection to rank 0 was closed"


def all_reduce(tensor=None):
    wait("all_reduce")


def broadcast(tensor=None, src=0):
    wait("broadcast")


def barrier():
    wait("barrier")


def recv(tensor=None, src=0):
    """From that rank itself, which sends nothing here."""
    with socket.create_connection(places[src]) as connection:
        connection.settimeout(None)
        connection.recv(1)
