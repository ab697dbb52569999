#!/usr/bin/env python3
"""A small, complete data-parallel training: the program to try a launcher with.

    hpclaunch run -n 4 -- python3 train_ddp.py

It asks nothing of its launcher but the five variables that PyTorch's env:// reads: RANK, WORLD_SIZE,
LOCAL_RANK, MASTER_ADDR, MASTER_PORT. Each rank prints one line about what it was given; rank 0 prints a
loss that falls. The exit status is 0 only if the loss fell and every rank ended with the same model.

Runs on CPUs with gloo, on CUDA and ROCm with nccl, on Intel GPUs with xccl or ccl. The device is
number LOCAL_RANK, as in programs written for torchrun. torch 1.13 and newer.
"""
import argparse
import os
import socket
import sys
import time
import traceback

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FEATURES = 16
BATCH = 64


def parse_arguments():
    parser = argparse.ArgumentParser(description="a small data-parallel training")
    parser.add_argument("--steps", type=int, default=40, help="optimizer steps (%(default)s)")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda", "xpu"], default="auto",
                        help="cuda also means ROCm (%(default)s: a GPU when there is one)")
    parser.add_argument("--checkpoint", metavar="FILE",
                        help="rank 0 saves each step to FILE, and all ranks continue from it; on a shared file system")
    fail = parser.add_argument_group("to see how a launcher reports a failure")
    fail.add_argument("--fail-rank", type=int, metavar="RANK", help="this rank fails")
    fail.add_argument("--fail-at", type=int, default=5, metavar="STEP", help="before this step (%(default)s)")
    fail.add_argument("--fail-attempts", type=int, metavar="N", help="in the first N attempts (all of them)")
    fail.add_argument("--fail-how", choices=["exit", "raise", "segv", "hang"], default="exit",
                      help="status 17, an exception, a segmentation fault, or sleep for ever (%(default)s)")
    options = parser.parse_args()
    if options.steps < 2:
        parser.error("--steps must be at least 2")
    return options


def rendezvous():
    """RANK, WORLD_SIZE and LOCAL_RANK; ends the program when the launcher set less than env:// needs."""
    needed = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"]
    missing = [name for name in needed if not os.environ.get(name)]
    if missing:
        sys.exit("train_ddp.py: not set: %s\n"
                 "start it with a launcher: hpclaunch run -n 2 -- python3 %s" % (", ".join(missing), sys.argv[0]))
    return tuple(int(os.environ[name]) for name in needed[:3])


def xpu_backend():
    if getattr(dist, "is_xccl_available", lambda: False)():
        return "xccl"
    import oneccl_bindings_for_pytorch  # noqa: F401  (older stacks: the import registers "ccl")
    return "ccl"


def choose_device(wanted, local_rank):
    """The device of this rank and the collective library that serves it."""
    has_xpu = hasattr(torch, "xpu") and torch.xpu.is_available()
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "xpu" if has_xpu else "cpu"
    if wanted == "cpu":
        return torch.device("cpu"), "gloo"
    count = torch.cuda.device_count() if wanted == "cuda" else torch.xpu.device_count() if has_xpu else 0
    if local_rank >= count:
        sys.exit("train_ddp.py: LOCAL_RANK is %d and this process sees %d %s device(s)" % (local_rank, count, wanted))
    device = torch.device(wanted, local_rank)
    (torch.cuda if wanted == "cuda" else torch.xpu).set_device(device)
    return device, "nccl" if wanted == "cuda" else xpu_backend()


def cpu_list():
    """The CPUs that this process may use, as the kernel writes them: 0-3,8."""
    if not hasattr(os, "sched_getaffinity"):
        return "unknown"
    runs = []
    for cpu in sorted(os.sched_getaffinity(0)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(a) if a == b else "%d-%d" % (a, b) for a, b in runs)


def say(text, stream=sys.stdout):
    """One write for the whole line, so that lines of different ranks do not mix on their way."""
    stream.write(text + "\n")
    stream.flush()


def device_name(device):
    if device.type == "cpu":
        return "cpu"
    return "%s (%s)" % (device, (torch.cuda if device.type == "cuda" else torch.xpu).get_device_name(device))


def fail(how):
    say("rank %s fails now, as asked (%s)" % (os.environ["RANK"], how), sys.stderr)
    if how == "exit":
        os._exit(17)
    if how == "segv":
        import ctypes
        ctypes.string_at(0)
    if how == "raise":
        raise RuntimeError("asked to fail")
    while True:
        time.sleep(60)


def fails_in_this_attempt(options):
    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    return options.fail_attempts is None or attempt < options.fail_attempts


def save(file, state):
    """A file that is complete whenever it is there: written beside it, then renamed."""
    torch.save(state, file + ".new")
    os.replace(file + ".new", file)


def train(options, rank, world, device):
    """Loss of the first and the last step, averaged over the ranks, and the trained model."""
    torch.manual_seed(1)  # the same first weights everywhere
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(device)
    ddp = DistributedDataParallel(model, device_ids=None if device.type == "cpu" else [device.index])
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(100 + rank)  # each rank draws its own samples
    truth = torch.linspace(-1, 1, FEATURES).unsqueeze(1)
    losses = []
    if options.checkpoint and os.path.exists(options.checkpoint):
        state = torch.load(options.checkpoint, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        losses = state["losses"]
        for _ in losses:  # the samples that the steps before have used
            torch.randn(BATCH, FEATURES, generator=data)
        if rank == 0:
            say("continues after step %d of %s" % (len(losses) - 1, options.checkpoint))
    dist.barrier()  # all have read it
    for step in range(len(losses), options.steps):
        if rank == options.fail_rank and step == options.fail_at and fails_in_this_attempt(options):
            fail(options.fail_how)
        x = torch.randn(BATCH, FEATURES, generator=data)
        loss = torch.nn.functional.mse_loss(ddp(x.to(device)), (x @ truth).to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / world)
        if options.checkpoint and rank == 0:
            save(options.checkpoint, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses})
        if rank == 0 and (step % max(1, options.steps // 5) == 0 or step == options.steps - 1):
            say("step %3d  loss %.4f" % (step, losses[-1]))
    return losses, model


def same_everywhere(model):
    """True when every rank holds the same weights, bit for bit."""
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    lowest, highest = weights.clone(), weights.clone()
    dist.all_reduce(lowest, op=dist.ReduceOp.MIN)
    dist.all_reduce(highest, op=dist.ReduceOp.MAX)
    return bool(torch.equal(lowest, highest))


def main():
    options = parse_arguments()
    rank, world, local_rank = rendezvous()
    device, backend = choose_device(options.device, local_rank)
    dist.init_process_group(backend, init_method="env://")
    say("rank %d/%d  local %d  %s  pid %d  cpus %s  threads %d  device %s"
        % (rank, world, local_rank, socket.gethostname(), os.getpid(), cpu_list(), torch.get_num_threads(),
           device_name(device)))
    dist.barrier()
    started = time.time()
    losses, model = train(options, rank, world, device)
    took = time.time() - started
    equal = same_everywhere(model)
    fell = losses[-1] < losses[0]
    if rank == 0:
        say("done: %d steps on %d rank%s in %.2f s (torch %s, %s), loss %.4f -> %.4f, models %s"
            % (options.steps, world, "" if world == 1 else "s", took, torch.__version__, backend, losses[0],
               losses[-1], "equal" if equal else "DIFFER"))
    leave(rank, 0 if equal and fell else 1)


def leave(rank, status):
    """Ends without tearing the process group down.

    destroy_process_group() of torch 1.13 under Python 3.11 can deadlock: it joins a thread while it holds the
    interpreter's lock, and that thread wants the lock. Rank 0 serves the rendezvous, so it goes last.
    """
    dist.barrier()
    if rank == 0:
        time.sleep(0.1)
    end_now(status)


def end_now(status):
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    try:
        main()
    except Exception:  # the same deadlock waits for a rank that ends because of another one
        traceback.print_exc()
        end_now(1)
