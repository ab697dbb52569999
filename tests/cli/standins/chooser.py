"""What a rank is, as the programs that people start would choose it; written as one JSON file per process.

    chooser.py FOLDER

Nothing here comes from the product, except the choices by its table of frameworks, which are compared with the others. The orders of names are those of PyTorch 2.9 (rendezvous.py), Lightning 2.6
(fabric/plugins/environments), accelerate 1.15 (state.py), DeepSpeed 0.18 (comm.py), JAX 0.11 (_src/clusters), timm
(utils/distributed.py), idr_torch 2, Megatron-LM (_rank_utils.py), TensorFlow (slurm_cluster_resolver.py) and ezpz.
A choice is (rank, size, local rank), None where the program would take itself for one process alone or stop.
"""
import json
import os
import sys
import uuid

E = os.environ


def first(*names):
    return next((E[name] for name in names if E.get(name)), None)


def torch():
    return first("RANK"), first("WORLD_SIZE"), None


def lightning():
    if "TORCHELASTIC_RUN_ID" in E:
        return E["RANK"], E["WORLD_SIZE"], E["LOCAL_RANK"]
    return lightning_without_torchelastic()


def lightning_without_torchelastic():
    if "SLURM_NTASKS" in E and E.get("SLURM_JOB_NAME") not in ("bash", "interactive"):
        return E["SLURM_PROCID"], E["SLURM_NTASKS"], E["SLURM_LOCALID"]
    if all(name in E for name in ("LSB_JOBID", "LSB_DJOB_RANKFILE", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE")):
        return E["JSM_NAMESPACE_RANK"], E["JSM_NAMESPACE_SIZE"], E["JSM_NAMESPACE_LOCAL_RANK"]
    return None


def accelerate_gpu():
    return (E["RANK"], E["WORLD_SIZE"], E["LOCAL_RANK"]) if int(E.get("LOCAL_RANK", -1)) != -1 else None


def accelerate_cpu():
    sizes = [E[n] for n in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "WORLD_SIZE") if int(E.get(n, 0)) > 1]
    if not sizes:
        return None
    return (first("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK"), sizes[0],
            first("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK"))


def deepspeed():
    if not all(name in E for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK")):
        return None
    return E["RANK"], E["WORLD_SIZE"], E["LOCAL_RANK"]


def jax():
    if "OMPI_MCA_orte_hnp_uri" in E:
        return E["OMPI_COMM_WORLD_RANK"], E["OMPI_COMM_WORLD_SIZE"], E["OMPI_COMM_WORLD_LOCAL_RANK"]
    if all("SLURM_" + name in E for name in ("JOB_ID", "STEP_NODELIST", "NTASKS", "PROCID", "LOCALID")):
        return E["SLURM_PROCID"], E["SLURM_NTASKS"], E["SLURM_LOCALID"]
    return None


def timm():
    if int(E.get("WORLD_SIZE", 1)) <= 1 and int(E.get("SLURM_NTASKS", 1)) <= 1:
        return None
    if "SLURM_PROCID" in E:  # the branch with an explicit rank
        return (first("RANK", "PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"),
                first("WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"),
                first("LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"))
    return E["RANK"], E["WORLD_SIZE"], E["LOCAL_RANK"]


def idr_torch():
    if "SLURM_STEP_ID" in E:
        return E["SLURM_PROCID"], E["SLURM_STEP_NUM_TASKS"], E["SLURM_LOCALID"]
    if "TORCHELASTIC_RUN_ID" in E:
        return E["RANK"], E["WORLD_SIZE"], E["LOCAL_RANK"]
    return None


def megatron():
    return first("RANK", "SLURM_PROCID"), first("WORLD_SIZE", "SLURM_NTASKS"), first("LOCAL_RANK", "SLURM_LOCALID")


def tensorflow():
    if first("OMPI_COMM_WORLD_RANK", "SLURM_PROCID") is None:
        return None
    return first("OMPI_COMM_WORLD_RANK", "SLURM_PROCID"), first("OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"), None


def ezpz():
    return (first("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"),
            first("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"),
            first("LOCAL_RANK", "PALS_LOCAL_RANKID", "PMIX_LOCAL_RANK", "PMI_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                  "MPICH_LOCALRANKID"))


def pmi():
    """MPICH, and so mpi4py on it."""
    return (E.get("PMI_RANK", E.get("PMI_ID")), E["PMI_SIZE"], None) if "PMI_SIZE" in E else None


def triple(rank, size, local):
    return lambda: (E.get(rank), E.get(size), E.get(local)) if rank in E or size in E or local in E else None


CHOICES = {one.__name__: one for one in (torch, lightning, lightning_without_torchelastic, accelerate_gpu, accelerate_cpu, deepspeed, jax, timm,
                                         idr_torch, megatron, tensorflow, ezpz, pmi)}
CHOICES.update({
    "hydra": triple("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    "openmpi": triple("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "mvapich": triple("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
    "horovod": triple("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"),
    "slurm": triple("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    "slurm step": triple("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
    "flux": triple("FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"),
    "pals": triple("PALS_RANKID", "-", "PALS_LOCAL_RANKID"),
    "jsm": triple("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK"),
    "torchrun role": triple("ROLE_RANK", "ROLE_WORLD_SIZE", "-"),
})

def by_table():
    """What profiles/programs/frameworks.json says: {framework: (rank, size, local rank)}."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 3, "profiles", "programs", "frameworks.json")
    with open(path) as file:
        rows = json.loads("\n".join(line for line in file if not line.lstrip().startswith("//")))["reads"]
    choices = {}
    for row in rows:
        holds = all(E.get(name) for name in row.get("when", ())) and ("when_above" not in row or int(E.get(row["when_above"], 0)) > 1)
        if holds and row["framework"] not in choices:
            choices[row["framework"]] = [first(*row.get(part, ())) for part in ("rank", "world", "local")]
    return choices


if __name__ == "__main__":
    truth = {"rank": int(E["HPCLAUNCH_NODE"]) * int(E["HPCLAUNCH_LOCAL_SIZE"]) + int(E["HPCLAUNCH_LOCAL_RANK"]),
             "local": int(E["HPCLAUNCH_LOCAL_RANK"]), "node": int(E["HPCLAUNCH_NODE"]), "host": os.uname().nodename}
    path = os.path.join(sys.argv[1], "%s.json" % uuid.uuid4())
    with open(path, "w") as file:
        json.dump({"truth": truth, "choices": {name: choose() for name, choose in CHOICES.items()}, "table": by_table(),
                   "nodes": {name: E[name] for name in ("SLURM_NODEID", "GROUP_RANK", "NODE_RANK", "CROSS_RANK") if name in E}}, file)
