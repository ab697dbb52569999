#!/usr/bin/env python3
"""Writes dumps as PyTorch's flight recorder does, with its keys (torch/csrc/distributed/c10d/FlightRecorder.hpp): beside this file,
one per rank. Four ranks are in a group of all; rank 2 has not started collective 7, and ranks 0 and 1 are in a pipeline of two."""
import os
import pickle

HERE = os.path.dirname(os.path.abspath(__file__))
GROUPS = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}, "5": {"name": "5", "desc": "undefined", "ranks": "[1, 3]"}}


def frames(line):
    return [{"name": "all_reduce", "filename": "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "line": 2501},
            {"name": "step", "filename": "/home/u/train.py", "line": line}, {"name": "<module>", "filename": "/home/u/train.py", "line": 99}]


def entry(record, group, number, name, state, line, p2p=0, sizes=((1024, 8),)):
    config = GROUPS[group]
    return {"frames": frames(line), "record_id": record, "pg_id": int(group), "process_group": (config["name"], config["desc"]),
            "collective_seq_id": number, "p2p_seq_id": p2p, "op_id": record + 1, "profiling_name": name,
            "time_created_ns": 1764324000000000000 + record, "duration_ms": 1.5, "input_sizes": [list(one) for one in sizes], "input_dtypes": ["Float"],
            "output_sizes": [list(one) for one in sizes], "output_dtypes": ["Float"], "state": state, "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None, "retired": state == "completed", "timeout_ms": 600000, "is_p2p": p2p > 0}


def status(launched, completed):
    return {"last_enqueued_collective": launched, "last_started_collective": launched, "last_completed_collective": completed}


def dump(version, entries, groups):
    return {"version": version, "pg_config": GROUPS, "pg_status": groups, "entries": entries, "nccl_comm_state": {}}


def main():
    done = [entry(n, "0", n + 1, "nccl:all_reduce", "completed", 41) for n in range(6)]
    waits = done + [entry(6, "0", 7, "nccl:all_reduce", "started", 41), entry(7, "0", 8, "nccl:broadcast", "scheduled", 43)]
    ranks = {
        0: ("2.4", 2, dump("2.4", waits, {"0": status(8, 6)})),
        # Its ring has lost what came before; a receive from rank 3, the second of group 5.
        1: ("2.10", 2, dump("2.10", [entry(90, "0", 7, "nccl:all_reduce", "started", 41), entry(91, "5", 0, "nccl:recv 0<-1", "started", 52, 3, ((4,),))],
                            {"0": status(7, 6), "5": status(-1, -1)})),
        2: ("2.9", 4, dump("2.9", done, {"0": status(6, 6)})),
        3: ("2.10", 5, dump("2.10", done + [entry(6, "0", 7, "nccl:all_gather", "started", 45)], {"0": status(7, 6)})),
    }
    for rank, (_, protocol, what) in ranks.items():
        with open(os.path.join(HERE, "rank%d.pickle" % rank), "wb") as handle:
            handle.write(pickle.dumps(what, protocol=protocol))


if __name__ == "__main__":
    main()
