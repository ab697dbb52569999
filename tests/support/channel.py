"""Both ends of the channel between rank monitors and hpclaunch (src/shared/frames.h). Channel is a monitor's, for stand-ins
and made-up launchers; Server is hpclaunch's, for tests of the shim.

    channel = Channel.from_environment(node)     None where hpclaunch does not listen
    channel.begun(rank, pid, host)
    channel.ended(rank, pid, exit=1, tail=b"...") or signal=15, sent=15, core=True
    channel.wait()                               the next (what, rank, number); None at its end
"""
import os
import queue
import socket
import struct
import threading

VERSION = 1
CHALLENGE, HELLO, WELCOME, BEGUN, LOG, SIGNALLED, ENDED, SIGNAL, RELEASE, ALONE, GONE, ASK, STACKS = range(1, 14)
HEAD = struct.Struct("<IBBHi")
MASK = (1 << 64) - 1


def siphash(key, data):
    """SipHash-2-4."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]

    def rotate(x, by):
        return ((x << by) | (x >> (64 - by))) & MASK

    def rounds(count):
        for _ in range(count):
            v[0], v[2] = (v[0] + v[1]) & MASK, (v[2] + v[3]) & MASK
            v[1], v[3] = rotate(v[1], 13) ^ v[0], rotate(v[3], 16) ^ v[2]
            v[0] = rotate(v[0], 32)
            v[2], v[0] = (v[2] + v[1]) & MASK, (v[0] + v[3]) & MASK
            v[1], v[3] = rotate(v[1], 17) ^ v[2], rotate(v[3], 21) ^ v[0]
            v[2] = rotate(v[2], 32)
    whole = len(data) // 8 * 8
    words = list(struct.unpack("<%dQ" % (whole // 8), data[:whole]))
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 0xff) << 56)
    for word in words:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xff
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def frame(what, rank, body=b""):
    return HEAD.pack(HEAD.size + len(body), VERSION, what, 0, rank) + body


class Reader:
    def __init__(self, connection):
        self.socket, self.bytes = connection, b""

    def read(self):
        """(what, rank, body); None at the end of the connection."""
        while len(self.bytes) < HEAD.size or len(self.bytes) < HEAD.unpack_from(self.bytes)[0]:
            try:
                more = self.socket.recv(65536)
            except ConnectionError:
                return None
            if not more:
                return None
            self.bytes += more
        size, _, what, _, rank = HEAD.unpack_from(self.bytes)
        body, self.bytes = self.bytes[HEAD.size:size], self.bytes[size:]
        return what, rank, body


class Channel(Reader):
    def __init__(self, variable, node, key=None, hello=True):
        words = variable.split(".")
        assert words[0] == "1", variable
        self.key = key or bytes.fromhex(words[2])
        address = bytes.fromhex(words[4])
        family = socket.AF_INET if len(address) == 4 else socket.AF_INET6
        super().__init__(socket.create_connection((socket.inet_ntop(family, address), int(words[3], 16)), timeout=30))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(None)  # a rank may be silent for long
        if hello:
            self.greet(node)

    @classmethod
    def from_environment(cls, node):
        variable = os.environ.get("HPCLAUNCH_CHANNEL")
        return cls(variable, node) if variable else None

    def greet(self, node):
        what, _, body = self.read()
        assert what == CHALLENGE, what
        theirs, ours = body[4:], os.urandom(16)
        here = struct.pack("<i", node)
        self.socket.sendall(frame(HELLO, -1, here + ours + struct.pack("<Q", siphash(self.key, theirs + ours + here))))
        what, _, body = self.read()
        assert what == WELCOME and struct.unpack("<Q", body[4:])[0] == siphash(self.key, ours + theirs + here), what

    def wait(self):
        found = self.read()
        if found is None:
            return None
        what, rank, body = found
        return what, rank, struct.unpack("<i", body)[0] if what == SIGNAL else 0

    def begun(self, rank, pid, host):
        self.socket.sendall(frame(BEGUN, rank, struct.pack("<i64s", pid, host.encode())))

    def log(self, rank, error):
        self.socket.sendall(frame(LOG, rank, struct.pack("<i", error)))

    def signalled(self, rank, number):
        self.socket.sendall(frame(SIGNALLED, rank, struct.pack("<i", number)))

    def ended(self, rank, pid, exit=None, signal=None, core=False, sent=0, tail=b"", peak_kib=0, oom_kills=0):
        body = struct.pack("<iBBBBII", pid, signal is not None, signal if signal is not None else exit or 0, core, sent, peak_kib, oom_kills)
        self.socket.sendall(frame(ENDED, rank, body + tail))

    def close(self):
        self.socket.close()


def play(node, host, ranks):
    """Ranks of a node that are only played: they end well. Nothing where hpclaunch does not listen."""
    channel = Channel.from_environment(node)
    if channel is None:
        return
    for rank in ranks:
        channel.begun(rank, 1, host)
        channel.ended(rank, 1, exit=0)
    released = {channel.wait()[1] for _ in ranks}
    assert released == set(ranks), (released, ranks)
    channel.close()


class Frame:
    """What a monitor has told, and the connection on which it came."""
    def __init__(self, what, rank, body, connection):
        self.what, self.rank, self.connection = what, rank, connection
        if what == BEGUN:
            self.pid, self.host = struct.unpack("<i", body[:4])[0], body[4:].rstrip(b"\0").decode()
        elif what in (LOG, SIGNALLED):
            self.number = struct.unpack("<i", body)[0]
        elif what == ENDED:
            self.pid, self.by_signal, self.status, self.core, self.sent, self.peak_kib, self.oom_kills = struct.unpack("<iBBBBII", body[:16])
            self.tail = body[16:]
        elif what == STACKS:
            self.number, self.last, self.text = struct.unpack("<I", body[:4])[0], body[4] != 0, body[8:]

    def __repr__(self):
        return repr({name: value[-80:] if name == "tail" else value for name, value in vars(self).items() if name != "connection"})


class Server:
    """hpclaunch's end, for one monitor or many.

    server = Server()                   server.variable: the text of HPCLAUNCH_CHANNEL
    server.next(BEGUN, rank)            the next frame of this kind, and of this rank if one is named
    server.send(SIGNAL, rank, number)   to the rank, or with ALL to all; RELEASE has no number
    server.close()                      and all connections with it

    `releases`: each end is answered with a release. `challenge`: bytes to send in place of a good one. `key`: for the
    welcome, in place of the right one. `before`: addresses to try before the right one. Nothing is said before `speaks`. It listens `here`.
    """
    ALL = -1

    def __init__(self, releases=False, challenge=None, key=None, before=(), speaks=True, limit=300, here="127.0.0.1"):
        self.key, self.releases, self.challenge, self.limit = os.urandom(16), releases, challenge, limit
        self.shown = key or self.key
        self.listening = socket.socket(socket.AF_INET6 if ":" in here else socket.AF_INET)
        self.listening.bind((here, 0))
        self.listening.listen(64)
        addresses = [socket.inet_pton(socket.AF_INET6 if ":" in one else socket.AF_INET, one).hex() for one in tuple(before) + (here,)]
        port = self.listening.getsockname()[1]
        self.variable = ".".join(["1", os.urandom(8).hex(), self.key.hex(), "%04x" % port] + addresses).upper()
        self.frames, self.waiting, self.nodes, self.of_rank = queue.Queue(), [], [], {}
        self.connections, self.welcomed, self.closed = [], [], []
        self.speaks = threading.Event()
        if speaks:
            self.speaks.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection = self.listening.accept()[0]
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            self.talk(Reader(connection), connection)
        except OSError:
            pass  # one of both ends has closed it
        self.closed.append(connection)

    def talk(self, reader, connection):
        self.speaks.wait()
        ours = os.urandom(16)
        connection.sendall(self.challenge if self.challenge is not None else frame(CHALLENGE, -1, bytes(4) + ours))
        found = reader.read()
        if found is None:
            return
        assert found[0] == HELLO, found
        node, theirs, tag = struct.unpack("<i16sQ", found[2])
        here = struct.pack("<i", node)
        assert tag == siphash(self.key, ours + theirs + here), found
        self.nodes.append(node)
        self.welcomed.append(connection)
        connection.sendall(frame(WELCOME, -1, here + struct.pack("<Q", siphash(self.shown, theirs + ours + here))))
        for found in iter(reader.read, None):
            told = Frame(*found, connection)
            if told.what == BEGUN:
                self.of_rank[told.rank] = connection
            self.frames.put(told)
            if told.what == ENDED and self.releases:
                self.send(RELEASE, told.rank)

    def next(self, what, rank=None):
        """The first one that was not asked for yet; others wait, for ranks do not wait for each other."""
        while True:
            for found in self.waiting:
                if found.what == what and rank in (None, found.rank):
                    self.waiting.remove(found)
                    return found
            try:
                self.waiting.append(self.frames.get(timeout=self.limit))
            except queue.Empty:
                raise AssertionError("no frame %d of rank %s; there are %s" % (what, rank, self.waiting)) from None

    def rest(self):
        """What has come and was not asked for."""
        while not self.frames.empty():
            self.waiting.append(self.frames.get())
        return self.waiting

    def send(self, what, rank, number=None):
        self.send_raw(frame(what, rank, b"" if number is None else struct.pack("<i", number)), rank)

    def ask(self, number, all_threads=False, ras_port=0, ras_rank=0):
        """All ranks for their stacks."""
        self.send_raw(frame(ASK, self.ALL, struct.pack("<IHBBi", number, ras_port, all_threads, 0, ras_rank)))

    def send_raw(self, data, rank=ALL):
        for connection in self.welcomed if rank == self.ALL else [self.of_rank[rank]]:
            connection.sendall(data)

    def close(self):
        self.speaks.set()
        for one in [self.listening] + self.connections:  # a shutdown also wakes the thread that waits for it
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
