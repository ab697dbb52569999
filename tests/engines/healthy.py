"""Programs that are long alive without a word: healthy.py NAME FOLDER SECONDS. None of them stands still.

Each phase lasts so many seconds, on rank 0 alone, the others in a barrier, or on all ranks. Collectives are those of light/.
"""
import asyncio
import concurrent.futures
import gzip
import hashlib
import http.server
import importlib
import json
import multiprocessing
import os
import queue
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "light"))
import torch.distributed as dist

NAME, FOLDER, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PROGRAMS = {}
BLOCK = bytes(1 << 20)
C_SOURCE = "int f%d(int a) { int i, s = 0; for (i = 0; i < a; ++i) s += i %% (a - i); return s; }\n"


def path(name):
    return os.path.join(FOLDER, "%s-%d" % (name, RANK))


def lasts():
    """Rounds of a phase."""
    end = time.monotonic() + SECONDS
    count = 0
    while time.monotonic() < end:
        yield count
        count += 1


def phase(run, alone):
    def program():
        if not alone or RANK == 0:
            run()
        dist.barrier()
    PROGRAMS[run.__name__] = program
    return run


def on_all(run):
    return phase(run, False)


def on_rank_0(run):
    return phase(run, True)


def compute(rounds):
    total = 0.0
    for _ in range(rounds):
        part = random.random()
        total += part ** 2
    return total


def compile_one(count):
    with open(path("part.c"), "w") as file:
        file.writelines(C_SOURCE % (count * 2000 + i) for i in range(2000))
    subprocess.run(["cc", "-O2", "-c", "-o", path("part.o"), path("part.c")], check=True)


def write_some(file):
    for _ in range(8):
        file.write(BLOCK)
    file.flush()
    os.fsync(file.fileno())
    file.seek(0)


@on_all
def imports_many_modules():
    sys.path.insert(0, FOLDER)
    for count in lasts():
        name = "module_%d_%d" % (RANK, count)
        with open(os.path.join(FOLDER, name + ".py"), "w") as file:
            file.writelines("def f%d(x):\n    return x + %d\n" % (i, i) for i in range(1000))
        importlib.invalidate_caches()
        importlib.import_module(name)


@on_all
def compiles():
    for count in lasts():
        compile_one(count)


@on_rank_0
def compiles_alone():
    for count in lasts():
        compile_one(count)


def compiles_while_others_look_for_a_lock():
    lock = os.path.join(FOLDER, "built")
    if RANK == 0:
        compiles_alone()
        open(lock, "w").close()
    while not os.path.exists(lock):
        time.sleep(0.1)


PROGRAMS["compiles_while_others_look_for_a_lock"] = compiles_while_others_look_for_a_lock


@on_rank_0
def runs_short_commands():
    for _ in lasts():
        subprocess.run(["/bin/true"], check=True)


@on_rank_0
def runs_a_long_command():
    subprocess.run(["/bin/sh", "-c", 'i=0; end=$(($(date +%%s) + %d)); while [ $(date +%%s) -lt $end ]; do i=$((i + 1)); done' % SECONDS], check=True)


@on_rank_0
def writes_a_checkpoint():
    with open(path("checkpoint"), "wb") as file:
        for _ in lasts():
            write_some(file)


@on_all
def writes_checkpoints():
    with open(path("checkpoint"), "wb") as file:
        for _ in lasts():
            write_some(file)


@on_rank_0
def writes_a_checkpoint_in_a_process():
    writer = multiprocessing.Process(target=writes_a_checkpoint)
    writer.start()
    writer.join()


@on_rank_0
def writes_a_checkpoint_in_a_thread():
    writer = threading.Thread(target=writes_a_checkpoint)
    writer.start()
    writer.join()


@on_rank_0
def reads_data():
    with open(path("data"), "wb") as file:
        file.write(BLOCK * 8)
    for _ in lasts():
        with open(path("data"), "rb") as file:
            while file.read(1 << 16):
                pass


@on_all
def unpacks_data():
    packed = gzip.compress(os.urandom(1 << 20))
    for _ in lasts():
        with open(path("data"), "wb") as file:
            file.write(gzip.decompress(packed))


@on_rank_0
def evaluates():
    for count in lasts():
        compute(1000 + count % 7)


@on_rank_0
def evaluates_in_a_pool():
    with multiprocessing.Pool(2) as pool:
        for _ in lasts():
            pool.map(compute, [20000] * 4)


@on_rank_0
def evaluates_in_threads():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for _ in lasts():
            list(pool.map(compute, [20000] * 4))


@on_rank_0
def is_long_in_one_call():
    """For less than three times the limit."""
    end = time.monotonic() + SECONDS / 2
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 1000)
    while time.monotonic() < end:
        hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2000000)


@on_all
def prepares_texts():
    for count in lasts():
        json.loads(json.dumps([{"n": i, "text": "x" * (i % 100)} for i in range(5000 + count % 3)]))


class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        for _ in lasts():
            self.wfile.write(bytes(2000))
            time.sleep(0.1)

    def log_message(self, *_):
        pass


def serve(address):
    server = http.server.HTTPServer(("127.0.0.1", 0), Slow)
    address.put(server.server_address[1])
    server.handle_request()


def download(port):
    with urllib.request.urlopen("http://127.0.0.1:%d/" % port) as answer:
        while answer.read(1000):
            pass


def server():
    address = multiprocessing.Queue()
    multiprocessing.Process(target=serve, args=(address,), daemon=True).start()
    return address.get()


@on_rank_0
def downloads():
    download(server())


@on_rank_0
def downloads_in_a_thread():
    thread = threading.Thread(target=download, args=(server(),))
    thread.start()
    thread.join()


def load(batches):
    for _ in lasts():
        compute(20000)
    batches.put(1)


@on_all
def waits_for_the_first_batch():
    batches = multiprocessing.Queue()
    worker = multiprocessing.Process(target=load, args=(batches,), daemon=True)
    worker.start()
    batches.get()


@on_rank_0
def waits_for_a_thread_that_prepares():
    batches = queue.Queue()
    threading.Thread(target=load, args=(batches,), daemon=True).start()
    batches.get()


def steps(of):
    """The same number on all ranks."""
    for step in range(int(SECONDS / of)):
        yield step


def trains():
    for step in steps(0.1):
        compute(2000)
        time.sleep(0.05)
        dist.all_reduce()


def sleeps_between_steps():
    for step in steps(1):
        time.sleep(1)
        dist.all_reduce()


def is_uneven():
    for step in steps(1):
        if RANK == step % WORLD:
            time.sleep(1)
        dist.all_reduce()


def prints_on_rank_0():
    for step in steps(1):
        if RANK == 0:
            time.sleep(1)
            print("step", step, flush=True)
    dist.barrier()


def shows_a_bar():
    if RANK == WORLD - 1:
        for step in steps(1):
            print("\r%3d %%" % step, end="", flush=True)
            time.sleep(1)
    dist.barrier()


def looks_for_a_file():
    if RANK == 0:
        time.sleep(SECONDS)
        open(os.path.join(FOLDER, "ready"), "w").close()
    while not os.path.exists(os.path.join(FOLDER, "ready")):
        time.sleep(0.5)


def sleeps_long():
    time.sleep(SECONDS)


def waits_for_a_command_that_sleeps():
    subprocess.run(["sleep", str(SECONDS)], check=True)


async def served(seconds):
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with server:
        await asyncio.sleep(seconds)


def serves():
    asyncio.run(served(SECONDS))


def serves_while_others_wait_for_orders():
    if RANK == 0:
        asyncio.run(served(SECONDS))
    dist.broadcast()


def accepts():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Timer(SECONDS, lambda: socket.create_connection(listening.getsockname())).start()
        listening.accept()


def acts_on_orders():
    orders = queue.Queue()
    threading.Timer(SECONDS, orders.put, [None]).start()
    orders.get()


def ends_early_on_one_rank():
    if RANK > 0:
        evaluates()


def starts_late_on_one_rank():
    if RANK == WORLD - 1:
        evaluates()
    dist.barrier()


for one in (trains, sleeps_between_steps, is_uneven, prints_on_rank_0, shows_a_bar, looks_for_a_file, sleeps_long, waits_for_a_command_that_sleeps,
            serves, serves_while_others_wait_for_orders, accepts, acts_on_orders, ends_early_on_one_rank, starts_late_on_one_rank):
    PROGRAMS[one.__name__] = one

if __name__ == "__main__":
    if NAME == "names":
        print("\n".join(PROGRAMS))
    else:
        dist.init_process_group()
        PROGRAMS[NAME]()
