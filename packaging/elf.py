"""What a program needs of a machine, read from its dynamic section: libraries, and the oldest glibc it starts with."""
import struct

LOAD, DYNAMIC = 1, 2
NEEDED, STRTAB, RPATH, RUNPATH, VERNEED, VERNEEDNUM = 1, 5, 15, 29, 0x6FFFFFFE, 0x6FFFFFFF
MACHINES = {62: "x86_64", 183: "aarch64"}


class Program:
    """machine, needed: [library], versions: {library: [version]}, paths: [RPATH or RUNPATH]"""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._bytes = file.read()
        if self._bytes[:6] != b"\x7fELF\x02\x01":
            raise SystemExit("%s: no 64-bit little-endian ELF program" % path)
        machine = struct.unpack_from("<H", self._bytes, 18)[0]
        self.machine = MACHINES.get(machine, "machine-%d" % machine)
        offset, count = struct.unpack_from("<Q", self._bytes, 32)[0], struct.unpack_from("<H", self._bytes, 56)[0]
        headers = [struct.unpack_from("<IIQQQQ", self._bytes, offset + 56 * index) for index in range(count)]
        self._loads = [(address, address + size, at) for kind, _, at, address, _, size in headers if kind == LOAD]
        entries = []
        for kind, _, at, _, _, size in headers:
            if kind == DYNAMIC:
                entries = [struct.unpack_from("<QQ", self._bytes, at + 16 * index) for index in range(size // 16)]
        table = dict(entries)
        self._text = self._offset(table[STRTAB]) if STRTAB in table else 0
        self.needed = [self._name(value) for tag, value in entries if tag == NEEDED]
        self.paths = [self._name(value) for tag, value in entries if tag in (RPATH, RUNPATH)]
        self.versions = self._read_versions(table)

    def floor(self):
        """The newest GLIBC_ version as numbers; (0,) for a static program."""
        numbers = [tuple(map(int, one[6:].split("."))) for names in self.versions.values()
                   for one in names if one.startswith("GLIBC_") and one[6].isdigit()]
        return max(numbers, default=(0,))

    def _offset(self, address):
        return next(at + address - begin for begin, end, at in self._loads if begin <= address < end)

    def _name(self, index):
        begin = self._text + index
        return self._bytes[begin:self._bytes.index(b"\0", begin)].decode()

    def _read_versions(self, table):
        versions = {}
        if VERNEED not in table:
            return versions
        file = self._offset(table[VERNEED])
        for _ in range(table[VERNEEDNUM]):
            _, count, name, one, following = struct.unpack_from("<HHIII", self._bytes, file)
            one += file
            for _ in range(count):
                _, _, _, version, step = struct.unpack_from("<IHHII", self._bytes, one)
                versions.setdefault(self._name(name), []).append(self._name(version))
                one += step
            file += following
        return versions
